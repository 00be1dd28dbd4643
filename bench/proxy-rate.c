/* SPDX-License-Identifier: Apache-2.0
 * proxy-rate: how fast is a CPU proxy, over its workers, rings and chains, and what does its ring cost the SM?
 *
 * Times:     rate: first descriptor of a window enqueued -> completion of its last message seen, messages / that time;
 *            put_completion and issue of single puts by each protocol, with the proxy's hops; handoff: a descriptor
 *            enqueued -> its echo by the worker seen
 * Path:      SM -> R rings -> T workers -> chains of up to B work requests -> T queue pairs -> NIC -> counters -> SM
 * Clock:     the SM's own; hops: the SM's and the worker's, brought together by one correlation (clock_bound)
 * Includes:  filling and draining the pipe: a short window says less than a long one; the SM's own pace of enqueueing
 * Lies when: spinners exceed CPUs (rows marked oversubscribed: workers take turns on a core); the NIC is virtual: its software
 *            executes each message on a CPU and is the limit long before a ConnectX would be
 */
#include <stdlib.h>

#include "err.h"
#include "path/proxy_rate.h"
#include "path/put.h"

/* One put at a time, in each way to enqueue; and the ring without a NIC. */
static int add_single(struct case_list *out, const struct env *env, const char *protocol)
{
	const bool tuned = !strcmp(protocol, "tuned");
	int err = put_case_add(out, env, "proxy-rate", "proxy", "put_completion", 8,
			       tuned ? "settled" : "sys-release", false);

	if (!err && tuned)
		err = put_case_add(out, env, "proxy-rate", "proxy", "put_completion", 8,
				   "sys-fence", false);
	return err ? err : proxy_handoff_add(out, env, "proxy-rate", protocol);
}

static int add_rates(const struct opts *o, const struct env *env, struct case_list *out,
		     struct proxy_point at)
{
	const struct opt_sizes *t = opts_sizes(o, "workers"), *r = opts_sizes(o, "rings"),
			       *b = opts_sizes(o, "wqe_batch");
	int err = 0;

	for (size_t i = 0; i < t->n; i++)
		for (size_t k = 0; k < r->n; k++)
			for (size_t m = 0; m < b->n && !err; m++) {
				at.shape.workers = (uint32_t)t->v[i];
				at.shape.rings = (uint32_t)r->v[k];
				at.shape.batch = (uint32_t)b->v[m];
				err = proxy_rate_add(out, env, "proxy-rate", &at);
			}
	return err;
}

static int proxy_rate_cases(const struct opts *o, const struct env *env,
			    struct case_list *out)
{
	const char *protocols[OPT_LIST_MAX], *counters[OPT_LIST_MAX];
	size_t n = opts_list(o, "protocol", protocols),
	       m = opts_list(o, "counter", counters);
	int err = put_opts_check(o);

	if (!err)
		err = proxy_opts_check(o);
	for (size_t i = 0; i < n && !err; i++) {
		err = add_single(out, env, protocols[i]);
		for (size_t k = 0; k < m && !err; k++)
			err = add_rates(o, env, out,
					(struct proxy_point){.protocol = protocols[i],
							     .counter = counters[k]});
	}
	return err;
}

static bool is_put(const struct case_desc *c)
{
	return !strcmp(c->main_metric, "put_completion");
}

struct state {
	bool put;
	void *own;
};

static int rate_case_open(struct env *env, struct case_desc *c, void **out)
{
	struct state *s = calloc(1, sizeof *s);
	int err;

	*out = NULL;
	if (!s)
		return err_say(-ENOMEM, "no memory for case %s", c->id);
	s->put = is_put(c);
	err = s->put ? put_open(env, c, &s->own) : proxy_rate_open(env, c, &s->own);
	if (err)
		free(s);
	else
		*out = s;
	return err;
}

static int rate_case_batch(void *state, struct batch *b)
{
	struct state *s = state;

	return s->put ? put_batch(s->own, b) : proxy_rate_batch(s->own, b);
}

static void rate_case_close(void *state)
{
	struct state *s = state;

	if (s->put)
		put_close(s->own);
	else
		proxy_rate_close(s->own);
	free(s);
}

const struct bench bench_proxy_rate = {
	.name = "proxy-rate",
	.question =
		"the CPU proxy over workers, rings, chains and protocol: message rate, enqueue, hops, hand-off",
	.uses = "ops protocol workers rings wqe_batch counter window",
	.needs_env = true,
	.cases = proxy_rate_cases,
	.open = rate_case_open,
	.batch = rate_case_batch,
	.close = rate_case_close,
};
