/* SPDX-License-Identifier: Apache-2.0
 * option.c: parse KEY=VALUE options.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "option.h"

struct vcx_option vcx_option;

const char *const vcx_fault_names[FAULT_KINDS] = {"error-cqe", "lost-doorbell",
						  "lost-cqe", "retry-exceeded", "rnr"};

#define H(id, name) name,
const char *const vcx_hop_names[VCX_HOPS] = {VCX_HOP_LIST(H)};
#undef H
#define DELAY_MAX_NS 1000000000u

static const struct {
	const char *name;
	unsigned bit;
} refusals[] = {
	{"uar-map", REFUSE_UAR_MAP}, {"dmabuf", REFUSE_DMABUF},
	{"peermem", REFUSE_PEERMEM}, {"port", REFUSE_PORT},
	{"gid", REFUSE_GID},
};
#define REFUSALS (sizeof refusals / sizeof *refusals)

const char vcx_option_help[] =
	"  log=0|1|2            how much is said on stderr: little, each violation, each WQE\n"
	"  stats=FILE           write statistics as JSON at exit; %p in FILE is the process number\n"
	"  fabric=FILE          several vcx commands that name the same FILE share one fabric\n"
	"  mode=normal|sink     sink completes by doorbell index and reads no WQE (posting rates)\n"
	"  strict-record        a doorbell ahead of its doorbell record is a violation\n"
	"  record-recheck       such a doorbell is not lost: WQEs run when the record follows\n"
	"  delay.HOP=NS         every work request waits so long at HOP: doorbell_flight, nic_exec, wqe_fetch,\n"
	"                       payload_fetch, wire_out, wire_back, remote_write or cqe_write\n"
	"  fault.KIND=N         the Nth WQE meets error-cqe, lost-doorbell, lost-cqe, retry-exceeded or rnr\n"
	"  refuse=STEP          uar-map, dmabuf, peermem, port or gid is refused, as a machine set up wrongly does\n";

static int bad(char *why, size_t n, const char *text, const char *what)
{
	snprintf(why, n, "%s: %s", text, what);
	return -1;
}

static int number(const char *s, uint64_t max, uint64_t *out)
{
	char *end;

	if (*s < '0' || *s > '9')
		return -1;
	errno = 0;
	*out = strtoull(s, &end, 10);
	return errno || *end || *out > max ? -1 : 0;
}

static int set_fault(struct vcx_option *o, const char *kind, const char *value)
{
	for (int i = 0; i < FAULT_KINDS; i++)
		if (!strcmp(kind, vcx_fault_names[i]))
			return number(value, UINT64_MAX, &o->fault[i]) || !o->fault[i]
				       ? -1
				       : 0;
	return -1;
}

int vcx_hop_find(const char *name)
{
	for (int i = 0; i < VCX_HOPS; i++)
		if (!strcmp(name, vcx_hop_names[i]))
			return i;
	return -1;
}

static int set_delay(struct vcx_option *o, const char *hop, const char *value)
{
	int h = vcx_hop_find(hop);

	return h < 0 ? -1 : number(value, DELAY_MAX_NS, &o->delay_ns[h]);
}

static int set_refuse(struct vcx_option *o, const char *value)
{
	for (unsigned i = 0; i < REFUSALS; i++) {
		if (strcmp(value, refusals[i].name))
			continue;
		o->refuse |= refusals[i].bit;
		return 0;
	}
	return -1;
}

static int set_path(char *to, size_t n, const char *value)
{
	return !*value || strlen(value) >= n || strchr(value, '\n')
		       ? -1
		       : snprintf(to, n, "%s", value) < 0;
}

int vcx_option_set(struct vcx_option *o, const char *pair, char *why, size_t n)
{
	char key[64];
	const char *eq = strchr(pair, '='), *value = eq ? eq + 1 : "";
	size_t len = eq ? (size_t)(eq - pair) : strlen(pair);
	uint64_t v;

	if (len >= sizeof key)
		return bad(why, n, pair, "no such option");
	snprintf(key, sizeof key, "%.*s", (int)len, pair);
	if (!strcmp(key, "strict-record") || !strcmp(key, "record-recheck")) {
		if (eq)
			return bad(why, n, pair, "takes no value");
		*(key[0] == 's' ? &o->strict_record : &o->record_recheck) = true;
		return 0;
	}
	if (!strcmp(key, "adversary"))
		return bad(why, n, pair, "this version has no adversary");
	if (!eq)
		return bad(why, n, pair, "not KEY=VALUE");
	if (!strcmp(key, "log")) {
		if (number(value, 2, &v))
			return bad(why, n, pair, "log takes 0, 1 or 2");
		o->log = (int)v;
		return 0;
	}
	if (!strcmp(key, "mode")) {
		if (strcmp(value, "normal") && strcmp(value, "sink"))
			return bad(why, n, pair, "mode takes normal or sink");
		o->sink = !strcmp(value, "sink");
		return 0;
	}
	if (!strcmp(key, "stats"))
		return set_path(o->stats, sizeof o->stats, value)
			       ? bad(why, n, pair, "stats takes a file name")
			       : 0;
	if (!strcmp(key, "fabric"))
		return set_path(o->fabric, sizeof o->fabric, value)
			       ? bad(why, n, pair, "fabric takes a file name")
			       : 0;
	if (!strncmp(key, "delay.", 6))
		return set_delay(o, key + 6, value)
			       ? bad(why, n, pair,
				     "delay.HOP=NS: HOP is doorbell_flight, nic_exec, wqe_fetch, payload_fetch, "
				     "wire_out, wire_back, remote_write or cqe_write, NS at most 1000000000")
			       : 0;
	if (!strncmp(key, "fault.", 6))
		return set_fault(o, key + 6, value)
			       ? bad(why, n, pair,
				     "fault.KIND=N: KIND is error-cqe, lost-doorbell, lost-cqe, retry-exceeded or "
				     "rnr, N is 1 or more")
			       : 0;
	if (!strcmp(key, "refuse"))
		return set_refuse(o, value)
			       ? bad(why, n, pair,
				     "refuse takes uar-map, dmabuf, peermem, port or gid")
			       : 0;
	return bad(why, n, pair, "no such option");
}

void vcx_option_from_env(void)
{
	const char *env = getenv("VCX_OPTIONS");
	char *copy = env ? strdup(env) : NULL, why[200];

	for (char *save, *line = copy ? strtok_r(copy, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		if (vcx_option_set(&vcx_option, line, why, sizeof why))
			fprintf(stderr, "vcx: %s\n", why);
	free(copy);
}
