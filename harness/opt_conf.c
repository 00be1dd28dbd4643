/* SPDX-License-Identifier: Apache-2.0
 * opt_conf.c: options from a .conf file, by inih.
 */
#include <ini.h>
#include <libgen.h>
#include <stdio.h>
#include <unistd.h>

#include "err.h"
#include "opt.h"

struct loading {
	struct opts *o;
	const char *path;
	FILE *file;
	int line; /* inih's handler is not told the line: it is called right after its
		     line was read */
	int err;
};

/* One line for inih.  Leading blanks go: inih would take an indented line for more of the value before it. */
static char *read_line(char *text, int n, void *stream)
{
	struct loading *l = stream;
	size_t blanks;

	l->line++;
	if (!fgets(text, n, l->file))
		return NULL;
	if (!strchr(text, '\n') && !feof(l->file) && !l->err)
		l->err = err_say(-EINVAL, "%s:%d: the line is longer than %d characters",
				 l->path, l->line, n - 2);
	blanks = strspn(text, " \t");
	memmove(text, text + blanks, strlen(text + blanks) + 1);
	return text;
}

static int on_pair(void *user, const char *section, const char *key, const char *value)
{
	struct loading *l = user;
	char where[4300];

	(void)section;
	if (l->err)
		return 1;
	snprintf(where, sizeof where, "%s:%d", l->path, l->line);
	l->err = opts_set(l->o, key, value, where);
	return 1;
}

/* configs/NAME.conf here, or beside the folder of the executable. */
static int find_config(const char *config, char *path, size_t n)
{
	char exe[4096];
	ssize_t len;

	snprintf(path, n, "%s", config);
	if (strchr(config, '/') || !access(path, R_OK))
		return access(path, R_OK) ? -ENOENT : 0;
	snprintf(path, n, "configs/%s.conf", config);
	if (!access(path, R_OK))
		return 0;
	len = readlink("/proc/self/exe", exe, sizeof exe - 1);
	if (len < 0)
		return -ENOENT;
	exe[len] = 0;
	snprintf(path, n, "%s/../configs/%s.conf", dirname(exe), config);
	return access(path, R_OK) ? -ENOENT : 0;
}

int opts_load(struct opts *o, const char *config)
{
	char path[4200];
	struct loading l = {o, path, NULL, 0, 0};
	int rc;

	if (find_config(config, path, sizeof path))
		return err_say(-ENOENT,
			       "config '%s' does not exist (looked for %s); see configs/",
			       config, path);
	l.file = fopen(path, "r");
	if (!l.file)
		return err_say(-ENOENT, "config %s cannot be read: %s", path,
			       strerror(errno));
	rc = ini_parse_stream(read_line, &l, on_pair, &l);
	if (ferror(l.file) && !l.err)
		l.err = err_say(-EINVAL, "config %s cannot be read: %s", path,
				strerror(errno));
	fclose(l.file);
	if (l.err)
		return l.err;
	return rc > 0 ? err_say(-EINVAL,
				"%s:%d: neither 'key = value', a [section] nor a # comment",
				path, rc)
		      : 0;
}
