/* SPDX-License-Identifier: Apache-2.0
 * rig.c: queue pairs and destinations, wherever the endpoints lie: in this process, or B at the other rank.
 */
#include <stdio.h>

#include "err.h"
#include "path/slots.h"
#include "serve.h"

void rig_pair_close(struct nic_qp *pair[END_COUNT])
{
	for (int i = 0; i < END_COUNT; i++) {
		nic_qp_close(pair[i]);
		pair[i] = NULL;
	}
}

void rig_pair_broken(struct env *e, bool by_sm)
{
	rig_pair_close(by_sm ? e->sm_qp : e->cpu_qp);
}

/* Open the queue pairs of the local endpoints and connect them, B's at the other rank where it lies there. */
static int open_pair(struct env *e, bool by_sm, struct nic_qp *own[END_COUNT])
{
	struct serve_msg m = {.what = SERVE_PAIR, .by_sm = by_sm};
	struct nic_addr addr[END_COUNT];
	int err = 0;

	for (int i = 0; i < END_COUNT; i++) {
		if (e->end[i].remote)
			continue;
		OUR_TRY(nic_qp_open(&own[i], e->end[i].nic, by_sm ? e->sm : NULL,
				    QUEUE_DEPTH, 0),
			err, out);
		nic_qp_addr(own[i], &addr[i]);
	}
	if (e->end[END_B].remote) {
		m.addr = addr[END_A];
		OUR_TRY(serve_ask(e, &m, NULL), err, out);
		addr[END_B] = m.addr;
	}
	for (int i = 0; i < END_COUNT; i++)
		if (own[i])
			OUR_TRY(nic_qp_connect(own[i], &addr[!i]), err, out);
out:
	return err;
}

int rig_pair(struct env *e, bool by_sm, struct nic_qp *pair[END_COUNT])
{
	struct nic_qp **own = by_sm ? e->sm_qp : e->cpu_qp;

	if (!own[END_A]) {
		int err = open_pair(e, by_sm, own);

		if (err) {
			rig_pair_close(own);
			return err;
		}
	}
	memcpy(pair, own, END_COUNT * sizeof *own);
	return 0;
}

int rig_pair_more(struct env *e, struct nic_qp *pair[END_COUNT])
{
	int err = open_pair(e, false, pair);

	if (err)
		rig_pair_close(pair);
	return err;
}

const char *rig_endpoints(const struct env *e)
{
	return e->end[END_B].remote ? "nodes" : e->nic_count == 2 ? "across" : "loopback";
}

static int ask_slots(struct env *e, enum serve_what what, const struct slots *s,
		     uint64_t *bad)
{
	struct serve_msg m = {.what = what,
			      .inl = s->inl,
			      .bytes = s->bytes,
			      .stride = s->stride,
			      .ops = s->ops,
			      .seq0 = s->seq0};
	int err = serve_ask(e, &m, NULL);

	*bad = m.bad;
	return err;
}

int rig_poison(struct env *e, enum end at, const struct slots *s)
{
	uint64_t none;

	return e->end[at].remote ? ask_slots(e, SERVE_POISON, s, &none)
				 : slots_poison(e, at, s);
}

int rig_bad(struct env *e, enum end at, const struct slots *s, uint64_t *bad)
{
	return e->end[at].remote ? ask_slots(e, SERVE_CHECK, s, bad)
				 : slots_bad(e, at, s, bad);
}
