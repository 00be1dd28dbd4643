/* SPDX-License-Identifier: Apache-2.0
 * sm_ops.h: what each kind of SM implements; only sm*.c and sm_cuda.cu include it.
 */
#ifndef PUTSCOPE_SM_OPS_H
#define PUTSCOPE_SM_OPS_H
#include "sm/sm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sm_ops {
	const char *kind;
	int (*open)(struct sm *sm, int gpu);
	void (*close)(struct sm *sm);
	int (*alloc)(struct sm *sm, size_t bytes, enum sm_place place, void **ptr);
	void (*free)(struct sm *sm, void *ptr, size_t bytes, enum sm_place place);
	int (*map_page)(struct sm *sm, void *page, bool io); /* 4 KiB, not yet mapped */
	int (*dev_ptr)(struct sm *sm, void *p, void **dev);
	int (*copy)(struct sm *sm, void *dst, const void *src, size_t bytes);
	int (*launch)(struct sm *sm, const struct dev_kernel *k, const void *args);
	int (*sync)(struct sm *sm);
	int (*clocks)(struct sm *sm, struct clock_fit *clock, struct clock_fit *wall);
	struct json_t *(*facts)(const struct sm *sm);
	int (*mark)(struct sm *sm);
	int (*reached)(struct sm *sm);
	int (*call)(struct sm *sm, void (*fn)(void *), void *arg);
	int (*graph_make)(struct sm *sm, const struct sm_step *steps, size_t n,
			  struct sm_graph **g);
	int (*graph_launch)(struct sm *sm, struct sm_graph *g);
	void (*graph_free)(struct sm *sm, struct sm_graph *g);
};

struct sm {
	const struct sm_ops *ops;
	void *impl;
	uintptr_t *pages; /* mapped pages, sorted not at all: a rig has tens */
	size_t page_count, page_cap;
};

extern const struct sm_ops sm_host_ops;
#if HAVE_CUDA
extern const struct sm_ops sm_cuda_ops;
int sm_cuda_count(char *why, size_t n);
#endif

#ifdef __cplusplus
}
#endif
#endif
