/* SPDX-License-Identifier: Apache-2.0
 * launch_cuda.cu: how a CPU learns that a stream has come this far: by asking an event, by a callback.
 */
#include <cuda_runtime.h>
#include <stdlib.h>

#include "clock.h"
#include "launch_dev.h"
#include "sm/cuda_try.h"

struct launch_cuda {
	cudaStream_t stream;
	cudaEvent_t event;
	uint64_t called; /* by the callback: how often */
};

extern "C" int launch_cuda_open(struct launch_cuda **out)
{
	struct launch_cuda *l = (struct launch_cuda *)calloc(1, sizeof *l);
	int err = 0;

	*out = NULL;
	if (!l)
		return err_say(-ENOMEM, "no memory for a stream");
	CUDA_TRY(cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking), err, out);
	CUDA_TRY(cudaEventCreateWithFlags(&l->event, cudaEventDisableTiming), err, out);
	*out = l;
	return 0;
out:
	launch_cuda_close(l);
	return err;
}

extern "C" void launch_cuda_close(struct launch_cuda *l)
{
	if (!l)
		return;
	if (l->stream) {
		cudaStreamSynchronize(l->stream); /* no callback is under way */
		cudaStreamDestroy(l->stream);
	}
	if (l->event)
		cudaEventDestroy(l->event);
	free(l);
}

extern "C" int launch_cuda_event_query(struct launch_cuda *l, uint64_t *ticks, uint32_t n,
				       uint64_t deadline_ticks)
{
	int err = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t t0 = clock_host_ticks();
		cudaError_t rc;

		CUDA_TRY(cudaEventRecord(l->event, l->stream), err, out);
		do
			rc = cudaEventQuery(l->event);
		while (rc == cudaErrorNotReady &&
		       clock_host_ticks() - t0 < deadline_ticks);
		ticks[i] = clock_host_ticks() - t0;
		if (rc == cudaErrorNotReady) {
			cudaGetLastError();
			return err_say(
				-ETIMEDOUT,
				"an event on an idle stream was not done within its deadline");
		}
		CUDA_TRY(rc, err, out);
	}
out:
	return err;
}

static void CUDART_CB called(void *arg)
{
	__atomic_add_fetch((uint64_t *)arg, 1, __ATOMIC_RELEASE);
}

extern "C" int launch_cuda_callback(struct launch_cuda *l, uint64_t *ticks, uint32_t n,
				    uint64_t deadline_ticks)
{
	int err = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t want = __atomic_load_n(&l->called, __ATOMIC_RELAXED) + 1;
		uint64_t t0 = clock_host_ticks(), now;

		CUDA_TRY(cudaLaunchHostFunc(l->stream, called, &l->called), err, out);
		do
			now = clock_host_ticks();
		while (__atomic_load_n(&l->called, __ATOMIC_ACQUIRE) != want &&
		       now - t0 < deadline_ticks);
		ticks[i] = clock_host_ticks() - t0;
		if (now - t0 >= deadline_ticks)
			return err_say(
				-ETIMEDOUT,
				"a callback on an idle stream was not called within its deadline");
		CUDA_TRY(cudaStreamSynchronize(l->stream), err, out);
	}
out:
	return err;
}
