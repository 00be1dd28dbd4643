/* SPDX-License-Identifier: Apache-2.0
 * wqe.h: the send ring: its record, its entries, flushing.
 */
#ifndef VCX_WQE_H
#define VCX_WQE_H
#include "op.h"

#define WQE_BB 64u	  /* send WQE basic block */
#define WQE_DS 16u	  /* unit of ds */
#define WQE_INDEX 0xffffu /* producer and consumer index: 16 bits */

/* Sample the WQE at q->ci into o (from the ring, or what the doorbell brought) and check its control segment. */
void wqe_fetch(struct vcx_qp *q, struct op *o);
/* q went to the error state: flush what is posted on both queues. */
void wqe_flush(struct vcx_qp *q);
/* Producer index of q's send queue as its doorbell record says (16 bits); checks the record. */
uint32_t wqe_record(const struct vcx_qp *q);
/* Is the WQE at `index` in the ring one that carries this index and this queue pair's number? */
bool wqe_is_posted(const struct vcx_qp *q, uint32_t index);
/* mode=sink: the record completes everything before it; no WQE is read. */
void wqe_sink(struct vcx_qp *q, uint32_t pi);

static inline uint32_t be32_at(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
#endif
