/* SPDX-License-Identifier: Apache-2.0
 * proxy.c: the tuned CPU proxy: a pinned worker takes 16 B descriptors from host rings, posts them with ibv_post_send,
 * polls the CQ and counts completions in host memory that the SM polls.
 *
 * One ring and one producer for each endpoint.  Between batches the worker sleeps, so that it is no spinner of another
 * path's case.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "err.h"
#include "path/cpu_post.h"
#include "sm/dev.h"

#pragma weak proxy_kernels_cuda
#pragma weak proxy_rtt_kernels_cuda

#define LOOKS_PATIENT 4096u /* looks of the worker that found nothing; see dev_give_way */
#define RING_ENTRIES 256u
#define RING_BYTES (RING_ENTRIES * PROXY_DESC_BYTES)
#define COUNTER_OFF RING_BYTES	    /* a cache line of its own */
#define HEAD_OFF (RING_BYTES + 64u) /* the producer's own */
#define MEM_BYTES 8192u

struct ring {
	uint8_t *mem; /* SM_HOST: descriptors, counter, head */
	struct cpu_post post;
	uint64_t next, done; /* descriptors taken, completions counted */
	uint64_t posts;
	int err;
};

struct proxy {
	struct put *put;
	pthread_t tid;
	sem_t go, parked;
	bool started;
	volatile bool running, leave;
	unsigned rings; /* looked at in this batch: 1, or 2 for round trips */
	struct ring ring[END_COUNT];
};

static void counter_store(struct ring *r, uint64_t v)
{
	/* Worker and SM: the completion was seen before the SM sees the count. */
	__atomic_store_n((uint64_t *)(r->mem + COUNTER_OFF), v, __ATOMIC_RELEASE);
}

static void ring_fail(struct ring *r, uint32_t syndrome)
{
	r->err = -EREMOTEIO;
	counter_store(r, PROXY_ERROR | syndrome);
}

/* Take one descriptor if both of its words carry the tag of the entry that comes next. */
static bool take(struct ring *r)
{
	const uint8_t *e =
		r->mem + (size_t)(r->next & (RING_ENTRIES - 1)) * PROXY_DESC_BYTES;
	uint64_t tag = (r->next + 1) & 0xffff, lo = dev_ld8b(e), hi;
	uint32_t bytes;

	if ((lo >> 16 & 0xffff) != tag)
		return false;
	hi = dev_ld8b(e + 8);
	if ((hi >> 16 & 0xffff) != tag)
		return false;
	/* SM and worker: the payload was written before the descriptor became valid. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	bytes = (uint32_t)(lo & 0xffff) | (uint32_t)(hi & (0xffff & ~PROXY_FLAG)) << 16;
	r->next++;
	r->posts++;
	if (cpu_post(&r->post, (uint32_t)(lo >> 32), bytes, hi & PROXY_FLAG))
		ring_fail(r, 0x02);
	return true;
}

static bool reap(struct ring *r)
{
	struct ibv_wc wc[8];
	int n;

	if (r->done == r->next)
		return false;
	n = ibv_poll_cq(r->post.cq, 8, wc);
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			ring_fail(r, wc[i].status == IBV_WC_RETRY_EXC_ERR ? 0x15 : 0x13);
			return true;
		}
	}
	if (n <= 0)
		return false;
	r->done += (unsigned)n;
	counter_store(r, r->done);
	return true;
}

static void serve(struct proxy *x)
{
	uint32_t idle = 0;

	while (x->running) {
		bool worked = false;

		for (unsigned i = 0; i < x->rings; i++) {
			if (x->ring[i].err)
				continue;
			worked |= take(&x->ring[i]);
			worked |= reap(&x->ring[i]);
		}
		idle = worked ? 0 : idle + 1;
		if (idle > LOOKS_PATIENT && idle % 16 == 0)
			dev_give_way();
		else if (idle)
			dev_relax();
	}
}

static void *worker_main(void *arg)
{
	struct proxy *x = arg;

	pthread_setname_np(pthread_self(), "proxy");
	for (;;) {
		while (sem_wait(&x->go))
			;
		if (x->leave)
			return NULL;
		sm_pin_self(1);
		serve(x);
		sem_post(&x->parked);
	}
}

static void worker_go(struct proxy *x, unsigned rings)
{
	x->rings = rings;
	x->running = true;
	sem_post(&x->go);
}

static void worker_park(struct proxy *x)
{
	x->running = false;
	while (sem_wait(&x->parked))
		;
	for (unsigned i = 0; i < END_COUNT; i++) {
		x->put->env->count.cpu_posts += x->ring[i].posts;
		x->ring[i].posts = 0;
	}
}

/* Point the rings at the queue pairs of now and start them empty. */
static int rings_reset(struct put *p)
{
	struct proxy *x = p->impl;
	int err = rig_pair(p->env, false, p->pair);

	if (err)
		return err;
	for (unsigned i = 0; i < END_COUNT; i++) {
		struct ring *r = &x->ring[i];

		cpu_post_init(&r->post, p, (enum end)i);
		r->next = r->done = 0;
		r->err = 0;
		memset(r->mem, 0, MEM_BYTES);
	}
	return 0;
}

static void proxy_close(struct put *p)
{
	struct proxy *x = p->impl;

	if (x->started) {
		x->leave = true;
		sem_post(&x->go);
		pthread_join(x->tid, NULL);
	}
	for (unsigned i = 0; i < END_COUNT; i++)
		sm_free(p->env->sm, x->ring[i].mem, MEM_BYTES, SM_HOST);
	sem_destroy(&x->go);
	sem_destroy(&x->parked);
	free(x);
}

static int proxy_open(struct put *p)
{
	struct proxy *x = calloc(1, sizeof *x);
	int err = 0;

	if (!x)
		return err_say(-ENOMEM, "no memory for a proxy");
	p->impl = x;
	x->put = p;
	sem_init(&x->go, 0, 0);
	sem_init(&x->parked, 0, 0);
	for (unsigned i = 0; i < END_COUNT && !err; i++)
		err = sm_alloc(p->env->sm, MEM_BYTES, SM_HOST, (void **)&x->ring[i].mem);
	if (!err) {
		int rc = pthread_create(&x->tid, NULL, worker_main, x);

		x->started = !rc;
		err = rc ? err_say(-rc, "cannot start the proxy's worker: %s",
				   strerror(rc))
			 : 0;
	}
	if (err)
		proxy_close(p);
	return err;
}

static int proxy_view(struct put *p, enum end end, struct proxy_view *v)
{
	struct proxy *x = p->impl;
	void *dev;
	int err = sm_map(p->env->sm, x->ring[end].mem, MEM_BYTES, false, &dev);

	v->ring = dev;
	v->counter = (uint8_t *)dev + COUNTER_OFF;
	v->head = (uint8_t *)dev + HEAD_OFF;
	v->count = RING_ENTRIES;
	return err;
}

static int proxy_launch(struct put *p, struct batch *b, bool stamped)
{
	enum proxy_order order =
		strcmp(p->c->ordering, "settled") ? PROXY_SYS_FENCE : PROXY_SETTLED;
	const struct dev_kernel *k = sm_is_gpu(p->env->sm)
					     ? &proxy_kernels_cuda[order][stamped]
					     : &proxy_kernels_host[order][stamped];
	struct proxy_args a = {0};
	double wall;
	int err;

	OUR_TRY(rings_reset(p), err, out);
	OUR_TRY(put_prepare(p, &a.l), err, out);
	OUR_TRY(proxy_view(p, END_A, &a.v), err, out);
	worker_go(p->impl, 1);
	err = put_launch(p, false, k, &a, &wall);
	worker_park(p->impl);
	if (!err)
		err = put_samples(p, b, stamped, wall);
out:
	return err;
}

static int proxy_puts(struct put *p, struct batch *b)
{
	bool first = b->index & 1;
	int err = proxy_launch(p, b, first);

	return err ? err : proxy_launch(p, b, !first);
}

static int proxy_rtts(struct put *p, struct batch *b)
{
	const bool big = p->slots.bytes > 8;
	struct proxy_rtt_args a = {0};
	double wall;
	int err;

	OUR_TRY(rings_reset(p), err, out);
	OUR_TRY(put_prepare(p, &a.l), err, out);
	put_reply(p, &a.r);
	OUR_TRY(proxy_view(p, END_A, &a.va), err, out);
	OUR_TRY(proxy_view(p, END_B, &a.vb), err, out);
	worker_go(p->impl, END_COUNT);
	err = put_launch(p, false,
			 sm_is_gpu(p->env->sm) ? &proxy_rtt_kernels_cuda[big]
					       : &proxy_rtt_kernels_host[big],
			 &a, &wall);
	worker_park(p->impl);
	if (!err)
		err = put_rtt_samples(p, b);
out:
	return err;
}

const struct path_ops path_proxy = {"proxy", proxy_open, proxy_puts, proxy_rtts,
				    proxy_close};
