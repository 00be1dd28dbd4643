/* SPDX-License-Identifier: Apache-2.0
 * host.c: the host-initiated put: a kernel writes the payload and ends; the CPU sees its end, posts, polls the CQE, and the
 * next kernel runs.  How the CPU sees it and how the next kernel comes to run: host_method.c.
 *
 * put_completion and rtt run from one kernel's last act to the next one's first, both on the clock that kernels share:
 * the same two events, seen by an SM, as on the other paths.
 */
#include <stdlib.h>

#include "err.h"
#include "path/correlate.h"
#include "path/host.h"
#include "path/payload.h"
#include "sm/dev.h"

#define LOOKS_PATIENT 2048u /* at a flag; see dev_give_way */

static void host_close(struct put *p)
{
	struct host *h = p->impl;

	sm_free(p->env->sm, h->walls, h->walls_bytes, SM_HOST);
	free(h->op);
	free(h->turn);
	free(h);
}

static int host_open(struct put *p)
{
	struct host *h = calloc(1, sizeof *h);
	int err = 0;

	if (!h)
		return err_say(-ENOMEM, "no memory for the host path");
	p->impl = h;
	h->method = host_method_find(p->c->method);
	h->walls_bytes =
		(2 * (size_t)(p->ops + 1) * sizeof *h->walls + 4095) & ~(size_t)4095;
	PTR_TRY(h->op = calloc(p->ops + 1, sizeof *h->op), err, out);
	PTR_TRY(h->turn = calloc(p->ops + 1, sizeof *h->turn), err, out);
	OUR_TRY(sm_alloc(p->env->sm, h->walls_bytes, SM_HOST, (void **)&h->walls), err,
		out);
	p->c->step_ns = p->env->sm_wall.step_ns;
	p->c->timer_overhead_ns = p->env->sm_wall.overhead_ns;
	return 0;
out:
	host_close(p);
	return err;
}

/* A flag that does not come may have been put by a work request that failed: its completion says why. */
static int flag_missing(struct put *p, uint32_t i)
{
	struct host *h = p->impl;

	for (int end = 0; end < END_COUNT; end++)
		if (h->post[end].cq && cpu_wait(&h->post[end], 0) == -EREMOTEIO)
			return -EREMOTEIO;
	return err_say(-ETIMEDOUT,
		       "round trip %u: the flag did not arrive within its deadline", i);
}

/* B's CPU sees the flag and A's CPU sees the reply: the responder of a host round trip is a CPU. */
static int await_flag(struct put *p, enum end at, uint32_t i)
{
	const bool big = p->slots.bytes > 8;
	const uint8_t *flag = put_flag(p, at) + (big ? 0 : (size_t)i * p->slots.stride);
	const uint64_t want = payload_word(p->slots.seq0 + i, 0),
		       mask = big ? ~0ull : payload_head_mask(p->slots.bytes);
	const uint64_t start = clock_host_ticks();
	uint32_t looks = 0;

	while ((dev_ld8b(flag) & mask) != (want & mask)) {
		dev_relax();
		if (++looks > LOOKS_PATIENT)
			dev_give_way();
		if (clock_host_ticks() - start > p->deadline_ticks)
			return flag_missing(p, i);
	}
	return 0;
}

static int reply(struct put *p, uint32_t i)
{
	struct host *h = p->impl;
	const bool big = p->slots.bytes > 8;
	uint32_t off = i * p->slots.stride;
	int err;

	OUR_TRY(await_flag(p, END_B, i), err, out);
	OUR_TRY(cpu_post(&h->post[END_B], off, p->slots.bytes, big), err, out);
	OUR_TRY(await_flag(p, END_A, i), err, out);
out:
	return err;
}

/* The CQEs of a round trip are read before the next launch, so that the CQ cannot overrun: two polls that find their CQE
 * at once, inside the window. */
static int reap(struct put *p)
{
	struct host *h = p->impl;
	int err = cpu_wait(&h->post[END_A], p->deadline_ticks);

	return err ? err : cpu_wait(&h->post[END_B], p->deadline_ticks);
}

int host_put(struct put *p, uint32_t i)
{
	struct host *h = p->impl;
	struct host_op *op = &h->op[i];
	int err;

	OUR_TRY(cpu_post(&h->post[END_A], i * p->slots.stride, p->slots.bytes,
			 p->rtt && p->slots.bytes > 8),
		err, out);
	op->posted = clock_host_ticks();
	if (p->rtt)
		OUR_TRY(reply(p, i), err, out);
	else
		OUR_TRY(cpu_wait(&h->post[END_A], p->deadline_ticks), err, out);
	op->done = clock_host_ticks();
	p->c->puts++;
	p->env->count.cpu_posts += p->rtt ? 2 : 1;
	if (p->rtt)
		OUR_TRY(reap(p), err, out);
out:
	return err;
}

static int run(struct put *p)
{
	struct host *h = p->impl;
	struct env *e = p->env;
	int err;

	OUR_TRY(rig_pair(e, false, p->pair), err, out);
	cpu_post_init(&h->post[END_A], p, END_A);
	cpu_post_init(&h->post[END_B], p, END_B);
	OUR_TRY(put_prepare(p, NULL), err, out);
	/* The replies' source: the same payload; its head is the host's to write, no kernel runs at B. */
	for (uint32_t i = 0; p->rtt && i < p->slots.ops; i++)
		payload_store_head(e->end[END_B].src + (size_t)i * p->slots.stride,
				   payload_word(p->slots.seq0 + i, 0), p->slots.bytes);
	if (!p->rtt)
		OUR_TRY(correlate(e, &h->moment), err, out);
	err = h->method->run(p);
	if (err) {
		rig_pair_broken(e, false);
		goto out;
	}
	OUR_TRY(put_check(p), err, out);
out:
	return err;
}

/* From one kernel's last act to the next one's first. */
static int window_samples(struct put *p, struct batch *b, const char *metric)
{
	const struct host *h = p->impl;
	const struct env *e = p->env;
	double *whole = batch_series(b, metric, p->slots.ops);

	if (!whole)
		return err_say(-ENOMEM, "no memory for samples");
	for (uint32_t i = 0; i < p->slots.ops; i++)
		whole[i] = clock_ns(&e->sm_wall,
				    h->walls[2 * (i + 1)] - h->walls[2 * i + 1]) -
			   e->sm_wall.overhead_ns;
	return 0;
}

/* Host ticks from a kernel's reading of the shared clock to a reading of the host's: by the correlation made before this batch,
 * within its bound; a host thread's clock is the host's. */
static double ticks_since(const struct put *p, uint64_t wall, uint64_t host)
{
	const struct env *e = p->env;
	const struct sm_moment *m = &((const struct host *)p->impl)->moment;

	if (!sm_is_gpu(e->sm))
		return (double)(int64_t)(host - wall);
	return (double)(int64_t)(host - m->host) - (double)(int64_t)(wall - m->wall) *
							   e->sm_wall.ns_per_tick /
							   e->host_clock.ns_per_tick;
}

/* The window in its four parts; post_send is what is called issue on every path. */
static int hop_samples(struct put *p, struct batch *b)
{
	const struct host *h = p->impl;
	const struct clock_fit *c = &p->env->host_clock;
	double *seen = batch_series(b, "kernel_end_seen", p->slots.ops);
	double *issue = batch_series(b, "issue", p->slots.ops);
	double *post = batch_series(b, "post_send", p->slots.ops);
	double *poll = batch_series(b, "cq_poll", p->slots.ops);
	double *next = batch_series(b, "next_launch", p->slots.ops);
	double *bound = h->moment.bound_ns > 0 ? batch_series(b, "clock_bound", 1) : seen;

	if (!seen || !issue || !post || !poll || !next || !bound)
		return err_say(-ENOMEM, "no memory for samples");
	bound[0] = h->moment.bound_ns;
	for (uint32_t i = 0; i < p->slots.ops; i++) {
		const struct host_op *op = &h->op[i];

		seen[i] =
			ticks_since(p, h->walls[2 * i + 1], op->ended) * c->ns_per_tick -
			c->overhead_ns;
		issue[i] = post[i] = clock_ns(c, op->posted - op->ended) - c->overhead_ns;
		poll[i] = clock_ns(c, op->done - op->posted) - c->overhead_ns;
		next[i] = -ticks_since(p, h->walls[2 * (i + 1)], op->done) *
				  c->ns_per_tick -
			  c->overhead_ns;
	}
	return 0;
}

/* The CPU launches each kernel and waits for its end. */
static void stepwise(const struct put *p, struct put_components *c)
{
	const struct host *h = p->impl;
	const struct env *e = p->env;

	for (uint32_t i = 0; i < p->slots.ops; i++) {
		const struct host_op *op = &h->op[i];
		double kernel =
			clock_ns(&e->sm_wall, h->walls[2 * i + 1] - h->walls[2 * i]);

		c->wall += clock_ns(&e->host_clock, op[1].launch - op->launch);
		c->kernel += kernel;
		c->cpu_wait += clock_ns(&e->host_clock, op->ended - op->launch) - kernel;
		c->comm += clock_ns(&e->host_clock, op->done - op->ended);
	}
}

/* All was handed over before: from the end of the first kernel to that of the last.  The CPU waits from a put's end until it
 * sees the next kernel's. */
static void queued(const struct put *p, struct put_components *c)
{
	const struct host *h = p->impl;
	const struct env *e = p->env;
	const uint32_t n = p->slots.ops;

	c->wall = clock_ns(&e->sm_wall, h->walls[2 * n + 1] - h->walls[1]);
	for (uint32_t i = 0; i < n; i++) {
		const struct host_op *op = &h->op[i];
		double kernel =
			clock_ns(&e->sm_wall, h->walls[2 * i + 3] - h->walls[2 * i + 2]);

		c->kernel += kernel;
		c->cpu_wait += clock_ns(&e->host_clock, op[1].ended - op->done) - kernel;
		c->comm += clock_ns(&e->host_clock, op->done - op->ended);
	}
}

static int components(struct put *p, struct batch *b)
{
	const struct host *h = p->impl;
	const double ops = p->slots.ops;
	struct put_components c = {0};

	if (h->method->queued)
		queued(p, &c);
	else
		stepwise(p, &c);
	c.wall /= ops;
	c.kernel /= ops;
	c.cpu_wait /= ops;
	c.comm /= ops;
	c.exposed_comm = c.comm;
	return put_components(b, &c);
}

static int host_puts(struct put *p, struct batch *b)
{
	int err = run(p);

	if (!err)
		err = window_samples(p, b, "put_completion");
	if (!err)
		err = hop_samples(p, b);
	return err ? err : components(p, b);
}

static int host_rtts(struct put *p, struct batch *b)
{
	int err = run(p);

	return err ? err : window_samples(p, b, "rtt");
}

const struct path_ops path_host = {"host", host_open, host_puts, host_rtts, host_close};
