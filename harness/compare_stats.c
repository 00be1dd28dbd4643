/* SPDX-License-Identifier: Apache-2.0
 * compare_stats.c: shifts of medians and their verdicts.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare_stats.h"
#include "err.h"
#include "stats.h"
#include "student.h"

#define RESAMPLES 500u /* a standard error from them is within 3 % */
#define ALPHA 0.05

const char *verdict_name(enum verdict v)
{
	static const char *const names[] = {"faster", "slower", "same", "noisy"};

	return names[v];
}

static int by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* From the first value on, so that equal values have none. */
static double mean(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i] - v[0];
	return v[0] + sum / (double)n;
}

static double variance(const double *v, size_t n)
{
	double middle = mean(v, n), sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (v[i] - middle) * (v[i] - middle);
	return n > 1 ? sum / (double)(n - 1) : 0;
}

/* An estimate's variance and how many units it comes from. */
struct spread {
	double variance;
	unsigned units;
};

/* Interval and p value of out->shift. */
static void set_interval(struct shift *out, struct spread a, struct spread b, double step)
{
	double both = a.variance + b.variance, dof, half, t95;

	if (a.units < 2 || b.units < 2) {
		out->lo = -INFINITY;
		out->hi = INFINITY;
		out->p = 1;
		return;
	}
	dof = both > 0 ? both * both /
				 (a.variance * a.variance / (a.units - 1) +
				  b.variance * b.variance / (b.units - 1))
		       : (double)(a.units + b.units - 2);
	t95 = student_t(ALPHA, dof);
	half = t95 * sqrt(both);
	half = half > step ? half : step;
	out->lo = out->shift - half;
	out->hi = out->shift + half;
	out->p = half > 0 ? student_p(t95 * out->shift / half, dof) : out->shift == 0;
}

static unsigned count_batches(const struct shift_side *s)
{
	unsigned n = 0;

	/* in order of time: the samples of a batch follow each other */
	for (size_t i = 0; i < s->n; i++)
		n += !i || s->batch[i] != s->batch[i - 1];
	return n;
}

static unsigned count_launches(const struct shift_side *s)
{
	unsigned n = 0, at = 0;
	size_t i = 0;

	while (i < s->n) {
		while (at + 1 < s->launches && s->first[at + 1] <= s->batch[i])
			at++;
		n++;
		while (i < s->n &&
		       (at + 1 == s->launches || s->batch[i] < s->first[at + 1]))
			i++;
	}
	return n;
}

static int spread_of(const struct shift_side *s, uint64_t seed, unsigned *launches,
		     struct spread *out)
{
	double medians[RESAMPLES], k;
	int err;

	*launches = s->launches > 1 ? count_launches(s) : 1;
	out->units = *launches > 1 ? *launches : count_batches(s);
	err = stats_bootstrap_launches(s->v, s->batch, s->n, s->first, s->launches, seed,
				       medians, RESAMPLES);
	if (err)
		return err;
	k = out->units;
	out->variance = k > 1 ? variance(medians, RESAMPLES) * k / (k - 1) : 0;
	return 0;
}

static double *sorted(const double *v, size_t n)
{
	double *s = malloc((n ? n : 1) * sizeof *s);

	if (s) {
		memcpy(s, v, n * sizeof *s);
		qsort(s, n, sizeof *s, by_double);
	}
	return s;
}

/* Cliff's delta, NAN without memory for it. */
static double cliff(const struct shift_side *a, const struct shift_side *b)
{
	double *x = sorted(a->v, a->n), *y = sorted(b->v, b->n), sum = 0;
	size_t below = 0, upto = 0; /* of x: < and <= the y at hand */

	for (size_t i = 0; x && y && i < b->n; i++) {
		while (below < a->n && x[below] < y[i])
			below++;
		while (upto < a->n && x[upto] <= y[i])
			upto++;
		sum += (double)below - (double)(a->n - upto);
	}
	if (!x || !y)
		sum = NAN;
	free(x);
	free(y);
	return sum / ((double)a->n * (double)b->n);
}

int shift_of_medians(const struct shift_side *a, const struct shift_side *b,
		     double median_a, double median_b, double step, uint64_t seed,
		     struct shift *out)
{
	struct spread sa, sb;
	int err;

	out->a = median_a;
	out->b = median_b;
	out->shift = median_b - median_a;
	out->step = step;
	err = spread_of(a, seed, &out->launches_a, &sa);
	if (!err)
		err = spread_of(b, ~seed, &out->launches_b, &sb);
	if (err)
		return err;
	set_interval(out, sa, sb, step);
	out->effect = cliff(a, b);
	return 0;
}

void shift_of_launches(const double *a, unsigned na, const double *b, unsigned nb,
		       struct shift *out)
{
	out->a = mean(a, na);
	out->b = mean(b, nb);
	out->shift = out->b - out->a;
	out->launches_a = na;
	out->launches_b = nb;
	out->effect = NAN;
	set_interval(out, (struct spread){variance(a, na) / na, na},
		     (struct spread){variance(b, nb) / nb, nb}, 0);
}

void shift_of_intervals(const double a[3], const double b[3], struct shift *out)
{
	double down, up, side;

	out->a = a[0];
	out->b = b[0];
	out->shift = b[0] - a[0];
	out->launches_a = out->launches_b = 1;
	out->effect = NAN;
	/* Zou and Donner: the distances of the limits from their estimates, as of independent parts */
	down = hypot(b[0] - b[1], a[2] - a[0]);
	up = hypot(b[2] - b[0], a[0] - a[1]);
	out->lo = out->shift - down;
	out->hi = out->shift + up;
	side = out->shift > 0 ? down : up;
	out->p = side > 0 ? student_p(student_t(ALPHA, INFINITY) * out->shift / side,
				      INFINITY)
			  : out->shift == 0;
}

static int by_p(const void *a, const void *b)
{
	double x = (*(struct shift *const *)a)->p, y = (*(struct shift *const *)b)->p;

	return (x > y) - (x < y);
}

static enum verdict verdict_of(const struct shift *s)
{
	if (s->lo >= -s->margin && s->hi <= s->margin)
		return VERDICT_SAME;
	if (!(s->p_holm < ALPHA) || s->shift == 0)
		return VERDICT_NOISY;
	return (s->shift > 0) == s->rate ? VERDICT_FASTER : VERDICT_SLOWER;
}

int shift_verdicts(struct shift *const *s, size_t n)
{
	struct shift **order = malloc((n ? n : 1) * sizeof(struct shift *));
	double worst = 0;

	if (!order)
		return err_say(-ENOMEM, "no memory to order %zu comparisons", n);
	memcpy(order, s, n * sizeof *order);
	qsort(order, n, sizeof *order, by_p);
	for (size_t i = 0; i < n; i++) {
		double p = order[i]->p * (double)(n - i);

		worst = p > worst ? p : worst;
		order[i]->p_holm = worst < 1 ? worst : 1;
		order[i]->verdict = verdict_of(order[i]);
	}
	free(order);
	return 0;
}
