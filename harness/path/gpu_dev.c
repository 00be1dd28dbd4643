/* SPDX-License-Identifier: Apache-2.0
 * gpu_dev.c: the GPU-submitted put: the SM builds the WQE, orders it, rings the NIC and polls the CQE.
 *
 * Compiled for host threads and for the GPU.  Every loop has a deadline and looks for an error CQE.
 */
#include "path/dev_loop.h"

struct put_state {
	uint32_t pi, ci, reg_off;
};

DEV struct put_state state_load(const struct nic_cursor *c)
{
	struct put_state s = {c->pi, c->ci, c->reg_off};
	return s;
}
DEV void state_store(struct nic_cursor *c, const struct put_state *s)
{
	c->pi = s->pi;
	c->ci = s->ci;
	c->reg_off = s->reg_off;
}

/* Record, then doorbell, in the chosen order.  The parties are this thread and the NIC: WQE and record must be
 * in memory before the doorbell reaches the NIC.  With the queue in host memory only the system-scope orders
 * promise that; the others are what the litmus test is for. */
DEV void ring(const struct nic_queue *q, struct put_state *s, uint64_t ctrl, int order)
{
	uint64_t at = (uint64_t)(uintptr_t)(q->reg + s->reg_off);
	uint8_t *reg;
	uint32_t record = dev_be32(s->pi & 0xffff);

	DEV_READY(at);
	DEV_READY(ctrl);
	reg = (uint8_t *)(uintptr_t)at;
	if (order == ORDER_GPU_FENCE_DBREC)
		dev_fence_gpu();
	if (order == ORDER_THREADFENCE2)
		dev_threadfence();
	dev_st4b(q->sq_rec, record);
	if (order == ORDER_GPU_FENCE || order == ORDER_GPU_FENCE_DBREC)
		dev_fence_gpu();
	if (order == ORDER_THREADFENCE2)
		dev_threadfence();
	if (order == ORDER_SYS_FENCE)
		dev_fence_sys();
	if (order == ORDER_GPU_RELEASE)
		dev_st_release_gpu8b(reg, ctrl);
	else if (order == ORDER_SYS_RELEASE)
		dev_st_release_sys8b(reg, ctrl);
	else
		dev_st_mmio8b(reg, ctrl);
	s->reg_off ^= q->reg_toggle;
}

/* Ring the last WQE again behind a system fence: only the unsafe orders need it, and each time is counted. */
DEV void ring_again(const struct nic_queue *q, struct put_state *s, uint64_t ctrl)
{
	dev_fence_sys();
	dev_st_mmio8b(q->reg + s->reg_off, ctrl);
	s->reg_off ^= q->reg_toggle;
}

/* Wait for the CQE at s->ci and hand it back.  Nothing is read afterwards that depends on the CQE, so no acquire:
 * a consumer of READ data would need fence.acquire.sys here. */
DEV uint32_t wait_cqe(const struct nic_queue *q, struct put_state *s, uint64_t ctrl,
		      uint64_t deadline, uint64_t rering, struct dev_result *r)
{
	struct dev_patience patience = {0, 0};
	uint64_t waited, next = rering;
	int look;

	while (!(look = cqe_look(q, s->ci))) {
		waited = dev_turn(&patience);
		if (waited > deadline)
			return DEV_DEADLINE;
		if (rering != RERING_NONE && waited > next) {
			ring_again(q, s, ctrl);
			next = waited + rering;
			r->rerings++;
		}
	}
	if (look < 0) {
		r->syndrome = cqe_syndrome(q, s->ci);
		return DEV_ERROR_CQE;
	}
	cqe_release(q, ++s->ci);
	return DEV_OK;
}

/* Build one WQE at s->pi; returns its control word.  `flags`: the CQE request. */
DEV uint64_t build(const struct nic_queue *q, struct put_state *s,
		   const struct wqe_put *p, const uint64_t *d, int inl)
{
	uint8_t *w = q->sq + (size_t)(s->pi & (q->sq_count - 1)) * WQE_BB_BYTES;
	uint64_t ctrl =
		wqe_ctrl(s->pi, WQE_OP_WRITE, q->qpn, inl ? wqe_inline_ds(p->bytes) : 3);

	if (inl)
		wqe_write_inline(w, ctrl, p, d);
	else
		wqe_write_pointer(w, ctrl, p);
	s->pi++;
	return ctrl;
}

DEV void payload_words(uint64_t *d, uint64_t seq, int inl)
{
	d[0] = payload_word(seq, 0);
	if (inl)
		for (int k = 1; k < 4; k++)
			d[k] = payload_word(seq, k);
}

DEV void put_loop(const struct put_args *a, int order, int inl, int stamped)
{
	DEV_SCRATCH(uint64_t, t, 3 * PUT_OPS_MAX);
	DEV_SCRATCH(uint64_t, baseline, DEV_BASELINE);
	const int unsafe = order != ORDER_SYS_FENCE && order != ORDER_SYS_RELEASE;
	const uint64_t rering = unsafe ? a->rering_ticks : RERING_NONE;
	struct dev_result r;
	struct put_state s = state_load(a->q.cursor);
	const struct nic_queue q = a->q;
	uint32_t i, slot = 0;
	uint64_t d[4];

	dev_result_open(&r);
	dev_timer_baseline(baseline, DEV_BASELINE);
	for (i = 0; i < a->l.ops; i++) {
		const uint64_t off = (uint64_t)slot * a->l.s.stride;
		const struct wqe_put p = {a->l.s.laddr + off, a->l.s.raddr + off,
					  a->l.s.lkey, a->l.s.rkey, a->l.bytes};
		uint64_t t0, t1 = 0, t2, ctrl;

		payload_words(d, a->l.seq0 + i, inl);
		if (!inl)
			payload_store_head(a->l.s.src + off, d[0], a->l.bytes);
		t0 = dev_clock();
		ctrl = build(&q, &s, &p, d, inl);
		ring(&q, &s, ctrl, order);
		if (stamped)
			t1 = dev_clock();
		r.status = wait_cqe(&q, &s, ctrl, a->l.deadline_ticks, rering, &r);
		t2 = dev_clock();
		if (r.status != DEV_OK)
			break;
		t[3 * i] = t0;
		t[3 * i + 1] = t1;
		t[3 * i + 2] = t2;
		if (++slot == a->l.s.count)
			slot = 0;
	}
	state_store(a->q.cursor, &s);
	dev_result_close(&r, a->l.result, i, 3, t, a->l.stamps, baseline);
}

/* One direction of a round trip: a small put is its own flag; a big one is followed by an 8 B inline flag on the same
 * QP (RC keeps the order), both rung by one doorbell. */
DEV uint64_t rtt_post(const struct nic_queue *q, struct put_state *s,
		      const struct wqe_put *p, uint64_t flag_raddr, const uint64_t *d,
		      int order, int kind)
{
	uint64_t ctrl;

	if (kind == RTT_BIG) {
		const struct wqe_put flag = {0, flag_raddr, 0, p->rkey, 8};

		build(q, s, p, d, 0);
		ctrl = build(q, s, &flag, d, 1);
	} else {
		ctrl = build(q, s, p, d, kind == RTT_INLINE);
	}
	ring(q, s, ctrl, order);
	return ctrl;
}

/* Completions of one round, outside the timed window: both WQEs of a big put ask for a CQE. */
DEV uint32_t rtt_reap(const struct nic_queue *q, struct put_state *s, uint64_t deadline,
		      struct dev_result *r, int kind)
{
	uint32_t status = wait_cqe(q, s, 0, deadline, RERING_NONE, r);

	if (status == DEV_OK && kind == RTT_BIG)
		status = wait_cqe(q, s, 0, deadline, RERING_NONE, r);
	return status;
}

/* One round as both endpoints.  Returns the status; *t1 is when A saw the reply. */
DEV uint32_t rtt_round(const struct rtt_args *a, struct put_state *sa,
		       struct put_state *sb, const uint64_t *d, uint64_t off, uint64_t *t,
		       int order, int kind)
{
	const uint64_t mask = kind == RTT_BIG ? ~0ull : payload_head_mask(a->l.bytes);
	const struct wqe_put pa = {a->l.s.laddr + off, a->l.s.raddr + off, a->l.s.lkey,
				   a->l.s.rkey, a->l.bytes};
	const struct wqe_put pb = {a->r.s.laddr + off, a->r.s.raddr + off, a->r.s.lkey,
				   a->r.s.rkey, a->l.bytes};
	const uint64_t small_off = kind == RTT_BIG ? 0 : off;
	uint32_t status;

	t[0] = dev_clock();
	rtt_post(&a->qa, sa, &pa, a->flag_b_raddr, d, order, kind);
	status = dev_wait_flag(a->r.flag_b + small_off, d[0], mask, a->l.deadline_ticks);
	if (status != DEV_OK)
		return status;
	rtt_post(&a->qb, sb, &pb, a->flag_a_raddr, d, order, kind);
	status = dev_wait_flag(a->r.flag_a + small_off, d[0], mask, a->l.deadline_ticks);
	t[1] = dev_clock();
	return status;
}

DEV void rtt_loop(const struct rtt_args *a, int order, int kind)
{
	DEV_SCRATCH(uint64_t, t, 2 * PUT_OPS_MAX);
	DEV_SCRATCH(uint64_t, baseline, DEV_BASELINE);
	struct put_state sa = state_load(a->qa.cursor), sb = state_load(a->qb.cursor);
	struct dev_result r;
	uint32_t i, slot = 0;
	uint64_t d[4], stamp[2];

	dev_result_open(&r);
	dev_timer_baseline(baseline, DEV_BASELINE);
	for (i = 0; i < a->l.ops; i++) {
		const uint64_t off = (uint64_t)slot * a->l.s.stride;

		payload_words(d, a->l.seq0 + i, kind != RTT_POINTER);
		if (kind != RTT_INLINE) {
			payload_store_head(a->l.s.src + off, d[0], a->l.bytes);
			payload_store_head(a->r.s.src + off, d[0], a->l.bytes);
		}
		r.status = rtt_round(a, &sa, &sb, d, off, stamp, order, kind);
		if (r.status == DEV_OK)
			r.status = rtt_reap(&a->qa, &sa, a->l.deadline_ticks, &r, kind);
		if (r.status == DEV_OK)
			r.status = rtt_reap(&a->qb, &sb, a->l.deadline_ticks, &r, kind);
		if (r.status != DEV_OK)
			break;
		t[2 * i] = stamp[0];
		t[2 * i + 1] = stamp[1];
		if (++slot == a->l.s.count)
			slot = 0;
	}
	state_store(a->qa.cursor, &sa);
	state_store(a->qb.cursor, &sb);
	dev_result_close(&r, a->l.result, i, 2, t, a->l.stamps, baseline);
}

/* A round trip whose responder waits a known time before it answers: does the clock measure what was inserted?  It answers when
 * the request is complete, and one to two gap_ticks later, so that its answer meets an idle NIC on any phase of its loops,
 * whether it waits or not. */
DEV uint32_t hold_round(const struct rtt_args *a, struct put_state *sa,
			struct put_state *sb, const uint64_t *d, uint64_t seq,
			uint64_t *t, struct dev_result *r)
{
	const uint64_t
		off = (seq - a->l.seq0) % a->l.s.count * a->l.s.stride,
		/* Every other one does not wait: the machine's own drift meets both alike. */
		hold = (seq & 1 ? a->hold_ticks : 0) + a->gap_ticks +
		       dev_phase(seq, 8, a->gap_ticks);
	const struct wqe_put pa = {0, a->l.s.raddr + off, 0, a->l.s.rkey, 8};
	const struct wqe_put pb = {0, a->r.s.raddr + off, 0, a->r.s.rkey, 8};
	uint64_t from, now;
	uint32_t status;

	t[0] = dev_clock();
	rtt_post(&a->qa, sa, &pa, 0, d, ORDER_SYS_FENCE, RTT_INLINE);
	status = dev_wait_flag(a->r.flag_b + off, d[0], ~0ull, a->l.deadline_ticks);
	if (status == DEV_OK)
		status = rtt_reap(&a->qa, sa, a->l.deadline_ticks, r, RTT_INLINE);
	if (status != DEV_OK)
		return status;
	from = dev_clock();
	while ((now = dev_clock()) - from < hold)
		;
	rtt_post(&a->qb, sb, &pb, 0, d, ORDER_SYS_FENCE, RTT_INLINE);
	status = dev_wait_flag(a->r.flag_a + off, d[0], ~0ull, a->l.deadline_ticks);
	t[1] = dev_clock();
	t[2] = now - from;
	return status;
}

DEV void hold_loop(const struct rtt_args *a)
{
	DEV_SCRATCH(uint64_t, t, 3 * PUT_OPS_MAX);
	DEV_SCRATCH(uint64_t, baseline, DEV_BASELINE);
	struct put_state sa = state_load(a->qa.cursor), sb = state_load(a->qb.cursor);
	struct dev_result r;
	uint64_t d[4];
	uint32_t i;

	dev_result_open(&r);
	dev_timer_baseline(baseline, DEV_BASELINE);
	for (i = 0; i < a->l.ops; i++) {
		payload_words(d, a->l.seq0 + i, 1);
		dev_pause(dev_phase(a->l.seq0 + i, 7, a->gap_ticks));
		r.status = hold_round(a, &sa, &sb, d, a->l.seq0 + i, &t[3 * i], &r);
		if (r.status == DEV_OK)
			r.status = rtt_reap(&a->qb, &sb, a->l.deadline_ticks, &r,
					    RTT_INLINE);
		if (r.status != DEV_OK)
			break;
	}
	state_store(a->qa.cursor, &sa);
	state_store(a->qb.cursor, &sb);
	dev_result_close(&r, a->l.result, i, 3, t, a->l.stamps, baseline);
}
DEV_KERNEL(rtt_hold, struct rtt_args, hold_loop(a))
DEV_C const struct dev_kernel DEV_NAME(rtt_hold_kernel) = DEV_ENTRY(rtt_hold,
								    struct rtt_args);

/* Each variant is a kernel of its own: it holds only its own fences and no option test. */
#define PUT_KERNELS(n, order)                                                           \
	DEV_KERNEL(put_##n##_pointer_plain, struct put_args, put_loop(a, order, 0, 0))  \
	DEV_KERNEL(put_##n##_pointer, struct put_args,                                  \
		   put_loop(a, order, 0, PUT_STAMPED))                                  \
	DEV_KERNEL(put_##n##_inline_plain, struct put_args,                             \
		   put_loop(a, order, PUT_INLINE, 0))                                   \
	DEV_KERNEL(put_##n##_inline, struct put_args,                                   \
		   put_loop(a, order, PUT_INLINE, PUT_STAMPED))                         \
	DEV_KERNEL(rtt_##n##_inline, struct rtt_args, rtt_loop(a, order, RTT_INLINE))   \
	DEV_KERNEL(rtt_##n##_pointer, struct rtt_args, rtt_loop(a, order, RTT_POINTER)) \
	DEV_KERNEL(rtt_##n##_big, struct rtt_args, rtt_loop(a, order, RTT_BIG))
#define PUT_ENTRIES(n)                                                       \
	{                                                                    \
		{DEV_ENTRY(put_##n##_pointer_plain, struct put_args),        \
		 DEV_ENTRY(put_##n##_pointer, struct put_args)},             \
			{DEV_ENTRY(put_##n##_inline_plain, struct put_args), \
			 DEV_ENTRY(put_##n##_inline, struct put_args)},      \
	}
#define RTT_ENTRIES(n)                                                 \
	{                                                              \
		DEV_ENTRY(rtt_##n##_inline, struct rtt_args),          \
			DEV_ENTRY(rtt_##n##_pointer, struct rtt_args), \
			DEV_ENTRY(rtt_##n##_big, struct rtt_args),     \
	}

PUT_KERNELS(none, ORDER_NONE)
PUT_KERNELS(gpu_fence, ORDER_GPU_FENCE)
PUT_KERNELS(gpu_fence_dbrec, ORDER_GPU_FENCE_DBREC)
PUT_KERNELS(gpu_release, ORDER_GPU_RELEASE)
PUT_KERNELS(threadfence2, ORDER_THREADFENCE2)
PUT_KERNELS(sys_release, ORDER_SYS_RELEASE)
PUT_KERNELS(sys_fence, ORDER_SYS_FENCE)

/* In the order of enum put_order. */
DEV_C const struct dev_kernel DEV_NAME(put_kernels)[ORDER_COUNT][2][2] = {
	PUT_ENTRIES(none),	  PUT_ENTRIES(gpu_fence),    PUT_ENTRIES(gpu_fence_dbrec),
	PUT_ENTRIES(gpu_release), PUT_ENTRIES(threadfence2), PUT_ENTRIES(sys_release),
	PUT_ENTRIES(sys_fence),
};
DEV_C const struct dev_kernel DEV_NAME(rtt_kernels)[ORDER_COUNT][RTT_KINDS] = {
	RTT_ENTRIES(none),	  RTT_ENTRIES(gpu_fence),    RTT_ENTRIES(gpu_fence_dbrec),
	RTT_ENTRIES(gpu_release), RTT_ENTRIES(threadfence2), RTT_ENTRIES(sys_release),
	RTT_ENTRIES(sys_fence),
};
