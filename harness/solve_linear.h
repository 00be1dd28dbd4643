/* SPDX-License-Identifier: Apache-2.0
 * solve_linear.h: which sums of unknowns a set of equations determines, and how.
 */
#ifndef PUTSCOPE_SOLVE_LINEAR_H
#define PUTSCOPE_SOLVE_LINEAR_H
#include <stdbool.h>
#include <stddef.h>

#include "hop_model.h"

#define EQUATIONS_MAX 64

/* Equations row . hops = y, whose rows hold only 0 and 1. */
struct linear {
	size_t n;
	double row[EQUATIONS_MAX][NIC_HOPS];
	/* made by linear_solve: pseudo-inverse, projector onto the row space */
	double pinv[NIC_HOPS][EQUATIONS_MAX];
	double onto[NIC_HOPS][NIC_HOPS];
	unsigned rank;
};
/* Singular value decomposition (LAPACK).  0 or -EIO with the sentence. */
int linear_solve(struct linear *l);
/* Is c . hops the same for every solution? */
bool linear_estimable(const struct linear *l, const double c[NIC_HOPS]);
/* Weights of the equations: c . hops = sum of w[i] y[i], least squares, where it is estimable. */
void linear_weights(const struct linear *l, const double c[NIC_HOPS],
		    double w[EQUATIONS_MAX]);
/* Null vectors with small whole numbers; how many. */
unsigned linear_null(const struct linear *l, double null[NIC_HOPS][NIC_HOPS]);
/* The same equations without one. */
void linear_without(const struct linear *l, size_t i, struct linear *out);
/* Smallest sets of hops, as bits, that hold hop j and whose sum is estimable; how many, at most max. */
unsigned linear_minimal(const struct linear *l, unsigned j, unsigned *sets, unsigned max);
#endif
