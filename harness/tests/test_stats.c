/* SPDX-License-Identifier: Apache-2.0
 * test_stats.c: order statistics against values made by hand; the bootstrap's promises.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static void quantiles(void **state)
{
	const double v[] = {1, 2, 3, 4}, one[] = {7};

	(void)state;
	NEAR(stats_quantile(v, 4, 0.5), 2.5); /* even n: the mean of the middle two */
	NEAR(stats_quantile(v, 3, 0.5), 2);
	NEAR(stats_quantile(v, 4, 0), 1);
	NEAR(stats_quantile(v, 4, 1), 4);
	NEAR(stats_quantile(v, 4, 0.9), 3.7); /* Hyndman-Fan 7: 0.9 * 3 = 2.7 */
	NEAR(stats_quantile(one, 1, 0.99), 7);
}

/* n values 1 .. n, in batches of `per`, in scrambled order. */
static void make(size_t n, uint32_t per, double *v, uint32_t *batch)
{
	for (size_t i = 0; i < n; i++) {
		v[i] = (double)((i * 7919) % n + 1);
		batch[i] = (uint32_t)(i / per);
	}
}

static void summary(void **state)
{
	static double v[20000];
	static uint32_t batch[20000];
	struct stats s;

	(void)state;
	make(9999, 100, v, batch);
	assert_int_equal(stats_summarise(v, batch, 9999, 0, 1, &s), 0);
	assert_int_equal(s.n, 9999);
	NEAR(s.p50, 5000);
	NEAR(s.min, 1);
	NEAR(s.max, 9999);
	assert_true(isnan(s.p99_9)); /* fewer than ten samples beyond it */
	make(20000, 100, v, batch);
	stats_summarise(v, batch, 20000, 0, 1, &s);
	assert_true(fabs(s.p99_9 - 19980) < 1.1);
	assert_true(s.p50_lo <= s.p50 && s.p50 <= s.p50_hi);
	assert_int_equal(stats_summarise(v, batch, 0, 0, 1, &s), -EINVAL);
	stats_summarise(v, batch, 50, 0, 1, &s);
	assert_true(isnan(s.p99));
}

static void never_narrower_than_a_step(void **state)
{
	double v[100];
	uint32_t batch[100];
	struct stats s;

	(void)state;
	for (int i = 0; i < 100; i++) {
		v[i] = 64; /* a clock of 32 ns: all alike */
		batch[i] = (uint32_t)i / 10;
	}
	stats_summarise(v, batch, 100, 32, 1, &s);
	NEAR(s.p50_lo, 32);
	NEAR(s.p50_hi, 96);
}

static void repeatable_and_by_batch(void **state)
{
	static double v[1000];
	static uint32_t apart[1000], mixed[1000];
	struct stats a, b;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		apart[i] = (uint32_t)i / 100;
		mixed[i] = (uint32_t)i % 10;
		v[i] = 100 + 50 * (i / 100) +
		       i % 7; /* ten batches, each at a level of its own */
	}
	stats_summarise(v, apart, 1000, 0, 5, &a);
	stats_summarise(v, apart, 1000, 0, 5, &b);
	assert_memory_equal(&a, &b, sizeof a);
	stats_summarise(v, mixed, 1000, 0, 5, &b);
	/* The same samples in batches that are alike: correlation inside a batch is what widens the interval. */
	assert_true(a.p50_hi - a.p50_lo > 2 * (b.p50_hi - b.p50_lo));
}

static void sparse_batch_numbers(void **state)
{
	const double v[] = {5, 1, 3, 2, 4, 6};
	const uint32_t batch[] = {900, 900, 7, 7, 12, 12};
	struct stats s;

	(void)state;
	assert_int_equal(stats_summarise(v, batch, 6, 0, 3, &s), 0);
	NEAR(s.p50, 3.5);
}

static int by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median of one resample the long way: each sample as often as its batch was drawn. */
static double slow_median(const double *v, const uint32_t *batch, size_t n,
			  const uint32_t *weight, double *room)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		for (uint32_t w = 0; w < weight[batch[i]]; w++)
			room[k++] = v[i];
	qsort(room, k, sizeof *room, by_double);
	return (room[(k - 1) / 2] + room[k / 2]) / 2;
}

/* The index over blocks finds the medians that taking every sample finds: few and many batches, many equal values. */
static void interval_the_long_way(void **state)
{
	static const struct {
		size_t n;
		uint32_t per, values;
	} sets[] = {{3200, 400, 50},
		    {3200, 80, 100000},
		    {3201, 267, 9},
		    {600, 1, 40},
		    {1000, 1000, 7}};
	static double v[3201], room[8 * 3201], medians[1000];
	static uint32_t batch[3201], weight[3201];
	uint64_t rng = 5;

	(void)state;
	for (unsigned k = 0; k < sizeof sets / sizeof *sets; k++) {
		size_t n = sets[k].n;
		uint32_t count = (uint32_t)((n + sets[k].per - 1) / sets[k].per);
		uint64_t draw = 77;
		struct stats s;

		for (size_t i = 0; i < n; i++) {
			v[i] = (double)(stats_rand(&rng) % sets[k].values);
			batch[i] = (uint32_t)(i / sets[k].per);
		}
		stats_summarise(v, batch, n, 0, 77, &s);
		/* batches are numbered by their first sample in sorted order: any one draw differs, their spread does not */
		for (unsigned r = 0; r < 1000; r++) {
			memset(weight, 0, sizeof weight);
			for (uint32_t b = 0; b < count; b++)
				weight[(unsigned __int128)stats_rand(&draw) * count >>
				       64]++;
			medians[r] = slow_median(v, batch, n, weight, room);
		}
		qsort(medians, 1000, sizeof *medians, by_double);
		assert_true(fabs(s.p50_lo - stats_quantile(medians, 1000, 0.025)) <=
			    0.02 * sets[k].values);
		assert_true(fabs(s.p50_hi - stats_quantile(medians, 1000, 0.975)) <=
			    0.02 * sets[k].values);
	}
}

/* COUNT medians, repeatable; launches drawn whole: where they lie apart, medians spread as far as they do. */
static void resampled_medians(void **state)
{
	static double v[2000], m[400], again[400];
	static uint32_t batch[2000];
	const uint32_t first[] = {0, 70, 140, 210};
	struct stats alone, together;
	double lo = INFINITY, hi = -INFINITY;

	(void)state;
	for (unsigned i = 0; i < 2000; i++) {
		unsigned launch = i / 500;

		batch[i] = first[launch] + i % 500 / 50; /* ten of its 70 numbers */
		v[i] = 1000 * (launch + 1) + i % 7;
	}
	assert_int_equal(stats_bootstrap(v, batch, 2000, 3, m, 400), 0);
	assert_int_equal(stats_bootstrap(v, batch, 2000, 3, again, 400), 0);
	assert_memory_equal(m, again, sizeof m);
	assert_int_equal(stats_bootstrap(v, batch, 0, 3, m, 400), -EINVAL);
	assert_int_equal(stats_bootstrap_launches(v, batch, 2000, first, 4, 3, m, 400),
			 0);
	for (unsigned i = 0; i < 400; i++) {
		lo = m[i] < lo ? m[i] : lo;
		hi = m[i] > hi ? m[i] : hi;
	}
	assert_true(lo < 1010 && hi > 4000); /* one launch drawn four times */
	/* a launch without samples is none */
	assert_int_equal(stats_bootstrap_launches(v, batch, 500, first, 4, 3, m, 400), 0);
	assert_true(m[0] >= 1000 && m[0] <= 1006);
	stats_summarise(v, batch, 2000, 0, 3, &alone);
	stats_summarise_launches(v, batch, 2000, first, 4, 0, 3, &together);
	assert_true(together.p50 == alone.p50 && together.p50_lo < alone.p50_lo);
}

static void shuffle_keeps_all(void **state)
{
	uint32_t v[100], seen[100] = {0};
	uint64_t rng = 42;
	unsigned moved = 0;

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		v[i] = i;
	stats_shuffle(v, 100, &rng);
	for (uint32_t i = 0; i < 100; i++) {
		seen[v[i]]++;
		moved += v[i] != i;
	}
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(seen[i], 1);
	assert_true(moved > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles),
		cmocka_unit_test(summary),
		cmocka_unit_test(never_narrower_than_a_step),
		cmocka_unit_test(repeatable_and_by_batch),
		cmocka_unit_test(sparse_batch_numbers),
		cmocka_unit_test(interval_the_long_way),
		cmocka_unit_test(resampled_medians),
		cmocka_unit_test(shuffle_keeps_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
