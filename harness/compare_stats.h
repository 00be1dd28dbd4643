/* SPDX-License-Identifier: Apache-2.0
 * compare_stats.h: the shift between two medians, its interval, its p value; verdicts over a whole table.
 *
 * Units are what is drawn again: the launches of a merged set, else the batches of the one launch.  Interval: shift +- t * se,
 * se = the bootstrap's standard error of each side, each times sqrt(k / (k - 1)) for its k units, t = Student's with Welch's
 * degrees of freedom.  So an interval and its p value say the same, for few units and for small p too.
 */
#ifndef PUTSCOPE_COMPARE_STATS_H
#define PUTSCOPE_COMPARE_STATS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum verdict { VERDICT_FASTER, VERDICT_SLOWER, VERDICT_SAME, VERDICT_NOISY };
const char *verdict_name(enum verdict v); /* "faster", "slower", "same", "noisy" */

/* The samples of one side; first[launches]: the first batch of each launch. */
struct shift_side {
	const double *v;
	const uint32_t *batch, *first;
	size_t n;
	unsigned launches;
};
struct shift {
	double a, b, shift, lo, hi; /* lo, hi: +-INFINITY where a side has one unit */
	double p, p_holm; /* of no shift at all; p_holm after shift_verdicts() */
	double effect; /* Cliff's delta: P(b > a) - P(b < a) of single samples; NAN for hops */
	double step;   /* of the coarser clock */
	double margin; /* half width of "same", in the unit of a and b; set by the caller */
	unsigned launches_a, launches_b; /* that hold samples */
	bool rate;			 /* more is faster; set by the caller */
	enum verdict verdict;
};
/* a, b: the medians of the two sides.  step: the interval is never narrower than +- this.  -EINVAL or -ENOMEM. */
int shift_of_medians(const struct shift_side *a, const struct shift_side *b,
		     double median_a, double median_b, double step, uint64_t seed,
		     struct shift *out);
/* Means over launches of one number a launch. */
void shift_of_launches(const double *a, unsigned na, const double *b, unsigned nb,
		       struct shift *out);
/* Two numbers with 95 % intervals of their own (a_lo <= a <= a_hi). */
void shift_of_intervals(const double a[3], const double b[3], struct shift *out);
/* Holm's correction over all n, then the verdicts. */
int shift_verdicts(struct shift *const *s, size_t n);
#endif
