/* SPDX-License-Identifier: Apache-2.0
 * ranks.h: one abstraction for a process that holds both endpoints and for two that an MPI launcher started.
 *
 * Rank 0 measures and writes results; rank 1 holds endpoint B and serves (serve.h).  MPI lives in a plugin that is
 * loaded only under a launcher, so that putscope runs where there is no MPI.
 */
#ifndef PUTSCOPE_RANKS_H
#define PUTSCOPE_RANKS_H
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct ranks {
	int rank, count;
	const struct ranks_ops *ops; /* NULL when count is 1 */
	bool lost; /* the other rank did not answer: it is not asked again, and MPI is not shut down with it */
};
/* What the plugin provides; 0 or -errno.  recv gives up after deadline_s seconds with -ETIMEDOUT, and grace_s seconds
 * after it saw *stop with -EINTR. */
struct ranks_ops {
	int (*send)(int to, const void *p, size_t bytes);
	int (*recv)(int from, void *p, size_t bytes, double deadline_s,
		    const volatile sig_atomic_t *stop, double grace_s);
	void (*finish)(void); /* waits for the other rank to do so too */
};
/* Symbol of the plugin: starts MPI, says rank and count. */
typedef const struct ranks_ops *ranks_plugin_fn(int *rank, int *count);
#define RANKS_PLUGIN_SYMBOL "putscope_ranks_mpi"
#define RANKS_PLUGIN_FILE "libputscope-mpi.so" /* beside the executable */

/* -EINVAL: a number of ranks that cannot be paired, or a launcher that says more than this process can see. */
int ranks_open(struct ranks *r);
void ranks_close(struct ranks *r);
int ranks_launched(
	void); /* how many ranks the launcher says there are; 1 without a launcher */
int ranks_send(struct ranks *r, const void *p, size_t bytes); /* to the other rank */
int ranks_recv(struct ranks *r, void *p, size_t bytes,
	       double deadline_s, /* from the other rank */
	       double grace_s);	  /* once a signal has come */
#endif
