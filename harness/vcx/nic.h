/* SPDX-License-Identifier: Apache-2.0
 * nic.h: the engine: doorbell pages, the NIC's thread, steps by pollers.
 */
#ifndef VCX_NIC_H
#define VCX_NIC_H
#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"

#define UAR_BF_OFFSET 0x800u /* MLX5_BF_OFFSET */
#define UAR_BFREG_BYTES 512u /* two halves of 256 B, toggled between posts */
#define UAR_BFREGS 2u	     /* of one page */
#define UAR_ARM_OFFSET 0x20u /* MLX5_CQ_DOORBELL */

int nic_open(
	int flags); /* a descriptor of the doorbell pages, or -1 with errno; starts the thread */
void nic_stop(void);
/* Doorbell pages; ids are 1 .. VCX_UARS - 1. */
int nic_uar_alloc(bool nc, uint32_t *id); /* 0 or errno */
int nic_uar_free(uint32_t id);
void nic_qp_listed(
	struct vcx_qp *q,
	bool listed);	    /* q rings on page q->uar, or no longer does; fabric locked */
extern uint32_t nic_cq_top; /* highest handle of a CQ that this process has made */
#endif
