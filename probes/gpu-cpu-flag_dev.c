/* SPDX-License-Identifier: Apache-2.0
 * gpu-cpu-flag_dev.c: the SM's side: store the request flag, poll for the reply.
 */
#include "gpu-cpu-flag_dev.h"
#include "path/dev_loop.h"

DEV void flag_loop(const struct flag_args *a)
{
	DEV_SCRATCH(uint64_t, t, FLAG_TURNS);
	DEV_SCRATCH(uint64_t, baseline, DEV_BASELINE);
	struct dev_result r;
	uint32_t i;

	dev_result_open(&r);
	dev_timer_baseline(baseline, DEV_BASELINE);
	for (i = 0; i < FLAG_TURNS; i++) {
		uint64_t t0 = dev_clock(), t1;

		/* SM and CPU: the flag is its own payload, nothing else is ordered by it. */
		dev_st8b(a->ping, a->first + i);
		r.status = dev_wait_flag(a->pong, a->first + i, ~0ull, a->deadline_ticks);
		t1 = dev_clock();
		if (r.status != DEV_OK)
			break;
		t[i] = t1 - t0;
	}
	dev_result_close(&r, a->result, i, 1, t, a->stamps, baseline);
}

DEV_KERNEL(flag_ping, struct flag_args, flag_loop(a))
DEV_C const struct dev_kernel DEV_NAME(flag_kernel) = DEV_ENTRY(flag_ping,
								struct flag_args);
