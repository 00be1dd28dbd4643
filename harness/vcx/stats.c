/* SPDX-License-Identifier: Apache-2.0
 * stats.c: statistics as JSON.
 *
 * Field names and values are ours and hold no character that JSON would escape, except the fabric's file name, which is
 * left out for that reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabric.h"
#include "log.h"
#include "option.h"
#include "stats.h"
#include "vcx.h"

struct vcx_counts vcx_counts;

static const struct {
	const char *name, *meaning;
} violations[] = {
#define V(id, name, meaning) {name, meaning},
	VCX_VIOLATIONS(V)
#undef V
};

void vcx_violation(enum vcx_violation v, uint32_t qpn, const char *fmt, ...)
{
	bool first = !vcx_counts.violation[v]++;
	char detail[200];
	va_list ap;

	if (!first && vcx_option.log < 1)
		return;
	va_start(ap, fmt);
	vsnprintf(detail, sizeof detail, fmt, ap);
	va_end(ap);
	fprintf(stderr, "vcx: violation %s: %s (QP 0x%x: %s)%s\n", violations[v].name,
		violations[v].meaning, qpn, detail,
		first && vcx_option.log < 1 ? "; further ones are only counted" : "");
}

struct text {
	char *buf;
	size_t n, at;
};

static void add(struct text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int k;

	va_start(ap, fmt);
	k = vsnprintf(t->at < t->n ? t->buf + t->at : NULL,
		      t->at < t->n ? t->n - t->at : 0, fmt, ap);
	va_end(ap);
	t->at += k > 0 ? (size_t)k : 0;
}

static void add_map(struct text *t, const char *name, const uint64_t *v, unsigned n)
{
	const char *sep = "";

	add(t, ", \"%s\": {", name);
	for (unsigned i = 0; i < n; i++) {
		if (!v[i])
			continue;
		add(t, "%s\"0x%02x\": %llu", sep, i, (unsigned long long)v[i]);
		sep = ", ";
	}
	add(t, "}");
}

int vcx_stats(char *buf, size_t n)
{
	const struct vcx_counts *c = &vcx_counts;
	const struct {
		const char *name;
		uint64_t v;
	} rows[] = {
		{"doorbells", c->doorbells},
		{"wqes", c->wqes},
		{"cqes", c->cqes},
		{"bytes_out", c->bytes_out},
		{"bytes_in", fabric_my_bytes_in()},
		{"bytes_read", c->bytes_read},
		{"errors", c->errors},
		{"arms", c->arms},
		{"events", c->events},
		{"late_record_notes", c->late_notes},
		{"steps_by_pollers", c->steps_by_pollers},
		{"blueflames", c->blueflames},
		{"blueflames_from_ring", c->blueflames_from_ring},
		{"qps_max", c->qps_max},
	};
	struct text t = {buf, n, 0};

	add(&t,
	    "{\"schema\": \"vcx-stats\", \"version\": 1, \"pid\": %d, \"fabric\": \"%08x\"",
	    (int)vcx_me, fab ? fab->id : 0);
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		add(&t, ", \"%s\": %llu", rows[i].name, (unsigned long long)rows[i].v);
	add_map(&t, "opcodes", c->opcode, 256);
	add_map(&t, "syndromes", c->syndrome, 256);
	add(&t, ", \"violations\": {");
	for (unsigned i = 0; i < VIOLATION_KINDS; i++)
		add(&t, "%s\"%s\": %llu", i ? ", " : "", violations[i].name,
		    (unsigned long long)c->violation[i]);
	add(&t, "}}");
	return (int)t.at;
}

/* FILE with %p as the process number; FILE.PID when another process of this fabric has taken FILE. */
static int open_stats(void)
{
	char path[1100];
	const char *p = strstr(vcx_option.stats, "%p");
	int fd;

	if (p)
		snprintf(path, sizeof path, "%.*s%d%s", (int)(p - vcx_option.stats),
			 vcx_option.stats, (int)vcx_me, p + 2);
	else
		snprintf(path, sizeof path, "%s", vcx_option.stats);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path,
			  O_WRONLY | O_CREAT | O_CLOEXEC | (p ? O_TRUNC : O_EXCL), 0666);
	if (fd >= 0 || p || errno != EEXIST)
		return fd;
	snprintf(path, sizeof path, "%.1000s.%d", vcx_option.stats, (int)vcx_me);
	return (int)syscall(SYS_openat, AT_FDCWD, path,
			    O_WRONLY | O_CREAT | O_CLOEXEC | O_TRUNC, 0666);
}

void vcx_stats_write(void)
{
	static char text[32768];
	int n, fd;

	if (!vcx_option.stats[0])
		return;
	n = vcx_stats(text, sizeof text - 1);
	fd = open_stats();
	if (fd < 0 || n <= 0 || (size_t)n >= sizeof text) {
		LOG(0, "statistics cannot be written to %s", vcx_option.stats);
		return;
	}
	text[n++] = '\n';
	if (write(fd, text, (size_t)n) != n)
		LOG(0, "statistics were cut: %s", vcx_option.stats);
	syscall(SYS_close, fd);
}
