/* SPDX-License-Identifier: Apache-2.0
 * proxy_rate_dev.c: a window of many messages through R rings, one producer a ring: a thread of one warp each on a GPU, one
 * host thread that serves all of them in turn otherwise.
 */
#include "path/proxy_ring.h"

struct rate_ring {
	uint64_t next, end; /* the entry to write; the first that is not ours */
	uint64_t taken;	    /* the worker's progress as last read */
};

DEV uint32_t rate_lanes(void)
{
	return DEV_WARPS ? DEV_WARP : 1;
}

DEV uint32_t rate_offset(const struct proxy_rate_args *a, uint32_t ring, uint64_t number)
{
	return ((uint32_t)number * a->rings + ring) * a->l.s.stride;
}

/* Payload of every message, in memory before the window opens; shares of the rings. */
DEV void rate_prepare(const struct proxy_rate_args *a, struct rate_ring *ring)
{
	for (uint32_t i = DEV_LANE; i < a->l.ops; i += rate_lanes())
		payload_store_head(a->l.s.src + (size_t)i * a->l.s.stride,
				   payload_word(a->l.seq0 + i, 0), a->l.bytes);
	for (uint32_t r = DEV_LANE; r < a->rings; r += rate_lanes()) {
		ring[r].next = ring[r].taken = 0;
		ring[r].end = (a->l.ops - r + a->rings - 1) / a->rings;
	}
	/* This thread and the workers' NIC: the payload, before any descriptor. */
	dev_fence_sys();
}

/* One message into ring r if there is room.  1: enqueued; 0: full. */
DEV uint32_t rate_tuned(const struct proxy_rate_args *a, const struct proxy_view *v,
			struct rate_ring *x, uint32_t r)
{
	if (x->next - x->taken >= PROXY_RING_ENTRIES) {
		x->taken = proxy_progress(v);
		if (x->next - x->taken >= PROXY_RING_ENTRIES)
			return 0;
	}
	proxy_enqueue(v, x->next, rate_offset(a, r, x->next), a->l.bytes, 0);
	x->next++;
	return 1;
}

/* This thread's rings, in turn, until all of its messages are enqueued. */
DEV uint32_t rate_enqueue(const struct proxy_rate_args *a, struct rate_ring *ring,
			  struct dev_result *res, int order)
{
	struct dev_patience p = {0, 0};
	uint32_t status = DEV_OK, left, moved;

	do {
		left = moved = 0;
		for (uint32_t r = DEV_LANE; r < a->rings; r += rate_lanes()) {
			const struct proxy_view v = proxy_ring_at(&a->v, r);
			struct rate_ring *x = &ring[r];

			if (x->next == x->end)
				continue;
			left++;
			if (order == PROXY_SYS_RELEASE) {
				status = proxy_enqueue_baseline(
					&v, rate_offset(a, r, x->next), a->l.bytes,
					a->l.deadline_ticks, res);
				x->next++;
				moved++;
			} else if (rate_tuned(a, &v, x, r)) {
				moved++;
			} else {
				status = proxy_status(dev_ld8b(v.counter), res);
			}
			if (status != DEV_OK)
				return status;
		}
		if (moved)
			p.start = p.spins = 0;
		else if (left && dev_turn(&p) > a->l.deadline_ticks)
			return DEV_DEADLINE;
	} while (left);
	return DEV_OK;
}

DEV uint32_t rate_drain(const struct proxy_rate_args *a, const struct rate_ring *ring,
			struct dev_result *res)
{
	uint32_t status = DEV_OK;

	for (uint32_t r = DEV_LANE; r < a->rings && status == DEV_OK; r += rate_lanes()) {
		const struct proxy_view v = proxy_ring_at(&a->v, r);

		status = proxy_wait_count(&v, ring[r].end, a->l.deadline_ticks, res);
	}
	return status;
}

DEV void rate_loop(const struct proxy_rate_args *a, int order)
{
	DEV_SCRATCH(struct rate_ring, ring, PROXY_RINGS_MAX);
	DEV_SCRATCH(uint64_t, baseline, DEV_BASELINE);
	DEV_SCRATCH(uint32_t, failed,
		    2); /* the worst status of all threads, its syndrome */
	struct dev_result r;
	uint64_t t0, t1;

	dev_result_open(&r);
	dev_timer_baseline(baseline, DEV_BASELINE);
	failed[0] = failed[1] = 0;
	rate_prepare(a, ring);
	DEV_SYNC();
	t0 = dev_clock();
	r.status = rate_enqueue(a, ring, &r, order);
	if (r.status == DEV_OK)
		r.status = rate_drain(a, ring, &r);
	DEV_SYNC();
	t1 = dev_clock();
	if (r.status != DEV_OK) {
		failed[0] = r.status;
		failed[1] = r.syndrome;
	}
	DEV_SYNC();
	if (DEV_LANE)
		return;
	r.status = failed[0];
	r.syndrome = failed[1];
	a->l.stamps[0] = t1 - t0;
	dev_result_close(&r, a->l.result, r.status == DEV_OK ? a->l.ops : 0, 0, NULL,
			 NULL, baseline);
}

DEV_KERNEL(proxy_rate_tuned, struct proxy_rate_args, rate_loop(a, PROXY_SETTLED))
DEV_KERNEL(proxy_rate_baseline, struct proxy_rate_args, rate_loop(a, PROXY_SYS_RELEASE))

DEV_C const struct dev_kernel DEV_NAME(proxy_rate_kernels)[PROXY_ORDERS] = {
	DEV_ENTRY_THREADS(proxy_rate_tuned, struct proxy_rate_args, DEV_WARP),
	DEV_ENTRY_THREADS(proxy_rate_tuned, struct proxy_rate_args, DEV_WARP),
	DEV_ENTRY_THREADS(proxy_rate_baseline, struct proxy_rate_args, DEV_WARP),
};
