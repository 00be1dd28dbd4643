/* SPDX-License-Identifier: Apache-2.0
 * test_clock.c: the fit of the host's counter against a measurement of its own; step detection on invented clocks.
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

#define READS 512u

static void in(double got, double lo, double hi)
{
	if (!(got >= lo && got <= hi))
		fail_msg("%g is not in [%g, %g]", got, lo, hi);
}

/* Ticks per nanosecond over 200 ms, each end the tightest of a few readings. */
static double own_rate(void)
{
	const struct timespec nap = {0, 200000000};
	uint64_t tick[2] = {0, 0}, ns[2] = {0, 0};

	for (int end = 0; end < 2; end++) {
		uint64_t tightest = UINT64_MAX;

		for (int i = 0; i < 16; i++) {
			uint64_t a = clock_monotonic_raw_ns(), t = clock_host_ticks(),
				 b = clock_monotonic_raw_ns();

			if (b - a >= tightest)
				continue;
			tightest = b - a;
			tick[end] = t;
			ns[end] = a + (b - a) / 2;
		}
		if (!end)
			nanosleep(&nap, NULL);
	}
	return (double)(ns[1] - ns[0]) / (double)(tick[1] - tick[0]);
}

static void host_fit_is_sane(void **state)
{
	struct clock_fit c;
	double own;

	(void)state;
	assert_int_equal(clock_fit_host(&c, 50), 0);
	own = own_rate();
	in(c.ns_per_tick / own, 0.99, 1.01);
	assert_non_null(c.name);
	in(c.step_ns, 1e-3, 1000);
	in(c.overhead_ns, 0, 10000);
	assert_true(isfinite(c.drift_ppm));
	in(c.bound_ns, 0, 100000);
	in(clock_ns(&c, 1000000), 0.99e6 * own, 1.01e6 * own);
}

static void host_clock_does_not_go_back(void **state)
{
	uint64_t last = clock_host_ticks(), raw = clock_monotonic_raw_ns();

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint64_t t = clock_host_ticks();

		assert_true(t >= last);
		last = t;
	}
	assert_true(clock_monotonic_raw_ns() > raw);
}

/* Reads of a clock that moves in steps of `step` ticks (rounded down), taken each 7 to 7 + spread ticks of true time. */
static struct clock_fit reads(double step, double base, unsigned spread,
			      double ns_per_tick)
{
	struct clock_fit c;
	uint64_t t[READS], state = 88172645463325252ull;
	double now = 1e6;

	memset(&c, 0, sizeof c);
	c.ns_per_tick = ns_per_tick;
	for (unsigned i = 0; i < READS; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		now += base + (double)(state % (spread + 1));
		t[i] = (uint64_t)(floor(now / step) * step);
	}
	clock_fit_reads(&c, t, READS);
	return c;
}

static void steps_of_32_ns(void **state)
{
	(void)state;
	in(reads(32, 7, 10, 1).step_ns, 32,
	   32); /* mostly no difference at all, else one step */
	in(reads(32, 100, 60, 1).step_ns, 32,
	   32); /* several steps a read: the distance of the clusters counts */
	in(reads(32, 20, 400, 1).step_ns, 32, 32);
	in(reads(64, 7, 10, 0.5).step_ns, 32, 32); /* ticks are not nanoseconds */
	in(reads(1024, 30, 10, 1).step_ns, 1024, 1024);
}

static void steps_that_are_no_whole_ticks(void **state)
{
	(void)state;
	in(reads(22.46, 7, 10, 1).step_ns, 21, 24);
	in(reads(22.46, 60, 60, 1).step_ns, 21, 24);
	in(reads(22.46, 60, 60, 0.4).step_ns, 21 * 0.4, 24 * 0.4);
}

static void steps_of_one_tick(void **state)
{
	(void)state;
	in(reads(1, 20, 30, 1).step_ns, 1, 1);
	in(reads(1, 20, 30, 0.25).step_ns, 0.25, 0.25);
}

static void constant_differences(void **state)
{
	struct clock_fit c = reads(1, 24, 0, 0.5);

	(void)state;
	in(c.step_ns, 12, 12); /* nothing finer was seen, so nothing finer is claimed */
	in(c.overhead_ns, 12, 12);
}

static void overhead_is_the_median(void **state)
{
	struct clock_fit c = {.ns_per_tick = 2};
	const uint64_t t[] = {0,  10,	   20,
			      30, 1000030, 1000041}; /* differences 10 10 10 1000000 11 */

	(void)state;
	clock_fit_reads(&c, t, 6);
	in(c.overhead_ns, 20, 20);
}

static void too_few_or_stuck(void **state)
{
	struct clock_fit c = {.ns_per_tick = 1, .step_ns = 5, .overhead_ns = 6};
	const uint64_t t[] = {9, 9, 9, 9};

	(void)state;
	clock_fit_reads(&c, t, 1);
	in(c.step_ns, 5, 5); /* one read says nothing */
	clock_fit_reads(&c, t, 4);
	in(c.overhead_ns, 0, 0);
	in(c.step_ns, 1, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_fit_is_sane),
		cmocka_unit_test(host_clock_does_not_go_back),
		cmocka_unit_test(steps_of_32_ns),
		cmocka_unit_test(steps_that_are_no_whole_ticks),
		cmocka_unit_test(steps_of_one_tick),
		cmocka_unit_test(constant_differences),
		cmocka_unit_test(overhead_is_the_median),
		cmocka_unit_test(too_few_or_stuck),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
