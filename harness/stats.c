/* SPDX-License-Identifier: Apache-2.0
 * stats.c: order statistics and the batch-level bootstrap.
 *
 * Bootstrap: batches are drawn with replacement; a batch drawn w times counts each of its samples w times.  The samples
 * are sorted once; the median of a resample is where the running weight passes half.  Cost per resample is one walk over
 * at most n samples, so resamples are 1000 up to 200,000 samples and fewer beyond (never under 200).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "stats.h"

#define RESAMPLES 1000u
#define RESAMPLES_MIN 200u
#define WALK_BUDGET 200000000ull
#define BEYOND_P999 10u

struct sample {
	double v;
	uint32_t batch;
};

double stats_quantile(const double *sorted, size_t n, double q)
{
	double at = q * (double)(n - 1);
	size_t i = (size_t)at;

	if (i + 1 >= n)
		return sorted[n - 1];
	return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

uint64_t stats_rand(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull); /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Uniform in [0, n): multiply and shift; the bias is below n / 2^64. */
static uint32_t rand_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((unsigned __int128)stats_rand(state) * n >> 64);
}

void stats_shuffle(uint32_t *v, size_t n, uint64_t *state)
{
	for (size_t i = n; i > 1; i--) {
		size_t j = rand_below(state, (uint32_t)i);
		uint32_t t = v[i - 1];

		v[i - 1] = v[j];
		v[j] = t;
	}
}

static int by_value(const void *a, const void *b)
{
	double x = ((const struct sample *)a)->v, y = ((const struct sample *)b)->v;

	return (x > y) - (x < y);
}

static int by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median of the samples weighted by how often their batch was drawn. */
static double weighted_median(const struct sample *s, size_t n, const uint32_t *weight,
			      uint64_t total)
{
	uint64_t seen = 0;

	for (size_t i = 0; i < n; i++) {
		seen += weight[s[i].batch];
		if (2 * seen < total)
			continue;
		if (2 * seen > total)
			return s[i].v;
		for (size_t j = i + 1; j < n;
		     j++) /* exactly half: the mean with the next that counts */
			if (weight[s[j].batch])
				return (s[i].v + s[j].v) / 2;
		return s[i].v;
	}
	return s[n - 1].v;
}

/* Number the batches 0 .. count-1 in place; returns count. */
static uint32_t number_batches(struct sample *s, size_t n, uint32_t *map, uint32_t top)
{
	uint32_t count = 0;

	memset(map, 0xff, (top + 1) * sizeof *map);
	for (size_t i = 0; i < n; i++) {
		if (map[s[i].batch] == UINT32_MAX)
			map[s[i].batch] = count++;
		s[i].batch = map[s[i].batch];
	}
	return count;
}

static int bootstrap(struct sample *s, size_t n, uint64_t seed, double *lo, double *hi)
{
	uint32_t top = 0, count, *map, *weight, *size;
	unsigned resamples = RESAMPLES;
	double *medians;
	int err = 0;

	for (size_t i = 0; i < n; i++)
		top = s[i].batch > top ? s[i].batch : top;
	map = malloc((top + 1) * sizeof *map);
	weight = calloc(top + 1, sizeof *weight);
	size = calloc(top + 1, sizeof *size);
	if (n > WALK_BUDGET / RESAMPLES)
		resamples = WALK_BUDGET / n > RESAMPLES_MIN ? (unsigned)(WALK_BUDGET / n)
							    : RESAMPLES_MIN;
	medians = calloc(resamples, sizeof *medians);
	if (!map || !weight || !size || !medians) {
		err = err_say(-ENOMEM, "no memory for the bootstrap of %zu samples", n);
		goto out;
	}
	count = number_batches(s, n, map, top);
	for (size_t i = 0; i < n; i++)
		size[s[i].batch]++;
	for (unsigned r = 0; r < resamples; r++) {
		uint64_t total = 0;

		memset(weight, 0, count * sizeof *weight);
		for (uint32_t b = 0; b < count; b++) {
			uint32_t pick = rand_below(&seed, count);

			weight[pick]++;
			total += size[pick];
		}
		medians[r] = weighted_median(s, n, weight, total);
	}
	qsort(medians, resamples, sizeof *medians, by_double);
	*lo = stats_quantile(medians, resamples, 0.025);
	*hi = stats_quantile(medians, resamples, 0.975);
out:
	free(map);
	free(weight);
	free(size);
	free(medians);
	return err;
}

int stats_summarise(const double *v, const uint32_t *batch, size_t n, double step,
		    uint64_t seed, struct stats *out)
{
	struct sample *s;
	double *sorted;
	int err = 0;

	memset(out, 0, sizeof *out);
	if (!n)
		return err_say(-EINVAL, "no samples to summarise");
	s = malloc(n * sizeof *s);
	sorted = malloc(n * sizeof *sorted);
	if (!s || !sorted) {
		err = err_say(-ENOMEM, "no memory to sort %zu samples", n);
		goto out;
	}
	for (size_t i = 0; i < n; i++)
		s[i] = (struct sample){v[i], batch[i]};
	qsort(s, n, sizeof *s, by_value);
	for (size_t i = 0; i < n; i++)
		sorted[i] = s[i].v;
	out->n = n;
	out->min = sorted[0];
	out->max = sorted[n - 1];
	out->p50 = stats_quantile(sorted, n, 0.5);
	out->p90 = stats_quantile(sorted, n, 0.9);
	out->p99 = n >= 100 ? stats_quantile(sorted, n, 0.99) : NAN;
	out->p99_9 = n >= 1000 * BEYOND_P999 ? stats_quantile(sorted, n, 0.999) : NAN;
	err = bootstrap(s, n, seed, &out->p50_lo, &out->p50_hi);
	if (out->p50_lo > out->p50 - step)
		out->p50_lo = out->p50 - step;
	if (out->p50_hi < out->p50 + step)
		out->p50_hi = out->p50 + step;
out:
	free(s);
	free(sorted);
	return err;
}
