/* SPDX-License-Identifier: Apache-2.0
 * proxy_ring.h: the SM's side of a proxy's ring: enqueue as the tuned and as the baseline protocol do, and wait.
 *
 * tuned: one producer a ring, so that no atomic reserves an entry; progress is read only when the ring looks full; validity
 * sits inside the descriptor, so that one posted 16 B store enqueues.
 * baseline: any number of producers: an atomic of the SM's memory reserves the entry, a look at the host says whether it is
 * free, every time, and a release at system scope makes the descriptor valid.
 */
#ifndef PUTSCOPE_PROXY_RING_H
#define PUTSCOPE_PROXY_RING_H
#include "path/dev_loop.h"

DEV struct proxy_view proxy_ring_at(const struct proxy_view *v, uint32_t ring)
{
	struct proxy_view r = *v;

	r.ring += (size_t)ring * PROXY_RING_BYTES;
	r.counter += (size_t)ring * PROXY_LINE_BYTES;
	r.reserve += (size_t)ring * PROXY_LINE_BYTES;
	return r;
}

DEV uint8_t *proxy_entry(const struct proxy_view *v, uint64_t number)
{
	return v->ring + (size_t)(number & (PROXY_RING_ENTRIES - 1)) * PROXY_DESC_BYTES;
}

/* Entries that the worker has taken: a read across PCIe. */
DEV uint64_t proxy_progress(const struct proxy_view *v)
{
	return dev_ld8b(v->ring + PROXY_PROGRESS_OFF);
}

DEV void proxy_enqueue(const struct proxy_view *v, uint64_t number, uint32_t off,
		       uint32_t bytes, uint32_t flag)
{
	uint32_t tag = (uint32_t)number + 1;

	dev_st16_whole(proxy_entry(v, number), proxy_desc_word(off, tag, bytes),
		       proxy_desc_word(off, tag, bytes >> 16 | flag));
}

/* The worker's last word in a counter. */
DEV uint32_t proxy_status(uint64_t count, struct dev_result *r)
{
	if (!(count & PROXY_ERROR))
		return DEV_OK;
	r->syndrome = (uint32_t)count & 0xffff;
	return DEV_ERROR_CQE;
}

/* A worker that failed takes nothing more. */
DEV uint32_t proxy_wait_room(const struct proxy_view *v, uint64_t number,
			     uint64_t deadline, struct dev_result *r)
{
	struct dev_patience p = {0, 0};
	uint32_t status = DEV_OK;

	while (number - proxy_progress(v) >= PROXY_RING_ENTRIES && status == DEV_OK) {
		if (dev_turn(&p) > deadline)
			return DEV_DEADLINE;
		status = proxy_status(dev_ld8b(v->counter), r);
	}
	return status;
}

DEV uint32_t proxy_enqueue_baseline(const struct proxy_view *v, uint32_t off,
				    uint32_t bytes, uint64_t deadline,
				    struct dev_result *r)
{
	const uint64_t number = dev_atomic_add_gpu8b(v->reserve, 1);
	const uint32_t tag = (uint32_t)number + 1;
	uint32_t status = proxy_wait_room(v, number, deadline, r);

	dev_st8b(proxy_entry(v, number) + 8, proxy_desc_word(off, tag, bytes >> 16));
	/* SM and worker's NIC: payload and second word are in memory before the first word makes the entry valid. */
	dev_st_release_sys8b(proxy_entry(v, number), proxy_desc_word(off, tag, bytes));
	return status;
}

DEV uint32_t proxy_wait_count(const struct proxy_view *v, uint64_t want,
			      uint64_t deadline, struct dev_result *r)
{
	struct dev_patience p = {0, 0};
	uint64_t done;

	while ((done = dev_ld8b(v->counter)) < want)
		if (dev_turn(&p) > deadline)
			return DEV_DEADLINE;
	return proxy_status(done, r);
}
#endif
