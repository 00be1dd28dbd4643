/* SPDX-License-Identifier: Apache-2.0
 * wqe.c: the send ring: record, entries, flushing.
 *
 * Layouts and opcodes: rdma-core providers/mlx5/mlx5dv.h.  Only the owner's process executes a queue, so its rings are read
 * with plain loads.
 */
#include <endian.h>
#include <string.h>

#include "cqe.h"
#include "mem.h"
#include "stats.h"
#include "wqe.h"

uint32_t wqe_record(const struct vcx_qp *q)
{
	uint32_t v = be32toh(mem_read32(q->pid, q->rec + 4)); /* MLX5_SND_DBR */

	if (v & ~WQE_INDEX)
		vcx_violation(VIOLATION_RECORD_BYTE_ORDER, q->qpn, "record 0x%08x", v);
	return v & WQE_INDEX;
}

static const uint8_t *block(const struct vcx_qp *q, uint32_t index)
{
	return (const uint8_t *)(uintptr_t)q->sq +
	       (size_t)(index & (q->sq_cnt - 1)) * WQE_BB;
}

bool wqe_is_posted(const struct vcx_qp *q, uint32_t index)
{
	const uint8_t *w = block(q, index);

	return (be32_at(w) >> 8 & WQE_INDEX) == (index & WQE_INDEX) &&
	       be32_at(w + 4) >> 8 == q->qpn;
}

/* The entry may wrap in the ring. */
static void sample(const struct vcx_qp *q, struct op *o)
{
	const size_t ring = (size_t)q->sq_cnt * WQE_BB,
		     at = (size_t)(q->ci & (q->sq_cnt - 1)) * WQE_BB;

	for (uint32_t i = 0; i < o->ds * WQE_DS; i += WQE_DS)
		memcpy(o->w + i, (const uint8_t *)(uintptr_t)q->sq + (at + i) % ring,
		       WQE_DS);
}

void wqe_fetch(struct vcx_qp *q, struct op *o)
{
	const uint8_t *w = o->bf ? o->w : block(q, q->ci);
	uint32_t w0 = be32_at(w), w1 = be32_at(w + 4);

	o->opcode = (uint8_t)w0;
	o->ds = w1 & 0x3f;
	o->syndrome = 0;
	if ((w0 >> 8 & WQE_INDEX) != q->ci) {
		vcx_violation(VIOLATION_WQE_INDEX, q->qpn, "at %u it says %u", q->ci,
			      w0 >> 8 & WQE_INDEX);
		o->syndrome = SYND_QP_OP;
	} else if (w1 >> 8 != q->qpn) {
		vcx_violation(VIOLATION_WQE_QPN, q->qpn, "it says 0x%x", w1 >> 8);
		o->syndrome = SYND_QP_OP;
	} else if (!o->ds) {
		vcx_violation(VIOLATION_WQE_SIZE, q->qpn, "ds is 0");
		o->syndrome = SYND_QP_OP;
	}
	if (!o->ds)
		o->ds = 1;
	if (!o->bf)
		sample(q, o);
	o->blocks = (o->ds * WQE_DS + WQE_BB - 1) / WQE_BB;
}

void wqe_sink(struct vcx_qp *q, uint32_t pi)
{
	struct vcx_completion c = {.cqe_opcode = CQE_REQ,
				   .wqe_opcode = OP_WRITE,
				   .index = (uint16_t)(pi - 1)};

	if (q->ci == pi)
		return;
	vcx_counts.wqes += (pi - q->ci) & WQE_INDEX;
	q->ci = pi;
	cqe_put(q->scq, q, &c);
}

static void flush_sends(struct vcx_qp *q)
{
	uint32_t pi = wqe_record(q);

	while (q->ci != pi && ((pi - q->ci) & WQE_INDEX) <= q->sq_cnt) {
		const uint8_t *w = block(q, q->ci);
		struct vcx_completion c = {.cqe_opcode = CQE_REQ_ERR,
					   .wqe_opcode = w[3],
					   .syndrome = SYND_FLUSHED,
					   .index = (uint16_t)q->ci};
		uint32_t ds = be32_at(w + 4) & 0x3f;

		cqe_put(q->scq, q, &c);
		q->ci = (q->ci + (ds ? (ds * WQE_DS + WQE_BB - 1) / WQE_BB : 1)) &
			WQE_INDEX;
	}
}

void wqe_flush(struct vcx_qp *q)
{
	uint32_t pi = be32toh(mem_read32(q->pid, q->rec)) & WQE_INDEX; /* MLX5_RCV_DBR */

	/* What is on its way ends first. */
	if (q->pid == vcx_me && !q->inflight && !q->pending[STAGE_EXEC])
		flush_sends(q);
	while (q->rq_cnt && q->rci != pi && ((pi - q->rci) & WQE_INDEX) <= q->rq_cnt) {
		struct vcx_completion c = {.cqe_opcode = CQE_RESP_ERR,
					   .syndrome = SYND_FLUSHED,
					   .index = (uint16_t)q->rci};

		cqe_put(q->rcq, q, &c);
		q->rci = (q->rci + 1) & WQE_INDEX;
	}
}
