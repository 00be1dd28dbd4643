/* SPDX-License-Identifier: Apache-2.0
 * rig.h: what the verbs programs of the tests share: two connected queue pairs, hand-posting, checks.
 */
#ifndef VCX_TESTS_RIG_H
#define VCX_TESTS_RIG_H
#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int checks, bad;
#define CHECK(c)                                                                             \
	do {                                                                                 \
		checks++;                                                                    \
		if (!(c)) {                                                                  \
			bad++;                                                               \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #c);               \
		}                                                                            \
	} while (0)
/* For what the rest cannot do without. */
#define MUST(c)                                                                              \
	do {                                                                                 \
		if (!(c)) {                                                                  \
			printf("%s:%d: %s: %m\n", __FILE__, __LINE__, #c);                   \
			exit(1);                                                             \
		}                                                                            \
	} while (0)

#define GID_INDEX 3 /* RoCE v2 over IPv4 */
#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	union ibv_gid gid;
	uint8_t *buf;
	size_t bytes;
	struct ibv_mr *mr;
};

static inline struct side side_open(const char *name, size_t bytes)
{
	struct side s = { .bytes = bytes };
	struct ibv_device **list = ibv_get_device_list(NULL);

	MUST(list);
	for (int i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			s.ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	MUST(s.ctx);
	MUST(s.pd = ibv_alloc_pd(s.ctx));
	MUST(!ibv_query_gid(s.ctx, 1, GID_INDEX, &s.gid));
	MUST(s.buf = aligned_alloc(4096, bytes));
	memset(s.buf, 0, bytes);
	MUST(s.mr = ibv_reg_mr(s.pd, s.buf, bytes, ALL_ACCESS));
	return s;
}

static inline int side_close(struct side *s)
{
	int rc = ibv_dereg_mr(s->mr) | ibv_dealloc_pd(s->pd) | ibv_close_device(s->ctx);

	free(s->buf);
	return rc;
}

static inline struct ibv_qp *qp_new(struct side *s, struct ibv_cq *cq, unsigned depth)
{
	struct ibv_qp_init_attr a = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { depth, 16, 4, 2, 64 } };
	struct ibv_qp_attr m = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL_ACCESS };
	struct ibv_qp *q = ibv_create_qp(s->pd, &a);

	MUST(q);
	MUST(!ibv_modify_qp(q, &m, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	return q;
}

static inline void qp_link(struct ibv_qp *q, uint32_t peer, union ibv_gid gid, uint8_t rnr_retry)
{
	struct ibv_qp_attr m = { .qp_state = IBV_QPS_RTR,
				 .path_mtu = IBV_MTU_4096,
				 .dest_qp_num = peer,
				 .max_dest_rd_atomic = 16,
				 .min_rnr_timer = 1,
				 .ah_attr = { .is_global = 1,
					      .port_num = 1,
					      .grh = { .dgid = gid, .sgid_index = GID_INDEX, .hop_limit = 64 } } };
	struct ibv_qp_attr s = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = rnr_retry,
				 .max_rd_atomic = 16 };

	MUST(!ibv_modify_qp(q, &m, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	MUST(!ibv_modify_qp(q, &s, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC));
}

static inline void pair_new(struct side *a, struct ibv_cq *ca, struct side *b, struct ibv_cq *cb, unsigned depth,
			    struct ibv_qp **qa, struct ibv_qp **qb)
{
	*qa = qp_new(a, ca, depth);
	*qb = qp_new(b, cb, depth);
	qp_link(*qa, (*qb)->qp_num, b->gid, 7);
	qp_link(*qb, (*qa)->qp_num, a->gid, 7);
}

static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One completion within `seconds`; 0 when none came. */
static inline int poll_for(struct ibv_cq *cq, struct ibv_wc *wc, double seconds)
{
	double end = now() + seconds;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, wc)) && now() < end)
		sched_yield();
	return n;
}

/* Post one request of `bytes` at src (in a) to dst (in b); returns what ibv_post_send does. */
static inline int post(struct ibv_qp *q, enum ibv_wr_opcode op, struct side *a, size_t src, struct side *b, size_t dst,
		       uint32_t bytes, unsigned flags)
{
	struct ibv_sge s = { (uintptr_t)a->buf + src, bytes, a->mr->lkey };
	struct ibv_send_wr w = { .wr_id = 1, .sg_list = &s, .num_sge = 1, .opcode = op, .send_flags = flags,
				 .imm_data = htobe32(42), .wr.rdma = { (uintptr_t)b->buf + dst, b->mr->rkey } }, *stop;

	return ibv_post_send(q, &w, &stop);
}

/* ---- by hand ---- */
struct hand {
	struct mlx5dv_qp q;
	struct mlx5dv_cq c;
	uint32_t qpn, pi, ci, reg;
};

static inline void hand_open(struct hand *h, struct ibv_qp *qp, struct ibv_cq *cq)
{
	struct mlx5dv_obj o = { .qp = { qp, &h->q }, .cq = { cq, &h->c } };

	memset(h, 0, sizeof *h);
	MUST(!mlx5dv_init_obj(&o, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ));
	h->qpn = qp->qp_num;
}

static inline uint8_t *hand_wqe(const struct hand *h)
{
	return (uint8_t *)h->q.sq.buf + (h->pi & (h->q.sq.wqe_cnt - 1)) * 64;
}

/* Build a WRITE of `bytes` at h->pi. */
static inline void hand_write(struct hand *h, struct side *a, size_t src, struct side *b, size_t dst, uint32_t bytes)
{
	uint8_t *w = hand_wqe(h);
	struct mlx5_wqe_raddr_seg *r = (void *)(w + 16);

	mlx5dv_set_ctrl_seg((void *)w, (uint16_t)h->pi, MLX5_OPCODE_RDMA_WRITE, 0, h->qpn, MLX5_WQE_CTRL_CQ_UPDATE, 3, 0, 0);
	r->raddr = htobe64((uintptr_t)b->buf + dst);
	r->rkey = htobe32(b->mr->rkey);
	r->reserved = 0;
	mlx5dv_set_data_seg((void *)(w + 32), bytes, a->mr->lkey, (uintptr_t)a->buf + src);
}

static inline void hand_record(struct hand *h, uint32_t value)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint32_t *)&h->q.dbrec[MLX5_SND_DBR] = value;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void hand_doorbell(struct hand *h, uint64_t value)
{
	*(volatile uint64_t *)((uint8_t *)h->q.bf.reg + h->reg) = value;
	h->reg ^= h->q.bf.size;
}

/* Record, doorbell, next. */
static inline void hand_ring(struct hand *h)
{
	uint64_t ctrl;

	memcpy(&ctrl, hand_wqe(h), 8);
	h->pi++;
	hand_record(h, htobe32(h->pi & 0xffff));
	hand_doorbell(h, ctrl);
}

/* Opcode of the next CQE (0 good, 13 error) within `seconds`, -1 when none came; *e is it. */
static inline int hand_poll(struct hand *h, double seconds, struct mlx5_cqe64 **e)
{
	struct mlx5_cqe64 *c = (void *)((uint8_t *)h->c.buf + (h->ci & (h->c.cqe_cnt - 1)) * h->c.cqe_size);
	double end = now() + seconds;
	uint8_t v;

	while ((v = *(volatile uint8_t *)&c->op_own) >> 4 == MLX5_CQE_INVALID || (v & 1) != !!(h->ci & h->c.cqe_cnt)) {
		if (now() > end)
			return -1;
		sched_yield();
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (e)
		*e = c;
	h->ci++;
	h->c.dbrec[0] = htobe32(h->ci & 0xffffff);
	return v >> 4;
}

static inline int done(void)
{
	printf("%d checks, %d bad\n", checks, bad);
	return bad != 0;
}
#endif
