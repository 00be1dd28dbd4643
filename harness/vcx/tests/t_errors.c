/* SPDX-License-Identifier: Apache-2.0
 * t_errors.c: what the NIC refuses, with which status, and that the rest of the queue is flushed.
 */
#include "rig.h"

#define BYTES 8192u

static struct side a, b;
static struct ibv_cq *cq;

struct wrong {
	const char *name;
	uint32_t lkey, rkey;
	uint64_t raddr;
	enum ibv_wc_status want;
};

/* Two puts, the first wrong: its status, then the flush of the second, then the state. */
static void refused(const struct wrong *w)
{
	struct ibv_sge s = { (uintptr_t)a.buf, 8, w->lkey };
	struct ibv_send_wr second = { .wr_id = 2, .sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				      .wr.rdma = { w->raddr, w->rkey } }, first = second, *stop;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr q;
	struct ibv_qp *x, *y;
	struct ibv_wc wc;

	pair_new(&a, cq, &b, cq, 16, &x, &y);
	first.wr_id = 1;
	first.next = &second;
	MUST(!ibv_post_send(x, &first, &stop));
	CHECK(poll_for(cq, &wc, 5) == 1 && wc.wr_id == 1);
	if (wc.status != w->want)
		printf("%s: %s\n", w->name, ibv_wc_status_str(wc.status));
	CHECK(wc.status == w->want);
	CHECK(poll_for(cq, &wc, 5) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 2);
	CHECK(!ibv_query_qp(x, &q, IBV_QP_STATE, &init) && q.qp_state == IBV_QPS_ERR);
	CHECK(!ibv_query_qp(y, &q, IBV_QP_STATE, &init)); /* who refuses goes to the error state too */
	CHECK(q.qp_state == (w->want == IBV_WC_REM_ACCESS_ERR ? IBV_QPS_ERR : IBV_QPS_RTS));
	CHECK(!ibv_destroy_qp(x) && !ibv_destroy_qp(y));
}

static void unreachable(void)
{
	struct ibv_qp *x = qp_new(&a, cq, 16), *y = qp_new(&b, cq, 16);
	union ibv_gid elsewhere = b.gid;
	struct ibv_wc wc;

	/* a queue pair that does not exist */
	qp_link(x, y->qp_num + 1, b.gid, 7);
	MUST(!post(x, IBV_WR_RDMA_WRITE, &a, 0, &b, 0, 8, IBV_SEND_SIGNALED));
	CHECK(poll_for(cq, &wc, 5) == 1 && wc.status == IBV_WC_RETRY_EXC_ERR);
	CHECK(!ibv_destroy_qp(x));
	/* one that exists, but at another address */
	x = qp_new(&a, cq, 16);
	elsewhere.raw[15] ^= 0x40;
	qp_link(x, y->qp_num, elsewhere, 7);
	qp_link(y, x->qp_num, a.gid, 7);
	MUST(!post(x, IBV_WR_RDMA_WRITE, &a, 0, &b, 0, 8, IBV_SEND_SIGNALED));
	CHECK(poll_for(cq, &wc, 5) == 1 && wc.status == IBV_WC_RETRY_EXC_ERR);
	CHECK(!ibv_destroy_qp(x) && !ibv_destroy_qp(y));
}

static void receiver_not_ready(void)
{
	struct ibv_qp *x = qp_new(&a, cq, 16), *y = qp_new(&b, cq, 16);
	struct ibv_wc wc;

	qp_link(x, y->qp_num, b.gid, 1);
	qp_link(y, x->qp_num, a.gid, 1);
	MUST(!post(x, IBV_WR_SEND, &a, 0, &b, 0, 8, IBV_SEND_SIGNALED));
	CHECK(poll_for(cq, &wc, 5) == 1 && wc.status == IBV_WC_RNR_RETRY_EXC_ERR);
	CHECK(!ibv_destroy_qp(x) && !ibv_destroy_qp(y));
}

/* A send too long for its receive: both sides are told. */
static void too_long(void)
{
	struct ibv_sge s = { (uintptr_t)b.buf, 4, b.mr->lkey };
	struct ibv_recv_wr r = { .wr_id = 7, .sg_list = &s, .num_sge = 1 }, *stop;
	int sender = 0, receiver = 0;
	struct ibv_qp *x, *y;
	struct ibv_wc wc;

	pair_new(&a, cq, &b, cq, 16, &x, &y);
	MUST(!ibv_post_recv(y, &r, &stop));
	MUST(!post(x, IBV_WR_SEND, &a, 0, &b, 0, 64, IBV_SEND_SIGNALED));
	for (int i = 0; i < 2; i++) {
		CHECK(poll_for(cq, &wc, 5) == 1);
		sender += wc.qp_num == x->qp_num && wc.status == IBV_WC_REM_INV_REQ_ERR;
		receiver += wc.qp_num == y->qp_num && wc.status == IBV_WC_LOC_LEN_ERR;
	}
	CHECK(sender == 1 && receiver == 1);
	CHECK(!ibv_destroy_qp(x) && !ibv_destroy_qp(y));
}

int main(void)
{
	struct ibv_mr *weak;

	a = side_open("mlx5_0", BYTES);
	b = a; /* both ends on one device, in one domain, each with memory of its own */
	MUST(b.buf = aligned_alloc(4096, BYTES));
	MUST(b.mr = ibv_reg_mr(a.pd, b.buf, BYTES, ALL_ACCESS));
	MUST(weak = ibv_reg_mr(a.pd, b.buf, BYTES, IBV_ACCESS_LOCAL_WRITE));
	MUST(cq = ibv_create_cq(a.ctx, 63, NULL, NULL, 0));
	const struct wrong wrongs[] = {
		{ "bad rkey", a.mr->lkey, b.mr->rkey ^ 1, (uintptr_t)b.buf, IBV_WC_REM_ACCESS_ERR },
		{ "bad lkey", a.mr->lkey ^ 1, b.mr->rkey, (uintptr_t)b.buf, IBV_WC_LOC_PROT_ERR },
		{ "past the region", a.mr->lkey, b.mr->rkey, (uintptr_t)b.buf + BYTES - 4, IBV_WC_REM_ACCESS_ERR },
		{ "before the region", a.mr->lkey, b.mr->rkey, (uintptr_t)b.buf - 4, IBV_WC_REM_ACCESS_ERR },
		{ "no remote write", a.mr->lkey, weak->rkey, (uintptr_t)b.buf, IBV_WC_REM_ACCESS_ERR },
	};
	for (unsigned i = 0; i < sizeof wrongs / sizeof *wrongs; i++)
		refused(&wrongs[i]);
	unreachable();
	receiver_not_ready();
	too_long();
	return done();
}
