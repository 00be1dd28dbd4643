/* SPDX-License-Identifier: Apache-2.0
 * solve_group.c: from series to equations.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "solve_group.h"

static const char *str(const json_t *c, const char *key)
{
	const char *s = json_string_value(json_object_get(c, key));

	return s ? s : "";
}

static double median(const struct load *l, const struct solve_eq *q, const char *metric)
{
	const struct load_series *s = load_find(l, str(q->c, "id"), metric);

	return s && s->n ? s->stats.p50 : NAN;
}

static const char *branch_of(const struct hop_exp *x)
{
	return !strncmp(x->end, "live-", 5) ? "live" : x->end;
}

/* What the SM itself does before the doorbell is stored and after the CQE is seen, as whole windows: the stamps inside them
 * hide in the waits for memory, so that their cost is not taken off. */
static double own_steps(const struct load *l, const struct solve_eq *q)
{
	double overhead = json_number_value(json_object_get(q->c, "timer_overhead_ns"));
	double issue = median(l, q, "issue");

	return strcmp(q->branch, "cqe") ? issue
					: issue + median(l, q, "completion") + overhead;
}

/* Each put less its own poll: the period moves from put to put (a PCIe read has more than one duration), and that is not the
 * NIC's. */
static int less_poll(const struct load *l, const struct load_series *s,
		     const struct load_series *period, double share, struct solve_eq *q)
{
	const uint64_t seed =
		(uint64_t)json_integer_value(json_object_get(l->run, "seed"));
	double *v = malloc(s->n * sizeof *v);
	struct stats st;
	int err;

	if (!v)
		return err_say(-ENOMEM, "no memory for the solver");
	for (size_t i = 0; i < s->n; i++)
		v[i] = s->v[i] - share * period->v[i];
	err = stats_summarise(v, s->batch, s->n, 0, seed, &st);
	if (!err)
		err = stats_bootstrap(v, s->batch, s->n, seed, q->boot, SOLVE_RESAMPLES);
	q->y = err ? NAN : st.p50;
	free(v);
	return err;
}

static int add(struct solve_group *g, const struct load *l, const json_t *c)
{
	struct solve_eq *q = &g->eq[g->all];
	const struct load_series *s, *period;
	double share;
	char name[64];
	int err;

	*q = (struct solve_eq){.c = c,
			       .x = {str(c, "opcode"), str(c, "endpoints"),
				     str(c, "inline"), str(c, "doorbell"),
				     str(c, "completion")}};
	q->branch = branch_of(&q->x);
	q->bytes =
		(unsigned long long)json_integer_value(json_object_get(c, "size_bytes"));
	hop_exp_name(&q->x, name, sizeof name);
	snprintf(q->name, sizeof q->name, "%s/%llu", name, q->bytes);
	s = load_find(l, str(c, "id"), strcmp(q->branch, "live") ? "flight" : "live");
	period = load_find(l, str(c, "id"), "poll_period");
	if (!s || !s->n || !period || period->n != s->n)
		return 0;
	/* Seen half a period after it was there, and half a period is the look's way back.  A live word is half a period old. */
	share = strcmp(q->branch, "live") ? 1 : -0.5;
	q->poll = share * period->stats.p50;
	q->own = share < 0 ? 0 : own_steps(l, q);
	q->measured = share < 0 ? s->stats.p50 : median(l, q, str(c, "main_metric"));
	q->boot = calloc(SOLVE_RESAMPLES, sizeof *q->boot);
	err = !q->boot ? err_say(-ENOMEM, "no memory for the solver")
		       : less_poll(l, s, period, share, q);
	g->all++;
	return err;
}

static int gather(struct solve_group *g, const struct load *l, bool first_size)
{
	size_t k;
	json_t *c;

	json_array_foreach(json_object_get(l->run, "cases"), k, c)
	{
		int err;

		if (!*str(c, "opcode") || strcmp(str(c, "group"), g->name) ||
		    (json_integer_value(json_object_get(c, "size_bytes")) == 8) !=
			    first_size ||
		    g->all == EQUATIONS_MAX)
			continue;
		g->nature = str(c, "nature");
		g->step_ns = json_number_value(json_object_get(c, "step_ns"));
		err = add(g, l, c);
		if (err)
			return err;
	}
	return 0;
}

int solve_group_open(struct solve_group *g, const struct load *l, const char *name)
{
	int err;

	memset(g, 0, sizeof *g);
	g->name = name;
	g->nature = "virtual";
	g->joint = true;
	OUR_TRY(gather(g, l, true), err, out);
	g->n = g->all;
	OUR_TRY(gather(g, l, false), err, out);
	for (size_t i = 0; i < g->n; i++)
		g->joint &= !strcmp(g->eq[i].x.endpoints, "loopback");
	g->l.n = g->n;
	for (size_t i = 0; i < g->n; i++)
		hop_row(&g->eq[i].x, g->joint, g->l.row[i]);
	if (g->n)
		err = linear_solve(&g->l);
out:
	if (err)
		solve_group_close(g);
	return err;
}

void solve_group_close(struct solve_group *g)
{
	for (size_t i = 0; i < EQUATIONS_MAX; i++)
		free(g->eq[i].boot);
	memset(g, 0, sizeof *g);
}

double solve_sum(const struct solve_group *g, const double *w)
{
	double sum = 0;

	for (size_t i = 0; i < g->all; i++)
		sum += w[i] * g->eq[i].y;
	return sum;
}

static void resampled(const struct solve_group *g, const double *w, double *v)
{
	memset(v, 0, SOLVE_RESAMPLES * sizeof *v);
	for (size_t i = 0; i < g->all; i++)
		for (unsigned b = 0; w[i] != 0 && b < SOLVE_RESAMPLES; b++)
			v[b] += w[i] * g->eq[i].boot[b];
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Each median is known to a step of the clock at best. */
static double step_error(const struct solve_group *g, const double *w)
{
	double sum = 0;

	for (size_t i = 0; i < g->all; i++)
		sum += w[i] * w[i];
	return g->step_ns * sqrt(sum / 12);
}

void solve_interval(const struct solve_group *g, const double *w, double *lo, double *hi)
{
	double v[SOLVE_RESAMPLES], est = solve_sum(g, w), step = g->step_ns;

	resampled(g, w, v);
	qsort(v, SOLVE_RESAMPLES, sizeof *v, by_value);
	*lo = fmin(stats_quantile(v, SOLVE_RESAMPLES, 0.025), est - step);
	*hi = fmax(stats_quantile(v, SOLVE_RESAMPLES, 0.975), est + step);
}

double solve_error(const struct solve_group *g, const double *w)
{
	double v[SOLVE_RESAMPLES], mean = 0, var = 0;

	resampled(g, w, v);
	for (unsigned b = 0; b < SOLVE_RESAMPLES; b++)
		mean += v[b] / SOLVE_RESAMPLES;
	for (unsigned b = 0; b < SOLVE_RESAMPLES; b++)
		var += (v[b] - mean) * (v[b] - mean) / (SOLVE_RESAMPLES - 1);
	return hypot(sqrt(var), step_error(g, w));
}
