/* SPDX-License-Identifier: Apache-2.0
 * xfer.h: what a work request does: the segments, the checks of keys and rights, the bytes.
 */
#ifndef VCX_XFER_H
#define VCX_XFER_H
#include "fabric.h"

#define XFER_NOT_READY (-1) /* the peer has no receive posted */

/* Execute the WQE w (ds units of 16 B, control segment first) of q.  0, a syndrome, or XFER_NOT_READY (nothing was moved). */
int xfer(struct vcx_qp *q, const uint8_t *w, uint32_t ds, uint8_t opcode,
	 uint32_t *bytes);
#endif
