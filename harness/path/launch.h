/* SPDX-License-Identifier: Apache-2.0
 * launch.h: one launch of a measuring kernel: run it, and turn its clock into nanoseconds.
 */
#ifndef PUTSCOPE_LAUNCH_H
#define PUTSCOPE_LAUNCH_H
#include "case.h"
#include "rig.h"

/* Run k to its end; env->result says how it went.  wall_ns: launch to sync return. */
int launch_kernel(struct env *e, const struct dev_kernel *k, const void *args,
		  double *wall_ns);
/* The same for a kernel that submits: a CPU that touches its doorbell pages meanwhile fails it with -EPERM (nic/guard.h). */
int launch_submitting(struct env *e, const struct dev_kernel *k, const void *args,
		      double *wall_ns);
/* The SM clock's rate during the last launch, from the clock that all SMs share: an SM clock moves with load. */
struct clock_fit launch_clock(const struct env *e);
/* What reading the clock cost in the last launch: the median of its own back-to-back reads. */
double launch_overhead_ns(const struct env *e, const struct clock_fit *c);
/* Those reads as the series "timer". */
int launch_timer_series(const struct env *e, struct batch *b, const struct clock_fit *c);
#endif
