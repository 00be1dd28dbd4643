/* SPDX-License-Identifier: Apache-2.0
 * range.h: named ranges of the run for Nsight Systems (NVTX 3, domain "putscope"): which case does a kernel belong to?
 *
 * Ranges nest, on the thread that pushes them.  Only run.c and engine.c call these, around a batch and never inside one: between
 * a launch and its sync nothing of NVTX runs.  Without a profiler a call is a test of a pointer; built without NVTX, nothing.
 */
#ifndef PUTSCOPE_RANGE_H
#define PUTSCOPE_RANGE_H
#include <stdint.h>

#include "config.h"

/* NVTX categories, by which a profiler can group and filter. */
enum range_kind { RANGE_PHASE = 1, RANGE_CASE, RANGE_WARMUP, RANGE_BATCH };

#if HAVE_NVTX
void range_push(enum range_kind kind, const char *name);
/* The range of a batch, "batch N" or "warm-up N", with N as payload. */
void range_push_batch(uint32_t index, int warmup);
void range_pop(void);
#else
static inline void range_push(enum range_kind kind, const char *name)
{
	(void)kind;
	(void)name;
}
static inline void range_push_batch(uint32_t index, int warmup)
{
	(void)index;
	(void)warmup;
}
static inline void range_pop(void)
{
}
#endif
#endif
