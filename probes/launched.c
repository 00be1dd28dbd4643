/* SPDX-License-Identifier: Apache-2.0
 * launched.c: launch a probe's kernel; its stamps become samples.
 */
#include <stdio.h>

#include "err.h"
#include "launched.h"
#include "path/launch.h"

struct case_desc *launched_case(struct case_list *out, const struct env *env,
				const char *bench, const char *name, const char *metric,
				unsigned threads)
{
	struct case_desc *c = case_add(out);

	if (!c) {
		err_say(-ENOMEM, "no memory for the list of cases");
		return NULL;
	}
	snprintf(c->id, sizeof c->id, "%s/%s", bench, name);
	c->bench = bench;
	c->path = "none";
	c->main_metric = metric;
	c->size_bytes = 8;
	c->ordering = c->inlined = c->queue = c->cq = c->dbrec = c->data = c->doorbell =
		c->completion = c->endpoints = c->sm = "";
	c->nature = "virtual";
	if (!env)
		return c;
	c->sm = sm_kind(env->sm);
	c->nature = env_nature(env);
	c->spinners = threads + !sm_is_gpu(env->sm) + env->virtual_nic;
	c->oversubscribed = c->spinners > sm_cpus();
	return c;
}

void launched_waive(struct case_desc *c, const char *reason)
{
	c->status = CASE_WAIVED;
	snprintf(c->reason, sizeof c->reason, "%s", reason);
}

bool launched_on_gpu(const struct env *env)
{
	return env && sm_is_gpu(env->sm);
}

bool launched_on_threads(const struct env *env)
{
	return env && !sm_is_gpu(env->sm);
}

void launched_init(struct launched *l, struct env *env, struct case_desc *c,
		   const struct dev_kernel *k, double per)
{
	l->env = env;
	l->c = c;
	l->kernel = k;
	l->spinners = c->spinners - env->virtual_nic;
	l->per = per;
	l->overhead_ns = env->sm_clock.overhead_ns;
	l->overhead_known = false;
	l->clock = env->sm_clock;
	c->step_ns = env->sm_clock.step_ns / per;
	c->timer_overhead_ns = l->overhead_ns / per;
}

uint64_t launched_ticks(const struct env *env, double ns)
{
	return (uint64_t)(ns / env->sm_clock.ns_per_tick);
}

void launched_ready(struct launched *l)
{
	struct env *e = l->env;

	sm_spinners(l->spinners, e->virtual_nic, opts_bool(e->opts, "pin"));
	memset(e->result, 0xff, sizeof *e->result);
}

int launched_start(struct launched *l, const void *args)
{
	launched_ready(l);
	return sm_launch(l->env->sm, l->kernel, args);
}

static void settle_overhead(struct launched *l)
{
	if (l->overhead_known)
		return;
	l->overhead_ns = launch_overhead_ns(l->env, &l->clock);
	l->c->timer_overhead_ns = l->overhead_ns / l->per;
	l->overhead_known = true;
}

int launched_end(struct launched *l)
{
	const struct dev_result *r = l->env->result;
	int err = sm_sync(l->env->sm);

	if (err)
		return err;
	if (r->status == DEV_DEADLINE)
		return err_say(-ETIMEDOUT,
			       "%s: turn %u did not end within its deadline on the %s",
			       l->c->id, r->at, sm_kind(l->env->sm));
	if (r->status != DEV_OK)
		return err_say(-EIO, "%s: the kernel ended with status %u at turn %u",
			       l->c->id, r->status, r->at);
	l->clock = launch_clock(l->env);
	settle_overhead(l);
	return 0;
}

int launched_samples(struct launched *l, struct batch *b, const char *metric, uint32_t n)
{
	double *v = batch_series(b, metric, n);

	if (!v)
		return err_say(-ENOMEM, "no memory for samples");
	for (uint32_t i = 0; i < n; i++)
		v[i] = (clock_ns(&l->clock, l->env->stamps[i]) - l->overhead_ns) / l->per;
	return launch_timer_series(l->env, b, &l->clock);
}
