/* SPDX-License-Identifier: Apache-2.0
 * sm.c: what both kinds of SM share: choice, page mapping, and who may spin.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "config.h"
#include "err.h"
#include "sm/sm_ops.h"

#define PAGE_BYTES 4096u

volatile int sm_crowded;
static int (*nic_step)(void);	  /* vcx_step, when the virtual NIC is loaded */
static void (*nic_spinners)(int); /* vcx_app_spinners */
static int (*nic_polite)(void);	  /* vcx_polite: other processes of its fabric spin too */
static void (*nic_pinned)(int);	  /* vcx_app_pinned */
static unsigned pinned = ~0u;	  /* what it was told last */
static bool pin_on;
static cpu_set_t allowed;
static unsigned allowed_count;

int sm_open(struct sm **out, int gpu)
{
	struct sm *sm;
	int err;

	*out = NULL;
	sm = calloc(1, sizeof *sm);
	if (!sm)
		return err_say(-ENOMEM, "no memory for an SM");
	sm->ops = &sm_host_ops;
#if HAVE_CUDA
	if (gpu >= 0)
		sm->ops = &sm_cuda_ops;
#else
	if (gpu >= 0) {
		free(sm);
		return err_say(
			-ENODEV,
			"GPU %d was asked for, but this putscope was built without CUDA; "
			"install the CUDA Toolkit and run make again",
			gpu);
	}
#endif
	err = sm->ops->open(sm, gpu);
	if (err) {
		free(sm);
		return err;
	}
	*out = sm;
	return 0;
}

void sm_close(struct sm *sm)
{
	if (!sm)
		return;
	sm->ops->close(sm);
	free(sm->pages);
	free(sm);
}

bool sm_is_gpu(const struct sm *sm)
{
	return sm->ops != &sm_host_ops;
}

const char *sm_kind(const struct sm *sm)
{
	return sm->ops->kind;
}

int sm_gpu_count(char *why, size_t n)
{
#if HAVE_CUDA
	return sm_cuda_count(why, n);
#else
	snprintf(why, n, "this putscope was built without CUDA");
	return 0;
#endif
}

int sm_alloc(struct sm *sm, size_t bytes, enum sm_place place, void **ptr)
{
	return sm->ops->alloc(sm, bytes, place, ptr);
}

void sm_free(struct sm *sm, void *ptr, size_t bytes, enum sm_place place)
{
	if (ptr)
		sm->ops->free(sm, ptr, bytes, place);
}

static bool page_known(const struct sm *sm, uintptr_t page)
{
	for (size_t i = 0; i < sm->page_count; i++)
		if (sm->pages[i] == page)
			return true;
	return false;
}

static int page_map(struct sm *sm, uintptr_t page, bool io)
{
	int err;

	if (sm->page_count == sm->page_cap) {
		size_t cap = sm->page_cap ? 2 * sm->page_cap : 64;
		uintptr_t *v = realloc(sm->pages, cap * sizeof *v);

		if (!v)
			return err_say(-ENOMEM, "no memory for the list of mapped pages");
		sm->pages = v;
		sm->page_cap = cap;
	}
	err = sm->ops->map_page(sm, (void *)page, io);
	if (!err)
		sm->pages[sm->page_count++] = page;
	return err;
}

int sm_map(struct sm *sm, void *p, size_t bytes, bool io, void **dev)
{
	uintptr_t first = (uintptr_t)p & ~(uintptr_t)(PAGE_BYTES - 1);
	int err;

	for (uintptr_t page = first; page < (uintptr_t)p + bytes; page += PAGE_BYTES) {
		if (page_known(sm, page))
			continue;
		err = page_map(sm, page, io);
		if (err)
			return err;
	}
	return sm->ops->dev_ptr(sm, p, dev);
}

int sm_copy_in(struct sm *sm, void *dst, enum sm_place place, const void *src,
	       size_t bytes)
{
	if (place == SM_GPU)
		return sm->ops->copy(sm, dst, src, bytes);
	memcpy(dst, src, bytes);
	return 0;
}

int sm_copy_out(struct sm *sm, void *dst, const void *src, enum sm_place place,
		size_t bytes)
{
	if (place == SM_GPU)
		return sm->ops->copy(sm, dst, src, bytes);
	memcpy(dst, src, bytes);
	return 0;
}

int sm_launch(struct sm *sm, const struct dev_kernel *k, const void *args)
{
	return sm->ops->launch(sm, k, args);
}

int sm_sync(struct sm *sm)
{
	return sm->ops->sync(sm);
}

int sm_mark(struct sm *sm)
{
	return sm->ops->mark(sm);
}

int sm_reached(struct sm *sm)
{
	return sm->ops->reached(sm);
}

int sm_call(struct sm *sm, void (*fn)(void *arg), void *arg)
{
	return sm->ops->call(sm, fn, arg);
}

int sm_graph_make(struct sm *sm, const struct sm_step *steps, size_t n,
		  struct sm_graph **g)
{
	return sm->ops->graph_make(sm, steps, n, g);
}

int sm_graph_launch(struct sm *sm, struct sm_graph *g)
{
	return sm->ops->graph_launch(sm, g);
}

void sm_graph_free(struct sm *sm, struct sm_graph *g)
{
	if (g)
		sm->ops->graph_free(sm, g);
}

int sm_clocks(struct sm *sm, struct clock_fit *clock, struct clock_fit *wall)
{
	return sm->ops->clocks(sm, clock, wall);
}

struct json_t *sm_facts(const struct sm *sm)
{
	return sm->ops->facts(sm);
}

/* ---- who spins ---- */
static void spin_init(void)
{
	if (sched_getaffinity(0, sizeof allowed, &allowed)) {
		CPU_ZERO(&allowed);
		CPU_SET(0, &allowed);
	}
	allowed_count = (unsigned)CPU_COUNT(&allowed);
	*(void **)&nic_step = dlsym(RTLD_DEFAULT, "vcx_step");
	*(void **)&nic_polite = dlsym(RTLD_DEFAULT, "vcx_polite");
	*(void **)&nic_pinned = dlsym(RTLD_DEFAULT, "vcx_app_pinned");
	*(void **)&nic_spinners = dlsym(RTLD_DEFAULT, "vcx_app_spinners");
}

static void spin_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, spin_init);
}

unsigned sm_cpus(void)
{
	spin_once();
	return allowed_count;
}

bool sm_cpu_allowed(int cpu)
{
	spin_once();
	return CPU_ISSET(cpu, &allowed);
}

void sm_yield(void)
{
	if (nic_step && nic_step())
		return;
	sched_yield();
}

bool sm_spinners(unsigned ours, bool virtual_nic, bool pin)
{
	bool crowded;

	spin_once();
	if (nic_spinners)
		nic_spinners((int)ours);
	crowded = ours + (virtual_nic ? 1 : 0) > allowed_count ||
		  (nic_polite && nic_polite());
	sm_crowded = crowded;
	pin_on = pin && !crowded;
	if (nic_pinned && pinned != (pin_on ? ours : 0)) {
		pinned = pin_on ? ours : 0;
		nic_pinned((int)pinned);
	}
	return crowded;
}

void sm_unpin_self(void)
{
	spin_once();
	pthread_setaffinity_np(pthread_self(), sizeof allowed, &allowed);
}

static void pin_to(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

void sm_pin_always(unsigned k)
{
	spin_once();
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || k--)
			continue;
		pin_to(cpu);
		return;
	}
}

void sm_pin_cpu(int cpu)
{
	if (pin_on)
		pin_to(cpu);
	else
		sm_unpin_self();
}

void sm_pin_self(unsigned k)
{
	if (pin_on)
		sm_pin_always(k);
	else
		sm_unpin_self();
}
