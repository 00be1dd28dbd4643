/* SPDX-License-Identifier: Apache-2.0
 * handoff: how long does a flag take from one SM to another of the same GPU, and back?  What a block pays that lets
 * another block post for it.
 *
 * Times:     SM a stores the request flag -> SM a's load that sees SM b's reply
 * Path:      SM a --store--> L2 <--poll-- SM b; SM b --store--> L2 <--poll-- SM a
 * Clock:     clock64 of SM a
 * Includes:  a poll turn (an L2 hit) on each side.  relaxed: the flag alone; acq-rel: release stores and acquire loads at
 *            GPU scope, nothing else to order; payload: an 8 B payload stored before the request and read before the reply
 * Lies when: the two SMs share a cluster in one launch and lie across the L2's halves in the next: the scheduler chooses, so
 *            compare medians over batches; half of it is taken for one way
 */
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "handoff.h"
#include "launched.h"

#pragma weak handoff_cuda_run

#define MEM_BYTES 4096u
#define PONG_OFF 1024u
#define PAYLOAD_OFF 2048u
#define DEADLINE_NS 1e9

struct handoff {
	struct launched l;
	enum handoff_kind kind;
	uint8_t *mem; /* SM_GPU */
	uint64_t first;
};

static const struct {
	const char *name, *ordering;
} kinds[HANDOFF_KINDS] = {
	{"relaxed", ""}, {"acq-rel", "gpu-release"}, {"payload", "gpu-release"}};

static int handoff_cases(const struct opts *o, const struct env *env,
			 struct case_list *out)
{
	(void)o;
	for (unsigned i = 0; i < HANDOFF_KINDS; i++) {
		struct case_desc *c =
			launched_case(out, env, "handoff", kinds[i].name, "rtt", 0);

		if (!c)
			return -ENOMEM;
		c->data = "gpu";
		c->completion = "flag";
		c->ordering = kinds[i].ordering;
		if (launched_on_threads(env))
			launched_waive(
				c,
				"needs a GPU: two of its SMs; between two cores it is flag-rtt");
	}
	return 0;
}

static void handoff_close(void *state)
{
	struct handoff *f = state;

	sm_free(f->l.env->sm, f->mem, MEM_BYTES, SM_GPU);
	free(f);
}

static int handoff_open(struct env *env, struct case_desc *c, void **state)
{
	struct handoff *f = calloc(1, sizeof *f);
	int err;

	if (!f)
		return err_say(-ENOMEM, "no memory for %s", c->id);
	while (strcmp(strchr(c->id, '/') + 1, kinds[f->kind].name))
		f->kind++;
	f->first = 1;
	launched_init(&f->l, env, c, NULL, 1);
	err = sm_alloc(env->sm, MEM_BYTES, SM_GPU, (void **)&f->mem);
	if (err) {
		handoff_close(f);
		return err;
	}
	*state = f;
	return 0;
}

/* Two SMs, every turn answered, every payload there. */
static int check(struct handoff *f, const struct handoff_sides *s)
{
	struct case_desc *c = f->l.c;

	c->payload_errors += s->stale;
	f->l.env->count.payload_errors += s->stale;
	if (s->asking_sm == s->answering_sm)
		return err_say(
			-EIO,
			"%s: both blocks ran on SM %llu: a flag between them crosses nothing",
			c->id, (unsigned long long)s->asking_sm);
	if (s->answered != HANDOFF_TURNS)
		return err_say(-ETIMEDOUT, "%s: the answering SM saw %llu of %u requests",
			       c->id, (unsigned long long)s->answered, HANDOFF_TURNS);
	if (s->stale)
		return err_say(
			-EBADMSG,
			"%s: %llu of %u payloads were not there although their flag was",
			c->id, (unsigned long long)s->stale, HANDOFF_TURNS);
	snprintf(c->reason, sizeof c->reason, "last between SM %llu and SM %llu",
		 (unsigned long long)s->asking_sm, (unsigned long long)s->answering_sm);
	return 0;
}

static int handoff_batch(void *state, struct batch *b)
{
	struct handoff *f = state;
	struct env *e = f->l.env;
	const struct handoff_sides *sides =
		(const struct handoff_sides *)(e->stamps + HANDOFF_TURNS);
	const struct handoff_args a = {(uint64_t *)f->mem,
				       (uint64_t *)(f->mem + PONG_OFF),
				       (uint64_t *)(f->mem + PAYLOAD_OFF),
				       f->first,
				       launched_ticks(e, DEADLINE_NS),
				       e->stamps,
				       e->result};
	int err;

	launched_ready(&f->l);
	OUR_TRY(handoff_cuda_run(&a, f->kind), err, out);
	OUR_TRY(launched_end(&f->l), err, out);
	OUR_TRY(check(f, sides), err, out);
	f->first += HANDOFF_TURNS;
	err = launched_samples(&f->l, b, "rtt", HANDOFF_TURNS);
out:
	return err;
}

const struct bench bench_handoff = {
	.name = "handoff",
	.question = "bound: a flag from one SM to another of the same GPU and back",
	.uses = "",
	.needs_env = true,
	.cases = handoff_cases,
	.open = handoff_open,
	.batch = handoff_batch,
	.close = handoff_close,
};
