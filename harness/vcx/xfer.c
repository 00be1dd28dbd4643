/* SPDX-License-Identifier: Apache-2.0
 * xfer.c: RDMA WRITE, READ, SEND, atomics and NOP between reliably connected queue pairs: the segments, the checks of keys
 * and rights, the bytes.
 */
#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cqe.h"
#include "log.h"
#include "stats.h"
#include "wqe.h"
#include "xfer.h"

/* IBV_ACCESS_* */
enum { LOCAL_WRITE = 1, REMOTE_WRITE = 2, REMOTE_READ = 4, REMOTE_ATOMIC = 8 };
#define INLINE_SEG 0x80000000u
#define INVALID_LKEY 0x100u /* ends a receive's scatter list (MLX5_INVALID_LKEY) */
#define RECV_BYTES_MAX 1024u
#define SE 0x02

static uint64_t be64_at(const uint8_t *p)
{
	return (uint64_t)be32_at(p) << 32 | be32_at(p + 4);
}

/* Find [va, va+len) under `key`, which must belong to pd and grant `need`.  False: protection error. */
static bool find(uint32_t key, uint64_t va, uint64_t len, uint32_t need, uint32_t pd,
		 const struct vcx_qp *q, struct vcx_addr *a)
{
	const struct vcx_mr *m = fabric_mr(key);

	if (!m && fabric_mr(__builtin_bswap32(key)))
		vcx_violation(VIOLATION_KEY_BYTE_ORDER, q->qpn, "key 0x%08x", key);
	if (!m || m->pd != pd || (m->access & need) != need)
		return false;
	if (va < m->iova || len > m->len || va - m->iova > m->len - len)
		return false;
	*a = (struct vcx_addr){m->host + (va - m->iova), m->gpu, m->pid};
	return true;
}

static bool is_write(uint8_t op)
{
	return op == OP_WRITE || op == OP_WRITE_IMM;
}
static bool is_send(uint8_t op)
{
	return op == OP_SEND || op == OP_SEND_IMM;
}
static bool is_atomic(uint8_t op)
{
	return op == OP_CS || op == OP_FA;
}
bool xfer_takes_receive(uint8_t op)
{
	return is_send(op) || op == OP_WRITE_IMM;
}
bool xfer_is_read(uint8_t op)
{
	return op == OP_READ || is_atomic(op);
}

static int bad_size(const struct op *o, const char *what)
{
	vcx_violation(VIOLATION_WQE_SIZE, o->q->qpn, "opcode 0x%02x: %s", o->opcode,
		      what);
	return SYND_QP_OP;
}

/* Data segments, gathered or inline, from p to end. */
static int parse_data(struct op *o, const uint8_t *p, const uint8_t *end)
{
	const uint32_t need = xfer_is_read(o->opcode) ? LOCAL_WRITE : 0;

	while (p < end) {
		uint32_t count = be32_at(p), len = count & ~INLINE_SEG;
		struct seg *s = &o->seg[o->segs];

		if (o->segs == OP_SEGS_MAX)
			return bad_size(o, "too many segments");
		if (count & INLINE_SEG) {
			if (p + 4 + len > end)
				return bad_size(o, "inline data runs past the WQE");
			s->a = mem_here((void *)(uintptr_t)(p + 4));
			p += (len + 4 + 15) & ~15u;
		} else {
			if (len && !find(be32_at(p + 4), be64_at(p + 8), len, need,
					 o->q->pd, o->q, &s->a))
				return SYND_PROTECTION;
			o->gathers |= len != 0;
			p += 16;
		}
		if (!len)
			continue;
		s->len = len;
		o->total += len;
		o->segs++;
	}
	return 0;
}

int xfer_parse(struct op *o)
{
	const uint8_t *p = o->w + 16, *end = o->w + o->ds * 16;

	o->total = o->segs = 0;
	o->gathers = false;
	if (o->opcode == OP_NOP)
		return 0;
	if (!is_write(o->opcode) && !is_send(o->opcode) && !xfer_is_read(o->opcode)) {
		vcx_violation(VIOLATION_WQE_OPCODE, o->q->qpn, "opcode 0x%02x",
			      o->opcode);
		return SYND_QP_OP;
	}
	if (!is_send(o->opcode)) {
		if (p + 16 > end)
			return bad_size(o, "no room for the remote address");
		o->raddr = be64_at(p);
		o->rkey = be32_at(p + 8);
		p += 16;
	}
	if (is_atomic(o->opcode)) {
		if (p + 32 > end)
			return bad_size(o, "no room for the operands and the result");
		o->swap = be64_at(p);
		o->compare = be64_at(p + 8);
		p += 16;
	}
	return parse_data(o, p, end);
}

/* The peer: connected back, alive, and at the address that this side was told. */
struct vcx_qp *xfer_peer(const struct vcx_qp *q)
{
	struct vcx_qp *r = fabric_qp(q->dest);
	uint8_t gid[16];

	if (!r || r->dest != q->qpn || (r->state != QP_RTR && r->state != QP_RTS))
		return NULL;
	for (unsigned i = 0; i < VCX_GIDS; i++) {
		fabric_gid(r->dev, i, gid);
		if (!memcmp(gid, q->dgid, 16))
			return r;
	}
	return NULL;
}

struct source {
	const struct seg *seg;
	uint32_t i, used; /* segment in hand, bytes of it that are gone */
};

/* Move n bytes between the local segments, in order, and one address. */
static int stream(struct source *s, struct vcx_addr far, uint32_t n, bool to_far)
{
	while (n) {
		uint32_t k = s->seg[s->i].len - s->used;
		struct vcx_addr near = mem_add(s->seg[s->i].a, s->used);

		if (k > n)
			k = n;
		if (to_far ? mem_copy(far, near, k) : mem_copy(near, far, k))
			return -1;
		far = mem_add(far, k);
		s->used += k;
		n -= k;
		if (s->used == s->seg[s->i].len) {
			s->i++;
			s->used = 0;
		}
	}
	return 0;
}

/* Why a peer's memory could not be reached: its process is gone, or it is there and refuses. */
static int lost(const struct vcx_qp *peer)
{
	if (errno ==
	    ESRCH) /* from process_vm_*: also of a process that nobody has waited for yet */
		return SYND_RETRY;
	return kill(peer->pid, 0) && errno == ESRCH ? SYND_RETRY : SYND_REMOTE_OP;
}

/* Bytes of a send into the segments of one receive WQE. */
static int scatter(struct op *o, struct vcx_qp *peer, const uint8_t *w, uint32_t bytes)
{
	struct source from = {o->seg, 0, 0};
	uint32_t left = o->total;

	for (uint32_t at = 0; left && at + 16 <= bytes; at += 16) {
		uint32_t len = be32_at(w + at), key = be32_at(w + at + 4);
		struct vcx_addr a;

		if (!len || key == INVALID_LKEY)
			break;
		if (len > left)
			len = left;
		if (!find(key, be64_at(w + at + 8), len, LOCAL_WRITE, peer->pd, peer, &a))
			return SYND_REMOTE_OP;
		if (stream(&from, a, len, true))
			return lost(peer);
		left -= len;
	}
	return left ? SYND_REMOTE_INVALID : 0;
}

bool xfer_take_receive(struct op *o, struct vcx_qp *peer)
{
	if (!peer->rq_cnt ||
	    (be32toh(mem_read32(peer->pid, peer->rec)) & WQE_INDEX) == peer->rci)
		return false;
	o->has_receive = true;
	o->receive = peer->rci;
	peer->rci = (peer->rci + 1) & WQE_INDEX;
	return true;
}

int xfer_scatter(struct op *o, struct vcx_qp *peer)
{
	const uint32_t bytes = 1u << peer->rq_shift;
	uint8_t w[RECV_BYTES_MAX];

	if (bytes > sizeof w ||
	    mem_read(peer->pid, w,
		     peer->rq + ((uint64_t)(o->receive & (peer->rq_cnt - 1))
				 << peer->rq_shift),
		     bytes))
		return lost(peer);
	return scatter(o, peer, w, bytes);
}

void xfer_received(struct op *o, struct vcx_qp *peer, int err, uint64_t stamp)
{
	struct vcx_completion c = {.index = (uint16_t)o->receive,
				   .bytes = o->total,
				   .stamp = stamp,
				   .solicited = o->w[11] & SE};

	c.cqe_opcode = o->opcode == OP_WRITE_IMM ? CQE_RESP_WR_IMM
		       : o->opcode == OP_SEND	 ? CQE_RESP_SEND
						 : CQE_RESP_SEND_IMM;
	if (err) {
		c.cqe_opcode = CQE_RESP_ERR;
		c.syndrome = err == SYND_REMOTE_INVALID ? SYND_LENGTH : SYND_PROTECTION;
	}
	if (o->opcode == OP_WRITE_IMM || o->opcode == OP_SEND_IMM)
		memcpy(&c.imm, o->w + 12, 4);
	cqe_put(peer->rcq, peer, &c);
	if (err)
		peer->state = QP_ERR;
}

int xfer_sample(struct op *o)
{
	struct source s = {o->seg, 0, 0};

	if (!o->total)
		return 0;
	o->data = malloc(o->total);
	if (!o->data) {
		LOG(0, "no memory to hold %u bytes on their way", o->total);
		return SYND_QP_OP;
	}
	if (stream(&s, mem_here(o->data), o->total, true))
		return SYND_PROTECTION;
	o->seg[0] = (struct seg){mem_here(o->data), o->total};
	o->segs = 1;
	return 0;
}

/* Where the request reaches at the peer. */
static int far_side(const struct op *o, const struct vcx_qp *peer, struct vcx_addr *far)
{
	const bool atom = is_atomic(o->opcode);
	const uint32_t need = atom		     ? REMOTE_ATOMIC
			      : o->opcode == OP_READ ? REMOTE_READ
						     : REMOTE_WRITE;
	const uint32_t bytes = atom ? 8 : o->total;

	if (atom && (o->raddr & 7))
		return SYND_REMOTE_INVALID;
	if (bytes && (!(peer->access & need) ||
		      !find(o->rkey, o->raddr, bytes, need, peer->pd, o->q, far)))
		return SYND_REMOTE_ACCESS;
	return 0;
}

int xfer_check(const struct op *o, const struct vcx_qp *peer)
{
	struct vcx_addr far;

	if (is_atomic(o->opcode) && (!o->segs || o->seg[0].len < 8))
		return bad_size(o, "no 8 B for the result");
	return is_send(o->opcode) ? 0 : far_side(o, peer, &far);
}

int xfer_write(struct op *o, struct vcx_qp *peer)
{
	struct source s = {o->seg, 0, 0};
	struct vcx_addr far;
	int err = far_side(o, peer, &far);

	if (err || !o->total)
		return err;
	return stream(&s, far, o->total, true) ? lost(peer) : 0;
}

void xfer_count(struct op *o, const struct vcx_qp *peer)
{
	o->bytes = is_atomic(o->opcode) ? 8 : o->total;
	if (o->opcode == OP_READ) {
		vcx_counts.bytes_read += o->bytes;
		return;
	}
	vcx_counts.bytes_out += o->bytes;
	fabric_bytes_in(peer->pid, o->bytes);
}

static int atomic(struct op *o, struct vcx_qp *peer, struct vcx_addr far)
{
	uint64_t fresh;

	if (mem_copy(mem_here(&o->old), far, 8))
		return lost(peer);
	fresh = o->opcode == OP_FA     ? o->old + o->swap
		: o->old == o->compare ? o->swap
				       : o->old;
	return mem_copy(far, mem_here(&fresh), 8) ? lost(peer) : 0;
}

int xfer_respond(struct op *o, struct vcx_qp *peer, bool hold)
{
	struct source s = {o->seg, 0, 0};
	struct vcx_addr far;
	int err = far_side(o, peer, &far);

	if (err)
		return err;
	if (is_atomic(o->opcode))
		return atomic(o, peer, far);
	if (!o->total)
		return 0;
	if (!hold)
		return stream(&s, far, o->total, false) ? lost(peer) : 0;
	o->data = malloc(o->total);
	if (!o->data) {
		LOG(0, "no memory to hold %u bytes on their way", o->total);
		return SYND_REMOTE_OP;
	}
	return mem_copy(mem_here(o->data), far, o->total) ? lost(peer) : 0;
}

int xfer_take(struct op *o)
{
	struct source s = {o->seg, 0, 0};

	if (is_atomic(o->opcode))
		return mem_copy(o->seg[0].a, mem_here(&o->old), 8) ? SYND_REMOTE_OP : 0;
	if (!o->data || !o->total)
		return 0;
	return stream(&s, mem_here(o->data), o->total, false) ? SYND_PROTECTION : 0;
}
