/* SPDX-License-Identifier: Apache-2.0
 * proxy_dev.c: the SM's half of the CPU proxy: one put enqueued, then a poll of the host-resident counter.
 *
 * The ring is deeper than the puts in flight, so the tuned protocol never looks for room here.
 *
 * The tuned descriptor's validity says nothing about the payload: on an H200 one put in some 100,000 carried the old first
 * word when nothing stood between payload store and descriptor store.  So either a system fence stands there (sys-fence,
 * inside the window, as on the gpu path), or the payload was visible before the put began (settled: the fence is the
 * producer's).  The baseline's release orders the payload too.
 */
#include "path/proxy_ring.h"

DEV void proxy_loop(const struct proxy_args *a, int order, int stamped)
{
	DEV_SCRATCH(uint64_t, t, 3 * PUT_OPS_MAX);
	DEV_SCRATCH(uint64_t, baseline, DEV_BASELINE);
	struct dev_result r;
	uint32_t i, slot = 0;

	dev_result_open(&r);
	dev_timer_baseline(baseline, DEV_BASELINE);
	for (i = 0; i < a->l.ops; i++) {
		const uint32_t off = slot * a->l.s.stride;
		uint64_t t0, t1 = 0, t2;

		payload_store_head(a->l.s.src + off, payload_word(a->l.seq0 + i, 0),
				   a->l.bytes);
		if (order == PROXY_SETTLED)
			dev_fence_sys(); /* SM and worker's NIC: the payload is in memory before the window opens */
		t0 = dev_clock();
		if (order == PROXY_SYS_FENCE)
			dev_fence_sys(); /* SM and worker's NIC: the payload is in memory before the descriptor is valid */
		if (order == PROXY_SYS_RELEASE)
			r.status = proxy_enqueue_baseline(&a->v, off, a->l.bytes,
							  a->l.deadline_ticks, &r);
		else
			proxy_enqueue(&a->v, i, off, a->l.bytes, 0);
		if (stamped)
			t1 = dev_clock();
		if (r.status == DEV_OK)
			r.status =
				proxy_wait_count(&a->v, i + 1, a->l.deadline_ticks, &r);
		t2 = dev_clock();
		if (r.status != DEV_OK)
			break;
		t[3 * i] = t0;
		t[3 * i + 1] = t1;
		t[3 * i + 2] = t2;
		if (++slot == a->l.s.count)
			slot = 0;
	}
	dev_result_close(&r, a->l.result, i, 3, t, a->l.stamps, baseline);
}

/* Request and reply through two rings, by one SM that plays both endpoints.  A small put is its own flag; behind a big
 * one the worker puts an 8 B flag on the same QP. */
DEV uint32_t proxy_round(const struct proxy_rtt_args *a, uint64_t number, uint64_t head,
			 uint32_t off, uint64_t *t, int big)
{
	const struct proxy_view vb = proxy_ring_at(&a->v, 1);
	const uint64_t mask = big ? ~0ull : payload_head_mask(a->l.bytes);
	const uint32_t flag_off = big ? 0 : off, flag = big ? PROXY_FLAG : 0;
	uint32_t status;

	t[0] = dev_clock();
	dev_fence_sys(); /* both payloads, before the first descriptor */
	proxy_enqueue(&a->v, number, off, a->l.bytes, flag);
	status = dev_wait_flag(a->r.flag_b + flag_off, head, mask, a->l.deadline_ticks);
	if (status != DEV_OK)
		return status;
	proxy_enqueue(&vb, number, off, a->l.bytes, flag);
	status = dev_wait_flag(a->r.flag_a + flag_off, head, mask, a->l.deadline_ticks);
	t[1] = dev_clock();
	return status;
}

DEV void proxy_rtt_loop(const struct proxy_rtt_args *a, int big)
{
	DEV_SCRATCH(uint64_t, t, 2 * PUT_OPS_MAX);
	DEV_SCRATCH(uint64_t, baseline, DEV_BASELINE);
	const struct proxy_view vb = proxy_ring_at(&a->v, 1);
	struct dev_result r;
	uint64_t stamp[2];
	uint32_t i, slot = 0;

	dev_result_open(&r);
	dev_timer_baseline(baseline, DEV_BASELINE);
	for (i = 0; i < a->l.ops; i++) {
		const uint32_t off = slot * a->l.s.stride;
		const uint64_t head = payload_word(a->l.seq0 + i, 0);

		payload_store_head(a->l.s.src + off, head, a->l.bytes);
		payload_store_head(a->r.s.src + off, head, a->l.bytes);
		r.status = proxy_round(a, i, head, off, stamp, big);
		if (r.status == DEV_OK)
			r.status =
				proxy_wait_count(&a->v, i + 1, a->l.deadline_ticks, &r);
		if (r.status == DEV_OK)
			r.status = proxy_wait_count(&vb, i + 1, a->l.deadline_ticks, &r);
		if (r.status != DEV_OK)
			break;
		t[2 * i] = stamp[0];
		t[2 * i + 1] = stamp[1];
		if (++slot == a->l.s.count)
			slot = 0;
	}
	dev_result_close(&r, a->l.result, i, 2, t, a->l.stamps, baseline);
}

DEV_KERNEL(proxy_settled_plain, struct proxy_args, proxy_loop(a, PROXY_SETTLED, 0))
DEV_KERNEL(proxy_settled, struct proxy_args, proxy_loop(a, PROXY_SETTLED, PUT_STAMPED))
DEV_KERNEL(proxy_sys_fence_plain, struct proxy_args, proxy_loop(a, PROXY_SYS_FENCE, 0))
DEV_KERNEL(proxy_sys_fence, struct proxy_args,
	   proxy_loop(a, PROXY_SYS_FENCE, PUT_STAMPED))
DEV_KERNEL(proxy_sys_release_plain, struct proxy_args,
	   proxy_loop(a, PROXY_SYS_RELEASE, 0))
DEV_KERNEL(proxy_sys_release, struct proxy_args,
	   proxy_loop(a, PROXY_SYS_RELEASE, PUT_STAMPED))
DEV_KERNEL(proxy_rtt, struct proxy_rtt_args, proxy_rtt_loop(a, 0))
DEV_KERNEL(proxy_rtt_big, struct proxy_rtt_args, proxy_rtt_loop(a, 1))

DEV_C const struct dev_kernel DEV_NAME(proxy_kernels)[PROXY_ORDERS][2] = {
	{DEV_ENTRY(proxy_settled_plain, struct proxy_args),
	 DEV_ENTRY(proxy_settled, struct proxy_args)},
	{DEV_ENTRY(proxy_sys_fence_plain, struct proxy_args),
	 DEV_ENTRY(proxy_sys_fence, struct proxy_args)},
	{DEV_ENTRY(proxy_sys_release_plain, struct proxy_args),
	 DEV_ENTRY(proxy_sys_release, struct proxy_args)},
};
DEV_C const struct dev_kernel DEV_NAME(proxy_rtt_kernels)[2] = {
	DEV_ENTRY(proxy_rtt, struct proxy_rtt_args),
	DEV_ENTRY(proxy_rtt_big, struct proxy_rtt_args),
};
