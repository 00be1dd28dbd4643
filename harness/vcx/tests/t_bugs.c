/* SPDX-License-Identifier: Apache-2.0
 * t_bugs.c: one mistake of a program that posts by hand, and what the program sees of it.
 *
 *	t_bugs MISTAKE [N]	t_bugs list names the mistakes
 *
 * Prints for each of N requests (1) "no CQE", "good CQE" or "error CQE 0xNN", and whether its bytes have arrived.
 */
#include "rig.h"

#define BYTES 8192u
#define HALF (BYTES / 2)
#define SEEN_S \
	1. /* a completion that the mistake allows comes well before, on a busy machine too */
#define LATE_US 20000
#define NOBODY 0xfffff0u

enum mistake {
	CORRECT,
	NO_DOORBELL,
	RECORD_NEVER,
	RECORD_OFF_BY_ONE,
	RECORD_LITTLE_ENDIAN,
	RECORD_AFTER_DOORBELL,
	RECORD_BEYOND_RING,
	DOORBELL_LITTLE_ENDIAN,
	DOORBELL_UNKNOWN_QP,
	DOORBELL_WRONG_PAGE,
	WRONG_INDEX,
	WRONG_QPN,
	DS_ZERO,
	DS_TOO_BIG,
	BAD_OPCODE,
	RKEY_LITTLE_ENDIAN,
	CQ_NOT_DRAINED,
	NO_CQE_ASKED,
	MISTAKES
};
static const char *const names[MISTAKES] = {
	[CORRECT] = "correct",
	[NO_DOORBELL] = "no-doorbell",
	[RECORD_NEVER] = "record-never",
	[RECORD_OFF_BY_ONE] = "record-off-by-one",
	[RECORD_LITTLE_ENDIAN] = "record-little-endian",
	[RECORD_AFTER_DOORBELL] = "record-after-doorbell",
	[RECORD_BEYOND_RING] = "record-beyond-ring",
	[DOORBELL_LITTLE_ENDIAN] = "doorbell-little-endian",
	[DOORBELL_UNKNOWN_QP] = "doorbell-unknown-qp",
	[DOORBELL_WRONG_PAGE] = "doorbell-wrong-page",
	[WRONG_INDEX] = "wrong-index",
	[WRONG_QPN] = "wrong-qpn",
	[DS_ZERO] = "ds-zero",
	[DS_TOO_BIG] = "ds-too-big",
	[BAD_OPCODE] = "bad-opcode",
	[RKEY_LITTLE_ENDIAN] = "rkey-little-endian",
	[CQ_NOT_DRAINED] = "cq-not-drained",
	[NO_CQE_ASKED] = "no-cqe-asked",
};

static struct end a, b;
static struct ibv_qp
	*decoys[8]; /* some of them ring on another page; only for doorbell-wrong-page */

/* The WQE, with the mistake if it is one of the WQE. */
static void build(const struct hand *h, enum mistake m)
{
	uint8_t *w = hand_write(h, &a, 0, 8, (uintptr_t)b.buf + HALF, b.mr->rkey);
	struct mlx5_wqe_ctrl_seg *c = (void *)w;
	uint32_t rkey = b.mr->rkey, inl = htobe32(MLX5_INLINE_SEG | 200);

	if (m == WRONG_INDEX)
		hand_ctrl(h, w, h->pi + 1, MLX5_OPCODE_RDMA_WRITE, 3);
	else if (m == WRONG_QPN)
		c->qpn_ds = htobe32((h->qpn ^ 1) << 8 | 3);
	else if (m == DS_ZERO)
		c->qpn_ds = htobe32(h->qpn << 8);
	else if (m == DS_TOO_BIG)
		memcpy(w + 32, &inl,
		       sizeof inl); /* 200 B of inline data in a WQE of 48 B */
	else if (m == BAD_OPCODE)
		hand_ctrl(h, w, h->pi, 0x2a, 3);
	else if (m == RKEY_LITTLE_ENDIAN)
		memcpy(w + 24, &rkey, sizeof rkey);
	else if (m == NO_CQE_ASKED)
		c->fm_ce_se = 0;
}

static uint32_t record(const struct hand *h, enum mistake m)
{
	uint32_t next = (h->pi + 1) & 0xffff;

	if (m == RECORD_LITTLE_ENDIAN)
		return next;
	if (m == RECORD_OFF_BY_ONE)
		return htobe32(h->pi & 0xffff);
	if (m == RECORD_BEYOND_RING)
		return htobe32((h->pi + 1 + h->q.sq.wqe_cnt) & 0xffff);
	return htobe32(next);
}

/* Ring on a page that belongs to another queue pair. */
static void ring_elsewhere(struct hand *h, uint64_t v)
{
	struct mlx5dv_qp q = {0};
	struct mlx5dv_obj o = {.qp = {.out = &q}};

	for (unsigned i = 0; i < 8; i++) {
		o.qp.in = decoys[i];
		MUST(!mlx5dv_init_obj(&o, MLX5DV_OBJ_QP));
		if ((uintptr_t)q.bf.reg >> 12 == (uintptr_t)h->q.bf.reg >> 12)
			continue;
		h->q.bf = q.bf;
		hand_doorbell(h, v);
		return;
	}
	MUST(!"all queue pairs ring on one page");
}

static void ring(struct hand *h, enum mistake m)
{
	uint64_t v;
	uint32_t nobody = htobe32(NOBODY << 8);
	struct mlx5_wqe_ctrl_seg right;

	hand_ctrl(h, (uint8_t *)&right, h->pi, MLX5_OPCODE_RDMA_WRITE, 3);
	memcpy(&v, &right,
	       sizeof v); /* a mistake in the WQE is not also one of the doorbell */
	if (m == NO_DOORBELL)
		return;
	if (m == DOORBELL_LITTLE_ENDIAN)
		v = __builtin_bswap64(v);
	if (m == DOORBELL_UNKNOWN_QP)
		memcpy((uint8_t *)&v + 4, &nobody, sizeof nobody);
	if (m == DOORBELL_WRONG_PAGE)
		ring_elsewhere(h, v);
	else
		hand_doorbell(h, v);
}

static void post(struct hand *h, enum mistake m)
{
	uint32_t rec = record(h, m);

	build(h, m);
	if (m == RECORD_AFTER_DOORBELL) {
		ring(h, m);
		usleep(LATE_US); /* longer than any nap of the NIC */
		hand_record(h, rec);
	} else {
		if (m != RECORD_NEVER)
			hand_record(h, rec);
		ring(h, m);
	}
	h->pi++;
}

/* Request i carries its number, so that bytes of an earlier one are not taken for its own. */
static uint8_t mark(unsigned i)
{
	return (uint8_t)(0x11 + i);
}

static void say(const struct mlx5_cqe64 *e, unsigned i)
{
	const char *bytes = b.buf[HALF] == mark(i) ? "written" : "not written";

	if (!e)
		printf("no CQE, %s\n", bytes);
	else if (e->op_own >> 4 == MLX5_CQE_REQ)
		printf("good CQE, %s\n", bytes);
	else
		printf("error CQE 0x%02x, %s\n",
		       ((const struct mlx5_err_cqe *)e)->syndrome, bytes);
}

/* cq-not-drained: the consumer index stays 0. */
static void commit(enum mistake m, unsigned n)
{
	struct hand h = rig_hand(a.qp, a.cq);

	MUST(h.c.cqe_cnt == 16);
	for (unsigned i = 0; i < n; i++) {
		memset(a.buf, mark(i), 8);
		post(&h, m);
		say(hand_poll(&h, SEEN_S), i);
		if (m != CQ_NOT_DRAINED)
			hand_release(&h);
	}
}

int main(int argc, char **argv)
{
	unsigned m = 0;

	if (argc < 2 || argc > 3)
		return 2;
	for (; m < MISTAKES && strcmp(argv[1], "list") && strcmp(argv[1], names[m]); m++)
		;
	if (!strcmp(argv[1], "list")) {
		for (m = 0; m < MISTAKES; m++)
			puts(names[m]);
		return 0;
	}
	if (m == MISTAKES)
		return 2;
	a = rig_end(0, BYTES, 15, 64);
	b = rig_end(1, BYTES, 15, 64); /* its queue pair rings on a page of its own */
	for (unsigned i = 0; i < 8 && m == DOORBELL_WRONG_PAGE; i++)
		decoys[i] = rig_qp(&a, a.cq, 8);
	rig_connect(a.qp, b.qp, 7);
	commit((enum mistake)m, argc > 2 ? (unsigned)atoi(argv[2]) : 1);
	for (unsigned i = 0; i < 8 && decoys[i]; i++)
		CHECK(!ibv_destroy_qp(decoys[i]), "decoy %u", i);
	rig_end_close(&a);
	rig_end_close(&b);
	return rig_failed != 0;
}
