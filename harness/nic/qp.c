/* SPDX-License-Identifier: Apache-2.0
 * qp.c: RC queue pairs on verbs, and their rings, records and doorbell register as device code sees them.
 */
#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <jansson.h>
#include <stdlib.h>

#include "clock.h"
#include "config.h"
#include "err.h"
#include "nic/guard.h"
#include "nic/nic.h"
#include "sm/sm.h"

#define RD_ATOMIC 16
#define ACK_TIMEOUT 14 /* 4.096 us * 2^14 = 67 ms, IBTA 11.2.4.2 */
#define RETRIES 7
#define RECEIVE_DEADLINE_NS 1000000000u
#define RNR_MIN 12 /* 0.64 ms, IBTA table 46 */

/* Take the rings' addresses from libmlx5 and make every page they touch usable by device code. */
static int map_queues(struct nic_qp *qp)
{
	struct mlx5dv_qp dq = {0};
	struct mlx5dv_cq dc = {0};
	struct mlx5dv_obj obj = {.qp = {qp->qp, &dq}, .cq = {qp->cq, &dc}};
	struct nic_queue *q = &qp->q;
	void *p;
	int err;

	IBV_TRY(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ), err, out);
	if (dq.sq.stride != WQE_BB_BYTES || dc.cqe_size != CQE_BYTES)
		return err_say(
			-EPERM,
			"%s: send blocks of %u B and CQEs of %u B, expected 64 and 64; unset MLX5_CQE_SIZE",
			qp->nic->name, dq.sq.stride, dc.cqe_size);
	OUR_TRY(sm_map(qp->sm, dq.sq.buf, (size_t)dq.sq.wqe_cnt * dq.sq.stride, false,
		       &p),
		err, out);
	q->sq = p;
	OUR_TRY(sm_map(qp->sm, (void *)dq.dbrec, 8, false, &p), err, out);
	q->sq_rec = (uint8_t *)p + 4; /* MLX5_SND_DBR: word 1 */
	OUR_TRY(sm_map(qp->sm, dc.buf, (size_t)dc.cqe_cnt * dc.cqe_size, false, &p), err,
		out);
	q->cq = p;
	qp->cqes = dc.buf;
	OUR_TRY(sm_map(qp->sm, (void *)dc.dbrec, 4, false, &p), err, out);
	q->cq_rec = p;
	/* The virtual NIC's register page is plain memory; a real one is I/O memory. */
	OUR_TRY(sm_map(qp->sm, dq.bf.reg, 8, !nic_is_virtual(), &p), err, out);
	q->reg = p;
	OUR_TRY(guard_add(dq.bf.reg), err, out);
	qp->reg = dq.bf.reg;
	q->sq_count = dq.sq.wqe_cnt;
	q->cq_count = dc.cqe_cnt;
	q->reg_toggle = dq.bf.size;
	q->qpn = qp->qp->qp_num;
	OUR_TRY(sm_alloc(qp->sm, qp->cursor_bytes, SM_HOST, (void **)&qp->cursor), err,
		out);
	OUR_TRY(sm_map(qp->sm, qp->cursor, sizeof *qp->cursor, false, &p), err, out);
	q->cursor = p;
out:
	return err;
}

/* With receives: one that tells when the NIC made each completion. */
static int open_cq(struct nic_qp *qp, unsigned depth, unsigned receives)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = depth + receives,
					   .wc_flags =
						   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
					   .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					   .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED};
	struct ibv_cq_ex *cq;
	int err = 0;

	if (!receives) {
		PTR_TRY(qp->cq = ibv_create_cq(qp->nic->ctx, (int)depth, NULL, NULL, 0),
			err, out);
		return 0;
	}
	PTR_TRY(cq = ibv_create_cq_ex(qp->nic->ctx, &attr), err, out);
	qp->cq_ex = cq;
	qp->cq = ibv_cq_ex_to_cq(cq);
out:
	return err;
}

int nic_qp_open(struct nic_qp **out, struct nic *nic, struct sm *sm, unsigned depth,
		unsigned receives)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {depth, receives ? receives : 1, 1, 1, WQE_INLINE_MAX}};
	struct nic_qp *qp = NULL;
	int err = 0;

	*out = NULL;
	if (sm && !nic->mlx5)
		return err_say(
			-EOPNOTSUPP,
			"%s is no mlx5 device: an SM cannot build its work requests",
			nic->name);
	PTR_TRY(qp = calloc(1, sizeof *qp), err, out);
	qp->nic = nic;
	qp->sm = sm;
	qp->cursor_bytes = 4096;
	OUR_TRY(open_cq(qp, depth, receives), err, out);
	attr.send_cq = attr.recv_cq = qp->cq;
	errno = 0;
	qp->qp = ibv_create_qp(nic->pd, &attr);
	if (!qp->qp) {
		err = err_say(
			-EPERM,
			"%s refuses a queue pair of %u entries: %s (doorbell pages and locked memory are what usually run short)",
			nic->name, depth, strerror(errno ? errno : EIO));
		goto out;
	}
	if (sm)
		OUR_TRY(map_queues(qp), err, out);
	*out = qp;
	return 0;
out:
	nic_qp_close(qp);
	return err;
}

int nic_qp_receive(struct nic_qp *qp, unsigned n)
{
	struct ibv_recv_wr wr = {0}, *bad;

	for (unsigned i = 0; i < n; i++) {
		int rc = ibv_post_recv(qp->qp, &wr, &bad);

		if (rc)
			return err_say(-EIO, "%s: receive %u of %u cannot be posted: %s",
				       qp->nic->name, i, n, strerror(rc));
	}
	return 0;
}

bool nic_cqe_stamp(const struct nic_qp *qp, uint32_t ci, uint64_t *stamp)
{
	const uint8_t *e = qp->cqes + (size_t)(ci & (qp->q.cq_count - 1)) * CQE_BYTES;
	uint64_t be;

	if (!cqe_look(&qp->q, ci))
		return false;
	memcpy(&be, e + CQE_STAMP, sizeof be);
	*stamp = be64toh(be);
	return true;
}

int nic_qp_received(struct nic_qp *qp, unsigned n, uint64_t *stamps)
{
	struct ibv_cq_ex *cq = qp->cq_ex;
	const uint64_t start = clock_monotonic_raw_ns();
	struct ibv_poll_cq_attr attr = {0};
	unsigned got = 0;
	bool open = false;
	int rc;

	while (got < n) {
		rc = open ? ibv_next_poll(cq) : ibv_start_poll(cq, &attr);
		if (rc == ENOENT) {
			if (open)
				ibv_end_poll(cq);
			open = false;
			if (clock_monotonic_raw_ns() - start > RECEIVE_DEADLINE_NS)
				return err_say(
					-ETIMEDOUT,
					"%s: %u of %u writes with immediate data were announced",
					qp->nic->name, got, n);
			sm_yield();
			continue;
		}
		if (rc)
			return err_say(-EIO, "%s: the CQ cannot be polled: %s",
				       qp->nic->name, strerror(rc));
		open = true;
		if (cq->status != IBV_WC_SUCCESS) {
			ibv_end_poll(cq);
			return err_say(-EREMOTEIO, "%s: a receive ended with: %s",
				       qp->nic->name, ibv_wc_status_str(cq->status));
		}
		stamps[got++] = ibv_wc_read_completion_ts(cq);
	}
	if (open)
		ibv_end_poll(cq);
	return 0;
}

void nic_qp_close(struct nic_qp *qp)
{
	if (!qp)
		return;
	if (qp->reg)
		guard_remove(qp->reg);
	if (qp->qp)
		ibv_destroy_qp(qp->qp);
	if (qp->cq)
		ibv_destroy_cq(qp->cq);
	if (qp->cursor)
		sm_free(qp->sm, qp->cursor, qp->cursor_bytes, SM_HOST);
	free(qp);
}

void nic_qp_addr(const struct nic_qp *qp, struct nic_addr *a)
{
	memset(a, 0, sizeof *a);
	a->qpn = qp->qp->qp_num;
	a->psn = qp->qp->qp_num & 0xffffff;
	a->gid = qp->nic->gid;
	a->lid = qp->nic->lid;
	a->mtu = (uint8_t)qp->nic->mtu;
	a->ethernet = qp->nic->ethernet;
}

int nic_qp_connect(struct nic_qp *qp, const struct nic_addr *peer)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = qp->nic->port,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .dest_qp_num = peer->qpn,
				  .rq_psn = peer->psn,
				  .max_dest_rd_atomic = RD_ATOMIC,
				  .min_rnr_timer = RNR_MIN};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = ACK_TIMEOUT,
				  .retry_cnt = RETRIES,
				  .rnr_retry = RETRIES,
				  .max_rd_atomic = RD_ATOMIC,
				  .sq_psn = qp->qp->qp_num & 0xffffff};
	int err;

	if (peer->ethernet != qp->nic->ethernet)
		return err_say(
			-EPERM, "%s is %s and its peer is not: they cannot connect",
			qp->nic->name, qp->nic->ethernet ? "Ethernet" : "InfiniBand");
	rtr.path_mtu = peer->mtu < (uint8_t)qp->nic->mtu ? (enum ibv_mtu)peer->mtu
							 : qp->nic->mtu;
	rtr.ah_attr.port_num = qp->nic->port;
	rtr.ah_attr.dlid = peer->lid;
	if (qp->nic->ethernet) {
		rtr.ah_attr.is_global = 1;
		rtr.ah_attr.grh.dgid = peer->gid;
		rtr.ah_attr.grh.sgid_index = (uint8_t)qp->nic->gid_index;
		rtr.ah_attr.grh.hop_limit = 64;
	}
	IBV_TRY(ibv_modify_qp(qp->qp, &init,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      IBV_QP_ACCESS_FLAGS),
		err, out);
	IBV_TRY(ibv_modify_qp(qp->qp, &rtr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		err, out);
	IBV_TRY(ibv_modify_qp(qp->qp, &rts,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC),
		err, out);
	err = 0;
out:
	return err;
}
