/* SPDX-License-Identifier: Apache-2.0
 * stats.h: order statistics and the batch-level bootstrap.  No sample is ever cut.
 */
#ifndef PUTSCOPE_STATS_H
#define PUTSCOPE_STATS_H
#include <stddef.h>
#include <stdint.h>

struct stats {
	size_t n;
	double p50, p50_lo,
		p50_hi; /* 95 % interval of the median; never narrower than +- one step */
	double p90, p99,
		p99_9; /* NAN with fewer than 10 samples beyond (p99: fewer than 1) */
	double min, max;
};
/* Quantile q in [0,1] of sorted v[n], linear between order statistics (Hyndman-Fan 7). */
double stats_quantile(const double *sorted, size_t n, double q);
/* v[n] with the batch number of each sample; samples of one batch are resampled together, since they are
 * correlated.  step: one timer step in the unit of v.  seed: of the bootstrap, so that it is repeatable.
 * 0 or -EINVAL (n == 0) or -ENOMEM. */
int stats_summarise(const double *v, const uint32_t *batch, size_t n, double step,
		    uint64_t seed, struct stats *out);
/* The same for samples of several launches: first[launches] is the first batch number of each, ascending.  The interval is
 * then of launches drawn, and batches of each drawn launch, and widened by Student's t for few launches. */
int stats_summarise_launches(const double *v, const uint32_t *batch, size_t n,
			     const uint32_t *first, unsigned launches, double step,
			     uint64_t seed, struct stats *out);
/* COUNT medians of resamples (batches drawn with replacement), in the order drawn.  0 or -EINVAL or -ENOMEM. */
int stats_bootstrap(const double *v, const uint32_t *batch, size_t n, uint64_t seed,
		    double *medians, unsigned count);
int stats_bootstrap_launches(const double *v, const uint32_t *batch, size_t n,
			     const uint32_t *first, unsigned launches, uint64_t seed,
			     double *medians, unsigned count);
/* splitmix64/xoshiro-like generator: next value of the state. */
uint64_t stats_rand(uint64_t *state);
/* Fisher-Yates. */
void stats_shuffle(uint32_t *v, size_t n, uint64_t *state);
#endif
