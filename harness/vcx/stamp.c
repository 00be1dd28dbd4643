/* SPDX-License-Identifier: Apache-2.0
 * stamp.c: a ring of stamps; and the delays, which programs may switch while they run.
 */
#include "event.h"
#include "option.h"
#include "stamp.h"
#include "vcx.h"

#define KEPT 8192u

static struct vcx_stamp kept[KEPT];
static uint32_t head, tail; /* written, taken; fabric locked */

static double between(const struct op *o, enum op_moment from, enum op_moment to)
{
	return o->t[from] && o->t[to] ? event_ns((int64_t)(o->t[to] - o->t[from])) : -1;
}

void stamp_keep(const struct op *o)
{
	struct vcx_stamp *s = &kept[head++ % KEPT];

	if (head - tail > KEPT)
		tail = head - KEPT;
	s->qpn = o->q->qpn;
	s->bytes = o->bytes;
	s->index = o->index;
	s->opcode = o->opcode;
	s->blueflame = o->bf;
	s->ns[HOP_DOORBELL_FLIGHT] = between(o, T_SEEN, T_DOORBELL);
	s->ns[HOP_NIC_EXEC] = between(o, T_DOORBELL, T_EXEC);
	s->ns[HOP_WQE_FETCH] = o->bf ? -1 : between(o, T_EXEC, T_WQE);
	s->ns[HOP_PAYLOAD_FETCH] = o->gathers ? between(o, T_WQE, T_PAYLOAD) : -1;
	s->ns[HOP_WIRE_OUT] = o->across ? between(o, T_PAYLOAD, T_ARRIVED) : -1;
	s->ns[HOP_WIRE_BACK] = o->across ? between(o, T_ARRIVED, T_ACKED) : -1;
	s->ns[HOP_REMOTE_WRITE] = between(o, T_ARRIVED, T_VISIBLE);
	s->ns[HOP_CQE_WRITE] = between(o, T_ACKED, T_CQE);
}

int vcx_delay(const char *hop, uint64_t ns)
{
	int h = vcx_hop_find(hop);

	if (h < 0 || fabric_attach())
		return -1;
	atomic_store(&fab->control.extra_ns[h], ns);
	fabric_delays_changed();
	return 0;
}

void vcx_stamping(int on)
{
	if (!fabric_attach())
		atomic_store(&fab->control.stamps, on != 0);
}

int vcx_stamps(struct vcx_stamp *v, int n)
{
	int k = 0;

	if (!fab)
		return 0;
	fabric_lock();
	for (; k < n && tail != head; k++)
		v[k] = kept[tail++ % KEPT];
	fabric_unlock();
	return k;
}
