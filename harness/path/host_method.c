/* SPDX-License-Identifier: Apache-2.0
 * host_method.c: four ways in which a CPU learns that a kernel has ended, puts, and lets the next one run.
 *
 *   sync:     launch; stream sync; put                             the CPU launches each kernel after the put before
 *   event:    launch, event record; event query until done; put    likewise
 *   callback: (launch, host function that puts) ahead, on a stream: a thread of the driver puts, the stream starts the kernel
 *   graph:    (kernel node, host node that puts) as one CUDA graph, made and uploaded before: likewise
 *
 * A host thread that plays the SM has like things: an event is a word that it counts up behind the kernel, a callback is a function
 * that it runs behind it, a graph is a list that it works off.
 */
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "path/host.h"
#include "sm/dev.h"

#pragma weak produce_kernel_cuda

#define LOOKS_PATIENT 2048u /* at an event; see dev_give_way */

static const struct dev_kernel *kernel(const struct put *p)
{
	return sm_is_gpu(p->env->sm) ? &produce_kernel_cuda : &produce_kernel_host;
}

/* The kernel in front of put i; that of put number ops only ends the last window. */
static struct produce_args produce(const struct put *p, uint32_t i)
{
	const struct host *h = p->impl;
	const bool closing = i == p->slots.ops;

	return (struct produce_args){
		p->env->end[END_A].src + (size_t)(closing ? 0 : i) * p->slots.stride,
		p->slots.seq0 + i, closing ? 0 : p->slots.bytes, 0, h->walls + 2 * i};
}

static int launch(struct put *p, uint32_t i)
{
	const struct produce_args a = produce(p, i);

	return sm_launch(p->env->sm, kernel(p), &a);
}

static int run_sync(struct put *p)
{
	struct host *h = p->impl;
	int err;

	for (uint32_t i = 0; i <= p->slots.ops; i++) {
		h->op[i].launch = clock_host_ticks();
		OUR_TRY(launch(p, i), err, out);
		OUR_TRY(sm_sync(p->env->sm), err, out);
		h->op[i].ended = clock_host_ticks();
		if (i < p->slots.ops)
			OUR_TRY(host_put(p, i), err, out);
	}
out:
	return err;
}

static int await_mark(const struct put *p, uint32_t i)
{
	const uint64_t start = clock_host_ticks();
	uint32_t looks = 0;
	int there;

	while (!(there = sm_reached(p->env->sm))) {
		dev_relax();
		if (++looks > LOOKS_PATIENT)
			dev_give_way();
		if (clock_host_ticks() - start > p->deadline_ticks)
			return err_say(
				-ETIMEDOUT,
				"the event behind kernel %u was not done within its deadline",
				i);
	}
	return there < 0 ? there : 0;
}

static int run_event(struct put *p)
{
	struct host *h = p->impl;
	int err, ended;

	for (uint32_t i = 0; i <= p->slots.ops; i++) {
		h->op[i].launch = clock_host_ticks();
		OUR_TRY(launch(p, i), err, out);
		OUR_TRY(sm_mark(p->env->sm), err, out);
		OUR_TRY(await_mark(p, i), err, out);
		h->op[i].ended = clock_host_ticks();
		if (i < p->slots.ops)
			OUR_TRY(host_put(p, i), err, out);
	}
out:
	ended = sm_sync(p->env->sm);
	return err ? err : ended;
}

/* Behind kernel i, on the thread that the driver chose.  Once a put has failed, the kernels that were handed over run to their end
 * without puts. */
static void put_behind(void *arg)
{
	const struct host_turn *t = arg;
	struct host *h = t->p->impl;

	h->op[t->i].ended = clock_host_ticks();
	if (t->i == t->p->slots.ops || h->err)
		return;
	h->err = host_put(t->p, t->i);
	if (h->err)
		snprintf(h->why, sizeof h->why, "%s", err_last());
}

static void turns_ready(struct put *p)
{
	struct host *h = p->impl;

	h->err = 0;
	for (uint32_t i = 0; i <= p->slots.ops; i++)
		h->turn[i] = (struct host_turn){p, i};
}

/* Wait for all that was handed over; what went wrong first. */
static int turns_end(struct put *p, int err)
{
	const struct host *h = p->impl;
	int ended = sm_sync(p->env->sm);

	if (h->err)
		return err_say(h->err, "%s", h->why);
	return err ? err : ended;
}

static int run_callback(struct put *p)
{
	struct host *h = p->impl;
	int err = 0;

	turns_ready(p);
	for (uint32_t i = 0; i <= p->slots.ops && !err; i++) {
		err = launch(p, i);
		if (!err)
			err = sm_call(p->env->sm, put_behind, &h->turn[i]);
	}
	return turns_end(p, err);
}

static int run_graph(struct put *p)
{
	const uint32_t n = p->slots.ops + 1;
	struct host *h = p->impl;
	struct produce_args *a = calloc(n, sizeof *a);
	struct sm_step *steps = calloc(2 * (size_t)n, sizeof *steps);
	struct sm_graph *g = NULL;
	int err = a && steps ? 0 : err_say(-ENOMEM, "no memory for a graph of %u", n);

	turns_ready(p);
	for (uint32_t i = 0; i < n && !err; i++) {
		a[i] = produce(p, i);
		steps[2 * i] = (struct sm_step){.kernel = kernel(p), .args = &a[i]};
		steps[2 * i + 1] = (struct sm_step){.fn = put_behind, .arg = &h->turn[i]};
	}
	if (!err)
		err = sm_graph_make(p->env->sm, steps, 2 * (size_t)n, &g);
	if (!err)
		err = turns_end(p, sm_graph_launch(p->env->sm, g));
	sm_graph_free(p->env->sm, g);
	free(steps);
	free(a);
	return err;
}

static const struct host_method methods[] = {
	{"sync", false, run_sync},
	{"event", false, run_event},
	{"callback", true, run_callback},
	{"graph", true, run_graph},
};

const struct host_method *host_method_find(const char *name)
{
	for (unsigned i = 0; i < sizeof methods / sizeof *methods; i++)
		if (!strcmp(methods[i].name, name))
			return &methods[i];
	return &methods[0];
}
