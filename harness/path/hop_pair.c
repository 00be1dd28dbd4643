/* SPDX-License-Identifier: Apache-2.0
 * hop_pair.c: queue pairs of the experiments.  Each endpoint opens its device anew, for a doorbell page of its own: BlueFlame
 * needs one that no other queue pair rings.
 */
#include <stdlib.h>

#include "err.h"
#include "path/hop_pair.h"

static void end_close(struct hop_side *s)
{
	nic_qp_close(s->qp);
	if (s->src)
		ibv_dereg_mr(s->src);
	if (s->dst)
		ibv_dereg_mr(s->dst);
	nic_close(s->nic);
}

static void pair_close(struct hop_pair *p)
{
	/* A queue pair ends before what it points to. */
	end_close(&p->end[END_A]);
	end_close(&p->end[END_B]);
	memset(p, 0, sizeof *p);
}

static int side_open(struct env *e, struct hop_side *s, enum end end, bool across)
{
	const struct endpoint *ep = &e->end[end];
	const bool by_sm = end == END_A;
	int err;

	OUR_TRY(nic_open(&s->nic, e->nics[across && end == END_B]->name), err, out);
	OUR_TRY(nic_reg(s->nic, ep->src, DATA_BYTES, &s->src), err, out);
	OUR_TRY(nic_reg(s->nic, ep->dst, DATA_BYTES, &s->dst), err, out);
	err = nic_qp_open(&s->qp, s->nic, by_sm ? e->sm : NULL, QUEUE_DEPTH,
			  by_sm ? 0 : QUEUE_DEPTH);
out:
	return err;
}

static int pair_open(struct env *e, struct hop_pair *p, bool across)
{
	struct nic_addr addr[END_COUNT];
	int err = 0;

	for (int i = 0; i < END_COUNT; i++) {
		OUR_TRY(side_open(e, &p->end[i], (enum end)i, across), err, out);
		nic_qp_addr(p->end[i].qp, &addr[i]);
	}
	for (int i = 0; i < END_COUNT; i++)
		OUR_TRY(nic_qp_connect(p->end[i].qp, &addr[!i]), err, out);
	p->open = true;
out:
	if (err)
		pair_close(p);
	return err;
}

/* [across][BlueFlame]: a page that sees both kinds of doorbells would have to tell them apart each time. */
static unsigned pair_index(bool across, bool bf)
{
	return 2u * across + bf;
}

struct hop_pair *hop_pair(struct env *e, bool across, bool bf)
{
	struct hop_pair *p;

	if (!e->hops)
		e->hops = calloc(HOP_PAIRS, sizeof *e->hops);
	if (!e->hops) {
		err_say(-ENOMEM, "no memory for queue pairs");
		return NULL;
	}
	p = &e->hops[pair_index(across, bf)];
	return p->open || !pair_open(e, p, across) ? p : NULL;
}

void hop_pair_broken(struct env *e, bool across, bool bf)
{
	if (e->hops)
		pair_close(&e->hops[pair_index(across, bf)]);
}

void hop_pairs_close(struct env *e)
{
	if (!e->hops)
		return;
	for (unsigned i = 0; i < HOP_PAIRS; i++)
		pair_close(&e->hops[i]);
	free(e->hops);
	e->hops = NULL;
}
