/* SPDX-License-Identifier: Apache-2.0
 * compare_print.c: a comparison as tables.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compare.h"
#include "compare_semantics.h"

#define DIFFERS_SHOWN 12u

static void print_side(const struct compare *c, size_t i)
{
	const struct load *l = c->side[i].l;
	json_t *lines, *line;
	size_t k;

	printf("%c: %s  putscope %s  %s  %u launch%s%s%s\n", (int)('A' + i % 26),
	       c->side[i].dir, case_str(l->run, "putscope"), case_str(l->run, "start"),
	       l->launches, l->launches > 1 ? "es" : "",
	       l->complete ? "" : "  INCOMPLETE: ", case_str(l->run, "why_incomplete"));
	if (!i)
		return;
	lines = compare_differs(c, i);
	json_array_foreach(lines, k, line)
	{
		if (k < DIFFERS_SHOWN)
			printf("   differs from A: %s\n", json_string_value(line));
	}
	if (k > DIFFERS_SHOWN)
		printf("   differs from A in %zu more: see --json\n", k - DIFFERS_SHOWN);
	json_decref(lines);
}

static void print_interval(const struct shift *s)
{
	char text[64];

	if (isfinite(s->lo) && isfinite(s->hi))
		snprintf(text, sizeof text, "[%+.4g, %+.4g]", s->lo, s->hi);
	else
		snprintf(text, sizeof text, "[one batch: unknown]");
	printf(" %+10.4g %-22s", s->shift, text);
}

static void print_words(const struct compare *c, const struct compare_row *r)
{
	printf("  %s", compare_words(r));
	if (r->s.verdict == VERDICT_NOISY && r->s.step > r->s.margin)
		printf(" (a step of the clock, %.3g ns, is more than the margin)",
		       r->s.step);
	else if (r->s.verdict == VERDICT_NOISY && r->s.p < 0.05)
		printf(" (not after correction)");
	if (c->sides > 2)
		printf("  (%c)", (int)('A' + r->other % 26));
	if (*r->across)
		printf("  ACROSS NATURES: %s", r->across);
	putchar('\n');
}

static int width_of_ids(const struct compare *c)
{
	size_t widest = 4;

	for (size_t i = 0; i < c->cases.n; i++)
		if (strlen(c->cases.v[i].series_a->case_id) > widest)
			widest = strlen(c->cases.v[i].series_a->case_id);
	return (int)widest;
}

static void print_cases(const struct compare *c)
{
	int width = width_of_ids(c);

	if (!c->cases.n)
		return;
	printf("\n  %-*s %-22s %10s %10s %10s %-22s %7s %6s  %s\n", width, "case",
	       "metric", "A p50 ns", "B p50 ns", "shift ns", "95 % interval", "shift",
	       "effect", "verdict of B");
	for (size_t i = 0; i < c->cases.n; i++) {
		const struct compare_row *r = &c->cases.v[i];

		printf("  %-*s %-22s %10.4g %10.4g", width, r->series_a->case_id,
		       r->series_a->metric, r->s.a, r->s.b);
		print_interval(&r->s);
		printf(" %+6.1f%% %+6.2f", 100 * r->s.shift / r->s.a, r->s.effect);
		print_words(c, r);
	}
}

static void print_hop_name(const json_t *h)
{
	const json_t *members = json_object_get(h, "members");
	char text[200] = "";
	size_t k;
	json_t *m;

	json_array_foreach(members, k, m)
	{
		size_t at = strlen(text);

		snprintf(text + at, sizeof text - at, "%s%s", k ? "+" : "",
			 json_string_value(m) ? json_string_value(m) : "?");
	}
	printf("  %-40s", *text ? text : case_str(h, "hop"));
}

static void print_hops(const struct compare *c)
{
	unsigned moved = 0;

	if (!c->hops.n)
		return;
	printf("\n  %-40s %10s %10s %10s %-22s  %s\n", "hop", "A ns", "B ns", "shift ns",
	       "95 % interval", "verdict of B");
	for (size_t i = 0; i < c->hops.n; i++) {
		const struct compare_row *r = &c->hops.v[i];

		print_hop_name(r->a);
		printf(" %10.4g %10.4g", r->s.a, r->s.b);
		print_interval(&r->s);
		print_words(c, r);
		moved += r->s.verdict == VERDICT_FASTER || r->s.verdict == VERDICT_SLOWER;
	}
	printf("  hops that moved: %u of %zu; the margin is %.3g ns, that part of all hops together\n",
	       moved, c->hops.n, c->hops.v[0].s.margin);
}

static void print_unlike(const struct compare *c)
{
	size_t k;
	json_t *u;

	if (json_array_size(c->unlike))
		puts("\nUnlike, not compared:");
	json_array_foreach(c->unlike, k, u)
	{
		const char *hop = case_str(u, "hop");

		printf("  %s%s: %s%s%s\n", *hop ? "hop " : "",
		       *hop ? hop : case_str(u, "case"), case_str(u, "why"),
		       c->sides > 2 ? ", with " : "",
		       c->sides > 2 ? case_str(u, "b") : "");
	}
}

static void print_method(const struct compare *c)
{
	bool one = false, rate = false;

	for (size_t i = 0; i < c->cases.n; i++) {
		one |= compare_one_launch(&c->cases.v[i]);
		rate |= c->cases.v[i].s.rate;
	}
	for (size_t i = 0; i < c->hops.n; i++)
		one |= compare_one_launch(&c->hops.v[i]);
	if (one)
		puts("\nOnly ONE LAUNCH on a side (verdicts say 'seems'): how launches of one set-up vary is not known, so a shift may be of the\n"
		     "launch and not of what was changed. Run --repeat 5, merge, and compare the merged sets.");
	if (!c->cases.n && !c->hops.n)
		return;
	printf("\nInterval: shift of the median +- Student's t (Welch) times the standard error of a bootstrap that draws the launches of a\n"
	       "merged set and then their batches, else the batches of the one launch; never narrower than a step of the clock.\n"
	       "same: the whole interval lies within +-%.3g %% of A (--margin). faster, slower: no shift is ruled out at 5 %% after Holm's\n"
	       "correction over all %zu case rows (hops: over all %zu). too noisy: neither can be told. effect: Cliff's delta,\n"
	       "P(a sample of B > one of A) - P(B < A).%s%s\n",
	       100 * c->margin, c->cases.n, c->hops.n,
	       c->components ? ""
			     : " Components of wall time are left out (--components).",
	       rate ? " rate_ and goodput_ rows are per second, and more is faster."
		    : "");
}

void compare_print(const struct compare *c)
{
	for (size_t i = 0; i < c->sides; i++)
		print_side(c, i);
	print_cases(c);
	print_hops(c);
	print_unlike(c);
	print_method(c);
}
