/* SPDX-License-Identifier: Apache-2.0
 * proxy_hops.c: stamps of SM and worker on one clock, the host's, and their differences.
 *
 * Each stamp belongs to two hops: what a reading costs is subtracted half from the one, half from the other.  So the hops of one
 * put add up to its window exactly, less one reading for each stamp that they are made of.
 */
#include <assert.h>

#include "err.h"
#include "path/launch.h"
#include "path/proxy_hops.h"

#define H(id, name, words) name,
const char *const proxy_hop_names[PROXY_HOPS] = {PROXY_HOP_LIST(H)};
#undef H
#define H(id, name, words) words,
const char *const proxy_hop_words[PROXY_HOPS] = {PROXY_HOP_LIST(H)};
#undef H

enum { SM_BEGIN, SM_STORED, SM_SEEN, SM_STAMPS };

/* Moments of put i in ns, on the host's clock, from the moment when the worker found it. */
static void moments_of(const struct put *p, const struct sm_moment *m,
		       const struct clock_fit *c, uint32_t i,
		       double moment[PROXY_HOPS + 1])
{
	const uint64_t *sm = p->env->stamps + (size_t)SM_STAMPS * i,
		       *worker = pool_stamps(p->impl) + (size_t)POOL_STAMPS * i;
	const uint64_t zero = worker[POOL_FOUND];
	const double host_ns = p->env->host_clock.ns_per_tick,
		     begin = (correlate_to_host(p->env, m, c, sm[SM_BEGIN]) -
			      (double)zero) *
			     host_ns;

	moment[0] = begin;
	moment[1] = begin + (double)(sm[SM_STORED] - sm[SM_BEGIN]) * c->ns_per_tick;
	for (unsigned k = 0; k < POOL_STAMPS; k++)
		moment[2 + k] = (double)(int64_t)(worker[k] - zero) * host_ns;
	moment[PROXY_HOPS] =
		begin + (double)(sm[SM_SEEN] - sm[SM_BEGIN]) * c->ns_per_tick;
}

int proxy_hop_series(struct put *p, struct batch *b, const struct sm_moment *m)
{
	const struct clock_fit c = launch_clock(p->env);
	const double sm_ns = p->c->timer_overhead_ns,
		     worker_ns =
			     clock_ns(&p->env->host_clock, pool_overhead_ticks(p->impl));
	double *v[PROXY_HOPS], *bound, *timer, *cycle, moment[PROXY_HOPS + 1];

	static_assert(PROXY_HOPS == POOL_STAMPS + 2, "a stamp between each two hops");
	if (!p->slots.ops)
		return 0;
	bound = batch_series(b, "clock_bound", 1);
	timer = batch_series(b, "timer_worker", 1);
	cycle = batch_series(b, "core_cycle", 1);
	if (!bound || !timer || !cycle)
		return err_say(-ENOMEM, "no memory for samples");
	*bound = m->bound_ns;
	*timer = worker_ns;
	*cycle = pool_cycle_ns(p->impl, 0);
	for (unsigned h = 0; h < PROXY_HOPS; h++) {
		v[h] = batch_series(b, proxy_hop_names[h], p->slots.ops);
		if (!v[h])
			return err_say(-ENOMEM, "no memory for samples");
	}
	for (uint32_t i = 0; i < p->slots.ops; i++) {
		moments_of(p, m, &c, i, moment);
		for (unsigned h = 0; h < PROXY_HOPS; h++) {
			const double from = h < 2 ? sm_ns : worker_ns,
				     to = h == 0 || h == PROXY_GPU_SEES ? sm_ns
									: worker_ns;

			v[h][i] = moment[h + 1] - moment[h] - (from + to) / 2;
		}
	}
	return 0;
}
