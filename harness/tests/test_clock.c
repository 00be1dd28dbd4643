/* SPDX-License-Identifier: Apache-2.0
 * test_clock.c: step and overhead from made-up reads; the host's clock against the kernel's.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "clock.h"

#define N 256

/* Reads `cost` apart of a clock that moves in steps of `step` (both in ticks). */
static void reads(uint64_t *t, double cost, double step)
{
	for (int i = 0; i < N; i++)
		t[i] = (uint64_t)llround(floor((1000.3 + i * cost) / step) * step);
}

static double step_of(double cost, double step)
{
	struct clock_fit c;
	uint64_t t[N];

	memset(&c, 0, sizeof c);
	c.ns_per_tick = 1;
	reads(t, cost, step);
	clock_fit_reads(&c, t, N);
	return c.step_ns;
}

static void steps(void **state)
{
	(void)state;
	assert_true(fabs(step_of(5, 32) - 32) < 0.5);	      /* reads cheaper than the step, as globaltimer */
	assert_true(fabs(step_of(70, 32) - 32) < 0.5);	      /* dearer than the step */
	assert_true(fabs(step_of(60.7, 22.46) - 22.46) < 1.5); /* a step that is no whole number of ticks */
	assert_true(step_of(20, 20) <= 20);
}

static void fine_counter(void **state)
{
	struct clock_fit c;
	uint64_t d[N];

	(void)state;
	memset(&c, 0, sizeof c);
	c.ns_per_tick = 0.5;
	for (int i = 0; i < N; i++)
		d[i] = 40 + (uint64_t)(i * 7 % 6); /* neighbouring values: every tick is counted */
	clock_fit_diffs(&c, d, N);
	assert_true(fabs(c.step_ns - 0.5) < 1e-9);
	assert_true(c.overhead_ns >= 20 && c.overhead_ns <= 22.5);
}

static void constant_difference(void **state)
{
	struct clock_fit c;
	uint64_t d[N];

	(void)state;
	memset(&c, 0, sizeof c);
	c.ns_per_tick = 0.505;
	for (int i = 0; i < N; i++)
		d[i] = 2;
	clock_fit_diffs(&c, d, N);
	assert_true(fabs(c.overhead_ns - 1.01) < 1e-9);
	assert_true(fabs(c.step_ns - 1.01) < 1e-9);
}

static void host(void **state)
{
	const struct timespec nap = { 0, 50000000 };
	struct clock_fit c;
	uint64_t t0, t1, n0, n1;

	(void)state;
	assert_int_equal(clock_fit_host(&c, 50), 0);
	n0 = clock_monotonic_raw_ns();
	t0 = clock_host_ticks();
	nanosleep(&nap, NULL);
	n1 = clock_monotonic_raw_ns();
	t1 = clock_host_ticks();
	/* Two reads 50 ms apart: within 1 % even when the thread lost its core between a pair. */
	assert_true(fabs(clock_ns(&c, t1 - t0) / (double)(n1 - n0) - 1) < 0.01);
	assert_true(c.step_ns > 0 && c.overhead_ns > 0 && c.overhead_ns < 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps),
		cmocka_unit_test(fine_counter),
		cmocka_unit_test(constant_difference),
		cmocka_unit_test(host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
