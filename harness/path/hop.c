/* SPDX-License-Identifier: Apache-2.0
 * hop.c: the host's half of the experiments: launch, stamps to series, payload checked.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "path/correlate.h"
#include "path/hop_dev.h"
#include "path/hop_pair.h"
#include "path/hop_virtual.h"
#include "path/launch.h"
#include "path/slots.h"

#define DEADLINE_NS 1.5e9 /* of one put, beside 10 ns a byte */
#define DEADLINE_NS_PER_BYTE 10.0
#define GAP_NS 1000.0	 /* puts start so much later than they could, at most */
#define IMM_OPS_MAX 128u /* receives posted at once */

#pragma weak hop_kernels_cuda

struct hop {
	struct env *env;
	struct case_desc *c;
	const struct hop_exp *x;
	bool across, inl, bf, nop, live, read, imm, flag;
	enum hop_kernel kernel;
	struct slots slots;
	uint32_t lead, dither;
	uint64_t deadline_ticks;
	uint64_t delays[NIC_HOPS];
	bool overhead_known;
	uint32_t first_ci; /* of the launch's completions */
};

/* ---- which kernel is it ---- */
static int find_kernel(const struct hop_exp *x)
{
#define K(name, op, inl, bf, end, live) {op, inl, bf, end, live},
	static const struct {
		int op, inl, bf, end, live;
	} all[HOP_KERNELS] = {HOP_KERNEL_LIST(K)};
#undef K
	const int op = !strcmp(x->opcode, "nop")	 ? HOP_OP_NOP
		       : !strcmp(x->opcode, "read")	 ? HOP_OP_READ
		       : !strcmp(x->opcode, "write-imm") ? HOP_OP_WRITE_IMM
							 : HOP_OP_WRITE,
		  live = !strcmp(x->end, "live-source") ? HOP_LIVE_SOURCE
			 : !strcmp(x->end, "live-wqe")	? HOP_LIVE_WQE
							: HOP_DEAD;

	for (int k = 0; k < HOP_KERNELS; k++)
		if (all[k].op == op && all[k].inl == !strcmp(x->payload, "inline") &&
		    all[k].bf == !strcmp(x->doorbell, "bf") && all[k].live == live &&
		    all[k].end == (strcmp(x->end, "flag") ? HOP_TO_CQE : HOP_TO_FLAG))
			return k;
	return -1;
}

static int hop_open(struct env *env, struct case_desc *c, void **state)
{
	struct hop *h = calloc(1, sizeof *h);
	uint32_t slots, ops = (uint32_t)opts_int(env->opts, "ops");
	int k;

	*state = NULL;
	if (!h)
		return err_say(-ENOMEM, "no memory for case %s", c->id);
	h->env = env;
	h->c = c;
	h->x = c->arg;
	k = find_kernel(h->x);
	if (k < 0 || hop_group_parse(c->group, h->delays)) {
		free(h);
		return k < 0 ? err_say(-EINVAL, "no kernel for %s", c->id) : -EINVAL;
	}
	h->kernel = (enum hop_kernel)k;
	h->across = !strcmp(h->x->endpoints, "across");
	h->nop = !strcmp(h->x->opcode, "nop");
	h->read = !strcmp(h->x->opcode, "read");
	h->imm = !strcmp(h->x->opcode, "write-imm");
	h->flag = !strcmp(h->x->end, "flag");
	h->live = !strncmp(h->x->end, "live-", 5);
	h->bf = !strcmp(h->x->doorbell, "bf");
	h->inl = !strcmp(h->x->payload, "inline");
	h->slots.bytes = (uint32_t)c->size_bytes;
	h->slots.inl = h->inl;
	h->slots.stride = (h->slots.bytes + 63u) & ~63u;
	slots = DATA_BYTES / h->slots.stride;
	ops = ops > HOP_OPS_MAX ? HOP_OPS_MAX : ops;
	ops = h->imm && ops > IMM_OPS_MAX ? IMM_OPS_MAX : ops;
	h->slots.ops = ops > slots ? slots : ops;
	h->deadline_ticks =
		(uint64_t)((DEADLINE_NS + DEADLINE_NS_PER_BYTE * h->slots.bytes) /
			   env->sm_clock.ns_per_tick);
	c->step_ns = env->sm_clock.step_ns;
	c->timer_overhead_ns = env->sm_clock.overhead_ns;
	*state = h;
	return 0;
}

/* ---- one launch ---- */
static int prepare(struct hop *h, struct hop_pair *p, struct hop_args *a)
{
	struct env *e = h->env;
	const enum end source = h->read ? END_B : END_A;
	const struct hop_side *from = &p->end[source], *to = &p->end[!source],
			      *a_side = &p->end[END_A];
	uint8_t *src = e->end[source].src, *dst = e->end[!source].dst;
	int err = 0;

	h->slots.seq0 = e->next_seq;
	e->next_seq += h->slots.ops;
	if (!h->nop) {
		OUR_TRY(slots_fill(e, source, &h->slots), err, out);
		OUR_TRY(slots_poison(e, !source, &h->slots), err, out);
	}
	if (h->imm)
		OUR_TRY(nic_qp_receive(p->end[END_B].qp, h->slots.ops), err, out);
	a->q = a_side->qp->q;
	a->head = src;
	a->flag = dst;
	a->gap = (uint32_t)(GAP_NS / e->sm_clock.ns_per_tick);
	a->lead = h->lead;
	a->dither = h->dither;
	a->l.s.stride = h->slots.stride;
	a->l.s.count = h->slots.ops;
	/* A READ names the far source and the near destination. */
	a->l.s.laddr = (uint64_t)(uintptr_t)(h->read ? dst : src);
	a->l.s.lkey = h->read ? to->dst->lkey : from->src->lkey;
	a->l.s.raddr = (uint64_t)(uintptr_t)(h->read ? src : dst);
	a->l.s.rkey = h->read ? from->src->rkey : to->dst->rkey;
	a->l.bytes = h->slots.bytes;
	a->l.ops = h->slots.ops;
	a->l.seq0 = h->slots.seq0;
	a->l.deadline_ticks = h->deadline_ticks;
	a->l.stamps = e->stamps;
	a->l.result = e->result;
out:
	return err;
}

static int outcome(struct hop *h)
{
	const struct dev_result *r = h->env->result;
	uint64_t bad = 0;
	int err;

	h->c->puts += r->at;
	h->env->count.sm_doorbells += r->at;
	if (r->status != DEV_OK) {
		hop_pair_broken(h->env, h->across, h->bf);
		return r->status == DEV_DEADLINE
			       ? err_say(-ETIMEDOUT,
					 "put %u of %u did not end within its deadline (%s)",
					 r->at, h->slots.ops, h->c->id)
			       : err_say(-EREMOTEIO,
					 "put %u of %u ended in an error completion, syndrome 0x%02x (%s)",
					 r->at, h->slots.ops, r->syndrome & 0xff,
					 nic_syndrome(r->syndrome));
	}
	if (h->nop || h->live) /* a live word is checked by its tag, in the kernel */
		return 0;
	err = slots_bad_at_last(h->env, h->read ? END_A : END_B, &h->slots, &bad);
	h->c->payload_errors += bad;
	h->env->count.payload_errors += bad;
	return err || !bad ? err
			   : err_say(-EBADMSG,
				     "%llu of %u puts arrived with wrong bytes (%s)",
				     (unsigned long long)bad, h->slots.ops, h->c->id);
}

/* ---- samples ---- */
static uint64_t stamp(const struct hop *h, uint32_t i, enum hop_stamp s)
{
	return h->env->stamps[HOP_STAMPS * i + s];
}

static int by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_of(const double *v, uint32_t n)
{
	double sorted[HOP_OPS_MAX];

	memcpy(sorted, v, n * sizeof *v);
	qsort(sorted, n, sizeof *sorted, by_double);
	return sorted[n / 2];
}

/* From stamp to stamp, less so many readings of the clock: one where the SM itself works, none where it waits for others (they
 * work on while it reads). */
static double *window(const struct hop *h, struct batch *b, const char *metric,
		      const struct clock_fit *c, enum hop_stamp from, enum hop_stamp to,
		      double readings)
{
	double *v = batch_series(b, metric, h->slots.ops);

	for (uint32_t i = 0; v && i < h->slots.ops; i++)
		v[i] = clock_ns(c, stamp(h, i, to) - stamp(h, i, from)) -
		       readings * h->c->timer_overhead_ns;
	return v;
}

/* The poll's own period, from the time between doorbell and sight and the looks in it. */
static double *periods(const struct hop *h, struct batch *b, const struct clock_fit *c)
{
	double *v = batch_series(b, "poll_period", h->slots.ops);

	for (uint32_t i = 0; v && i < h->slots.ops; i++) {
		uint64_t polls = stamp(h, i, HOP_POLLS), first;

		first = stamp(h, i, HOP_T0) + h->lead + (polls >> 32);
		if (first < stamp(h, i, HOP_RUNG))
			first = stamp(h, i, HOP_RUNG);
		v[i] = first < stamp(h, i, HOP_SEEN)
			       ? clock_ns(c, stamp(h, i, HOP_SEEN) - first) /
					 (double)((uint32_t)polls ? (uint32_t)polls : 1)
			       : 0;
	}
	return v;
}

/* How old the source or the WQE was when the NIC sampled it, counted from the doorbell.  The word is half a write period old. */
static int live_series(struct hop *h, struct batch *b, const struct clock_fit *c)
{
	double *v = batch_series(b, "live", h->slots.ops);

	if (!v)
		return err_say(-ENOMEM, "no memory for samples");
	for (uint32_t i = 0; i < h->slots.ops; i++) {
		int32_t ticks = (int32_t)((uint32_t)stamp(h, i, HOP_LIVE_READ) -
					  (uint32_t)stamp(h, i, HOP_RUNG));

		v[i] = (double)ticks * c->ns_per_tick;
	}
	return 0;
}

static int stamped_series(struct hop *h, struct batch *b, const struct clock_fit *c)
{
	const double *issue, *flight, *period;

	if (!window(h, b, "wqe_build", c, HOP_T0, HOP_BUILT, 1) ||
	    !(issue = window(h, b, "issue", c, HOP_T0, HOP_RUNG, 1)) ||
	    !(flight = window(h, b, "flight", c, HOP_RUNG, HOP_SEEN, 0)) ||
	    (!h->flag && !window(h, b, "completion", c, HOP_SEEN, HOP_DONE, 1)) ||
	    !(period = periods(h, b, c)))
		return err_say(-ENOMEM, "no memory for samples");
	/* The next launch looks first one lead and 0 .. two periods after the window opens: all before the end can be seen. */
	h->lead = (uint32_t)((median_of(issue, h->slots.ops) + h->c->timer_overhead_ns) /
			     c->ns_per_tick);
	h->dither = (uint32_t)(fmin(median_of(period, h->slots.ops),
				    median_of(flight, h->slots.ops) / 4) /
			       c->ns_per_tick);
	return 0;
}

/* A NIC's clock in host ticks: two readings around the launch. */
struct nic_line {
	struct nic_moment from, to;
};

static double nic_to_host(const struct nic_line *n, uint64_t stamp)
{
	double rate =
		(double)(n->to.host - n->from.host) / (double)(n->to.nic - n->from.nic);

	return (double)n->from.host + rate * (double)(int64_t)(stamp - n->from.nic);
}

/* WRITE_IMM: both NICs say when they made their completion.  One-way times are known to the bound of the clocks' readings. */
static int one_way_series(struct hop *h, struct batch *b, struct hop_pair *p,
			  const struct nic_line line[END_COUNT],
			  const struct sm_moment *sm)
{
	const struct clock_fit c = launch_clock(h->env);
	const double tick = h->env->host_clock.ns_per_tick;
	double *out = batch_series(b, "one_way_out", h->slots.ops),
	       *back = batch_series(b, "wire_back_nic", h->slots.ops),
	       *in = batch_series(b, "one_way_in", h->slots.ops),
	       *bound = batch_series(b, "clock_bound", 1);
	uint64_t far[IMM_OPS_MAX], near;
	int err;

	if (!out || !back || !in || !bound)
		return err_say(-ENOMEM, "no memory for samples");
	err = nic_qp_received(p->end[END_B].qp, h->slots.ops, far);
	if (err)
		return err;
	*bound = sm->bound_ns + fmax(line[END_A].from.bound_ns, line[END_A].to.bound_ns) +
		 fmax(line[END_B].from.bound_ns, line[END_B].to.bound_ns);
	for (uint32_t i = 0; i < h->slots.ops; i++) {
		double a, z;

		if (!nic_cqe_stamp(p->end[END_A].qp, h->first_ci + i, &near))
			return err_say(-EIO, "completion %u is gone from its ring", i);
		a = nic_to_host(&line[END_A], near);
		z = nic_to_host(&line[END_B], far[i]);
		out[i] = (z - correlate_to_host(h->env, sm, &c, stamp(h, i, HOP_RUNG))) *
			 tick;
		back[i] = (a - z) * tick;
		in[i] = (correlate_to_host(h->env, sm, &c, stamp(h, i, HOP_SEEN)) - a) *
			tick;
	}
	return 0;
}

static const char *main_metric(const struct hop_exp *x)
{
	return !strncmp(x->end, "live-", 5) ? "live"
	       : !strcmp(x->end, "flag")    ? "flag_seen"
					    : "put_completion";
}

static int order_series(struct hop *h, struct batch *b, const struct clock_fit *c)
{
	return window(h, b, "order", c, HOP_BUILT, HOP_ORDERED, 1) &&
			       window(h, b, "doorbell_store", c, HOP_ORDERED, HOP_RUNG, 1)
		       ? 0
		       : err_say(-ENOMEM, "no memory for samples");
}

static int series(struct hop *h, struct batch *b, enum hop_form form)
{
	const struct clock_fit c = launch_clock(h->env);
	const char *metric = main_metric(h->x);
	int err;

	if (!h->overhead_known)
		h->c->timer_overhead_ns = launch_overhead_ns(h->env, &c);
	h->overhead_known = true;
	if (h->live) {
		err = live_series(h, b, &c);
		return err ? err : stamped_series(h, b, &c);
	}
	if (form == HOP_ORDER)
		return order_series(h, b, &c);
	if (form == HOP_STAMPED)
		metric = h->flag ? "flag_seen_stamped" : "put_completion_stamped";
	if (!window(h, b, metric, &c, HOP_T0, HOP_DONE, 1))
		return err_say(-ENOMEM, "no memory for samples");
	if (form == HOP_PLAIN)
		return 0;
	err = stamped_series(h, b, &c);
	return err ? err : launch_timer_series(h->env, b, &c);
}

static int read_clocks(const struct hop *h, const struct hop_pair *p,
		       struct nic_line line[END_COUNT], bool after)
{
	int err = 0;

	for (int i = 0; i < END_COUNT && !err; i++)
		err = nic_clock_read(p->end[i].nic, h->env->host_clock.ns_per_tick,
				     after ? &line[i].to : &line[i].from);
	return err;
}

/* The receives' completions are taken in any case. */
static int one_way(struct hop *h, struct batch *b, struct hop_pair *p,
		   struct nic_line line[END_COUNT], const struct sm_moment *sm,
		   bool stamped)
{
	uint64_t stamps[IMM_OPS_MAX];
	int err = read_clocks(h, p, line, true);

	if (err || !stamped)
		return err ? err
			   : nic_qp_received(p->end[END_B].qp, h->slots.ops, stamps);
	return one_way_series(h, b, p, line, sm);
}

static int launch(struct hop *h, struct batch *b, enum hop_form form)
{
	struct hop_pair *p = hop_pair(h->env, h->across, h->bf);
	const struct dev_kernel *k = sm_is_gpu(h->env->sm)
					     ? &hop_kernels_cuda[h->kernel][form]
					     : &hop_kernels_host[h->kernel][form];
	struct nic_line line[END_COUNT];
	struct sm_moment sm = {0};
	struct hop_args a = {0};
	double wall;
	int err;

	if (!p)
		return -EPERM;
	OUR_TRY(prepare(h, p, &a), err, out);
	h->first_ci = p->end[END_A].qp->cursor->ci;
	hop_virtual_set(opts_dbl(h->env->opts, "vcx_base"), h->delays);
	if (h->imm)
		OUR_TRY(read_clocks(h, p, line, false), err, out);
	if (h->imm)
		OUR_TRY(correlate(h->env, &sm), err, out);
	err = launch_submitting(h->env, k, &a, &wall);
	if (!err)
		err = outcome(h);
	if (!err)
		err = series(h, b, form);
	if (!err && h->imm)
		err = one_way(h, b, p, line, &sm, form == HOP_STAMPED);
	if (!err && form == HOP_STAMPED)
		err = hop_virtual_series(b, p->end[END_A].qp->q.qpn, h->slots.ops);
out:
	hop_virtual_clear();
	return err;
}

static int hop_batch(void *state, struct batch *b)
{
	struct hop *h = state;
	int err = 0;

	sm_spinners(h->c->spinners - h->env->virtual_nic, h->env->virtual_nic,
		    opts_bool(h->env->opts, "pin"));
	if (h->live)
		return launch(h, b, HOP_STAMPED);
	/* Another one first in each batch. */
	for (unsigned i = 0; i < HOP_FORMS && !err; i++)
		err = launch(h, b, (enum hop_form)((b->index + i) % HOP_FORMS));
	return err;
}

const struct hop_ops hop_ops = {hop_open, hop_batch, free};

/* ---- cases ---- */
int hop_group_parse(const char *group, uint64_t ns[NIC_HOPS])
{
	char copy[CASE_ID_CHARS];

	memset(ns, 0, NIC_HOPS * sizeof *ns);
	if (!strcmp(group, "base"))
		return 0;
	snprintf(copy, sizeof copy, "%s", group);
	for (char *save, *w = strtok_r(copy, "+", &save); w;
	     w = strtok_r(NULL, "+", &save)) {
		char *eq = strchr(w, '='), *end;
		int hop;

		if (!eq)
			return err_say(-EINVAL, "vcx_delays: '%s' is not HOP=NS", w);
		*eq = 0;
		hop = nic_hop_find(w);
		if (hop < 0)
			return err_say(-EINVAL, "vcx_delays: there is no hop '%s'", w);
		ns[hop] = strtoull(eq + 1, &end, 10);
		if (*end || end == eq + 1 || ns[hop] > 100000000)
			return err_say(
				-EINVAL,
				"vcx_delays: %s=%s: nanoseconds, at most 100000000", w,
				eq + 1);
	}
	return 0;
}

static void waive(struct case_desc *c, const char *reason)
{
	c->status = CASE_WAIVED;
	snprintf(c->reason, sizeof c->reason, "%s", reason);
}

void hop_place(struct case_desc *c, const struct env *e)
{
	c->data = e->data_place == SM_GPU ? "gpu" : "host";
	c->sm = sm_kind(e->sm);
	c->nature = env_nature(e);
	c->spinners = !sm_is_gpu(e->sm) + e->virtual_nic;
	c->oversubscribed = c->spinners > sm_cpus();
	if (e->end[END_B].remote)
		waive(c,
		      "hops are taken apart inside one process: start putscope without mpirun");
	else if (!e->end[END_A].nic->mlx5)
		waive(c,
		      "the NIC is no mlx5 device: an SM cannot build its work requests");
	else if (!strcmp(c->endpoints, "across") && e->nic_count < 2)
		waive(c, "across needs two RDMA devices (endpoints = across)");
	else if (c->group && strcmp(c->group, "base") && !e->virtual_nic)
		waive(c, "only a virtual NIC can be told to wait");
}

int hop_case_add(struct case_list *l, const struct env *env, const char *bench,
		 const struct hop_exp *x, const char *group, uint64_t bytes)
{
	struct case_desc *c = case_add(l);
	char name[64];

	if (!c)
		return err_say(-ENOMEM, "no memory for the list of cases");
	hop_exp_name(x, name, sizeof name);
	snprintf(c->id, sizeof c->id, "%s/%s/%s/%llu", bench, group, name,
		 (unsigned long long)bytes);
	c->bench = bench;
	c->path = "gpu";
	c->size_bytes = bytes;
	c->ordering = "sys-fence";
	c->inlined = x->payload;
	c->queue = c->cq = c->dbrec = "host";
	c->opcode = x->opcode;
	c->group = group;
	c->doorbell = x->doorbell;
	c->completion = x->end;
	c->endpoints = x->endpoints;
	c->qps = c->batch = c->signalled = 1;
	c->main_metric = main_metric(x);
	c->data = c->sm = "";
	c->nature = "virtual";
	c->arg = x;
	if (env)
		hop_place(c, env);
	return 0;
}
