/* SPDX-License-Identifier: Apache-2.0
 * probe_dev.h: accesses of device code that probes need beside those of sm/dev.h.
 */
#ifndef PUTSCOPE_PROBE_DEV_H
#define PUTSCOPE_PROBE_DEV_H
#include "sm/dev.h"

#ifdef __CUDACC__
/* A load that threads of this GPU agree on: it passes by the L1 and is answered by the L2 (PTX ISA "ld.relaxed.gpu").
 * Promises nothing about a CPU's or a NIC's stores. */
DEV uint64_t probe_ld8_gpu(const void *p)
{
	uint64_t v;
	asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}
#else
DEV uint64_t probe_ld8_gpu(const void *p)
{
	return dev_ld8b(p);
}
#endif

/* The SM issues in order but does not wait for a load until its value is used: `at` lies in per-launch scratch, so that
 * this store is such a use, and costs its issue alone.  A clock read behind it comes after the value. */
DEV void probe_use(volatile uint64_t *at, uint64_t v)
{
	*at = v;
}
#endif
