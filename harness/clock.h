/* SPDX-License-Identifier: Apache-2.0
 * clock.h: the clocks and the only place that converts them.
 *
 * A clock_fit says what one tick is, how finely the clock steps, what reading it costs, how far it drifts
 * from CLOCK_MONOTONIC_RAW over a second, and how sure that is.  What a clock is not: the SM clock64 of one
 * SM says nothing about another SM's; TSC ticks are not core cycles; globaltimer steps (32 ns on an H200).
 */
#ifndef PUTSCOPE_CLOCK_H
#define PUTSCOPE_CLOCK_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct clock_fit {
	const char *name; /* tsc, cntvct, clock64, globaltimer, monotonic_raw */
	double ns_per_tick;
	double step_ns;	    /* smallest non-zero difference seen */
	double overhead_ns; /* median of back-to-back reads */
	double drift_ppm; /* against CLOCK_MONOTONIC_RAW over the fit window; NAN if not measured */
	double bound_ns; /* error bound of one correlation with the host clock; NAN if not measured */
	const char *warning; /* NULL, or why not to trust it (TSC not invariant ...) */
};

/* The host's tick counter: rdtscp then lfence on x86-64 (earlier loads and stores have been issued, later ones have not
 * started), isb and cntvct_el0 on aarch64.  Its cost is measured as the overhead. */
static inline uint64_t clock_host_ticks(void)
{
#if defined(__x86_64__)
	uint32_t lo, hi, aux;

	__asm__ volatile("rdtscp\n\tlfence" : "=a"(lo), "=d"(hi), "=c"(aux)::"memory");
	return (uint64_t)hi << 32 | lo;
#elif defined(__aarch64__)
	uint64_t t;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(t)::"memory");
	return t;
#else
#error "no tick counter known for this CPU"
#endif
}
/* The same where only stores follow: they leave the CPU in order and after this reading in any case, so that nothing keeps them
 * from being prepared meanwhile.  A fence behind the reading would hold them back: it made a stamped put 50-170 ns longer. */
static inline uint64_t clock_host_ticks_before_stores(void)
{
#if defined(__x86_64__)
	uint32_t lo, hi, aux;

	__asm__ volatile("rdtscp" : "=a"(lo), "=d"(hi), "=c"(aux)::"memory");
	return (uint64_t)hi << 32 | lo;
#else
	return clock_host_ticks();
#endif
}
/* Measures rate (against CLOCK_MONOTONIC_RAW for about fit_ms), step, overhead, drift. */
int clock_fit_host(struct clock_fit *c, unsigned fit_ms);
/* Step and overhead of any clock from n back-to-back reads in ticks (already measured, GPU ones too). */
void clock_fit_reads(struct clock_fit *c, const uint64_t *ticks, unsigned n);
/* The same from n differences of back-to-back reads. */
void clock_fit_diffs(struct clock_fit *c, const uint64_t *diffs, unsigned n);
double clock_ns(const struct clock_fit *c, uint64_t ticks); /* a duration */
uint64_t clock_median_ticks(uint64_t *ticks, unsigned n);   /* sorts them */
uint64_t clock_monotonic_raw_ns(void);

#ifdef __cplusplus
}
#endif
#endif
