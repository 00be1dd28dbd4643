/* SPDX-License-Identifier: Apache-2.0
 * launch: what do a kernel's start and the news of its end cost the CPU?  The price of every host-initiated put.
 *
 * Times:     issue: launch of a null kernel called -> returned; sync: the same -> stream sync returned;
 *            event-query: event record called on an idle stream -> cudaEventQuery says done;
 *            callback: cudaLaunchHostFunc called on an idle stream -> the CPU sees that the callback ran
 * Path:      CPU -> driver -> GPU (issue); -> and back (sync, event-query); -> and back by a thread of the driver (callback)
 * Clock:     the host's ticks
 * Includes:  the runtime and the driver, one call at a time on an idle stream (issue and sync: 20 us after the one before
 *            ended); event-query: the last query, and a clock read between queries
 * Lies when: issue is taken for the time until the kernel starts; a host thread plays the SM: issue and sync are then a
 *            semaphore and a switch of threads; the CPU's clock moves or the calling thread has no core of its own
 */
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "launch_dev.h"
#include "launched.h"
#include "sm/dev.h"

#pragma weak launch_null_cuda
#pragma weak launch_cuda_open
#pragma weak launch_cuda_event_query
#pragma weak launch_cuda_callback
#pragma weak launch_cuda_close

#define CALLS 128u /* of one batch */
#define DEADLINE_NS 1e9
#define PAUSE_NS 2e4

struct launch {
	struct launched l;
	const struct kind *kind;
	struct launch_cuda *cuda; /* for the kinds that only CUDA has */
};

/* Until whoever ran the last kernel is idle again: a host SM then sleeps, and is woken like an SM that has no work. */
static void pause_between(const struct launch *f)
{
	const struct clock_fit *c = &f->l.env->host_clock;
	uint64_t t0 = clock_host_ticks();

	while (clock_ns(c, clock_host_ticks() - t0) < PAUSE_NS)
		dev_relax();
}

static int issue(struct launch *f, uint64_t *ticks)
{
	const struct launch_args a = {0};
	struct sm *sm = f->l.env->sm;
	int err;

	for (uint32_t i = 0; i < CALLS; i++) {
		uint64_t t0;

		pause_between(f);
		t0 = clock_host_ticks();
		OUR_TRY(sm_launch(sm, f->l.kernel, &a), err, out);
		ticks[i] = clock_host_ticks() - t0;
		OUR_TRY(sm_sync(sm), err, out);
	}
out:
	return err;
}

static int launch_and_sync(struct launch *f, uint64_t *ticks)
{
	const struct launch_args a = {0};
	struct sm *sm = f->l.env->sm;
	int err;

	for (uint32_t i = 0; i < CALLS; i++) {
		uint64_t t0;

		pause_between(f);
		t0 = clock_host_ticks();
		OUR_TRY(sm_launch(sm, f->l.kernel, &a), err, out);
		OUR_TRY(sm_sync(sm), err, out);
		ticks[i] = clock_host_ticks() - t0;
	}
out:
	return err;
}

static uint64_t deadline(const struct launch *f)
{
	return (uint64_t)(DEADLINE_NS / f->l.env->host_clock.ns_per_tick);
}

static int event_query(struct launch *f, uint64_t *ticks)
{
	return launch_cuda_event_query(f->cuda, ticks, CALLS, deadline(f));
}

static int callback(struct launch *f, uint64_t *ticks)
{
	return launch_cuda_callback(f->cuda, ticks, CALLS, deadline(f));
}

static const struct kind {
	const char *name;
	int (*measure)(struct launch *f, uint64_t *ticks);
	const char
		*needs_gpu; /* why it is waived on host threads; "" = it runs there too */
} kinds[] = {
	{"issue", issue, ""},
	{"sync", launch_and_sync, ""},
	{"event-query", event_query,
	 "needs a GPU: a host thread has no events; its sync is launch/sync"},
	{"callback", callback,
	 "needs a GPU: a host thread has no stream that calls back"},
};

static int launch_cases(const struct opts *o, const struct env *env,
			struct case_list *out)
{
	(void)o;
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		/* On a GPU the thread that launches is what spins. */
		struct case_desc *c = launched_case(out, env, "launch", kinds[i].name,
						    "wall", launched_on_gpu(env));

		if (!c)
			return -ENOMEM;
		c->size_bytes = 0;
		c->arg = &kinds[i];
		if (launched_on_threads(env) && *kinds[i].needs_gpu)
			launched_waive(c, kinds[i].needs_gpu);
	}
	return 0;
}

static void launch_close(void *state)
{
	struct launch *f = state;

	if (f->cuda)
		launch_cuda_close(f->cuda);
	free(f);
}

static int launch_open(struct env *env, struct case_desc *c, void **state)
{
	struct launch *f = calloc(1, sizeof *f);
	int err;

	if (!f)
		return err_say(-ENOMEM, "no memory for %s", c->id);
	f->kind = c->arg;
	launched_init(&f->l, env, c,
		      sm_is_gpu(env->sm) ? &launch_null_cuda : &launch_null_host, 1);
	c->step_ns = env->host_clock.step_ns;
	c->timer_overhead_ns = env->host_clock.overhead_ns;
	if (*f->kind->needs_gpu) {
		err = launch_cuda_open(&f->cuda);
		if (err) {
			launch_close(f);
			return err;
		}
	}
	*state = f;
	return 0;
}

static int launch_batch(void *state, struct batch *b)
{
	struct launch *f = state;
	const struct env *e = f->l.env;
	double *v = batch_series(b, "wall", CALLS);
	uint64_t ticks[CALLS];
	int err;

	if (!v)
		return err_say(-ENOMEM, "no memory for samples");
	launched_ready(&f->l);
	err = f->kind->measure(f, ticks);
	for (uint32_t i = 0; !err && i < CALLS; i++)
		v[i] = clock_ns(&e->host_clock, ticks[i]) - e->host_clock.overhead_ns;
	return err;
}

const struct bench bench_launch = {
	.name = "launch",
	.question = "bound: a null kernel's launch, and how the CPU learns of its end",
	.uses = "",
	.needs_env = true,
	.cases = launch_cases,
	.open = launch_open,
	.batch = launch_batch,
	.close = launch_close,
};
