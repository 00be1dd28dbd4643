/* SPDX-License-Identifier: Apache-2.0
 * sm_host.c: a host thread that plays an SM.  Launch and sync are semaphores, so that an SM that waits for work
 * is no spinner; inside a kernel the thread spins like an SM does.
 */
#include <jansson.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "clock.h"
#include "config.h"
#include "err.h"
#include "sm/sm_ops.h"

#define ARGS_MAX 1024u
#define QUEUED_MAX 64u /* work handed over and not ended; more waits, as on a stream */

/* One piece of work: a kernel, a function, a chain of both, or (none of them) a mark. */
struct work {
	uint8_t args[ARGS_MAX] __attribute__((aligned(64)));
	const struct dev_kernel *kernel;
	void (*fn)(void *);
	void *arg;
	const struct sm_graph *graph;
	uint64_t mark;
};

struct sm_graph {
	size_t n;
	struct sm_step steps[];
};

struct sm_thread {
	pthread_t tid;
	sem_t work, done;
	struct work queue[QUEUED_MAX];
	uint32_t in, out; /* handed over; begun, by the thread */
	uint32_t open;	  /* handed over and not known to have ended */
	uint64_t marks;	  /* made */
	uint64_t reached; /* by the thread */
	bool leave;
};

static void graph_run(const struct sm_graph *g)
{
	sm_pin_self(0);
	for (size_t i = 0; i < g->n; i++) {
		const struct sm_step *s = &g->steps[i];

		if (s->kernel)
			s->kernel->thread(s->args);
		else
			s->fn(s->arg);
	}
}

static void work_run(struct sm_thread *t, const struct work *w)
{
	if (w->kernel) {
		sm_pin_self(0);
		w->kernel->thread(w->args);
	} else if (w->fn) {
		w->fn(w->arg);
	} else if (w->graph) {
		graph_run(w->graph);
	} else {
		/* SM and CPU: what the kernels before wrote is there before the mark is seen. */
		__atomic_store_n(&t->reached, w->mark, __ATOMIC_RELEASE);
	}
}

static void *thread_main(void *arg)
{
	struct sm_thread *t = arg;

	pthread_setname_np(pthread_self(), "sm");
	for (;;) {
		while (sem_wait(&t->work))
			;
		if (t->leave)
			return NULL;
		work_run(t, &t->queue[t->out++ % QUEUED_MAX]);
		sem_post(&t->done);
	}
}

static void one_done(struct sm_thread *t)
{
	while (sem_wait(&t->done))
		;
	t->open--;
}

/* The next free place, emptied but for the arguments; hand it over with work_go. */
static struct work *work_next(struct sm_thread *t)
{
	struct work *w;

	if (t->open == QUEUED_MAX)
		one_done(t);
	w = &t->queue[t->in % QUEUED_MAX];
	w->kernel = NULL;
	w->fn = NULL;
	w->graph = NULL;
	return w;
}

static int work_go(struct sm_thread *t)
{
	t->in++;
	t->open++;
	sem_post(&t->work);
	return 0;
}

static int host_open(struct sm *sm, int gpu)
{
	struct sm_thread *t;
	int rc;

	(void)gpu;
	if (posix_memalign((void **)&t, 64, sizeof *t))
		return err_say(-ENOMEM, "no memory for a host SM");
	memset(t, 0, sizeof *t);
	sem_init(&t->work, 0, 0);
	sem_init(&t->done, 0, 0);
	rc = pthread_create(&t->tid, NULL, thread_main, t);
	if (rc) {
		free(t);
		return err_say(-rc, "cannot start the host SM's thread: %s",
			       strerror(rc));
	}
	sm->impl = t;
	return 0;
}

static void host_close(struct sm *sm)
{
	struct sm_thread *t = sm->impl;

	t->leave = true;
	sem_post(&t->work);
	pthread_join(t->tid, NULL);
	sem_destroy(&t->work);
	sem_destroy(&t->done);
	free(t);
}

static int host_alloc(struct sm *sm, size_t bytes, enum sm_place place, void **ptr)
{
	void *p;

	(void)sm;
	if (place == SM_GPU)
		return err_say(
			-EINVAL,
			"GPU memory was asked for, but host threads play the SM (no GPU)");
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED)
		return err_say(-errno, "mmap of %zu bytes: %s", bytes, strerror(errno));
	*ptr = p;
	return 0;
}

static void host_free(struct sm *sm, void *ptr, size_t bytes, enum sm_place place)
{
	(void)sm;
	(void)place;
	munmap(ptr, bytes);
}

static int host_map_page(struct sm *sm, void *page, bool io)
{
	(void)sm;
	(void)page;
	(void)io;
	return 0;
}

static int host_dev_ptr(struct sm *sm, void *p, void **dev)
{
	(void)sm;
	*dev = p;
	return 0;
}

static int host_copy(struct sm *sm, void *dst, const void *src, size_t bytes)
{
	(void)sm;
	memcpy(dst, src, bytes);
	return 0;
}

static int host_launch(struct sm *sm, const struct dev_kernel *k, const void *args)
{
	struct sm_thread *t = sm->impl;
	struct work *w;

	if (k->args_bytes > ARGS_MAX)
		return err_say(-EINVAL,
			       "kernel %s takes %zu bytes of arguments, at most %u",
			       k->name, k->args_bytes, ARGS_MAX);
	w = work_next(t);
	memcpy(w->args, args, k->args_bytes);
	w->kernel = k;
	return work_go(t);
}

static int host_sync(struct sm *sm)
{
	struct sm_thread *t = sm->impl;

	while (t->open)
		one_done(t);
	return 0;
}

static int host_mark(struct sm *sm)
{
	struct sm_thread *t = sm->impl;

	work_next(t)->mark = ++t->marks;
	return work_go(t);
}

static int host_reached(struct sm *sm)
{
	struct sm_thread *t = sm->impl;

	/* CPU and SM: the mark before what the kernels wrote. */
	return __atomic_load_n(&t->reached, __ATOMIC_ACQUIRE) == t->marks;
}

static int host_call(struct sm *sm, void (*fn)(void *), void *arg)
{
	struct sm_thread *t = sm->impl;
	struct work *w = work_next(t);

	w->fn = fn;
	w->arg = arg;
	return work_go(t);
}

static int host_graph_make(struct sm *sm, const struct sm_step *steps, size_t n,
			   struct sm_graph **out)
{
	struct sm_graph *g = malloc(sizeof *g + n * sizeof *steps);

	(void)sm;
	*out = g;
	if (!g)
		return err_say(-ENOMEM, "no memory for a chain of %zu steps", n);
	g->n = n;
	memcpy(g->steps, steps, n * sizeof *steps);
	return 0;
}

static int host_graph_launch(struct sm *sm, struct sm_graph *g)
{
	struct sm_thread *t = sm->impl;

	work_next(t)->graph = g;
	return work_go(t);
}

static void host_graph_free(struct sm *sm, struct sm_graph *g)
{
	(void)sm;
	free(g);
}

static int host_clocks(struct sm *sm, struct clock_fit *clock, struct clock_fit *wall)
{
	int err = clock_fit_host(clock, 50);

	(void)sm;
	*wall = *clock;
	return err;
}

static json_t *host_facts(const struct sm *sm)
{
	(void)sm;
	return json_pack("{s:s, s:s}", "kind", "host-thread", "note",
			 "no GPU took part: a host thread plays the SM");
}

const struct sm_ops sm_host_ops = {
	.kind = "host-thread",
	.open = host_open,
	.close = host_close,
	.alloc = host_alloc,
	.free = host_free,
	.map_page = host_map_page,
	.dev_ptr = host_dev_ptr,
	.copy = host_copy,
	.launch = host_launch,
	.sync = host_sync,
	.clocks = host_clocks,
	.facts = host_facts,
	.mark = host_mark,
	.reached = host_reached,
	.call = host_call,
	.graph_make = host_graph_make,
	.graph_launch = host_graph_launch,
	.graph_free = host_graph_free,
};
