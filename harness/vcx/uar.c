/* SPDX-License-Identifier: Apache-2.0
 * uar.c: doorbell pages.
 *
 * A register in memory keeps one value.  A doorbell therefore means: look at the queue pair that it names and, where several
 * share the page, at the others of that page, since their doorbells may have been overwritten.  Counts of doorbells are a
 * lower bound.
 *
 * BlueFlame: a whole 64 B WQE is stored into a half of the register, its first word looks like a doorbell.  A register in
 * memory cannot tell when the rest has come, so every empty word holds a random poison and is taken by exchange, and the
 * bytes are used only if this queue pair alone owns the page, the half was known to be empty before, all words came within
 * a bounded wait, the index is the expected one, and the doorbell record, read again afterwards, ends behind this WQE:
 * nothing newer can then have been on its way into the half.  Otherwise the ring is read, and counted.  The poster's stores are
 * ordered: record, then one half, then the record, then the other half.  So a half becomes known to be empty again when
 * the last WQE posted was seen in the other half.
 */
#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "cqe.h"
#include "event.h"
#include "log.h"
#include "mem.h"
#include "nic.h"
#include "op.h"
#include "option.h"
#include "stamp.h"
#include "stats.h"
#include "uar.h"
#include "wqe.h"

#define WORDS (WQE_BB / 8)
#define HALVES 4u /* of one page */
#define HALF_BYTES (UAR_BFREG_BYTES / 2)
/* Looks for the rest of a WQE whose first word has come: over PCIe it takes a while. */
#define BF_LOOKS 1000u

struct half {
	bool unsure; /* words may still arrive, or have arrived and were not taken */
};
struct page {
	bool used, nc;
	bool bf; /* BlueFlame has been seen here */
	struct half half[HALVES];
	uint32_t *qps; /* handles */
	uint32_t n, cap;
};

static struct page pages[VCX_UARS];
static uint32_t active[VCX_UARS]; /* used pages, in any order */
static _Atomic uint32_t active_n;
static uint8_t *bar; /* the NIC's mapping of all pages */
static uint64_t poison[WORDS];
uint32_t uar_cq_top;

int uar_start(int fd)
{
	if (getrandom(poison, sizeof poison, 0) != sizeof poison)
		return EIO;
	for (unsigned i = 0; i < WORDS; i++)
		poison[i] |= 1;
	bar = mmap(NULL, (size_t)VCX_UARS * VCX_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
		   fd, 0);
	return bar == MAP_FAILED ? errno : 0;
}

static _Atomic uint64_t *half_words(uint32_t u, unsigned half)
{
	return (_Atomic uint64_t *)(void *)(bar + (size_t)u * VCX_PAGE + UAR_BF_OFFSET +
					    half * HALF_BYTES);
}

static void page_empty(uint32_t u)
{
	memset(bar + (size_t)u * VCX_PAGE, 0, VCX_PAGE);
	for (unsigned h = 0; h < HALVES; h++) {
		pages[u].half[h].unsure = false;
		for (unsigned i = 0; i < WORDS; i++)
			atomic_store(half_words(u, h) + i, poison[i]);
	}
	pages[u].bf = false;
}

int uar_alloc(bool nc, uint32_t *id)
{
	if (vcx_option.refuse & REFUSE_UAR_MAP)
		return EPERM;
	for (uint32_t u = 1; u < VCX_UARS; u++) {
		if (pages[u].used)
			continue;
		page_empty(u);
		pages[u].used = true;
		pages[u].nc = nc;
		pages[u].n = 0;
		active[active_n] = u;
		atomic_fetch_add(&active_n, 1);
		*id = u;
		return 0;
	}
	return ENOMEM;
}

int uar_free(uint32_t id)
{
	if (id >= VCX_UARS || !pages[id].used)
		return EINVAL;
	if (pages[id].n)
		return EBUSY;
	pages[id].used = false;
	for (uint32_t i = 0; i < active_n; i++) {
		if (active[i] != id)
			continue;
		active[i] = active[active_n - 1];
		atomic_fetch_sub(&active_n, 1);
		break;
	}
	return 0;
}

/* ---- doorbells ---- */
static bool lost_by_fault(void)
{
	return vcx_option.fault[FAULT_LOST_DOORBELL] &&
	       vcx_counts.doorbells == vcx_option.fault[FAULT_LOST_DOORBELL];
}

/* A doorbell for q named WQE `index`.  libmlx5 names the last WQE, others the next one: both are legal.  Late: it names a
 * WQE that is there, but the record does not include it yet. */
static void check_record(struct vcx_qp *q, uint32_t index)
{
	uint32_t pi = wqe_record(q);
	int16_t ahead = (int16_t)(pi - index);

	if (ahead > 0 || (ahead == 0 && (q->ci != pi || !wqe_is_posted(q, index))))
		return;
	if (ahead < 0 && !wqe_is_posted(q, index))
		return;
	if (vcx_option.record_recheck && !vcx_option.strict_record)
		vcx_counts.late_notes++;
	else
		vcx_violation(VIOLATION_LATE_RECORD, q->qpn,
			      "doorbell for WQE %u, record %u", index, pi);
	if (vcx_option.record_recheck)
		nic_wait(q);
}

/* Queue pairs that were destroyed lately: a doorbell of theirs may still be on its way. */
#define GONE 64u
static uint32_t gone[GONE], gone_at;

static bool is_gone(uint32_t qpn)
{
	for (unsigned i = 0; i < GONE; i++)
		if (gone[i] == qpn)
			return true;
	return false;
}

void uar_list(struct vcx_qp *q, bool listed)
{
	struct page *p = &pages[q->uar % VCX_UARS];
	uint32_t h = (uint32_t)(q - fab->qps);

	if (!listed) {
		gone[gone_at++ % GONE] = q->qpn;
		for (uint32_t i = 0; i < p->n; i++)
			if (p->qps[i] == h)
				p->qps[i--] = p->qps[--p->n];
		return;
	}
	if (p->n == p->cap) {
		uint32_t cap = p->cap ? 2 * p->cap : 8;
		uint32_t *v = realloc(p->qps, cap * sizeof *v);

		if (!v)
			return;
		p->qps = v;
		p->cap = cap;
	}
	p->qps[p->n++] = h;
}

static void wrong_number(uint64_t v, uint32_t qpn, uint32_t page)
{
	uint64_t swapped = __builtin_bswap64(v);
	const struct vcx_qp *q = fabric_qp(qpn), *s = fabric_qp((uint32_t)swapped >> 8);

	if (!q && is_gone(qpn))
		return;
	if (q)
		vcx_violation(VIOLATION_DOORBELL_WRONG_PAGE, qpn,
			      "page %u, its own is %u", page, q->uar);
	else if (s && s->pid == vcx_me)
		vcx_violation(VIOLATION_DOORBELL_BYTE_ORDER, s->qpn, "register 0x%016llx",
			      (unsigned long long)v);
	else
		vcx_violation(VIOLATION_DOORBELL_UNKNOWN_QP, qpn, "page %u", page);
}

/* Queue pairs of the page with work that their records show; `but` has just been run. */
static void run_others(const struct page *p, const struct vcx_qp *but)
{
	for (uint32_t i = 0; i < p->n; i++) {
		struct vcx_qp *q = &fab->qps[p->qps[i]];

		if (q != but && q->used && q->state >= QP_RTS && wqe_record(q) != q->ci)
			nic_run(q, NULL);
	}
}

static bool delays(void)
{
	return atomic_load_explicit(&fab->control.delays, memory_order_relaxed);
}

/* A doorbell between register and effect. */
struct rung {
	uint32_t u;
	bool has_bf;
	uint64_t v, seen;
	uint8_t bf[WQE_BB];
};

static void act(const struct rung *d, uint64_t due)
{
	struct ring r = {.seen = d->seen, .due = due, .bf = d->has_bf ? d->bf : NULL};
	struct vcx_qp *q = fabric_qp((uint32_t)d->v >> 8);

	if (stamp_on())
		r.acted = event_now();
	if (!q || q->pid != vcx_me || q->uar != d->u) {
		wrong_number(d->v, (uint32_t)d->v >> 8, d->u);
		q = NULL;
	} else {
		if (!vcx_option.sink)
			check_record(q, (uint32_t)(d->v >> 40) & WQE_INDEX);
		nic_run(q, &r);
	}
	if (pages[d->u].n > 1)
		run_others(&pages[d->u], q);
}

static void act_later(void *arg, uint64_t due)
{
	act(arg, due);
	free(arg);
}

/* Seen in the register: counted, and acted upon now or when its flight is over. */
static void doorbell(struct rung *d)
{
	static uint64_t last_due;
	uint64_t wait, due;
	struct rung *kept;

	vcx_counts.doorbells++;
	vcx_counts.blueflames += d->has_bf;
	if (lost_by_fault())
		return;
	wait = delays() ? fab->control.delay_ns[HOP_DOORBELL_FLIGHT] +
				  fab->control.extra_ns[HOP_DOORBELL_FLIGHT]
			: 0;
	due = wait ? d->seen + event_ticks(wait) : 0;
	if (last_due > due && event_pending() && last_due > event_now())
		due = last_due; /* a delay was just made shorter: order stays */
	kept = due ? malloc(sizeof *kept) : NULL;
	if (!kept) {
		act(d, 0);
		return;
	}
	last_due = due;
	*kept = *d;
	event_at(due, act_later, kept);
}

/* Arm word: sequence, command bit (solicited only), consumer index; as libmlx5 writes it to register and record. */
static void arm_by(struct vcx_cq *c, uint32_t word)
{
	c->arm_seen = word;
	cqe_arm(c, word & 0xffffff, word >> 24 & 1);
}

/* CQs share the register, so an arm may have been overwritten by another's: the records are looked at too. */
static void arm(uint64_t v)
{
	struct vcx_cq *c;

	fabric_lock();
	c = own_cq((uint32_t)v - fabric_cqn(0));
	if (c)
		arm_by(c, (uint32_t)(v >> 32));
	for (uint32_t h = 0; h <= uar_cq_top; h++) {
		uint32_t word;

		c = own_cq(h);
		if (!c || c->channel < 0)
			continue;
		word = be32toh(mem_read32(c->pid, c->rec + 4)); /* MLX5_CQ_ARM_DB */
		if (word != c->arm_seen)
			arm_by(c, word);
	}
	fabric_unlock();
}

/* Take a word if one was stored there. */
static bool take(_Atomic uint64_t *r, uint64_t empty, uint64_t *v)
{
	if (atomic_load_explicit(r, memory_order_relaxed) == empty)
		return false;
	*v = atomic_exchange(r, empty);
	return true;
}

/* The rest of a WQE whose first word was taken from this half.  False: a plain doorbell, or not all of it came in time. */
static bool take_rest(struct page *p, _Atomic uint64_t *w, uint64_t *bf)
{
	unsigned looks = 0, i = 1;

	while (i < WORDS) {
		if (take(&w[i], poison[i], &bf[i])) {
			p->bf = true;
			i++;
		} else if (!p->bf || ++looks > BF_LOOKS) {
			return false;
		}
	}
	return true;
}

/* Nothing newer than the WQE that was just seen has been posted: what the other half still holds is old. */
static void settle(struct page *p, uint32_t u, unsigned half, const struct vcx_qp *q,
		   uint32_t end)
{
	struct half *other = &p->half[half ^ 1];
	_Atomic uint64_t *w = half_words(u, half ^ 1);

	if (!other->unsure || wqe_record(q) != end)
		return;
	for (unsigned i = 1; i < WORDS; i++)
		atomic_store(&w[i], poison[i]);
	if (atomic_load(&w[0]) == poison[0] && wqe_record(q) == end)
		other->unsure = false;
}

/* The doorbell d may have come with its WQE: take that, if it is beyond doubt. */
static void blueflame(struct rung *d, struct page *p, unsigned half, uint64_t *bf)
{
	_Atomic uint64_t *w = half_words(d->u, half);
	struct vcx_qp *q = fabric_qp((uint32_t)d->v >> 8);
	const uint32_t index = (uint32_t)(d->v >> 40) & WQE_INDEX,
		       ds = (uint32_t)d->v & 0x3f,
		       end = (index + (ds * WQE_DS + WQE_BB - 1) / WQE_BB) & WQE_INDEX;
	struct half *h = &p->half[half];
	const bool sure = !h->unsure;

	h->unsure = !take_rest(p, w, bf) || !sure;
	if (!q || q->pid != vcx_me || q->uar != d->u)
		return;
	d->has_bf = !h->unsure && ds * WQE_DS <= WQE_BB && wqe_record(q) == end;
	if (!d->has_bf) {
		h->unsure = p->half[half ^ 1].unsure = true;
		vcx_counts.blueflames_from_ring++;
	} else {
		memcpy(d->bf, bf, sizeof d->bf);
	}
	settle(p, d->u, half, q, end);
}

static bool look_at_half(uint32_t u, unsigned half)
{
	struct page *p = &pages[u];
	_Atomic uint64_t *w = half_words(u, half);
	uint64_t bf[WORDS];
	struct rung d;

	if (!take(&w[0], poison[0], &bf[0]))
		return false;
	d.u = u;
	d.v = be64toh(bf[0]);
	d.seen = stamp_on() || delays() ? event_now() : 0;
	d.has_bf = false;
	fabric_lock();
	if (p->n == 1 && (p->bf || atomic_load(&w[1]) != poison[1]))
		blueflame(&d, p, half, bf);
	else
		p->half[half].unsure = true;
	doorbell(&d);
	fabric_unlock();
	return true;
}

static bool look_at(uint32_t u)
{
	_Atomic uint64_t *arm_word =
		(_Atomic uint64_t *)(void *)(bar + (size_t)u * VCX_PAGE + UAR_ARM_OFFSET);
	bool found = false;
	uint64_t v;

	for (unsigned half = 0; half < HALVES; half++)
		found |= look_at_half(u, half);
	if (take(arm_word, 0, &v)) {
		arm(be64toh(v));
		found = true;
	}
	return found;
}

bool uar_look(void)
{
	bool found = false;

	for (uint32_t i = 0; i < atomic_load_explicit(&active_n, memory_order_relaxed);
	     i++)
		/* What is due is due between two looks too: else it would come late by up to a whole round. */
		found |= nic_events() | look_at(active[i]);
	return found;
}

void uar_each_qp(void (*fn)(struct vcx_qp *))
{
	for (uint32_t i = 0; i < active_n; i++) {
		const struct page *p = &pages[active[i]];

		for (uint32_t k = 0; k < p->n; k++)
			fn(&fab->qps[p->qps[k]]);
	}
}
