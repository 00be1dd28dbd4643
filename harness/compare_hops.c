/* SPDX-License-Identifier: Apache-2.0
 * compare_hops.c: hop by hop: the solved hops of run.json ("hops", group "base"), matched by hop and members.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "compare_hops.h"
#include "compare_semantics.h"
#include "err.h"
#include "student.h"

static bool same_key(const json_t *a, const json_t *b, const char *key)
{
	const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);

	return (!x && !y) || (x && y && json_equal(x, y));
}

json_t *hop_find(const json_t *run, const json_t *like)
{
	size_t k;
	json_t *h;

	json_array_foreach(json_object_get(run, "hops"), k, h)
	{
		if (same_key(h, like, "hop") && same_key(h, like, "members") &&
		    same_key(h, like, "group"))
			return h;
	}
	return NULL;
}

static double number(const json_t *h, const char *key)
{
	const json_t *v = json_object_get(h, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

/* est_ns of this hop in each launch; how many have it. */
static unsigned of_launches(const json_t *launches, const json_t *like, double *est)
{
	unsigned n = 0;
	size_t k;
	json_t *launch;

	json_array_foreach(launches, k, launch)
	{
		double v =
			number(hop_find(json_object_get(launch, "run"), like), "est_ns");

		if (isfinite(v))
			est[n++] = v;
	}
	return n;
}

static double mean_of(const double *v, unsigned n)
{
	double sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += v[i] / n;
	return sum;
}

static double half_of(const double *v, unsigned n)
{
	double mean = mean_of(v, n), sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += (v[i] - mean) * (v[i] - mean);
	return student_t(0.05, n - 1) * sqrt(sum / (n - 1) / n);
}

json_t *hops_merge(const json_t *launches)
{
	size_t count = json_array_size(launches), k;
	double *est = calloc(count ? count : 1, sizeof *est);
	const json_t *first = json_object_get(
		json_object_get(json_array_get(launches, 0), "run"), "hops");
	json_t *hops = json_is_array(first) ? json_array() : NULL, *h;

	json_array_foreach(first, k, h)
	{
		json_t *j = json_copy(h);
		double half;

		/* a hop that not every launch could tell has no variation between launches */
		if (!est || count < 2 || of_launches(launches, h, est) != count) {
			json_decref(j);
			continue;
		}
		half = half_of(est, (unsigned)count);
		json_object_set_new(j, "est_ns",
				    json_real(mean_of(est, (unsigned)count)));
		json_object_set_new(j, "lo_ns",
				    json_real(mean_of(est, (unsigned)count) - half));
		json_object_set_new(j, "hi_ns",
				    json_real(mean_of(est, (unsigned)count) + half));
		json_array_append_new(hops, j);
	}
	free(est);
	return hops;
}

/* A bound is no estimate: where two bounds overlap, nothing is known. */
static void shift_of_bounds(const double a[3], const double b[3], struct shift *out)
{
	out->a = a[0];
	out->b = b[0];
	out->shift = b[0] - a[0];
	out->lo = b[1] - a[2];
	out->hi = b[2] - a[1];
	out->p = out->lo > 0 || out->hi < 0 ? 0 : 1;
	out->effect = NAN;
	out->launches_a = out->launches_b = 1;
}

/* Estimate and limits; the middle where only limits are known; false: nothing is known. */
static bool limits(const json_t *h, double v[3])
{
	v[0] = number(h, "est_ns");
	v[1] = number(h, "lo_ns");
	v[2] = number(h, "hi_ns");
	if (!isfinite(v[0]))
		v[0] = (v[1] + v[2]) / 2;
	return isfinite(v[0]) && isfinite(v[1]) && isfinite(v[2]);
}

static int compare_hop(const struct compare *c, struct compare_row *r)
{
	const json_t *la = json_object_get(c->side[0].l->run, "launches"),
		     *lb = json_object_get(c->side[r->other].l->run, "launches");
	double a[3], b[3], *ea, *eb;
	unsigned na, nb;
	int err = 0;

	PTR_TRY(ea = calloc(json_array_size(la) + 1, sizeof *ea), err, no_memory);
	PTR_TRY(eb = calloc(json_array_size(lb) + 1, sizeof *eb), err, out);
	na = of_launches(la, r->a, ea);
	nb = of_launches(lb, r->b, eb);
	limits(r->a, a);
	limits(r->b, b);
	if (!strcmp(case_str(r->a, "how"), "bound") ||
	    !strcmp(case_str(r->b, "how"), "bound"))
		shift_of_bounds(a, b, &r->s);
	else if (na > 1 && nb > 1)
		shift_of_launches(ea, na, eb, nb, &r->s);
	else
		shift_of_intervals(a, b, &r->s);
	r->s.launches_a = na > 1 ? na : 1;
	r->s.launches_b = nb > 1 ? nb : 1;
	free(eb);
out:
	free(ea);
no_memory:
	return err;
}

static bool in_base(const json_t *h)
{
	return !json_object_get(h, "group") || !strcmp(case_str(h, "group"), "base");
}

/* All hops together, each member once: what a shift of one hop is measured by. */
static double whole(const json_t *run)
{
	json_t *seen = json_object(), *h, *m;
	double sum = 0;
	size_t k, i;

	json_array_foreach(json_object_get(run, "hops"), k, h)
	{
		bool fresh = in_base(h) && isfinite(number(h, "est_ns"));

		json_array_foreach(json_object_get(h, "members"), i, m) fresh &=
			!json_object_get(seen, json_string_value(m));
		if (!fresh)
			continue;
		sum += number(h, "est_ns");
		json_array_foreach(json_object_get(h, "members"), i, m)
			json_object_set_new(seen, json_string_value(m), json_true());
	}
	json_decref(seen);
	return sum;
}

/* Why these two are not compared, "" when they are. */
static void refuse(const struct compare *c, const json_t *a, const json_t *b, char *why,
		   size_t size)
{
	double v[3];

	*why = 0;
	if (!same_key(a, b, "how"))
		snprintf(why, size, "how %s / %s", case_str(a, "how"),
			 case_str(b, "how"));
	else if (!same_key(a, b, "nature") && !c->force)
		snprintf(why, size,
			 "nature %s / %s: compared across natures only with --force",
			 case_str(a, "nature"), case_str(b, "nature"));
	else if (!limits(a, v) || !limits(b, v))
		snprintf(why, size, "no estimate, or no interval, on a side");
}

int compare_hops(struct compare *c, size_t other)
{
	const json_t *run_a = c->side[0].l->run, *run_b = c->side[other].l->run;
	double margin = c->margin * whole(run_a);
	size_t k;
	json_t *a, *b;

	json_array_foreach(json_object_get(run_a, "hops"), k, a)
	{
		const char *name = case_str(a, "hop");
		struct compare_row *r;
		char why[200];
		int err;

		if (!in_base(a))
			continue;
		b = hop_find(run_b, a);
		if (b)
			refuse(c, a, b, why, sizeof why);
		else
			snprintf(why, sizeof why, "%s", "only in the first set");
		if (*why) {
			compare_unlike(c, other, "hop", name, "%s", why);
			continue;
		}
		r = compare_row(&c->hops, other);
		if (!r)
			return -ENOMEM;
		r->a = a;
		r->b = b;
		r->s.margin = margin;
		if (!same_key(a, b, "nature"))
			snprintf(r->across, sizeof r->across, "nature %s / %s",
				 case_str(a, "nature"), case_str(b, "nature"));
		err = compare_hop(c, r);
		if (err)
			return err;
	}
	json_array_foreach(json_object_get(run_b, "hops"), k, b)
	{
		if (in_base(b) && !hop_find(run_a, b))
			compare_unlike(c, other, "hop", case_str(b, "hop"), "only in %s",
				       c->side[other].dir);
	}
	return 0;
}
