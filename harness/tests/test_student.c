/* SPDX-License-Identifier: Apache-2.0
 * test_student.c: Student's t against printed tables.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>

#include "student.h"

static void table(void **state)
{
	static const struct {
		double p, dof, t;
	} rows[] = {{0.05, 1, 12.7062},	 {0.05, 2, 4.3027},	   {0.05, 4, 2.7764},
		    {0.01, 8, 3.3554},	 {0.001, 10, 4.5869},	   {0.10, 30, 1.6973},
		    {0.05, 120, 1.9799}, {0.05, INFINITY, 1.9600}, {0.5, 3, 0.7649}};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_true(fabs(student_t(rows[i].p, rows[i].dof) - rows[i].t) < 6e-5);
		assert_true(fabs(student_p(-rows[i].t, rows[i].dof) - rows[i].p) <
			    1e-4 * rows[i].p + 1e-6);
	}
}

static void edges(void **state)
{
	(void)state;
	assert_true(fabs(student_p(0, 7) - 1) < 1e-12);
	assert_true(student_p(INFINITY, 7) == 0);
	/* Cauchy: p = 1 - 2 atan(t) / pi */
	assert_true(fabs(student_p(2, 1) - (1 - 2 * atan(2) / M_PI)) < 1e-12);
	/* the normal law takes over where it is the same */
	assert_true(fabs(student_t(0.001, 9.9e4) - student_t(0.001, 1.1e5)) < 1e-3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(table),
					   cmocka_unit_test(edges)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
