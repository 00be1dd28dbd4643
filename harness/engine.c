/* SPDX-License-Identifier: Apache-2.0
 * engine.c: batches of all cases in shuffled rounds, so that a drift of the machine meets every case alike.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "engine.h"
#include "err.h"
#include "opt.h"
#include "range.h"
#include "registry.h"
#include "stats.h"

#define SAMPLES_MAX_FACTOR \
	16u /* a case ends at so many times min_samples, however wide its interval */

/* Likewise for cases that end together: one that never gets narrow holds all the others. */
#define SAMPLES_MAX_TOGETHER 3u
#define PROGRESS_S 0.2

volatile sig_atomic_t run_stop;

/* A case in work: its main metric's samples are kept to know when to stop. */
struct work {
	struct case_desc *c;
	const struct bench *bench;
	void *state;
	double *v;
	uint32_t *batch;
	size_t n, cap, checked; /* n at the last look at the interval */
	uint32_t index;		/* of the next batch, warm-up included */
	uint32_t counted;	/* batches that hold samples of the main metric */
	bool open, done;
	bool ready; /* narrow enough: ends at once, or with the others of its bench */
};

struct engine {
	struct env *env;
	const struct opts *o;
	struct record *r;
	struct work *w;
	size_t n, live;
	double start_s, budget_s;
	uint64_t seed;
	uint32_t warmup, min_batches;
	struct case_list *l;
	bool changed; /* a case was opened or ended since run.json was written */
	size_t min_samples;
	bool terminal;
	double said_s; /* when the progress line was last written */
};

static double now_s(void)
{
	return 1e-9 * (double)clock_monotonic_raw_ns();
}

static void finish(struct engine *e, struct work *w, enum case_status s, const char *why)
{
	w->c->status = s;
	if (why)
		snprintf(w->c->reason, sizeof w->c->reason, "%s", why);
	w->done = w->c->done = e->changed = true;
	e->live--;
	if (w->open)
		w->bench->close(w->state);
	w->open = false;
}

static int keep(struct work *w, const struct batch *b)
{
	size_t before = w->n;

	for (size_t s = 0; s < b->series_count; s++) {
		const struct series *x = &b->series[s];

		if (strcmp(x->metric, w->c->main_metric))
			continue;
		if (w->n + x->n > w->cap) {
			size_t cap = 2 * (w->n + x->n);
			double *v = realloc(w->v, cap * sizeof *v);
			uint32_t *id = realloc(w->batch, cap * sizeof *id);

			w->v = v ? v : w->v;
			w->batch = id ? id : w->batch;
			if (!v || !id)
				return err_say(-ENOMEM, "no memory for the samples of %s",
					       w->c->id);
			w->cap = cap;
		}
		for (size_t i = 0; i < x->n; i++) {
			w->v[w->n] = x->ns[i];
			w->batch[w->n++] = b->index;
		}
	}
	w->counted += w->n > before;
	return 0;
}

/* A value that is no number would make the whole result folder unreadable. */
static int check_finite(const struct case_desc *c, const struct batch *b)
{
	for (size_t s = 0; s < b->series_count; s++)
		for (size_t i = 0; i < b->series[s].n; i++)
			if (!isfinite(b->series[s].ns[i]))
				return err_say(
					-ERANGE,
					"%s: sample %zu of %s in batch %u is not a number",
					c->id, i, b->series[s].metric, b->index);
	return 0;
}

static bool has_minimum(const struct engine *e, const struct work *w)
{
	return w->counted >= e->min_batches && w->n >= e->min_samples;
}

/* Cases of one group are compared with each other; what stands beside them is not. */
static bool together(const struct work *w)
{
	return w->bench->together && w->c->group;
}

/* Is the interval of the median narrow enough?  Looked at again only after a quarter more samples. */
static bool converged(struct engine *e, struct work *w)
{
	double target = opts_dbl(e->o, "ci_target") / 100;
	struct stats s;

	if (w->n >= (together(w) ? SAMPLES_MAX_TOGETHER : SAMPLES_MAX_FACTOR) *
			    e->min_samples &&
	    has_minimum(e, w))
		return true; /* its interval is shown as it is */
	if (!has_minimum(e, w) || (w->checked && w->n < w->checked + w->checked / 4))
		return false;
	w->checked = w->n;
	if (stats_summarise(w->v, w->batch, w->n, w->c->step_ns, e->seed, &s))
		return false;
	/* An interval is never narrower than a step to each side: asking for less would never end. */
	return (s.p50_hi - s.p50_lo) / 2 <=
	       1.001 * fmax(target * fabs(s.p50), w->c->step_ns);
}

static int one_batch(struct engine *e, struct work *w)
{
	struct batch b = {.index = w->index, .warmup = w->index < e->warmup};
	int err = 0, failed = 0;

	range_push(RANGE_CASE, w->c->id);
	if (!w->open) {
		failed = w->bench->open(e->env, w->c, &w->state);
		w->open = !failed;
		e->changed = true;
	}
	if (!failed) {
		range_push_batch(b.index, b.warmup);
		failed = w->bench->batch(w->state, &b);
		range_pop();
	}
	range_pop();
	if (!failed)
		failed = check_finite(w->c, &b);
	if (failed) {
		finish(e, w, CASE_FAILED, err_last());
	} else {
		w->index++;
		err = record_batch(e->r, w->c, &b);
		if (!err && !b.warmup)
			err = keep(w, &b);
		if (!err && !b.warmup && (w->ready || converged(e, w))) {
			w->ready = true;
			if (!together(w))
				finish(e, w, CASE_OK, NULL);
		}
	}
	batch_reset(&b);
	return err;
}

/* Five times a second at most: a slow terminal must not be part of what is measured. */
static void progress(struct engine *e, const struct case_desc *c)
{
	double now = now_s(), left = e->budget_s - (now - e->start_s);

	if (!e->terminal || now - e->said_s < PROGRESS_S)
		return;
	e->said_s = now;
	fprintf(stderr, "\r\033[K%zu of %zu cases done, at most %.0f s left: %.60s",
		e->n - e->live, e->n, left > 0 ? left : 0, c->id);
}

static bool time_is_up(const struct engine *e)
{
	return now_s() - e->start_s > e->budget_s;
}

/* Is half of the time gone, and does a case still lack its minimum?  Then those that have theirs give way. */
static bool must_hurry(const struct engine *e)
{
	if (now_s() - e->start_s < e->budget_s / 2)
		return false;
	for (size_t i = 0; i < e->n; i++)
		if (!e->w[i].done && !has_minimum(e, &e->w[i]))
			return true;
	return false;
}

static bool all_ready(const struct engine *e, const struct bench *b)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->w[i].bench == b && together(&e->w[i]) && !e->w[i].done &&
		    !e->w[i].ready)
			return false;
	return true;
}

/* Cases that are compared with each other met the same rounds. */
static void finish_together(struct engine *e)
{
	for (size_t i = 0; i < e->n; i++) {
		const struct bench *b = e->w[i].bench;

		if (e->w[i].done || !together(&e->w[i]) || !all_ready(e, b))
			continue;
		for (size_t k = i; k < e->n; k++)
			if (e->w[k].bench == b && together(&e->w[k]) && !e->w[k].done)
				finish(e, &e->w[k], CASE_OK, NULL);
	}
}

/* One round: a batch of each live case, in an order drawn anew. */
static int one_round(struct engine *e, uint32_t *order, uint64_t *rng)
{
	bool hurry = must_hurry(e);

	for (uint32_t i = 0; i < e->n; i++)
		order[i] = i;
	stats_shuffle(order, e->n, rng);
	for (size_t i = 0; i < e->n && !run_stop && !time_is_up(e); i++) {
		struct work *w = &e->w[order[i]];
		int err;

		if (w->done || (hurry && has_minimum(e, w)))
			continue;
		progress(e, w->c);
		err = one_batch(e, w);
		if (err)
			return err;
	}
	finish_together(e);
	if (!e->changed)
		return 0;
	e->changed =
		false; /* a kill from here on leaves a run.json that knows what these cases are */
	return record_write(e->r, e->l, NULL, now_s() - e->start_s, false, false,
			    RECORD_RUNNING);
}

static void wind_up(struct engine *e)
{
	char why[160];

	for (size_t i = 0; i < e->n; i++) {
		struct work *w = &e->w[i];

		if (w->done)
			continue;
		if (has_minimum(e, w) && !run_stop) {
			finish(e, w, CASE_OK,
			       NULL); /* its interval is wider than the target: it is shown as it is */
			continue;
		}
		snprintf(why, sizeof why, "%s after %u batches and %zu samples of %s",
			 run_stop ? "interrupted" : "time was spent (--time)", w->counted,
			 w->n, w->c->main_metric);
		finish(e, w, CASE_INCOMPLETE, why);
	}
}

int engine_run(struct env *env, const struct opts *o, struct case_list *l,
	       struct record *r, double budget_s)
{
	struct engine e = {.env = env,
			   .o = o,
			   .r = r,
			   .l = l,
			   .start_s = now_s(),
			   .budget_s = budget_s,
			   .seed = (uint64_t)opts_int(o, "seed"),
			   .warmup = (uint32_t)opts_int(o, "warmup"),
			   .min_batches = (uint32_t)opts_int(o, "min_batches"),
			   .min_samples = (size_t)opts_int(o, "min_samples"),
			   .terminal = isatty(STDERR_FILENO)};
	uint64_t rng = e.seed;
	uint32_t *order = calloc(l->n + 1, sizeof *order);
	int err = 0;

	e.w = calloc(l->n + 1, sizeof *e.w);
	if (!e.w || !order) {
		err = err_say(-ENOMEM, "no memory for %zu cases", l->n);
		goto out;
	}
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].status == CASE_OK)
			e.w[e.n++] = (struct work){.c = &l->v[i],
						   .bench = registry_find(l->v[i].bench)};
	e.live = e.n;
	while (e.live && !err && !run_stop && !time_is_up(&e))
		err = one_round(&e, order, &rng);
	wind_up(&e);
	if (e.terminal)
		fputs("\r\033[K", stderr);
out:
	for (size_t i = 0; i < e.n; i++) {
		free(e.w[i].v);
		free(e.w[i].batch);
	}
	free(e.w);
	free(order);
	return err;
}
