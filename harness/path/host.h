/* SPDX-License-Identifier: Apache-2.0
 * host.h: a batch of host-initiated puts, shared by host.c (the put, its samples) and host_method.c (how kernels and puts
 * alternate).
 */
#ifndef PUTSCOPE_HOST_H
#define PUTSCOPE_HOST_H
#include "path/correlate.h"
#include "path/cpu_post.h"

/* The host's ticks of one put: its kernel is launched, seen to have ended; the put is posted, its end seen. */
struct host_op {
	uint64_t launch, ended, posted, done;
};

/* What a function that runs behind a kernel is told. */
struct host_turn {
	struct put *p;
	uint32_t i;
};

struct host {
	struct cpu_post post[END_COUNT];
	struct host_op *op;	/* [ops + 1]: the closing kernel's has no put */
	struct host_turn *turn; /* likewise */
	uint64_t *walls;	/* SM_HOST, [2 * (ops + 1)]: entry, exit, shared clock */
	size_t walls_bytes;
	struct sm_moment moment; /* before this batch */
	const struct host_method *method;
	int err; /* of the first put that failed on another thread, with its sentence */
	char why[256];
};

struct host_method {
	const char *name;
	bool queued; /* kernels and puts are handed over ahead: no launch between put and kernel */
	/* Kernel and put in turn, `ops` times, and the kernel that closes the last window. */
	int (*run)(struct put *p);
};
const struct host_method *host_method_find(const char *name);

/* Post put i and see its end, stamped; op[i].ended is set before. */
int host_put(struct put *p, uint32_t i);
#endif
