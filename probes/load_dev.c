/* SPDX-License-Identifier: Apache-2.0
 * load_dev.c: a walk from node to node, each load timed by a pair of clock reads of its own.
 */
#include "load_dev.h"
#include "path/dev_loop.h"
#include "probe_dev.h"

DEV uint64_t load_next(uint64_t node, int scope)
{
	const void *p = (const void *)(uintptr_t)node;

	return scope == LOAD_GPU ? probe_ld8_gpu(p) : dev_ld8b(p);
}

DEV void load_loop(const struct load_args *a, int scope)
{
	DEV_SCRATCH(uint64_t, t, LOAD_TURNS);
	DEV_SCRATCH(uint64_t, baseline, DEV_BASELINE);
	DEV_SCRATCH(uint64_t, used, 1);
	uint64_t node = a->first;
	struct dev_result r;

	dev_result_open(&r);
	for (uint64_t i = 0; i < a->warm; i++)
		node = load_next(node, scope);
	dev_timer_baseline(baseline, DEV_BASELINE);
	for (uint32_t i = 0; i < LOAD_TURNS; i++) {
		uint64_t t0 = dev_clock(), t1;

		node = load_next(node, scope);
		probe_use(used, node);
		t1 = dev_clock();
		t[i] = t1 - t0;
	}
	dev_st8b(&a->stamps[LOAD_TURNS], node);
	dev_result_close(&r, a->result, LOAD_TURNS, 1, t, a->stamps, baseline);
}

DEV_KERNEL(load_gpu, struct load_args, load_loop(a, LOAD_GPU))
DEV_KERNEL(load_sys, struct load_args, load_loop(a, LOAD_SYS))

/* In the order of enum load_scope. */
DEV_C const struct dev_kernel DEV_NAME(load_kernels)[LOAD_SCOPES] = {
	DEV_ENTRY(load_gpu, struct load_args),
	DEV_ENTRY(load_sys, struct load_args),
};
