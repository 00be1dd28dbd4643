/* SPDX-License-Identifier: Apache-2.0
 * sm_probe.c: launch a kernel that times one instruction, and keep its samples.
 */
#include <stdlib.h>

#include "err.h"
#include "sm_probe.h"

struct sm_run {
	struct launched l;
	const struct sm_probe *p;
	uint8_t *at;
	uint64_t sum;
};

int sm_probe_add(struct case_list *l, const struct env *env, const char *bench,
		 const char *metric, const struct sm_probe *p)
{
	struct case_desc *c = launched_case(l, env, bench, p->name, metric, 0);

	if (!c)
		return -ENOMEM;
	c->arg = p;
	c->data = p->place == SM_GPU ? "gpu" : "host";
	if (p->place == SM_GPU && launched_on_threads(env))
		launched_waive(c, "needs a GPU: its own memory");
	return 0;
}

int sm_probe_open(struct env *env, struct case_desc *c, void **state)
{
	struct sm_run *s = calloc(1, sizeof *s);
	int err;

	if (!s)
		return err_say(-ENOMEM, "no memory for %s", c->id);
	s->p = c->arg;
	launched_init(&s->l, env, c, sm_is_gpu(env->sm) ? s->p->cuda : s->p->host, 1);
	if (!strcmp(c->main_metric,
		    "read")) { /* the reading itself: nothing is subtracted */
		s->l.overhead_ns = c->timer_overhead_ns = 0;
		s->l.overhead_known = true;
	}
	err = sm_alloc(env->sm, SM_BYTES, s->p->place, (void **)&s->at);
	if (err) {
		free(s);
		return err;
	}
	*state = s;
	return 0;
}

int sm_probe_batch(void *state, struct batch *b)
{
	struct sm_run *s = state;
	struct env *e = s->l.env;
	const struct sm_args a = {s->at, e->stamps, e->result};
	int err = launched_start(&s->l, &a);

	if (!err)
		err = launched_end(&s->l);
	if (err)
		return err;
	s->sum += SM_TURNS;
	if (s->p->adds && e->stamps[SM_TURNS] != s->sum)
		return err_say(-EBADMSG, "%s: %llu atomics added up to %llu", s->l.c->id,
			       (unsigned long long)s->sum,
			       (unsigned long long)e->stamps[SM_TURNS]);
	return launched_samples(&s->l, b, s->l.c->main_metric, SM_TURNS);
}

void sm_probe_close(void *state)
{
	struct sm_run *s = state;

	sm_free(s->l.env->sm, s->at, SM_BYTES, s->p->place);
	free(s);
}
