/* SPDX-License-Identifier: Apache-2.0
 * hops: where does the time of one put go, hop by hop, and does the sum close on the whole?
 *
 * Times:     per put the SM's own steps (wqe_build, order, doorbell_store, completion), and from the stored doorbell to
 *            the CQE or to the flag at the peer; each experiment stamped, and plain beside it
 * Path:      NOP, WRITE, WRITE_IMM, READ x doorbell or BlueFlame x inline or pointer x loopback or across x CQE, flag or
 *            live clock; the solver (harness/solve.c) makes the NIC's hops of them
 * Clock:     the SM's own, for every window
 * Includes:  the look that sees the end: its period is measured and is a hop of its own (poll)
 * Lies when: an assumption of the equations does not hold (each hop says which it needs), or batches of different
 *            experiments met a different machine (the rounds are shuffled against that)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "path/hop.h"

#define GROUPS_MAX 40
#define GROUP_CHARS 180

/* The groups' names outlive the list of cases. */
static char groups[GROUPS_MAX][GROUP_CHARS];

static int read_groups(const struct opts *o, unsigned *n)
{
	const char *text = opts_str(o, "vcx_delays");
	uint64_t ns[NIC_HOPS];

	snprintf(groups[0], GROUP_CHARS, "base");
	*n = 1;
	while (*(text += strspn(text, ", "))) {
		size_t len = strcspn(text, ", ");
		int err;

		if (*n == GROUPS_MAX || len >= GROUP_CHARS)
			return err_say(
				-EINVAL,
				"vcx_delays: more than %d groups, or one of more than %d characters",
				GROUPS_MAX - 1, GROUP_CHARS - 1);
		snprintf(groups[*n], GROUP_CHARS, "%.*s", (int)len, text);
		err = hop_group_parse(groups[(*n)++], ns);
		if (err)
			return err;
		text += len;
	}
	return 0;
}

/* Everything at the first size; over the other sizes only what the slopes need. */
static bool wanted(const struct hop_exp *x, bool first)
{
	return first || (!strcmp(x->opcode, "write") && !strcmp(x->payload, "pointer") &&
			 !strcmp(x->doorbell, "db") && !strcmp(x->end, "cqe"));
}

/* Round trips with a wait at the responder, and the pace behind one doorbell. */
static int add_beside(const struct opts *o, const struct env *env, struct case_list *out)
{
	static uint64_t holds[OPT_LIST_MAX]; /* outlive the list of cases */
	const struct opt_sizes *s = opts_sizes(o, "holds");
	const char *ends = env ? rig_endpoints(env) : "across";
	int err;

	memcpy(holds, s->v, s->n * sizeof *holds);
	err = hop_beside_add(out, env, "hops", "gap", ends, NULL);
	for (size_t i = 0; i < s->n && !err; i++)
		err = hop_beside_add(out, env, "hops", "rtt", ends, &holds[i]);
	return err;
}

static int check(const struct opts *o)
{
	const struct opt_sizes *s = opts_sizes(o, "sizes");
	int64_t ops = opts_int(o, "ops");
	double base = opts_dbl(o, "vcx_base");

	if (ops < 1 || ops > (int64_t)HOP_OPS_MAX)
		return err_say(-EINVAL, "ops: %lld is outside 1 .. %u", (long long)ops,
			       HOP_OPS_MAX);
	if (base < 0 || base > 1e8)
		return err_say(-EINVAL, "vcx_base: %g ns is outside 0 .. 1e8", base);
	if (!s->n || s->v[0] != 8)
		return err_say(
			-EINVAL,
			"sizes: hops takes its first size as 8 B: it must fit inline and in one word");
	for (size_t i = 0; i < s->n; i++)
		if (!s->v[i] || s->v[i] > PUT_BYTES_MAX)
			return err_say(-EINVAL, "sizes: %llu bytes is outside 1 .. %u",
				       (unsigned long long)s->v[i], PUT_BYTES_MAX);
	return 0;
}

static int hops_cases(const struct opts *o, const struct env *env, struct case_list *out)
{
	const struct opt_sizes *sizes = opts_sizes(o, "sizes");
	const bool loopback_only = !strcmp(opts_str(o, "endpoints"), "loopback");
	unsigned n;
	int err = check(o);

	if (!err)
		err = read_groups(o, &n);
	for (unsigned g = 0; !err && g < n; g++)
		for (size_t s = 0; s < sizes->n; s++)
			for (size_t i = 0; i < hop_exp_count && !err; i++) {
				const struct hop_exp *x = &hop_exps[i];

				if (!wanted(x, s == 0) || (g && s) ||
				    (loopback_only && strcmp(x->endpoints, "loopback")))
					continue;
				err = hop_case_add(out, env, "hops", x, groups[g],
						   sizes->v[s]);
			}
	return err ? err : add_beside(o, env, out);
}

static const struct hop_ops *ops_of(const struct case_desc *c)
{
	return c->opcode ? &hop_ops : &hop_beside_ops;
}

struct state {
	const struct hop_ops *ops;
	void *own;
};

static int hops_open(struct env *env, struct case_desc *c, void **out)
{
	struct state *s = calloc(1, sizeof *s);
	int err;

	*out = NULL;
	if (!s)
		return err_say(-ENOMEM, "no memory for case %s", c->id);
	s->ops = ops_of(c);
	err = s->ops->open(env, c, &s->own);
	if (err) {
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

static int hops_batch(void *state, struct batch *b)
{
	struct state *s = state;

	return s->ops->batch(s->own, b);
}

static void hops_close(void *state)
{
	struct state *s = state;

	s->ops->close(s->own);
	free(s);
}

const struct bench bench_hops = {
	.name = "hops",
	.question =
		"one put taken apart: every hop with its interval, closing on the whole",
	.uses = "sizes ops vcx_base vcx_delays holds",
	.needs_env = true,
	.together = true,
	.cases = hops_cases,
	.open = hops_open,
	.batch = hops_batch,
	.close = hops_close,
};
