/* SPDX-License-Identifier: Apache-2.0
 * doctor_sys.c: read small files of /sys and /proc below one root.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"

#define TEXT_MAX (1u << 20)

const char *sys_root(void)
{
	const char *root = getenv("PUTSCOPE_SYSROOT");

	return root ? root : "";
}

bool sys_faked(void)
{
	return *sys_root() != 0;
}

static int full_path(char *path, const char *fmt, va_list ap)
{
	int at = snprintf(path, PATH_MAX, "%s", sys_root());
	int n = at < PATH_MAX ? vsnprintf(path + at, (size_t)(PATH_MAX - at), fmt, ap)
			      : 0;

	return at >= PATH_MAX || n >= PATH_MAX - at ? -ENAMETOOLONG : 0;
}
#define FULL_PATH(path, fmt, rc)                \
	do {                                    \
		va_list ap_;                    \
		va_start(ap_, fmt);             \
		rc = full_path(path, fmt, ap_); \
		va_end(ap_);                    \
	} while (0)

static long read_path(const char *path, void *buf, size_t n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t have = 0;
	ssize_t got = 0;

	if (fd < 0)
		return -errno;
	while (have < n && (got = read(fd, (char *)buf + have, n - have)) > 0)
		have += (size_t)got;
	if (got < 0)
		got = -errno;
	close(fd);
	return got < 0 ? got : (long)have;
}

long sys_bytes(void *buf, size_t n, const char *fmt, ...)
{
	char path[PATH_MAX];
	int rc;

	FULL_PATH(path, fmt, rc);
	return rc ? rc : read_path(path, buf, n);
}

/* What goes into JSON and onto a terminal is printable ASCII. */
static void make_printable(char *s)
{
	for (; *s; s++)
		if ((*s < ' ' && *s != '\n' && *s != '\t') || *s > '~')
			*s = '?';
}

int sys_line(char *buf, size_t n, const char *fmt, ...)
{
	char path[PATH_MAX];
	long got;
	int rc;

	*buf = 0;
	FULL_PATH(path, fmt, rc);
	if (rc)
		return rc;
	got = read_path(path, buf, n - 1);
	if (got < 0)
		return (int)got;
	buf[got] = 0;
	buf[strcspn(buf, "\n")] = 0;
	make_printable(buf);
	return 0;
}

char *sys_text(int *err, const char *fmt, ...)
{
	char path[PATH_MAX], *text;
	long got;

	FULL_PATH(path, fmt, *err);
	text = *err ? NULL : malloc(TEXT_MAX + 1);
	if (!text) {
		*err = *err ? *err : -ENOMEM;
		return NULL;
	}
	got = read_path(path, text, TEXT_MAX);
	if (got < 0) {
		*err = (int)got;
		free(text);
		return NULL;
	}
	text[got] = 0;
	make_printable(text);
	return text;
}

int sys_number(long long *v, const char *fmt, ...)
{
	char path[PATH_MAX], text[64], *end;
	long got;
	int rc;

	FULL_PATH(path, fmt, rc);
	if (rc)
		return rc;
	got = read_path(path, text, sizeof text - 1);
	if (got < 0)
		return (int)got;
	text[got] = 0;
	errno = 0;
	*v = strtoll(text, &end, 0);
	return errno || end == text ? -EINVAL : 0;
}

static int shown(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

int sys_names(char ***names, const char *fmt, ...)
{
	char path[PATH_MAX];
	struct dirent **list;
	int rc, n;

	*names = NULL;
	FULL_PATH(path, fmt, rc);
	if (rc)
		return rc;
	n = scandir(path, &list, shown, versionsort);
	if (n < 0)
		return -errno;
	*names = calloc((size_t)n + 1, sizeof **names);
	for (int i = 0; i < n; i++) {
		if (*names)
			(*names)[i] = strdup(list[i]->d_name);
		rc = *names && (*names)[i] ? rc : -ENOMEM;
		free(list[i]);
	}
	free(list);
	if (rc) {
		sys_names_free(*names, n);
		*names = NULL;
	}
	return rc ? rc : n;
}

void sys_names_free(char **names, int n)
{
	for (int i = 0; names && i < n; i++)
		free(names[i]);
	free(names);
}

int sys_real(char *buf, size_t n, const char *fmt, ...)
{
	char path[PATH_MAX], real[PATH_MAX], root[PATH_MAX] = "";
	size_t skip;
	int rc;

	*buf = 0;
	FULL_PATH(path, fmt, rc);
	if (rc)
		return rc;
	if (!realpath(path, real) || (sys_faked() && !realpath(sys_root(), root)))
		return -errno;
	skip = strlen(root);
	if (strncmp(real, root, skip) || strlen(real + skip) >= n)
		return -ENAMETOOLONG;
	strcpy(buf, real + skip);
	return 0;
}

int sys_link(char *buf, size_t n, const char *fmt, ...)
{
	char path[PATH_MAX];
	ssize_t got;
	int rc;

	*buf = 0;
	FULL_PATH(path, fmt, rc);
	got = rc ? 0 : readlink(path, buf, n - 1);
	if (got < 0)
		return -errno;
	buf[got] = 0;
	return rc;
}

bool sys_there(const char *fmt, ...)
{
	char path[PATH_MAX];
	int rc;

	FULL_PATH(path, fmt, rc);
	return !rc && !access(path, F_OK);
}

int text_field(const char *text, const char *key, char *buf, size_t n)
{
	size_t len = strlen(key);

	for (; text && *text; text = *text ? text + 1 : text) {
		if (!strncmp(text, key, len)) {
			text += len;
			text += strspn(text, " \t:");
			snprintf(buf, n, "%.*s", (int)strcspn(text, "\n"), text);
			return 0;
		}
		text += strcspn(text, "\n");
	}
	*buf = 0;
	return -ENOENT;
}

bool word_in(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += len)
		if ((at == text || strchr(" \t\n,", at[-1])) &&
		    (!at[len] || strchr(" \t\n,", at[len])))
			return true;
	return false;
}

/* Calls for each range; 0, or -1 when the list does not parse. */
static int each_range(const char *list, long *from, long *to, const char **next)
{
	char *end;

	*from = *to = strtol(list, &end, 10);
	if (end == list || *from < 0)
		return -1;
	if (*end == '-') {
		list = end + 1;
		*to = strtol(list, &end, 10);
		if (end == list || *to < *from)
			return -1;
	}
	*next = *end == ',' ? end + 1 : end;
	return *end && *end != ',' ? -1 : 0;
}

int cpulist_count(const char *list)
{
	long from, to, n = 0;

	while (*list) {
		if (each_range(list, &from, &to, &list))
			return -1;
		n += to - from + 1;
	}
	return (int)n;
}

static int cpu_in(long cpu, const char *list)
{
	long from, to;

	while (*list) {
		if (each_range(list, &from, &to, &list))
			return -1;
		if (cpu >= from && cpu <= to)
			return 1;
	}
	return 0;
}

int cpulist_within(const char *a, const char *b)
{
	long from, to;
	int in = 1;

	while (*a && in == 1) {
		if (each_range(a, &from, &to, &a))
			return -1;
		for (; from <= to && in == 1; from++)
			in = cpu_in(from, b);
	}
	return in;
}
