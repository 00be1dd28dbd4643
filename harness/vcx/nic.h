/* SPDX-License-Identifier: Apache-2.0
 * nic.h: the engine: doorbell pages, the NIC's thread, steps by pollers.
 */
#ifndef VCX_NIC_H
#define VCX_NIC_H
#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"

struct ring;

int nic_open(
	int flags); /* a descriptor of the device's pages, or -1 with errno; starts the thread */
void nic_stop(void);
/* Fabric locked.  Run q's send queue, which a doorbell (r) or nobody announced. */
void nic_run(struct vcx_qp *q, const struct ring *r);
bool nic_events(void);		 /* run what is due; fabric not locked */
void nic_wait(struct vcx_qp *q); /* q is to be looked at again without a doorbell */
#endif
