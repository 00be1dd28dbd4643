/* SPDX-License-Identifier: Apache-2.0
 * hop_dev.c: one put with a stamp at each of the SM's own steps, in every form that separates the NIC's hops.
 *
 * Compiled for host threads and for the GPU.  Order: WQE, record, system fence, doorbell, always.  Every loop has a deadline and
 * looks for an error CQE.
 */
#include "path/dev_loop.h"
#include "path/hop_dev.h"

#define WQE_OP_WRITE_IMM 0x09u /* MLX5_OPCODE_RDMA_WRITE_IMM */
#define WQE_OP_READ 0x10u      /* MLX5_OPCODE_RDMA_READ */
#define INLINE_AT 36u	       /* inline data behind control, remote address and header */
#define NOP_DS 1u

DEV uint8_t *hop_block(const struct nic_queue *q, uint32_t pi)
{
	return q->sq + (size_t)(pi & (q->sq_count - 1)) * WQE_BB_BYTES;
}

/* One WQE as it will stand in the ring, held in registers: BlueFlame stores it once more. */
struct hop_wqe {
	uint64_t w[WQE_BB_BYTES / 8];
};

DEV struct hop_wqe hop_make(const struct nic_queue *q, uint32_t pi,
			    const struct wqe_put *p, const uint64_t *d, int op, int inl)
{
	struct hop_wqe e;

	e.w[1] = wqe_ctrl_flags(WQE_CQE_ALWAYS);
	if (op == HOP_OP_NOP) {
		e.w[0] = wqe_ctrl(pi, WQE_OP_NOP, q->qpn, NOP_DS);
		for (int k = 2; k < 8; k++)
			e.w[k] = 0;
		return e;
	}
	e.w[0] = wqe_ctrl(pi,
			  op == HOP_OP_READ	   ? WQE_OP_READ
			  : op == HOP_OP_WRITE_IMM ? WQE_OP_WRITE_IMM
						   : WQE_OP_WRITE,
			  q->qpn, inl ? wqe_inline_ds(p->bytes) : 3);
	e.w[2] = dev_be64(p->raddr);
	e.w[3] = dev_be32(p->rkey);
	if (inl) {
		e.w[4] = d[0] << 32 | dev_be32(WQE_INLINE | p->bytes);
		e.w[5] = d[1] << 32 | d[0] >> 32;
		e.w[6] = d[2] << 32 | d[1] >> 32;
		e.w[7] = d[3] << 32 | d[2] >> 32;
	} else {
		e.w[4] = (uint64_t)dev_be32(p->lkey) << 32 | dev_be32(p->bytes);
		e.w[5] = dev_be64(p->laddr);
		e.w[6] = e.w[7] = 0;
	}
	return e;
}

/* The whole 64 B block into the ring. */
DEV void hop_store(uint8_t *at, const struct hop_wqe *e)
{
	for (int k = 0; k < 8; k += 2)
		dev_st16(at + 8 * k, e->w[k], e->w[k + 1]);
}

DEV uint64_t hop_live_word(uint64_t tag)
{
	return tag << 32 | (uint32_t)dev_clock();
}

/* Where the live clock goes: the source word, or the first four bytes of the inline data. */
DEV void hop_live_store(uint8_t *at, uint64_t tag, int live)
{
	if (live == HOP_LIVE_SOURCE)
		dev_st8b(at, hop_live_word(tag));
	else
		dev_st4b(at, (uint32_t)dev_clock());
}

/* What the two warps of a live kernel tell each other (a host thread plays both). */
struct hop_share {
	uint8_t *volatile at; /* keep the clock here; NULL: rest */
	volatile uint64_t tag;
	volatile uint32_t resting, stop;
};

/* The second warp: nothing but the clock. */
DEV void hop_live_warp(struct hop_share *s, int live)
{
	while (!s->stop) {
		uint8_t *at = s->at;

		if (at) {
			s->resting = 0;
			hop_live_store(at, s->tag, live);
		} else {
			s->resting = 1;
		}
	}
}

struct hop_wait {
	uint64_t first; /* clock before which nobody looks */
	uint64_t deadline;
	uint32_t looks;
};

/* Look until the CQE (or the data's head word) is there.  The host thread keeps the live clock between looks. */
DEV uint32_t hop_look(const struct nic_queue *q, uint32_t ci, const uint8_t *flag,
		      uint64_t want, struct hop_wait *w, uint8_t *live_at, uint64_t tag,
		      int end, int live)
{
	struct dev_patience p = {0, 0};
	int look = 0;

	while (dev_clock() < w->first)
		;
	for (;;) {
		if (live != HOP_DEAD && !DEV_WARPS)
			hop_live_store(live_at, tag, live);
		look = end == HOP_TO_FLAG ? dev_ld8b(flag) == want : cqe_look(q, ci);
		if (look)
			break;
		if (dev_turn(&p) > w->deadline)
			return DEV_DEADLINE;
	}
	w->looks = p.spins + 1;
	return look < 0 ? DEV_ERROR_CQE : DEV_OK;
}

/* One put in progress: everything that is chosen before the window opens. */
struct hop_put {
	struct wqe_put p;
	uint64_t d[4], want, tag;
	uint8_t *flag, *live_at;
	uint32_t phase;
};

DEV void hop_choose(const struct hop_args *a, const struct nic_queue *q, uint32_t pi,
		    uint32_t slot, uint64_t seq, struct hop_put *h, int op, int inl,
		    int live)
{
	const uint64_t off = (uint64_t)slot * a->l.s.stride;
	uint8_t *head = a->head + off;

	h->p.laddr = a->l.s.laddr + off;
	h->p.raddr = a->l.s.raddr + off;
	h->p.lkey = a->l.s.lkey;
	h->p.rkey = a->l.s.rkey;
	h->p.bytes = a->l.bytes;
	h->tag = (seq & 0x3fffffff) | 0x40000000;
	h->flag = a->flag + off;
	/* Two of them: their sum lies evenly on the poll's period even where the period is not known exactly. */
	h->phase = dev_phase(seq, 7, a->dither) + dev_phase(seq, 9, a->dither);
	h->d[0] = live == HOP_LIVE_WQE ? hop_live_word(h->tag) : payload_word(seq, 0);
	for (int k = 1; k < 4; k++)
		h->d[k] = inl ? payload_word(seq, k) : 0;
	h->want = h->d[0];
	h->live_at = live == HOP_LIVE_SOURCE ? head : hop_block(q, pi) + INLINE_AT;
	if (live == HOP_LIVE_SOURCE)
		dev_st8b(head, hop_live_word(h->tag));
	else if (!inl && op != HOP_OP_NOP)
		payload_store_head(head, h->d[0], a->l.bytes);
	if (op == HOP_OP_READ)
		dev_fence_sys(); /* this thread and the NIC: the peer's word is there before the READ is */
}

/* The live word that arrived: its high half is this put's tag. */
DEV uint32_t hop_live_arrived(const uint8_t *flag, uint64_t tag, uint64_t deadline,
			      uint64_t *value)
{
	struct dev_patience p = {0, 0};

	while ((*value = dev_ld8b(flag)) >> 32 != tag)
		if (dev_turn(&p) > deadline)
			return DEV_DEADLINE;
	return DEV_OK;
}

DEV void hop_loop(const struct hop_args *a, struct hop_share *share, int op, int inl,
		  int bf, int end, int live, int form)
{
	DEV_SCRATCH(uint64_t, t, HOP_STAMPS * HOP_OPS_MAX);
	DEV_SCRATCH(uint64_t, baseline, DEV_BASELINE);
	const struct nic_queue q = a->q;
	uint32_t pi = q.cursor->pi, ci = q.cursor->ci, reg_off = q.cursor->reg_off, i,
		 slot = 0;
	struct dev_result r;

	dev_result_open(&r);
	dev_timer_baseline(baseline, DEV_BASELINE);
	for (i = 0; i < a->l.ops; i++) {
		uint64_t s[HOP_STAMPS] = {0}, reg;
		struct hop_wqe e;
		struct hop_wait w;
		struct hop_put h;

		hop_choose(a, &q, pi, slot, a->l.seq0 + i, &h, op, inl, live);
		w.deadline = a->l.deadline_ticks;
		w.looks = 0;
		dev_pause(dev_phase(a->l.seq0 + i, 8, a->gap));
		s[HOP_T0] = dev_clock();
		e = hop_make(&q, pi, &h.p, h.d, op, inl);
		hop_store(hop_block(&q, pi), &e);
		if (form != HOP_PLAIN)
			s[HOP_BUILT] = dev_clock_before_stores();
		reg = (uint64_t)(uintptr_t)(q.reg + reg_off);
		DEV_READY(reg);
		DEV_READY(e.w[0]);
		dev_st4b(q.sq_rec, dev_be32((pi + 1) & 0xffff));
		dev_fence_sys(); /* this thread and the NIC: WQE and record before the doorbell */
		if (form == HOP_ORDER)
			s[HOP_ORDERED] = dev_clock_before_stores();
		if (live != HOP_DEAD && DEV_WARPS) {
			share->tag = h.tag;
			share->at = h.live_at;
		}
		if (bf)
			dev_st_blueflame((uint8_t *)(uintptr_t)reg, e.w);
		else
			dev_st_mmio8b((uint8_t *)(uintptr_t)reg, e.w[0]);
		if (form != HOP_PLAIN)
			s[HOP_RUNG] = dev_clock();
		w.first = s[HOP_T0] + a->lead + h.phase;
		r.status =
			hop_look(&q, ci, h.flag, h.want, &w, h.live_at, h.tag, end, live);
		if (form == HOP_STAMPED)
			s[HOP_SEEN] = dev_clock();
		if (end == HOP_TO_CQE && r.status == DEV_OK)
			cqe_release(&q, ci + 1);
		s[HOP_DONE] = dev_clock();
		s[HOP_POLLS] = (uint64_t)h.phase << 32 | w.looks;
		if (live != HOP_DEAD && DEV_WARPS) {
			share->at = NULL;
			while (!share->resting)
				;
		}
		pi++;
		reg_off ^= q.reg_toggle;
		if (end == HOP_TO_FLAG && r.status == DEV_OK) {
			struct hop_wait reap = {0, a->l.deadline_ticks, 0};

			r.status = hop_look(&q, ci, h.flag, 0, &reap, h.live_at, 0,
					    HOP_TO_CQE, HOP_DEAD);
			if (r.status == DEV_OK)
				cqe_release(&q, ci + 1);
		}
		/* The next put meets an idle NIC: an acknowledgement does not wait for the data. */
		if (end == HOP_TO_CQE && live == HOP_DEAD && op != HOP_OP_NOP &&
		    op != HOP_OP_READ && r.status == DEV_OK)
			r.status = dev_wait_flag(h.flag, h.want,
						 payload_head_mask(a->l.bytes),
						 a->l.deadline_ticks);
		if (live != HOP_DEAD && r.status == DEV_OK)
			r.status = hop_live_arrived(h.flag, h.tag, a->l.deadline_ticks,
						    &s[HOP_LIVE_READ]);
		if (r.status != DEV_OK) {
			r.syndrome = r.status == DEV_ERROR_CQE ? cqe_syndrome(&q, ci) : 0;
			break;
		}
		ci++;
		for (int k = 0; k < HOP_STAMPS; k++)
			t[HOP_STAMPS * i + k] = s[k];
		if (++slot == a->l.s.count)
			slot = 0;
	}
	share->stop = 1;
	q.cursor->pi = pi;
	q.cursor->ci = ci;
	q.cursor->reg_off = reg_off;
	dev_result_close(&r, a->l.result, i, HOP_STAMPS, t, a->l.stamps, baseline);
}

/* The first thread measures; of a live kernel on the GPU, the first of the second warp keeps the clock. */
DEV void hop_kernel(const struct hop_args *a, int op, int inl, int bf, int end, int live,
		    int form)
{
	DEV_SCRATCH(struct hop_share, share, 1);

	if (DEV_LANE == 0) {
		share->at = NULL;
		share->resting = 1;
		share->stop = 0;
	}
	DEV_SYNC();
	if (DEV_LANE == 0)
		hop_loop(a, share, op, inl, bf, end, live, form);
	else if (live != HOP_DEAD && DEV_LANE == DEV_WARP)
		hop_live_warp(share, live);
}

#define K(name, op, inl, bf, end, live)                                \
	DEV_KERNEL(hop_##name##_plain, struct hop_args,                \
		   hop_kernel(a, op, inl, bf, end, live, HOP_PLAIN))   \
	DEV_KERNEL(hop_##name##_stamped, struct hop_args,              \
		   hop_kernel(a, op, inl, bf, end, live, HOP_STAMPED)) \
	DEV_KERNEL(hop_##name##_order, struct hop_args,                \
		   hop_kernel(a, op, inl, bf, end, live, HOP_ORDER))
HOP_KERNEL_LIST(K)
#undef K

/* k WQEs behind one doorbell: what the NIC needs for one more, when it need not be told of each. */
DEV void hop_gap_loop(const struct hop_args *a)
{
	DEV_SCRATCH(uint64_t, t, HOP_STAMPS * HOP_OPS_MAX);
	DEV_SCRATCH(uint64_t, baseline, DEV_BASELINE);
	const struct nic_queue q = a->q;
	uint32_t pi = q.cursor->pi, ci = q.cursor->ci, reg_off = q.cursor->reg_off, i;
	struct hop_wait w = {0, a->l.deadline_ticks, 0};
	struct dev_result r;
	struct hop_wqe e = {{0}};

	dev_result_open(&r);
	dev_timer_baseline(baseline, DEV_BASELINE);
	for (i = 0; i < a->l.ops; i++) {
		struct hop_put h;

		hop_choose(a, &q, pi, i % a->l.s.count, a->l.seq0 + i, &h, HOP_OP_WRITE,
			   1, HOP_DEAD);
		e = hop_make(&q, pi, &h.p, h.d, HOP_OP_WRITE, 1);
		hop_store(hop_block(&q, pi++), &e);
	}
	dev_st4b(q.sq_rec, dev_be32(pi & 0xffff));
	dev_fence_sys(); /* this thread and the NIC: all WQEs and the record before the doorbell */
	dev_st_mmio8b(q.reg + reg_off, e.w[0]);
	for (i = 0; i < a->l.ops; i++) {
		r.status =
			hop_look(&q, ci, a->flag, 0, &w, NULL, 0, HOP_TO_CQE, HOP_DEAD);
		if (r.status != DEV_OK) {
			r.syndrome = r.status == DEV_ERROR_CQE ? cqe_syndrome(&q, ci) : 0;
			break;
		}
		t[i] = dev_clock();
		cqe_release(&q, ++ci);
	}
	q.cursor->pi = pi;
	q.cursor->ci = ci;
	q.cursor->reg_off = reg_off ^ q.reg_toggle;
	dev_result_close(&r, a->l.result, i, 1, t, a->l.stamps, baseline);
}
DEV_KERNEL(hop_gap, struct hop_args, hop_gap_loop(a))

#define THREADS(live) ((live) == HOP_DEAD ? 1 : 2 * DEV_WARP)
#define K(name, op, inl, bf, end, live)                                           \
	{DEV_ENTRY_THREADS(hop_##name##_plain, struct hop_args, THREADS(live)),   \
	 DEV_ENTRY_THREADS(hop_##name##_stamped, struct hop_args, THREADS(live)), \
	 DEV_ENTRY_THREADS(hop_##name##_order, struct hop_args, THREADS(live))},
DEV_C const struct dev_kernel DEV_NAME(hop_kernels)[HOP_KERNELS][HOP_FORMS] = {
	HOP_KERNEL_LIST(K)};
#undef K
DEV_C const struct dev_kernel DEV_NAME(hop_gap_kernel) = DEV_ENTRY(hop_gap,
								   struct hop_args);
