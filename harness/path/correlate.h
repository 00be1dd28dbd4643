/* SPDX-License-Identifier: Apache-2.0
 * correlate.h: the clock that SMs share beside the host's: the SM answers a flag of the CPU with its clock.
 */
#ifndef PUTSCOPE_CORRELATE_H
#define PUTSCOPE_CORRELATE_H
#include "rig.h"

/* At `wall` (ticks of env->sm_wall) the host's counter stood at `host`, within bound_ns. */
struct sm_moment {
	uint64_t wall, host;
	double bound_ns;
};
/* The tightest of some exchanges; a host thread's clock is the host's: bound 0. */
int correlate(struct env *e, struct sm_moment *m);
/* Host ticks of a reading of the last launch's SM clock. */
double correlate_to_host(const struct env *e, const struct sm_moment *m,
			 const struct clock_fit *launch, uint64_t sm_ticks);
#endif
