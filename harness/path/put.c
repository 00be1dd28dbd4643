/* SPDX-License-Identifier: Apache-2.0
 * put.c: what all three paths share: payload, launch, samples, components.
 */
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "path/launch.h"
#include "path/put.h"

#define DEADLINE_NS 1.5e9 /* of one put, beside 10 ns a byte */
#define DEADLINE_NS_PER_BYTE 10.0

const char *const put_order_names[ORDER_COUNT] = {
	"none",		"gpu-fence",   "gpu-fence-dbrec", "gpu-release",
	"threadfence2", "sys-release", "sys-fence",
};

static void put_slots(const struct put *p, enum end from, struct dev_slots *s)
{
	const struct endpoint *me = &p->env->end[from], *peer = &p->env->end[!from];

	s->src = me->src;
	s->laddr = (uint64_t)(uintptr_t)me->src;
	s->raddr = peer->dst_addr;
	s->lkey = me->src_mr->lkey;
	s->rkey = peer->dst_rkey;
	s->stride = p->slots.stride;
	s->count = p->slots.ops;
}

int put_prepare(struct put *p, struct dev_launch *l)
{
	struct env *e = p->env;
	int err;

	p->slots.ops = p->ops;
	p->slots.seq0 = e->next_seq;
	e->next_seq += p->ops;
	OUR_TRY(slots_fill(e, END_A, &p->slots), err, out);
	OUR_TRY(rig_poison(e, END_B, &p->slots), err, out);
	if (p->rtt) {
		OUR_TRY(slots_fill(e, END_B, &p->slots), err, out);
		OUR_TRY(rig_poison(e, END_A, &p->slots), err, out);
	}
	if (l) {
		put_slots(p, END_A, &l->s);
		l->bytes = p->slots.bytes;
		l->ops = p->ops;
		l->seq0 = p->slots.seq0;
		l->deadline_ticks = p->deadline_ticks;
		l->stamps = e->stamps;
		l->result = e->result;
	}
out:
	return err;
}

uint8_t *put_flag(const struct put *p, enum end at)
{
	return p->env->end[at].dst + (p->slots.bytes > 8 ? DATA_BYTES : 0);
}

void put_reply(const struct put *p, struct dev_reply *r)
{
	put_slots(p, END_B, &r->s);
	r->flag_a = put_flag(p, END_A);
	r->flag_b = put_flag(p, END_B);
}

static int check_end(struct put *p, enum end to)
{
	uint64_t bad;
	int err = rig_bad(p->env, to, &p->slots, &bad);

	if (err)
		return err;
	p->c->payload_errors += bad;
	p->env->count.payload_errors += bad;
	if (bad && !p->c->litmus)
		return err_say(-EBADMSG, "%llu of %u puts arrived with wrong bytes (%s)",
			       (unsigned long long)bad, p->slots.ops, p->c->id);
	return 0;
}

int put_check(struct put *p)
{
	int err = check_end(p, END_B);

	return err || !p->rtt ? err : check_end(p, END_A);
}

static int launch_error(struct put *p)
{
	const struct dev_result *r = p->env->result;

	if (r->status == DEV_DEADLINE)
		return err_say(
			-ETIMEDOUT,
			"put %u of %u did not complete within its deadline (%s path): the NIC did not see "
			"the doorbell, or the peer does not answer",
			r->at, p->slots.ops, p->path->name);
	return err_say(
		-EREMOTEIO,
		"put %u of %u ended in an error completion, syndrome 0x%02x (%s), vendor 0x%02x",
		r->at, p->slots.ops, r->syndrome & 0xff, nic_syndrome(r->syndrome),
		r->syndrome >> 8 & 0xff);
}

/* How a launch ended.  A litmus case whose NIC met a work request that was not there yet has found something: the puts
 * before it count. */
static int launch_outcome(struct put *p)
{
	const struct dev_result *r = p->env->result;

	p->c->puts += r->at;
	p->c->rerings += r->rerings;
	p->env->count.rerings += r->rerings;
	if (r->status == DEV_OK)
		return 0;
	if (!p->c->litmus || r->status != DEV_ERROR_CQE)
		return launch_error(p);
	p->c->violations++;
	p->slots.ops = r->at;
	return -EAGAIN;
}

int put_launch(struct put *p, bool by_sm, const struct dev_kernel *k, const void *args,
	       double *wall_ns)
{
	struct env *e = p->env;
	int err;

	err = p->path == &path_gpu ? launch_submitting(e, k, args, wall_ns)
				   : launch_kernel(e, k, args, wall_ns);
	if (p->path->kernel_ended)
		p->path->kernel_ended(p);
	if (err)
		return err;
	err = launch_outcome(p);
	if (err)
		rig_pair_broken(e, by_sm);
	return err && err != -EAGAIN ? err : put_check(p);
}

/* Taken once, from the case's first launch (warm-up), then subtracted from every sample of the case. */
static void settle_overhead(struct put *p, const struct clock_fit *c)
{
	if (p->overhead_known)
		return;
	p->c->timer_overhead_ns = launch_overhead_ns(p->env, c);
	p->overhead_known = true;
}

int put_components(struct batch *b, const struct put_components *c)
{
	const struct {
		const char *metric;
		double ns;
	} rows[] = {
		{"wall", c->wall},
		{"kernel", c->kernel},
		{"comm", c->comm},
		{"exposed_comm", c->exposed_comm},
		{"cpu_wait", c->cpu_wait},
		{"unaccounted", c->wall - c->kernel - c->exposed_comm - c->cpu_wait},
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		double *v = batch_series(b, rows[i].metric, 1);

		if (!v)
			return err_say(-ENOMEM, "no memory for samples");
		v[0] = rows[i].ns;
	}
	return 0;
}

/* Inside the kernel the SM either works or waits for the NIC; outside it the CPU waits for the kernel. */
static int launch_components(struct put *p, struct batch *b, const struct clock_fit *c,
			     double wall_ns)
{
	const struct dev_result *r = p->env->result;
	const uint64_t *t = p->env->stamps;
	uint64_t work = 0, wait = 0, last = r->entry;
	double ops = p->slots.ops;
	struct put_components out;

	for (uint32_t i = 0; i < p->slots.ops; i++) {
		work += t[3 * i + 1] - last;
		wait += t[3 * i + 2] - t[3 * i + 1];
		last = t[3 * i + 2];
	}
	work += r->exit - last;
	out.wall = wall_ns / ops;
	out.kernel = clock_ns(c, work) / ops;
	out.comm = out.exposed_comm = clock_ns(c, wait) / ops;
	out.cpu_wait =
		(wall_ns - clock_ns(&p->env->sm_wall, r->exit_wall - r->entry_wall)) /
		ops;
	return put_components(b, &out);
}

int put_samples(struct put *p, struct batch *b, bool stamped, double wall_ns)
{
	const struct clock_fit c = launch_clock(p->env);
	const uint64_t *t = p->env->stamps;
	double overhead, *issue = NULL, *done;
	int err;

	if (!p->slots.ops)
		return 0; /* a litmus launch whose first put was torn */
	settle_overhead(p, &c);
	overhead = p->c->timer_overhead_ns;
	done = batch_series(b, stamped ? "put_completion_stamped" : "put_completion",
			    p->slots.ops);
	if (stamped)
		issue = batch_series(b, "issue", p->slots.ops);
	if (!done || (stamped && !issue))
		return err_say(-ENOMEM, "no memory for samples");
	for (uint32_t i = 0; i < p->slots.ops; i++) {
		done[i] = clock_ns(&c, t[3 * i + 2] - t[3 * i]) - overhead;
		if (stamped)
			issue[i] = clock_ns(&c, t[3 * i + 1] - t[3 * i]) - overhead;
	}
	if (!stamped)
		return 0;
	err = launch_timer_series(p->env, b, &c);
	return err ? err : launch_components(p, b, &c, wall_ns);
}

int put_rtt_samples(struct put *p, struct batch *b)
{
	const struct clock_fit c = launch_clock(p->env);
	const uint64_t *t = p->env->stamps;
	double *v = batch_series(b, "rtt", p->slots.ops);

	if (!v)
		return err_say(-ENOMEM, "no memory for samples");
	settle_overhead(p, &c);
	for (uint32_t i = 0; i < p->slots.ops; i++)
		v[i] = clock_ns(&c, t[2 * i + 1] - t[2 * i]) - p->c->timer_overhead_ns;
	return launch_timer_series(p->env, b, &c);
}

/* ---- the bench's entry points ---- */
static uint32_t order_of(const struct case_desc *c)
{
	for (uint32_t i = 0; i < ORDER_COUNT; i++)
		if (!strcmp(put_order_names[i], c->ordering))
			return i;
	return ORDER_SYS_FENCE;
}

int put_open(struct env *env, struct case_desc *c, void **state)
{
	const struct path_ops *const paths[] = {&path_gpu, &path_gpu_cpu_db, &path_proxy,
						&path_host};
	uint32_t slots;
	struct put *p = calloc(1, sizeof *p);
	int err;

	*state = NULL;
	if (!p)
		return err_say(-ENOMEM, "no memory for case %s", c->id);
	p->env = env;
	p->c = c;
	p->order = (enum put_order)order_of(c);
	p->slots.inl = !strcmp(c->inlined, "inline");
	p->rtt = !strcmp(c->main_metric, "rtt");
	p->slots.bytes = (uint32_t)c->size_bytes;
	p->slots.stride = (p->slots.bytes + 63u) & ~63u;
	slots = DATA_BYTES / p->slots.stride;
	p->ops = (uint32_t)opts_int(env->opts, "ops");
	if (p->ops > slots)
		p->ops = slots;
	p->deadline_ticks =
		(uint64_t)((DEADLINE_NS + DEADLINE_NS_PER_BYTE * p->slots.bytes) /
			   env->sm_clock.ns_per_tick);
	c->step_ns = env->sm_clock.step_ns;
	c->timer_overhead_ns = env->sm_clock.overhead_ns;
	for (unsigned i = 0; i < sizeof paths / sizeof *paths; i++)
		if (!strcmp(paths[i]->name, c->path))
			p->path = paths[i];
	err = p->path->open(p);
	if (err) {
		free(p);
		return err;
	}
	*state = p;
	return 0;
}

int put_batch(void *state, struct batch *b)
{
	struct put *p = state;

	sm_spinners(p->c->spinners - p->env->virtual_nic, p->env->virtual_nic,
		    opts_bool(p->env->opts, "pin"));
	return p->rtt ? p->path->rtts(p, b) : p->path->puts(p, b);
}

void put_close(void *state)
{
	struct put *p = state;

	if (!p)
		return;
	p->path->close(p);
	free(p);
}

int put_self_test(struct env *env, const char *path)
{
	struct case_list l = {0};
	struct batch b = {0};
	void *state = NULL;
	int err = put_case_add(&l, env, "self-test", path, "put_completion", 8,
			       "sys-fence", false);

	if (!err)
		err = put_open(env, &l.v[0], &state);
	if (!err) {
		((struct put *)state)->ops = 1;
		err = put_batch(state, &b);
	}
	batch_reset(&b);
	put_close(state);
	case_list_free(&l);
	return err;
}
