/* SPDX-License-Identifier: Apache-2.0
 * sm.h: who runs device code: one CUDA device, or a host thread that plays an SM.
 */
#ifndef PUTSCOPE_SM_H
#define PUTSCOPE_SM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sm;
struct json_t;
struct clock_fit;

/* A kernel for one kind of SM: `thread` for host threads, `gpu` for cudaLaunchKernel; the other is NULL. */
struct dev_kernel {
	const char *name;
	size_t args_bytes;
	void (*thread)(const void *args);
	const void *gpu;
	unsigned threads; /* of the one block on a GPU; a host thread plays them all */
};

/* Where memory lies.  SM_HOST is pinned and mapped: CPU, GPU and NIC see it.  SM_GPU falls back nowhere: on a
 * host thread it is -EINVAL. */
enum sm_place { SM_HOST, SM_GPU };

/* gpu < 0: a host thread.  -ENODEV when that GPU does not exist, with the sentence. */
int sm_open(struct sm **sm, int gpu);
void sm_close(struct sm *sm);
bool sm_is_gpu(const struct sm *sm);
const char *
sm_kind(const struct sm *sm); /* "gpu" or "host-thread": the spelling of result rows */
int sm_gpu_count(
	char *why,
	size_t n); /* 0 with the reason when there is none or no CUDA in this build */

/* Page-aligned memory, zeroed; freed by sm_free.  *dev is the address for device code (host threads: the same). */
int sm_alloc(struct sm *sm, size_t bytes, enum sm_place place, void **ptr);
void sm_free(struct sm *sm, void *ptr, size_t bytes, enum sm_place place);
/* Make host pages [p, p + bytes) usable by device code; page by page, each page once for the life of sm, since
 * queues and doorbell records share pages.  io: the pages are a device's registers.  -EPERM: the driver refuses. */
int sm_map(struct sm *sm, void *p, size_t bytes, bool io, void **dev);
int sm_copy_in(struct sm *sm, void *dst, enum sm_place place, const void *src,
	       size_t bytes);
int sm_copy_out(struct sm *sm, void *dst, const void *src, enum sm_place place,
		size_t bytes);

/* Start one thread of `k` with a copy of args and return; sm_sync waits for its end.  One at a time. */
int sm_launch(struct sm *sm, const struct dev_kernel *k, const void *args);
int sm_sync(struct sm *sm);

/* ---- other ways to learn that a kernel has ended, and work in order behind it ---- */
/* Mark the work launched so far (a CUDA event; a host thread counts up a word); reached: 1 when all of it has ended, 0, -errno. */
int sm_mark(struct sm *sm);
int sm_reached(struct sm *sm);
/* Run fn(arg) on a CPU thread behind the work launched so far and before what is launched later: a thread of the CUDA driver, or
 * the one that plays the SM.  fn may not call sm_* nor CUDA. */
int sm_call(struct sm *sm, void (*fn)(void *arg), void *arg);
/* A chain of kernels and functions that is handed over as a whole (a CUDA graph; a list that a host thread works off).  Arguments
 * must stay where they are until sm_graph_free, which wants the chain ended (sm_sync). */
struct sm_step {
	const struct dev_kernel *kernel; /* with args; or NULL: fn(arg) */
	const void *args;
	void (*fn)(void *arg);
	void *arg;
};
struct sm_graph;
int sm_graph_make(struct sm *sm, const struct sm_step *steps, size_t n,
		  struct sm_graph **g);
int sm_graph_launch(struct sm *sm, struct sm_graph *g);
void sm_graph_free(struct sm *sm, struct sm_graph *g);

/* Fit of dev_clock (within one SM) and of dev_wall (shared by all); both the host's ticks on a host thread. */
int sm_clocks(struct sm *sm, struct clock_fit *clock, struct clock_fit *wall);
/* Facts for run.json (a jansson object, new reference). */
struct json_t *sm_facts(const struct sm *sm);

/* ---- threads of ours that spin ---- */
extern volatile int sm_crowded; /* more spinners than CPUs: every poll yields */
void sm_yield(
	void); /* run a step of the virtual NIC if there is one, then give the core away */
/* Declare how many threads of ours will spin until the next call, besides a virtual NIC's thread, and pin or
 * unpin accordingly.  Returns true when spinners (the NIC's included) exceed the CPUs we may use. */
bool sm_spinners(unsigned ours, bool virtual_nic, bool pin);
/* Called by a spinning thread when it starts: takes the k-th CPU of those allowed when pinning is on, else all of them. */
void sm_pin_self(unsigned k);
void sm_pin_cpu(
	int cpu); /* likewise, to this CPU, for a thread whose place matters (a worker near the NIC) */
void sm_pin_always(
	unsigned k); /* even when cores are short: for a probe of the cores themselves */
void sm_unpin_self(void);
unsigned sm_cpus(void);	      /* CPUs this process may use */
bool sm_cpu_allowed(int cpu); /* is it one of them? */

#ifdef __cplusplus
}
#endif
#endif
