/* SPDX-License-Identifier: Apache-2.0
 * pool.c: the workers' threads, their rings' memory, their queue pairs, and which CPUs they run on.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>

#include "cpu_state.h"
#include "err.h"
#include "path/pool_lane.h"
#include "sm/dev.h"

#define BASELINE \
	33u /* back-to-back clock reads of a worker: their median is subtracted */

struct thread {
	struct pool *pool;
	struct pool_worker w;
	struct nic_qp *pair[END_COUNT]; /* its own; worker 0 has the rig's */
	pthread_t tid;
	sem_t go, ready, parked;
	bool started;
	int want_cpu; /* where cores suffice */
	int cpu;
	double cycle_ns;
	uint64_t overhead_ticks;
};

struct pool {
	struct env *env;
	struct pool_shape s;
	struct thread thread[POOL_WORKERS_MAX];
	struct pool_ring ring[PROXY_RINGS_MAX];
	uint8_t *rings, *counters; /* SM_HOST */
	uint8_t *
		reserve; /* where the SM's atomics are: in its GPU's memory if it has one */
	uint64_t *stamps;
	uint64_t wqes, posts;
	volatile bool leave;
};

static enum sm_place near_sm(const struct pool *x)
{
	return sm_is_gpu(x->env->sm) ? SM_GPU : SM_HOST;
}

static size_t ring_bytes(const struct pool *x)
{
	return (size_t)x->s.rings * PROXY_RING_BYTES;
}

static size_t line_bytes(const struct pool *x)
{
	return (size_t)x->s.rings * PROXY_LINE_BYTES;
}

/* ---- a worker ---- */
static uint64_t clock_overhead(void)
{
	uint64_t d[BASELINE];

	for (unsigned i = 0; i < BASELINE; i++) {
		uint64_t t0 = clock_host_ticks(), t1 = clock_host_ticks();

		d[i] = t1 - t0;
	}
	return clock_median_ticks(d, BASELINE);
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	pthread_setname_np(pthread_self(), "proxy");
	for (;;) {
		while (sem_wait(&t->go))
			;
		if (t->pool->leave)
			return NULL;
		sm_pin_cpu(t->want_cpu);
		t->cycle_ns = cpu_cycle_ns(&t->pool->env->host_clock);
		t->overhead_ticks = clock_overhead();
		sem_post(&t->ready);
		lane_serve(&t->w);
		t->cpu = sched_getcpu();
		sem_post(&t->parked);
	}
}

static int start(struct pool *x, uint32_t k)
{
	struct thread *t = &x->thread[k];
	int rc;

	t->pool = x;
	t->w.batch = x->s.batch;
	t->w.lanes = x->s.both_ends ? END_COUNT : 1;
	t->w.stamps = x->stamps;
	sem_init(&t->go, 0, 0);
	sem_init(&t->ready, 0, 0);
	sem_init(&t->parked, 0, 0);
	rc = pthread_create(&t->tid, NULL, thread_main, t);
	t->started = !rc;
	return rc ? err_say(-rc, "cannot start worker %u of the proxy: %s", k,
			    strerror(rc))
		  : 0;
}

/* ---- open and close ---- */
void pool_close(struct pool *x)
{
	if (!x)
		return;
	x->leave = true;
	for (uint32_t k = 0; k < x->s.workers; k++) {
		struct thread *t = &x->thread[k];

		if (t->started) {
			sem_post(&t->go);
			pthread_join(t->tid, NULL);
		}
		if (t->pool) {
			sem_destroy(&t->go);
			sem_destroy(&t->ready);
			sem_destroy(&t->parked);
		}
		rig_pair_close(t->pair);
	}
	sm_free(x->env->sm, x->rings, ring_bytes(x), SM_HOST);
	sm_free(x->env->sm, x->counters, line_bytes(x), SM_HOST);
	sm_free(x->env->sm, x->reserve, line_bytes(x), near_sm(x));
	free(x->stamps);
	free(x);
}

/* Ring i goes to worker i % workers, or to its lane for endpoint i. */
static void deal_rings(struct pool *x)
{
	for (uint32_t i = 0; i < x->s.rings; i++) {
		struct pool_worker *w =
			&x->thread[x->s.both_ends ? 0 : i % x->s.workers].w;
		struct pool_lane *l = &w->lane[x->s.both_ends ? i : 0];

		x->ring[i].mem = x->rings + (size_t)i * PROXY_RING_BYTES;
		x->ring[i].counter = x->counters + (size_t)i * PROXY_LINE_BYTES;
		l->ring[l->all_rings++] = &x->ring[i];
	}
}

int pool_open(struct pool **out, struct env *e, const struct pool_shape *s)
{
	int cpus[POOL_WORKERS_MAX], err = 0;
	struct pool *x;

	*out = NULL;
	PTR_TRY(x = calloc(1, sizeof *x), err, out);
	x->env = e;
	x->s = *s;
	PTR_TRY(x->stamps = calloc(PUT_OPS_MAX * POOL_STAMPS, sizeof *x->stamps), err,
		out);
	OUR_TRY(sm_alloc(e->sm, ring_bytes(x), SM_HOST, (void **)&x->rings), err, out);
	OUR_TRY(sm_alloc(e->sm, line_bytes(x), SM_HOST, (void **)&x->counters), err, out);
	OUR_TRY(sm_alloc(e->sm, line_bytes(x), near_sm(x), (void **)&x->reserve), err,
		out);
	deal_rings(x);
	cpus_near(e->nics[0]->ctx, !sm_is_gpu(e->sm), cpus, s->workers);
	for (uint32_t k = 0; k < s->workers; k++) {
		x->thread[k].want_cpu = cpus[k];
		OUR_TRY(start(x, k), err, out);
		if (k)
			OUR_TRY(rig_pair_more(e, x->thread[k].pair), err, out);
	}
	*out = x;
	return 0;
out:
	pool_close(x);
	return err;
}

/* ---- a launch ---- */
static int bind_lanes(struct pool *x, bool inlined)
{
	struct nic_qp *rig[END_COUNT];
	int err = rig_pair(x->env, false, rig);

	for (uint32_t k = 0; k < x->s.workers && !err; k++) {
		struct thread *t = &x->thread[k];

		for (uint32_t i = 0; i < t->w.lanes; i++)
			lane_bind(&t->w.lane[i], x->env, k ? t->pair[i] : rig[i],
				  (enum end)i, inlined);
	}
	return err;
}

int pool_reset(struct pool *x, bool inlined)
{
	int err = bind_lanes(x, inlined);

	if (err)
		return err;
	memset(x->rings, 0, ring_bytes(x));
	memset(x->counters, 0, line_bytes(x));
	for (uint32_t i = 0; i < x->s.rings; i++)
		x->ring[i].next = x->ring[i].done = 0;
	return sm_copy_in(x->env->sm, x->reserve, near_sm(x), x->counters, line_bytes(x));
}

int pool_view(const struct pool *x, struct proxy_view *v)
{
	void *rings, *counters;
	int err;

	OUR_TRY(sm_map(x->env->sm, x->rings, ring_bytes(x), false, &rings), err, out);
	OUR_TRY(sm_map(x->env->sm, x->counters, line_bytes(x), false, &counters), err,
		out);
	v->ring = rings;
	v->counter = counters;
	v->reserve = x->reserve;
out:
	return err;
}

/* The first `rings` rings are looked at; a lane's are dealt in ascending order. */
static uint32_t rings_in_use(const struct pool *x, const struct pool_lane *l,
			     uint32_t rings)
{
	uint32_t n = 0;

	while (n < l->all_rings && l->ring[n] < &x->ring[rings])
		n++;
	return n;
}

void pool_go(struct pool *x, enum pool_mode mode, uint32_t rings)
{
	for (uint32_t k = 0; k < x->s.workers; k++) {
		struct pool_worker *w = &x->thread[k].w;

		for (uint32_t i = 0; i < w->lanes; i++)
			w->lane[i].rings = rings_in_use(x, &w->lane[i], rings);
		w->mode = mode;
		w->running = true;
		sem_post(&x->thread[k].go);
	}
	/* None of the launch's puts pays for waking them. */
	for (uint32_t k = 0; k < x->s.workers; k++)
		while (sem_wait(&x->thread[k].ready))
			;
}

void pool_park(struct pool *x)
{
	x->wqes = x->posts = 0;
	for (uint32_t k = 0; k < x->s.workers; k++)
		x->thread[k].w.running = false;
	for (uint32_t k = 0; k < x->s.workers; k++) {
		struct thread *t = &x->thread[k];

		while (sem_wait(&t->parked))
			;
		for (uint32_t i = 0; i < t->w.lanes; i++) {
			x->wqes += t->w.lane[i].posted;
			x->posts += t->w.lane[i].posts;
		}
	}
	x->env->count.cpu_posts += x->wqes;
}

/* ---- what a launch leaves ---- */
const uint64_t *pool_stamps(const struct pool *x)
{
	return x->stamps;
}

uint64_t pool_overhead_ticks(const struct pool *x)
{
	return x->thread[0].overhead_ticks;
}

int pool_cpu(const struct pool *x, uint32_t k)
{
	return x->thread[k].cpu;
}

double pool_cycle_ns(const struct pool *x, uint32_t k)
{
	return x->thread[k].cycle_ns;
}

void pool_counts(const struct pool *x, uint64_t *wqes, uint64_t *posts)
{
	*wqes = x->wqes;
	*posts = x->posts;
}
