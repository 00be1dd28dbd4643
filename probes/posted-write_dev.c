/* SPDX-License-Identifier: Apache-2.0
 * posted-write_dev.c: a long run of 8 B stores to host memory, a clock read between groups of them.
 */
#include "path/dev_loop.h"
#include "posted-write_dev.h"

DEV void posted_group(uint8_t *to, uint64_t value, uint32_t first, int where)
{
	for (uint32_t k = 0; k < POSTED_GROUP; k++)
		dev_st8b(where == POSTED_LINES
				 ? to + (size_t)(first + k) * POSTED_LINE_BYTES
				 : to,
			 value + first + k);
}

DEV void posted_loop(const struct posted_args *a, int where)
{
	DEV_SCRATCH(uint64_t, t, POSTED_GROUPS);
	DEV_SCRATCH(uint64_t, baseline, DEV_BASELINE);
	struct dev_result r;
	uint64_t start, last, now;
	uint32_t i;

	dev_result_open(&r);
	dev_timer_baseline(baseline, DEV_BASELINE);
	start = dev_clock();
	for (i = 0; i < POSTED_RUN_IN; i += POSTED_GROUP)
		posted_group(a->to, a->value, i, where);
	last = dev_clock();
	for (uint32_t g = 0; g < POSTED_GROUPS; g++, i += POSTED_GROUP) {
		posted_group(a->to, a->value, i, where);
		now = dev_clock();
		t[g] = now - last;
		last = now;
	}
	/* This thread and the CPU: all stores of the run are visible before the clock is read again. */
	dev_fence_sys();
	a->stamps[POSTED_GROUPS] = dev_clock() - start;
	dev_result_close(&r, a->result, POSTED_GROUPS, 1, t, a->stamps, baseline);
}

DEV_KERNEL(posted_lines, struct posted_args, posted_loop(a, POSTED_LINES))
DEV_KERNEL(posted_one_word, struct posted_args, posted_loop(a, POSTED_ONE_WORD))

/* In the order of enum posted_where. */
DEV_C const struct dev_kernel DEV_NAME(posted_kernels)[POSTED_WHERES] = {
	DEV_ENTRY(posted_lines, struct posted_args),
	DEV_ENTRY(posted_one_word, struct posted_args),
};
