/* SPDX-License-Identifier: Apache-2.0
 * host.c: the host-initiated put: a kernel writes the payload and ends; the CPU sees its end, posts, polls the CQE and
 * launches the next kernel.
 *
 * put_completion and rtt run from one kernel's last act to the next one's first, both on the clock that kernels share:
 * the same two events, seen by an SM, as on the other paths.
 */
#include <stdlib.h>

#include "err.h"
#include "path/cpu_post.h"
#include "path/payload.h"
#include "sm/dev.h"

#pragma weak produce_kernel_cuda

#define LOOKS_PATIENT 2048u /* at a flag; see dev_give_way */

/* Stamps of one put: the host's ticks, and the kernel's two readings of the shared clock. */
struct host_op {
	uint64_t launch, ended, posted, done;
};
struct host {
	struct cpu_post post[END_COUNT];
	struct host_op *op; /* [ops + 1]: the last has only its launch */
	uint64_t *walls;    /* SM_HOST, [2 * (ops + 1)]: entry, exit */
	size_t walls_bytes;
};

static void host_close(struct put *p)
{
	struct host *h = p->impl;

	sm_free(p->env->sm, h->walls, h->walls_bytes, SM_HOST);
	free(h->op);
	free(h);
}

static int host_open(struct put *p)
{
	struct host *h = calloc(1, sizeof *h);
	int err = 0;

	if (!h)
		return err_say(-ENOMEM, "no memory for the host path");
	p->impl = h;
	h->walls_bytes =
		(2 * (size_t)(p->ops + 1) * sizeof *h->walls + 4095) & ~(size_t)4095;
	PTR_TRY(h->op = calloc(p->ops + 1, sizeof *h->op), err, out);
	OUR_TRY(sm_alloc(p->env->sm, h->walls_bytes, SM_HOST, (void **)&h->walls), err,
		out);
	p->c->step_ns = p->env->sm_wall.step_ns;
	p->c->timer_overhead_ns = p->env->sm_wall.overhead_ns;
	return 0;
out:
	host_close(p);
	return err;
}

/* The kernel of put i: launch, wait for its end. */
static int produce(struct put *p, uint32_t i)
{
	struct host *h = p->impl;
	struct env *e = p->env;
	uint32_t slot = i < p->slots.ops ? i : 0;
	struct produce_args a = {e->end[END_A].src + (size_t)slot * p->slots.stride,
				 p->slots.seq0 + i, p->slots.bytes, 0, h->walls + 2 * i};
	int err;

	if (i == p->slots.ops)
		a.bytes = 0; /* the closing kernel only ends the last window */
	h->op[i].launch = clock_host_ticks();
	err = sm_launch(e->sm,
			sm_is_gpu(e->sm) ? &produce_kernel_cuda : &produce_kernel_host,
			&a);
	if (!err)
		err = sm_sync(e->sm);
	h->op[i].ended = clock_host_ticks();
	return err;
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
			return err_say(
				-ETIMEDOUT,
				"round trip %u: the flag did not arrive within its deadline",
				i);
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

static int one(struct put *p, uint32_t i)
{
	struct host *h = p->impl;
	struct host_op *op = &h->op[i];
	int err;

	OUR_TRY(produce(p, i), err, out);
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
	for (uint32_t i = 0; i < p->slots.ops && !err; i++) {
		err = one(p, i);
		if (!err && p->rtt)
			err = reap(p);
	}
	if (err) {
		rig_pair_broken(e, false);
		goto out;
	}
	OUR_TRY(produce(p, p->slots.ops), err, out);
	OUR_TRY(put_check(p), err, out);
out:
	return err;
}

static int samples(struct put *p, struct batch *b)
{
	const struct host *h = p->impl;
	const struct env *e = p->env;
	double *whole = batch_series(b, p->rtt ? "rtt" : "put_completion", p->slots.ops);
	double *issue = p->rtt ? whole : batch_series(b, "issue", p->slots.ops);
	double *poll = p->rtt ? whole : batch_series(b, "cq_poll", p->slots.ops);

	if (!whole || !issue || !poll)
		return err_say(-ENOMEM, "no memory for samples");
	for (uint32_t i = 0; i < p->slots.ops; i++) {
		const struct host_op *op = &h->op[i];

		if (!p->rtt) {
			issue[i] = clock_ns(&e->host_clock, op->posted - op->ended) -
				   e->host_clock.overhead_ns;
			poll[i] = clock_ns(&e->host_clock, op->done - op->posted) -
				  e->host_clock.overhead_ns;
		}
		whole[i] = clock_ns(&e->sm_wall,
				    h->walls[2 * (i + 1)] - h->walls[2 * i + 1]) -
			   e->sm_wall.overhead_ns;
	}
	return 0;
}

static int components(struct put *p, struct batch *b)
{
	const struct host *h = p->impl;
	const struct env *e = p->env;
	struct put_components c = {0};

	for (uint32_t i = 0; i < p->slots.ops; i++) {
		const struct host_op *op = &h->op[i];
		double kernel =
			clock_ns(&e->sm_wall, h->walls[2 * i + 1] - h->walls[2 * i]);

		c.wall += clock_ns(&e->host_clock, h->op[i + 1].launch - op->launch) /
			  p->slots.ops;
		c.kernel += kernel / p->slots.ops;
		c.cpu_wait +=
			(clock_ns(&e->host_clock, op->ended - op->launch) - kernel) /
			p->slots.ops;
		c.comm += clock_ns(&e->host_clock, op->done - op->ended) / p->slots.ops;
	}
	c.exposed_comm = c.comm;
	return put_components(b, &c);
}

static int host_puts(struct put *p, struct batch *b)
{
	int err = run(p);

	if (!err)
		err = samples(p, b);
	return err ? err : components(p, b);
}

static int host_rtts(struct put *p, struct batch *b)
{
	int err = run(p);

	return err ? err : samples(p, b);
}

const struct path_ops path_host = {"host", host_open, host_puts, host_rtts, host_close};
