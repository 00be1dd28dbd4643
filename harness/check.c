/* SPDX-License-Identifier: Apache-2.0
 * check.c: `putscope check`: whole, valid, honest.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "err.h"
#include "load.h"

#define USAGE "usage: putscope check DIR [--json]"
#define SUMMARY_FIELDS 11u
#define NEGATIVE_STEPS \
	2.0 /* a window shorter than the clock can tell may come out so far below 0 */
#define UNACCOUNTED_MAX 0.03 /* of wall: more is said, not refused */

struct findings {
	json_t *errors, *warnings;
};

static void find(json_t *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void find(json_t *to, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	json_array_append_new(to, json_string(line));
}

static const char *str(const json_t *c, const char *key)
{
	const char *s = json_string_value(json_object_get(c, key));

	return s ? s : "";
}

static json_int_t count(const json_t *c, const char *key)
{
	return json_integer_value(json_object_get(c, key));
}

static void check_ok_case(const struct load *l, const json_t *c, struct findings *f)
{
	const json_t *o = json_object_get(l->run, "options");
	const struct load_series *s = load_find(l, str(c, "id"), str(c, "main_metric")),
				 *wall, *rest;

	if (!s || !s->n) {
		find(f->errors, "%s: status ok, but samples.csv holds no %s",
		     str(c, "id"), str(c, "main_metric"));
		return;
	}
	if ((json_int_t)s->n < count(o, "min_samples"))
		find(f->errors, "%s: %zu samples of %s, fewer than min_samples %lld",
		     str(c, "id"), s->n, s->metric, (long long)count(o, "min_samples"));
	if ((json_int_t)s->batches < count(o, "min_batches"))
		find(f->errors, "%s: %u batches, fewer than min_batches %lld",
		     str(c, "id"), s->batches, (long long)count(o, "min_batches"));
	if (count(c, "payload_errors") && !json_is_true(json_object_get(c, "litmus")))
		find(f->errors, "%s: %lld payload errors", str(c, "id"),
		     (long long)count(c, "payload_errors"));
	wall = load_find(l, str(c, "id"), "wall");
	rest = load_find(l, str(c, "id"), "unaccounted");
	if (wall && rest && wall->n && rest->n &&
	    fabs(rest->stats.p50) > UNACCOUNTED_MAX * wall->stats.p50)
		find(f->warnings, "%s: %.1f %% of wall time is unaccounted", str(c, "id"),
		     100 * rest->stats.p50 / wall->stats.p50);
}

static void check_cases(const struct load *l, struct findings *f)
{
	const json_t *rank = json_array_get(json_object_get(l->run, "ranks"), 0),
		     *sm = json_object_get(rank, "sm"),
		     *nic = json_array_get(json_object_get(rank, "nics"), 0);
	const bool is_virtual = json_is_true(json_object_get(nic, "virtual")) ||
				!strcmp(str(sm, "kind"), "host-thread");
	size_t k, m;
	json_t *c, *d;

	json_array_foreach(json_object_get(l->run, "cases"), k, c)
	{
		const char *status = str(c, "status");

		json_array_foreach(json_object_get(l->run, "cases"), m,
				   d) if (m < k && !strcmp(str(c, "id"), str(d, "id")))
			find(f->errors, "case id %s stands twice in run.json",
			     str(c, "id"));
		if (strcmp(str(c, "nature"), "hardware") &&
		    strcmp(str(c, "nature"), "virtual"))
			find(f->errors,
			     "%s: no nature: a number must say hardware or virtual",
			     str(c, "id"));
		if (is_virtual && strcmp(str(c, "path"), "none") &&
		    strcmp(str(c, "nature"), "virtual"))
			find(f->errors,
			     "%s says %s, but this run's NIC or SM was virtual",
			     str(c, "id"), str(c, "nature"));
		if (!strcmp(status, "ok"))
			check_ok_case(l, c, f);
		else if (!*str(c, "reason"))
			find(f->errors, "%s: %s without a reason", str(c, "id"), status);
		if (!strcmp(status, "failed") || !strcmp(status, "incomplete"))
			find(f->errors, "%s: %s: %s", str(c, "id"), status,
			     str(c, "reason"));
	}
}

/* Packets that were lost or repeated, as the drivers of both ranks counted: said, not refused. */
static void check_wire(const struct load *l, struct findings *f)
{
	const json_t *mine = json_object_get(l->run, "evidence"),
		     *peer = json_object_get(mine, "peer");
	size_t i;
	json_t *line;

	json_array_foreach(json_object_get(mine, "dirty"), i, line)
		find(f->warnings, "dirty: rank 0, %s", json_string_value(line));
	json_array_foreach(json_object_get(peer, "dirty"), i, line)
		find(f->warnings, "dirty: rank 1, %s", json_string_value(line));
}

/* Every series belongs to a case, and no median is negative beyond what its clock can tell. */
static void check_series(const struct load *l, struct findings *f)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct load_series *s = &l->v[i];
		const json_t *mine = NULL;
		size_t k;
		json_t *c;

		json_array_foreach(json_object_get(l->run, "cases"), k,
				   c) if (!strcmp(str(c, "id"), s->case_id)) mine = c;
		if (!mine)
			find(f->errors, "samples.csv: case %s is not in run.json",
			     s->case_id);
		else if (s->n &&
			 s->stats.p50 <
				 -NEGATIVE_STEPS * json_number_value(json_object_get(
							   mine, "step_ns")) &&
			 strcmp(s->metric, "unaccounted"))
			find(f->errors, "%s: the median of %s is negative (%.1f ns)",
			     s->case_id, s->metric, s->stats.p50);
	}
}

static bool same(const char *text, double v)
{
	return !*text ? !isfinite(v)
		      : isfinite(v) &&
				fabs(strtod(text, NULL) - v) <= 0.001 + 1e-9 * fabs(v);
}

static int check_row(const struct load *l, char *field[], struct findings *f)
{
	const struct load_series *s = load_find(l, field[0], field[1]);
	double cols[7];

	if (!s)
		return find(f->errors, "summary.csv: %s %s has no samples", field[0],
			    field[1]),
		       0;
	cols[0] = s->stats.p50;
	cols[1] = s->stats.p50_lo;
	cols[2] = s->stats.p50_hi;
	cols[3] = s->stats.p90;
	cols[4] = s->stats.p99;
	cols[5] = s->stats.p99_9;
	cols[6] = s->stats.max;
	if (strtoull(field[3], NULL, 10) != s->n)
		find(f->errors, "summary.csv: %s %s says n = %s, samples.csv holds %zu",
		     field[0], field[1], field[3], s->n);
	for (unsigned i = 0; i < 7; i++)
		if (!same(field[4 + i], cols[i]))
			find(f->errors,
			     "summary.csv: %s %s column %u says %s, the samples give %.3f",
			     field[0], field[1], 5 + i, field[4 + i], cols[i]);
	return 0;
}

/* summary.csv against the samples; only a complete run has one. */
static int check_summary(const struct load *l, const char *dir, struct findings *f)
{
	char path[4096], *line = NULL, *field[SUMMARY_FIELDS + 1];
	size_t cap = 0, at = 0, rows = 0;
	ssize_t n;
	FILE *file;
	int err = 0;

	snprintf(path, sizeof path, "%s/summary.csv", dir);
	file = fopen(path, "r");
	if (!file)
		return l->complete ? err_say(-errno, "%s: %s", path, strerror(errno)) : 0;
	while (!err && (n = getline(&line, &cap, file)) > 0) {
		at++;
		if (line[n - 1] != '\n')
			err = err_say(-EBADMSG,
				      "%s:%zu: the file is cut in the middle of a line",
				      path, at);
		line[n - 1] = 0;
		if (err || at == 1)
			continue;
		if (load_split(line, field, SUMMARY_FIELDS) != SUMMARY_FIELDS)
			err = err_say(-EBADMSG, "%s:%zu: malformed line", path, at);
		else
			err = check_row(l, field, f);
		rows++;
	}
	if (!err && !at)
		err = err_say(-EBADMSG, "%s:1: the file is empty", path);
	if (!err && l->complete && rows != l->n)
		find(f->errors, "summary.csv has %zu rows, samples.csv %zu series", rows,
		     l->n);
	free(line);
	fclose(file);
	return err;
}

static void print_lines(const char *head, const json_t *lines)
{
	size_t k;
	json_t *line;

	json_array_foreach(lines, k, line)
		printf("%s: %s\n", head, json_string_value(line));
}

static void print_result(const struct load *l, const struct findings *f, const char *dir,
			 bool json)
{
	bool good = !json_array_size(f->errors);

	if (json) {
		json_t *j =
			json_pack("{s:s, s:s, s:b, s:b, s:I, s:O, s:O}", "schema",
				  "putscope-check", "dir", dir, "good", good, "complete",
				  l->complete, "samples", (json_int_t)l->lines, "errors",
				  f->errors, "warnings", f->warnings);

		json_dumpf(j, stdout, JSON_INDENT(1));
		putchar('\n');
		json_decref(j);
		return;
	}
	print_lines("error", f->errors);
	print_lines("warning", f->warnings);
	printf("%s: %zu samples in %zu series%s: %s\n", dir, l->lines, l->n,
	       l->cut ? " (the last line was cut and left out)" : "",
	       good	     ? "whole, valid"
	       : l->complete ? "not good"
			     : "incomplete: what is there is whole");
}

int cmd_check(int argc, char **argv)
{
	struct findings f = {json_array(), json_array()};
	struct load *l = NULL;
	bool json = false, good;
	const char *dir = NULL;
	int rc = command_dir(argc, argv, USAGE, &dir, &json, NULL), err;

	if (rc) {
		rc--;
		goto out;
	}
	err = load_open(&l, dir, LOAD_READER);
	if (!err)
		err = check_summary(l, dir, &f);
	if (err) {
		rc = command_fail(EXIT_USAGE);
		goto out;
	}
	if (!l->complete)
		find(f.errors, "the run is incomplete: %s",
		     str(l->run, "why_incomplete"));
	check_series(l, &f);
	check_wire(l, &f);
	if (l->complete)
		check_cases(l, &f);
	print_result(l, &f, dir, json);
	good = !json_array_size(f.errors);
	rc = good ? EXIT_DONE : EXIT_FAILED;
out:
	load_close(l);
	json_decref(f.errors);
	json_decref(f.warnings);
	return rc;
}
