/* SPDX-License-Identifier: Apache-2.0
 * hop_model.h: the hops of one put, and which of them each experiment passes.
 *
 *   SM:   wqe_build -> order -> doorbell_store
 *   NIC:  doorbell_flight -> nic_exec -> wqe_fetch -> payload_fetch -> wire_out -+-> remote_write -> poll (flag)
 *                                                                               +-> wire_back -> cqe_write -> poll -> completion
 */
#ifndef PUTSCOPE_HOP_MODEL_H
#define PUTSCOPE_HOP_MODEL_H
#include <stdbool.h>
#include <stddef.h>

/* The NIC's hops: unknowns of the solver.  The SM's own steps are stamped. */
#define NIC_HOP_LIST(H)                       \
	H(DOORBELL_FLIGHT, "doorbell_flight") \
	H(NIC_EXEC, "nic_exec")               \
	H(WQE_FETCH, "wqe_fetch")             \
	H(PAYLOAD_FETCH, "payload_fetch")     \
	H(WIRE_OUT, "wire_out")               \
	H(REMOTE_WRITE, "remote_write")       \
	H(WIRE_BACK, "wire_back")             \
	H(CQE_WRITE, "cqe_write")
#define H(id, name) NIC_##id,
enum nic_hop { NIC_HOP_LIST(H) NIC_HOPS };
#undef H
extern const char *const nic_hop_names[NIC_HOPS];
int nic_hop_find(const char *name); /* -1: there is none */

/* One experiment, in the words of its case. */
struct hop_exp {
	const char *opcode;    /* nop, write, write-imm, read */
	const char *endpoints; /* loopback, across */
	const char *payload;   /* pointer, inline, "" */
	const char *doorbell;  /* db, bf */
	const char *end;       /* cqe, flag, live-source, live-wqe */
};
/* All that putscope can run, in the order of the list; each with both kinds of endpoints. */
extern const struct hop_exp hop_exps[];
extern const size_t hop_exp_count;
void hop_exp_name(const struct hop_exp *e, char *out,
		  size_t n); /* OPCODE/ENDPOINTS/PAYLOAD/DOORBELL/END */
/* Coefficients of the NIC's hops between the stored doorbell and what ends the experiment.  joint: no experiment crosses to
 * another device, so the turn inside the NIC cannot be told from the wire: loopback then passes wire_out and wire_back. */
void hop_row(const struct hop_exp *e, bool joint, double row[NIC_HOPS]);
/* What the equations take for granted, for the hops they are used for; "" for none. */
const char *hop_assumes(enum nic_hop h, bool joint);
#endif
