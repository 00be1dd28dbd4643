/* SPDX-License-Identifier: Apache-2.0
 * stats.c: order statistics and the batch-level bootstrap.
 *
 * Bootstrap: batches are drawn with replacement; a batch drawn w times counts each of its samples w times.  The samples
 * are sorted once; the median of a resample is where the running weight passes half.  An index says how many samples of
 * each batch lie before every block of the sorted samples, so that a resample looks at a few blocks and walks one; the
 * median is the same as by walking all.  1000 resamples; fewer (200 at least) for over 100,000 samples in batches under 40.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "stats.h"
#include "student.h"

#define RESAMPLES 1000u
#define RESAMPLES_MIN 200u
#define WALK_BUDGET 200000000ull
#define BLOCK_MIN 64u
#define BLOCKS_MAX 1024u
#define INDEX_MAX 4194304u /* entries: 16 MiB */
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

/* before[k * batches + b]: samples of batch b in the first k blocks. */
struct index {
	uint32_t *before, batches;
	size_t block, blocks; /* samples in a block; 1 block: there is no index */
};

/* Weight before block k. */
static uint64_t weight_before(const struct index *x, size_t k, const uint32_t *weight)
{
	const uint32_t *before = x->before + k * x->batches;
	uint64_t sum = 0;

	for (uint32_t b = 0; b < x->batches; b++)
		sum += (uint64_t)before[b] * weight[b];
	return sum;
}

/* Median of the samples weighted by how often their batch was drawn. */
static double weighted_median(const struct sample *s, size_t n, const struct index *x,
			      const uint32_t *weight, uint64_t total)
{
	size_t lo = 0,
	       hi = x->blocks; /* the median is not before block lo, and before hi */
	uint64_t seen = 0;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;
		uint64_t w = weight_before(x, mid, weight);

		if (2 * w < total) {
			lo = mid;
			seen = w;
		} else {
			hi = mid;
		}
	}
	for (size_t i = lo * x->block; i < n; i++) {
		seen += weight[s[i].batch];
		if (2 * seen < total)
			continue;
		if (2 * seen > total)
			return s[i].v;
		/* exactly half: the mean with the next that counts */
		for (size_t j = i + 1; j < n; j++)
			if (weight[s[j].batch])
				return (s[i].v + s[j].v) / 2;
		return s[i].v;
	}
	return s[n - 1].v;
}

/* An index, or one block where looking at it would cost more than walking. */
static int make_index(struct index *x, const struct sample *s, size_t n, uint32_t batches)
{
	size_t blocks = n / BLOCK_MIN;

	*x = (struct index){NULL, batches, n, 1};
	if (blocks > BLOCKS_MAX)
		blocks = BLOCKS_MAX;
	if (blocks > INDEX_MAX / batches)
		blocks = INDEX_MAX / batches;
	if (blocks < 2 || 10 * (uint64_t)batches > n / 4) /* 10: looks, log2 BLOCKS_MAX */
		return 0;
	x->block = (n + blocks - 1) / blocks;
	x->blocks = (n + x->block - 1) / x->block;
	x->before = calloc(x->blocks * batches, sizeof *x->before);
	if (!x->before)
		return err_say(-ENOMEM, "no memory for the bootstrap of %zu samples", n);
	for (size_t k = 1; k < x->blocks; k++) {
		uint32_t *row = x->before + k * batches;

		memcpy(row, row - batches, batches * sizeof *row);
		for (size_t i = (k - 1) * x->block; i < k * x->block; i++)
			row[s[i].batch]++;
	}
	return 0;
}

/* How many resamples are worth their time. */
static unsigned resamples_for(const struct index *x)
{
	uint64_t each = x->block + (x->blocks > 1 ? 10 : 1) * (uint64_t)x->batches;
	uint64_t n = WALK_BUDGET / each;

	return n > RESAMPLES	   ? RESAMPLES
	       : n < RESAMPLES_MIN ? RESAMPLES_MIN
				   : (unsigned)n;
}

/* The batches of each launch that has any: those of launch k are batch[start[k]] .. batch[start[k + 1] - 1]. */
struct launches {
	uint32_t *batch, *start, count;
};

/* map: from the batch numbers 0 .. top of the caller to ours, UINT32_MAX where there is none; first[count]: the first batch of each launch, ascending. */
static int make_launches(struct launches *l, const uint32_t *map, uint32_t top,
			 uint32_t batches, const uint32_t *first, unsigned count)
{
	uint32_t n = 0;

	*l = (struct launches){0};
	if (count < 2)
		return 0;
	l->batch = calloc(batches, sizeof *l->batch);
	l->start = calloc(count + 1, sizeof *l->start);
	if (!l->batch || !l->start)
		return err_say(-ENOMEM, "no memory for the batches of %u launches",
			       count);
	for (unsigned k = 0; k < count; k++) {
		uint64_t end = k + 1 < count ? first[k + 1] : (uint64_t)top + 1;
		uint32_t before = n;

		for (uint64_t b = k ? first[k] : 0; b < end && b <= top; b++)
			if (map[b] != UINT32_MAX)
				l->batch[n++] = map[b];
		if (n > before)
			l->start[++l->count] = n;
	}
	return 0;
}

/* Number the batches 0 .. count-1 in place; returns count. */
static uint32_t number_batches(struct sample *s, size_t n, uint32_t *map, uint32_t top)
{
	uint32_t count = 0;

	memset(map, 0xff, ((size_t)top + 1) * sizeof *map);
	for (size_t i = 0; i < n; i++) {
		if (map[s[i].batch] == UINT32_MAX)
			map[s[i].batch] = count++;
		s[i].batch = map[s[i].batch];
	}
	return count;
}

/* How often each batch is drawn: batches alone, or launches and then as many batches of each drawn launch as it has. */
static void draw(const struct launches *l, uint32_t batches, uint32_t *weight,
		 uint64_t *seed)
{
	memset(weight, 0, batches * sizeof *weight);
	for (uint32_t b = 0; l->count < 2 && b < batches; b++)
		weight[rand_below(seed, batches)]++;
	for (uint32_t k = 0; l->count >= 2 && k < l->count; k++) {
		uint32_t pick = rand_below(seed, l->count), from = l->start[pick],
			 n = l->start[pick + 1] - from;

		for (uint32_t b = 0; b < n; b++)
			weight[l->batch[from + rand_below(seed, n)]]++;
	}
}

static void resample(const struct sample *s, size_t n, const struct index *x,
		     const struct launches *l, const uint32_t *size, uint32_t *weight,
		     uint64_t *seed, double *medians, unsigned count)
{
	for (unsigned r = 0; r < count; r++) {
		uint64_t total = 0;

		draw(l, x->batches, weight, seed);
		for (uint32_t b = 0; b < x->batches; b++)
			total += (uint64_t)size[b] * weight[b];
		medians[r] = weighted_median(s, n, x, weight, total);
	}
}

/* medians[] of sorted s[n]; count 0: as many as are worth their time, RESAMPLES at most; the number made, or -ENOMEM. */
static int bootstrap(struct sample *s, size_t n, const uint32_t *first, unsigned launches,
		     uint64_t seed, double *medians, unsigned count, unsigned *drawn)
{
	uint32_t top = 0, *map, *weight = NULL, *size = NULL;
	struct launches l = {0};
	struct index x = {0};
	int err;

	for (size_t i = 0; i < n; i++)
		top = s[i].batch > top ? s[i].batch : top;
	map = malloc(((size_t)top + 1) * sizeof *map);
	if (!map)
		goto no_memory;
	OUR_TRY(make_index(&x, s, n, number_batches(s, n, map, top)), err, out);
	OUR_TRY(make_launches(&l, map, top, x.batches, first, launches), err, out);
	if (!count)
		count = resamples_for(&x);
	weight = calloc(x.batches, sizeof *weight);
	size = calloc(x.batches, sizeof *size);
	if (!weight || !size)
		goto no_memory;
	for (size_t i = 0; i < n; i++)
		size[s[i].batch]++;
	resample(s, n, &x, &l, size, weight, &seed, medians, count);
	*drawn = l.count;
	err = (int)count;
	goto out;
no_memory:
	err = err_say(-ENOMEM, "no memory for the bootstrap of %zu samples", n);
out:
	free(x.before);
	free(l.batch);
	free(l.start);
	free(map);
	free(weight);
	free(size);
	return err;
}

static struct sample *sorted_samples(const double *v, const uint32_t *batch, size_t n)
{
	struct sample *s = malloc((n ? n : 1) * sizeof *s);

	for (size_t i = 0; s && i < n; i++)
		s[i] = (struct sample){v[i], batch[i]};
	if (s)
		qsort(s, n, sizeof *s, by_value);
	else
		err_say(-ENOMEM, "no memory to sort %zu samples", n);
	return s;
}

int stats_bootstrap_launches(const double *v, const uint32_t *batch, size_t n,
			     const uint32_t *first, unsigned launches, uint64_t seed,
			     double *medians, unsigned count)
{
	struct sample *s;
	unsigned drawn;
	int err;

	if (!n || !count)
		return err_say(-EINVAL, "no samples, or no resamples, to bootstrap");
	s = sorted_samples(v, batch, n);
	if (!s)
		return -ENOMEM;
	err = bootstrap(s, n, first, launches, seed, medians, count, &drawn);
	free(s);
	return err < 0 ? err : 0;
}

int stats_bootstrap(const double *v, const uint32_t *batch, size_t n, uint64_t seed,
		    double *medians, unsigned count)
{
	return stats_bootstrap_launches(v, batch, n, NULL, 0, seed, medians, count);
}

/* The interval of out->p50: percentiles of resampled medians; from few launches, wider by Student's t. */
static int interval(struct sample *s, size_t n, const uint32_t *first, unsigned launches,
		    uint64_t seed, struct stats *out)
{
	double medians[RESAMPLES], wider = 1, k;
	unsigned drawn = 0;
	int count = bootstrap(s, n, first, launches, seed, medians, 0, &drawn);

	if (count < 0)
		return count;
	qsort(medians, (size_t)count, sizeof *medians, by_double);
	out->p50_lo = stats_quantile(medians, (size_t)count, 0.025);
	out->p50_hi = stats_quantile(medians, (size_t)count, 0.975);
	if (drawn < 2)
		return 0;
	k = drawn;
	wider = student_t(0.05, k - 1) / student_t(0.05, INFINITY) * sqrt(k / (k - 1));
	out->p50_lo = out->p50 - (out->p50 - out->p50_lo) * wider;
	out->p50_hi = out->p50 + (out->p50_hi - out->p50) * wider;
	return 0;
}

int stats_summarise(const double *v, const uint32_t *batch, size_t n, double step,
		    uint64_t seed, struct stats *out)
{
	return stats_summarise_launches(v, batch, n, NULL, 0, step, seed, out);
}

int stats_summarise_launches(const double *v, const uint32_t *batch, size_t n,
			     const uint32_t *first, unsigned launches, double step,
			     uint64_t seed, struct stats *out)
{
	struct sample *s;
	double *sorted;
	int err = -ENOMEM;

	memset(out, 0, sizeof *out);
	if (!n)
		return err_say(-EINVAL, "no samples to summarise");
	s = sorted_samples(v, batch, n);
	PTR_TRY(sorted = s ? malloc(n * sizeof *sorted) : NULL, err, out);
	for (size_t i = 0; i < n; i++)
		sorted[i] = s[i].v;
	out->n = n;
	out->min = sorted[0];
	out->max = sorted[n - 1];
	out->p50 = stats_quantile(sorted, n, 0.5);
	out->p90 = stats_quantile(sorted, n, 0.9);
	out->p99 = n >= 100 ? stats_quantile(sorted, n, 0.99) : NAN;
	out->p99_9 = n >= 1000 * BEYOND_P999 ? stats_quantile(sorted, n, 0.999) : NAN;
	err = interval(s, n, first, launches, seed, out);
	if (out->p50_lo > out->p50 - step)
		out->p50_lo = out->p50 - step;
	if (out->p50_hi < out->p50 + step)
		out->p50_hi = out->p50 + step;
out:
	free(s);
	free(sorted);
	return err;
}
