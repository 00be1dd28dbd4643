/* SPDX-License-Identifier: Apache-2.0
 * put.c: what all three paths share: payload, launch, samples, components.
 */
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "path/payload.h"
#include "path/put.h"

#define POISON 0xa5
#define DEADLINE_NS 1.5e9	  /* of one put, beside 10 ns a byte */
#define DEADLINE_NS_PER_BYTE 10.0

const char *const put_order_names[ORDER_COUNT] = {
	"none", "gpu-fence", "gpu-fence-dbrec", "gpu-release", "threadfence2", "sys-release", "sys-fence",
};

/* Word k of the payload that put i of the launch carries: the SM writes word 0 (and all of an inline payload). */
static uint64_t expected_word(const struct put *p, uint32_t i, uint32_t k)
{
	return payload_word(k == 0 || p->inl ? p->seq0 + i : (uint64_t)i, k);
}

static void fill_slot(const struct put *p, uint8_t *slot, uint32_t i)
{
	for (uint32_t at = 0, k = 0; at < p->bytes; at += 8, k++) {
		uint64_t word = expected_word(p, i, k);

		memcpy(slot + at, &word, p->bytes - at < 8 ? p->bytes - at : 8);
	}
}

int put_prepare(struct put *p)
{
	struct env *e = p->env;
	size_t span = (size_t)p->stride * p->ops;
	int err;

	p->seq0 = e->next_seq;
	e->next_seq += p->ops;
	for (uint32_t i = 0; i < p->ops; i++) {
		uint8_t *slot = e->staging + (size_t)i * p->stride;

		fill_slot(p, slot, i);
		/* The SM writes the first word itself; until it does, it holds something else. */
		memset(slot, POISON, p->bytes < 8 ? p->bytes : 8);
	}
	for (int end = END_A; end <= (p->rtt ? END_B : END_A); end++) {
		err = sm_copy_in(e->sm, e->end[end].src, e->data_place, e->staging, span);
		if (err)
			return err;
	}
	memset(e->staging, POISON, span);
	for (int end = p->rtt ? END_A : END_B; end <= END_B; end++) {
		err = sm_copy_in(e->sm, e->end[end].dst, e->data_place, e->staging, span);
		if (!err && p->rtt)
			err = sm_copy_in(e->sm, e->end[end].dst + DATA_BYTES, e->data_place, e->staging, 8);
		if (err)
			return err;
	}
	return 0;
}

int put_check(struct put *p, enum end to)
{
	struct env *e = p->env;
	const uint8_t *got = e->end[to].dst;
	uint64_t bad = 0;
	int err;

	if (e->data_place == SM_GPU) {
		err = sm_copy_out(e->sm, e->staging, got, SM_GPU, (size_t)p->stride * p->ops);
		if (err)
			return err;
		got = e->staging;
	}
	for (uint32_t i = 0; i < p->ops; i++) {
		const uint8_t *slot = got + (size_t)i * p->stride;
		bool same = true;

		for (uint32_t at = 0, k = 0; same && at < p->bytes; at += 8, k++) {
			uint64_t want = expected_word(p, i, k);

			same = !memcmp(slot + at, &want, p->bytes - at < 8 ? p->bytes - at : 8);
		}
		bad += !same;
	}
	p->c->payload_errors += bad;
	e->count.payload_errors += bad;
	if (bad)
		return err_say(-EBADMSG, "%llu of %u puts arrived with wrong bytes (%s, %u B)", (unsigned long long)bad, p->ops,
			       p->c->id, p->bytes);
	return 0;
}

void put_slots(const struct put *p, enum end from, struct dev_slots *s)
{
	const struct endpoint *me = &p->env->end[from], *peer = &p->env->end[!from];

	s->src = me->src;
	s->laddr = (uint64_t)(uintptr_t)me->src;
	s->raddr = (uint64_t)(uintptr_t)peer->dst;
	s->lkey = me->src_mr->lkey;
	s->rkey = peer->dst_mr->rkey;
	s->stride = p->stride;
	s->count = p->ops;
}

uint8_t *put_flag(const struct put *p, enum end at)
{
	return p->env->end[at].dst + (p->bytes > 8 ? DATA_BYTES : 0);
}

static int launch_error(struct put *p)
{
	const struct dev_result *r = p->env->result;

	if (r->status == DEV_DEADLINE)
		return err_say(-ETIMEDOUT, "put %u of %u did not complete within its deadline (%s path): the NIC did not see "
					   "the doorbell, or the peer does not answer", r->at, p->ops, p->path->name);
	return err_say(-EREMOTEIO, "put %u of %u ended in an error completion, syndrome 0x%02x (%s), vendor 0x%02x", r->at,
		       p->ops, r->syndrome & 0xff, nic_syndrome(r->syndrome), r->syndrome >> 8 & 0xff);
}

int put_launch(struct put *p, const struct dev_kernel *k, const void *args, double *wall_ns)
{
	struct env *e = p->env;
	uint64_t t0, t1;
	int err;

	memset(e->result, 0xff, sizeof *e->result);
	t0 = clock_host_ticks();
	err = sm_launch(e->sm, k, args);
	if (!err)
		err = sm_sync(e->sm);
	t1 = clock_host_ticks();
	if (err)
		return err;
	*wall_ns = clock_ns(&e->host_clock, t1 - t0);
	p->c->puts += e->result->at;
	p->c->rerings += e->result->rerings;
	e->count.rerings += e->result->rerings;
	return e->result->status == DEV_OK ? 0 : launch_error(p);
}

/* The SM clock's rate during this very launch, from the clock that all SMs share: an SM clock moves with load. */
static struct clock_fit launch_clock(const struct env *e)
{
	const struct dev_result *r = e->result;
	struct clock_fit c = e->sm_clock;
	double wall = clock_ns(&e->sm_wall, r->exit_wall - r->entry_wall);

	if (sm_is_gpu(e->sm) && wall > 1000.0 * e->sm_wall.step_ns)
		c.ns_per_tick = wall / (double)(r->exit - r->entry);
	return c;
}

static int timer_series(const struct env *e, struct batch *b, const struct clock_fit *c)
{
	double *v = batch_series(b, "timer", DEV_BASELINE);

	if (!v)
		return err_say(-ENOMEM, "no memory for samples");
	for (unsigned i = 0; i < DEV_BASELINE; i++)
		v[i] = clock_ns(c, e->result->baseline[i]);
	return 0;
}

int put_components(struct batch *b, const struct put_components *c)
{
	const struct {
		const char *metric;
		double ns;
	} rows[] = {
		{ "wall", c->wall },
		{ "kernel", c->kernel },
		{ "comm", c->comm },
		{ "exposed_comm", c->exposed_comm },
		{ "cpu_wait", c->cpu_wait },
		{ "unaccounted", c->wall - c->kernel - c->exposed_comm - c->cpu_wait },
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
static int launch_components(struct put *p, struct batch *b, const struct clock_fit *c, double wall_ns)
{
	const struct dev_result *r = p->env->result;
	const uint64_t *t = p->env->stamps;
	uint64_t work = 0, wait = 0, last = r->entry;
	double ops = p->ops;
	struct put_components out;

	for (uint32_t i = 0; i < p->ops; i++) {
		work += t[3 * i + 1] - last;
		wait += t[3 * i + 2] - t[3 * i + 1];
		last = t[3 * i + 2];
	}
	work += r->exit - last;
	out.wall = wall_ns / ops;
	out.kernel = clock_ns(c, work) / ops;
	out.comm = out.exposed_comm = clock_ns(c, wait) / ops;
	out.cpu_wait = (wall_ns - clock_ns(&p->env->sm_wall, r->exit_wall - r->entry_wall)) / ops;
	return put_components(b, &out);
}

int put_samples(struct put *p, struct batch *b, bool stamped, double wall_ns)
{
	const struct clock_fit c = launch_clock(p->env);
	const uint64_t *t = p->env->stamps;
	double overhead = p->c->timer_overhead_ns, *issue = NULL, *done;
	int err;

	done = batch_series(b, stamped ? "put_completion_stamped" : "put_completion", p->ops);
	if (stamped)
		issue = batch_series(b, "issue", p->ops);
	if (!done || (stamped && !issue))
		return err_say(-ENOMEM, "no memory for samples");
	for (uint32_t i = 0; i < p->ops; i++) {
		done[i] = clock_ns(&c, t[3 * i + 2] - t[3 * i]) - overhead;
		if (stamped)
			issue[i] = clock_ns(&c, t[3 * i + 1] - t[3 * i]) - overhead;
	}
	if (!stamped)
		return 0;
	err = timer_series(p->env, b, &c);
	return err ? err : launch_components(p, b, &c, wall_ns);
}

int put_rtt_samples(struct put *p, struct batch *b)
{
	const struct clock_fit c = launch_clock(p->env);
	const uint64_t *t = p->env->stamps;
	double *v = batch_series(b, "rtt", p->ops);

	if (!v)
		return err_say(-ENOMEM, "no memory for samples");
	for (uint32_t i = 0; i < p->ops; i++)
		v[i] = clock_ns(&c, t[2 * i + 1] - t[2 * i]) - p->c->timer_overhead_ns;
	return timer_series(p->env, b, &c);
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
	const struct path_ops *const paths[] = { &path_gpu, &path_proxy, &path_host };
	uint32_t slots;
	struct put *p = calloc(1, sizeof *p);
	int err;

	*state = NULL;
	if (!p)
		return err_say(-ENOMEM, "no memory for case %s", c->id);
	p->env = env;
	p->c = c;
	p->order = (enum put_order)order_of(c);
	p->inl = !strcmp(c->inlined, "inline");
	p->rtt = !strcmp(c->main_metric, "rtt");
	p->bytes = (uint32_t)c->size_bytes;
	p->stride = (p->bytes + 63u) & ~63u;
	slots = DATA_BYTES / p->stride;
	p->ops = (uint32_t)opts_int(env->opts, "ops");
	if (p->ops > slots)
		p->ops = slots;
	p->deadline_ticks = (uint64_t)((DEADLINE_NS + DEADLINE_NS_PER_BYTE * p->bytes) / env->sm_clock.ns_per_tick);
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

	sm_spinners(p->c->spinners - p->env->virtual_nic, p->env->virtual_nic, opts_bool(p->env->opts, "pin"));
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
	struct case_list l = { 0 };
	struct batch b = { 0 };
	void *state = NULL;
	int err = put_case_add(&l, env, "self-test", path, "put_completion", 8, "sys-fence", false);

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
