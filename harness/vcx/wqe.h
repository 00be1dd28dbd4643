/* SPDX-License-Identifier: Apache-2.0
 * wqe.h: execute work requests.
 */
#ifndef VCX_WQE_H
#define VCX_WQE_H
#include "fabric.h"

/* Walk q's send queue from q->ci to its doorbell record; fabric locked.  Returns true when q waits for a receiver that is
 * not ready and must be looked at again. */
bool wqe_run(struct vcx_qp *q);
/* q went to the error state: flush what is posted on both queues. */
void wqe_flush(struct vcx_qp *q);
/* Producer index of q's send queue as its doorbell record says (16 bits); checks the record. */
uint32_t wqe_record(const struct vcx_qp *q);
/* Is the WQE at `index` in the ring one that carries this index and this queue pair's number? */
bool wqe_is_posted(const struct vcx_qp *q, uint32_t index);
#endif
