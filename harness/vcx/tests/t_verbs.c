/* SPDX-License-Identifier: Apache-2.0
 * t_verbs.c: every operation of reliable connections through ibv_post_send and ibv_poll_cq.
 *
 *	t_verbs loopback|across		both ends on device 0, or one on device 0 and one on device 1
 *	t_verbs address|registration	loopback; only what ibv_query_qp says of the peer's address, only refused ibv_reg_mr
 */
#include <poll.h>

#include "rig.h"

#define BYTES (1u << 18)
#define HALF (BYTES / 2)
#define DEPTH 64
#define IMM 0xfeedbeefu

static struct end a, b;

static void fill(uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(seed * 31 + i * 7 + (i >> 8));
}

/* Post one request of `from` and wait for its success; the completion is left in wc. */
static bool does(const struct end *from, struct ibv_send_wr *w, enum ibv_wc_opcode want,
		 struct ibv_wc *wc)
{
	static uint64_t id = 1000;

	w->wr_id = ++id;
	CHECK(!rig_post(from->qp, w), "post of opcode %d", w->opcode);
	CHECK(rig_poll(from->cq, wc) == 1, "no completion of opcode %d", w->opcode);
	CHECK(!wc->status, "opcode %d: %s", w->opcode, ibv_wc_status_str(wc->status));
	CHECK(wc->wr_id == id && wc->opcode == want && wc->qp_num == from->qp->qp_num,
	      "wr_id %llu opcode %d QP 0x%x", (unsigned long long)wc->wr_id, wc->opcode,
	      wc->qp_num);
	return !wc->status;
}

static void one_write(uint32_t i, uint32_t len)
{
	uint32_t third = len / 3;
	struct ibv_sge s[3] = {rig_sge(&a, 0, third), rig_sge(&a, third, third),
			       rig_sge(&a, 2 * third, len - 2 * third)};
	struct ibv_send_wr w = rig_wr(IBV_WR_RDMA_WRITE, s, &b, HALF + 1);
	struct ibv_wc wc;

	fill(a.buf, len, i);
	memset(b.buf + HALF, 0xee, len + 2);
	w.num_sge = 3;
	if (!does(&a, &w, IBV_WC_RDMA_WRITE, &wc))
		return;
	CHECK(!memcmp(a.buf, b.buf + HALF + 1, len), "write of %u B", len);
	CHECK(b.buf[HALF] == 0xee && b.buf[HALF + 1 + len] == 0xee,
	      "write of %u B wrote beside", len);
}

/* Sizes wrap the send queue and the CQ several times. */
static void writes(void)
{
	for (uint32_t len = 1; len <= 200; len++)
		one_write(len, len);
	for (uint32_t i = 0; i < 400 && !rig_failed; i++)
		one_write(i, 1 + (i * 7919u) % 60000);
	one_write(7, 60000);
}

/* Segments in an order that is not that of memory, with an empty one between. */
static void gather_order(void)
{
	struct ibv_sge s[3] = {rig_sge(&a, 100, 10), rig_sge(&a, 50, 5),
			       rig_sge(&a, 0, 20)};
	struct ibv_send_wr w = rig_wr(IBV_WR_RDMA_WRITE, s, &b, HALF);
	struct ibv_wc wc;

	fill(a.buf, 256, 3);
	w.num_sge = 3;
	does(&a, &w, IBV_WC_RDMA_WRITE, &wc);
	CHECK(!memcmp(b.buf + HALF, a.buf + 100, 10) &&
		      !memcmp(b.buf + HALF + 10, a.buf + 50, 5) &&
		      !memcmp(b.buf + HALF + 15, a.buf, 20),
	      "gather order");
}

/* The buffer may change as soon as the post returns. */
static void inline_writes(void)
{
	uint8_t want[64];
	struct ibv_wc wc;

	for (uint32_t len = 1; len <= 64; len++) {
		struct ibv_sge s = rig_sge(&a, 0, len);
		struct ibv_send_wr w = rig_wr(IBV_WR_RDMA_WRITE, &s, &b, HALF);

		s.lkey = 0; /* not looked at */
		w.send_flags |= IBV_SEND_INLINE;
		fill(a.buf, len, len + 9);
		memcpy(want, a.buf, len);
		memset(b.buf + HALF, 0xee, 65);
		CHECK(!rig_post(a.qp, &w), "inline post");
		memset(a.buf, 0, len);
		CHECK(rig_poll(a.cq, &wc) == 1 && !wc.status, "inline of %u B: %s", len,
		      ibv_wc_status_str(wc.status));
		CHECK(!memcmp(want, b.buf + HALF, len) && b.buf[HALF + len] == 0xee,
		      "inline of %u B", len);
	}
}

static void unsignalled_batch(void)
{
	struct ibv_send_wr w[20];
	struct ibv_sge s[20];
	struct ibv_wc wc;

	memset(b.buf, 0, 160);
	for (unsigned i = 0; i < 20; i++) {
		s[i] = rig_sge(&a, 8 * i, 8);
		w[i] = rig_wr(IBV_WR_RDMA_WRITE, &s[i], &b, 8 * i);
		w[i].wr_id = i;
		w[i].send_flags = i == 19 ? IBV_SEND_SIGNALED : 0;
		w[i].next = i == 19 ? NULL : &w[i + 1];
	}
	fill(a.buf, 160, 5);
	CHECK(!rig_post(a.qp, w), "batch");
	CHECK(rig_poll(a.cq, &wc) == 1 && !wc.status && wc.wr_id == 19,
	      "batch: %s, wr_id %llu", ibv_wc_status_str(wc.status),
	      (unsigned long long)wc.wr_id);
	CHECK(!memcmp(a.buf, b.buf, 160), "batch: bytes");
	CHECK(!ibv_poll_cq(a.cq, 1, &wc), "one completion for the batch");
}

/* The far end's receive completion: its opcode, its length, the number of its receive. */
static void received(enum ibv_wc_opcode want, uint64_t id, uint32_t bytes, bool imm)
{
	struct ibv_wc wc;

	CHECK(rig_poll(b.cq, &wc) == 1, "no receive completion");
	CHECK(!wc.status && wc.opcode == want && wc.wr_id == id && wc.byte_len == bytes &&
		      wc.qp_num == b.qp->qp_num,
	      "%s, opcode %d, wr_id %llu, %u B", ibv_wc_status_str(wc.status), wc.opcode,
	      (unsigned long long)wc.wr_id, wc.byte_len);
	CHECK(!!(wc.wc_flags & IBV_WC_WITH_IMM) == imm &&
		      (!imm || be32toh(wc.imm_data) == IMM),
	      "immediate 0x%x", wc.imm_data);
}

static void sends(void)
{
	struct ibv_sge s = rig_sge(&a, 0, 333);
	struct ibv_send_wr w;
	struct ibv_wc wc;

	fill(a.buf, 333, 11);
	for (uint64_t id = 0; id < 40; id++) { /* wraps the receive queue of 16 */
		bool imm = id & 1;

		memset(b.buf, 0, 400);
		CHECK(!rig_receive(b.qp, &b, 0, 400, id), "post a receive");
		w = rig_wr(imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, &s, &b, 0);
		w.imm_data = htobe32(IMM);
		does(&a, &w, IBV_WC_SEND, &wc);
		received(IBV_WC_RECV, id, 333, imm);
		CHECK(!memcmp(a.buf, b.buf, 333) && !b.buf[333], "send %llu",
		      (unsigned long long)id);
	}
}

/* Both directions of one connection. */
static void send_back(void)
{
	struct ibv_sge s = rig_sge(&b, HALF, 100);
	struct ibv_send_wr w = rig_wr(IBV_WR_SEND, &s, &a, 0);
	struct ibv_wc wc;

	fill(b.buf + HALF, 100, 77);
	CHECK(!rig_receive(a.qp, &a, 0, 100, 5), "post a receive");
	does(&b, &w, IBV_WC_SEND, &wc);
	CHECK(rig_poll(a.cq, &wc) == 1 && !wc.status && wc.opcode == IBV_WC_RECV, "%s",
	      ibv_wc_status_str(wc.status));
	CHECK(!memcmp(a.buf, b.buf + HALF, 100), "bytes back");
}

static void write_imm(void)
{
	struct ibv_sge s = rig_sge(&a, 0, 100);
	struct ibv_send_wr w = rig_wr(IBV_WR_RDMA_WRITE_WITH_IMM, &s, &b, HALF);
	struct ibv_wc wc;

	fill(a.buf, 100, 21);
	memset(b.buf, 0xee, 64);
	w.imm_data = htobe32(IMM);
	CHECK(!rig_receive(b.qp, &b, 0, 64, 99), "post a receive");
	does(&a, &w, IBV_WC_RDMA_WRITE, &wc);
	received(IBV_WC_RECV_RDMA_WITH_IMM, 99, 100, true);
	CHECK(!memcmp(a.buf, b.buf + HALF, 100), "bytes of the write");
	CHECK(b.buf[0] == 0xee, "a write's bytes do not go into the receive");
}

static void reads(void)
{
	for (uint32_t len = 1; len <= 60000; len = len * 3 + 1) {
		struct ibv_sge s[2] = {rig_sge(&a, 1, len / 2),
				       rig_sge(&a, 1 + len / 2, len - len / 2)};
		struct ibv_send_wr w = rig_wr(IBV_WR_RDMA_READ, s, &b, HALF);
		struct ibv_wc wc;

		fill(b.buf + HALF, len, len);
		memset(a.buf, 0xee, len + 2);
		w.num_sge = 2;
		does(&a, &w, IBV_WC_RDMA_READ, &wc);
		CHECK(wc.byte_len == len, "%u B of %u", wc.byte_len, len);
		CHECK(!memcmp(a.buf + 1, b.buf + HALF, len) && a.buf[0] == 0xee &&
			      a.buf[len + 1] == 0xee,
		      "read of %u B", len);
	}
}

static uint64_t word(const struct end *e, size_t at)
{
	uint64_t v;

	memcpy(&v, e->buf + at, sizeof v);
	return v;
}

static void atomic(enum ibv_wr_opcode op, uint64_t x, uint64_t y, uint64_t before,
		   uint64_t after)
{
	struct ibv_sge s = rig_sge(&a, 0, 8);
	struct ibv_send_wr w = rig_wr(op, &s, &b, HALF);
	struct ibv_wc wc;

	memcpy(b.buf + HALF, &before, 8);
	w.wr.atomic.remote_addr = (uintptr_t)b.buf + HALF;
	w.wr.atomic.rkey = b.mr->rkey;
	w.wr.atomic.compare_add = x;
	w.wr.atomic.swap = y;
	does(&a, &w,
	     op == IBV_WR_ATOMIC_FETCH_AND_ADD ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP,
	     &wc);
	CHECK(word(&a, 0) == before, "returned 0x%llx", (unsigned long long)word(&a, 0));
	CHECK(word(&b, HALF) == after, "left 0x%llx", (unsigned long long)word(&b, HALF));
}

static void atomics(void)
{
	atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 5, 0, 1000, 1005);
	atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, UINT64_MAX, 0);
	atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 0x1122334455667788, 0x99aabbccddeeff00,
	       0x1122334455667788, 0x99aabbccddeeff00);
	atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 1, 2, 3, 3);
}

static bool event_within(const struct end *e, int ms)
{
	struct pollfd p = {.fd = e->channel->fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

static void events(void)
{
	struct ibv_sge s = rig_sge(&a, 0, 8);
	struct ibv_send_wr w = rig_wr(IBV_WR_RDMA_WRITE, &s, &b, 0);
	struct ibv_cq *from = NULL;
	void *context;
	struct ibv_wc wc;

	does(&a, &w, IBV_WC_RDMA_WRITE, &wc);
	CHECK(!event_within(&a, 20), "an event without an arm");
	CHECK(!ibv_req_notify_cq(a.cq, 0), "arm");
	CHECK(!event_within(&a, 20), "an event without a completion");
	CHECK(!rig_post(a.qp, &w), "post");
	CHECK(event_within(&a, 2000), "no event");
	CHECK(!ibv_get_cq_event(a.channel, &from, &context) && from == a.cq,
	      "another CQ's event");
	ibv_ack_cq_events(a.cq, 1);
	CHECK(rig_poll(a.cq, &wc) == 1 && !wc.status, "completion after the event");
	does(&a, &w, IBV_WC_RDMA_WRITE, &wc);
	CHECK(!event_within(&a, 20), "an arm gives one event");
}

/* An arm for solicited completions only: a plain send does not ring it, a solicited one does. */
static void solicited_events(void)
{
	struct ibv_sge s = rig_sge(&a, 0, 8);
	struct ibv_send_wr w = rig_wr(IBV_WR_SEND, &s, &b, 0);
	struct ibv_cq *from = NULL;
	void *context;
	struct ibv_wc wc;

	CHECK(!rig_receive(b.qp, &b, 0, 8, 1) && !rig_receive(b.qp, &b, 0, 8, 2),
	      "post receives");
	CHECK(!ibv_req_notify_cq(b.cq, 1), "arm");
	usleep(20000); /* the arm is seen before the first send */
	does(&a, &w, IBV_WC_SEND, &wc);
	CHECK(!event_within(&b, 20), "an event for a plain send");
	w.send_flags |= IBV_SEND_SOLICITED;
	does(&a, &w, IBV_WC_SEND, &wc);
	CHECK(event_within(&b, 2000), "no event");
	CHECK(!ibv_get_cq_event(b.channel, &from, &context) && from == b.cq,
	      "another CQ's event");
	ibv_ack_cq_events(b.cq, 1);
	CHECK(rig_poll(b.cq, &wc) == 1 && rig_poll(b.cq, &wc) == 1 && wc.wr_id == 2,
	      "receives");
}

static void query(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr q;

	CHECK(!ibv_query_qp(a.qp, &q,
			    RIG_RTR_MASK | RIG_RTS_MASK | IBV_QP_ACCESS_FLAGS |
				    IBV_QP_CAP,
			    &init),
	      "query");
	CHECK(q.qp_state == IBV_QPS_RTS && q.dest_qp_num == b.qp->qp_num,
	      "state %d, peer 0x%x", q.qp_state, q.dest_qp_num);
	CHECK(q.path_mtu == IBV_MTU_4096 && q.rq_psn == 0x123 && q.sq_psn == 0x456,
	      "MTU %d, PSNs 0x%x 0x%x", q.path_mtu, q.rq_psn, q.sq_psn);
	CHECK(q.timeout == 14 && q.retry_cnt == 6 && q.rnr_retry == 7 &&
		      q.min_rnr_timer == 1,
	      "timeout %d, retries %d %d, timer %d", q.timeout, q.retry_cnt, q.rnr_retry,
	      q.min_rnr_timer);
	CHECK(q.max_rd_atomic == 16 && q.max_dest_rd_atomic == 16, "rd_atomic %d %d",
	      q.max_rd_atomic, q.max_dest_rd_atomic);
	CHECK(q.qp_access_flags == RIG_ACCESS, "access 0x%x", q.qp_access_flags);
	CHECK(init.cap.max_send_wr >= DEPTH && init.cap.max_recv_wr >= 16,
	      "%u sends, %u receives", init.cap.max_send_wr, init.cap.max_recv_wr);
}

static void address(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr q;
	union ibv_gid far = rig_gid(b.ctx);

	CHECK(!ibv_query_qp(a.qp, &q, IBV_QP_AV, &init), "query");
	CHECK(q.ah_attr.is_global && !memcmp(&q.ah_attr.grh.dgid, &far, sizeof far),
	      "is_global %d, or another dgid", q.ah_attr.is_global);
	CHECK(q.ah_attr.grh.sgid_index == RIG_GID, "sgid_index %d",
	      q.ah_attr.grh.sgid_index);
	CHECK(q.ah_attr.grh.hop_limit == 64, "hop_limit %d", q.ah_attr.grh.hop_limit);
}

static void refused_states(void)
{
	union ibv_gid g = rig_gid(b.ctx);
	struct ibv_qp *q = rig_qp(&a, a.cq, 8);
	struct ibv_qp_attr half = {.qp_state = IBV_QPS_RTR, .dest_qp_num = 1};
	struct ibv_qp_attr local = {.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .ah_attr = {.port_num = 1, .dlid = 1}};
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	CHECK(rig_state(q) == IBV_QPS_RESET, "new: %d", rig_state(q));
	CHECK(rig_to_rtr(q, 1, &g), "RESET to RTR");
	CHECK(rig_to_rts(q, 7), "RESET to RTS");
	CHECK(!rig_to_init(q) && rig_state(q) == IBV_QPS_INIT, "RESET to INIT");
	CHECK(rig_to_rts(q, 7), "INIT to RTS");
	CHECK(ibv_modify_qp(q, &half, IBV_QP_STATE | IBV_QP_DEST_QPN),
	      "RTR without an address");
	CHECK(ibv_modify_qp(q, &local, RIG_RTR_MASK), "RTR without a GID on Ethernet");
	CHECK(rig_state(q) == IBV_QPS_INIT, "a refusal changes nothing: %d",
	      rig_state(q));
	CHECK(!rig_to_rtr(q, 1, &g), "INIT to RTR");
	CHECK(rig_to_init(q), "RTR to INIT");
	CHECK(!rig_to_rts(q, 7), "RTR to RTS");
	CHECK(!ibv_modify_qp(q, &reset, IBV_QP_STATE) && rig_state(q) == IBV_QPS_RESET,
	      "RTS to RESET");
	CHECK(!ibv_destroy_qp(q), "destroy");
}

static void refused_busy(void)
{
	struct ibv_sge s = rig_sge(&a, 0, 8);
	struct ibv_send_wr w = rig_wr(IBV_WR_RDMA_WRITE, &s, &b, 0);
	struct ibv_wc wc;

	CHECK(ibv_dealloc_pd(a.pd) == EBUSY, "a PD with an MR and a QP");
	CHECK(ibv_destroy_cq(a.cq) == EBUSY, "a CQ with a QP");
	does(&a, &w, IBV_WC_RDMA_WRITE, &wc); /* they still live */
}

static void second_registration(void)
{
	struct ibv_mr *m = ibv_reg_mr(a.pd, a.buf, 4096, IBV_ACCESS_LOCAL_WRITE);

	CHECK(m && m->lkey != a.mr->lkey, "a second registration has its own key");
	CHECK(m && !ibv_dereg_mr(m), "dereg");
}

/* Who may write from afar may write at home: the kernel's ib_check_mr_access. */
static void refused_registrations(void)
{
	static const int flags[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC};

	for (unsigned i = 0; i < 2; i++) {
		struct ibv_mr *m = ibv_reg_mr(a.pd, a.buf, 4096, flags[i]);

		CHECK(!m, "access 0x%x", flags[i]);
		if (m)
			ibv_dereg_mr(m);
	}
}

static void all(void)
{
	writes();
	gather_order();
	inline_writes();
	unsignalled_batch();
	sends();
	send_back();
	write_imm();
	reads();
	atomics();
	events();
	solicited_events();
	query();
	refused_states();
	refused_busy();
	second_registration();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		unsigned far;
		void (*run)(void);
	} modes[] = {{"loopback", 0, all},
		     {"across", 1, all},
		     {"address", 0, address},
		     {"registration", 0, refused_registrations}};

	for (unsigned i = 0; argc == 2 && i < sizeof modes / sizeof *modes; i++) {
		if (strcmp(argv[1], modes[i].name))
			continue;
		a = rig_end(0, BYTES, 255, DEPTH);
		b = rig_end(modes[i].far, BYTES, 255, DEPTH);
		rig_connect(a.qp, b.qp, 7);
		modes[i].run();
		rig_end_close(&a);
		rig_end_close(&b);
		return rig_done();
	}
	return 2;
}
