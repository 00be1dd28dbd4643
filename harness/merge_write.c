/* SPDX-License-Identifier: Apache-2.0
 * merge_write.c: run.json and samples.csv of launches put together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare_hops.h"
#include "compare_semantics.h"
#include "err.h"
#include "load.h"
#include "merge.h"
#include "record.h"

#define FIELDS 7u

/* ---- run.json ---- */

/* No counts, though they are whole numbers: kept where they are equal, null where not. */
static bool is_name(const char *key)
{
	return !strcmp(key, "pid") || !strcmp(key, "version");
}

static bool is_peak(const char *key)
{
	size_t n = strlen(key);

	return n > 4 && !strcmp(key + n - 4, "_max");
}

/* The evidence of one more launch: counts are added, peaks taken, the rest is null where it is not equal.  New reference. */
static json_t *add_evidence(const char *key, const json_t *sum, const json_t *more)
{
	json_int_t a = json_integer_value(sum), b = json_integer_value(more);
	const char *below;
	json_t *j, *v;

	if (json_is_object(sum) && json_is_object(more)) {
		j = json_copy((json_t *)sum);
		json_object_foreach((json_t *)more, below, v)
		{
			const json_t *old = json_object_get(sum, below);

			json_object_set_new(j, below,
					    old ? add_evidence(below, old, v)
						: json_incref(v));
		}
		return j;
	}
	if (json_is_integer(sum) && json_is_integer(more) && !is_name(key))
		return json_integer(is_peak(key) ? (a > b ? a : b) : a + b);
	return json_equal(sum, more) ? json_incref((json_t *)sum) : json_null();
}

/* Entries of run.json "launches" for one part; a part that was merged brings its own. */
static void add_launches(json_t *launches, const struct merge_part *p, uint32_t base)
{
	json_t *theirs = json_object_get(p->run, "launches"), *one, *run;
	size_t k;

	json_array_foreach(theirs, k, one)
	{
		json_t *e = json_copy(one);
		json_int_t first =
			json_integer_value(json_object_get(one, "first_batch"));

		json_object_set_new(e, "first_batch", json_integer(base + first));
		json_object_set_new(
			e, "launch",
			json_integer((json_int_t)json_array_size(launches) + 1));
		json_array_append_new(launches, e);
	}
	if (json_array_size(theirs))
		return;
	run = json_copy(p->run);
	json_array_append_new(launches,
			      json_pack("{s:I, s:s, s:I, s:I, s:o}", "launch",
					(json_int_t)json_array_size(launches) + 1, "from",
					p->dir, "first_batch", (json_int_t)base,
					"batches", (json_int_t)p->batches, "run", run));
}

static json_t *head_of(const char *out, const struct merge_part *parts, size_t n)
{
	static const char *const not_of_all[] = {
		"complete", "why_incomplete", "duration_s", "cases",
		"evidence", "seals",	      "hops"};
	json_t *head = json_copy(parts[0].run), *launches = json_array(),
	       *options = json_copy(json_object_get(head, "options")), *hops;
	uint32_t base = 0;

	for (size_t i = 0; i < sizeof not_of_all / sizeof *not_of_all; i++)
		json_object_del(head, not_of_all[i]);
	for (size_t i = 0; i < n; base += parts[i++].batches)
		add_launches(launches, &parts[i], base);
	if (options) {
		json_object_set_new(options, "out", json_string(out));
		json_object_set_new(options, "repeat",
				    json_integer((json_int_t)json_array_size(launches)));
		json_object_set_new(head, "options", options);
	}
	hops = hops_merge(launches);
	if (hops)
		json_object_set_new(head, "hops", hops);
	json_object_set_new(head, "launches", launches);
	return head;
}

/* The worst status of all launches, and where it comes from. */
static void merge_status(json_t *to, const json_t *c, size_t launch)
{
	static const char *const order[] = {"ok", "waived", "incomplete", "failed"};
	int now = 0, more = 0;
	char why[400];

	for (int i = 0; i < 4; i++) {
		now = strcmp(case_str(to, "status"), order[i]) ? now : i;
		more = strcmp(case_str(c, "status"), order[i]) ? more : i;
	}
	if (more <= now)
		return;
	snprintf(why, sizeof why, "launch %zu: %s", launch + 1, case_str(c, "reason"));
	json_object_set(to, "status", json_object_get(c, "status"));
	json_object_set_new(to, "reason", json_string(why));
}

/* One case of all parts: counts added, the coarsest step, the mean timer overhead. */
static json_t *merge_case(const json_t *first, const struct merge_part *parts, size_t n)
{
	static const char *const counts[] = {"puts", "payload_errors", "rerings",
					     "violations"};
	json_t *j = json_deep_copy(first);
	double step = 0, overhead = 0;

	for (size_t i = 0; i < n; i++) {
		const json_t *c = case_find(parts[i].run, case_str(first, "id"));
		double s = json_number_value(json_object_get(c, "step_ns"));

		step = s > step ? s : step;
		overhead += json_number_value(json_object_get(c, "timer_overhead_ns")) /
			    (double)n;
		if (!i)
			continue;
		for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
			json_object_set_new(
				j, counts[k],
				json_integer(json_integer_value(
						     json_object_get(j, counts[k])) +
					     json_integer_value(
						     json_object_get(c, counts[k]))));
		merge_status(j, c, i);
	}
	json_object_set_new(j, "step_ns", json_real(step));
	json_object_set_new(j, "timer_overhead_ns", json_real(overhead));
	return j;
}

/* ---- samples.csv ---- */

/* One series of one batch, as it is read line by line. */
struct run_of_lines {
	struct case_desc c;
	struct batch b;
	char metric[48];
	double *v;
	size_t n, cap;
};

static int flush_lines(struct record *r, struct run_of_lines *x)
{
	int err;

	if (!x->n)
		return 0;
	x->b.series[0] = (struct series){x->metric, x->v, x->n};
	x->b.series_count = 1;
	err = record_batch(r, &x->c, &x->b);
	x->n = 0;
	return err;
}

static int take_line(struct record *r, struct run_of_lines *x, char *line, uint32_t base)
{
	char *f[FIELDS + 1];
	int err;

	line[strcspn(line, "\n")] = 0;
	if (load_split(line, f, FIELDS) != FIELDS)
		return err_say(-EBADMSG, "samples.csv changed while it was read");
	if (!strtoull(f[4], NULL, 10)) { /* seq 0: a series of a batch begins */
		err = flush_lines(r, x);
		if (err)
			return err;
		snprintf(x->c.id, sizeof x->c.id, "%s", f[0]);
		snprintf(x->metric, sizeof x->metric, "%s", f[1]);
		x->c.size_bytes = strtoull(f[2], NULL, 10);
		x->b.index = base + (uint32_t)strtoul(f[3], NULL, 10);
		x->b.warmup = *f[5] == '1';
	}
	if (x->n == x->cap) {
		size_t cap = x->cap ? 2 * x->cap : 1024;
		double *v = realloc(x->v, cap * sizeof *v);

		if (!v)
			return err_say(-ENOMEM, "no memory for a batch of samples");
		x->v = v;
		x->cap = cap;
	}
	x->v[x->n++] = strtod(f[6], NULL);
	return 0;
}

static int copy_samples(struct record *r, const struct merge_part *p, uint32_t base)
{
	struct run_of_lines x = {0};
	char path[4096], *line = NULL;
	size_t cap = 0;
	FILE *f;
	int err = 0;

	snprintf(path, sizeof path, "%s/samples.csv", p->dir);
	f = fopen(path, "r");
	if (!f)
		return err_say(-errno, "%s: %s", path, strerror(errno));
	if (getline(&line, &cap, f) > 0) /* its header; load has checked it */
		while (!err && getline(&line, &cap, f) > 0)
			err = take_line(r, &x, line, base);
	if (!err)
		err = flush_lines(r, &x);
	free(line);
	free(x.v);
	fclose(f);
	return err;
}

int merge_write(const char *out, const struct merge_part *parts, size_t n)
{
	json_t *cases = json_array(),
	       *evidence = json_incref(json_object_get(parts[0].run, "evidence")), *c,
	       *sum;
	struct record *r = NULL;
	double duration_s = 0;
	uint32_t base = 0;
	size_t k;
	int err;

	OUR_TRY(record_open(&r, out), err, out);
	OUR_TRY(record_head(r, head_of(out, parts, n)), err, out);
	for (size_t i = 0; i < n; base += parts[i++].batches) {
		duration_s +=
			json_number_value(json_object_get(parts[i].run, "duration_s"));
		if (i) {
			sum = add_evidence("", evidence,
					   json_object_get(parts[i].run, "evidence"));
			json_decref(evidence);
			evidence = sum;
		}
		OUR_TRY(copy_samples(r, &parts[i], base), err, out);
	}
	json_array_foreach(json_object_get(parts[0].run, "cases"), k, c)
		json_array_append_new(cases, merge_case(c, parts, n));
	err = record_write_cases(r, json_incref(cases), evidence, duration_s, true, true,
				 NULL);
	evidence = NULL;
out:
	json_decref(evidence);
	json_decref(cases);
	record_close(r);
	return err;
}
