/* SPDX-License-Identifier: Apache-2.0
 * test_compare_stats.c: synthetic sets with batch and launch effects: false alarms, coverage, shifts that must be found.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "compare_stats.h"
#include "stats.h"

#define PAIRS 200u
#define TABLE 10u /* rows that are corrected together */
#define SAMPLES_MAX 6000u
#define LAUNCHES_MAX 5u

struct set {
	double v[SAMPLES_MAX];
	uint32_t batch[SAMPLES_MAX], first[LAUNCHES_MAX];
	size_t n;
	unsigned launches;
	double median;
};
/* How samples are made: a median of 1000, times the effects of launch and batch, with a long tail upwards. */
struct make {
	unsigned launches, batches, samples; /* batches of a launch, samples of a batch */
	double launch_sd, batch_sd, sample_sd;
};

static double normal(uint64_t *rng)
{
	double u = (double)((stats_rand(rng) >> 11) + 1) / 9007199254740993.0,
	       w = (double)(stats_rand(rng) >> 11) / 9007199254740992.0;

	return sqrt(-2 * log(u)) * cos(2 * M_PI * w);
}

static void make_set(struct set *s, const struct make *m, double centre, uint64_t *rng)
{
	static const uint32_t none[SAMPLES_MAX];
	struct stats st;
	uint32_t batch = 0;

	s->n = 0;
	s->launches = m->launches;
	for (unsigned l = 0; l < m->launches; l++) {
		double at = centre * (1 + m->launch_sd * normal(rng));

		s->first[l] = batch;
		for (unsigned b = 0; b < m->batches; b++, batch++) {
			double here = at * (1 + m->batch_sd * normal(rng));

			for (unsigned i = 0; i < m->samples; i++) {
				double z = normal(rng);

				s->v[s->n] = here * exp(m->sample_sd * z +
							(z > 1.5 ? 0.3 * (z - 1.5) : 0));
				s->batch[s->n++] = batch;
			}
		}
	}
	assert_int_equal(stats_summarise(s->v, none, s->n, 0, 1, &st), 0);
	s->median = st.p50;
}

static void compare_sets(const struct set *a, const struct set *b, double margin,
			 struct shift *out)
{
	struct shift_side x = {a->v, a->batch, a->first, a->n, a->launches},
			  y = {b->v, b->batch, b->first, b->n, b->launches};

	memset(out, 0, sizeof *out);
	out->margin = margin * a->median;
	assert_int_equal(shift_of_medians(&x, &y, a->median, b->median, 0, 7, out), 0);
}

struct tally {
	unsigned covered, alarms, found, same, noisy;
};

/* PAIRS pairs whose medians lie `shift` apart, in tables of TABLE rows. */
static struct tally try_pairs(const struct make *m, double shift, double margin,
			      uint64_t seed)
{
	static struct set a, b;
	struct shift rows[TABLE], *table[TABLE];
	struct tally t = {0};

	for (unsigned i = 0; i < PAIRS; i++) {
		struct shift *r = table[i % TABLE] = &rows[i % TABLE];

		make_set(&a, m, 1000, &seed);
		make_set(&b, m, 1000 + shift, &seed);
		compare_sets(&a, &b, margin, r);
		t.covered += r->lo <= shift && shift <= r->hi;
		if (i % TABLE < TABLE - 1)
			continue;
		assert_int_equal(shift_verdicts(table, TABLE), 0);
		for (unsigned k = 0; k < TABLE; k++) {
			enum verdict v = rows[k].verdict;

			t.alarms += v == VERDICT_FASTER || v == VERDICT_SLOWER;
			t.found += v == (shift < 0 ? VERDICT_FASTER : VERDICT_SLOWER);
			t.same += v == VERDICT_SAME;
			t.noisy += v == VERDICT_NOISY;
		}
	}
	return t;
}

/* One launch a side, batches that differ by 2 %. */
static const struct make one_launch = {1, 12, 50, 0, 0.02, 0.03};
/* Five launches that differ by 2 %. */
static const struct make five = {5, 10, 30, 0.02, 0.01, 0.03};

static void false_alarms(void **state)
{
	struct tally t;

	(void)state;
	t = try_pairs(&one_launch, 0, 0.001, 11);
	assert_true(t.alarms <= PAIRS / 20 && t.covered >= PAIRS * 90 / 100);
	t = try_pairs(&five, 0, 0.001, 12);
	assert_true(t.alarms <= PAIRS / 20 && t.covered >= PAIRS * 90 / 100);
}

static void known_shifts_are_found(void **state)
{
	struct tally t;

	(void)state;
	t = try_pairs(&one_launch, 100, 0.03, 21);
	assert_true(t.found == PAIRS && t.covered >= PAIRS * 90 / 100);
	t = try_pairs(&one_launch, -100, 0.03, 22);
	assert_true(t.found == PAIRS);
	t = try_pairs(&five, 200, 0.03, 23);
	assert_true(t.found >= PAIRS * 99 / 100);
}

static void quiet_sets_are_the_same(void **state)
{
	const struct make quiet = {5, 10, 30, 0.004, 0.004, 0.02};
	struct tally t = try_pairs(&quiet, 0, 0.03, 31);

	(void)state;
	assert_true(t.same >= PAIRS * 98 / 100 && !t.alarms);
}

static void launches_that_differ_are_noisy_not_found(void **state)
{
	/* Within a launch all is quiet; launches lie 10 % apart: batches alone would call nearly each pair different. */
	const struct make apart = {5, 10, 30, 0.10, 0.002, 0.01};
	struct tally t = try_pairs(&apart, 0, 0.03, 41);

	(void)state;
	assert_true(t.alarms <= PAIRS / 20 && t.noisy >= PAIRS * 90 / 100);
}

static void identical_sets_are_the_same(void **state)
{
	static struct set a;
	struct shift r, *table[] = {&r};
	uint64_t rng = 51;

	(void)state;
	make_set(&a, &five, 1000, &rng);
	memset(&r, 0, sizeof r);
	compare_sets(&a, &a, 0.2, &r);
	shift_verdicts(table, 1);
	assert_true(r.shift == 0 && fabs(r.effect) < 1e-12 && r.p == 1);
	assert_int_equal(r.verdict, VERDICT_SAME);
	assert_int_equal(r.launches_a, 5);
	/* all values alike: what is left is the step of the clock */
	for (size_t i = 0; i < a.n; i++)
		a.v[i] = 64;
	a.median = 64;
	compare_sets(&a, &a, 0, &r);
	shift_verdicts(table, 1);
	assert_true(r.lo == 0 && r.hi == 0 && r.verdict == VERDICT_SAME);
}

static void one_batch_tells_nothing(void **state)
{
	const double v[] = {1, 2, 3}, w[] = {101, 102, 103};
	const uint32_t batch[] = {4, 4, 4}, apart[] = {1, 2, 3}, first[] = {0};
	struct shift_side a = {v, batch, first, 3, 1}, b = {w, apart, first, 3, 1};
	struct shift r = {0}, *table[] = {&r};

	(void)state;
	assert_int_equal(shift_of_medians(&a, &b, 2, 102, 1, 1, &r), 0);
	shift_verdicts(table, 1);
	assert_true(isinf(r.lo) && isinf(r.hi) && r.verdict == VERDICT_NOISY);
	assert_true(r.effect == 1); /* each sample of b lies above all of a */
}

/* p 0.01, 0.03, 0.04 become 0.03, 0.06, 0.06: never less than a smaller p's. */
static void holm_by_hand(void **state)
{
	struct shift s[] = {{.shift = 9, .lo = 1, .hi = 17, .p = 0.04},
			    {.shift = 9, .lo = 3, .hi = 15, .p = 0.01},
			    {.shift = -9, .lo = -16, .hi = -2, .p = 0.03}};
	struct shift *table[] = {&s[0], &s[1], &s[2]};

	(void)state;
	shift_verdicts(table, 3);
	assert_true(fabs(s[0].p_holm - 0.06) < 1e-12 && fabs(s[1].p_holm - 0.03) < 1e-12);
	assert_true(fabs(s[2].p_holm - 0.06) < 1e-12);
	assert_int_equal(s[0].verdict, VERDICT_NOISY);
	assert_int_equal(s[1].verdict, VERDICT_SLOWER);
	assert_int_equal(s[2].verdict, VERDICT_NOISY);
	s[1].rate = true; /* more a second is faster */
	s[1].p = 0;
	shift_verdicts(table, 3);
	assert_int_equal(s[1].verdict, VERDICT_FASTER);
}

static void hops_by_their_intervals(void **state)
{
	const double a[] = {100, 97, 104}, b[] = {150, 146, 153};
	const double la[] = {100, 102, 98}, lb[] = {150, 151, 149};
	struct shift r = {0}, *table[] = {&r};

	(void)state;
	shift_of_intervals(a, b, &r); /* 50 - hypot(4, 4), 50 + hypot(3, 3) */
	assert_true(fabs(r.lo - (50 - 4 * M_SQRT2)) < 1e-9 &&
		    fabs(r.hi - (50 + 3 * M_SQRT2)) < 1e-9);
	shift_verdicts(table, 1);
	assert_int_equal(r.verdict, VERDICT_SLOWER);
	shift_of_launches(la, 3, lb, 3, &r);
	/* se^2 = 4/3 + 1/3, dof = (5/3)^2 / ((4/3)^2 / 2 + (1/3)^2 / 2) = 50/17, t = 3.219 */
	assert_true(r.shift == 50 && fabs(r.hi - 50 - 3.219 * sqrt(5 / 3.0)) < 0.005);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(false_alarms),
		cmocka_unit_test(known_shifts_are_found),
		cmocka_unit_test(quiet_sets_are_the_same),
		cmocka_unit_test(launches_that_differ_are_noisy_not_found),
		cmocka_unit_test(identical_sets_are_the_same),
		cmocka_unit_test(one_batch_tells_nothing),
		cmocka_unit_test(holm_by_hand),
		cmocka_unit_test(hops_by_their_intervals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
