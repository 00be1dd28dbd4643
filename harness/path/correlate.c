/* SPDX-License-Identifier: Apache-2.0
 * correlate.c: the CPU's half: count, and see the answer.
 */
#include "err.h"
#include "path/correlate.h"
#include "path/correlate_dev.h"

#define DEADLINE_NS 1e9

#pragma weak correlate_kernel_cuda

/* One exchange after the other; the clock in the answer was read between asking and seeing. */
static int exchange(const struct env *e, volatile uint64_t *flags, struct sm_moment *m)
{
	const uint64_t late = clock_monotonic_raw_ns() + (uint64_t)DEADLINE_NS;

	m->bound_ns = 1e18;
	for (uint64_t i = 1; i <= CORRELATE_TURNS; i++) {
		uint64_t asked = clock_host_ticks(), seen;
		double half;

		__atomic_store_n(&flags[0], i, __ATOMIC_RELEASE);
		while (__atomic_load_n(&flags[8], __ATOMIC_ACQUIRE) != i)
			if (clock_monotonic_raw_ns() > late)
				return err_say(-ETIMEDOUT,
					       "the SM did not answer with its clock");
		seen = clock_host_ticks();
		half = clock_ns(&e->host_clock, seen - asked) / 2;
		if (half >= m->bound_ns)
			continue;
		m->bound_ns = half;
		m->host = asked + (seen - asked) / 2;
		m->wall = flags[9];
	}
	return 0;
}

int correlate(struct env *e, struct sm_moment *m)
{
	uint64_t *flags;
	struct correlate_args a = {.result = e->result};
	int err, ended;

	if (!sm_is_gpu(e->sm)) {
		*m = (struct sm_moment){0};
		return 0;
	}
	err = sm_alloc(e->sm, 4096, SM_HOST, (void **)&flags);
	if (err)
		return err;
	a.ask = flags;
	a.answer = flags + 8; /* a line of its own */
	a.deadline_ticks = (uint64_t)(DEADLINE_NS / e->sm_clock.ns_per_tick);
	err = sm_launch(e->sm, &correlate_kernel_cuda, &a);
	if (!err) {
		err = exchange(e, flags, m);
		ended = sm_sync(e->sm);
		err = err ? err : ended;
	}
	sm_free(e->sm, flags, 4096, SM_HOST);
	return err;
}

double correlate_to_host(const struct env *e, const struct sm_moment *m,
			 const struct clock_fit *launch, uint64_t sm_ticks)
{
	const struct dev_result *r = e->result;
	double wall;

	if (!sm_is_gpu(e->sm))
		return (double)sm_ticks;
	wall = (double)(int64_t)(r->entry_wall - m->wall) * e->sm_wall.ns_per_tick +
	       (double)(int64_t)(sm_ticks - r->entry) * launch->ns_per_tick;
	return (double)m->host + wall / e->host_clock.ns_per_tick;
}
