/* SPDX-License-Identifier: Apache-2.0
 * export.c: `putscope export`: tidy CSV on stdout, one row per case and metric (columns: results/README.md).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "compare_semantics.h"
#include "err.h"
#include "load.h"

#define USAGE \
	"usage: putscope export DIR   (CSV on standard output; its columns: results/README.md)"
#define STATISTICS 8u

static const char *const statistics[STATISTICS] = {"p50", "p50_lo", "p50_hi", "p90",
						   "p99", "p99_9",  "min",    "max"};

/* One field; quoted where CSV asks for it (RFC 4180). */
static void text_field(const char *s)
{
	if (!strpbrk(s, ",\"\r\n")) {
		fputs(s, stdout);
		return;
	}
	putchar('"');
	for (; *s; s++) {
		if (*s == '"')
			putchar('"');
		putchar(*s);
	}
	putchar('"');
}

static void json_field(const json_t *v)
{
	char room[32];

	putchar(',');
	if (json_is_boolean(v))
		fputs(json_is_true(v) ? "true" : "false", stdout);
	else if (json_is_string(v) || json_is_number(v))
		text_field(json_is_string(v) ? json_string_value(v)
					     : semantic_text(v, room, sizeof room));
}

static void number_field(double v)
{
	putchar(',');
	if (isfinite(v))
		printf("%.3f", v);
}

static bool known(const char *key)
{
	for (size_t i = 0; i < semantic_count; i++)
		if (!strcmp(key, semantic_keys[i]))
			return true;
	return !semantic_is(key);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Semantics of versions to come: the keys that any case has and this version does not know, by name; an array of strings that
 * belong to the run, NULL when out of memory. */
static const char **further_keys(const json_t *run, size_t *n)
{
	json_t *seen = json_object(), *c, *v;
	const char **keys, *key;
	size_t k;

	json_array_foreach(json_object_get(run, "cases"), k, c){json_object_foreach(
		c, key, v){if (!known(key) && !json_object_get(seen, key))
				   json_object_set_new(seen, key, json_true());
}
}
*n = 0;
keys = calloc(json_object_size(seen) + 1, sizeof *keys);
json_array_foreach(json_object_get(run, "cases"), k, c)
{
	json_object_foreach(c, key, v)
	{
		if (keys && json_object_get(seen, key)) {
			keys[(*n)++] = key;
			json_object_del(seen, key);
		}
	}
}
json_decref(seen);
if (keys)
	qsort(keys, *n, sizeof *keys, by_name);
return keys;
}

static void header(const char **further, size_t n)
{
	printf("case");
	for (size_t i = 0; i < semantic_count; i++)
		printf(",%s", semantic_keys[i]);
	printf(",step_ns,timer_overhead_ns,puts,payload_errors,rerings,violations,status,reason,launches,metric,n,batches");
	for (unsigned i = 0; i < STATISTICS; i++)
		printf(",%s_ns", statistics[i]);
	for (unsigned i = 0; i < STATISTICS; i++)
		printf(",%s_per_s", statistics[i]);
	for (size_t i = 0; i < n; i++) {
		putchar(',');
		text_field(further[i]);
	}
	putchar('\n');
}

/* s: NULL for a case without samples. */
static void row(const struct load *l, const json_t *c, const struct load_series *s,
		const char **further, size_t n)
{
	static const char *const outcome[] = {
		"step_ns", "timer_overhead_ns", "puts",	  "payload_errors",
		"rerings", "violations",	"status", "reason"};
	const char *metric = s ? s->metric : case_str(c, "main_metric");
	const double none[STATISTICS] = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
	double v[STATISTICS];
	const bool rate = metric_is_rate(metric);

	memcpy(v, none, sizeof v);
	if (s && s->n)
		memcpy(v,
		       (double[STATISTICS]){s->stats.p50, s->stats.p50_lo,
					    s->stats.p50_hi, s->stats.p90, s->stats.p99,
					    s->stats.p99_9, s->stats.min, s->stats.max},
		       sizeof v);
	text_field(case_str(c, "id"));
	for (size_t i = 0; i < semantic_count; i++)
		json_field(json_object_get(c, semantic_keys[i]));
	for (size_t i = 0; i < sizeof outcome / sizeof *outcome; i++)
		json_field(json_object_get(c, outcome[i]));
	printf(",%u,", l->launches);
	text_field(metric);
	printf(",%zu,%u", s ? s->n : 0, s ? s->batches : 0);
	for (unsigned i = 0; i < STATISTICS; i++)
		number_field(rate ? NAN : v[i]);
	for (unsigned i = 0; i < STATISTICS; i++)
		number_field(rate ? v[i] : NAN);
	for (size_t i = 0; i < n; i++)
		json_field(json_object_get(c, further[i]));
	putchar('\n');
}

static int export(const char *dir)
{
	const char **further = NULL;
	struct load *l = NULL;
	size_t n, k;
	json_t *c;
	int err;

	OUR_TRY(load_open(&l, dir, LOAD_READER), err, out);
	PTR_TRY(further = further_keys(l->run, &n), err, out);
	header(further, n);
	json_array_foreach(json_object_get(l->run, "cases"), k, c)
	{
		bool any = false;

		for (size_t i = 0; i < l->n; i++) {
			if (strcmp(l->v[i].case_id, case_str(c, "id")))
				continue;
			row(l, c, &l->v[i], further, n);
			any = true;
		}
		if (!any)
			row(l, c, NULL, further, n);
	}
out:
	free(further);
	load_close(l);
	return err;
}

int cmd_export(int argc, char **argv)
{
	const char *dir = NULL;
	bool json = false;
	int rc = command_dir(argc, argv, USAGE, &dir, &json, NULL);

	if (rc)
		return rc - 1;
	if (json) {
		fputs("putscope: export writes CSV; for JSON: putscope report DIR --json\n",
		      stderr);
		return EXIT_USAGE;
	}
	return export(dir) ? command_fail(EXIT_USAGE) : EXIT_DONE;
}
