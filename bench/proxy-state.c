/* SPDX-License-Identifier: Apache-2.0
 * proxy-state: what does the proxy's put cost when its core has slept, and when it has worked?
 *
 * Times:     put_completion, issue and the proxy's hops, and rtt, of single puts; cold and warm
 * Path:      as the proxy's in quick; before each launch either idle_ms without work (the worker sleeps, as do SM and NIC), or
 *            load_ms of puts on the same path
 * Clock:     the SM's own; hops: SM and worker, see proxy-rate.  core_cycle: the worker times a chain of instructions of one
 *            cycle each as it wakes
 * Includes:  nothing of waking the worker: it stands ready before the launch begins.  The launch's first puts are the coldest;
 *            all of them count
 * Lies when: the machine is not ours alone: then no core is cold; the machine is virtual and its host keeps the clock up; ops
 *            is large: the core has woken long before the launch ends
 */
#include <stdio.h>
#include <time.h>

#include "cpu_state.h"
#include "engine.h"
#include "err.h"
#include "path/pool.h"
#include "path/put.h"

#define NS_PER_MS 1e6
#define MS_MAX 600000.0

static int state_check(const struct opts *o)
{
	static const char *const keys[] = {"idle_ms", "load_ms"};

	for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++)
		if (opts_dbl(o, keys[i]) > MS_MAX)
			return err_say(-EINVAL, "%s: %g is more than %g ms", keys[i],
				       opts_dbl(o, keys[i]), MS_MAX);
	return put_opts_check(o);
}

static int proxy_state_cases(const struct opts *o, const struct env *env,
			     struct case_list *out)
{
	static const char *const states[] = {"cold", "warm"}, *const metrics[] = {
								      "put_completion",
								      "rtt"};
	int err = state_check(o);

	for (unsigned m = 0; m < 2; m++)
		for (unsigned s = 0; s < 2 && !err; s++) {
			struct case_desc *c;

			err = put_case_add(out, env, "proxy-state", "proxy", metrics[m],
					   8, "sys-fence", false);
			if (err)
				break;
			c = &out->v[out->n - 1];
			c->state = states[s];
			snprintf(c->id, sizeof c->id, "proxy-state/%s/%s", states[s],
				 metrics[m]);
		}
	return err;
}

static int cool(struct put *p)
{
	const uint64_t ns = (uint64_t)(NS_PER_MS * opts_dbl(p->env->opts, "idle_ms"));
	struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	while (nanosleep(&left, &left) && errno == EINTR && !run_stop)
		;
	return 0;
}

/* Puts whose samples nobody keeps: the load. */
static int heat(struct put *p)
{
	const uint64_t until = clock_monotonic_raw_ns() +
			       (uint64_t)(NS_PER_MS * opts_dbl(p->env->opts, "load_ms"));
	struct batch load = {0};
	int err = 0;

	p->before = NULL;
	while (!err && !run_stop && clock_monotonic_raw_ns() < until) {
		err = put_batch(p, &load);
		batch_reset(&load);
	}
	p->before = heat;
	return err;
}

static int proxy_state_open(struct env *env, struct case_desc *c, void **state)
{
	int err = put_open(env, c, state);

	if (!err)
		((struct put *)*state)->before = strcmp(c->state, "cold") ? heat : cool;
	return err;
}

static int proxy_state_batch(void *state, struct batch *b)
{
	struct put *p = state;
	int err = put_batch(p, b), cpu = pool_cpu(p->impl, 0);
	const double mhz = cpu_mhz(cpu);

	cpu_governor(cpu, p->c->governor, sizeof p->c->governor);
	p->c->cpu_mhz = mhz > 0 ? mhz : 0;
	if (*p->c->governor && mhz > 0)
		snprintf(p->c->reason, sizeof p->c->reason, "worker last on CPU %d", cpu);
	else
		snprintf(
			p->c->reason, sizeof p->c->reason,
			"worker last on CPU %d; no governor and no clock from cpufreq: the kernel shows none of it here "
			"(virtual machine, or no cpufreq driver)",
			cpu);
	return err;
}

const struct bench bench_proxy_state = {
	.name = "proxy-state",
	.question =
		"the CPU proxy's put after its core has slept and after it has worked",
	.uses = "ops idle_ms load_ms",
	.needs_env = true,
	.cases = proxy_state_cases,
	.open = proxy_state_open,
	.batch = proxy_state_batch,
	.close = put_close,
};
