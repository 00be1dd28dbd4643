/* SPDX-License-Identifier: Apache-2.0
 * rig.h: what the verbs clients of these tests share: devices, connected pairs, posting by hand, polling with a deadline,
 * checks that are counted.
 */
#ifndef VCX_TESTS_RIG_H
#define VCX_TESTS_RIG_H
#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RIG_GID 3	  /* RoCE v2, IPv4 */
#define RIG_DEADLINE_S 2. /* a completion that has not come by then does not come */
#define RIG_LIMIT_S 60	  /* SIGALRM ends a client that hangs */
#define RIG_ACCESS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* ---- checks ---- */
static unsigned rig_checks, rig_failed;

#define CHECK(cond, ...)                                                  \
	do {                                                              \
		rig_checks++;                                             \
		if (!(cond)) {                                            \
			rig_failed++;                                     \
			printf("%s:%d: %s: ", __FILE__, __LINE__, #cond); \
			printf(__VA_ARGS__);                              \
			putchar('\n');                                    \
		}                                                         \
	} while (0)
/* What the rest cannot do without. */
#define MUST(cond)                                                           \
	do {                                                                 \
		if (!(cond)) {                                               \
			printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #cond, \
			       strerror(errno));                             \
			exit(1);                                             \
		}                                                            \
	} while (0)

static inline int rig_done(void)
{
	printf("%u checks, %u failed\n", rig_checks, rig_failed);
	return rig_failed != 0;
}

static inline double rig_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- one end: a device and what is made on it ---- */
struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* of cq */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;
	size_t bytes;
};

static inline struct ibv_context *rig_open(unsigned k)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *ctx;

	MUST(list && (unsigned)n > k);
	ctx = ibv_open_device(list[k]);
	MUST(ctx);
	ibv_free_device_list(list);
	return ctx;
}

static inline struct ibv_qp *rig_qp(const struct end *e, struct ibv_cq *cq,
				    uint32_t depth)
{
	struct ibv_qp_init_attr a = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = depth,
			.max_recv_wr = 16,
			.max_send_sge = 4,
			.max_recv_sge = 2,
			.max_inline_data = 64},
	};
	struct ibv_qp *q = ibv_create_qp(e->pd, &a);

	MUST(q);
	return q;
}

static inline struct end rig_end(unsigned k, size_t bytes, int cqe, uint32_t depth)
{
	struct end e = {.ctx = rig_open(k), .bytes = bytes};

	alarm(RIG_LIMIT_S);
	setvbuf(stdout, NULL, _IOLBF, 0);
	MUST(e.pd = ibv_alloc_pd(e.ctx));
	MUST(e.channel = ibv_create_comp_channel(e.ctx));
	MUST(e.cq = ibv_create_cq(e.ctx, cqe, NULL, e.channel, 0));
	MUST(e.buf = aligned_alloc(4096, bytes));
	memset(e.buf, 0, bytes);
	MUST(e.mr = ibv_reg_mr(e.pd, e.buf, bytes, RIG_ACCESS));
	e.qp = rig_qp(&e, e.cq, depth);
	return e;
}

static inline void rig_end_close(struct end *e)
{
	CHECK(!ibv_destroy_qp(e->qp), "%s", strerror(errno));
	CHECK(!ibv_destroy_cq(e->cq), "%s", strerror(errno));
	CHECK(!ibv_destroy_comp_channel(e->channel), "%s", strerror(errno));
	CHECK(!ibv_dereg_mr(e->mr), "%s", strerror(errno));
	CHECK(!ibv_dealloc_pd(e->pd), "%s", strerror(errno));
	CHECK(!ibv_close_device(e->ctx), "%s", strerror(errno));
	free(e->buf);
}

/* ---- states ---- */
#define RIG_INIT_MASK \
	(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RIG_RTR_MASK                                                                    \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RIG_RTS_MASK                                                           \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

static inline int rig_to_init(struct ibv_qp *q)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = RIG_ACCESS};

	return ibv_modify_qp(q, &a, RIG_INIT_MASK);
}

static inline int rig_to_rtr(struct ibv_qp *q, uint32_t qpn, const union ibv_gid *dgid)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = qpn,
		.rq_psn = 0x123,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1, /* 10 us */
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = *dgid,
				    .sgid_index = RIG_GID,
				    .hop_limit = 64}},
	};

	return ibv_modify_qp(q, &a, RIG_RTR_MASK);
}

static inline int rig_to_rts(struct ibv_qp *q, uint8_t rnr_retry)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
				.timeout = 14,
				.retry_cnt = 6,
				.rnr_retry = rnr_retry,
				.sq_psn = 0x456,
				.max_rd_atomic = 16};

	return ibv_modify_qp(q, &a, RIG_RTS_MASK);
}

static inline union ibv_gid rig_gid(struct ibv_context *ctx)
{
	union ibv_gid g;

	MUST(!ibv_query_gid(ctx, 1, RIG_GID, &g));
	return g;
}

/* Connect a queue pair of each side; rnr_retry 7 is without end. */
static inline void rig_connect(struct ibv_qp *a, struct ibv_qp *b, uint8_t rnr_retry)
{
	union ibv_gid ga = rig_gid(a->context), gb = rig_gid(b->context);

	MUST(!rig_to_init(a) && !rig_to_init(b));
	MUST(!rig_to_rtr(a, b->qp_num, &gb) && !rig_to_rtr(b, a->qp_num, &ga));
	MUST(!rig_to_rts(a, rnr_retry) && !rig_to_rts(b, rnr_retry));
}

static inline enum ibv_qp_state rig_state(struct ibv_qp *q)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	return ibv_query_qp(q, &a, IBV_QP_STATE, &init) ? IBV_QPS_UNKNOWN : a.qp_state;
}

/* ---- posting and polling through verbs ---- */
/* One completion, or 0 at the deadline. */
static inline int rig_poll(struct ibv_cq *cq, struct ibv_wc *wc)
{
	double end = rig_now() + RIG_DEADLINE_S;
	int n;

	memset(wc, 0, sizeof *wc);
	while (!(n = ibv_poll_cq(cq, 1, wc)) && rig_now() < end)
		sched_yield();
	return n;
}

static inline struct ibv_sge rig_sge(const struct end *e, size_t at, uint32_t len)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)e->buf + at, .length = len, .lkey = e->mr->lkey};
}

/* A signalled request towards offset `at` of the far end's buffer. */
static inline struct ibv_send_wr rig_wr(enum ibv_wr_opcode op, struct ibv_sge *s,
					const struct end *far, size_t at)
{
	return (struct ibv_send_wr){.sg_list = s,
				    .num_sge = 1,
				    .opcode = op,
				    .send_flags = IBV_SEND_SIGNALED,
				    .wr.rdma = {.remote_addr = (uintptr_t)far->buf + at,
						.rkey = far->mr->rkey}};
}

static inline int rig_post(struct ibv_qp *q, struct ibv_send_wr *w)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(q, w, &bad);
}

static inline int rig_receive(struct ibv_qp *q, const struct end *e, size_t at,
			      uint32_t len, uint64_t id)
{
	struct ibv_sge s = rig_sge(e, at, len);
	struct ibv_recv_wr r = {.wr_id = id, .sg_list = &s, .num_sge = 1}, *bad;

	return ibv_post_recv(q, &r, &bad);
}

/* ---- posting and polling by hand, as a GPU does ---- */
struct hand {
	struct mlx5dv_qp q;
	struct mlx5dv_cq c;
	uint32_t qpn, pi, ci;
	bool second; /* half of the BlueFlame register that is next */
};

/* cq must be q's own: ibv_poll_cq and a poller by hand must not share one. */
static inline struct hand rig_hand(struct ibv_qp *q, struct ibv_cq *cq)
{
	struct hand h = {.qpn = q->qp_num};
	struct mlx5dv_obj o = {.qp = {.in = q, .out = &h.q},
			       .cq = {.in = cq, .out = &h.c}};

	MUST(!mlx5dv_init_obj(&o, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ));
	MUST(h.q.sq.stride == 64 && h.c.cqe_size == 64);
	h.ci = be32toh(h.c.dbrec[0]) & 0xffffff;
	return h;
}

static inline uint8_t *hand_block(const struct hand *h, uint32_t index)
{
	return (uint8_t *)h->q.sq.buf + (size_t)(index & (h->q.sq.wqe_cnt - 1)) * 64;
}

static inline void hand_ctrl(const struct hand *h, uint8_t *w, uint32_t index,
			     uint8_t opcode, uint8_t ds)
{
	mlx5dv_set_ctrl_seg((void *)w, (uint16_t)index, opcode, 0, h->qpn,
			    MLX5_WQE_CTRL_CQ_UPDATE, ds, 0, 0);
}

/* A WRITE of one segment at h->pi, not yet rung. */
static inline uint8_t *hand_write(const struct hand *h, const struct end *e, size_t from,
				  uint32_t len, uint64_t raddr, uint32_t rkey)
{
	uint8_t *w = hand_block(h, h->pi);
	struct mlx5_wqe_raddr_seg *r = (void *)(w + 16);

	hand_ctrl(h, w, h->pi, MLX5_OPCODE_RDMA_WRITE, 3);
	r->raddr = htobe64(raddr);
	r->rkey = htobe32(rkey);
	r->reserved = 0;
	mlx5dv_set_data_seg((void *)(w + 32), len, e->mr->lkey, (uintptr_t)e->buf + from);
	return w;
}

static inline void hand_record(const struct hand *h, uint32_t be)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint32_t *)&h->q.dbrec[MLX5_SND_DBR] = be;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void hand_doorbell(struct hand *h, uint64_t be)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)((uint8_t *)h->q.bf.reg + (h->second ? h->q.bf.size : 0)) =
		be;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	h->second = !h->second;
}

/* Ring for one WQE of one block, as the protocol says: WQE, record, doorbell. */
static inline void hand_ring(struct hand *h)
{
	uint64_t head;

	memcpy(&head, hand_block(h, h->pi), sizeof head);
	h->pi++;
	hand_record(h, htobe32(h->pi & 0xffff));
	hand_doorbell(h, head);
}

/* The CQE at h->ci, or NULL at the deadline. */
static inline struct mlx5_cqe64 *hand_poll(struct hand *h, double seconds)
{
	struct mlx5_cqe64 *e =
		(void *)((uint8_t *)h->c.buf + (size_t)(h->ci & (h->c.cqe_cnt - 1)) * 64);
	double end = rig_now() + seconds;

	for (;;) {
		uint8_t own = __atomic_load_n(&e->op_own, __ATOMIC_ACQUIRE);

		if (own >> 4 != MLX5_CQE_INVALID && (own & 1) == !!(h->ci & h->c.cqe_cnt))
			break;
		if (rig_now() > end)
			return NULL;
		sched_yield();
	}
	h->ci++;
	return e;
}

static inline void hand_release(struct hand *h)
{
	*(volatile uint32_t *)&h->c.dbrec[0] = htobe32(h->ci & 0xffffff);
}
#endif
