/* SPDX-License-Identifier: Apache-2.0
 * hop_beside.c: what stands beside the hops: round trips with a known wait at the responder, and the NIC's pace when many WQEs
 * stand behind one doorbell (a gap between completions: never part of a sum).
 */
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "path/hop_dev.h"
#include "path/hop_pair.h"
#include "path/hop_virtual.h"
#include "path/launch.h"
#include "path/slots.h"

#define DEADLINE_NS 1.5e9
#define GAP_NS 1000.0
#define GAP_WQES 32u

#pragma weak rtt_hold_kernel_cuda
#pragma weak hop_gap_kernel_cuda

struct beside {
	struct env *env;
	struct case_desc *c;
	uint64_t hold_ns;
	bool overhead_known;
};

static int beside_open(struct env *env, struct case_desc *c, void **state)
{
	struct beside *s = calloc(1, sizeof *s);

	*state = s;
	if (!s)
		return err_say(-ENOMEM, "no memory for case %s", c->id);
	s->env = env;
	s->c = c;
	s->hold_ns = c->arg ? *(const uint64_t *)c->arg : 0;
	c->step_ns = env->sm_clock.step_ns;
	c->timer_overhead_ns = env->sm_clock.overhead_ns;
	return 0;
}

static void common(struct env *e, struct dev_launch *l, struct slots *s)
{
	s->seq0 = l->seq0 = e->next_seq;
	e->next_seq += s->ops;
	s->bytes = l->bytes = 8;
	s->stride = l->s.stride = 64;
	s->inl = 1;
	l->ops = l->s.count = s->ops;
	l->deadline_ticks = (uint64_t)(DEADLINE_NS / e->sm_clock.ns_per_tick);
	l->stamps = e->stamps;
	l->result = e->result;
}

static int ended(struct beside *s, const struct slots *slots, unsigned directions)
{
	const struct dev_result *r = s->env->result;
	uint64_t bad = 0, more = 0;
	int err;

	s->c->puts += r->at;
	s->env->count.sm_doorbells += (uint64_t)directions * r->at;
	if (r->status != DEV_OK)
		return err_say(
			-EIO,
			"put %u of %u of %s did not end: status %u, syndrome 0x%02x",
			r->at, slots->ops, s->c->id, r->status, r->syndrome & 0xff);
	err = slots_bad_at_last(s->env, END_B, slots, &bad);
	if (!err && directions == 2)
		err = slots_bad_at_last(s->env, END_A, slots, &more);
	s->c->payload_errors += bad + more;
	return err || !(bad + more)
		       ? err
		       : err_say(-EBADMSG, "%llu puts of %s arrived with wrong bytes",
				 (unsigned long long)(bad + more), s->c->id);
}

static struct clock_fit settle(struct beside *s)
{
	struct clock_fit c = launch_clock(s->env);

	if (!s->overhead_known)
		s->c->timer_overhead_ns = launch_overhead_ns(s->env, &c);
	s->overhead_known = true;
	return c;
}

/* Round trips with the wait and, of the same launch, without. */
static int hold_series(struct beside *s, struct batch *b, const struct clock_fit *c,
		       const struct slots *slots)
{
	const uint64_t *t = s->env->stamps;
	double *rtt[2], *held[2];
	uint32_t n[2] = {0, 0};

	for (uint32_t i = 0; i < slots->ops; i++)
		n[(slots->seq0 + i) & 1]++;
	rtt[0] = batch_series(b, "rtt_without", n[0]);
	rtt[1] = batch_series(b, "rtt", n[1]);
	held[0] = batch_series(b, "held_without", n[0]);
	held[1] = batch_series(b, "held", n[1]);
	if (!rtt[0] || !rtt[1] || !held[0] || !held[1])
		return err_say(-ENOMEM, "no memory for samples");
	n[0] = n[1] = 0;
	for (uint32_t i = 0; i < slots->ops; i++) {
		const unsigned k = (slots->seq0 + i) & 1;

		rtt[k][n[k]] =
			clock_ns(c, t[3 * i + 1] - t[3 * i]) - s->c->timer_overhead_ns;
		held[k][n[k]++] = clock_ns(c, t[3 * i + 2]);
	}
	return 0;
}

static int hold_batch(struct beside *s, struct batch *b)
{
	struct env *e = s->env;
	const uint64_t none[NIC_HOPS] = {0};
	struct slots slots = {.ops = (uint32_t)opts_int(e->opts, "ops")};
	struct nic_qp *pair[END_COUNT];
	struct rtt_args a = {0};
	struct clock_fit c;
	double wall;
	int err;

	OUR_TRY(rig_pair(e, true, pair), err, out);
	common(e, &a.l, &slots);
	OUR_TRY(slots_poison(e, END_A, &slots), err, out);
	OUR_TRY(slots_poison(e, END_B, &slots), err, out);
	a.l.s.raddr = e->end[END_B].dst_addr;
	a.l.s.rkey = e->end[END_B].dst_rkey;
	a.r.s.raddr = e->end[END_A].dst_addr;
	a.r.s.rkey = e->end[END_A].dst_rkey;
	a.r.flag_a = e->end[END_A].dst;
	a.r.flag_b = e->end[END_B].dst;
	a.qa = pair[END_A]->q;
	a.qb = pair[END_B]->q;
	a.gap_ticks = (uint32_t)(GAP_NS / e->sm_clock.ns_per_tick);
	a.hold_ticks = (uint64_t)((double)s->hold_ns / e->sm_clock.ns_per_tick);
	hop_virtual_set(opts_dbl(e->opts, "vcx_base"), none);
	err = launch_submitting(
		e, sm_is_gpu(e->sm) ? &rtt_hold_kernel_cuda : &rtt_hold_kernel_host, &a,
		&wall);
	if (!err)
		err = ended(s, &slots, 2);
	if (err) {
		rig_pair_broken(e, true);
		goto out;
	}
	c = settle(s);
	err = hold_series(s, b, &c, &slots);
out:
	hop_virtual_clear();
	return err;
}

static int gap_batch(struct beside *s, struct batch *b)
{
	struct env *e = s->env;
	const bool across = !strcmp(s->c->endpoints, "across");
	const uint64_t none[NIC_HOPS] = {0};
	struct slots slots = {.ops = GAP_WQES};
	struct hop_pair *p = hop_pair(e, across, false);
	struct hop_args a = {0};
	struct clock_fit c;
	double wall, *gap;
	int err;

	if (!p)
		return -EPERM;
	common(e, &a.l, &slots);
	OUR_TRY(slots_poison(e, END_B, &slots), err, out);
	a.q = p->end[END_A].qp->q;
	a.flag = e->end[END_B].dst;
	a.head = e->end[END_A].src;
	a.l.s.raddr = (uint64_t)(uintptr_t)e->end[END_B].dst;
	a.l.s.rkey = p->end[END_B].dst->rkey;
	hop_virtual_set(opts_dbl(e->opts, "vcx_base"), none);
	err = launch_submitting(
		e, sm_is_gpu(e->sm) ? &hop_gap_kernel_cuda : &hop_gap_kernel_host, &a,
		&wall);
	if (!err)
		err = ended(s, &slots, 1);
	if (err) {
		hop_pair_broken(e, across, false);
		goto out;
	}
	c = settle(s);
	gap = batch_series(b, "gap", slots.ops - 1);
	if (!gap)
		err = err_say(-ENOMEM, "no memory for samples");
	for (uint32_t i = 0; gap && i + 1 < slots.ops; i++)
		gap[i] = clock_ns(&c, e->stamps[i + 1] - e->stamps[i]);
out:
	hop_virtual_clear();
	return err;
}

static int beside_batch(void *state, struct batch *b)
{
	struct beside *s = state;

	sm_spinners(s->c->spinners - s->env->virtual_nic, s->env->virtual_nic,
		    opts_bool(s->env->opts, "pin"));
	return !strcmp(s->c->main_metric, "gap") ? gap_batch(s, b) : hold_batch(s, b);
}

const struct hop_ops hop_beside_ops = {beside_open, beside_batch, free};

int hop_beside_add(struct case_list *l, const struct env *env, const char *bench,
		   const char *metric, const char *endpoints, const uint64_t *hold_ns)
{
	struct case_desc *c = case_add(l);

	if (!c)
		return err_say(-ENOMEM, "no memory for the list of cases");
	if (hold_ns)
		snprintf(c->id, sizeof c->id, "%s/responder-waits/%llu", bench,
			 (unsigned long long)*hold_ns);
	else
		snprintf(c->id, sizeof c->id, "%s/wqes-behind-one-doorbell/%u", bench,
			 GAP_WQES);
	c->bench = bench;
	c->path = "gpu";
	c->size_bytes = 8;
	c->ordering = "sys-fence";
	c->inlined = "inline";
	c->queue = c->cq = c->dbrec = "host";
	c->doorbell = "db";
	c->completion = hold_ns ? "flag" : "cqe";
	c->endpoints = endpoints;
	c->qps = c->signalled = 1;
	c->batch = hold_ns ? 1 : GAP_WQES;
	c->main_metric = metric;
	c->data = c->sm = "";
	c->nature = "virtual";
	c->arg = hold_ns;
	if (env)
		hop_place(c, env);
	return 0;
}
