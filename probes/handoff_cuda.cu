/* SPDX-License-Identifier: Apache-2.0
 * handoff_cuda.cu: two blocks of one thread, each alone on its SM, that pass flags to and fro through the L2.
 *
 * sm_launch starts one block; this probe needs two that run at once, and so launches by itself.
 */
#include "handoff.h"
#include "path/dev_loop.h"
#include "probe_dev.h"
#include "sm/cuda_try.h"

/* Two threads of this GPU: earlier writes of the one that stores are visible to the one that has loaded the value. */
DEV uint64_t ld_acquire_gpu(const uint64_t *p)
{
	uint64_t v;
	asm volatile("ld.acquire.gpu.global.b64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}
/* The flag is all there is: nothing else is ordered by it. */
DEV void st_relaxed_gpu(uint64_t *p, uint64_t v)
{
	asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
DEV void st_weak(uint64_t *p, uint64_t v)
{
	asm volatile("st.global.b64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
DEV uint64_t ld_weak(const uint64_t *p)
{
	uint64_t v;
	asm volatile("ld.global.b64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}
DEV uint64_t sm_id(void)
{
	uint32_t id;
	asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
	return id;
}

DEV void give(uint64_t *flag, uint64_t v, int kind)
{
	if (kind == HANDOFF_RELAXED)
		st_relaxed_gpu(flag, v);
	else
		dev_st_release_gpu8b(flag, v);
}

DEV uint32_t take(const uint64_t *flag, uint64_t want, uint64_t deadline, int kind)
{
	struct dev_patience p = {0, 0};

	while ((kind == HANDOFF_RELAXED ? probe_ld8_gpu(flag) : ld_acquire_gpu(flag)) !=
	       want)
		if (dev_turn(&p) > deadline)
			return DEV_DEADLINE;
	return DEV_OK;
}

DEV void ask(const struct handoff_args *a, struct handoff_sides *sides, int kind)
{
	DEV_SCRATCH(uint64_t, t, HANDOFF_TURNS);
	DEV_SCRATCH(uint64_t, baseline, DEV_BASELINE);
	struct dev_result r;
	uint32_t i;

	dev_result_open(&r);
	dev_timer_baseline(baseline, DEV_BASELINE);
	for (i = 0; i < HANDOFF_TURNS; i++) {
		uint64_t t0 = dev_clock(), t1;

		if (kind == HANDOFF_PAYLOAD)
			st_weak(a->payload, a->first + i);
		give(a->ping, a->first + i, kind);
		r.status = take(a->pong, a->first + i, a->deadline_ticks, kind);
		t1 = dev_clock();
		if (r.status != DEV_OK)
			break;
		t[i] = t1 - t0;
	}
	sides->asking_sm = sm_id();
	dev_result_close(&r, a->result, i, 1, t, a->stamps, baseline);
}

DEV void answer(const struct handoff_args *a, struct handoff_sides *sides, int kind)
{
	uint64_t stale = 0;
	uint32_t i;

	for (i = 0; i < HANDOFF_TURNS; i++) {
		if (take(a->ping, a->first + i, a->deadline_ticks, kind) != DEV_OK)
			break;
		if (kind == HANDOFF_PAYLOAD)
			stale += ld_weak(a->payload) != a->first + i;
		give(a->pong, a->first + i, kind);
	}
	sides->answering_sm = sm_id();
	sides->answered = i;
	sides->stale = stale;
}

DEV void handoff(const struct handoff_args *a, int kind)
{
	struct handoff_sides *sides = (struct handoff_sides *)(a->stamps + HANDOFF_TURNS);

	if (blockIdx.x == 0)
		ask(a, sides, kind);
	else
		answer(a, sides, kind);
}

DEV_KERNEL(handoff_relaxed, struct handoff_args, handoff(a, HANDOFF_RELAXED))
DEV_KERNEL(handoff_acq_rel, struct handoff_args, handoff(a, HANDOFF_ACQ_REL))
DEV_KERNEL(handoff_payload, struct handoff_args, handoff(a, HANDOFF_PAYLOAD))

/* In the order of enum handoff_kind. */
static const struct dev_kernel kernels[HANDOFF_KINDS] = {
	DEV_ENTRY(handoff_relaxed, struct handoff_args),
	DEV_ENTRY(handoff_acq_rel, struct handoff_args),
	DEV_ENTRY(handoff_payload, struct handoff_args),
};

/* So much shared memory that a second block does not fit on the same SM: all that a block may have beside its own. */
static int whole_sm(const void *kernel, int *bytes)
{
	struct cudaFuncAttributes f;
	int device, most, err = 0;

	CUDA_TRY(cudaGetDevice(&device), err, out);
	CUDA_TRY(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin,
					device),
		 err, out);
	CUDA_TRY(cudaFuncGetAttributes(&f, kernel), err, out);
	*bytes = most - (int)f.sharedSizeBytes;
	CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
				      *bytes),
		 err, out);
out:
	return err;
}

extern "C" int handoff_cuda_run(const struct handoff_args *a, enum handoff_kind kind)
{
	const void *kernel = kernels[kind].gpu;
	void *params[] = {(void *)a};
	cudaStream_t stream = NULL;
	int bytes = 0, err = 0;

	OUR_TRY(whole_sm(kernel, &bytes), err, out);
	CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), err, out);
	CUDA_TRY(
		cudaLaunchKernel(kernel, dim3(2), dim3(1), params, (size_t)bytes, stream),
		err, out);
	CUDA_TRY(cudaStreamSynchronize(stream), err, out);
out:
	if (stream)
		cudaStreamDestroy(stream);
	return err;
}
