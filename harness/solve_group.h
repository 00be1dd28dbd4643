/* SPDX-License-Identifier: Apache-2.0
 * solve_group.h: the equations of one group of experiments, with resampled medians behind each.
 */
#ifndef PUTSCOPE_SOLVE_GROUP_H
#define PUTSCOPE_SOLVE_GROUP_H
#include "load.h"
#include "solve_linear.h"

#define SOLVE_RESAMPLES 400u

/* One experiment: the time between doorbell and end (live: the age of what the NIC sampled), less what seeing it took. */
struct solve_eq {
	struct hop_exp x;
	const json_t *c;    /* its case */
	char name[80];	    /* with the size */
	const char *branch; /* cqe, flag, live */
	unsigned long long bytes;
	double y, poll;	 /* ns */
	double own;	 /* what the SM stamped before the doorbell and after the end */
	double measured; /* the plain whole; live: as measured */
	double *boot;	 /* SOLVE_RESAMPLES values of y */
};

struct solve_group {
	const char *name; /* base, or the virtual NIC's delays */
	const char *nature;
	double step_ns;
	bool joint;
	struct solve_eq eq[EQUATIONS_MAX];
	size_t n;   /* equations of the system: the smallest size */
	size_t all; /* and those of other sizes behind them */
	struct linear l;
};
/* Gather and solve the group; free its memory. */
int solve_group_open(struct solve_group *g, const struct load *l, const char *name);
void solve_group_close(struct solve_group *g);
/* A weighted sum of the equations' y: value, and its resampled values' quantile or standard deviation. */
double solve_sum(const struct solve_group *g, const double *w);
void solve_interval(const struct solve_group *g, const double *w, double *lo, double *hi);
double solve_error(const struct solve_group *g, const double *w);
#endif
