/* SPDX-License-Identifier: Apache-2.0
 * launch.c: run a kernel and read its clock.
 */
#include <stdlib.h>

#include "err.h"
#include "nic/guard.h"
#include "path/launch.h"

int launch_kernel(struct env *e, const struct dev_kernel *k, const void *args,
		  double *wall_ns)
{
	uint64_t t0, t1;
	int err;

	memset(e->result, 0xff, sizeof *e->result);
	t0 = clock_host_ticks();
	err = sm_launch(e->sm, k, args);
	if (!err)
		err = sm_sync(e->sm);
	t1 = clock_host_ticks();
	if (!err)
		*wall_ns = clock_ns(&e->host_clock, t1 - t0);
	return err;
}

int launch_submitting(struct env *e, const struct dev_kernel *k, const void *args,
		      double *wall_ns)
{
	int err = guard_on(), launched;
	unsigned touches;

	if (err)
		return err;
	launched = launch_kernel(e, k, args, wall_ns);
	touches = guard_off();
	return launched || !touches
		       ? launched
		       : err_say(-EPERM,
				 "the CPU touched the doorbell page %u times while the GPU was to submit (kernel %s): "
				 "this is not a GPU-submitted put",
				 touches, k->name);
}

struct clock_fit launch_clock(const struct env *e)
{
	const struct dev_result *r = e->result;
	struct clock_fit c = e->sm_clock;
	double wall = clock_ns(&e->sm_wall, r->exit_wall - r->entry_wall);

	if (sm_is_gpu(e->sm) && wall > 1000.0 * e->sm_wall.step_ns)
		c.ns_per_tick = wall / (double)(r->exit - r->entry);
	return c;
}

static int by_ticks(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

double launch_overhead_ns(const struct env *e, const struct clock_fit *c)
{
	uint64_t sorted[DEV_BASELINE];

	memcpy(sorted, e->result->baseline, sizeof sorted);
	qsort(sorted, DEV_BASELINE, sizeof *sorted, by_ticks);
	return clock_ns(c, sorted[DEV_BASELINE / 2]);
}

int launch_timer_series(const struct env *e, struct batch *b, const struct clock_fit *c)
{
	double *v = batch_series(b, "timer", DEV_BASELINE);

	if (!v)
		return err_say(-ENOMEM, "no memory for samples");
	for (unsigned i = 0; i < DEV_BASELINE; i++)
		v[i] = clock_ns(c, e->result->baseline[i]);
	return 0;
}
