/* SPDX-License-Identifier: Apache-2.0
 * t_errors.c: what the device refuses, and with which status; what is behind a failed request is flushed.
 *
 *	t_errors CASE		t_errors list names the cases
 */
#include <dlfcn.h>

#include "rig.h"

#define BYTES 65536u
#define HALF (BYTES / 2)
#define NOBODY 0xfffff0u /* a queue pair number that is not given out */

static struct end a, b;

static void expect(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status want)
{
	struct ibv_wc wc;

	CHECK(rig_poll(cq, &wc) == 1, "no completion %llu", (unsigned long long)id);
	CHECK(wc.status == want, "%s instead of %s", ibv_wc_status_str(wc.status),
	      ibv_wc_status_str(want));
	CHECK(wc.wr_id == id, "wr_id %llu instead of %llu", (unsigned long long)wc.wr_id,
	      (unsigned long long)id);
}

static void no_more(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	usleep(2000);
	CHECK(!ibv_poll_cq(cq, 1, &wc), "one more completion: %s",
	      ibv_wc_status_str(wc.status));
}

/* Post a good request, then w, then two more; w fails, what follows is flushed, and so is what is posted later. */
static void fails(struct ibv_send_wr *w, enum ibv_wc_status want)
{
	struct ibv_sge s = rig_sge(&a, 0, 8);
	struct ibv_send_wr first = rig_wr(IBV_WR_RDMA_WRITE, &s, &b, 0), quiet = first,
			   last = first;

	first.wr_id = 1;
	first.next = w;
	w->wr_id = 2;
	w->next = &quiet;
	quiet.wr_id = 3;
	quiet.send_flags = 0; /* flushed ones complete whether signalled or not */
	quiet.next = &last;
	last.wr_id = 4;
	CHECK(!rig_post(a.qp, &first), "post");
	expect(a.cq, 1, IBV_WC_SUCCESS);
	expect(a.cq, 2, want);
	expect(a.cq, 3, IBV_WC_WR_FLUSH_ERR);
	expect(a.cq, 4, IBV_WC_WR_FLUSH_ERR);
	CHECK(rig_state(a.qp) == IBV_QPS_ERR, "state %d", rig_state(a.qp));
	last.wr_id = 5;
	CHECK(!rig_post(a.qp, &last), "post in ERR");
	expect(a.cq, 5, IBV_WC_WR_FLUSH_ERR);
	no_more(a.cq);
}

static void untouched(size_t at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (b.buf[at + i]) {
			CHECK(0, "a refused request wrote at %zu", at + i);
			return;
		}
}

static void write_to(uint32_t lkey, uint32_t rkey, uint64_t raddr, uint32_t len,
		     enum ibv_wc_status want)
{
	struct ibv_sge s = {.addr = (uintptr_t)a.buf, .length = len, .lkey = lkey};
	struct ibv_send_wr w = rig_wr(IBV_WR_RDMA_WRITE, &s, &b, HALF);

	w.wr.rdma.remote_addr = raddr;
	w.wr.rdma.rkey = rkey;
	fails(&w, want);
	untouched(HALF, HALF);
}

static void connected(void)
{
	rig_connect(a.qp, b.qp, 7);
	memset(a.buf, 0x77, BYTES);
	memset(b.buf, 0, BYTES);
}

static void rkey(void)
{
	connected();
	write_to(a.mr->lkey, b.mr->rkey ^ 1, (uintptr_t)b.buf + HALF, 8,
		 IBV_WC_REM_ACCESS_ERR);
}

static void lkey(void)
{
	connected();
	write_to(a.mr->lkey ^ 1, b.mr->rkey, (uintptr_t)b.buf + HALF, 8,
		 IBV_WC_LOC_PROT_ERR);
}

/* A write with a key of another protection domain of the same device, for the same memory: at home, or afar. */
static void other_domain(struct end *e, bool home, enum ibv_wc_status want)
{
	struct ibv_pd *pd = ibv_alloc_pd(e->ctx);
	struct ibv_mr *m = pd ? ibv_reg_mr(pd, e->buf, BYTES, RIG_ACCESS) : NULL;

	MUST(m);
	connected();
	write_to(home ? m->lkey : a.mr->lkey, home ? b.mr->rkey : m->rkey,
		 (uintptr_t)b.buf + HALF, 8, want);
	CHECK(!ibv_dereg_mr(m) && !ibv_dealloc_pd(pd), "teardown");
}

static void lkey_domain(void)
{
	other_domain(&a, true, IBV_WC_LOC_PROT_ERR);
}

static void rkey_domain(void)
{
	other_domain(&b, false, IBV_WC_REM_ACCESS_ERR);
}

static void range(void)
{
	connected();
	write_to(a.mr->lkey, b.mr->rkey, (uintptr_t)b.buf + BYTES - 7, 8,
		 IBV_WC_REM_ACCESS_ERR);
}

static void before(void)
{
	connected();
	write_to(a.mr->lkey, b.mr->rkey, (uintptr_t)b.buf - 1, 8, IBV_WC_REM_ACCESS_ERR);
}

static void deregistered(void)
{
	struct ibv_mr *m = ibv_reg_mr(b.pd, b.buf, BYTES, RIG_ACCESS);
	uint32_t key;

	connected();
	MUST(m);
	key = m->rkey;
	MUST(!ibv_dereg_mr(m));
	write_to(a.mr->lkey, key, (uintptr_t)b.buf + HALF, 8, IBV_WC_REM_ACCESS_ERR);
}

/* `op` towards a region that grants only `access`. */
static void region_grants(int access, enum ibv_wr_opcode op)
{
	struct ibv_mr *m = ibv_reg_mr(b.pd, b.buf, BYTES, access);
	struct ibv_sge s = rig_sge(&a, 0, 8);
	struct ibv_send_wr w = rig_wr(op, &s, &b, HALF);

	connected();
	MUST(m);
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		w.wr.atomic.remote_addr = (uintptr_t)b.buf + HALF;
		w.wr.atomic.compare_add = 1;
		w.wr.atomic.rkey = m->rkey;
	} else {
		w.wr.rdma.rkey = m->rkey;
	}
	fails(&w, IBV_WC_REM_ACCESS_ERR);
	untouched(HALF, HALF);
	CHECK(!ibv_dereg_mr(m), "dereg");
}

static void no_write(void)
{
	region_grants(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			      IBV_ACCESS_REMOTE_ATOMIC,
		      IBV_WR_RDMA_WRITE);
}

static void no_read(void)
{
	region_grants(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ);
}

static void no_atomic(void)
{
	region_grants(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			      IBV_ACCESS_REMOTE_READ,
		      IBV_WR_ATOMIC_FETCH_AND_ADD);
}

/* The region grants it, the peer's queue pair does not. */
static void qp_grants_nothing(void)
{
	struct ibv_qp_attr none = {.qp_access_flags = 0};
	struct ibv_sge s = rig_sge(&a, 0, 8);
	struct ibv_send_wr w = rig_wr(IBV_WR_RDMA_WRITE, &s, &b, HALF);
	struct ibv_wc wc;

	connected();
	CHECK(!rig_post(a.qp, &w) && rig_poll(a.cq, &wc) == 1 && !wc.status,
	      "a good one first");
	memset(b.buf, 0, BYTES);
	MUST(!ibv_modify_qp(b.qp, &none, IBV_QP_ACCESS_FLAGS));
	w.wr_id = 9;
	CHECK(!rig_post(a.qp, &w), "post");
	expect(a.cq, 9, IBV_WC_REM_ACCESS_ERR);
	untouched(HALF, HALF);
}

/* A read puts its bytes where this side may not write. */
static void read_only_home(void)
{
	struct ibv_mr *m = ibv_reg_mr(a.pd, a.buf, BYTES, IBV_ACCESS_REMOTE_READ);
	struct ibv_sge s = {.addr = (uintptr_t)a.buf, .length = 8};
	struct ibv_send_wr w = rig_wr(IBV_WR_RDMA_READ, &s, &b, HALF);

	connected();
	MUST(m);
	s.lkey = m->lkey;
	fails(&w, IBV_WC_LOC_PROT_ERR);
	CHECK(a.buf[0] == 0x77, "the read wrote");
	CHECK(!ibv_dereg_mr(m), "dereg");
}

static void odd_atomic(void)
{
	struct ibv_sge s = rig_sge(&a, 0, 8);
	struct ibv_send_wr w = rig_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, &s, &b, 0);

	connected();
	w.wr.atomic.remote_addr = (uintptr_t)b.buf + HALF + 4;
	w.wr.atomic.compare_add = 1;
	w.wr.atomic.rkey = b.mr->rkey;
	fails(&w, IBV_WC_REM_INV_REQ_ERR);
	untouched(HALF, HALF);
}

/* ---- peers ---- */
static void alone(uint32_t qpn, const union ibv_gid *dgid)
{
	struct ibv_sge s = rig_sge(&a, 0, 8);
	struct ibv_send_wr w = rig_wr(IBV_WR_RDMA_WRITE, &s, &b, HALF), second;

	MUST(!rig_to_init(a.qp) && !rig_to_rtr(a.qp, qpn, dgid) && !rig_to_rts(a.qp, 7));
	memset(b.buf, 0, BYTES);
	memset(a.buf, 0x77, BYTES);
	w.wr_id = 1;
	second = w;
	second.wr_id = 2;
	w.next = &second;
	CHECK(!rig_post(a.qp, &w), "post");
	expect(a.cq, 1, IBV_WC_RETRY_EXC_ERR);
	expect(a.cq, 2, IBV_WC_WR_FLUSH_ERR);
	CHECK(rig_state(a.qp) == IBV_QPS_ERR, "state %d", rig_state(a.qp));
	untouched(0, BYTES);
}

static void peer_absent(void)
{
	union ibv_gid g = rig_gid(b.ctx);

	alone(NOBODY, &g);
}

/* The peer's queue pair exists but has never been connected. */
static void peer_reset(void)
{
	union ibv_gid g = rig_gid(b.ctx);

	alone(b.qp->qp_num, &g);
}

/* The peer is connected, but this side was told another address. */
static void peer_elsewhere(void)
{
	union ibv_gid own = rig_gid(a.ctx), other = rig_gid(b.ctx);

	other.raw[15] ^= 0x40;
	MUST(!rig_to_init(b.qp) && !rig_to_rtr(b.qp, a.qp->qp_num, &own) &&
	     !rig_to_rts(b.qp, 7));
	alone(b.qp->qp_num, &other);
}

/* The peer is connected to somebody else. */
static void peer_of_another(void)
{
	union ibv_gid own = rig_gid(a.ctx), g = rig_gid(b.ctx);

	MUST(!rig_to_init(b.qp) && !rig_to_rtr(b.qp, NOBODY, &own) &&
	     !rig_to_rts(b.qp, 7));
	alone(b.qp->qp_num, &g);
}

static void peer_failed(void)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	struct ibv_sge s = rig_sge(&a, 0, 8);
	struct ibv_send_wr w = rig_wr(IBV_WR_RDMA_WRITE, &s, &b, HALF);

	connected();
	MUST(!ibv_modify_qp(b.qp, &err, IBV_QP_STATE));
	w.wr_id = 3;
	CHECK(!rig_post(a.qp, &w), "post");
	expect(a.cq, 3, IBV_WC_RETRY_EXC_ERR);
	untouched(0, BYTES);
}

/* ---- receives ---- */
static void rnr(void)
{
	struct ibv_sge s = rig_sge(&a, 0, 8);
	struct ibv_send_wr w = rig_wr(IBV_WR_SEND, &s, &b, 0);

	rig_connect(a.qp, b.qp, 1);
	fails(&w, IBV_WC_RNR_RETRY_EXC_ERR);
}

/* rnr_retry 7 waits for a receive that comes late. */
static void rnr_patience(void)
{
	struct ibv_sge s = rig_sge(&a, 0, 8);
	struct ibv_send_wr w = rig_wr(IBV_WR_SEND, &s, &b, 0);

	connected();
	w.wr_id = 1;
	CHECK(!rig_post(a.qp, &w), "post");
	usleep(50000);
	no_more(a.cq);
	CHECK(!rig_receive(b.qp, &b, 0, 8, 6), "post a receive");
	expect(a.cq, 1, IBV_WC_SUCCESS);
	expect(b.cq, 6, IBV_WC_SUCCESS);
	CHECK(b.buf[0] == 0x77, "bytes");
}

static void short_receive(void)
{
	struct ibv_sge s = rig_sge(&a, 0, 100);
	struct ibv_send_wr w = rig_wr(IBV_WR_SEND, &s, &b, 0);

	connected();
	CHECK(!rig_receive(b.qp, &b, 0, 99, 6), "post a receive");
	fails(&w, IBV_WC_REM_INV_REQ_ERR);
	expect(b.cq, 6, IBV_WC_LOC_LEN_ERR);
	CHECK(!b.buf[99], "bytes past the receive");
	CHECK(rig_state(b.qp) == IBV_QPS_ERR, "receiver's state %d", rig_state(b.qp));
}

/* On the way to ERR every posted receive is flushed, in order. */
static void flushed_receives(void)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};

	connected();
	for (uint64_t id = 0; id < 5; id++)
		CHECK(!rig_receive(b.qp, &b, 0, 8, id), "post a receive");
	CHECK(!ibv_modify_qp(b.qp, &err, IBV_QP_STATE), "to ERR");
	for (uint64_t id = 0; id < 5; id++)
		expect(b.cq, id, IBV_WC_WR_FLUSH_ERR);
	no_more(b.cq);
}

/* ---- by hand ---- */
static void opcode(void)
{
	struct hand h;
	struct mlx5_err_cqe *e;

	connected();
	h = rig_hand(a.qp, a.cq);
	hand_ctrl(&h, hand_write(&h, &a, 0, 8, (uintptr_t)b.buf + HALF, b.mr->rkey), h.pi,
		  0x2a, 3);
	hand_ring(&h);
	e = (void *)hand_poll(&h, RIG_DEADLINE_S);
	CHECK(e && e->op_own >> 4 == MLX5_CQE_REQ_ERR, "no error CQE");
	CHECK(e && e->syndrome == MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, "syndrome 0x%02x",
	      e ? e->syndrome : 0);
	CHECK(e && be32toh(e->s_wqe_opcode_qpn) == (0x2au << 24 | h.qpn),
	      "opcode and QP 0x%08x", e ? be32toh(e->s_wqe_opcode_qpn) : 0);
	CHECK(rig_state(a.qp) == IBV_QPS_ERR, "state %d", rig_state(a.qp));
	untouched(HALF, HALF);
}

/* How often the statistics count `name`. */
static unsigned long counted(const char *name)
{
	int (*stats)(char *, size_t) =
		(int (*)(char *, size_t))dlsym(RTLD_DEFAULT, "vcx_stats");
	char text[32768], key[64];
	const char *p;

	MUST(stats);
	CHECK(stats(NULL, 0) == stats(text, sizeof text),
	      "the length does not depend on the room");
	snprintf(key, sizeof key, "\"%s\": ", name);
	p = strstr(text, key);
	CHECK(p, "%s is not in the statistics", name);
	return p ? strtoul(p + strlen(key), NULL, 10) : 0;
}

static void overrun(void)
{
	struct ibv_cq *cq = ibv_create_cq(a.ctx, 15, NULL, NULL, 0);
	struct ibv_qp *q;
	struct hand h;

	MUST(cq);
	q = rig_qp(&a, cq, 64);
	rig_connect(q, b.qp, 7);
	h = rig_hand(q, cq);
	MUST(h.c.cqe_cnt == 16);
	for (unsigned i = 0; i < 16; i++) {
		hand_write(&h, &a, 0, 8, (uintptr_t)b.buf, b.mr->rkey);
		hand_ring(&h);
		CHECK(hand_poll(&h, RIG_DEADLINE_S), "CQE %u",
		      i); /* seen, never released */
	}
	CHECK(!counted("cq-overrun"), "a full CQ is not yet overrun");
	hand_write(&h, &a, 0, 8, (uintptr_t)b.buf, b.mr->rkey);
	hand_ring(&h);
	for (int i = 0; i < 400 && !counted("cq-overrun"); i++)
		usleep(5000);
	CHECK(!hand_poll(&h, 0), "a CQE in a full CQ");
	CHECK(counted("cq-overrun") == 1, "counted %lu", counted("cq-overrun"));
	CHECK(!ibv_destroy_qp(q) && !ibv_destroy_cq(cq), "destroy");
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"rkey", rkey},
	{"lkey", lkey},
	{"lkey-domain", lkey_domain},
	{"rkey-domain", rkey_domain},
	{"range", range},
	{"before", before},
	{"deregistered", deregistered},
	{"no-write", no_write},
	{"no-read", no_read},
	{"no-atomic", no_atomic},
	{"qp-grants-nothing", qp_grants_nothing},
	{"read-only-home", read_only_home},
	{"odd-atomic", odd_atomic},
	{"peer-absent", peer_absent},
	{"peer-reset", peer_reset},
	{"peer-elsewhere", peer_elsewhere},
	{"peer-of-another", peer_of_another},
	{"peer-failed", peer_failed},
	{"rnr", rnr},
	{"rnr-patience", rnr_patience},
	{"short-receive", short_receive},
	{"flushed-receives", flushed_receives},
	{"opcode", opcode},
	{"overrun", overrun},
};

int main(int argc, char **argv)
{
	for (unsigned i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++) {
		if (!strcmp(argv[1], "list")) {
			puts(cases[i].name);
			continue;
		}
		if (strcmp(argv[1], cases[i].name))
			continue;
		a = rig_end(0, BYTES, 255, 64);
		b = rig_end(1, BYTES, 255, 64);
		cases[i].run();
		rig_end_close(&a);
		rig_end_close(&b);
		return rig_done();
	}
	return argc == 2 && !strcmp(argv[1], "list") ? 0 : 2;
}
