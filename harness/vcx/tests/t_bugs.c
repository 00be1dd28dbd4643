/* SPDX-License-Identifier: Apache-2.0
 * t_bugs.c: one planted mistake of GPU-initiated posting a run; prints what the program sees.
 * usage: t_bugs MISTAKE
 */
#include "rig.h"

#define BYTES 8192u
#define WAIT_S 0.3

struct post {
	struct hand *h;
	struct side *a, *b;
	uint8_t *w; /* the WQE that was built rightly */
	struct mlx5_wqe_ctrl_seg *ctrl;
	uint64_t bell; /* what the doorbell will carry */
	uint32_t record;
};

static void ring_as_it_is(struct post *p)
{
	hand_record(p->h, p->record);
	hand_doorbell(p->h, p->bell);
}

static void control(struct post *p, uint32_t index, uint8_t opcode, uint32_t qpn, uint8_t ds)
{
	mlx5dv_set_ctrl_seg(p->ctrl, (uint16_t)index, opcode, 0, qpn, MLX5_WQE_CTRL_CQ_UPDATE, ds, 0, 0);
	memcpy(&p->bell, p->ctrl, 8);
}

static void correct(struct post *p) { ring_as_it_is(p); }
static void no_doorbell(struct post *p) { hand_record(p->h, p->record); }
static void record_never(struct post *p) { hand_doorbell(p->h, p->bell); }
static void record_off_by_one(struct post *p)
{
	p->record = htobe32(0);
	ring_as_it_is(p);
}
static void record_little_endian(struct post *p)
{
	p->record = 1;
	ring_as_it_is(p);
}
static void record_after_doorbell(struct post *p)
{
	hand_doorbell(p->h, p->bell);
	usleep(20000);
	hand_record(p->h, p->record);
}
static void record_beyond_ring(struct post *p)
{
	p->record = htobe32(0x7fff);
	ring_as_it_is(p);
}
static void doorbell_little_endian(struct post *p)
{
	p->bell = __builtin_bswap64(p->bell);
	ring_as_it_is(p);
}
static void doorbell_unknown_qp(struct post *p)
{
	p->bell = htobe64((uint64_t)be32toh(*(uint32_t *)p->ctrl) << 32 | 0x12345u << 8 | 3);
	ring_as_it_is(p);
}
static void wrong_index(struct post *p)
{
	control(p, 1, MLX5_OPCODE_RDMA_WRITE, p->h->qpn, 3);
	ring_as_it_is(p);
}
static void wrong_qpn(struct post *p)
{
	uint64_t right = p->bell;

	control(p, 0, MLX5_OPCODE_RDMA_WRITE, p->h->qpn + 1, 3);
	p->bell = right;
	ring_as_it_is(p);
}
static void ds_zero(struct post *p)
{
	control(p, 0, MLX5_OPCODE_RDMA_WRITE, p->h->qpn, 0);
	ring_as_it_is(p);
}
static void inline_past_wqe(struct post *p)
{
	*(uint32_t *)(p->w + 32) = htobe32(MLX5_INLINE_SEG | 100); /* ds says 3: room for 12 */
	ring_as_it_is(p);
}
static void bad_opcode(struct post *p)
{
	control(p, 0, 0x2a, p->h->qpn, 3);
	ring_as_it_is(p);
}
static void rkey_little_endian(struct post *p)
{
	((struct mlx5_wqe_raddr_seg *)(p->w + 16))->rkey = p->b->mr->rkey;
	ring_as_it_is(p);
}
/* Twenty puts into a CQ of 16 whose consumer index stays where it is. */
static void cq_not_drained(struct post *p)
{
	for (int i = 0; i < 20; i++) {
		hand_write(p->h, p->a, 0, p->b, 4096, 8);
		hand_ring(p->h);
		usleep(2000);
	}
}

static const struct {
	const char *name;
	void (*commit)(struct post *);
} mistakes[] = {
	{ "correct", correct },
	{ "no-doorbell", no_doorbell },
	{ "record-never", record_never },
	{ "record-off-by-one", record_off_by_one },
	{ "record-little-endian", record_little_endian },
	{ "record-after-doorbell", record_after_doorbell },
	{ "record-beyond-ring", record_beyond_ring },
	{ "doorbell-little-endian", doorbell_little_endian },
	{ "doorbell-unknown-qp", doorbell_unknown_qp },
	{ "wrong-index", wrong_index },
	{ "wrong-qpn", wrong_qpn },
	{ "ds-zero", ds_zero },
	{ "inline-past-wqe", inline_past_wqe },
	{ "bad-opcode", bad_opcode },
	{ "rkey-little-endian", rkey_little_endian },
	{ "cq-not-drained", cq_not_drained },
};

int main(int argc, char **argv)
{
	struct side a = side_open("mlx5_0", BYTES), b = side_open("mlx5_1", BYTES);
	struct ibv_cq *cq = ibv_create_cq(a.ctx, 15, NULL, NULL, 0), *other = ibv_create_cq(b.ctx, 15, NULL, NULL, 0);
	struct ibv_qp *qa, *qb;
	struct mlx5_cqe64 *e;
	struct hand h;
	struct post p = { &h, &a, &b, NULL, NULL, 0, htobe32(1) };
	unsigned i = 0;
	int seen;

	MUST(argc == 2 && cq && other);
	pair_new(&a, cq, &b, other, 64, &qa, &qb);
	hand_open(&h, qa, cq);
	hand_write(&h, &a, 0, &b, 4096, 8);
	p.w = hand_wqe(&h);
	p.ctrl = (void *)p.w;
	memcpy(&p.bell, p.w, 8);
	while (i < sizeof mistakes / sizeof *mistakes && strcmp(mistakes[i].name, argv[1]))
		i++;
	MUST(i < sizeof mistakes / sizeof *mistakes);
	mistakes[i].commit(&p);
	seen = hand_poll(&h, WAIT_S, &e);
	if (seen == MLX5_CQE_REQ_ERR)
		printf("error CQE 0x%02x\n", ((struct mlx5_err_cqe *)e)->syndrome);
	else
		puts(seen < 0 ? "no CQE" : "good CQE");
	return 0;
}
