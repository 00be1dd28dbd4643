/* SPDX-License-Identifier: Apache-2.0
 * fake.c: a bench with known samples that drives the whole chain in the tests; `list` does not show it.
 *
 * Times:     nothing: value i of batch b is (i mod 100) + 1 + b/1000, so every statistic is known beforehand
 * Path:      none
 * Clock:     none; step 1 ns
 * Includes:  what the option `fake` asks for: a failing case, a waived case, batches that take time (slow; few: with a
 *            tenth of the samples), very many samples (flood), a value that is no number (nan)
 * Lies when: it is taken for a measurement
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "case.h"
#include "engine.h"
#include "err.h"
#include "opt.h"

#define SAMPLES 100u
#define SAMPLES_FEW 10u
#define SAMPLES_FLOOD 50000u
#define SLOW_MS 50
#define SLOW_APART \
	50.0 /* every other slow batch lies so much higher: its interval stays wide */

enum fake_kind {
	FAKE_GOOD,
	FAKE_FAILS,
	FAKE_WAIVED,
	FAKE_SLOW,
	FAKE_FEW,
	FAKE_FLOOD,
	FAKE_NAN,
	FAKE_KINDS
};
static const char *const kinds[FAKE_KINDS] = {"good", "fails", "waived", "slow",
					      "few",  "flood", "nan"};

static int fake_cases(const struct opts *o, const struct env *env, struct case_list *out)
{
	const char *want[OPT_LIST_MAX];
	size_t n = opts_list(o, "fake", want);

	(void)env;
	for (size_t i = 0; i < n; i++) {
		struct case_desc *c = case_add(out);

		if (!c)
			return err_say(-ENOMEM, "no memory for the list of cases");
		snprintf(c->id, sizeof c->id, "fake/%s", want[i]);
		c->bench = "fake";
		c->path = "none";
		c->size_bytes = 8;
		c->main_metric = "put_completion";
		c->nature = "virtual";
		c->ordering = c->inlined = c->queue = c->cq = c->dbrec = c->data =
			c->doorbell = c->completion = c->endpoints = c->sm = "";
		c->step_ns = 1;
		for (int k = 0; k < FAKE_KINDS; k++)
			if (!strcmp(want[i], kinds[k]))
				c->arg = kinds[k];
		if (c->arg == kinds[FAKE_WAIVED]) {
			c->status = CASE_WAIVED;
			snprintf(c->reason, sizeof c->reason,
				 "waived because the test asks for it");
		}
	}
	return 0;
}

static int fake_open(struct env *env, struct case_desc *c, void **state)
{
	(void)env;
	*state = c;
	return 0;
}

static int fake_batch(void *state, struct batch *b)
{
	const struct timespec nap = {0, SLOW_MS * 1000000L};
	struct case_desc *c = state;
	unsigned n = c->arg == kinds[FAKE_FEW]	   ? SAMPLES_FEW
		     : c->arg == kinds[FAKE_FLOOD] ? SAMPLES_FLOOD
						   : SAMPLES;
	double *v = batch_series(b, "put_completion", n),
	       *wall = batch_series(b, "wall", 1),
	       *rest = batch_series(b, "unaccounted", 1);

	if (!v || !wall || !rest)
		return err_say(-ENOMEM, "no memory for samples");
	if (c->arg == kinds[FAKE_FAILS] && b->index == 3)
		return err_say(-EIO, "failed because the test asks for it");
	if (c->arg == kinds[FAKE_SLOW] || c->arg == kinds[FAKE_FEW])
		nanosleep(&nap, NULL);
	for (unsigned i = 0; i < n; i++)
		v[i] = i % SAMPLES + 1 + b->index / 1000.0 +
		       (c->arg == kinds[FAKE_SLOW] ? SLOW_APART * (b->index % 2) : 0);
	if (c->arg == kinds[FAKE_NAN] && b->index == 3)
		v[7] = NAN;
	wall[0] = 100;
	rest[0] = 1;
	c->puts += n;
	return 0;
}

static void fake_close(void *state)
{
	(void)state;
}

const struct bench bench_fake = {
	.name = "fake",
	.question = NULL,
	.uses = "fake",
	.cases = fake_cases,
	.open = fake_open,
	.batch = fake_batch,
	.close = fake_close,
};
