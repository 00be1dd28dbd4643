/* SPDX-License-Identifier: Apache-2.0
 * report_hops.c: the waterfall in the terminal.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "report_hops.h"

#define BAR 40
#define CLOSED 0.05 /* residual that counts as closed */

static const char *str(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

static double num(const json_t *j, const char *key)
{
	const json_t *v = json_object_get(j, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static bool in_branch(const json_t *hop, const char *branch)
{
	return !strcmp(str(hop, "branch"), "both") || !strcmp(str(hop, "branch"), branch);
}

/* Sums that overlap cannot be stacked: only hops that stand alone, and sums that share nothing with one drawn before. */
static bool overlaps(const json_t *hops, size_t at, const char *group)
{
	const json_t *mine = json_object_get(json_array_get(hops, at), "members");
	size_t i, k, m;
	json_t *name, *other;

	for (k = 0; k < at; k++) {
		const json_t *h = json_array_get(hops, k);

		if (strcmp(str(h, "group"), group) ||
		    json_is_null(json_object_get(h, "est_ns")))
			continue;
		json_array_foreach(mine, i, name) json_array_foreach(
			json_object_get(h, "members"), m,
			other) if (json_equal(name, other) &&
				   json_array_size(mine) > 1) return true;
	}
	return false;
}

static double total_of(const json_t *hops, const char *group, const char *branch)
{
	double total = 0;
	size_t k;
	json_t *h;

	json_array_foreach(hops, k,
			   h) if (!strcmp(str(h, "group"), group) &&
				  in_branch(h, branch) && isfinite(num(h, "est_ns")) &&
				  !overlaps(hops, k, group)) total += num(h, "est_ns");
	return total;
}

static void bar(double from, double ns, double total)
{
	int a = (int)lround(BAR * from / total),
	    b = (int)lround(BAR * (from + ns) / total);

	if (a > b) {
		int t = a;

		a = b;
		b = t;
	}
	for (int i = 0; i < BAR; i++)
		putchar(i >= a && i < b ? '#' : i == a ? '|' : ' ');
}

static void print_hop(const json_t *h, double at, double total, bool stacked)
{
	double est = num(h, "est_ns");
	char interval[48] = "";

	if (isfinite(est))
		snprintf(interval, sizeof interval, "[%.0f, %.0f]", num(h, "lo_ns"),
			 num(h, "hi_ns"));
	printf("  %-28s ", str(h, "hop"));
	if (isfinite(est))
		printf("%8.0f %-18s ", est, interval);
	else
		printf("%8s %-18s ", "-", "");
	if (stacked && total > 0)
		bar(at, est, total);
	else
		printf("%*s", BAR, "");
	printf("  %-7s %s\n", str(h, "how"), str(h, "nature"));
}

static void print_branch(const json_t *hops, const char *group, const char *branch,
			 const char *ends)
{
	double total = total_of(hops, group, branch), at = 0;
	size_t k;
	json_t *h;

	printf("%s (sum %.0f ns)\n", ends, total);
	json_array_foreach(hops, k, h)
	{
		bool stacked = isfinite(num(h, "est_ns")) && !overlaps(hops, k, group);

		if (strcmp(str(h, "group"), group) || !in_branch(h, branch))
			continue;
		print_hop(h, at, total, stacked);
		at += stacked ? num(h, "est_ns") : 0;
	}
}

/* Why hops stand together, and what would part them. */
static void print_merged(const json_t *hops, const char *group)
{
	size_t k;
	json_t *h;

	json_array_foreach(hops, k,
			   h) if (!strcmp(str(h, "group"), group) && *str(h, "why"))
		printf("  %s: %s. It would be split by: %s\n", str(h, "hop"),
		       str(h, "why"), str(h, "split_by"));
}

static void print_closure(const json_t *rows, const char *group, bool all)
{
	unsigned n = 0, closed = 0, unpredictable = 0;
	double worst = 0;
	const char *worst_name = "";
	size_t k;
	json_t *r;

	json_array_foreach(rows, k, r)
	{
		double res = num(r, "residual");

		if (strcmp(str(r, "group"), group) || !strcmp(str(r, "branch"), "live"))
			continue;
		unpredictable += !json_is_true(json_object_get(r, "predictable"));
		if (!isfinite(res))
			continue;
		n++;
		closed += fabs(res) <= CLOSED;
		if (fabs(res) > fabs(worst)) {
			worst = res;
			worst_name = str(r, "experiment");
		}
	}
	if (!n)
		return;
	printf("Closure: %u of %u sums within 5 %% of the plain measurement (left-out rows included), worst %+.1f %% (%s)",
	       closed, n, 100 * worst, worst_name);
	if (unpredictable)
		printf("; %u rows cannot be predicted without themselves", unpredictable);
	putchar('\n');
	if (!all)
		return;
	printf("  %-44s %-6s %10s %10s %9s  %s\n", "experiment", "branch", "measured",
	       "predicted", "residual", "");
	json_array_foreach(rows, k, r)
	{
		if (strcmp(str(r, "group"), group))
			continue;
		printf("  %-44s %-6s %10.0f ", str(r, "experiment"), str(r, "branch"),
		       num(r, "measured_ns"));
		if (json_is_true(json_object_get(r, "predictable")))
			printf("%10.0f %+8.1f%%", num(r, "predicted_ns"),
			       100 * num(r, "residual"));
		else
			printf("%10s %9s", "-", "");
		printf("  %s\n", json_is_true(json_object_get(r, "held_out"))
					 ? "left out of the fit"
					 : "");
	}
}

static void print_beside(const json_t *solved, const char *group)
{
	double worst = 0;
	size_t k;
	json_t *r;

	json_array_foreach(json_object_get(solved, "additivity"), k,
			   r) if (!strcmp(str(r, "group"), group))
		printf("Additivity: %s = %+.0f ns, standard error %.0f%s\n",
		       str(r, "test"), num(r, "diff_ns"), num(r, "se_ns"),
		       json_is_true(json_object_get(r, "within_3_se"))
			       ? ""
			       : ": NOT within 3 standard errors");
	json_array_foreach(json_object_get(solved, "probe_effect"), k,
			   r) if (!strcmp(str(r, "group"), group) &&
				  fabs(num(r, "effect")) > fabs(worst)) worst =
		num(r, "effect");
	printf("Probe effect: the stamped whole differs from the plain one by %+.1f %% at most\n",
	       100 * worst);
	json_array_foreach(json_object_get(solved, "slopes"), k,
			   r) if (!strcmp(str(r, "group"), group))
		printf("Over size: %s = %.0f ns [%.0f, %.0f] + %.2f ns/KiB [%.2f, %.2f], %lld sizes\n",
		       str(r, "hop"), num(r, "intercept_ns"), num(r, "intercept_lo_ns"),
		       num(r, "intercept_hi_ns"), num(r, "slope_ns_per_KiB"),
		       num(r, "slope_lo"), num(r, "slope_hi"),
		       (long long)json_integer_value(json_object_get(r, "sizes")));
}

static void print_group(const json_t *solved, const char *group, bool all)
{
	const json_t *hops = json_object_get(solved, "hops");

	printf("Hops of one 8 B put%s%s, ns: estimate [95 %% interval]\n",
	       strcmp(group, "base") ? ", virtual NIC delayed by " : "",
	       strcmp(group, "base") ? group : "");
	print_branch(hops, group, "cqe", " to the CQE");
	print_branch(hops, group, "flag", " to the flag at the peer");
	print_merged(hops, group);
	print_closure(json_object_get(solved, "closure"), group, all);
	print_beside(solved, group);
	putchar('\n');
}

void report_hops_print(const json_t *solved, bool all)
{
	const json_t *hops = json_object_get(solved, "hops");
	const char *last = "";
	size_t k;
	json_t *h;

	json_array_foreach(hops, k, h)
	{
		if (!strcmp(str(h, "group"), last))
			continue;
		last = str(h, "group");
		print_group(solved, last, all);
	}
}
