/* SPDX-License-Identifier: Apache-2.0
 * student.h: Student's t, for intervals from few launches or batches.
 */
#ifndef PUTSCOPE_STUDENT_H
#define PUTSCOPE_STUDENT_H

/* P(|T| > |t|) with dof > 0 degrees of freedom (need not be whole). */
double student_p(double t, double dof);
/* The t with P(|T| > t) = p, 0 < p < 1; dof > 0. */
double student_t(double p, double dof);
#endif
