/* SPDX-License-Identifier: Apache-2.0
 * sm_dev.c: one instruction between two readings of the SM's clock; what it needs before it stands outside.
 */
#include "path/dev_loop.h"
#include "probe_dev.h"
#include "sm_dev.h"

DEV uint8_t *line(const struct sm_args *a, uint32_t i)
{
	return a->at + (size_t)(i % SM_LINES) * SM_LINE_BYTES;
}

DEV void one_store(uint8_t *p, uint64_t v, int kind)
{
	if (kind == STORE_4)
		dev_st4b(p, (uint32_t)v);
	else if (kind == STORE_8)
		dev_st8b(p, v);
	else if (kind == STORE_16)
		dev_st16(p, v, ~v);
	else
		dev_st_mmio8b(p, v);
}

DEV void one_fence(int scope)
{
	if (scope == FENCE_GPU)
		dev_fence_gpu();
	else
		dev_fence_sys();
}

#define SM_LOOP(a, before, timed)                      \
	DEV_SCRATCH(uint64_t, t, SM_TURNS);            \
	DEV_SCRATCH(uint64_t, baseline, DEV_BASELINE); \
	struct dev_result r;                           \
	dev_result_open(&r);                           \
	dev_timer_baseline(baseline, DEV_BASELINE);    \
	for (uint32_t i = 0; i < SM_TURNS; i++) {      \
		uint64_t t0, t1;                       \
		before;                                \
		t0 = dev_clock();                      \
		timed;                                 \
		t1 = dev_clock();                      \
		t[i] = t1 - t0;                        \
	}                                              \
	dev_result_close(&r, (a)->result, SM_TURNS, 1, t, (a)->stamps, baseline)

/* Nothing is outstanding when the store issues. */
DEV void store_loop(const struct sm_args *a, int kind)
{
	SM_LOOP(a, dev_fence_sys(), one_store(line(a, i), i + 1, kind));
}

DEV void fence_loop(const struct sm_args *a, int scope, uint32_t behind)
{
	SM_LOOP(
		a,
		{
			dev_fence_sys();
			for (uint32_t k = 0; k < behind; k++)
				dev_st16(line(a, k), i, k);
		},
		one_fence(scope));
}

DEV void atomic_loop(const struct sm_args *a, int scope)
{
	DEV_SCRATCH(uint64_t, used, 1);

	SM_LOOP(a, dev_fence_sys(),
		probe_use(used, scope == ATOMIC_GPU
					? dev_atomic_add_gpu8b(a->at, DEV_LANE + 1)
					: dev_atomic_add_sys8b(a->at, DEV_LANE + 1)));
	a->stamps[SM_TURNS] = dev_ld8b(a->at);
}

/* Back-to-back readings: the windows are empty. */
DEV void clock_loop(const struct sm_args *a, int shared)
{
	DEV_SCRATCH(uint64_t, t, SM_TURNS);
	DEV_SCRATCH(uint64_t, baseline, DEV_BASELINE);
	struct dev_result r;

	dev_result_open(&r);
	dev_timer_baseline(baseline, DEV_BASELINE);
	for (uint32_t i = 0; i < SM_TURNS; i++) {
		uint64_t t0 = shared ? dev_wall() : dev_clock(),
			 t1 = shared ? dev_wall() : dev_clock();

		t[i] = t1 - t0;
	}
	dev_result_close(&r, a->result, SM_TURNS, 1, t, a->stamps, baseline);
}

#define ARGS struct sm_args
DEV_KERNEL(store_4, ARGS, store_loop(a, STORE_4))
DEV_KERNEL(store_8, ARGS, store_loop(a, STORE_8))
DEV_KERNEL(store_16, ARGS, store_loop(a, STORE_16))
DEV_KERNEL(store_mmio, ARGS, store_loop(a, STORE_MMIO))
DEV_KERNEL(fence_gpu_0, ARGS, fence_loop(a, FENCE_GPU, 0))
DEV_KERNEL(fence_gpu_1, ARGS, fence_loop(a, FENCE_GPU, 1))
DEV_KERNEL(fence_gpu_16, ARGS, fence_loop(a, FENCE_GPU, 16))
DEV_KERNEL(fence_sys_0, ARGS, fence_loop(a, FENCE_SYS, 0))
DEV_KERNEL(fence_sys_1, ARGS, fence_loop(a, FENCE_SYS, 1))
DEV_KERNEL(fence_sys_16, ARGS, fence_loop(a, FENCE_SYS, 16))
DEV_KERNEL(atomic_gpu, ARGS, atomic_loop(a, ATOMIC_GPU))
DEV_KERNEL(atomic_sys, ARGS, atomic_loop(a, ATOMIC_SYS))
DEV_KERNEL(clock_own, ARGS, clock_loop(a, 0))
DEV_KERNEL(clock_shared, ARGS, clock_loop(a, 1))

DEV_C const struct dev_kernel DEV_NAME(sm_store_kernels)[STORES] = {
	DEV_ENTRY(store_4, ARGS), DEV_ENTRY(store_8, ARGS), DEV_ENTRY(store_16, ARGS),
	DEV_ENTRY(store_mmio, ARGS)};
DEV_C const struct dev_kernel DEV_NAME(fence_kernels)[FENCES][BEHINDS] = {
	{DEV_ENTRY(fence_gpu_0, ARGS), DEV_ENTRY(fence_gpu_1, ARGS),
	 DEV_ENTRY(fence_gpu_16, ARGS)},
	{DEV_ENTRY(fence_sys_0, ARGS), DEV_ENTRY(fence_sys_1, ARGS),
	 DEV_ENTRY(fence_sys_16, ARGS)}};
DEV_C const struct dev_kernel DEV_NAME(atomic_kernels)[ATOMICS] = {
	DEV_ENTRY(atomic_gpu, ARGS), DEV_ENTRY(atomic_sys, ARGS)};
DEV_C const struct dev_kernel DEV_NAME(clock_kernels)[2] = {
	DEV_ENTRY(clock_own, ARGS), DEV_ENTRY(clock_shared, ARGS)};
