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

#include "stats.h"

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static void quantiles(void **state)
{
	const double v[] = { 1, 2, 3, 4 }, one[] = { 7 };

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
		v[i] = 100 + 50 * (i / 100) + i % 7; /* ten batches, each at a level of its own */
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
	const double v[] = { 5, 1, 3, 2, 4, 6 };
	const uint32_t batch[] = { 900, 900, 7, 7, 12, 12 };
	struct stats s;

	(void)state;
	assert_int_equal(stats_summarise(v, batch, 6, 0, 3, &s), 0);
	NEAR(s.p50, 3.5);
}

static void shuffle_keeps_all(void **state)
{
	uint32_t v[100], seen[100] = { 0 };
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
		cmocka_unit_test(shuffle_keeps_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
