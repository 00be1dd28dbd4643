/* SPDX-License-Identifier: Apache-2.0
 * uar.h: doorbell pages: plain doorbells, BlueFlame, CQ arms.
 */
#ifndef VCX_UAR_H
#define VCX_UAR_H
#include "fabric.h"

#define UAR_BF_OFFSET 0x800u /* MLX5_BF_OFFSET */
#define UAR_BFREG_BYTES 512u /* two halves of 256 B, toggled between posts */
#define UAR_BFREGS 2u	     /* of one page */
#define UAR_ARM_OFFSET 0x20u /* MLX5_CQ_DOORBELL */

int uar_start(int fd);		      /* map the pages; 0 or errno */
int uar_alloc(bool nc, uint32_t *id); /* 0 or errno; ids are 1 .. VCX_UARS - 1 */
int uar_free(uint32_t id);
/* q rings on page q->uar, or no longer does; fabric locked. */
void uar_list(struct vcx_qp *q, bool listed);
void uar_each_qp(void (*fn)(struct vcx_qp *)); /* of this process; fabric locked */
bool uar_look(void);	    /* act on what was rung; true: something was */
extern uint32_t uar_cq_top; /* highest handle of a CQ that this process has made */
#endif
