/* SPDX-License-Identifier: Apache-2.0
 * xfer.c: RDMA WRITE, READ, SEND, atomics and NOP between reliably connected queue pairs.
 */
#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cqe.h"
#include "log.h"
#include "mem.h"
#include "stats.h"
#include "xfer.h"

/* MLX5_OPCODE_* of mlx5dv.h. */
enum {
	OP_NOP = 0x00,
	OP_WRITE = 0x08,
	OP_WRITE_IMM = 0x09,
	OP_SEND = 0x0a,
	OP_SEND_IMM = 0x0b,
	OP_READ = 0x10,
	OP_CS = 0x11,
	OP_FA = 0x12
};
/* IBV_ACCESS_* */
enum { LOCAL_WRITE = 1, REMOTE_WRITE = 2, REMOTE_READ = 4, REMOTE_ATOMIC = 8 };
#define INLINE_SEG 0x80000000u
#define INVALID_LKEY 0x100u /* ends a receive's scatter list (MLX5_INVALID_LKEY) */
#define SEGS_MAX 64u
#define RECV_BYTES_MAX 1024u
#define SE 0x02

struct seg {
	struct vcx_addr a;
	uint32_t len;
};
struct request {
	struct vcx_qp *q, *peer;
	const uint8_t *w;
	uint8_t opcode;
	uint64_t raddr, swap, compare;
	uint32_t rkey, total, segs;
	struct seg seg[SEGS_MAX];
};

static uint32_t be32_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return be32toh(v);
}

static uint64_t be64_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return be64toh(v);
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

static int bad_size(const struct request *r, const char *what)
{
	vcx_violation(VIOLATION_WQE_SIZE, r->q->qpn, "opcode 0x%02x: %s", r->opcode,
		      what);
	return SYND_QP_OP;
}

/* Data segments, gathered or inline, from p to end. */
static int parse_data(struct request *r, const uint8_t *p, const uint8_t *end)
{
	const uint32_t need =
		r->opcode == OP_READ || is_atomic(r->opcode) ? LOCAL_WRITE : 0;

	while (p < end) {
		uint32_t count = be32_at(p), len = count & ~INLINE_SEG;
		struct seg *s = &r->seg[r->segs];

		if (r->segs == SEGS_MAX)
			return bad_size(r, "too many segments");
		if (count & INLINE_SEG) {
			if (p + 4 + len > end)
				return bad_size(r, "inline data runs past the WQE");
			s->a = mem_here((void *)(uintptr_t)(p + 4));
			p += (len + 4 + 15) & ~15u;
		} else {
			if (len && !find(be32_at(p + 4), be64_at(p + 8), len, need,
					 r->q->pd, r->q, &s->a))
				return SYND_PROTECTION;
			p += 16;
		}
		if (!len)
			continue;
		s->len = len;
		r->total += len;
		r->segs++;
	}
	return 0;
}

static int parse(struct request *r, uint32_t ds)
{
	const uint8_t *p = r->w + 16, *end = r->w + ds * 16;

	if (!is_send(r->opcode)) {
		if (p + 16 > end)
			return bad_size(r, "no room for the remote address");
		r->raddr = be64_at(p);
		r->rkey = be32_at(p + 8);
		p += 16;
	}
	if (is_atomic(r->opcode)) {
		if (p + 32 > end)
			return bad_size(r, "no room for the operands and the result");
		r->swap = be64_at(p);
		r->compare = be64_at(p + 8);
		p += 16;
	}
	return parse_data(r, p, end);
}

/* The peer: connected back, alive, and at the address that this side was told. */
static struct vcx_qp *peer_of(const struct vcx_qp *q)
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
static int scatter(struct request *r, const uint8_t *w, uint32_t bytes)
{
	struct source from = {r->seg, 0, 0};
	uint32_t left = r->total;

	for (uint32_t at = 0; left && at + 16 <= bytes; at += 16) {
		uint32_t len = be32_at(w + at), key = be32_at(w + at + 4);
		struct vcx_addr a;

		if (!len || key == INVALID_LKEY)
			break;
		if (len > left)
			len = left;
		if (!find(key, be64_at(w + at + 8), len, LOCAL_WRITE, r->peer->pd,
			  r->peer, &a))
			return SYND_REMOTE_OP;
		if (stream(&from, a, len, true))
			return lost(r->peer);
		left -= len;
	}
	return left ? SYND_REMOTE_INVALID : 0;
}

static bool receive_posted(const struct vcx_qp *peer)
{
	return peer->rq_cnt &&
	       (be32toh(mem_read32(peer->pid, peer->rec)) & 0xffff) != peer->rci;
}

/* Consume one receive of the peer; a send's bytes go into it, a write's do not. */
static int consume_receive(struct request *r, uint8_t cqe_opcode)
{
	struct vcx_qp *peer = r->peer;
	const uint32_t bytes = 1u << peer->rq_shift;
	struct vcx_completion c = {.cqe_opcode = cqe_opcode,
				   .index = (uint16_t)peer->rci,
				   .bytes = r->total,
				   .solicited = r->w[11] & SE};
	uint8_t w[RECV_BYTES_MAX];
	int err = 0;

	if (bytes > sizeof w ||
	    mem_read(peer->pid, w,
		     peer->rq + ((uint64_t)(peer->rci & (peer->rq_cnt - 1))
				 << peer->rq_shift),
		     bytes))
		return lost(peer);
	if (is_send(r->opcode))
		err = scatter(r, w, bytes);
	if (err == SYND_RETRY)
		return err;
	if (err == SYND_REMOTE_INVALID) {
		c.cqe_opcode = CQE_RESP_ERR;
		c.syndrome = SYND_LENGTH;
	} else if (err) {
		c.cqe_opcode = CQE_RESP_ERR;
		c.syndrome = SYND_PROTECTION;
	}
	if (r->opcode == OP_WRITE_IMM || r->opcode == OP_SEND_IMM)
		memcpy(&c.imm, r->w + 12, 4);
	cqe_put(peer->rcq, peer, &c);
	peer->rci = (peer->rci + 1) & 0xffff;
	if (err)
		peer->state = QP_ERR;
	return err;
}

static int rdma(struct request *r)
{
	const bool read = r->opcode == OP_READ;
	const uint32_t need = read ? REMOTE_READ : REMOTE_WRITE;
	struct source s = {r->seg, 0, 0};
	struct vcx_addr far;

	if (r->total &&
	    (!(r->peer->access & need) ||
	     !find(r->rkey, r->raddr, r->total, need, r->peer->pd, r->q, &far)))
		return SYND_REMOTE_ACCESS;
	if (r->total && stream(&s, far, r->total, !read))
		return lost(r->peer);
	if (read) {
		vcx_counts.bytes_read += r->total;
		return 0;
	}
	vcx_counts.bytes_out += r->total;
	fabric_bytes_in(r->peer->pid, r->total);
	return r->opcode == OP_WRITE_IMM ? consume_receive(r, CQE_RESP_WR_IMM) : 0;
}

static int atomic(struct request *r, uint32_t *bytes)
{
	struct vcx_addr far;
	uint64_t old, fresh;

	if (!r->segs || r->seg[0].len < 8)
		return bad_size(r, "no 8 B for the result");
	if ((r->raddr & 7) || !(r->peer->access & REMOTE_ATOMIC) ||
	    !find(r->rkey, r->raddr, 8, REMOTE_ATOMIC, r->peer->pd, r->q, &far))
		return r->raddr & 7 ? SYND_REMOTE_INVALID : SYND_REMOTE_ACCESS;
	if (mem_copy(mem_here(&old), far, 8))
		return lost(r->peer);
	fresh = r->opcode == OP_FA ? old + r->swap : old == r->compare ? r->swap : old;
	if (mem_copy(far, mem_here(&fresh), 8) ||
	    mem_copy(r->seg[0].a, mem_here(&old), 8))
		return SYND_REMOTE_OP;
	*bytes = 8;
	vcx_counts.bytes_out += 8;
	fabric_bytes_in(r->peer->pid, 8);
	return 0;
}

static int send(struct request *r)
{
	int err = consume_receive(r, r->opcode == OP_SEND ? CQE_RESP_SEND
							  : CQE_RESP_SEND_IMM);

	if (!err) {
		vcx_counts.bytes_out += r->total;
		fabric_bytes_in(r->peer->pid, r->total);
	}
	return err;
}

int xfer(struct vcx_qp *q, const uint8_t *w, uint32_t ds, uint8_t opcode, uint32_t *bytes)
{
	struct request r; /* segments are not cleared: segs counts the valid ones */
	int err;

	if (opcode == OP_NOP)
		return 0;
	if (!is_write(opcode) && !is_send(opcode) && !is_atomic(opcode) &&
	    opcode != OP_READ) {
		vcx_violation(VIOLATION_WQE_OPCODE, q->qpn, "opcode 0x%02x", opcode);
		return SYND_QP_OP;
	}
	r.q = q;
	r.w = w;
	r.opcode = opcode;
	r.total = r.segs = 0;
	err = parse(&r, ds);
	if (err)
		return err;
	r.peer = peer_of(q);
	if (!r.peer)
		return SYND_RETRY;
	if ((is_send(opcode) || opcode == OP_WRITE_IMM) && !receive_posted(r.peer))
		return XFER_NOT_READY;
	*bytes = r.total;
	if (is_send(opcode))
		return send(&r);
	return is_atomic(opcode) ? atomic(&r, bytes) : rdma(&r);
}
