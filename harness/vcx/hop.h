/* SPDX-License-Identifier: Apache-2.0
 * hop.h: the hops at which the virtual NIC can wait; the spelling of delay.HOP.
 */
#ifndef VCX_HOP_H
#define VCX_HOP_H

#define VCX_HOP_LIST(H)                                                              \
	H(DOORBELL_FLIGHT, "doorbell_flight") /* register seen -> acted upon */      \
	H(NIC_EXEC, "nic_exec")		      /* -> this WQE's turn */               \
	H(WQE_FETCH, "wqe_fetch")	      /* WQE sampled -> at hand */           \
	H(PAYLOAD_FETCH, "payload_fetch")     /* payload sampled -> at hand */       \
	H(WIRE_OUT, "wire_out")		      /* -> at the other device */           \
	H(WIRE_BACK, "wire_back")	      /* acknowledged -> known here */       \
	H(REMOTE_WRITE, "remote_write")	      /* arrived -> visible; holds no ack */ \
	H(CQE_WRITE, "cqe_write")	      /* completion made -> visible */

#define H(id, name) HOP_##id,
enum vcx_hop { VCX_HOP_LIST(H) VCX_HOPS };
#undef H
#endif
