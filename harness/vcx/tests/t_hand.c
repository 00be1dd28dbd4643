/* SPDX-License-Identifier: Apache-2.0
 * t_hand.c: work requests, doorbell records and doorbells written by hand through mlx5dv_init_obj, as a GPU does.
 *
 *	t_hand wrap|nop|straddle|burst|pinned
 *
 * Exit status 77: it cannot be tried here, the reason is printed.
 */
#include <ctype.h>
#include <dirent.h>

#include "rig.h"

#define SKIP 77
#define BYTES 65536u
#define HALF (BYTES / 2)
#define WRITES 70000u /* past the 16-bit index */
#define WINDOW 32u
#define SLOTS 1024u
#define QPS 64u
#define ROUNDS 300u

static struct end a, b;

static uint64_t payload(uint32_t i)
{
	return (i + 1) * 0x9e3779b97f4a7c15ull;
}

static void put_word(uint8_t *to, uint64_t v)
{
	memcpy(to, &v, sizeof v);
}

static uint64_t word(const uint8_t *from)
{
	uint64_t v;

	memcpy(&v, from, sizeof v);
	return v;
}

static void open_pair(void)
{
	a = rig_end(0, BYTES, 255, 64);
	b = rig_end(1, BYTES, 255, 64);
	rig_connect(a.qp, b.qp, 7);
}

static int close_pair(void)
{
	rig_end_close(&a);
	rig_end_close(&b);
	return rig_done();
}

/* ---- wrap ---- */
static size_t slot(uint32_t i)
{
	return 8 * (i % SLOTS);
}

/* Completion number i: its index, its queue pair, its opcode, its bytes at the far end. */
static bool completed(struct hand *h, uint32_t i)
{
	struct mlx5_cqe64 *e = hand_poll(h, RIG_DEADLINE_S);
	uint32_t tail = e ? be32toh(e->sop_drop_qpn) : 0;

	CHECK(e, "no CQE %u", i);
	if (!e)
		return false;
	CHECK(e->op_own >> 4 == MLX5_CQE_REQ, "CQE %u: op_own 0x%02x", i, e->op_own);
	CHECK(be16toh(e->wqe_counter) == (i & 0xffff), "CQE %u: counter %u", i,
	      be16toh(e->wqe_counter));
	CHECK(tail == ((uint32_t)MLX5_OPCODE_RDMA_WRITE << 24 | h->qpn),
	      "CQE %u: opcode and QP 0x%08x", i, tail);
	CHECK(word(b.buf + slot(i)) == payload(i), "write %u: bytes", i);
	hand_release(h);
	return !rig_failed;
}

static int wrap(void)
{
	struct hand h;
	uint32_t done = 0;

	open_pair();
	h = rig_hand(a.qp, a.cq);
	while (done < WRITES) {
		if (h.pi < WRITES && h.pi - done < WINDOW) {
			put_word(a.buf + slot(h.pi), payload(h.pi));
			hand_write(&h, &a, slot(h.pi), 8, (uintptr_t)b.buf + slot(h.pi),
				   b.mr->rkey);
			hand_ring(&h);
		} else if (!completed(&h, done++)) {
			break;
		}
	}
	CHECK(done == WRITES, "%u writes", done);
	return close_pair();
}

/* ---- NOP ---- */
static int nop(void)
{
	struct hand h;

	open_pair();
	h = rig_hand(a.qp, a.cq);
	for (uint32_t i = 0; i < 200; i++) {
		struct mlx5_cqe64 *e;

		hand_ctrl(&h, hand_block(&h, h.pi), h.pi, MLX5_OPCODE_NOP, 1);
		hand_ring(&h);
		e = hand_poll(&h, RIG_DEADLINE_S);
		CHECK(e && e->op_own >> 4 == MLX5_CQE_REQ && be16toh(e->wqe_counter) == i,
		      "NOP %u", i);
		CHECK(e && be32toh(e->sop_drop_qpn) >> 24 == MLX5_OPCODE_NOP,
		      "NOP %u: opcode", i);
		hand_release(&h);
	}
	return close_pair();
}

/* ---- a WQE of two blocks that starts in the ring's last block ---- */
static void two_blocks(struct hand *h, uint32_t n)
{
	uint8_t bytes[96], *w = hand_block(h, h->pi);
	struct mlx5_wqe_raddr_seg r = {.raddr = htobe64((uintptr_t)b.buf),
				       .rkey = htobe32(b.mr->rkey)};
	uint32_t head = htobe32(MLX5_INLINE_SEG | 60), room = 64;
	uint64_t first;

	memset(bytes, 0, sizeof bytes);
	hand_ctrl(h, bytes, h->pi, MLX5_OPCODE_RDMA_WRITE,
		  6); /* ctrl, raddr, 4 + 60 B inline */
	memcpy(bytes + 16, &r, sizeof r);
	memcpy(bytes + 32, &head, 4);
	for (uint32_t i = 0; i < 60; i++)
		bytes[36 + i] = (uint8_t)(n * 61 + i);
	memcpy(w, bytes, room);
	memcpy(hand_block(h, h->pi + 1), bytes + room, sizeof bytes - room);
	memcpy(&first, bytes, sizeof first);
	h->pi += 2;
	hand_record(h, htobe32(h->pi & 0xffff));
	hand_doorbell(h, first);
}

static int straddle(void)
{
	struct hand h;
	unsigned across = 0;

	open_pair();
	h = rig_hand(a.qp, a.cq);
	hand_ctrl(&h, hand_block(&h, 0), 0, MLX5_OPCODE_NOP, 1);
	hand_ring(&h); /* from here on two-block WQEs start at odd blocks */
	CHECK(hand_poll(&h, RIG_DEADLINE_S), "NOP");
	for (uint32_t n = 0; n < h.q.sq.wqe_cnt; n++) {
		uint32_t at = h.pi;
		struct mlx5_cqe64 *e;
		bool same = true;

		across += (at & (h.q.sq.wqe_cnt - 1)) == h.q.sq.wqe_cnt - 1;
		two_blocks(&h, n);
		e = hand_poll(&h, RIG_DEADLINE_S);
		CHECK(e && e->op_own >> 4 == MLX5_CQE_REQ &&
			      be16toh(e->wqe_counter) == at,
		      "WQE %u at %u", n, at);
		for (uint32_t i = 0; i < 60; i++)
			same &= b.buf[i] == (uint8_t)(n * 61 + i);
		CHECK(same, "bytes of WQE %u", n);
		hand_release(&h);
	}
	CHECK(across > 1, "none lies across the ring's end");
	return close_pair();
}

/* ---- many queue pairs that share doorbell pages ---- */
static struct hand hands[QPS];
static struct ibv_cq *cqs[QPS];
static struct ibv_qp *qps[QPS];

static void open_many(void)
{
	uint8_t *pages[QPS];
	unsigned distinct = 0;

	for (unsigned i = 0; i < QPS; i++) {
		MUST(cqs[i] = ibv_create_cq(a.ctx, 15, NULL, NULL, 0));
		qps[i] = rig_qp(&a, cqs[i], 16);
	}
	for (unsigned i = 0; i < QPS; i++) {
		bool fresh = true;

		if (i & 1)
			rig_connect(qps[i - 1], qps[i], 7);
		hands[i] = rig_hand(qps[i], cqs[i]);
		pages[i] = (uint8_t *)((uintptr_t)hands[i].q.bf.reg & ~4095ul);
		for (unsigned k = 0; k < i; k++)
			fresh &= pages[k] != pages[i];
		distinct += fresh;
	}
	printf("%u queue pairs ring on %u pages\n", QPS, distinct);
	CHECK(distinct < QPS, "no page is shared");
}

/* All WQEs and records first, then all doorbells without a pause: those of one register overwrite each other. */
static void ring_all(uint32_t round)
{
	uint64_t head[QPS];

	for (unsigned i = 0; i < QPS; i++) {
		struct hand *h = &hands[i];
		size_t at = 8 * i;

		put_word(a.buf + at, payload(round * QPS + i));
		memcpy(&head[i],
		       hand_write(h, &a, at, 8, (uintptr_t)a.buf + HALF + at, a.mr->rkey),
		       8);
		h->pi++;
		hand_record(h, htobe32(h->pi & 0xffff));
	}
	for (unsigned i = 0; i < QPS; i++)
		hand_doorbell(&hands[i], head[i]);
}

static int burst(void)
{
	open_pair();
	open_many();
	for (uint32_t r = 0; r < ROUNDS && !rig_failed; r++) {
		ring_all(r);
		for (unsigned i = 0; i < QPS; i++) {
			struct mlx5_cqe64 *e = hand_poll(&hands[i], RIG_DEADLINE_S);

			CHECK(e && e->op_own >> 4 == MLX5_CQE_REQ,
			      "round %u, queue pair %u of %u", r, i, QPS);
			CHECK(word(a.buf + HALF + 8 * i) == payload(r * QPS + i),
			      "round %u, bytes of %u", r, i);
			hand_release(&hands[i]);
		}
	}
	for (unsigned i = 0; i < QPS; i++)
		CHECK(!ibv_destroy_qp(qps[i]) && !ibv_destroy_cq(cqs[i]), "destroy %u",
		      i);
	return close_pair();
}

/* ---- a program that pins its thread before it opens the device ---- */
static pid_t nic_thread(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	pid_t found = 0;

	MUST(d);
	while ((e = readdir(d))) {
		char path[300], name[32] = "";
		FILE *f;

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "r");
		if (f && fgets(name, sizeof name, f) && !strcmp(name, "vcx-nic\n"))
			found = (pid_t)atoi(e->d_name);
		if (f)
			fclose(f);
	}
	closedir(d);
	return found;
}

static int pinned(void)
{
	cpu_set_t before, one, nic;
	pid_t tid = 0;

	MUST(!sched_getaffinity(0, sizeof before, &before));
	if (CPU_COUNT(&before) < 2) {
		puts("only one CPU may be used");
		return SKIP;
	}
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof one, &one)) {
		puts("CPU 0 may not be used");
		return SKIP;
	}
	open_pair();
	for (int i = 0; i < 400 && !tid;
	     i++) { /* it names itself and widens its mask itself, soon after its start */
		tid = nic_thread();
		usleep(5000);
	}
	CHECK(tid > 0, "no thread vcx-nic");
	for (int i = 0; i < 400; i++) {
		MUST(!sched_getaffinity(tid, sizeof nic, &nic));
		if (CPU_EQUAL(&nic, &before))
			break;
		usleep(5000);
	}
	CHECK(CPU_EQUAL(&nic, &before),
	      "the NIC's thread may use %d CPUs, the process %d", CPU_COUNT(&nic),
	      CPU_COUNT(&before));
	MUST(!sched_getaffinity(0, sizeof nic, &nic));
	CHECK(CPU_EQUAL(&nic, &one), "the program's own pinning was undone");
	return close_pair();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} modes[] = {{"wrap", wrap},
		     {"nop", nop},
		     {"straddle", straddle},
		     {"burst", burst},
		     {"pinned", pinned}};

	for (unsigned i = 0; argc == 2 && i < sizeof modes / sizeof *modes; i++)
		if (!strcmp(argv[1], modes[i].name))
			return modes[i].run();
	return 2;
}
