/* SPDX-License-Identifier: Apache-2.0
 * pool_lane.h: the inside of a worker: its lanes and its loop.
 */
#ifndef PUTSCOPE_POOL_LANE_H
#define PUTSCOPE_POOL_LANE_H
#include "path/pool.h"

/* Descriptors that may be on their way: each takes one work request, or two with a flag behind it. */
#define LANE_DEPTH (QUEUE_DEPTH / 2)

struct pool_ring {
	uint8_t *
		mem; /* PROXY_RING_BYTES, host memory: descriptors, then the progress word */
	uint8_t *counter;
	uint64_t next, done; /* descriptors taken, completions counted */
};

struct pool_lane {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	uint64_t src, dst, flag_dst; /* bases: the peer's memory as the NIC names it */
	unsigned flags;		     /* of each work request, besides signalled */
	struct pool_ring *ring[PROXY_RINGS_MAX];
	uint32_t rings, all_rings; /* in use in this launch; dealt */
	uint32_t turn;		   /* the ring that is looked at first */
	uint64_t posted, reaped;   /* descriptors */
	uint64_t posts;		   /* calls of ibv_post_send */
	bool broken;
	uint8_t owner[LANE_DEPTH]; /* whose descriptor is posted n-th */
	struct ibv_send_wr wr[POOL_BATCH_MAX], flag_wr[POOL_BATCH_MAX];
	struct ibv_sge sge[POOL_BATCH_MAX], flag_sge[POOL_BATCH_MAX];
};

struct pool_worker {
	struct pool_lane lane[END_COUNT];
	uint32_t lanes, batch;
	enum pool_mode mode;
	volatile bool running;
	uint64_t *stamps;
};

/* Point a lane at a queue pair, its rings empty; from: the endpoint whose memory it reads. */
void lane_bind(struct pool_lane *l, const struct env *e, const struct nic_qp *qp,
	       enum end from, bool inlined);
/* Take, post and reap until `running` falls. */
void lane_serve(struct pool_worker *w);
#endif
