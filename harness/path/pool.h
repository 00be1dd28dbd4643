/* SPDX-License-Identifier: Apache-2.0
 * pool.h: the CPU proxy's workers: threads that take 16 B descriptors from host rings, post them with ibv_post_send as
 * chains of up to `batch`, poll their CQs and count completions where the SM polls.
 *
 * A lane is a queue pair and the rings that are posted on it; every lane belongs to one worker.  Between batches the workers
 * sleep, so that they are no spinners of another path's case.
 */
#ifndef PUTSCOPE_POOL_H
#define PUTSCOPE_POOL_H
#include "rig.h"

#define POOL_WORKERS_MAX 8u
#define POOL_BATCH_MAX 16u

enum pool_mode {
	POOL_POST,
	POOL_STAMPED, /* one worker, one ring, one descriptor a post; each step stamped */
	POOL_ECHO,    /* a descriptor is counted as it is taken: no NIC takes part */
};

/* What a worker stamps of one descriptor, in host ticks. */
enum pool_stamp {
	POOL_FOUND,  /* the look that found it valid */
	POOL_READY,  /* the work request stands, ibv_post_send is called */
	POOL_POSTED, /* it returned */
	POOL_LOOKED, /* the ibv_poll_cq that found the CQE is called */
	POOL_REAPED, /* it returned */
	POOL_TOLD,   /* the counter is stored */
	POOL_STAMPS
};

struct pool_shape {
	uint32_t workers, rings, batch; /* rings are dealt to the workers in turn */
	bool both_ends; /* one worker, two lanes: ring 0 posts from endpoint A, ring 1 from B */
};

struct pool;
int pool_open(struct pool **x, struct env *e, const struct pool_shape *s);
void pool_close(struct pool *x);
/* Empty rings, and lanes on the queue pairs of now.  Before each launch, while the workers sleep. */
int pool_reset(struct pool *x, bool inlined);
/* Ring 0 as device code sees it, the others behind it (proxy_ring_at). */
int pool_view(const struct pool *x, struct proxy_view *v);
/* Wake the workers for the first `rings` rings; put them to sleep and take their counts. */
void pool_go(struct pool *x, enum pool_mode mode, uint32_t rings);
void pool_park(struct pool *x);

/* Of the last stamped launch: [descriptor][enum pool_stamp], and the cost of one reading in ticks. */
const uint64_t *pool_stamps(const struct pool *x);
uint64_t pool_overhead_ticks(const struct pool *x);
/* Where worker k ran last: its CPU, and how long one cycle of it took when it woke, in ns. */
int pool_cpu(const struct pool *x, uint32_t k);
double pool_cycle_ns(const struct pool *x, uint32_t k);
/* Work requests and calls of ibv_post_send of the last launch. */
void pool_counts(const struct pool *x, uint64_t *wqes, uint64_t *posts);
#endif
