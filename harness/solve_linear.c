/* SPDX-License-Identifier: Apache-2.0
 * solve_linear.c: rank, null vectors and least squares of a small system.
 */
#include <lapacke.h>
#include <math.h>
#include <string.h>

#include "err.h"
#include "solve_linear.h"

#define TOLERANCE 1e-9

int linear_solve(struct linear *l)
{
	double a[EQUATIONS_MAX * NIC_HOPS], s[NIC_HOPS], u[EQUATIONS_MAX * NIC_HOPS],
		vt[NIC_HOPS * NIC_HOPS], rest[NIC_HOPS];
	/* Rows of zeros keep the system taller than wide. */
	lapack_int m = (lapack_int)(l->n < NIC_HOPS ? NIC_HOPS : l->n), rc;

	memset(a, 0, sizeof a);
	memcpy(a, l->row, l->n * sizeof l->row[0]);
	rc = LAPACKE_dgesvd(LAPACK_ROW_MAJOR, 'S', 'S', m, NIC_HOPS, a, NIC_HOPS, s, u,
			    NIC_HOPS, vt, NIC_HOPS, rest);
	if (rc)
		return err_say(-EIO, "the singular value decomposition failed (%d)",
			       (int)rc);
	memset(l->pinv, 0, sizeof l->pinv);
	memset(l->onto, 0, sizeof l->onto);
	l->rank = 0;
	for (unsigned k = 0; k < NIC_HOPS; k++) {
		const double *v = vt + k * NIC_HOPS;

		if (!(s[k] > TOLERANCE * s[0]) || !(s[0] > 0))
			continue;
		l->rank++;
		for (unsigned h = 0; h < NIC_HOPS; h++) {
			for (unsigned g = 0; g < NIC_HOPS; g++)
				l->onto[h][g] += v[h] * v[g];
			for (size_t i = 0; i < l->n; i++)
				l->pinv[h][i] += v[h] * u[i * NIC_HOPS + k] / s[k];
		}
	}
	return 0;
}

bool linear_estimable(const struct linear *l, const double c[NIC_HOPS])
{
	for (unsigned h = 0; h < NIC_HOPS; h++) {
		double p = 0;

		for (unsigned g = 0; g < NIC_HOPS; g++)
			p += l->onto[h][g] * c[g];
		if (fabs(p - c[h]) > 1e-7)
			return false;
	}
	return true;
}

void linear_weights(const struct linear *l, const double c[NIC_HOPS],
		    double w[EQUATIONS_MAX])
{
	for (size_t i = 0; i < l->n; i++) {
		w[i] = 0;
		for (unsigned h = 0; h < NIC_HOPS; h++)
			w[i] += c[h] * l->pinv[h][i];
	}
}

/* Reduced row echelon form in place; pivot[r] is the column of row r's leading one.  The rank. */
static unsigned reduce(double a[EQUATIONS_MAX][NIC_HOPS], size_t n,
		       unsigned pivot[NIC_HOPS])
{
	unsigned rank = 0;

	for (unsigned col = 0; col < NIC_HOPS && rank < n; col++) {
		size_t best = rank;

		for (size_t i = rank; i < n; i++)
			if (fabs(a[i][col]) > fabs(a[best][col]))
				best = i;
		if (fabs(a[best][col]) < TOLERANCE)
			continue;
		for (unsigned h = 0; h < NIC_HOPS; h++) {
			double t = a[best][h];

			a[best][h] = a[rank][h];
			a[rank][h] = t;
		}
		for (unsigned h = NIC_HOPS; h-- > 0;)
			a[rank][h] /= a[rank][col];
		for (size_t i = 0; i < n; i++) {
			double f = a[i][col];

			for (unsigned h = 0; i != rank && h < NIC_HOPS; h++)
				a[i][h] -= f * a[rank][h];
		}
		pivot[rank++] = col;
	}
	return rank;
}

unsigned linear_null(const struct linear *l, double null[NIC_HOPS][NIC_HOPS])
{
	double a[EQUATIONS_MAX][NIC_HOPS];
	unsigned pivot[NIC_HOPS], rank, n = 0;

	memcpy(a, l->row, sizeof a);
	rank = reduce(a, l->n, pivot);
	for (unsigned col = 0; col < NIC_HOPS; col++) {
		bool is_pivot = false;

		for (unsigned r = 0; r < rank; r++)
			is_pivot |= pivot[r] == col;
		if (is_pivot)
			continue;
		memset(null[n], 0, sizeof null[n]);
		null[n][col] = 1;
		for (unsigned r = 0; r < rank; r++)
			null[n][pivot[r]] = -a[r][col];
		n++;
	}
	return n;
}

void linear_without(const struct linear *l, size_t i, struct linear *out)
{
	out->n = l->n - 1;
	memcpy(out->row, l->row, i * sizeof l->row[0]);
	memcpy(out->row + i, l->row + i + 1, (l->n - i - 1) * sizeof l->row[0]);
}

static unsigned bits(unsigned set)
{
	return (unsigned)__builtin_popcount(set);
}

unsigned linear_minimal(const struct linear *l, unsigned j, unsigned *sets, unsigned max)
{
	unsigned found = 0;

	for (unsigned size = 1; size <= NIC_HOPS && !found; size++)
		for (unsigned set = 1; set < 1u << NIC_HOPS; set++) {
			double c[NIC_HOPS];

			if (!(set >> j & 1) || bits(set) != size || found == max)
				continue;
			for (unsigned h = 0; h < NIC_HOPS; h++)
				c[h] = set >> h & 1;
			if (linear_estimable(l, c))
				sets[found++] = set;
		}
	return found;
}
