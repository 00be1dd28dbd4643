/* SPDX-License-Identifier: Apache-2.0
 * posted-write: how fast can an SM post 8 B writes to host memory?  A rate, not a latency: when a posted write arrives
 * its sender never learns; the round trip that holds one is gpu-cpu-flag.
 *
 * Times:     the gap between stores of a long run, each to a line of its own (lines) or all to one word (one-word)
 * Path:      SM -> L2 -> PCIe posted write -> host memory; nothing comes back
 * Clock:     the SM's own: clock64, or the host's ticks
 * Includes:  gap: a sample is the mean gap of 64 stores, after a run-in that fills the buffers on the way; the clock read
 *            between groups, subtracted.  gap_drained: one sample a launch, all stores and the system fence behind them
 * Lies when: it is taken for the latency of a write, or for what PCIe can carry: one thread stores, a few instructions
 *            apart; gap is far below gap_drained: the buffers on the way have not been filled; a host thread plays the SM:
 *            its stores go to a cache, no PCIe in between
 */
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "launched.h"
#include "posted-write_dev.h"
#include "sm/dev.h"

#pragma weak posted_kernels_cuda

struct posted {
	struct launched l;
	enum posted_where where;
	uint8_t *mem;
	uint64_t value; /* of the next launch's first store */
};

static const char *const names[POSTED_WHERES] = {"lines", "one-word"};

static int posted_cases(const struct opts *o, const struct env *env,
			struct case_list *out)
{
	(void)o;
	for (unsigned i = 0; i < POSTED_WHERES; i++) {
		struct case_desc *c =
			launched_case(out, env, "posted-write", names[i], "gap", 0);

		if (!c)
			return -ENOMEM;
		c->data = "host";
	}
	return 0;
}

static void posted_close(void *state)
{
	struct posted *f = state;

	sm_free(f->l.env->sm, f->mem, POSTED_BYTES, SM_HOST);
	free(f);
}

static int posted_open(struct env *env, struct case_desc *c, void **state)
{
	struct posted *f = calloc(1, sizeof *f);
	int err;

	if (!f)
		return err_say(-ENOMEM, "no memory for %s", c->id);
	f->where = strcmp(strchr(c->id, '/') + 1, names[POSTED_LINES]) ? POSTED_ONE_WORD
								       : POSTED_LINES;
	f->value = 1;
	launched_init(&f->l, env, c,
		      sm_is_gpu(env->sm) ? &posted_kernels_cuda[f->where]
					 : &posted_kernels_host[f->where],
		      POSTED_GROUP);
	err = sm_alloc(env->sm, POSTED_BYTES, SM_HOST, (void **)&f->mem);
	if (err) {
		posted_close(f);
		return err;
	}
	*state = f;
	return 0;
}

/* Did every store arrive?  To one word only the last can be told. */
static int check(struct posted *f)
{
	uint64_t bad = 0;

	if (f->where == POSTED_ONE_WORD)
		bad = dev_ld8b(f->mem) != f->value + POSTED_STORES - 1;
	for (uint32_t i = 0; f->where == POSTED_LINES && i < POSTED_STORES; i++)
		bad += dev_ld8b(f->mem + (size_t)i * POSTED_LINE_BYTES) != f->value + i;
	f->l.c->payload_errors += bad;
	f->l.env->count.payload_errors += bad;
	return !bad ? 0
		    : err_say(-EBADMSG, "%s: %llu of %u stores did not arrive",
			      f->l.c->id, (unsigned long long)bad, POSTED_STORES);
}

static int posted_batch(void *state, struct batch *b)
{
	struct posted *f = state;
	struct env *e = f->l.env;
	const struct posted_args a = {f->mem, f->value, e->stamps, e->result};
	double *drained = batch_series(b, "gap_drained", 1);
	int err;

	if (!drained)
		return err_say(-ENOMEM, "no memory for samples");
	OUR_TRY(launched_start(&f->l, &a), err, out);
	OUR_TRY(launched_end(&f->l), err, out);
	OUR_TRY(check(f), err, out);
	f->value += POSTED_STORES;
	OUR_TRY(launched_samples(&f->l, b, "gap", POSTED_GROUPS), err, out);
	*drained = (clock_ns(&f->l.clock, e->stamps[POSTED_GROUPS]) - f->l.overhead_ns) /
		   POSTED_STORES;
out:
	return err;
}

const struct bench bench_posted_write = {
	.name = "posted-write",
	.question = "bound: how fast an SM posts 8 B writes to host memory (a rate)",
	.uses = "",
	.needs_env = true,
	.cases = posted_cases,
	.open = posted_open,
	.batch = posted_batch,
	.close = posted_close,
};
