/* SPDX-License-Identifier: Apache-2.0
 * mem.c: DMA by memcpy, by process_vm_readv and writev, or by the CUDA driver's copy engine.
 *
 * libcuda is used only if the program itself has loaded it; constants are those of cuda.h's driver API.
 */
#include <dlfcn.h>
#include <string.h>
#include <sys/uio.h>

#include "fabric.h"
#include "log.h"
#include "mem.h"

#define CU_ATTRIBUTE_CONTEXT 1	   /* CU_POINTER_ATTRIBUTE_CONTEXT */
#define CU_ATTRIBUTE_MEMORY_TYPE 2 /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
#define CU_MEMORY_DEVICE 2	   /* CU_MEMORYTYPE_DEVICE */
#define CU_STREAM_NON_BLOCKING 1

static struct {
	int (*attribute)(void *out, int which, uint64_t p);
	int (*set_context)(void *ctx);
	int (*copy)(uint64_t to, uint64_t from, size_t n, void *stream);
	int (*make_stream)(void **stream, unsigned flags);
	int (*synchronize)(void *stream);
	void *stream;
} cu;

static int load_cuda(void)
{
	void *h;

	if (cu.synchronize)
		return 0;
	h = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (!h)
		return -1;
	*(void **)&cu.attribute = dlsym(h, "cuPointerGetAttribute");
	*(void **)&cu.set_context = dlsym(h, "cuCtxSetCurrent");
	*(void **)&cu.copy = dlsym(h, "cuMemcpyAsync");
	*(void **)&cu.make_stream = dlsym(h, "cuStreamCreate");
	*(void **)&cu.synchronize = dlsym(h, "cuStreamSynchronize");
	return cu.attribute && cu.set_context && cu.copy && cu.make_stream &&
			       cu.synchronize
		       ? 0
		       : -1;
}

void *mem_gpu_context(uint64_t p)
{
	unsigned type = 0;
	void *ctx = NULL;

	if (load_cuda() || cu.attribute(&type, CU_ATTRIBUTE_MEMORY_TYPE, p) ||
	    type != CU_MEMORY_DEVICE)
		return NULL;
	return cu.attribute(&ctx, CU_ATTRIBUTE_CONTEXT, p) ? NULL : ctx;
}

struct vcx_addr mem_here(void *p)
{
	return (struct vcx_addr){(uint64_t)(uintptr_t)p, NULL, vcx_me};
}

struct vcx_addr mem_add(struct vcx_addr a, uint64_t n)
{
	a.p += n;
	return a;
}

int mem_read(pid_t pid, void *to, uint64_t from, size_t n)
{
	struct iovec here = {to, n}, there = {(void *)(uintptr_t)from, n};

	if (pid == vcx_me) {
		memcpy(to, (const void *)(uintptr_t)from, n);
		return 0;
	}
	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)n ? 0 : -1;
}

int mem_write(pid_t pid, uint64_t to, const void *from, size_t n)
{
	struct iovec here = {(void *)(uintptr_t)from, n},
		     there = {(void *)(uintptr_t)to, n};

	if (pid == vcx_me) {
		memcpy((void *)(uintptr_t)to, from, n);
		return 0;
	}
	return process_vm_writev(pid, &here, 1, &there, 1, 0) == (ssize_t)n ? 0 : -1;
}

uint32_t mem_read32(pid_t pid, uint64_t from)
{
	uint32_t v = 0;

	if (pid == vcx_me)
		return __atomic_load_n((const uint32_t *)(uintptr_t)from,
				       __ATOMIC_ACQUIRE);
	mem_read(pid, &v, from, sizeof v);
	return v;
}

static int gpu_copy(void *ctx, uint64_t to, uint64_t from, size_t n)
{
	static __thread void *current;

	if (current != ctx && cu.set_context(ctx))
		return -1;
	current = ctx;
	if (!cu.stream && cu.make_stream(&cu.stream, CU_STREAM_NON_BLOCKING))
		return -1;
	return cu.copy(to, from, n, cu.stream) || cu.synchronize(cu.stream) ? -1 : 0;
}

int mem_copy(struct vcx_addr to, struct vcx_addr from, size_t n)
{
	void *ctx = to.gpu ? to.gpu : from.gpu;

	if (ctx && (to.pid != vcx_me || from.pid != vcx_me)) {
		LOG(0,
		    "GPU memory of another process cannot be reached by the virtual NIC: use host memory, or one process");
		return -1;
	}
	if (ctx)
		return gpu_copy(ctx, to.p, from.p, n);
	if (to.pid != vcx_me && from.pid != vcx_me)
		return -1;
	return to.pid != vcx_me
		       ? mem_write(to.pid, to.p, (const void *)(uintptr_t)from.p, n)
		       : mem_read(from.pid, (void *)(uintptr_t)to.p, from.p, n);
}
