/* SPDX-License-Identifier: Apache-2.0
 * xfer.h: what a work request does to memory.  Fabric locked.  Results: 0 or a syndrome (cqe.h).
 */
#ifndef VCX_XFER_H
#define VCX_XFER_H
#include "op.h"

bool xfer_takes_receive(uint8_t opcode);
bool xfer_is_read(uint8_t opcode); /* READ and atomics: the answer carries data */
/* Segments and local keys of the sampled WQE. */
int xfer_parse(struct op *o);
/* The connected peer, NULL when it does not answer. */
struct vcx_qp *xfer_peer(const struct vcx_qp *q);
/* Reserve one receive of the peer; false: none is posted. */
bool xfer_take_receive(struct op *o, struct vcx_qp *peer);
/* Copy the payload out of the program's memory: what it writes there from now on is not sent. */
int xfer_sample(struct op *o);
int xfer_check(const struct op *o,
	       const struct vcx_qp *peer);	   /* the responder's rights */
int xfer_write(struct op *o, struct vcx_qp *peer); /* WRITE: the data into its memory */
int xfer_scatter(struct op *o,
		 struct vcx_qp *peer); /* SEND: into the receive's segments */
/* The responder's completion; err: what scattering said. */
void xfer_received(struct op *o, struct vcx_qp *peer, int err, uint64_t stamp);
void xfer_count(struct op *o, const struct vcx_qp *peer); /* bytes */
/* READ and atomics at the responder; hold: the data waits until xfer_take. */
int xfer_respond(struct op *o, struct vcx_qp *peer, bool hold);
int xfer_take(struct op *o); /* the answer into the requester's memory */
#endif
