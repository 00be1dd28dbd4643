/* SPDX-License-Identifier: Apache-2.0
 * op.c: the stages of a work request.
 *
 *   exec -> wqe -> payload -> arrive -+-> visible -> received      (the responder's memory, then its CQE)
 *                                     +-> [respond] -> ack -> cqe  (the requester)
 *
 * The WQE is sampled when its turn comes and the payload when the WQE is at hand: a delay of a fetch comes after the look.
 */
#include <stdlib.h>
#include <string.h>

#include "cqe.h"
#include "event.h"
#include "log.h"
#include "nic.h"
#include "option.h"
#include "stamp.h"
#include "stats.h"
#include "wqe.h"
#include "xfer.h"

#define NO_HOP (-1)

static struct op *flying, *idle;
static uint64_t next_seq = 1;

static bool delays(void)
{
	return atomic_load_explicit(&fab->control.delays, memory_order_relaxed);
}

static uint64_t delay(int hop)
{
	if (hop == NO_HOP || !delays())
		return 0;
	return event_ticks(fab->control.delay_ns[hop] + fab->control.extra_ns[hop]);
}

static void moment(struct op *o, enum op_moment m)
{
	if (stamp_on())
		o->t[m] = event_now();
}

static struct op *op_new(struct vcx_qp *q)
{
	struct op *o = idle;

	if (o)
		idle = o->next;
	else
		o = malloc(sizeof *o);
	if (!o)
		return NULL;
	o->q = q;
	o->seq = next_seq++;
	o->syndrome = 0;
	o->bf = o->has_receive = o->across = o->gathers = false;
	o->total = o->segs = 0;
	o->refs = 1;
	o->bytes = 0;
	o->data = NULL;
	o->peer = NULL;
	o->stamp = o->far_stamp = 0;
	memset(o->t, 0, sizeof o->t);
	o->prev = NULL;
	o->next = flying;
	if (flying)
		flying->prev = o;
	flying = o;
	return o;
}

static void unref(struct op *o)
{
	if (--o->refs)
		return;
	if (o->q && stamp_on())
		stamp_keep(o);
	free(o->data);
	if (o->next)
		o->next->prev = o->prev;
	*(o->prev ? &o->prev->next : &flying) = o->next;
	o->next = idle;
	idle = o;
}

/* ---- from stage to stage ---- */
static void stage_exec(struct op *o);
static void stage_wqe(struct op *o);
static void stage_payload(struct op *o);
static void stage_arrive(struct op *o);
static void stage_visible(struct op *o);
static void stage_received(struct op *o);
static void stage_respond(struct op *o);
static void stage_ack(struct op *o);
static void stage_cqe(struct op *o);

static void fire(struct op *o, uint64_t due, enum op_stage s, void (*stage)(struct op *))
{
	if (!o->q) {
		unref(o);
		return;
	}
	o->q->pending[s]--;
	if (s != STAGE_VISIBLE && s != STAGE_RECEIVED)
		o->at = due; /* the next delay counts from when this one was due */
	stage(o);
}
#define FIRE(s, f)                                    \
	static void fire_##f(void *arg, uint64_t due) \
	{                                             \
		fire((struct op *)arg, due, s, f);    \
	}
FIRE(STAGE_EXEC, stage_exec)
FIRE(STAGE_WQE, stage_wqe)
FIRE(STAGE_PAYLOAD, stage_payload)
FIRE(STAGE_ARRIVE, stage_arrive)
FIRE(STAGE_VISIBLE, stage_visible)
FIRE(STAGE_RECEIVED, stage_received)
FIRE(STAGE_RESPOND, stage_respond)
FIRE(STAGE_ACK, stage_ack)
FIRE(STAGE_CQE, stage_cqe)

static const struct {
	void (*now)(struct op *);
	void (*later)(void *, uint64_t);
} stages[STAGES] = {
	[STAGE_EXEC] = {stage_exec, fire_stage_exec},
	[STAGE_WQE] = {stage_wqe, fire_stage_wqe},
	[STAGE_PAYLOAD] = {stage_payload, fire_stage_payload},
	[STAGE_ARRIVE] = {stage_arrive, fire_stage_arrive},
	[STAGE_VISIBLE] = {stage_visible, fire_stage_visible},
	[STAGE_RECEIVED] = {stage_received, fire_stage_received},
	[STAGE_RESPOND] = {stage_respond, fire_stage_respond},
	[STAGE_ACK] = {stage_ack, fire_stage_ack},
	[STAGE_CQE] = {stage_cqe, fire_stage_cqe},
};

/* Enter stage s after `ticks`: at once where nothing is to be waited for and nobody is in front. */
static void enter(struct op *o, enum op_stage s, uint64_t ticks)
{
	struct vcx_qp *q = o->q;
	uint64_t due;

	if (!ticks && !q->pending[s]) {
		stages[s].now(o);
		return;
	}
	due = o->at + ticks;
	if (due < q->last_due[s])
		due = q->last_due[s]; /* a delay was just made shorter: order stays */
	q->last_due[s] = due;
	q->pending[s]++;
	event_at(due, stages[s].later, o);
}

/* What the software needs is hidden in a hop that waits, and counts in one that does not. */
static void go(struct op *o, enum op_stage s, int hop)
{
	uint64_t ticks = delay(hop);

	if (hop != NO_HOP && !ticks && delays())
		o->at = event_now();
	enter(o, s, ticks);
}

static void fail(struct op *o, int syndrome, int hop)
{
	struct vcx_qp *q = o->q;

	o->syndrome = syndrome;
	if (!q->halted || o->seq < q->halt_seq) {
		q->halted = true;
		q->halt_seq = o->seq;
	}
	go(o, STAGE_ACK, hop);
}

/* One in front of it failed: it does nothing more. */
static bool flushed(struct op *o)
{
	const struct vcx_qp *q = o->q;

	if (!q->halted || o->seq <= q->halt_seq)
		return false;
	o->syndrome = SYND_FLUSHED;
	go(o, STAGE_ACK, NO_HOP);
	return true;
}

/* ---- its turn ---- */
static int injected(void)
{
	uint64_t n = vcx_counts.wqes + 1;

	if (n == vcx_option.fault[FAULT_ERROR_CQE])
		return SYND_REMOTE_OP;
	if (n == vcx_option.fault[FAULT_RETRY_EXCEEDED])
		return SYND_RETRY;
	return n == vcx_option.fault[FAULT_RNR] ? SYND_RNR : 0;
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
static bool rnr_again(struct vcx_qp *q, const struct vcx_qp *peer, struct op *o)
{
	uint64_t now = cqe_clock();

	if (q->rnr_tries && now < q->rnr_until_ns)
		return true;
	if (q->rnr_retry != 7 &&
	    q->rnr_tries++ >= q->rnr_retry) { /* 7 is without end, IBTA 9.7.5.2.8 */
		o->syndrome = SYND_RNR;
		return false;
	}
	if (q->rnr_retry == 7) {
		q->rnr_tries = 1;
		q->rnr_until_ns =
			0; /* no timer: the peer may post at any moment and tests wait for it */
		return true;
	}
	q->rnr_until_ns = now + rnr_ns(peer->rnr_timer);
	return true;
}

/* Take the WQE at q->ci on its way.  False: the receiver is not ready, nothing was taken. */
static bool exec(struct op *o)
{
	struct vcx_qp *q = o->q, *peer;

	moment(o, T_EXEC);
	wqe_fetch(q, o);
	if (!o->syndrome)
		o->syndrome = injected();
	if (!o->syndrome && xfer_takes_receive(o->opcode)) {
		peer = xfer_peer(q);
		if (peer && !xfer_take_receive(o, peer) && rnr_again(q, peer, o)) {
			unref(o);
			return false;
		}
	}
	q->rnr_tries = 0;
	vcx_counts.wqes++;
	vcx_counts.opcode[o->opcode]++;
	o->index = (uint16_t)q->ci;
	q->ci = (q->ci + o->blocks) & WQE_INDEX;
	q->inflight++;
	go(o, STAGE_WQE, o->bf ? NO_HOP : HOP_WQE_FETCH);
	return true;
}

static bool start(struct vcx_qp *q, const struct ring *r)
{
	struct op *o = op_new(q);
	uint64_t ticks;

	if (!o) {
		LOG(0, "no memory for a work request");
		return true; /* looked at again */
	}
	o->at = delays() ? event_now() : 0;
	if (r) {
		o->t[T_SEEN] = r->seen;
		o->t[T_DOORBELL] = r->acted;
		if (r->due)
			o->at = r->due;
		o->bf = r->bf && (be32_at(r->bf) >> 8 & WQE_INDEX) == q->ci;
		if (o->bf)
			memcpy(o->w, r->bf, WQE_BB);
	}
	/* Looked up once: it may be switched at any moment. */
	ticks = delay(HOP_NIC_EXEC);
	if (!ticks)
		return exec(o);
	if (o->at < q->last_due[STAGE_EXEC])
		o->at = q->last_due[STAGE_EXEC]; /* the NIC works on one at a time */
	enter(o, STAGE_EXEC, ticks);
	return true;
}

bool op_run(struct vcx_qp *q, const struct ring *r)
{
	uint32_t pi = wqe_record(q);

	if (((pi - q->ci) & WQE_INDEX) > q->sq_cnt) {
		vcx_violation(VIOLATION_RECORD_BEYOND_RING, q->qpn,
			      "record %u, next WQE %u, ring of %u", pi, q->ci, q->sq_cnt);
		return false;
	}
	if (vcx_option.sink) {
		wqe_sink(q, pi);
		return false;
	}
	while (q->ci != pi && q->state == QP_RTS && !q->halted && !q->pending[STAGE_EXEC])
		if (!start(q, r))
			return true;
	if (q->state == QP_ERR)
		wqe_flush(q);
	return false;
}

static void stage_exec(struct op *o)
{
	struct vcx_qp *q = o->q;

	if (q->state != QP_RTS || q->halted) {
		unref(o);
		if (q->state == QP_ERR)
			wqe_flush(q);
		return;
	}
	if (!exec(o) || op_run(q, NULL))
		nic_wait(q);
}

/* The connected peer.  While a delay holds requests back it may go away at any moment. */
static struct vcx_qp *peer_of(struct op *o)
{
	if (!o->peer || delays())
		o->peer = xfer_peer(o->q);
	return o->peer;
}

/* ---- on its way out ---- */
static void stage_wqe(struct op *o)
{
	const struct vcx_qp *peer;
	int err = o->syndrome;

	moment(o, T_WQE);
	if (flushed(o))
		return;
	if (!err)
		err = xfer_parse(o);
	o->gathers = o->gathers && !xfer_is_read(o->opcode);
	if (!err && o->gathers && (delays() || event_pending()))
		err = xfer_sample(o);
	if (err) {
		fail(o, err, NO_HOP);
		return;
	}
	if (o->opcode == OP_NOP) {
		go(o, STAGE_ACK, NO_HOP);
		return;
	}
	peer = peer_of(o);
	o->across = peer && (peer->dev != o->q->dev || peer->pid != o->q->pid);
	go(o, STAGE_PAYLOAD, o->gathers ? HOP_PAYLOAD_FETCH : NO_HOP);
}

static void stage_payload(struct op *o)
{
	moment(o, T_PAYLOAD);
	if (!flushed(o))
		go(o, STAGE_ARRIVE, o->across ? HOP_WIRE_OUT : NO_HOP);
}

/* ---- at the responder ---- */
/* It refused: IBTA 9.9.3.2, class C: its queue pair goes to the error state too. */
static void refuse(struct op *o, struct vcx_qp *peer, int syndrome)
{
	if (o->has_receive && peer->rci == ((o->receive + 1) & WQE_INDEX))
		peer->rci = o->receive; /* not consumed: flushed with the others */
	if (syndrome == SYND_REMOTE_ACCESS || syndrome == SYND_REMOTE_OP) {
		peer->state = QP_ERR;
		wqe_flush(peer);
	}
}

static int back(const struct op *o)
{
	return o->across ? HOP_WIRE_BACK : NO_HOP;
}

static void stage_arrive(struct op *o)
{
	struct vcx_qp *q = o->q, *peer;
	uint64_t wait;
	int err;

	moment(o, T_ARRIVED);
	if (flushed(o))
		return;
	peer = peer_of(o);
	err = peer ? xfer_check(o, peer) : SYND_RETRY;
	if (err) {
		if (peer)
			refuse(o, peer, err);
		fail(o, err, peer ? back(o) : NO_HOP);
		return;
	}
	if (o->has_receive && delays())
		o->far_stamp = cqe_clock(); /* the responder's completion is made now */
	if (!xfer_is_read(o->opcode)) {
		const bool write = o->opcode == OP_WRITE || o->opcode == OP_WRITE_IMM;

		o->refs++;
		go(o, STAGE_VISIBLE, write ? HOP_REMOTE_WRITE : NO_HOP);
		if (write)
			go(o, STAGE_ACK, back(o));
		return;
	}
	/* A read pushes the writes before it. */
	wait = delay(o->total && o->opcode == OP_READ ? HOP_PAYLOAD_FETCH : NO_HOP);
	if (q->pending[STAGE_VISIBLE] && o->at + wait < q->last_due[STAGE_VISIBLE])
		wait = q->last_due[STAGE_VISIBLE] - o->at;
	enter(o, STAGE_RESPOND, wait);
}

static void stage_respond(struct op *o)
{
	struct vcx_qp *peer = peer_of(o);
	int err = peer ? xfer_respond(o, peer, delays()) : SYND_RETRY;

	if (err) {
		if (peer)
			refuse(o, peer, err);
		fail(o, err, back(o));
		return;
	}
	xfer_count(o, peer);
	go(o, STAGE_ACK, back(o));
}

static void stage_visible(struct op *o)
{
	const bool write = o->opcode == OP_WRITE || o->opcode == OP_WRITE_IMM;
	struct vcx_qp *peer = peer_of(o);
	uint64_t data = delay(write ? HOP_REMOTE_WRITE : NO_HOP),
		 cqe = delay(HOP_CQE_WRITE);
	int err = !peer	  ? SYND_RETRY
		  : write ? xfer_write(o, peer)
			  : xfer_scatter(o, peer);

	moment(o, T_VISIBLE);
	if (!err)
		xfer_count(o, peer);
	if (err)
		o->syndrome = err;
	if (!write && err != SYND_RETRY) {
		xfer_received(o, peer, err, o->far_stamp);
	} else if (!err && o->has_receive) {
		/* Its CQE is not seen before the data is. */
		o->refs++;
		enter(o, STAGE_RECEIVED, cqe > data ? cqe - data : 0);
	}
	if (err && peer)
		refuse(o, peer, err);
	if (!write && err)
		fail(o, err, back(o));
	else if (!write)
		go(o, STAGE_ACK, back(o));
	unref(o);
}

static void stage_received(struct op *o)
{
	struct vcx_qp *peer = peer_of(o);

	if (peer)
		xfer_received(o, peer, 0, o->far_stamp);
	unref(o);
}

/* ---- back at the requester ---- */
static void stage_ack(struct op *o)
{
	struct vcx_qp *q = o->q;

	moment(o, T_ACKED);
	if (q->state == QP_ERR || (q->halted && o->seq > q->halt_seq))
		o->syndrome = o->syndrome ? o->syndrome : SYND_FLUSHED;
	if (!o->syndrome && xfer_is_read(o->opcode))
		o->syndrome = xfer_take(o);
	if (o->syndrome && (!q->halted || o->seq < q->halt_seq)) {
		q->halted = true;
		q->halt_seq = o->seq;
	}
	o->stamp = delays() ? cqe_clock() : 0;
	go(o, STAGE_CQE, HOP_CQE_WRITE);
}

#define CE_MASK 0x0c   /* fm_ce_se: bits that ask for a CQE */
#define CE_ALWAYS 0x08 /* MLX5_WQE_CTRL_CQ_UPDATE */

static void stage_cqe(struct op *o)
{
	struct vcx_qp *q = o->q;
	struct vcx_completion c = {.cqe_opcode = CQE_REQ,
				   .wqe_opcode = o->opcode,
				   .index = o->index,
				   .bytes = o->bytes,
				   .stamp = o->stamp};

	LOG(2, "QP 0x%x WQE %u opcode 0x%02x ds %u bytes %u syndrome 0x%02x", q->qpn,
	    o->index, o->opcode, o->ds, o->bytes, o->syndrome);
	if (o->syndrome) {
		c.cqe_opcode = CQE_REQ_ERR;
		c.syndrome = (uint8_t)o->syndrome;
	}
	if (o->syndrome || (o->w[11] & CE_MASK) == CE_ALWAYS)
		cqe_put(q->scq, q, &c);
	moment(o, T_CQE);
	q->inflight--;
	if (o->syndrome)
		q->state = QP_ERR;
	unref(o);
	if (q->state == QP_ERR)
		wqe_flush(q);
}

void op_drop(struct vcx_qp *q)
{
	for (struct op *o = flying; o; o = o->next)
		if (o->q == q)
			o->q = NULL;
	memset(q->pending, 0, sizeof q->pending);
	memset(q->last_due, 0, sizeof q->last_due);
	q->inflight = 0;
	q->halted = false;
}
