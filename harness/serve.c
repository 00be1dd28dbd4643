/* SPDX-License-Identifier: Apache-2.0
 * serve.c: rank 0 asks, rank 1 answers.
 */
#include <stdio.h>
#include <unistd.h>

#include "err.h"
#include "path/slots.h"
#include "serve.h"

#define MAGIC 0x70757473u /* "puts" */

int serve_ask(struct env *e, struct serve_msg *m)
{
	int err;

	m->magic = MAGIC;
	OUR_TRY(ranks_send(&e->ranks, m, sizeof *m), err, out);
	OUR_TRY(ranks_recv(&e->ranks, m, sizeof *m), err, out);
	if (m->magic != MAGIC)
		err = err_say(
			-EPROTO,
			"rank 1 does not speak as this putscope does: start the same binary on both sides");
	else if (m->err)
		err = err_say(m->err, "rank 1 (%s): %s", m->host, m->why);
out:
	return err;
}

static int answer_pair(struct env *e, struct serve_msg *m)
{
	struct nic_qp **own = m->by_sm ? e->sm_qp : e->cpu_qp;
	struct nic_addr peer = m->addr;
	int err;

	nic_qp_close(own[END_B]);
	own[END_B] = NULL;
	/* Rank 1's queue pair only receives: no SM drives it. */
	OUR_TRY(nic_qp_open(&own[END_B], e->end[END_B].nic, NULL, QUEUE_DEPTH, 0), err,
		out);
	OUR_TRY(nic_qp_connect(own[END_B], &peer), err, out);
	nic_qp_addr(own[END_B], &m->addr);
out:
	return err;
}

static int answer(struct env *e, struct serve_msg *m)
{
	const struct slots s = {m->seq0, m->bytes, m->stride, m->ops, m->inl};

	switch (m->what) {
	case SERVE_HELLO:
		m->dst_addr = e->end[END_B].dst_addr;
		m->dst_rkey = e->end[END_B].dst_rkey;
		return 0;
	case SERVE_PAIR:
		return answer_pair(e, m);
	case SERVE_POISON:
	case SERVE_CHECK:
		if ((uint64_t)s.stride * s.ops > DATA_BYTES || s.bytes > s.stride)
			return err_say(
				-EINVAL,
				"asked for %u slots of %u B: more than this side has",
				s.ops, s.stride);
		return m->what == SERVE_POISON ? slots_poison(e, END_B, &s)
					       : slots_bad(e, END_B, &s, &m->bad);
	case SERVE_END:
		return 0;
	}
	return err_say(-EPROTO, "unknown request %u", m->what);
}

int serve_loop(struct env *e)
{
	struct serve_msg m;
	int err;

	sm_spinners(0, e->virtual_nic, false); /* this rank sleeps between requests */
	do {
		OUR_TRY(ranks_recv(&e->ranks, &m, sizeof m), err, out);
		if (m.magic != MAGIC)
			return err_say(
				-EPROTO,
				"rank 0 does not speak as this putscope does: start the same binary on both sides");
		m.err = answer(e, &m);
		snprintf(m.why, sizeof m.why, "%s", m.err ? err_last() : "");
		gethostname(m.host, sizeof m.host - 1);
		OUR_TRY(ranks_send(&e->ranks, &m, sizeof m), err, out);
	} while (m.what != SERVE_END);
out:
	return err;
}
