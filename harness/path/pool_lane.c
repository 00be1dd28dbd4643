/* SPDX-License-Identifier: Apache-2.0
 * pool_lane.c: a worker's loop: take descriptors, post them as one chain, reap, count.
 */
#include "err.h"
#include "path/pool_lane.h"
#include "sm/dev.h"

#define LOOKS_PATIENT 4096u /* looks of the worker that found nothing; see dev_give_way */
#define WC_MAX 16
#define SYNDROME_POST 0x02    /* nothing came of ibv_post_send: the entry is at fault */
#define SYNDROME_RETRY 0x15   /* as in an error CQE: transport retry counter exceeded */
#define SYNDROME_ABORTED 0x13 /* remote operation error: stands for all others */

struct desc {
	uint32_t off, bytes;
	bool flag;
};

void lane_bind(struct pool_lane *l, const struct env *e, const struct nic_qp *qp,
	       enum end from, bool inlined)
{
	const struct endpoint *me = &e->end[from], *peer = &e->end[!from];

	l->turn = 0;
	l->posted = l->reaped = l->posts = 0;
	l->broken = false;
	if (!qp)
		return; /* that endpoint is the other rank's */
	l->qp = qp->qp;
	l->cq = qp->cq;
	l->src = (uint64_t)(uintptr_t)me->src;
	l->dst = peer->dst_addr;
	l->flag_dst = l->dst + DATA_BYTES;
	l->flags = inlined ? IBV_SEND_INLINE : 0;
	for (unsigned i = 0; i < POOL_BATCH_MAX; i++) {
		struct ibv_send_wr *both[] = {&l->wr[i], &l->flag_wr[i]};
		struct ibv_sge *sge[] = {&l->sge[i], &l->flag_sge[i]};

		for (unsigned k = 0; k < 2; k++) {
			memset(both[k], 0, sizeof *both[k]);
			both[k]->sg_list = sge[k];
			both[k]->num_sge = 1;
			both[k]->opcode = IBV_WR_RDMA_WRITE;
			both[k]->wr.rdma.rkey = peer->dst_rkey;
			sge[k]->lkey = me->src_mr->lkey;
		}
		l->flag_wr[i].wr.rdma.remote_addr = l->flag_dst;
		l->flag_sge[i].length = 8;
	}
}

static inline void tell(const struct pool_ring *r, uint64_t count)
{
	/* Worker and SM: the completion was seen before the SM sees the count. */
	__atomic_store_n((uint64_t *)r->counter, count, __ATOMIC_RELEASE);
}

/* Whoever waits for one of the lane's rings learns why. */
static void lane_fail(struct pool_lane *l, uint32_t syndrome)
{
	l->broken = true;
	for (uint32_t i = 0; i < l->rings; i++)
		tell(l->ring[i], PROXY_ERROR | syndrome);
}

/* One descriptor, if both of its words carry the tag of the entry that comes next. */
static inline bool take(struct pool_ring *r, struct desc *d)
{
	const uint8_t *e =
		r->mem + (size_t)(r->next & (PROXY_RING_ENTRIES - 1)) * PROXY_DESC_BYTES;
	uint64_t tag = (r->next + 1) & 0xffff, lo = dev_ld8b(e), hi;

	if ((lo >> 16 & 0xffff) != tag)
		return false;
	hi = dev_ld8b(e + 8);
	if ((hi >> 16 & 0xffff) != tag)
		return false;
	/* SM and worker: the payload was written before the descriptor became valid. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	d->off = (uint32_t)(lo >> 32);
	d->bytes = (uint32_t)(lo & 0xffff) | (uint32_t)(hi & (0xffff & ~PROXY_FLAG))
						     << 16;
	d->flag = hi & PROXY_FLAG;
	r->next++;
	return true;
}

/* The entries before r->next have been read: the producer may write them anew. */
static inline void free_entries(const struct pool_ring *r)
{
	__atomic_store_n((uint64_t *)(r->mem + PROXY_PROGRESS_OFF), r->next,
			 __ATOMIC_RELEASE);
}

/* Work request i of the chain behind `last`; the new last one. */
static inline struct ibv_send_wr *chain(struct pool_lane *l, unsigned i,
					const struct desc *d, struct ibv_send_wr *last)
{
	struct ibv_send_wr *w = &l->wr[i], *f = &l->flag_wr[i];

	l->sge[i].addr = l->src + d->off;
	l->sge[i].length = d->bytes;
	w->wr.rdma.remote_addr = l->dst + d->off;
	w->send_flags = l->flags;
	if (last)
		last->next = w;
	if (!d->flag)
		return w;
	l->flag_sge[i].addr = l->src + d->off;
	f->send_flags = 0;
	w->next = f;
	return f;
}

/* The chain of n descriptors that ends at `last`: one call, one CQE. */
static inline void post(struct pool_lane *l, unsigned n, struct ibv_send_wr *last)
{
	struct ibv_send_wr *bad;
	int rc;

	l->posted += n;
	l->posts++;
	last->next = NULL;
	last->send_flags |= IBV_SEND_SIGNALED;
	last->wr_id = l->posted;
	rc = ibv_post_send(l->qp, &l->wr[0], &bad);
	if (rc) {
		err_say(-rc, "ibv_post_send of %u chained work requests: %s", n,
			strerror(rc));
		lane_fail(l, SYNDROME_POST);
	}
}

/* Up to `batch` descriptors, ring after ring, as they are there: nobody waits for a chain to become full. */
static inline bool take_and_post(struct pool_lane *l, uint32_t batch)
{
	const uint64_t room = LANE_DEPTH - (l->posted - l->reaped);
	const unsigned limit = room < batch ? (unsigned)room : batch;
	struct ibv_send_wr *last = NULL;
	uint32_t at = l->turn;
	unsigned n = 0;

	for (uint32_t i = 0; i < l->rings && n < limit; i++) {
		struct pool_ring *r = l->ring[at];
		const unsigned before = n;
		struct desc d;

		for (; n < limit && take(r, &d); n++) {
			last = chain(l, n, &d, last);
			l->owner[(l->posted + n) % LANE_DEPTH] = (uint8_t)at;
		}
		if (n != before)
			free_entries(r);
		if (++at == l->rings)
			at = 0;
	}
	if (!n)
		return false;
	l->turn = at;
	post(l, n, last);
	return true;
}

/* Everything posted up to number `upto` is complete: count it to the rings that it came from. */
static inline void count(struct pool_lane *l, uint64_t upto)
{
	while (l->reaped < upto) {
		const uint8_t who = l->owner[l->reaped % LANE_DEPTH];
		struct pool_ring *r = l->ring[who];

		do {
			r->done++;
			l->reaped++;
		} while (l->reaped < upto && l->owner[l->reaped % LANE_DEPTH] == who);
		tell(r, r->done);
	}
}

/* n completions of ibv_poll_cq, or its error; false: the lane is broken. */
static inline bool good(struct pool_lane *l, const struct ibv_wc *wc, int n)
{
	if (n < 0)
		lane_fail(l, SYNDROME_ABORTED);
	for (int i = 0; i < n; i++) {
		if (wc[i].status == IBV_WC_SUCCESS)
			continue;
		lane_fail(l, wc[i].status == IBV_WC_RETRY_EXC_ERR ? SYNDROME_RETRY
								  : SYNDROME_ABORTED);
		return false;
	}
	return n >= 0;
}

static inline bool reap(struct pool_lane *l)
{
	struct ibv_wc wc[WC_MAX];
	int n;

	if (l->reaped == l->posted)
		return false;
	n = ibv_poll_cq(l->cq, WC_MAX, wc);
	if (!n || !good(l, wc, n))
		return n != 0;
	count(l, wc[n - 1].wr_id);
	return true;
}

static inline bool take_and_post_stamped(struct pool_lane *l, uint64_t *stamps)
{
	struct pool_ring *r = l->ring[0];
	struct ibv_send_wr *last;
	struct desc d;
	uint64_t *t;

	if (l->posted - l->reaped == LANE_DEPTH || !take(r, &d))
		return false;
	t = stamps + (r->next - 1) * POOL_STAMPS;
	t[POOL_FOUND] = clock_host_ticks();
	last = chain(l, 0, &d, NULL);
	l->owner[l->posted % LANE_DEPTH] = 0;
	free_entries(r);
	t[POOL_READY] = clock_host_ticks();
	post(l, 1, last);
	t[POOL_POSTED] = clock_host_ticks();
	return true;
}

static inline bool reap_stamped(struct pool_lane *l, uint64_t *stamps)
{
	uint64_t *t = stamps + l->reaped * POOL_STAMPS, looked, reaped;
	struct ibv_wc wc;
	int n;

	if (l->reaped == l->posted)
		return false;
	looked = clock_host_ticks();
	n = ibv_poll_cq(l->cq, 1, &wc);
	if (!n)
		return false;
	reaped = clock_host_ticks();
	if (!good(l, &wc, n))
		return true;
	/* Stored by the one, awaited by the other: what follows the store is in nobody's way. */
	count(l, wc.wr_id);
	t[POOL_TOLD] = clock_host_ticks();
	t[POOL_LOOKED] = looked;
	t[POOL_REAPED] = reaped;
	return true;
}

static inline bool echo(struct pool_lane *l)
{
	bool found = false;

	for (uint32_t i = 0; i < l->rings; i++) {
		struct pool_ring *r = l->ring[i];
		struct desc d;

		while (take(r, &d)) {
			tell(r, ++r->done);
			free_entries(r);
			found = true;
		}
	}
	return found;
}

static inline __attribute__((always_inline)) bool
lane_turn(struct pool_worker *w, struct pool_lane *l, enum pool_mode mode)
{
	if (mode == POOL_ECHO)
		return echo(l);
	if (mode == POOL_STAMPED)
		return take_and_post_stamped(l, w->stamps) | reap_stamped(l, w->stamps);
	return take_and_post(l, w->batch) | reap(l);
}

static inline __attribute__((always_inline)) void serve(struct pool_worker *w,
							enum pool_mode mode)
{
	uint32_t idle = 0;

	while (w->running) {
		bool worked = false;

		for (uint32_t i = 0; i < w->lanes; i++)
			if (!w->lane[i].broken)
				worked |= lane_turn(w, &w->lane[i], mode);
		idle = worked ? 0 : idle + 1;
		if (idle > LOOKS_PATIENT && idle % 16 == 0)
			dev_give_way();
		else if (idle)
			dev_relax();
	}
}

/* A loop of its own for each mode: none tests for it while it works. */
void lane_serve(struct pool_worker *w)
{
	switch (w->mode) {
	case POOL_POST:
		serve(w, POOL_POST);
		break;
	case POOL_STAMPED:
		serve(w, POOL_STAMPED);
		break;
	case POOL_ECHO:
		serve(w, POOL_ECHO);
		break;
	}
}
