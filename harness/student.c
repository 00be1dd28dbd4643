/* SPDX-License-Identifier: Apache-2.0
 * student.c: P(|T| > t) = I_x(dof/2, 1/2) with x = dof / (dof + t^2); I_x by its continued fraction (DLMF 8.17.22).
 */
#include <math.h>

#include "student.h"

#define TERMS 500
#define DOF_NORMAL 1e5 /* beyond it the normal law is the same to 5 digits */

/* The continued fraction, by Lentz's way. */
static double fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), f;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	f = d;
	for (int m = 1; m < TERMS; m++) {
		const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
			     odd = -(a + m) * (a + b + m) * x /
				   ((a + 2 * m) * (a + 2 * m + 1));
		const double steps[] = {even, odd};
		double change = 1;

		for (int k = 0; k < 2; k++) {
			d = 1 + steps[k] * d;
			c = 1 + steps[k] / c;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = fabs(c) < tiny ? tiny : c;
			change = c * d;
			f *= change;
		}
		if (fabs(change - 1) < 1e-14)
			break;
	}
	return f;
}

static double incomplete_beta(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x >= 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	return x < (a + 1) / (a + b + 2) ? front * fraction(a, b, x) / a
					 : 1 - front * fraction(b, a, 1 - x) / b;
}

double student_p(double t, double dof)
{
	if (isinf(t))
		return 0;
	if (dof > DOF_NORMAL)
		return erfc(fabs(t) / M_SQRT2);
	return incomplete_beta(dof / 2, 0.5, dof / (dof + t * t));
}

double student_t(double p, double dof)
{
	double lo = 0, hi = 1;

	while (student_p(hi, dof) > p && hi < 1e12)
		hi *= 2;
	for (int i = 0; i < 200 && hi - lo > 1e-12 * hi; i++) {
		double mid = (lo + hi) / 2;

		if (student_p(mid, dof) > p)
			lo = mid;
		else
			hi = mid;
	}
	return (lo + hi) / 2;
}
