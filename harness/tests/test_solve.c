/* SPDX-License-Identifier: Apache-2.0
 * test_solve.c: which hops the experiments determine, and whether known hops come back.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "solve_linear.h"
#include "stats.h"

static bool is_across(const struct hop_exp *x)
{
	return !strcmp(x->endpoints, "across");
}

/* The system of all experiments, or of those in loopback alone. */
static struct linear make(bool loopback_only)
{
	struct linear l = {0};

	for (size_t i = 0; i < hop_exp_count; i++)
		if (!loopback_only || !is_across(&hop_exps[i]))
			hop_row(&hop_exps[i], loopback_only, l.row[l.n++]);
	assert_int_equal(linear_solve(&l), 0);
	return l;
}

static unsigned bit(enum nic_hop h)
{
	return 1u << h;
}

static void alone(void **state)
{
	static const enum nic_hop hops[] = {NIC_WQE_FETCH, NIC_PAYLOAD_FETCH,
					    NIC_WIRE_OUT,  NIC_REMOTE_WRITE,
					    NIC_WIRE_BACK, NIC_CQE_WRITE};
	struct linear l = make(false);
	unsigned sets[16];

	(void)state;
	assert_int_equal(l.rank, NIC_HOPS - 1);
	for (size_t i = 0; i < sizeof hops / sizeof *hops; i++) {
		assert_int_equal(linear_minimal(&l, hops[i], sets, 16), 1);
		assert_int_equal(sets[0], bit(hops[i]));
	}
	assert_int_equal(linear_minimal(&l, NIC_NIC_EXEC, sets, 16), 1);
	assert_int_equal(sets[0], bit(NIC_DOORBELL_FLIGHT) | bit(NIC_NIC_EXEC));
}

static void loopback_cannot_separate(void **state)
{
	struct linear l = make(true);
	unsigned sets[16];
	double null[NIC_HOPS][NIC_HOPS];

	(void)state;
	assert_int_equal(linear_minimal(&l, NIC_WIRE_OUT, sets, 16), 2);
	assert_int_equal(sets[0] | sets[1],
			 bit(NIC_WIRE_OUT) | bit(NIC_REMOTE_WRITE) | bit(NIC_WIRE_BACK));
	assert_int_equal(linear_minimal(&l, NIC_REMOTE_WRITE, sets, 16), 1);
	assert_int_equal(sets[0], bit(NIC_WIRE_OUT) | bit(NIC_REMOTE_WRITE));
	assert_int_equal(linear_minimal(&l, NIC_WIRE_BACK, sets, 16), 1);
	assert_int_equal(sets[0], bit(NIC_WIRE_OUT) | bit(NIC_WIRE_BACK));
	assert_int_equal(linear_minimal(&l, NIC_CQE_WRITE, sets, 16), 1);
	assert_int_equal(sets[0], bit(NIC_CQE_WRITE));
	assert_int_equal(linear_null(&l, null), 2);
	for (unsigned k = 0; k < 2; k++)
		for (size_t i = 0; i < l.n; i++) {
			double sum = 0;

			for (unsigned h = 0; h < NIC_HOPS; h++)
				sum += l.row[i][h] * null[k][h];
			assert_true(fabs(sum) < 1e-9);
		}
}

/* Any hops, any experiments: what is said to be estimable comes back exactly from measurements without error. */
static void known_hops_come_back(void **state)
{
	uint64_t rng = 7;

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		struct linear l = {0};
		double hop[NIC_HOPS], y[EQUATIONS_MAX];

		for (unsigned h = 0; h < NIC_HOPS; h++)
			hop[h] = (double)(stats_rand(&rng) % 5000) - 100;
		for (size_t i = 0; i < hop_exp_count; i++)
			if (stats_rand(&rng) % 3)
				hop_row(&hop_exps[i], false, l.row[l.n++]);
		assert_int_equal(linear_solve(&l), 0);
		for (size_t i = 0; i < l.n; i++) {
			y[i] = 0;
			for (unsigned h = 0; h < NIC_HOPS; h++)
				y[i] += l.row[i][h] * hop[h];
		}
		for (unsigned set = 1; set < 1u << NIC_HOPS; set++) {
			double c[NIC_HOPS], w[EQUATIONS_MAX], want = 0, got = 0;

			for (unsigned h = 0; h < NIC_HOPS; h++) {
				c[h] = set >> h & 1;
				want += c[h] * hop[h];
			}
			if (!linear_estimable(&l, c))
				continue;
			linear_weights(&l, c, w);
			for (size_t i = 0; i < l.n; i++)
				got += w[i] * y[i];
			assert_true(fabs(got - want) < 1e-6);
		}
	}
}

static void a_row_left_out(void **state)
{
	struct linear l = make(false), m;

	(void)state;
	for (size_t i = 0; i < l.n; i++) {
		linear_without(&l, i, &m);
		assert_int_equal(m.n, l.n - 1);
		assert_memory_equal(m.row[0], l.row[i == 0], sizeof m.row[0]);
		assert_memory_equal(m.row[m.n - 1],
				    l.row[i == l.n - 1 ? l.n - 2 : l.n - 1],
				    sizeof m.row[0]);
	}
}

static void nothing_to_solve(void **state)
{
	struct linear l = {0};
	unsigned sets[4];

	(void)state;
	assert_int_equal(linear_solve(&l), 0);
	assert_int_equal(l.rank, 0);
	assert_int_equal(linear_minimal(&l, NIC_CQE_WRITE, sets, 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone),
		cmocka_unit_test(loopback_cannot_separate),
		cmocka_unit_test(known_hops_come_back),
		cmocka_unit_test(a_row_left_out),
		cmocka_unit_test(nothing_to_solve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
