/* SPDX-License-Identifier: Apache-2.0
 * dev.h: loads, stores, fences and timers of device code, for the GPU and for host threads that play an SM.
 *
 * One source, two SMs: a *_dev.c file is compiled by nvcc (GPU) and by gcc (host threads).  What each call
 * orders is said in the words of rdma-core's udma_barrier.h: the two parties, the guarantee between them.
 * Sources: PTX ISA 8.x sections "ld", "st", "membar/fence"; rdma-core util/udma_barrier.h for the host side.
 */
#ifndef PUTSCOPE_DEV_H
#define PUTSCOPE_DEV_H

#include <stddef.h>
#include <stdint.h>
#include "sm/sm.h"

#ifdef __CUDACC__ /* ------------------------------------------------------------------ the GPU */

#define DEV static __device__ __forceinline__
#define DEV_NAME(n) n##_cuda
#define DEV_C extern "C"
/* Per-launch scratch that no fence has to drain: shared memory. */
#define DEV_SCRATCH(type, name, n) __shared__ type name[n]
/* KERNEL is named once for both SMs; `body` sees its arguments as `a`. */
#define DEV_KERNEL(kernel, type, body)                 \
	static __global__ void kernel##_gpu(type args) \
	{                                              \
		const type *a = &args;                 \
		body;                                  \
	}
#define DEV_ENTRY_THREADS(kernel, type, threads)                                 \
	{                                                                        \
#kernel, sizeof(type), NULL, (const void *)kernel##_gpu, threads \
	}
#define DEV_WARPS 1 /* a second warp can run beside the first */
#define DEV_LANE threadIdx.x
#define DEV_SYNC() __syncthreads()

/* v is in a register from here on; see the host's. */
#define DEV_READY(v) asm volatile("" : "+l"(v))

DEV uint64_t dev_clock(void)
{
	return (uint64_t)clock64();
}
/* The same where only stores follow. */
DEV uint64_t dev_clock_before_stores(void)
{
	return dev_clock();
}
/* A clock that the whole GPU shares; it steps (32 ns on an H200). */
DEV uint64_t dev_wall(void)
{
	uint64_t t;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
	return t;
}
DEV uint32_t dev_be32(uint32_t v)
{
	return __byte_perm(v, 0, 0x0123);
}
DEV uint64_t dev_be64(uint64_t v)
{
	return (uint64_t)dev_be32((uint32_t)v) << 32 | dev_be32((uint32_t)(v >> 32));
}

/* One 16-byte store, weak: ordered for nobody until a fence or release follows. */
DEV void dev_st16(void *p, uint64_t lo, uint64_t hi)
{
	asm volatile("st.global.v2.b64 [%0], {%1, %2};" ::"l"(p), "l"(lo), "l"(hi)
		     : "memory");
}
/* One 16-byte store that a CPU sees whole: validity may sit inside it.  Before sm_90 there is no b128 store
 * and the pair may be seen half; a reader must therefore find validity in both halves. */
DEV void dev_st16_whole(void *p, uint64_t lo, uint64_t hi)
{
#if __CUDA_ARCH__ >= 900
	asm volatile(
		"{ .reg .b128 v; mov.b128 v, {%1, %2}; st.relaxed.sys.global.b128 [%0], v; }" ::
			"l"(p),
		"l"(lo), "l"(hi)
		: "memory");
#else
	asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(p), "l"(lo),
		     "l"(hi)
		     : "memory");
#endif
}
DEV void dev_st8b(void *p, uint64_t v)
{
	asm volatile("st.relaxed.sys.global.b64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
DEV void dev_st4b(void *p, uint32_t v)
{
	asm volatile("st.relaxed.sys.global.b32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
DEV void dev_st1b(void *p, uint8_t v)
{
	asm volatile("st.relaxed.sys.global.b8 [%0], %1;" ::"l"(p), "r"((uint32_t)v)
		     : "memory");
}
DEV uint32_t dev_ld4b(const void *p)
{
	uint32_t v;
	asm volatile("ld.relaxed.sys.global.b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
}
DEV uint64_t dev_ld8b(const void *p)
{
	uint64_t v;
	asm volatile("ld.relaxed.sys.global.b64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}
/* The doorbell register: MMIO, performed once, never merged (PTX ISA "st.mmio").  Orders nothing itself. */
DEV void dev_st_mmio8b(void *p, uint64_t v)
{
	asm volatile("st.mmio.relaxed.sys.global.b64 [%0], %1;" ::"l"(p), "l"(v)
		     : "memory");
}
/* BlueFlame: one block of 64 B into the register, in ascending order.  Strong stores: weak ones may linger in the SM until
 * something pushes them. */
DEV void dev_st_blueflame(uint8_t *reg, const uint64_t *w)
{
	for (int k = 0; k < 8; k += 2)
		dev_st16_whole(reg + 8 * k, w[k], w[k + 1]);
}
/* Release stores: this thread's earlier writes are visible, to threads of this GPU (gpu) or to the CPU and to
 * devices (sys), before the stored value is.  gpu scope promises nothing to a NIC or a CPU. */
DEV void dev_st_release_gpu8b(void *p, uint64_t v)
{
	asm volatile("st.release.gpu.global.b64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
DEV void dev_st_release_sys8b(void *p, uint64_t v)
{
	asm volatile("st.release.sys.global.b64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
/* Fences: this thread's earlier accesses against its later ones, as seen by the scope's observers. */
DEV void dev_fence_gpu(void)
{
	asm volatile("fence.acq_rel.gpu;" ::: "memory");
}
DEV void dev_fence_sys(void)
{
	asm volatile("fence.acq_rel.sys;" ::: "memory");
}
DEV void dev_threadfence(void)
{
	__threadfence();
}
/* Add and hand back the old value: atomic for this GPU's threads (gpu), or for the CPU and devices too (sys).  The addend should
 * differ between lanes: of one alike in all the compiler makes a vote first. */
DEV uint64_t dev_atomic_add_gpu8b(void *p, uint64_t v)
{
	uint64_t old;
	asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
		     : "=l"(old)
		     : "l"(p), "l"(v)
		     : "memory");
	return old;
}
DEV uint64_t dev_atomic_add_sys8b(void *p, uint64_t v)
{
	uint64_t old;
	asm volatile("atom.relaxed.sys.global.add.u64 %0, [%1], %2;"
		     : "=l"(old)
		     : "l"(p), "l"(v)
		     : "memory");
	return old;
}
/* A GPU thread that polls has nothing to yield to. */
DEV void dev_relax(void)
{
}
DEV void dev_give_way(void)
{
}

#else /* -------------------------------------------------------------------------- host threads */

#include <sched.h>
#include "clock.h"

#define DEV static inline __attribute__((always_inline))
#define DEV_NAME(n) n##_host
#define DEV_C
#define DEV_SCRATCH(type, name, n) type name[n]
#define DEV_KERNEL(kernel, type, body)                \
	static void kernel##_thread(const void *args) \
	{                                             \
		const type *a = args;                 \
		body;                                 \
	}
#define DEV_ENTRY_THREADS(kernel, type, threads)                      \
	{                                                             \
#kernel, sizeof(type), kernel##_thread, NULL, threads \
	}
#define DEV_WARPS 0
#define DEV_LANE 0
#define DEV_SYNC() \
	do {       \
	} while (0)

/* v is in a register from here on.  Address and value of a doorbell should be, before the fence in front of it: gcc's fence is a
 * locked access to the top of the stack, and what lies there is not known before the fence has ended, so that the CPU
 * could not prepare the doorbell's line meanwhile (125 ns, in those kernels whose variables happened to lie there). */
#define DEV_READY(v) __asm__ volatile("" : "+r"(v))

DEV uint64_t dev_clock(void)
{
	return clock_host_ticks();
}
DEV uint64_t dev_clock_before_stores(void)
{
	return clock_host_ticks_before_stores();
}
DEV uint64_t dev_wall(void)
{
	return clock_host_ticks();
}
DEV uint32_t dev_be32(uint32_t v)
{
	return __builtin_bswap32(v);
}
DEV uint64_t dev_be64(uint64_t v)
{
	return __builtin_bswap64(v);
}

#ifdef __SSE2__
#include <emmintrin.h>
/* One 16-byte store; whole for other cores on CPUs with AVX (Intel SDM 9.1.1, AMD APM 7.3.2). */
DEV void dev_st16(void *p, uint64_t lo, uint64_t hi)
{
	_mm_store_si128((__m128i *)p, _mm_set_epi64x((long long)hi, (long long)lo));
	__asm__ volatile("" ::: "memory");
}
#else
DEV void dev_st16(void *p, uint64_t lo, uint64_t hi)
{
	__asm__ volatile("stp %1, %2, [%0]" ::"r"(p), "r"(lo), "r"(hi) : "memory");
}
#endif
DEV void dev_st16_whole(void *p, uint64_t lo, uint64_t hi)
{
	dev_st16(p, lo, hi);
}
DEV void dev_st8b(void *p, uint64_t v)
{
	__atomic_store_n((uint64_t *)p, v, __ATOMIC_RELAXED);
}
DEV void dev_st4b(void *p, uint32_t v)
{
	__atomic_store_n((uint32_t *)p, v, __ATOMIC_RELAXED);
}
DEV void dev_st1b(void *p, uint8_t v)
{
	__atomic_store_n((uint8_t *)p, v, __ATOMIC_RELAXED);
}
DEV uint32_t dev_ld4b(const void *p)
{
	return __atomic_load_n((const uint32_t *)p, __ATOMIC_RELAXED);
}
DEV uint64_t dev_ld8b(const void *p)
{
	return __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED);
}
/* CPU and NIC: the register is write-combining on a real NIC, so the store is flushed towards the device
 * (mmio_flush_writes in udma_barrier.h). */
DEV void dev_mmio_flush(void)
{
#ifdef __SSE2__
	_mm_sfence();
#else
	__asm__ volatile("dsb st" ::: "memory");
#endif
}
DEV void dev_st_mmio8b(void *p, uint64_t v)
{
	*(volatile uint64_t *)p = v;
	dev_mmio_flush();
}
/* The register is write-combining: the block leaves whole, and the flush sends it off. */
DEV void dev_st_blueflame(uint8_t *reg, const uint64_t *w)
{
	for (int k = 0; k < 8; k += 2)
		dev_st16(reg + 8 * k, w[k], w[k + 1]);
	dev_mmio_flush();
}
/* On x86 every store is a release for WB memory and these cost nothing; a system fence is an mfence.  Host-SM
 * orderings therefore do not rank like a GPU's. */
DEV void dev_st_release_gpu8b(void *p, uint64_t v)
{
	__atomic_store_n((uint64_t *)p, v, __ATOMIC_RELEASE);
	dev_mmio_flush();
}
DEV void dev_st_release_sys8b(void *p, uint64_t v)
{
	dev_st_release_gpu8b(p, v);
}
DEV void dev_fence_gpu(void)
{
	__atomic_thread_fence(__ATOMIC_ACQ_REL);
}
DEV void dev_fence_sys(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
DEV void dev_threadfence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
/* On x86 every atomic is one of all cores: the scopes are alike. */
DEV uint64_t dev_atomic_add_gpu8b(void *p, uint64_t v)
{
	return __atomic_fetch_add((uint64_t *)p, v, __ATOMIC_RELAXED);
}
DEV uint64_t dev_atomic_add_sys8b(void *p, uint64_t v)
{
	return __atomic_fetch_add((uint64_t *)p, v, __ATOMIC_RELAXED);
}
/* One turn of a poll that found nothing: gives the core away when cores are short, else returns at once. */
DEV void dev_relax(void)
{
	if (__builtin_expect(sm_crowded, 0))
		sm_yield();
}
/* A poll has found nothing for tens of microseconds although cores were enough: another process may have taken one, and
 * whoever is to answer may wait for this one. */
DEV void dev_give_way(void)
{
	sm_yield();
}
#endif

#define DEV_WARP 32 /* threads of a warp */
#define DEV_ENTRY(kernel, type) DEV_ENTRY_THREADS(kernel, type, 1)

/* Back-to-back clock reads: the empty baseline of every window timed in this launch. */
DEV void dev_timer_baseline(uint64_t *ticks, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t t0 = dev_clock();
		uint64_t t1 = dev_clock();
		ticks[i] = t1 - t0;
	}
}
#endif
