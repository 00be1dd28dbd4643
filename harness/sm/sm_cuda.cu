/* SPDX-License-Identifier: Apache-2.0
 * sm_cuda.cu: one CUDA device as the SM: memory, page mapping, launch, clocks.
 *
 * cudart is linked statically and loads the driver at run time, so the same binary starts with and without a
 * GPU.  Nothing here changes clocks, power, persistence or MIG.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "config.h"
#include "err.h"
#include "sm/cuda_try.h"
#include "sm/dev.h"
#include "sm/sm_cuda.h"

#define PAGE_BYTES 4096u
#define CLOCK_READS 64u

struct clock_probe {
	uint64_t clock
		[CLOCK_READS]; /* differences: a store between two reads would be counted as the clock's step */
	uint64_t wall[CLOCK_READS];
	uint64_t clock_first, clock_last, wall_first, wall_last;
};

/* Reads both clocks back to back, then over about `span_ns` of globaltimer to fit one to the other. */
static __global__ void clock_kernel(struct clock_probe *p, uint64_t span_ns)
{
	uint64_t w0, c0, w, c;

	dev_timer_baseline(p->clock, CLOCK_READS);
	for (unsigned i = 0; i < CLOCK_READS; i++)
		p->wall[i] = dev_wall();
	w = dev_wall();
	do
		w0 = dev_wall(); /* start at an edge of the stepping clock */
	while (w0 == w);
	c0 = dev_clock();
	do {
		w = dev_wall();
		c = dev_clock();
	} while (w - w0 < span_ns);
	p->clock_first = c0;
	p->clock_last = c;
	p->wall_first = w0;
	p->wall_last = w;
}

extern "C" int sm_cuda_count(char *why, size_t n)
{
	int count = 0;
	cudaError_t rc = cudaGetDeviceCount(&count);

	if (rc == cudaSuccess && count > 0)
		return count;
	cudaGetLastError();
	snprintf(why, n, "no GPU: %s",
		 rc == cudaSuccess ? "the driver lists none" : cudaGetErrorString(rc));
	return 0;
}

static int gpu_open(struct sm *sm, int gpu)
{
	struct sm_gpu *g = NULL;
	char why[160] = "";
	int count, err = 0;

	/* A first launch beside a spinning kernel can deadlock while modules load lazily. */
	setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	count = sm_cuda_count(why, sizeof why);
	if (gpu >= count)
		return err_say(
			-ENODEV,
			count ? "GPU %d does not exist: the driver lists %d, numbered from 0"
			      : "GPU %d does not exist (%d found): check nvidia-smi",
			gpu, count);
	g = (struct sm_gpu *)calloc(1, sizeof *g);
	if (!g)
		return err_say(-ENOMEM, "no memory for a GPU SM");
	g->device = gpu;
	CUDA_TRY(cudaSetDevice(gpu), err, out);
	CUDA_TRY(cudaGetDeviceProperties(&g->prop, gpu), err, out);
	CUDA_TRY(cudaDriverGetVersion(&g->driver), err, out);
	CUDA_TRY(cudaRuntimeGetVersion(&g->runtime), err, out);
	CUDA_TRY(cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking), err, out);
	CUDA_TRY(cudaEventCreateWithFlags(&g->event, cudaEventDisableTiming), err, out);
	sm->impl = g;
	return 0;
out:
	free(g);
	return err;
}

static void gpu_close(struct sm *sm)
{
	struct sm_gpu *g = (struct sm_gpu *)sm->impl;

	cudaStreamSynchronize(g->stream);
	for (size_t i = 0; i < sm->page_count; i++)
		cudaHostUnregister((void *)sm->pages[i]);
	cudaEventDestroy(g->event);
	cudaStreamDestroy(g->stream);
	free(g);
}

static int gpu_alloc(struct sm *sm, size_t bytes, enum sm_place place, void **ptr)
{
	struct sm_gpu *g = (struct sm_gpu *)sm->impl;
	void *p = NULL;
	int err = 0;

	if (place == SM_GPU) {
		/* To its end: no stream of ours waits for the default one, and a late zero would wipe what it stored. */
		CUDA_TRY(cudaMalloc(&p, bytes), err, out);
		CUDA_TRY(cudaMemsetAsync(p, 0, bytes, g->stream), err, out);
		CUDA_TRY(cudaStreamSynchronize(g->stream), err, out);
	} else {
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (p == MAP_FAILED)
			return err_say(-errno, "mmap of %zu bytes: %s", bytes,
				       strerror(errno));
		CUDA_TRY(cudaHostRegister(p, bytes,
					  cudaHostRegisterMapped |
						  cudaHostRegisterPortable),
			 err, out);
	}
	*ptr = p;
	return 0;
out:
	if (place == SM_GPU)
		cudaFree(p);
	else
		munmap(p, bytes);
	return err;
}

static void gpu_free(struct sm *sm, void *ptr, size_t bytes, enum sm_place place)
{
	(void)sm;
	if (place == SM_GPU) {
		cudaFree(ptr);
		return;
	}
	cudaHostUnregister(ptr);
	munmap(ptr, bytes);
}

static int gpu_map_page(struct sm *sm, void *page, bool io)
{
	unsigned flags = cudaHostRegisterMapped | cudaHostRegisterPortable;
	cudaError_t rc;

	(void)sm;
	rc = cudaHostRegister(page, PAGE_BYTES,
			      flags | (io ? cudaHostRegisterIoMemory : 0));
	if (rc == cudaSuccess || rc == cudaErrorHostMemoryAlreadyRegistered) {
		cudaGetLastError();
		return 0;
	}
	cudaGetLastError();
	if (io)
		return err_say(
			-EPERM,
			"the NVIDIA driver refuses to map the NIC's doorbell page %p into the GPU (%s): load the "
			"nvidia module with NVreg_RegistryDwords=\"PeerMappingOverride=1;\" and reboot",
			page, cudaGetErrorString(rc));
	return err_say(-EPERM, "cudaHostRegister of page %p: %s", page,
		       cudaGetErrorString(rc));
}

static int gpu_dev_ptr(struct sm *sm, void *p, void **dev)
{
	uintptr_t page = (uintptr_t)p & ~(uintptr_t)(PAGE_BYTES - 1);
	void *base;
	int err = 0;

	(void)sm;
	CUDA_TRY(cudaHostGetDevicePointer(&base, (void *)page, 0), err, out);
	*dev = (char *)base + ((uintptr_t)p - page);
out:
	return err;
}

static int gpu_copy(struct sm *sm, void *dst, const void *src, size_t bytes)
{
	struct sm_gpu *g = (struct sm_gpu *)sm->impl;
	int err = 0;

	CUDA_TRY(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, g->stream), err,
		 out);
	CUDA_TRY(cudaStreamSynchronize(g->stream), err, out);
out:
	return err;
}

static int gpu_launch(struct sm *sm, const struct dev_kernel *k, const void *args)
{
	struct sm_gpu *g = (struct sm_gpu *)sm->impl;
	void *params[] = {(void *)args};
	int err = 0;

	CUDA_TRY(
		cudaLaunchKernel(k->gpu, dim3(1), dim3(k->threads), params, 0, g->stream),
		err, out);
out:
	return err;
}

static int gpu_sync(struct sm *sm)
{
	struct sm_gpu *g = (struct sm_gpu *)sm->impl;
	int err = 0;

	CUDA_TRY(cudaStreamSynchronize(g->stream), err, out);
out:
	return err;
}

/* How far the SM clock moved against globaltimer between two fits: clocks that change under load show here. */
static int gpu_fit_once(struct sm *sm, struct clock_probe *dev, struct clock_probe *p,
			double *ns_per_tick)
{
	struct sm_gpu *g = (struct sm_gpu *)sm->impl;
	int err = 0;

	clock_kernel<<<1, 1, 0, g->stream>>>(dev, 20000000ull);
	CUDA_TRY(cudaGetLastError(), err, out);
	CUDA_TRY(cudaMemcpyAsync(p, dev, sizeof *p, cudaMemcpyDeviceToHost, g->stream),
		 err, out);
	CUDA_TRY(cudaStreamSynchronize(g->stream), err, out);
	*ns_per_tick = (double)(p->wall_last - p->wall_first) /
		       (double)(p->clock_last - p->clock_first);
out:
	return err;
}

static int gpu_clocks(struct sm *sm, struct clock_fit *clock, struct clock_fit *wall)
{
	struct clock_probe *dev = NULL, p;
	double first, second;
	int err = 0;

	memset(clock, 0, sizeof *clock);
	memset(wall, 0, sizeof *wall);
	CUDA_TRY(cudaMalloc((void **)&dev, sizeof *dev), err, out);
	OUR_TRY(gpu_fit_once(sm, dev, &p, &first), err,
		out); /* warms the clock up as well */
	OUR_TRY(gpu_fit_once(sm, dev, &p, &first), err, out);
	OUR_TRY(gpu_fit_once(sm, dev, &p, &second), err, out);
	clock->name = "clock64";
	clock->ns_per_tick = second;
	clock->drift_ppm = (second - first) / second * 1e6;
	clock->bound_ns = NAN;
	wall->name = "globaltimer";
	wall->ns_per_tick = 1.0;
	wall->drift_ppm = NAN;
	wall->bound_ns = NAN;
	clock_fit_diffs(clock, p.clock, CLOCK_READS);
	clock_fit_reads(wall, p.wall, CLOCK_READS);
	if (fabs(clock->drift_ppm) > 1000.0)
		clock->warning =
			"the SM clock moved by more than 0.1 % between two fits: it is not settled";
out:
	cudaFree(dev);
	return err;
}

static json_t *gpu_facts(const struct sm *sm)
{
	const struct sm_gpu *g = (const struct sm_gpu *)sm->impl;
	char bus[32];

	snprintf(bus, sizeof bus, "%04x:%02x:%02x.0", g->prop.pciDomainID,
		 g->prop.pciBusID, g->prop.pciDeviceID);
	return json_pack("{s:s, s:i, s:s, s:i, s:i, s:s, s:i, s:i, s:i, s:I}", "kind",
			 "gpu", "device", g->device, "name", g->prop.name, "cc_major",
			 g->prop.major, "cc_minor", g->prop.minor, "pci", bus,
			 "driver_cuda", g->driver, "runtime_cuda", g->runtime, "sm_count",
			 g->prop.multiProcessorCount, "memory_bytes",
			 (json_int_t)g->prop.totalGlobalMem);
}

extern "C" const struct sm_ops sm_cuda_ops = {
	"gpu",		gpu_open,	  gpu_close,	  gpu_alloc,   gpu_free,
	gpu_map_page,	gpu_dev_ptr,	  gpu_copy,	  gpu_launch,  gpu_sync,
	gpu_clocks,	gpu_facts,	  gpu_mark,	  gpu_reached, gpu_call,
	gpu_graph_make, gpu_graph_launch, gpu_graph_free,
};
