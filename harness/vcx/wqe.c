/* SPDX-License-Identifier: Apache-2.0
 * wqe.c: the send queue: fetch, check, execute, complete.
 *
 * Layouts and opcodes: rdma-core providers/mlx5/mlx5dv.h.  Only the owner's process executes a queue, so its rings are read
 * with plain loads.
 */
#include <endian.h>
#include <string.h>
#include <time.h>

#include "cqe.h"
#include "log.h"
#include "mem.h"
#include "option.h"
#include "stats.h"
#include "wqe.h"
#include "xfer.h"

#define BB 64u	       /* send WQE basic block */
#define DS 16u	       /* unit of ds */
#define DS_MAX 64u     /* 1024 B: max_sq_desc_sz that the device reports */
#define CE_MASK 0x0c   /* fm_ce_se: bits that ask for a CQE */
#define CE_ALWAYS 0x08 /* MLX5_WQE_CTRL_CQ_UPDATE */
#define INDEX 0xffffu

uint32_t wqe_record(const struct vcx_qp *q)
{
	uint32_t v = be32toh(mem_read32(q->pid, q->rec + 4)); /* MLX5_SND_DBR */

	if (v & ~INDEX)
		vcx_violation(VIOLATION_RECORD_BYTE_ORDER, q->qpn, "record 0x%08x", v);
	return v & INDEX;
}

static const uint8_t *block(const struct vcx_qp *q, uint32_t index)
{
	return (const uint8_t *)(uintptr_t)q->sq + (size_t)(index & (q->sq_cnt - 1)) * BB;
}

static uint32_t be32_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return be32toh(v);
}

bool wqe_is_posted(const struct vcx_qp *q, uint32_t index)
{
	const uint8_t *w = block(q, index);

	return (be32_at(w) >> 8 & INDEX) == (index & INDEX) &&
	       be32_at(w + 4) >> 8 == q->qpn;
}

struct fetched {
	uint8_t bytes[DS_MAX * DS];
	uint32_t ds, blocks;
	uint8_t opcode;
	int syndrome;
};

/* Copy one WQE out of the ring (it may wrap) and check its control segment. */
static void fetch(const struct vcx_qp *q, struct fetched *f)
{
	const uint8_t *w = block(q, q->ci);
	uint32_t w0 = be32_at(w), w1 = be32_at(w + 4);
	const size_t ring = (size_t)q->sq_cnt * BB,
		     at = (size_t)(q->ci & (q->sq_cnt - 1)) * BB;

	f->opcode = (uint8_t)w0;
	f->ds = w1 & 0x3f;
	f->syndrome = 0;
	if ((w0 >> 8 & INDEX) != q->ci) {
		vcx_violation(VIOLATION_WQE_INDEX, q->qpn, "at %u it says %u", q->ci,
			      w0 >> 8 & INDEX);
		f->syndrome = SYND_QP_OP;
	} else if (w1 >> 8 != q->qpn) {
		vcx_violation(VIOLATION_WQE_QPN, q->qpn, "it says 0x%x", w1 >> 8);
		f->syndrome = SYND_QP_OP;
	} else if (!f->ds) {
		vcx_violation(VIOLATION_WQE_SIZE, q->qpn, "ds is 0");
		f->syndrome = SYND_QP_OP;
	}
	if (!f->ds)
		f->ds = 1;
	for (uint32_t i = 0; i < f->ds * DS; i += DS)
		memcpy(f->bytes + i, (const uint8_t *)(uintptr_t)q->sq + (at + i) % ring,
		       DS);
	f->blocks = (f->ds * DS + BB - 1) / BB;
}

static void complete(struct vcx_qp *q, const struct fetched *f, uint32_t bytes)
{
	struct vcx_completion c = {.cqe_opcode = CQE_REQ,
				   .wqe_opcode = f->opcode,
				   .index = (uint16_t)q->ci,
				   .bytes = bytes};

	if (f->syndrome) {
		c.cqe_opcode = CQE_REQ_ERR;
		c.syndrome = (uint8_t)f->syndrome;
	}
	if (f->syndrome || (f->bytes[11] & CE_MASK) == CE_ALWAYS)
		cqe_put(q->scq, q, &c);
}

static int injected(void)
{
	uint64_t n = vcx_counts.wqes + 1;

	if (n == vcx_option.fault[FAULT_ERROR_CQE])
		return SYND_REMOTE_OP;
	if (n == vcx_option.fault[FAULT_RETRY_EXCEEDED])
		return SYND_RETRY;
	return n == vcx_option.fault[FAULT_RNR] ? SYND_RNR : 0;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Least time between tries after "receiver not ready", IBTA table 46: code 0 is the longest. */
static uint64_t rnr_ns(uint8_t code)
{
	static const uint16_t hundredths_ms[32] = {
		65536 - 1, 1,	 2,    3,    4,	   6,	  8,	 12,	16,    24,   32,
		48,	   64,	 96,   128,  192,  256,	  384,	 512,	768,   1024, 1536,
		2048,	   3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

	return hundredths_ms[code & 31] * 10000ull;
}

/* The receiver has no receive posted.  True: try again later. */
static bool rnr_again(struct vcx_qp *q, const struct vcx_qp *peer, struct fetched *f)
{
	uint64_t now = now_ns();

	if (q->rnr_tries && now < q->rnr_until_ns)
		return true;
	if (q->rnr_retry != 7 &&
	    q->rnr_tries++ >= q->rnr_retry) { /* 7 is without end, IBTA 9.7.5.2.8 */
		f->syndrome = SYND_RNR;
		return false;
	}
	if (q->rnr_retry == 7) {
		q->rnr_tries = 1;
		q->rnr_until_ns =
			0; /* no timer: the peer may post at any moment and tests wait for it */
		return true;
	}
	q->rnr_until_ns = now + rnr_ns(peer ? peer->rnr_timer : 0);
	return true;
}

/* The responder that refused: IBTA 9.9.3.2, class C: its queue pair goes to the error state too. */
static void refuse_at_peer(struct vcx_qp *q)
{
	struct vcx_qp *peer = fabric_qp(q->dest);

	if (!peer || peer->dest != q->qpn)
		return;
	peer->state = QP_ERR;
	wqe_flush(peer);
}

static void enter_error(struct vcx_qp *q)
{
	q->state = QP_ERR;
	wqe_flush(q);
}

/* mode=sink: the doorbell's index completes everything before it; no WQE is read. */
static bool sink(struct vcx_qp *q, uint32_t pi)
{
	struct vcx_completion c = {
		.cqe_opcode = CQE_REQ, .wqe_opcode = 8, .index = (uint16_t)(pi - 1)};

	if (q->ci == pi)
		return false;
	vcx_counts.wqes += (pi - q->ci) & INDEX;
	q->ci = pi;
	cqe_put(q->scq, q, &c);
	return false;
}

bool wqe_run(struct vcx_qp *q)
{
	uint32_t pi = wqe_record(q);
	struct fetched f;

	if (((pi - q->ci) & INDEX) > q->sq_cnt) {
		vcx_violation(VIOLATION_RECORD_BEYOND_RING, q->qpn,
			      "record %u, next WQE %u, ring of %u", pi, q->ci, q->sq_cnt);
		return false;
	}
	if (vcx_option.sink)
		return sink(q, pi);
	while (q->ci != pi && q->state == QP_RTS) {
		uint32_t bytes = 0;

		fetch(q, &f);
		if (!f.syndrome)
			f.syndrome = injected();
		if (!f.syndrome)
			f.syndrome = xfer(q, f.bytes, f.ds, f.opcode, &bytes);
		if (f.syndrome == XFER_NOT_READY && rnr_again(q, fabric_qp(q->dest), &f))
			return true;
		q->rnr_tries = 0;
		vcx_counts.wqes++;
		vcx_counts.opcode[f.opcode]++;
		LOG(2, "QP 0x%x WQE %u opcode 0x%02x ds %u bytes %u syndrome 0x%02x",
		    q->qpn, q->ci, f.opcode, f.ds, bytes, f.syndrome);
		complete(q, &f, bytes);
		q->ci = (q->ci + f.blocks) & INDEX;
		if (f.syndrome == SYND_REMOTE_ACCESS || f.syndrome == SYND_REMOTE_OP)
			refuse_at_peer(q);
		if (f.syndrome)
			enter_error(q);
	}
	if (q->state == QP_ERR)
		wqe_flush(q);
	return false;
}

static void flush_sends(struct vcx_qp *q)
{
	uint32_t pi = wqe_record(q);

	while (q->ci != pi && ((pi - q->ci) & INDEX) <= q->sq_cnt) {
		const uint8_t *w = block(q, q->ci);
		struct vcx_completion c = {.cqe_opcode = CQE_REQ_ERR,
					   .wqe_opcode = w[3],
					   .syndrome = SYND_FLUSHED,
					   .index = (uint16_t)q->ci};
		uint32_t ds = be32_at(w + 4) & 0x3f;

		cqe_put(q->scq, q, &c);
		q->ci = (q->ci + (ds ? (ds * DS + BB - 1) / BB : 1)) & INDEX;
	}
}

void wqe_flush(struct vcx_qp *q)
{
	uint32_t pi = be32toh(mem_read32(q->pid, q->rec)) & INDEX; /* MLX5_RCV_DBR */

	if (q->pid == vcx_me)
		flush_sends(q);
	while (q->rq_cnt && q->rci != pi && ((pi - q->rci) & INDEX) <= q->rq_cnt) {
		struct vcx_completion c = {.cqe_opcode = CQE_RESP_ERR,
					   .syndrome = SYND_FLUSHED,
					   .index = (uint16_t)q->rci};

		cqe_put(q->rcq, q, &c);
		q->rci = (q->rci + 1) & INDEX;
	}
}
