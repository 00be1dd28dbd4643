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

struct sm_thread {
	pthread_t tid;
	sem_t work, done;
	const struct dev_kernel *kernel; /* NULL: leave */
	uint8_t args[ARGS_MAX] __attribute__((aligned(64)));
	bool running;
	struct clock_fit clock;
};

static void *thread_main(void *arg)
{
	struct sm_thread *t = arg;

	pthread_setname_np(pthread_self(), "sm");
	for (;;) {
		while (sem_wait(&t->work))
			;
		if (!t->kernel)
			return NULL;
		sm_pin_self(0);
		t->kernel->thread(t->args);
		sem_post(&t->done);
	}
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

	t->kernel = NULL;
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

	if (k->args_bytes > ARGS_MAX)
		return err_say(-EINVAL,
			       "kernel %s takes %zu bytes of arguments, at most %u",
			       k->name, k->args_bytes, ARGS_MAX);
	memcpy(t->args, args, k->args_bytes);
	t->kernel = k;
	t->running = true;
	sem_post(&t->work);
	return 0;
}

static int host_sync(struct sm *sm)
{
	struct sm_thread *t = sm->impl;

	if (!t->running)
		return 0;
	while (sem_wait(&t->done))
		;
	t->running = false;
	return 0;
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
};
