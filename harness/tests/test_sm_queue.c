/* SPDX-License-Identifier: Apache-2.0
 * test_sm_queue.c: a host thread as SM: kernels, functions, marks and chains end in the order in which they were handed over.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <time.h>

#include "sm/sm.h"

#define MANY 200u /* more than the queue holds */

static uint32_t seen[4 * MANY],
	seen_count; /* written by the SM's thread, read after a sync */

struct note_args {
	uint32_t what;
};

static void note_thread(const void *args)
{
	seen[seen_count++] = ((const struct note_args *)args)->what;
}

static void note_fn(void *arg)
{
	seen[seen_count++] = *(const uint32_t *)arg;
}

static void slow_thread(const void *args)
{
	const struct timespec nap = {0, 20000000};

	nanosleep(&nap, NULL);
	note_thread(args);
}

static const struct dev_kernel note = {"note", sizeof(struct note_args), note_thread,
				       NULL, 1},
			       slow = {"slow", sizeof(struct note_args), slow_thread,
				       NULL, 1};

static int open_sm(void **state)
{
	seen_count = 0;
	return sm_open((struct sm **)state, -1);
}

static int close_sm(void **state)
{
	sm_close(*state);
	return 0;
}

static void in_order(uint32_t n)
{
	assert_int_equal(seen_count, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(seen[i], i);
}

static void kernels_and_functions(void **state)
{
	static uint32_t odd[MANY];
	struct sm *sm = *state;

	for (uint32_t i = 0; i < MANY; i++) {
		struct note_args a = {2 * i};

		odd[i] = 2 * i + 1;
		assert_int_equal(sm_launch(sm, &note, &a), 0);
		a.what = ~0u; /* a copy was taken */
		assert_int_equal(sm_call(sm, note_fn, &odd[i]), 0);
	}
	assert_int_equal(sm_sync(sm), 0);
	in_order(2 * MANY);
	assert_int_equal(sm_sync(sm), 0); /* nothing is open: at once */
}

static void a_mark_is_reached_behind_its_kernel(void **state)
{
	struct sm *sm = *state;

	for (uint32_t i = 0; i < 3; i++) {
		const struct note_args a = {i};
		int reached;

		assert_int_equal(sm_launch(sm, &slow, &a), 0);
		assert_int_equal(sm_mark(sm), 0);
		assert_int_equal(sm_reached(sm), 0); /* the kernel takes 20 ms */
		while (!(reached = sm_reached(sm)))
			sm_yield();
		assert_int_equal(reached, 1);
		in_order(i + 1);
	}
	assert_int_equal(sm_sync(sm), 0);
}

static void a_chain_and_what_follows(void **state)
{
	static uint32_t number[2 * MANY];
	static struct note_args args[MANY];
	static struct sm_step steps[2 * MANY];
	const struct note_args last = {2 * MANY};
	struct sm *sm = *state;
	struct sm_graph *g;

	for (uint32_t i = 0; i < MANY; i++) {
		args[i].what = 2 * i;
		number[i] = 2 * i + 1;
		steps[2 * i] = (struct sm_step){&note, &args[i], NULL, NULL};
		steps[2 * i + 1] = (struct sm_step){NULL, NULL, note_fn, &number[i]};
	}
	assert_int_equal(sm_graph_make(sm, steps, 2 * MANY, &g), 0);
	for (int again = 0; again < 2; again++) {
		seen_count = 0;
		assert_int_equal(sm_graph_launch(sm, g), 0);
		assert_int_equal(sm_launch(sm, &note, &last), 0);
		assert_int_equal(sm_sync(sm), 0);
		in_order(2 * MANY + 1);
	}
	sm_graph_free(sm, g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kernels_and_functions, open_sm, close_sm),
		cmocka_unit_test_setup_teardown(a_mark_is_reached_behind_its_kernel,
						open_sm, close_sm),
		cmocka_unit_test_setup_teardown(a_chain_and_what_follows, open_sm,
						close_sm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
