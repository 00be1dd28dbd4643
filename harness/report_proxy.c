/* SPDX-License-Identifier: Apache-2.0
 * report_proxy.c: the proxy's hops, rates, enqueue and hand-off as one JSON object, made from the samples.
 */
#include <math.h>
#include <string.h>

#include "path/proxy_hops.h"
#include "report_proxy.h"

#define MHZ_OF_NS 1e3 /* divided by a cycle in ns */

static const char *str(const json_t *c, const char *key)
{
	const char *s = json_string_value(json_object_get(c, key));

	return s ? s : "";
}

static json_int_t count(const json_t *c, const char *key)
{
	return json_integer_value(json_object_get(c, key));
}

static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static bool is_hop(const char *metric)
{
	for (unsigned h = 0; h < PROXY_HOPS; h++)
		if (!strcmp(metric, proxy_hop_names[h]))
			return true;
	return false;
}

bool report_proxy_own(const json_t *c, const char *metric)
{
	static const char *const others[] = {"clock_bound", "timer_worker", "core_cycle",
					     "rate_msgs_per_s"};

	if (strcmp(str(c, "path"), "proxy"))
		return false;
	for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
		if (!strcmp(metric, others[i]))
			return true;
	return is_hop(metric);
}

/* The series of a case; NULL when it has no samples beside warm-up. */
static const struct load_series *series(const struct load *l, const char *id,
					const char *metric)
{
	const struct load_series *s = load_find(l, id, metric);

	return s && s->n ? s : NULL;
}

static double median(const struct load *l, const char *id, const char *metric)
{
	const struct load_series *s = series(l, id, metric);

	return s ? s->stats.p50 : NAN;
}

static void copy(json_t *to, const json_t *from, const char *key)
{
	json_t *v = json_object_get(from, key);

	json_object_set(to, key, v ? v : json_null());
}

/* A row about a case, with what tells it from the others. */
static json_t *row_of(const json_t *c)
{
	static const char *const keys[] = {"nature",	 "protocol",   "ordering",
					   "inline",	 "size_bytes", "state",
					   "workers",	 "rings",      "batch",
					   "completion", "window",     "oversubscribed"};
	json_t *j = json_object();

	json_object_set(j, "case", json_object_get(c, "id"));
	for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++)
		copy(j, c, keys[i]);
	return j;
}

static void set_interval(json_t *j, const struct load_series *s, const char *est,
			 double widen)
{
	json_object_set_new(j, est, number(s->stats.p50));
	json_object_set_new(j, "lo_ns", number(s->stats.p50_lo - widen));
	json_object_set_new(j, "hi_ns", number(s->stats.p50_hi + widen));
	json_object_set_new(j, "p99_ns", number(s->stats.p99));
	json_object_set_new(j, "n", json_integer((json_int_t)s->n));
}

/* ---- hops ---- */
static const char *assumes(unsigned hop, double bound)
{
	switch (hop) {
	case PROXY_RING_FLIGHT:
	case PROXY_GPU_SEES:
		return bound > 0
			       ? "the SM's and the host's clock are apart by no more than bound_ns"
			       : "both sides read one counter";
	case PROXY_NIC:
		return "the CQE was there when the call that found it began: up to one poll too long";
	case PROXY_CQ_POLL:
		return "the call polls; where spinners exceed CPUs a virtual NIC works inside it";
	}
	return "one clock";
}

static void add_hops(const struct load *l, const json_t *c, json_t *hops, json_t *closure)
{
	const char *id = str(c, "id");
	const double bound = median(l, id, "clock_bound");
	double sum = 0, whole = median(l, id, "put_completion");
	json_t *j;

	for (unsigned h = 0; h < PROXY_HOPS; h++) {
		const struct load_series *s = series(l, id, proxy_hop_names[h]);
		const bool both = h == PROXY_RING_FLIGHT || h == PROXY_GPU_SEES;

		if (!s)
			return;
		j = row_of(c);
		json_object_set_new(j, "hop", json_string(proxy_hop_names[h]));
		json_object_set_new(j, "from_to", json_string(proxy_hop_words[h]));
		set_interval(j, s, "est_ns", both ? bound : 0);
		json_object_set_new(j, "how",
				    json_string(both && bound > 0 ? "bound" : "stamped"));
		json_object_set_new(j, "bound_ns", number(both ? bound : 0));
		json_object_set_new(j, "assumes", json_string(assumes(h, bound)));
		json_array_append_new(hops, j);
		sum += s->stats.p50;
	}
	j = row_of(c);
	json_object_set_new(j, "sum_ns", number(sum));
	json_object_set_new(j, "measured_ns", number(whole));
	json_object_set_new(j, "stamped_ns",
			    number(median(l, id, "put_completion_stamped")));
	json_object_set_new(j, "p99_ns",
			    number(series(l, id, "put_completion")
					   ? series(l, id, "put_completion")->stats.p99
					   : NAN));
	json_object_set_new(j, "residual", number(sum / whole - 1));
	json_array_append_new(closure, j);
}

/* ---- the CPU's state ---- */
static void add_state(const struct load *l, const json_t *c, json_t *states)
{
	const struct load_series *s = series(l, str(c, "id"), str(c, "main_metric")),
				 *cycle = series(l, str(c, "id"), "core_cycle");
	json_t *j;

	if (!*str(c, "state") || !s)
		return;
	j = row_of(c);
	copy(j, c, "governor");
	copy(j, c, "cpu_mhz");
	json_object_set(j, "metric", json_object_get(c, "main_metric"));
	set_interval(j, s, "est_ns", 0);
	json_object_set_new(j, "core_mhz",
			    number(cycle ? MHZ_OF_NS / cycle->stats.p50 : NAN));
	json_object_set(j, "note", json_object_get(c, "reason"));
	json_array_append_new(states, j);
}

/* ---- rates ---- */
/* The same point but for one key, which is 1 there. */
static const json_t *like(const json_t *cases, const json_t *c, const char *but)
{
	static const char *const keys[] = {"main_metric", "protocol", "completion",
					   "workers",	  "rings",    "batch",
					   "window",	  "bench"};
	size_t k;
	json_t *d;

	json_array_foreach(cases, k, d)
	{
		bool same = count(d, but) == 1;

		for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++)
			same &= !strcmp(keys[i], but) ||
				json_equal(json_object_get(c, keys[i]),
					   json_object_get(d, keys[i]));
		if (same)
			return d;
	}
	return NULL;
}

/* How much faster than that point, with limits that hold at both ends of both intervals. */
static json_t *times(const struct load *l, const struct load_series *s,
		     const json_t *base)
{
	const struct load_series *b = base ? series(l, str(base, "id"), s->metric) : NULL;

	if (!b || b == s)
		return json_null();
	return json_pack("{s:O, s:o, s:o, s:o}", "case", json_object_get(base, "id"),
			 "ratio", number(s->stats.p50 / b->stats.p50), "lo",
			 number(s->stats.p50_lo / b->stats.p50_hi), "hi",
			 number(s->stats.p50_hi / b->stats.p50_lo));
}

static void add_rate(const struct load *l, const json_t *c, json_t *rates)
{
	const json_t *cases = json_object_get(l->run, "cases");
	const struct load_series *s = series(l, str(c, "id"), "rate_msgs_per_s");
	json_t *j;

	if (!s)
		return;
	j = row_of(c);
	json_object_set_new(j, "rate_msgs_per_s", number(s->stats.p50));
	json_object_set_new(j, "lo_per_s", number(s->stats.p50_lo));
	json_object_set_new(j, "hi_per_s", number(s->stats.p50_hi));
	json_object_set_new(j, "n", json_integer((json_int_t)s->n));
	json_object_set_new(j, "over_batch_1", times(l, s, like(cases, c, "batch")));
	json_object_set_new(j, "over_worker_1", times(l, s, like(cases, c, "workers")));
	json_object_set(j, "note", json_object_get(c, "reason"));
	json_array_append_new(rates, j);
}

/* ---- enqueue and hand-off ---- */
static void add_enqueue(const struct load *l, const json_t *c, json_t *enqueue)
{
	const struct load_series *s = series(l, str(c, "id"), "issue");
	json_t *j;

	if (!s)
		return;
	j = row_of(c);
	set_interval(j, s, "est_ns", 0);
	json_object_set(j, "step_ns", json_object_get(c, "step_ns"));
	json_array_append_new(enqueue, j);
}

static void add_handoff(const struct load *l, const json_t *c, json_t *handoff)
{
	const struct load_series *s = series(l, str(c, "id"), "handoff");
	const double read = median(l, "load/host", "rtt"),
		     write = median(l, "posted-write/lines", "gap"),
		     flag = median(l, "gpu-cpu-flag/host", "rtt");
	json_t *j;

	if (!s)
		return;
	j = row_of(c);
	set_interval(j, s, "est_ns", 0);
	json_object_set_new(j, "read_ns", number(read));
	json_object_set_new(j, "write_ns", number(write));
	json_object_set_new(j, "floor_ns", number(read + write));
	json_object_set_new(j, "over_floor", number(s->stats.p50 / (read + write)));
	json_object_set_new(j, "flag_rtt_ns", number(flag));
	json_object_set_new(j, "over_flag_rtt", number(s->stats.p50 / flag));
	json_array_append_new(handoff, j);
}

json_t *report_proxy(const struct load *l)
{
	json_t *hops = json_array(), *closure = json_array(), *states = json_array(),
	       *rates = json_array(), *enqueue = json_array(), *handoff = json_array(),
	       *c;
	size_t k;

	json_array_foreach(json_object_get(l->run, "cases"), k, c)
	{
		if (strcmp(str(c, "path"), "proxy"))
			continue;
		add_hops(l, c, hops, closure);
		add_state(l, c, states);
		add_rate(l, c, rates);
		add_enqueue(l, c, enqueue);
		add_handoff(l, c, handoff);
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "hops", hops, "closure",
			 closure, "states", states, "rates", rates, "enqueue", enqueue,
			 "handoff", handoff);
}
