/* SPDX-License-Identifier: Apache-2.0
 * compare_json.c: a comparison as one JSON object.
 */
#include <math.h>
#include <string.h>

#include "compare.h"
#include "compare_semantics.h"

static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static const char *unit_of(const char *metric)
{
	return !metric_is_rate(metric)		 ? "ns"
	       : !strncmp(metric, "goodput_", 8) ? "bytes/s"
						 : "1/s";
}

static void add_shift(json_t *j, const struct compare *c, const struct compare_row *r)
{
	const struct {
		const char *key;
		double v;
	} cols[] = {
		{"a_ns", r->s.a},	    {"b_ns", r->s.b},
		{"shift_ns", r->s.shift},   {"lo_ns", r->s.lo},
		{"hi_ns", r->s.hi},	    {"shift_percent", 100 * r->s.shift / r->s.a},
		{"margin_ns", r->s.margin}, {"p_holm", r->s.p_holm},
	};

	for (unsigned i = 0; i < sizeof cols / sizeof *cols; i++)
		json_object_set_new(j, cols[i].key, number(cols[i].v));
	json_object_set_new(j, "verdict", json_string(verdict_name(r->s.verdict)));
	json_object_set_new(j, "words", json_string(compare_words(r)));
	json_object_set_new(j, "launches_a", json_integer(r->s.launches_a));
	json_object_set_new(j, "launches_b", json_integer(r->s.launches_b));
	json_object_set_new(j, "across",
			    *r->across ? json_string(r->across) : json_null());
	json_object_set_new(j, "b", json_string(c->side[r->other].dir));
}

static json_t *case_json(const struct compare *c, const struct compare_row *r)
{
	json_t *j = json_pack(
		"{s:s, s:s, s:s, s:I, s:s, s:I, s:I}", "case", r->series_a->case_id,
		"path", case_str(r->a, "path"), "metric", r->series_a->metric,
		"size_bytes", (json_int_t)r->series_a->size_bytes, "unit",
		unit_of(r->series_a->metric), "n_a", (json_int_t)r->series_a->n, "n_b",
		(json_int_t)r->series_b->n);

	json_object_set(j, "nature", json_object_get(r->a, "nature"));
	add_shift(j, c, r);
	json_object_set_new(j, "effect", number(r->s.effect));
	return j;
}

static json_t *hop_json(const struct compare *c, const struct compare_row *r)
{
	static const char *const keys[] = {"hop", "members", "group", "nature", "how"};
	json_t *j = json_object();

	for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++)
		if (json_object_get(r->a, keys[i]))
			json_object_set(j, keys[i], json_object_get(r->a, keys[i]));
	add_shift(j, c, r);
	return j;
}

static json_t *side_json(const struct compare *c, size_t i)
{
	const struct load *l = c->side[i].l;

	return json_pack("{s:s, s:s, s:s, s:b, s:I, s:o}", "dir", c->side[i].dir,
			 "putscope", case_str(l->run, "putscope"), "start",
			 case_str(l->run, "start"), "complete", l->complete, "launches",
			 (json_int_t)l->launches, "differs_from_a",
			 i ? compare_differs(c, i) : json_array());
}

json_t *compare_json(const struct compare *c)
{
	json_t *sides = json_array(), *cases = json_array(), *hops = json_array();

	for (size_t i = 0; i < c->sides; i++)
		json_array_append_new(sides, side_json(c, i));
	for (size_t i = 0; i < c->cases.n; i++)
		json_array_append_new(cases, case_json(c, &c->cases.v[i]));
	for (size_t i = 0; i < c->hops.n; i++)
		json_array_append_new(hops, hop_json(c, &c->hops.v[i]));
	return json_pack("{s:s, s:i, s:o, s:f, s:s, s:s, s:o, s:o, s:O}", "schema",
			 "putscope-compare", "version", 1, "sides", sides,
			 "margin_percent", 100 * c->margin, "correction", "Holm",
			 "effect_size", "Cliff's delta", "cases", cases, "hops", hops,
			 "unlike", c->unlike);
}
