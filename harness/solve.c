/* SPDX-License-Identifier: Apache-2.0
 * solve.c: hops, closure, tests of additivity, slopes over size.
 *
 * Least squares on medians; intervals by resampling batches, the same rounds for every experiment; nothing is clipped at zero.  A
 * hop stands alone where every solution of the equations agrees on it, else in the smallest sums that they agree on.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "solve.h"
#include "solve_group.h"

#define SETS_MAX 16
#define WORDS 600

static json_t *number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

/* ---- words ---- */
static void append(char *out, size_t n, const char *sep, const char *word)
{
	size_t at = strlen(out);

	snprintf(out + at, n - at, "%s%s", at ? sep : "", word);
}

static json_t *member_names(unsigned set, char *joined, size_t n)
{
	json_t *names = json_array();

	*joined = 0;
	for (unsigned h = 0; h < NIC_HOPS; h++) {
		if (!(set >> h & 1))
			continue;
		json_array_append_new(names, json_string(nic_hop_names[h]));
		append(joined, n, "+", nic_hop_names[h]);
	}
	return names;
}

/* What may be moved from hop to hop without any experiment noticing. */
static void null_words(const struct linear *l, unsigned set, char *out, size_t n)
{
	double null[NIC_HOPS][NIC_HOPS];
	unsigned count = linear_null(l, null);

	*out = 0;
	for (unsigned k = 0; k < count; k++) {
		char more[200] = "", less[200] = "", text[420];
		bool touches = false;

		for (unsigned h = 0; h < NIC_HOPS; h++) {
			touches |= (set >> h & 1) && null[k][h] != 0;
			if (null[k][h] != 0)
				append(null[k][h] > 0 ? more : less, sizeof more, " and ",
				       nic_hop_names[h]);
		}
		if (!touches)
			continue;
		if (*less)
			snprintf(
				text, sizeof text,
				"what is taken from %s and given to %s changes no experiment",
				less, more);
		else
			snprintf(text, sizeof text, "no experiment passes %s", more);
		append(out, n, "; ", text);
	}
}

static bool splits(const struct solve_group *g, const struct hop_exp *x, unsigned hop)
{
	struct linear l = {.n = g->n + 1};
	const bool joint = g->joint && !strcmp(x->endpoints, "loopback");
	double c[NIC_HOPS] = {0};

	if (l.n > EQUATIONS_MAX)
		return false;
	for (size_t i = 0; i < g->n; i++)
		hop_row(&g->eq[i].x, joint, l.row[i]);
	hop_row(x, joint, l.row[g->n]);
	c[hop] = 1;
	return !linear_solve(&l) && linear_estimable(&l, c);
}

/* The first experiment of the list that would make one of the members stand alone. */
static void split_words(const struct solve_group *g, unsigned set, char *out, size_t n)
{
	*out = 0;
	for (size_t i = 0; i < hop_exp_count; i++)
		for (unsigned h = 0; h < NIC_HOPS; h++)
			if ((set >> h & 1) && splits(g, &hop_exps[i], h)) {
				hop_exp_name(&hop_exps[i], out, n);
				return;
			}
	snprintf(out, n, "none of putscope's experiments");
}

static void assume_words(const struct solve_group *g, unsigned set, char *out, size_t n)
{
	const char *last = "";

	*out = 0;
	for (unsigned h = 0; h < NIC_HOPS; h++) {
		const char *a = hop_assumes((enum nic_hop)h, g->joint);

		if (!(set >> h & 1) || !strcmp(a, last))
			continue;
		append(out, n, "; ", a);
		last = a;
	}
}

/* ---- hops ---- */
static const char *branch_of_set(unsigned set)
{
	const unsigned flag = 1u << NIC_REMOTE_WRITE,
		       cqe = 1u << NIC_WIRE_BACK | 1u << NIC_CQE_WRITE;

	return set & flag && !(set & cqe)   ? "flag"
	       : set & cqe && !(set & flag) ? "cqe"
					    : "both";
}

static json_t *hop_json(const struct solve_group *g, const char *hop, json_t *members,
			const char *branch, double est, double lo, double hi,
			const char *how, const char *assumes)
{
	return json_pack("{s:s, s:o, s:s, s:s, s:o, s:o, s:o, s:s, s:s, s:s}", "hop", hop,
			 "members", members, "group", g->name, "branch", branch, "est_ns",
			 number(est), "lo_ns", number(lo), "hi_ns", number(hi), "nature",
			 g->nature, "how", how, "assumes", assumes);
}

static void add_sum(const struct solve_group *g, unsigned set, json_t *hops)
{
	char joined[160], assumes[WORDS], why[WORDS], split[80];
	json_t *members = member_names(set, joined, sizeof joined), *j;
	double c[NIC_HOPS], w[EQUATIONS_MAX] = {0}, lo, hi;

	for (unsigned h = 0; h < NIC_HOPS; h++)
		c[h] = set >> h & 1;
	linear_weights(&g->l, c, w);
	solve_interval(g, w, &lo, &hi);
	assume_words(g, set, assumes, sizeof assumes);
	j = hop_json(g, joined, members, branch_of_set(set), solve_sum(g, w), lo, hi,
		     "solved", assumes);
	if (set & (set - 1)) {
		null_words(&g->l, set, why, sizeof why);
		split_words(g, set, split, sizeof split);
		json_object_set_new(j, "why", json_string(why));
		json_object_set_new(j, "split_by", json_string(split));
	}
	json_array_append_new(hops, j);
}

/* A hop that no experiment passes, or that is in no sum. */
static void add_unknown(const struct solve_group *g, unsigned h, json_t *hops)
{
	char joined[160], why[WORDS], split[80];
	json_t *j = hop_json(g, nic_hop_names[h],
			     member_names(1u << h, joined, sizeof joined),
			     branch_of_set(1u << h), NAN, NAN, NAN, "solved", "");

	null_words(&g->l, 1u << h, why, sizeof why);
	split_words(g, 1u << h, split, sizeof split);
	json_object_set_new(j, "why", json_string(why));
	json_object_set_new(j, "split_by", json_string(split));
	json_array_append_new(hops, j);
}

static void solved_hops(const struct solve_group *g, json_t *hops)
{
	unsigned said[SETS_MAX * NIC_HOPS], n = 0;

	for (unsigned h = 0; h < NIC_HOPS; h++) {
		unsigned sets[SETS_MAX], k = linear_minimal(&g->l, h, sets, SETS_MAX);

		if (!k)
			add_unknown(g, h, hops);
		for (unsigned i = 0; i < k; i++) {
			bool old = false;

			for (unsigned m = 0; m < n; m++)
				old |= said[m] == sets[i];
			if (old)
				continue;
			said[n++] = sets[i];
			add_sum(g, sets[i], hops);
		}
	}
}

/* The experiment whose own steps and poll the waterfall shows: a plain pointer write, across where there is such a one. */
static const struct solve_eq *reference(const struct solve_group *g, const char *end)
{
	const struct solve_eq *found = NULL;

	for (size_t i = 0; i < g->n; i++) {
		const struct hop_exp *x = &g->eq[i].x;

		if (!strcmp(x->opcode, "write") && !strcmp(x->payload, "pointer") &&
		    !strcmp(x->doorbell, "db") && !strcmp(x->end, end) &&
		    (!found || !strcmp(x->endpoints, "across")))
			found = &g->eq[i];
	}
	return found;
}

static void stamped_hop(const struct solve_group *g, const struct load *l,
			const char *hop, const char *branch, const char *end,
			json_t *hops)
{
	const struct solve_eq *q = reference(g, end);
	const struct load_series *s =
		q ? load_find(l, json_string_value(json_object_get(q->c, "id")), hop)
		  : NULL;

	if (s && s->n)
		json_array_append_new(hops,
				      hop_json(g, hop, json_pack("[s]", hop), branch,
					       s->stats.p50, s->stats.p50_lo,
					       s->stats.p50_hi, "stamped", ""));
}

static void poll_hop(const struct solve_group *g, const char *end, json_t *hops)
{
	const struct solve_eq *q = reference(g, end);

	if (q)
		json_array_append_new(
			hops,
			hop_json(
				g, "poll", json_pack("[s]", "poll"), end, q->poll,
				q->poll / 2, 1.5 * q->poll, "bound",
				"half a period until the look, half a period for its way back"));
}

/* ---- closure ---- */
static json_t *closure_row(const struct solve_group *g, const struct solve_eq *q,
			   double nic, bool held_out, bool predictable)
{
	double predicted = predictable ? nic + q->own + q->poll : NAN;

	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:b, s:b}", "experiment",
			 q->name, "group", g->name, "branch", q->branch, "measured_ns",
			 number(q->measured), "predicted_ns", number(predicted),
			 "residual", number((predicted - q->measured) / q->measured),
			 "held_out", held_out, "predictable", predictable);
}

static int closure(const struct solve_group *g, json_t *rows)
{
	for (size_t i = 0; i < g->n; i++) {
		struct linear without;
		double w[EQUATIONS_MAX] = {0}, u[EQUATIONS_MAX] = {0};
		bool can;
		int err;

		linear_weights(&g->l, g->l.row[i], w);
		json_array_append_new(
			rows, closure_row(g, &g->eq[i], solve_sum(g, w), false, true));
		linear_without(&g->l, i, &without);
		err = linear_solve(&without);
		if (err)
			return err;
		can = linear_estimable(&without, g->l.row[i]);
		linear_weights(&without, g->l.row[i], u);
		memset(w, 0, sizeof w);
		for (size_t k = 0; k < without.n; k++)
			w[k < i ? k : k + 1] = u[k];
		json_array_append_new(
			rows, closure_row(g, &g->eq[i], solve_sum(g, w), true, can));
	}
	return 0;
}

/* ---- additivity ---- */
static int find_eq(const struct solve_group *g, struct hop_exp x)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct hop_exp *y = &g->eq[i].x;

		if (!strcmp(x.opcode, y->opcode) && !strcmp(x.endpoints, y->endpoints) &&
		    !strcmp(x.payload, y->payload) && !strcmp(x.doorbell, y->doorbell) &&
		    !strcmp(x.end, y->end))
			return (int)i;
	}
	return -1;
}

/* (x[0] - x[1]) - (x[2] - x[3]) is nothing where hops add up. */
static void additivity(const struct solve_group *g, json_t *rows)
{
	static const struct {
		const char *test;
		struct hop_exp x[4];
	} tests[] = {
#define X(op, at, payload, db, end) {op, at, payload, db, end}
		{"(pointer - inline) loopback - across, to CQE",
		 {X("write", "loopback", "pointer", "db", "cqe"),
		  X("write", "loopback", "inline", "db", "cqe"),
		  X("write", "across", "pointer", "db", "cqe"),
		  X("write", "across", "inline", "db", "cqe")}},
		{"(pointer - inline) loopback - across, to flag",
		 {X("write", "loopback", "pointer", "db", "flag"),
		  X("write", "loopback", "inline", "db", "flag"),
		  X("write", "across", "pointer", "db", "flag"),
		  X("write", "across", "inline", "db", "flag")}},
		{"(doorbell - BlueFlame) NOP - WRITE",
		 {X("nop", "loopback", "", "db", "cqe"),
		  X("nop", "loopback", "", "bf", "cqe"),
		  X("write", "loopback", "inline", "db", "cqe"),
		  X("write", "loopback", "inline", "bf", "cqe")}},
		{"(doorbell - BlueFlame) inline - pointer, across",
		 {X("write", "across", "inline", "db", "cqe"),
		  X("write", "across", "inline", "bf", "cqe"),
		  X("write", "across", "pointer", "db", "cqe"),
		  X("write", "across", "pointer", "bf", "cqe")}},
#undef X
	};

	for (size_t t = 0; t < sizeof tests / sizeof *tests; t++) {
		static const double sign[4] = {1, -1, -1, 1};
		double w[EQUATIONS_MAX] = {0}, diff, se;
		bool all = true;

		for (unsigned k = 0; k < 4; k++) {
			int i = find_eq(g, tests[t].x[k]);

			all &= i >= 0;
			if (i >= 0)
				w[i] = sign[k];
		}
		if (!all)
			continue;
		diff = solve_sum(g, w);
		se = solve_error(g, w);
		json_array_append_new(rows, json_pack("{s:s, s:s, s:o, s:o, s:b}", "test",
						      tests[t].test, "group", g->name,
						      "diff_ns", number(diff), "se_ns",
						      number(se), "within_3_se",
						      fabs(diff) <= 3 * se));
	}
}

/* ---- over size ---- */
/* Least-squares line through (size, sum of weights): weights of slope and intercept over all equations. */
static void line(const struct solve_group *g, const size_t *plus, const int *minus,
		 size_t n, double *slope, double *intercept)
{
	double mean = 0, ss = 0;

	for (size_t i = 0; i < n; i++)
		mean += (double)g->eq[plus[i]].bytes / (double)n;
	for (size_t i = 0; i < n; i++)
		ss += pow((double)g->eq[plus[i]].bytes - mean, 2);
	for (size_t i = 0; i < n; i++) {
		double s = ((double)g->eq[plus[i]].bytes - mean) / ss,
		       c = 1 / (double)n - s * mean;

		slope[plus[i]] += s;
		intercept[plus[i]] += c;
		slope[minus[i]] -= s;
		intercept[minus[i]] -= c;
	}
}

static void add_slope(const struct solve_group *g, const char *hop, const size_t *plus,
		      const int *minus, size_t n, json_t *rows)
{
	double slope[EQUATIONS_MAX] = {0}, intercept[EQUATIONS_MAX] = {0}, slo, shi, ilo,
	       ihi;

	line(g, plus, minus, n, slope, intercept);
	for (size_t i = 0; i < g->all; i++)
		slope[i] *= 1024;
	solve_interval(g, slope, &slo, &shi);
	solve_interval(g, intercept, &ilo, &ihi);
	json_array_append_new(rows,
			      json_pack("{s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o}",
					"hop", hop, "group", g->name, "sizes", (int)n,
					"slope_ns_per_KiB", number(solve_sum(g, slope)),
					"slope_lo", number(slo), "slope_hi", number(shi),
					"intercept_ns", number(solve_sum(g, intercept)),
					"intercept_lo_ns", number(ilo), "intercept_hi_ns",
					number(ihi)));
}

/* payload_fetch: loopback pointer of each size less loopback inline; wire: across less loopback, size by size. */
static void slopes(const struct solve_group *g, json_t *rows)
{
	int inl =
		find_eq(g, (struct hop_exp){"write", "loopback", "inline", "db", "cqe"});
	size_t loop[EQUATIONS_MAX], across[EQUATIONS_MAX], n = 0, m = 0;
	int less_inline[EQUATIONS_MAX], less_loop[EQUATIONS_MAX];

	for (size_t i = 0; i < g->all; i++) {
		const struct hop_exp *x = &g->eq[i].x;

		if (strcmp(x->opcode, "write") || strcmp(x->payload, "pointer") ||
		    strcmp(x->doorbell, "db") || strcmp(x->end, "cqe"))
			continue;
		if (!strcmp(x->endpoints, "loopback")) {
			less_inline[n] = inl;
			loop[n++] = i;
			continue;
		}
		for (size_t k = 0; k < g->all; k++) {
			const struct hop_exp *y = &g->eq[k].x;

			if (g->eq[k].bytes == g->eq[i].bytes &&
			    !strcmp(y->endpoints, "loopback") &&
			    !strcmp(y->opcode, "write") &&
			    !strcmp(y->payload, "pointer") &&
			    !strcmp(y->doorbell, "db") && !strcmp(y->end, "cqe")) {
				less_loop[m] = (int)k;
				across[m++] = i;
			}
		}
	}
	if (n > 2 && inl >= 0)
		add_slope(g, "payload_fetch", loop, less_inline, n, rows);
	if (m > 2)
		add_slope(g, "wire_out+wire_back", across, less_loop, m, rows);
}

/* ---- stamped against plain ---- */
static void probe_effect(const struct solve_group *g, const struct load *l, json_t *rows)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct solve_eq *q = &g->eq[i];
		const char *id = json_string_value(json_object_get(q->c, "id"));
		const char *metric = !strcmp(q->branch, "flag")
					     ? "flag_seen_stamped"
					     : "put_completion_stamped";
		const struct load_series *s = load_find(l, id, metric);

		if (!s || !s->n)
			continue;
		json_array_append_new(
			rows,
			json_pack("{s:s, s:s, s:o, s:o, s:o}", "experiment", q->name,
				  "group", g->name, "plain_ns", number(q->measured),
				  "stamped_ns", number(s->stats.p50), "effect",
				  number((s->stats.p50 - q->measured) / q->measured)));
	}
}

static int one_group(const struct load *l, const char *name, json_t *out)
{
	static struct solve_group g; /* large */
	json_t *hops = json_object_get(out, "hops");
	int err = solve_group_open(&g, l, name);

	if (err || !g.n)
		return err;
	stamped_hop(&g, l, "wqe_build", "both", "cqe", hops);
	stamped_hop(&g, l, "order", "both", "cqe", hops);
	stamped_hop(&g, l, "doorbell_store", "both", "cqe", hops);
	solved_hops(&g, hops);
	poll_hop(&g, "flag", hops);
	poll_hop(&g, "cqe", hops);
	stamped_hop(&g, l, "completion", "cqe", "cqe", hops);
	err = closure(&g, json_object_get(out, "closure"));
	additivity(&g, json_object_get(out, "additivity"));
	slopes(&g, json_object_get(out, "slopes"));
	probe_effect(&g, l, json_object_get(out, "probe_effect"));
	solve_group_close(&g);
	return err;
}

json_t *solve_hops(const struct load *l)
{
	json_t *out = json_pack("{s:[], s:[], s:[], s:[], s:[]}", "hops", "closure",
				"additivity", "slopes", "probe_effect"),
	       *done = json_object(), *c;
	size_t k;
	int err = 0;

	json_array_foreach(json_object_get(l->run, "cases"), k, c)
	{
		const char *group = json_string_value(json_object_get(c, "group"));

		if (err || !group || json_object_get(done, group))
			continue;
		json_object_set_new(done, group, json_true());
		err = one_group(l, group, out);
	}
	json_decref(done);
	/* Of several launches the hops know how launches vary: putscope merge. */
	if (json_object_get(l->run, "launches") && json_object_get(l->run, "hops"))
		json_object_set(out, "hops", json_object_get(l->run, "hops"));
	if (!err)
		return out;
	json_decref(out);
	return NULL;
}
