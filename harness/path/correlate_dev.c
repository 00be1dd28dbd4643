/* SPDX-License-Identifier: Apache-2.0
 * correlate_dev.c: answer each count of the CPU with the clock that SMs share.
 */
#include "path/correlate_dev.h"
#include "path/dev_loop.h"

DEV void correlate_loop(const struct correlate_args *a)
{
	DEV_SCRATCH(uint64_t, baseline, DEV_BASELINE);
	struct dev_result r;
	uint32_t i;

	dev_result_open(&r);
	dev_timer_baseline(baseline, DEV_BASELINE);
	for (i = 1; i <= CORRELATE_TURNS; i++) {
		r.status = dev_wait_flag((const uint8_t *)a->ask, i, ~0ull,
					 a->deadline_ticks);
		if (r.status != DEV_OK)
			break;
		dev_st8b(&a->answer[1], dev_wall());
		/* This thread and the CPU: the clock is there before the count that announces it. */
		dev_fence_sys();
		dev_st8b(&a->answer[0], i);
	}
	dev_result_close(&r, a->result, i - 1, 0, NULL, NULL, baseline);
}

DEV_KERNEL(correlate, struct correlate_args, correlate_loop(a))
DEV_C const struct dev_kernel
	DEV_NAME(correlate_kernel) = DEV_ENTRY(correlate, struct correlate_args);
