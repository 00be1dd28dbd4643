/* SPDX-License-Identifier: Apache-2.0
 * report_json.c: cases, components and evidence of a result folder as one JSON object.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report_json.h"
#include "report_proxy.h"
#include "solve.h"

const char *const component_names[COMPONENT_COUNT] = {
	"wall", "kernel", "comm", "exposed_comm", "cpu_wait", "unaccounted"};

static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static void copy(json_t *to, const json_t *from, const char *key)
{
	json_t *v = json_object_get(from, key);

	json_object_set(to, key, v ? v : json_null());
}

bool report_is_component(const json_t *c, const char *metric)
{
	const char *own = json_string_value(json_object_get(c, "main_metric"));

	if (own && !strcmp(own, metric))
		return false;
	for (unsigned i = 0; i < COMPONENT_COUNT; i++)
		if (!strcmp(metric, component_names[i]))
			return true;
	return false;
}

static json_t *row(const json_t *c, const char *metric)
{
	static const char *const keys[] = {"path",	 "nature",  "size_bytes",
					   "ordering",	 "inline",  "queue",
					   "cq",	 "dbrec",   "data",
					   "opcode",	 "group",   "doorbell",
					   "completion", "method",  "endpoints",
					   "sm",	 "qps",	    "batch",
					   "signalled",	 "litmus",  "oversubscribed",
					   "protocol",	 "state",   "workers",
					   "rings",	 "window",  "governor",
					   "cpu_mhz",	 "rerings", "payload_errors",
					   "violations", "status",  "reason"};
	json_t *j = json_object();

	json_object_set(j, "case", json_object_get(c, "id"));
	json_object_set_new(j, "metric", json_string(metric));
	for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++)
		copy(j, c, keys[i]);
	return j;
}

static void add_stats(json_t *j, const struct load_series *s)
{
	const struct {
		const char *key;
		double v;
	} cols[] = {
		{"p50_ns", s->stats.p50},	{"p50_lo_ns", s->stats.p50_lo},
		{"p50_hi_ns", s->stats.p50_hi}, {"p90_ns", s->stats.p90},
		{"p99_ns", s->stats.p99},	{"p99_9_ns", s->stats.p99_9},
		{"max_ns", s->stats.max},
	};

	json_object_set_new(j, "n", json_integer((json_int_t)s->n));
	for (unsigned i = 0; i < sizeof cols / sizeof *cols; i++)
		json_object_set_new(j, cols[i].key, number(s->stats.n ? cols[i].v : NAN));
}

static void add_case(const struct load *l, const json_t *c, json_t *cases,
		     json_t *components)
{
	const char *id = json_string_value(json_object_get(c, "id"));
	const struct load_series *wall = load_find(l, id, "wall");
	bool any = false;

	for (size_t i = 0; i < l->n; i++) {
		const struct load_series *s = &l->v[i];
		json_t *j;

		if (strcmp(s->case_id, id) || !s->n || report_is_component(c, s->metric))
			continue;
		j = row(c, s->metric);
		add_stats(j, s);
		json_array_append_new(cases, j);
		any = true;
	}
	if (!any) {
		const struct load_series none = {0};
		const char *metric = json_string_value(json_object_get(c, "main_metric"));
		json_t *j = row(c, metric ? metric : "");

		add_stats(j, &none);
		json_array_append_new(cases, j);
	}
	if (wall && wall->n && report_is_component(c, wall->metric)) {
		json_t *j = json_object();
		double comm = NAN, exposed = NAN;

		json_object_set(j, "case", json_object_get(c, "id"));
		copy(j, c, "path");
		copy(j, c, "nature");
		json_object_set_new(j, "size_bytes",
				    json_integer((json_int_t)wall->size_bytes));
		for (unsigned i = 0; i < COMPONENT_COUNT; i++) {
			const struct load_series *s =
				load_find(l, id, component_names[i]);
			double v = s && s->n ? s->stats.p50 : NAN;
			char key[64];

			snprintf(key, sizeof key, "%s_ns", component_names[i]);
			json_object_set_new(j, key, number(v));
			comm = !strcmp(component_names[i], "comm") ? v : comm;
			exposed =
				!strcmp(component_names[i], "exposed_comm") ? v : exposed;
		}
		json_object_set_new(j, "overlap",
				    number(comm > 0 ? 1 - exposed / comm : NAN));
		json_array_append_new(components, j);
	}
}

json_t *report_json(const struct load *l)
{
	json_t *run = json_copy(l->run), *cases = json_array(),
	       *components = json_array(), *out, *solved, *c;
	static const char *const solved_keys[] = {"hops", "closure", "additivity",
						  "slopes", "probe_effect"};
	size_t k;

	json_array_foreach(json_object_get(l->run, "cases"), k, c)
		add_case(l, c, cases, components);
	json_object_del(run, "cases");
	json_object_del(run, "evidence");
	for (unsigned i = 0; i < sizeof solved_keys / sizeof *solved_keys; i++)
		json_object_del(run, solved_keys[i]); /* they stand beside */
	out = json_pack("{s:s, s:o, s:o, s:o, s:o, s:O?}", "schema", "putscope-report",
			"run", run, "cases", cases, "components", components, "proxy",
			report_proxy(l), "evidence", json_object_get(l->run, "evidence"));
	solved = solve_hops(l);
	if (solved)
		json_object_update(out, solved);
	json_decref(solved);
	return out;
}

const char *nic_words(const json_t *rank)
{
	static char words[96];
	const json_t *nic = json_array_get(json_object_get(rank, "nics"), 0);
	const char *name = json_string_value(json_object_get(nic, "device"));

	if (!name)
		return "none";
	snprintf(words, sizeof words, "%.60s%s", name,
		 json_is_true(json_object_get(nic, "virtual")) ? " (virtual)" : "");
	return words;
}
