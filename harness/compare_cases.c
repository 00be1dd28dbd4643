/* SPDX-License-Identifier: Apache-2.0
 * compare_cases.c: which cases are alike, and the shift of each of their metrics.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "compare_semantics.h"
#include "compare_setup.h"
#include "err.h"
#include "report_json.h"

#define SEED 20240229u /* of the bootstrap: the same sets give the same verdicts */

struct compare_row *compare_row(struct compare_rows *rows, size_t other)
{
	if (rows->n == rows->cap) {
		size_t cap = rows->cap ? 2 * rows->cap : 64;
		struct compare_row *v = realloc(rows->v, cap * sizeof *v);

		if (!v) {
			err_say(-ENOMEM, "no memory for more rows");
			return NULL;
		}
		rows->v = v;
		rows->cap = cap;
	}
	memset(&rows->v[rows->n], 0, sizeof *rows->v);
	rows->v[rows->n].other = other;
	return &rows->v[rows->n++];
}

void compare_unlike(struct compare *c, size_t other, const char *what, const char *name,
		    const char *fmt, ...)
{
	char why[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	json_array_append_new(c->unlike, json_pack("{s:s, s:s, s:s}", what, name, "b",
						   c->side[other].dir, "why", why));
}

bool compare_one_launch(const struct compare_row *r)
{
	return r->s.launches_a < 2 || r->s.launches_b < 2;
}

const char *compare_words(const struct compare_row *r)
{
	static const char *const sure[] = {"faster", "slower", "same", "too noisy"},
				 *const seems[] = {"seems faster", "seems slower",
						   "seems same", "too noisy"};

	return (compare_one_launch(r) ? seems : sure)[r->s.verdict];
}

json_t *compare_differs(const struct compare *c, size_t other)
{
	return setup_differ(c->side[0].l->run, c->side[other].l->run);
}

static struct shift_side side_of(const struct load *l, const struct load_series *s)
{
	return (struct shift_side){s->v, s->batch, l->first, s->n, l->launches};
}

static int compare_metric(struct compare *c, size_t other, const json_t *a,
			  const json_t *b, const char *across,
			  const struct load_series *sa, const struct load_series *sb)
{
	const struct load *la = c->side[0].l, *lb = c->side[other].l;
	const struct shift_side x = side_of(la, sa), y = side_of(lb, sb);
	double step = json_number_value(json_object_get(a, "step_ns")),
	       step_b = json_number_value(json_object_get(b, "step_ns"));
	struct compare_row *r = compare_row(&c->cases, other);

	if (!r)
		return -ENOMEM;
	r->a = a;
	r->b = b;
	r->series_a = sa;
	r->series_b = sb;
	snprintf(r->across, sizeof r->across, "%s", across);
	r->s.rate = metric_is_rate(sa->metric);
	r->s.margin = c->margin * (sa->stats.p50 < 0 ? -sa->stats.p50 : sa->stats.p50);
	step = r->s.rate ? 0 : step > step_b ? step : step_b;
	return shift_of_medians(&x, &y, sa->stats.p50, sb->stats.p50, step, SEED, &r->s);
}

/* What is left over, and what reading a clock costs, are no results; components only when asked for. */
static bool metric_is_compared(const struct compare *c, const json_t *row,
			       const char *metric)
{
	return strcmp(metric, "timer") && strcmp(metric, "unaccounted") &&
	       (c->components || !report_is_component(row, metric));
}

static int compare_metrics(struct compare *c, size_t other, const json_t *a,
			   const json_t *b, const char *across)
{
	const struct load *la = c->side[0].l, *lb = c->side[other].l;
	const char *id = case_str(a, "id");

	for (size_t i = 0; i < la->n; i++) {
		const struct load_series *s = &la->v[i], *t;
		int err;

		if (!s->n || strcmp(s->case_id, id) ||
		    !metric_is_compared(c, a, s->metric))
			continue;
		t = load_find(lb, id, s->metric);
		if (!t || !t->n) {
			compare_unlike(c, other, "case", id, "%s was measured only in %s",
				       s->metric, c->side[0].dir);
			continue;
		}
		err = compare_metric(c, other, a, b, across, s, t);
		if (err)
			return err;
	}
	for (size_t i = 0; i < lb->n; i++) {
		const struct load_series *s = load_find(la, id, lb->v[i].metric);

		if (lb->v[i].n && !strcmp(lb->v[i].case_id, id) && (!s || !s->n) &&
		    metric_is_compared(c, a, lb->v[i].metric))
			compare_unlike(c, other, "case", id, "%s was measured only in %s",
				       lb->v[i].metric, c->side[other].dir);
	}
	return 0;
}

/* 0: alike; 1: not, and said so.  across: what differs in nature, let through by --force. */
static int refuse(struct compare *c, size_t other, const json_t *a, const json_t *b,
		  char *across, size_t size)
{
	const char *id = case_str(a, "id"), *dir[] = {c->side[0].dir, c->side[other].dir};
	const json_t *cases[] = {a, b};
	char text[400];

	if (semantic_differ(a, b, SEMANTIC_ROLE, text, sizeof text)) {
		compare_unlike(c, other, "case", id, "%s", text);
		return 1;
	}
	if (semantic_differ(a, b, SEMANTIC_NATURE, across, size) && !c->force) {
		compare_unlike(c, other, "case", id,
			       "%s: compared across natures only with --force", across);
		return 1;
	}
	for (int i = 0; i < 2; i++) {
		if (!strcmp(case_str(cases[i], "status"), "ok"))
			continue;
		compare_unlike(c, other, "case", id, "%s in %s: %s",
			       case_str(cases[i], "status"), dir[i],
			       case_str(cases[i], "reason"));
		return 1;
	}
	return 0;
}

int compare_cases(struct compare *c, size_t other)
{
	const json_t *run_a = c->side[0].l->run, *run_b = c->side[other].l->run;
	char across[sizeof c->cases.v->across];
	size_t k;
	json_t *a, *b;

	json_array_foreach(json_object_get(run_a, "cases"), k, a)
	{
		const char *id = case_str(a, "id");
		int err;

		b = case_find(run_b, id);
		if (!b)
			compare_unlike(c, other, "case", id, "only in %s",
				       c->side[0].dir);
		if (!b || refuse(c, other, a, b, across, sizeof across))
			continue;
		err = compare_metrics(c, other, a, b, across);
		if (err)
			return err;
	}
	json_array_foreach(json_object_get(run_b, "cases"), k, b)
	{
		if (!case_find(run_a, case_str(b, "id")))
			compare_unlike(c, other, "case", case_str(b, "id"), "only in %s",
				       c->side[other].dir);
	}
	return 0;
}
