/* SPDX-License-Identifier: Apache-2.0
 * hop_model.c: experiments and their equations.
 */
#include <stdio.h>
#include <string.h>

#include "hop_model.h"

#define H(id, name) name,
const char *const nic_hop_names[NIC_HOPS] = {NIC_HOP_LIST(H)};
#undef H

int nic_hop_find(const char *name)
{
	for (int i = 0; i < NIC_HOPS; i++)
		if (!strcmp(name, nic_hop_names[i]))
			return i;
	return -1;
}

#define BOTH(op, payload, db, end)             \
	{op, "loopback", payload, db, end},    \
	{                                      \
		op, "across", payload, db, end \
	}
const struct hop_exp hop_exps[] = {
	{"nop", "loopback", "", "db", "cqe"},
	{"nop", "loopback", "", "bf", "cqe"},
	BOTH("write", "inline", "db", "cqe"),
	BOTH("write", "inline", "bf", "cqe"),
	BOTH("write", "pointer", "db", "cqe"),
	BOTH("write", "pointer", "bf", "cqe"),
	BOTH("write", "inline", "db", "flag"),
	BOTH("write", "inline", "bf", "flag"),
	BOTH("write", "pointer", "db", "flag"),
	BOTH("write", "pointer", "bf", "flag"),
	BOTH("write-imm", "pointer", "db", "cqe"),
	BOTH("read", "pointer", "db", "cqe"),
	BOTH("write", "pointer", "db", "live-source"),
	BOTH("write", "inline", "db", "live-wqe"),
};
const size_t hop_exp_count = sizeof hop_exps / sizeof *hop_exps;

void hop_exp_name(const struct hop_exp *e, char *out, size_t n)
{
	snprintf(out, n, "%s/%s/%s/%s/%s", e->opcode, e->endpoints,
		 *e->payload ? e->payload : "none", e->doorbell, e->end);
}

void hop_row(const struct hop_exp *e, bool joint, double row[NIC_HOPS])
{
	const bool nop = !strcmp(e->opcode, "nop");
	const bool live = !strncmp(e->end, "live-", 5);
	const bool wire = !nop && (joint || strcmp(e->endpoints, "loopback"));
	const bool flag = !strcmp(e->end, "flag");

	memset(row, 0, NIC_HOPS * sizeof *row);
	row[NIC_DOORBELL_FLIGHT] = row[NIC_NIC_EXEC] = 1;
	if (!strcmp(e->end, "live-wqe"))
		return; /* the NIC samples the WQE when its turn has come */
	row[NIC_WQE_FETCH] = !strcmp(e->doorbell, "db");
	if (live)
		return; /* it samples the source when it has the WQE */
	row[NIC_PAYLOAD_FETCH] = !strcmp(e->payload, "pointer");
	row[NIC_WIRE_OUT] = wire;
	row[NIC_REMOTE_WRITE] = flag;
	row[NIC_WIRE_BACK] = wire && !flag;
	row[NIC_CQE_WRITE] = !flag;
}

const char *hop_assumes(enum nic_hop h, bool joint)
{
	switch (h) {
	case NIC_DOORBELL_FLIGHT:
	case NIC_NIC_EXEC:
		return "the NIC samples a WQE at the start of its fetch; the live clock is half a write period old";
	case NIC_WQE_FETCH:
		return "BlueFlame adds nothing of its own; the NIC samples the source at the start of its fetch";
	case NIC_PAYLOAD_FETCH:
		return "inline data costs the NIC nothing; READ fetches at the responder as WRITE does at the requester";
	case NIC_WIRE_OUT:
	case NIC_WIRE_BACK:
		return joint ? "includes the turn inside the NIC"
			     : "the turn inside the NIC, in loopback, costs nothing";
	case NIC_REMOTE_WRITE:
		return "the data is not held back for the acknowledgement, nor the other way round";
	case NIC_CQE_WRITE:
		return "NOP and WRITE cost the NIC the same";
	default:
		return "";
	}
}
