/* SPDX-License-Identifier: Apache-2.0
 * proxy_rate.c: a window of messages through a pool of workers; a descriptor there and back without a NIC.
 */
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "path/launch.h"
#include "path/proxy_rate.h"
#include "path/slots.h"

#pragma weak proxy_kernels_cuda
#pragma weak proxy_rate_kernels_cuda

#define BYTES 8u
#define STRIDE 64u
#define WINDOW_MAX (DATA_BYTES / STRIDE)
#define DEADLINE_NS 1.5e9 /* without any progress */

struct rate {
	struct env *env;
	struct case_desc *c;
	struct pool *pool;
	enum proxy_order order;
	uint32_t ops;
	bool handoff, overhead_known;
	uint64_t wqes, posts; /* warm-up left out */
};

/* ---- cases ---- */
static int in_range(const struct opts *o, const char *key, uint64_t max)
{
	const struct opt_sizes *s = opts_sizes(o, key);

	for (size_t i = 0; i < s->n; i++)
		if (s->v[i] > max)
			return err_say(-EINVAL, "%s: %llu is outside 1 .. %llu", key,
				       (unsigned long long)s->v[i],
				       (unsigned long long)max);
	return 0;
}

int proxy_opts_check(const struct opts *o)
{
	int64_t window = opts_int(o, "window");
	int err = in_range(o, "workers", POOL_WORKERS_MAX);

	if (!err)
		err = in_range(o, "rings", PROXY_RINGS_MAX);
	if (!err)
		err = in_range(o, "wqe_batch", POOL_BATCH_MAX);
	if (!err && (window < 1 || window > (int64_t)WINDOW_MAX))
		err = err_say(-EINVAL, "window: %lld messages is outside 1 .. %u",
			      (long long)window, WINDOW_MAX);
	return err;
}

static void waive(struct case_desc *c, const char *reason)
{
	c->status = CASE_WAIVED;
	snprintf(c->reason, sizeof c->reason, "%s", reason);
}

static struct case_desc *add(struct case_list *l, const struct env *env,
			     const char *bench, const char *protocol, const char *metric,
			     const struct pool_shape *s)
{
	struct case_desc *c = case_add(l);

	if (!c) {
		err_say(-ENOMEM, "no memory for the list of cases");
		return NULL;
	}
	c->bench = bench;
	c->path = "proxy";
	c->main_metric = metric;
	c->size_bytes = BYTES;
	c->ordering = strcmp(protocol, "baseline") ? "settled" : "sys-release";
	c->protocol = protocol;
	c->inlined = "pointer";
	c->completion = "counter";
	c->workers = s->workers;
	c->rings = s->rings;
	c->queue = c->cq = c->dbrec = c->data = c->doorbell = c->endpoints = c->sm = "";
	c->nature = "virtual";
	if (!env)
		return c;
	c->sm = sm_kind(env->sm);
	c->nature = env_nature(env);
	c->data = env->data_place == SM_GPU ? "gpu" : "host";
	c->spinners = s->workers + !sm_is_gpu(env->sm) + env->virtual_nic;
	c->oversubscribed = c->spinners > sm_cpus();
	return c;
}

static void waive_rate(struct case_desc *c, const struct env *env,
		       const struct proxy_point *at)
{
	if (at->shape.rings < at->shape.workers)
		waive(c, "fewer rings than workers: a worker would have nothing to do");
	else if (!strcmp(at->counter, "gpu"))
		waive(c,
		      env && !sm_is_gpu(env->sm)
			      ? "needs a GPU: the counter would lie in its memory"
			      : "the CPU cannot store into GPU memory: that needs a mapping such as GDRCopy's, which this "
				"version does not make");
	else if (env && env->end[END_B].remote && at->shape.workers > 1)
		waive(c,
		      "this version gives rank 1 one queue pair: several workers run between the endpoints of one process");
}

int proxy_rate_add(struct case_list *l, const struct env *env, const char *bench,
		   const struct proxy_point *at)
{
	const struct pool_shape *s = &at->shape;
	struct case_desc *c = add(l, env, bench, at->protocol, "rate_msgs_per_s", s);

	if (!c)
		return -ENOMEM;
	snprintf(c->id, sizeof c->id, "%s/%s/T%u/R%u/B%u%s", bench, at->protocol,
		 s->workers, s->rings, s->batch,
		 strcmp(at->counter, "gpu") ? "" : "/counter-gpu");
	c->queue = c->cq = c->dbrec = "host";
	c->doorbell = "db";
	c->endpoints = env ? rig_endpoints(env) : "";
	if (!strcmp(at->counter, "gpu"))
		c->completion = "counter-gpu";
	c->qps = s->workers;
	c->batch = c->signalled = s->batch;
	c->arg = NULL;
	waive_rate(c, env, at);
	return 0;
}

int proxy_handoff_add(struct case_list *l, const struct env *env, const char *bench,
		      const char *protocol)
{
	const struct pool_shape one = {.workers = 1, .rings = 1, .batch = 1};
	struct case_desc *c = add(l, env, bench, protocol, "handoff", &one);

	if (!c)
		return -ENOMEM;
	snprintf(c->id, sizeof c->id, "%s/handoff/%s", bench, protocol);
	return 0;
}

/* ---- one case ---- */
void proxy_rate_close(void *state)
{
	struct rate *f = state;

	pool_close(f->pool);
	free(f);
}

int proxy_rate_open(struct env *env, struct case_desc *c, void **state)
{
	const struct pool_shape shape = {.workers = c->workers,
					 .rings = c->rings,
					 .batch = c->batch ? c->batch : 1};
	struct rate *f = calloc(1, sizeof *f);
	int err;

	*state = NULL;
	if (!f)
		return err_say(-ENOMEM, "no memory for %s", c->id);
	f->env = env;
	f->c = c;
	f->handoff = !strcmp(c->main_metric, "handoff");
	f->order = strcmp(c->protocol, "baseline") ? PROXY_SETTLED : PROXY_SYS_RELEASE;
	f->ops = (uint32_t)opts_int(env->opts, f->handoff ? "ops" : "window");
	if (!f->handoff)
		c->window = f->ops;
	c->step_ns = env->sm_clock.step_ns;
	c->timer_overhead_ns = env->sm_clock.overhead_ns;
	err = pool_open(&f->pool, env, &shape);
	if (err)
		free(f);
	else
		*state = f;
	return err;
}

static void tell_launch(struct rate *f, struct slots *s, struct dev_launch *l)
{
	struct env *e = f->env;

	s->seq0 = e->next_seq;
	s->bytes = BYTES;
	s->stride = STRIDE;
	s->ops = f->ops;
	s->inl = 0;
	e->next_seq += f->ops;
	l->s.src = e->end[END_A].src;
	l->s.stride = STRIDE;
	l->s.count = f->ops;
	l->bytes = BYTES;
	l->ops = f->ops;
	l->seq0 = s->seq0;
	l->deadline_ticks = (uint64_t)(DEADLINE_NS / e->sm_clock.ns_per_tick);
	l->stamps = e->stamps;
	l->result = e->result;
}

static int run(struct rate *f, enum pool_mode mode, const struct dev_kernel *k,
	       const void *args)
{
	struct env *e = f->env;
	const struct dev_result *r = e->result;
	double wall;
	int err;

	pool_go(f->pool, mode, f->c->rings);
	err = launch_kernel(e, k, args, &wall);
	pool_park(f->pool);
	if (err || r->status == DEV_OK)
		return err;
	if (!f->handoff)
		rig_pair_broken(e, false);
	return r->status == DEV_DEADLINE
		       ? err_say(-ETIMEDOUT,
				 "%s: nothing moved within the deadline: the workers or the NIC stand still",
				 f->c->id)
		       : err_say(-EREMOTEIO,
				 "%s: a put ended in an error completion, syndrome 0x%02x (%s)",
				 f->c->id, r->syndrome & 0xff, nic_syndrome(r->syndrome));
}

/* Taken once, from the case's first launch. */
static double overhead(struct rate *f, const struct clock_fit *c)
{
	if (!f->overhead_known)
		f->c->timer_overhead_ns = launch_overhead_ns(f->env, c);
	f->overhead_known = true;
	return f->c->timer_overhead_ns;
}

static int handoff_batch(struct rate *f, struct batch *b)
{
	const struct dev_kernel *k = sm_is_gpu(f->env->sm)
					     ? &proxy_kernels_cuda[f->order][0]
					     : &proxy_kernels_host[f->order][0];
	const uint64_t *t = f->env->stamps;
	struct proxy_args a = {0};
	struct slots s;
	struct clock_fit c;
	double *v, sub;
	int err;

	tell_launch(f, &s, &a.l);
	OUR_TRY(pool_reset(f->pool, false), err, out);
	OUR_TRY(pool_view(f->pool, &a.v), err, out);
	OUR_TRY(run(f, POOL_ECHO, k, &a), err, out);
	c = launch_clock(f->env);
	sub = overhead(f, &c);
	PTR_TRY(v = batch_series(b, "handoff", f->ops), err, out);
	for (uint32_t i = 0; i < f->ops; i++)
		v[i] = clock_ns(&c, t[3 * i + 2] - t[3 * i]) - sub;
	err = launch_timer_series(f->env, b, &c);
out:
	return err;
}

/* What the workers did stands in the row: how long the chains became, and where they ran. */
static void note(struct rate *f, const struct batch *b)
{
	struct case_desc *c = f->c;
	uint64_t wqes, posts;
	int at;

	pool_counts(f->pool, &wqes, &posts);
	if (b->warmup)
		return;
	f->wqes += wqes;
	f->posts += posts;
	at = snprintf(c->reason, sizeof c->reason, "%.1f work requests a post; CPUs",
		      (double)f->wqes / (double)f->posts);
	for (uint32_t k = 0; k < c->workers; k++)
		at += snprintf(c->reason + at, sizeof c->reason - (size_t)at, " %d",
			       pool_cpu(f->pool, k));
}

static int rate_batch(struct rate *f, struct batch *b)
{
	struct env *e = f->env;
	struct proxy_rate_args a = {.rings = f->c->rings};
	struct slots s;
	struct clock_fit c;
	uint64_t bad;
	double *v;
	int err;

	tell_launch(f, &s, &a.l);
	OUR_TRY(pool_reset(f->pool, false), err, out);
	OUR_TRY(pool_view(f->pool, &a.v), err, out);
	OUR_TRY(slots_fill(e, END_A, &s), err, out);
	OUR_TRY(rig_poison(e, END_B, &s), err, out);
	OUR_TRY(run(f, POOL_POST,
		    sm_is_gpu(e->sm) ? &proxy_rate_kernels_cuda[f->order]
				     : &proxy_rate_kernels_host[f->order],
		    &a),
		err, out);
	f->c->puts += f->ops;
	OUR_TRY(rig_bad(e, END_B, &s, &bad), err, out);
	f->c->payload_errors += bad;
	e->count.payload_errors += bad;
	if (bad)
		return err_say(-EBADMSG, "%llu of %u messages arrived with wrong bytes",
			       (unsigned long long)bad, f->ops);
	c = launch_clock(e);
	PTR_TRY(v = batch_series(b, "rate_msgs_per_s", 1), err, out);
	*v = f->ops / (1e-9 * (clock_ns(&c, e->stamps[0]) - overhead(f, &c)));
	note(f, b);
	err = launch_timer_series(e, b, &c);
out:
	return err;
}

int proxy_rate_batch(void *state, struct batch *b)
{
	struct rate *f = state;
	struct env *e = f->env;

	sm_spinners(f->c->spinners - e->virtual_nic, e->virtual_nic,
		    opts_bool(e->opts, "pin"));
	return f->handoff ? handoff_batch(f, b) : rate_batch(f, b);
}
