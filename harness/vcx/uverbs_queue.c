/* SPDX-License-Identifier: Apache-2.0
 * uverbs_queue.c: completion queues and queue pairs.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "fabric.h"
#include "log.h"
#include "op.h"
#include "stats.h"
#include "uar.h"
#include "uverbs.h"
#include "wqe.h"

/* enum ibv_qp_attr_mask */
enum {
	MASK_STATE = 1 << 0,
	MASK_ACCESS = 1 << 3,
	MASK_PKEY = 1 << 4,
	MASK_AV = 1 << 7,
	MASK_MTU = 1 << 8,
	MASK_TIMEOUT = 1 << 9,
	MASK_RETRY = 1 << 10,
	MASK_RNR_RETRY = 1 << 11,
	MASK_RQ_PSN = 1 << 12,
	MASK_RD_ATOMIC = 1 << 13,
	MASK_RNR_TIMER = 1 << 15,
	MASK_SQ_PSN = 1 << 16,
	MASK_DEST_RD_ATOMIC = 1 << 17,
	MASK_DEST = 1 << 20
};
#define QPT_RC 2

int uverbs_create_cq(unsigned dev, struct ib_uverbs_ioctl_hdr *h)
{
	uint32_t cqe = (uint32_t)attr_u64(h, UVERBS_ATTR_CREATE_CQ_CQE);
	struct ib_uverbs_attr *channel = attr_at(h, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL);
	struct mlx5_ib_create_cq_resp u = {0};
	struct mlx5_ib_create_cq q;

	(void)dev;
	attr_get(h, UVERBS_ATTR_UHW_IN, &q, sizeof q);
	for (uint32_t i = 1; i < VCX_OBJECTS; i++) {
		struct vcx_cq *c = &fab->cqs[i];

		if (c->used)
			continue;
		*c = (struct vcx_cq){
			.used = true,
			.pid = vcx_me,
			.cqn = fabric_cqn(i),
			.cqe_cnt = cqe + 1,
			.cqe_bytes = q.cqe_size,
			.buf = q.buf_addr,
			.rec = q.db_addr,
			.channel = channel ? channel_writer((int)channel->data) : -1,
			.user_handle = attr_u64(h, UVERBS_ATTR_CREATE_CQ_USER_HANDLE)};
		if (i > uar_cq_top)
			uar_cq_top = i;
		u.cqn = c->cqn;
		attr_put_object(h, UVERBS_ATTR_CREATE_CQ_HANDLE, i);
		ATTR_PUT(h, UVERBS_ATTR_CREATE_CQ_RESP_CQE, cqe);
		ATTR_PUT(h, UVERBS_ATTR_UHW_OUT, u);
		LOG(1, "CQ 0x%x: %u entries of %u B", c->cqn, c->cqe_cnt, c->cqe_bytes);
		return 0;
	}
	return ENOMEM;
}

int uverbs_destroy_cq(struct ib_uverbs_ioctl_hdr *h)
{
	uint32_t i = (uint32_t)attr_u64(h, UVERBS_ATTR_DESTROY_CQ_HANDLE);
	struct ib_uverbs_destroy_cq_resp r = {0};
	struct vcx_cq *c = own_cq(i);

	if (!c)
		return EINVAL;
	for (uint32_t k = 0; k < VCX_OBJECTS; k++)
		if (fab->qps[k].used && fab->qps[k].pid == vcx_me &&
		    (fab->qps[k].scq == i || fab->qps[k].rcq == i))
			return EBUSY;
	/* The kernel counts an event as reported when it is read; ibv_destroy_cq waits until those are acknowledged. */
	r.comp_events_reported =
		c->channel < 0
			? 0
			: c->events - channel_take_back(c->channel, c->user_handle);
	c->used = false;
	ATTR_PUT(h, UVERBS_ATTR_DESTROY_CQ_RESP, r);
	return 0;
}

static void count_qps(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < VCX_OBJECTS; i++)
		n += fab->qps[i].used && fab->qps[i].pid == vcx_me;
	if (n > vcx_counts.qps_max)
		vcx_counts.qps_max = n;
}

int uverbs_create_qp(unsigned dev, struct ib_uverbs_ioctl_hdr *h)
{
	uint32_t pd = (uint32_t)attr_u64(h, UVERBS_ATTR_CREATE_QP_PD_HANDLE);
	struct mlx5_ib_create_qp_resp u = {0};
	struct ib_uverbs_qp_cap cap;
	struct mlx5_ib_create_qp q;

	attr_get(h, UVERBS_ATTR_UHW_IN, &q, sizeof q);
	attr_get(h, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof cap);
	if (attr_u64(h, UVERBS_ATTR_CREATE_QP_TYPE) != QPT_RC ||
	    !(q.flags & MLX5_QP_FLAG_UAR_PAGE_INDEX))
		return EOPNOTSUPP;
	if (pd >= VCX_OBJECTS || !fab->pds[pd] || !q.bfreg_index ||
	    q.bfreg_index >= VCX_UARS)
		return EINVAL;
	for (uint32_t i = 1; i < VCX_OBJECTS; i++) {
		struct vcx_qp *p = &fab->qps[i];

		if (p->used)
			continue;
		*p = (struct vcx_qp){
			.pid = vcx_me,
			.dev = (uint8_t)dev,
			.qpn = fabric_qpn(i),
			.pd = pd,
			.scq = (uint32_t)attr_u64(h,
						  UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE),
			.rcq = (uint32_t)attr_u64(h,
						  UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE),
			.uidx = q.uidx,
			.uar = q.bfreg_index,
			.sq_cnt = q.sq_wqe_count,
			.rq_cnt = q.rq_wqe_count,
			.rq_shift = q.rq_wqe_shift,
			.rq = q.buf_addr,
			.sq = q.buf_addr + ((uint64_t)q.rq_wqe_count << q.rq_wqe_shift),
			.rec = q.db_addr};
		p->used = true;
		uar_list(p, true);
		count_qps();
		u.bfreg_index = q.bfreg_index;
		attr_put_object(h, UVERBS_ATTR_CREATE_QP_HANDLE, i);
		ATTR_PUT(h, UVERBS_ATTR_CREATE_QP_RESP_CAP, cap);
		ATTR_PUT(h, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, p->qpn);
		ATTR_PUT(h, UVERBS_ATTR_UHW_OUT, u);
		LOG(1, "QP 0x%x: %u send blocks, %u receives, page %u", p->qpn, p->sq_cnt,
		    p->rq_cnt, p->uar);
		return 0;
	}
	return ENOMEM;
}

int uverbs_destroy_qp(struct ib_uverbs_ioctl_hdr *h)
{
	struct vcx_qp *q = own_qp((uint32_t)attr_u64(h, UVERBS_ATTR_DESTROY_QP_HANDLE));
	struct ib_uverbs_destroy_qp_resp r = {0};

	if (!q)
		return EINVAL;
	uar_list(q, false);
	op_drop(q);
	q->used = false;
	ATTR_PUT(h, UVERBS_ATTR_DESTROY_QP_RESP, r);
	return 0;
}

/* IBTA 10.3.1: which states follow which, and what RC must be given on the way up. */
static int check_transition(const struct vcx_qp *x, uint32_t to, uint32_t mask)
{
	static const uint8_t follows[7] = {
		[QP_RESET] = 1 << QP_RESET | 1 << QP_INIT | 1 << QP_ERR,
		[QP_INIT] = 1 << QP_RESET | 1 << QP_INIT | 1 << QP_RTR | 1 << QP_ERR,
		[QP_RTR] = 1 << QP_RESET | 1 << QP_RTS | 1 << QP_ERR,
		[QP_RTS] = 1 << QP_RESET | 1 << QP_RTS | 1 << QP_SQD | 1 << QP_ERR,
		[QP_SQD] = 1 << QP_RESET | 1 << QP_RTS | 1 << QP_SQD | 1 << QP_ERR,
		[QP_ERR] = 1 << QP_RESET | 1 << QP_ERR,
	};
	static const uint32_t need[7] = {
		[QP_INIT] = 0x38, /* PKEY_INDEX | PORT | ACCESS */
		[QP_RTR] = MASK_AV | MASK_MTU | MASK_RQ_PSN | MASK_RNR_TIMER |
			   MASK_DEST_RD_ATOMIC | MASK_DEST,
		[QP_RTS] = MASK_TIMEOUT | MASK_RETRY | MASK_RNR_RETRY | MASK_RD_ATOMIC |
			   MASK_SQ_PSN,
	};

	if (to > QP_ERR || !(follows[x->state] & 1 << to))
		return EINVAL;
	if (to == x->state + 1u && (mask & need[to]) != need[to])
		return EINVAL;
	return 0;
}

static void take_attributes(struct vcx_qp *x, const struct ib_uverbs_modify_qp *q)
{
	const uint32_t m = q->attr_mask;

	if (m & MASK_DEST)
		x->dest = q->dest_qp_num;
	if (m & MASK_ACCESS)
		x->access = q->qp_access_flags;
	if (m & MASK_AV) {
		memcpy(x->dgid, q->dest.dgid, 16);
		x->has_av = true;
		x->sgid_index = q->dest.sgid_index;
		x->hop_limit = q->dest.hop_limit;
		x->traffic_class = q->dest.traffic_class;
		x->flow_label = q->dest.flow_label;
		x->sl = q->dest.sl;
	}
	if (m & MASK_MTU)
		x->path_mtu = q->path_mtu;
	if (m & MASK_RNR_TIMER)
		x->rnr_timer = q->min_rnr_timer;
	if (m & MASK_RNR_RETRY)
		x->rnr_retry = q->rnr_retry;
	if (m & MASK_RETRY)
		x->retry_cnt = q->retry_cnt;
	if (m & MASK_TIMEOUT)
		x->timeout = q->timeout;
	if (m & MASK_RQ_PSN)
		x->psn_rq = q->rq_psn;
	if (m & MASK_SQ_PSN)
		x->psn_sq = q->sq_psn;
	if (m & MASK_RD_ATOMIC)
		x->rd_atomic = q->max_rd_atomic;
	if (m & MASK_DEST_RD_ATOMIC)
		x->dest_rd_atomic = q->max_dest_rd_atomic;
}

int uverbs_modify_qp(struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_ex_modify_qp_resp r = {.response_length = sizeof r};
	struct ib_uverbs_modify_qp q;
	struct vcx_qp *x;
	int rc;

	attr_get(h, UVERBS_ATTR_CORE_IN, &q, sizeof q);
	x = own_qp(q.qp_handle);
	if (!x)
		return EINVAL;
	if ((q.attr_mask & MASK_AV) && !q.dest.is_global)
		return EINVAL; /* RoCE needs a GID */
	if (q.attr_mask & MASK_STATE) {
		rc = check_transition(x, q.qp_state, q.attr_mask);
		if (rc)
			return rc;
		x->state = q.qp_state;
		if (x->state == QP_RESET) {
			op_drop(x);
			x->ci = x->rci = x->rnr_tries = 0;
		}
	}
	take_attributes(x, &q);
	if (x->state == QP_ERR)
		wqe_flush(x);
	LOG(1, "QP 0x%x: state %u, peer 0x%x", x->qpn, x->state, x->dest);
	ATTR_PUT(h, UVERBS_ATTR_CORE_OUT, r);
	return 0;
}

int uverbs_query_qp(struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_query_qp_resp r;
	struct ib_uverbs_query_qp q;
	const struct vcx_qp *x;

	attr_get(h, UVERBS_ATTR_CORE_IN, &q, sizeof q);
	x = own_qp(q.qp_handle);
	if (!x)
		return EINVAL;
	memset(&r, 0, sizeof r);
	r.qp_state = r.cur_qp_state = x->state;
	r.dest_qp_num = x->dest;
	r.qp_access_flags = x->access;
	r.port_num = 1;
	r.path_mtu = (uint8_t)x->path_mtu;
	r.rq_psn = x->psn_rq;
	r.sq_psn = x->psn_sq;
	r.max_rd_atomic = (uint8_t)x->rd_atomic;
	r.max_dest_rd_atomic = (uint8_t)x->dest_rd_atomic;
	r.min_rnr_timer = x->rnr_timer;
	r.timeout = (uint8_t)x->timeout;
	r.retry_cnt = (uint8_t)x->retry_cnt;
	r.rnr_retry = x->rnr_retry;
	memcpy(r.dest.dgid, x->dgid, 16);
	r.dest.is_global = x->has_av;
	r.dest.sgid_index = x->sgid_index;
	r.dest.hop_limit = x->hop_limit;
	r.dest.traffic_class = x->traffic_class;
	r.dest.flow_label = x->flow_label;
	r.dest.sl = x->sl;
	r.dest.port_num = 1;
	r.max_send_wr = x->sq_cnt;
	r.max_recv_wr = x->rq_cnt;
	ATTR_PUT(h, UVERBS_ATTR_CORE_OUT, r);
	return 0;
}
