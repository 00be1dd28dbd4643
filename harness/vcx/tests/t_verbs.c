/* SPDX-License-Identifier: Apache-2.0
 * t_verbs.c: every opcode through ibv_post_send and ibv_poll_cq; the states and refusals of the objects.
 * usage: t_verbs DEVICE_A DEVICE_B
 */
#include <fcntl.h>
#include <poll.h>

#include "rig.h"

#define BYTES (1u << 20)

static struct side a, b;
static struct ibv_cq *ca, *cb;
static struct ibv_comp_channel *channel;
static struct ibv_qp *qa, *qb;

static void writes(void)
{
	struct ibv_wc wc;

	for (uint32_t i = 0; i < 600; i++) {
		uint32_t n = 1 + i * 7919 % 60000, third = n / 3;
		struct ibv_sge s[3] = { { (uintptr_t)a.buf, third, a.mr->lkey },
					{ (uintptr_t)a.buf + third, third, a.mr->lkey },
					{ (uintptr_t)a.buf + 2 * third, n - 2 * third, a.mr->lkey } };
		struct ibv_send_wr w = { .wr_id = i, .sg_list = s, .num_sge = 3, .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED, .wr.rdma = { (uintptr_t)b.buf, b.mr->rkey } }, *stop;

		for (uint32_t k = 0; k < n; k++)
			a.buf[k] = (uint8_t)(i * 31 + k * 7);
		memset(b.buf, ~i & 0xff, n + 1);
		if (n <= 60)
			w.send_flags |= IBV_SEND_INLINE;
		MUST(!ibv_post_send(qa, &w, &stop));
		MUST(poll_for(ca, &wc, 5) == 1);
		CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == i && wc.opcode == IBV_WC_RDMA_WRITE);
		CHECK(!memcmp(a.buf, b.buf, n) && b.buf[n] == (~i & 0xff));
	}
}

static void unsignalled(void)
{
	struct ibv_wc wc;

	for (int i = 0; i < 20; i++) {
		a.buf[i] = (uint8_t)(i + 1);
		MUST(!post(qa, IBV_WR_RDMA_WRITE, &a, i, &b, 100 + i, 1, i == 19 ? IBV_SEND_SIGNALED : 0));
	}
	CHECK(poll_for(ca, &wc, 5) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(!ibv_poll_cq(ca, 1, &wc));
	CHECK(!memcmp(a.buf, b.buf + 100, 20));
}

static void receive(size_t at, uint32_t bytes)
{
	struct ibv_sge s = { (uintptr_t)b.buf + at, bytes, b.mr->lkey };
	struct ibv_recv_wr r = { .wr_id = at, .sg_list = &s, .num_sge = 1 }, *stop;

	MUST(!ibv_post_recv(qb, &r, &stop));
}

static void two_sided(void)
{
	struct ibv_wc wc;

	receive(5000, 64);
	MUST(!post(qa, IBV_WR_RDMA_WRITE_WITH_IMM, &a, 0, &b, 0, 8, IBV_SEND_SIGNALED));
	CHECK(poll_for(ca, &wc, 5) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(poll_for(cb, &wc, 5) == 1 && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.wr_id == 5000);
	CHECK(be32toh(wc.imm_data) == 42 && wc.byte_len == 8);
	for (int imm = 0; imm < 2; imm++) {
		strcpy((char *)a.buf, "hello, sink");
		memset(b.buf + 6000, 0, 64);
		receive(6000, 64);
		MUST(!post(qa, imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, &a, 0, &b, 0, 12, IBV_SEND_SIGNALED));
		CHECK(poll_for(ca, &wc, 5) == 1 && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_SEND);
		CHECK(poll_for(cb, &wc, 5) == 1 && wc.opcode == IBV_WC_RECV && wc.byte_len == 12);
		CHECK(!(wc.wc_flags & IBV_WC_WITH_IMM) == !imm);
		CHECK(!strcmp((char *)b.buf + 6000, "hello, sink"));
	}
}

static uint64_t atomic(enum ibv_wr_opcode op, uint64_t compare, uint64_t value)
{
	struct ibv_sge s = { (uintptr_t)a.buf, 8, a.mr->lkey };
	struct ibv_send_wr w = { .sg_list = &s, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED,
				 .wr.atomic = { (uintptr_t)b.buf, compare, value, b.mr->rkey } }, *stop;
	struct ibv_wc wc;

	MUST(!ibv_post_send(qa, &w, &stop));
	CHECK(poll_for(ca, &wc, 5) == 1 && wc.status == IBV_WC_SUCCESS);
	return *(uint64_t *)a.buf;
}

static void reads_and_atomics(void)
{
	uint64_t *there = (void *)b.buf;
	struct ibv_wc wc;

	*there = 1000;
	CHECK(atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 5, 0) == 1000 && *there == 1005);
	CHECK(atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 1, 7) == 1005 && *there == 1005);
	CHECK(atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 1005, 7) == 1005 && *there == 7);
	for (int i = 0; i < 777; i++)
		b.buf[i] = (uint8_t)(i * 3);
	MUST(!post(qa, IBV_WR_RDMA_READ, &a, 1, &b, 0, 777, IBV_SEND_SIGNALED));
	CHECK(poll_for(ca, &wc, 5) == 1 && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RDMA_READ);
	CHECK(!memcmp(a.buf + 1, b.buf, 777));
}

static void events(void)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	for (int i = 0; i < 50; i++) {
		MUST(!ibv_req_notify_cq(ca, 0));
		CHECK(!poll(&p, 1, i ? 0 : 20)); /* nothing has come: no event */
		MUST(!post(qa, IBV_WR_RDMA_WRITE, &a, 0, &b, 0, 8, IBV_SEND_SIGNALED));
		CHECK(poll(&p, 1, 5000) == 1);
		MUST(!ibv_get_cq_event(channel, &cq, &context));
		CHECK(cq == ca);
		ibv_ack_cq_events(ca, 1);
		CHECK(poll_for(ca, &wc, 5) == 1);
	}
	MUST(!ibv_req_notify_cq(ca, 0)); /* an event that nobody reads must not keep ibv_destroy_cq waiting */
	MUST(!post(qa, IBV_WR_RDMA_WRITE, &a, 0, &b, 0, 8, IBV_SEND_SIGNALED));
	CHECK(poll_for(ca, &wc, 5) == 1 && poll(&p, 1, 5000) == 1);
}

static void objects(void)
{
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS }, q;
	struct ibv_qp_init_attr init;
	struct ibv_qp *fresh = qp_new(&a, ca, 8);
	struct ibv_device_attr_ex dev;

	CHECK(ibv_modify_qp(fresh, &rts, IBV_QP_STATE)); /* INIT cannot become RTS */
	CHECK(!ibv_query_qp(fresh, &q, IBV_QP_STATE, &init) && q.qp_state == IBV_QPS_INIT);
	CHECK(!ibv_query_qp(qa, &q, IBV_QP_STATE | IBV_QP_DEST_QPN, &init) && q.qp_state == IBV_QPS_RTS);
	CHECK(q.dest_qp_num == qb->qp_num);
	CHECK(ibv_dealloc_pd(a.pd) != 0);  /* busy */
	CHECK(ibv_destroy_cq(ca) != 0);
	CHECK(!ibv_destroy_qp(fresh));
	CHECK(!ibv_query_device_ex(a.ctx, NULL, &dev) && dev.hca_core_clock == 1000000 && dev.completion_timestamp_mask);
	CHECK(dev.orig_attr.vendor_part_id == 4129); /* ConnectX-7 */
}

int main(int argc, char **argv)
{
	MUST(argc == 3);
	a = side_open(argv[1], BYTES);
	b = side_open(argv[2], BYTES);
	MUST(channel = ibv_create_comp_channel(a.ctx));
	MUST(ca = ibv_create_cq(a.ctx, 255, NULL, channel, 0));
	MUST(cb = ibv_create_cq(b.ctx, 255, NULL, NULL, 0));
	pair_new(&a, ca, &b, cb, 64, &qa, &qb);
	writes();
	unsignalled();
	two_sided();
	reads_and_atomics();
	objects();
	events();
	CHECK(!ibv_destroy_qp(qa) && !ibv_destroy_qp(qb));
	CHECK(!ibv_destroy_cq(ca) && !ibv_destroy_cq(cb) && !ibv_destroy_comp_channel(channel));
	CHECK(!side_close(&a) && !side_close(&b));
	return done();
}
