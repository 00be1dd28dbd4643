/* SPDX-License-Identifier: Apache-2.0
 * clock.c: fit of the host's tick counter; step and overhead of any clock.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "err.h"

#define READS 512u
#define FINE_RUN 4u /* so many neighbouring differences: the counter counts each tick */
#define DRIFT_WARN_PPM 50.0

uint64_t clock_monotonic_raw_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double clock_ns(const struct clock_fit *c, uint64_t ticks)
{
	return (double)ticks * c->ns_per_tick;
}

static int by_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t clock_median_ticks(uint64_t *ticks, unsigned n)
{
	qsort(ticks, n, sizeof *ticks, by_u64);
	return ticks[n / 2];
}

/* The step from sorted differences of back-to-back reads.  A counter that moves in steps of s (22.46 ticks on one AMD
 * part, 32 ns on an H200's globaltimer) shows differences in clusters s apart, each up to a tick wide by rounding; one that
 * counts each tick shows runs of neighbouring values. */
static uint64_t step_of(const uint64_t *d, unsigned n)
{
	uint64_t smallest = 0, gap = 0;
	unsigned run = 1;

	for (unsigned i = 0; i < n; i++) {
		uint64_t g = i ? d[i] - d[i - 1] : 0;

		if (d[i] && (!smallest || d[i] < smallest))
			smallest = d[i];
		if (g == 1 && ++run >= FINE_RUN)
			return 1;
		if (g > 1) {
			run = 1;
			gap = !gap || g < gap ? g : gap;
		}
	}
	if (!smallest)
		return 1;
	return gap && gap < smallest ? gap : smallest;
}

void clock_fit_diffs(struct clock_fit *c, const uint64_t *diffs, unsigned n)
{
	uint64_t d[READS];

	if (!n)
		return;
	n = n < READS ? n : READS;
	memcpy(d, diffs, n * sizeof *d);
	qsort(d, n, sizeof *d, by_u64);
	c->overhead_ns = clock_ns(c, d[n / 2]);
	c->step_ns = clock_ns(c, step_of(d, n));
}

void clock_fit_reads(struct clock_fit *c, const uint64_t *ticks, unsigned n)
{
	uint64_t d[READS];
	unsigned k = 0;

	for (unsigned i = 1; i < n && k < READS; i++)
		d[k++] = ticks[i] - ticks[i - 1];
	clock_fit_diffs(c, d, k);
}

/* One correlated reading: the raw clock between two ticks, the tightest of a few tries. */
static void pair(uint64_t *ticks, uint64_t *ns, uint64_t *width)
{
	*width = UINT64_MAX;
	for (int i = 0; i < 32; i++) {
		uint64_t a = clock_host_ticks(), t = clock_monotonic_raw_ns(),
			 b = clock_host_ticks();

		if (b - a >= *width)
			continue;
		*width = b - a;
		*ticks = a + (b - a) / 2;
		*ns = t;
	}
}

static double rate_over(unsigned ms, uint64_t *width)
{
	uint64_t t0, n0, w0, t1, n1, w1;
	struct timespec nap = {ms / 1000, (long)(ms % 1000) * 1000000};

	pair(&t0, &n0, &w0);
	nanosleep(&nap, NULL);
	pair(&t1, &n1, &w1);
	*width = w0 > w1 ? w0 : w1;
	return (double)(n1 - n0) / (double)(t1 - t0);
}

#if defined(__x86_64__)
#include <cpuid.h>
static const char *tsc_warning(void)
{
	unsigned a, b, c, d;

	/* CPUID 0x80000007 EDX bit 8: invariant TSC (Intel SDM 18.17.1; AMD APM 3). */
	if (__get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8))
		return NULL;
	return "the CPU does not say that its TSC is invariant: ticks may follow the core clock";
}
#define HOST_CLOCK_NAME "tsc"
#else
static const char *tsc_warning(void)
{
	return NULL;
}
#define HOST_CLOCK_NAME "cntvct"
#endif

int clock_fit_host(struct clock_fit *c, unsigned fit_ms)
{
	uint64_t diffs[READS], width;
	double first;

	memset(c, 0, sizeof *c);
	c->name = HOST_CLOCK_NAME;
	first = rate_over(fit_ms, &width);
	c->ns_per_tick = rate_over(fit_ms, &width);
	if (!(c->ns_per_tick > 0) || !isfinite(c->ns_per_tick))
		return err_say(-EIO, "the host's tick counter does not move");
	c->drift_ppm = (c->ns_per_tick - first) / first * 1e6;
	c->bound_ns = (double)width * c->ns_per_tick / 2;
	/* As in a timed window: two reads with nothing between, the store after. */
	for (unsigned i = 0; i < READS; i++) {
		uint64_t t0 = clock_host_ticks(), t1 = clock_host_ticks();

		diffs[i] = t1 - t0;
	}
	clock_fit_diffs(c, diffs, READS);
	c->warning = tsc_warning();
	if (!c->warning && fabs(c->drift_ppm) > DRIFT_WARN_PPM)
		c->warning =
			"the tick counter drifts against CLOCK_MONOTONIC_RAW: two fits differ by more than 50 ppm";
	return 0;
}
