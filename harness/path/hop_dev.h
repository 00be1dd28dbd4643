/* SPDX-License-Identifier: Apache-2.0
 * hop_dev.h: arguments of the kernels that take one put apart, and the list of those kernels.
 */
#ifndef PUTSCOPE_HOP_DEV_H
#define PUTSCOPE_HOP_DEV_H
#include "path/dev_path.h"

enum hop_op { HOP_OP_NOP, HOP_OP_WRITE, HOP_OP_WRITE_IMM, HOP_OP_READ };
enum hop_end { HOP_TO_CQE, HOP_TO_FLAG };
/* Live clock: while the NIC works, the SM's clock is kept in the source word or in the WQE's inline data. */
enum hop_live { HOP_DEAD, HOP_LIVE_SOURCE, HOP_LIVE_WQE };

/* Which of the stamps a kernel takes.  A reading between fence and doorbell keeps a CPU from preparing the doorbell's line
 * meanwhile (50 to 170 ns): those of the order are taken in runs of their own. */
enum hop_form {
	HOP_PLAIN,   /* start and end */
	HOP_STAMPED, /* and WQE built, doorbell rung, end seen */
	HOP_ORDER,   /* and WQE built, fence retired, doorbell rung */
	HOP_FORMS
};

/* Stamps of one put. */
enum hop_stamp {
	HOP_T0,	     /* before the first WQE store */
	HOP_BUILT,   /* WQE stored */
	HOP_ORDERED, /* record stored, fence retired */
	HOP_RUNG,    /* doorbell (or BlueFlame copy) stored */
	HOP_SEEN,    /* CQE or flag seen */
	HOP_DONE,    /* completion routine returns */
	HOP_POLLS,   /* looks until it was seen; ticks of the dither in the upper half */
	HOP_LIVE_READ, /* live clock: the low 32 bits of the clock that arrived */
	HOP_STAMPS
};

struct hop_args {
	struct dev_launch l;
	struct nic_queue q;
	uint8_t *flag; /* where data lands, slot 0, device address */
	uint8_t *
		head; /* the slot that the SM writes the put's number to: the source (READ: the peer's) */
	uint32_t
		gap; /* ticks: each put starts 0 .. gap - 1 after it could, on any phase of the NIC's own loops */
	uint32_t lead;	 /* ticks from the window's start to the doorbell, about */
	uint32_t dither; /* the first look comes 0 .. dither - 1 ticks after that */
};

/* KERNEL(name, opcode, inline, BlueFlame, end, live): every combination that is an experiment. */
#define HOP_KERNEL_LIST(K)                                                       \
	K(nop_db, HOP_OP_NOP, 0, 0, HOP_TO_CQE, HOP_DEAD)                        \
	K(nop_bf, HOP_OP_NOP, 0, 1, HOP_TO_CQE, HOP_DEAD)                        \
	K(write_inline_db, HOP_OP_WRITE, 1, 0, HOP_TO_CQE, HOP_DEAD)             \
	K(write_inline_bf, HOP_OP_WRITE, 1, 1, HOP_TO_CQE, HOP_DEAD)             \
	K(write_pointer_db, HOP_OP_WRITE, 0, 0, HOP_TO_CQE, HOP_DEAD)            \
	K(write_pointer_bf, HOP_OP_WRITE, 0, 1, HOP_TO_CQE, HOP_DEAD)            \
	K(write_inline_db_flag, HOP_OP_WRITE, 1, 0, HOP_TO_FLAG, HOP_DEAD)       \
	K(write_inline_bf_flag, HOP_OP_WRITE, 1, 1, HOP_TO_FLAG, HOP_DEAD)       \
	K(write_pointer_db_flag, HOP_OP_WRITE, 0, 0, HOP_TO_FLAG, HOP_DEAD)      \
	K(write_pointer_bf_flag, HOP_OP_WRITE, 0, 1, HOP_TO_FLAG, HOP_DEAD)      \
	K(write_imm_pointer_db, HOP_OP_WRITE_IMM, 0, 0, HOP_TO_CQE, HOP_DEAD)    \
	K(read_db, HOP_OP_READ, 0, 0, HOP_TO_CQE, HOP_DEAD)                      \
	K(write_live_source_db, HOP_OP_WRITE, 0, 0, HOP_TO_CQE, HOP_LIVE_SOURCE) \
	K(write_live_wqe_db, HOP_OP_WRITE, 1, 0, HOP_TO_CQE, HOP_LIVE_WQE)

#define K(name, op, inl, bf, end, live) HOP_K_##name,
enum hop_kernel { HOP_KERNEL_LIST(K) HOP_KERNELS };
#undef K

#ifdef __cplusplus
extern "C" {
#endif
/* A live experiment runs stamped only. */
extern const struct dev_kernel hop_kernels_host[HOP_KERNELS][HOP_FORMS],
	hop_kernels_cuda[HOP_KERNELS][HOP_FORMS];
extern const struct dev_kernel hop_gap_kernel_host, hop_gap_kernel_cuda;
#ifdef __cplusplus
}
#endif
#endif
