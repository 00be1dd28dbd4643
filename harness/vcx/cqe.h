/* SPDX-License-Identifier: Apache-2.0
 * cqe.h: completions.
 */
#ifndef VCX_CQE_H
#define VCX_CQE_H
#include "fabric.h"

/* Opcodes of a CQE and syndromes of an error CQE: mlx5dv.h (MLX5_CQE_*, MLX5_CQE_SYNDROME_*). */
enum {
	CQE_REQ = 0,
	CQE_RESP_WR_IMM = 1,
	CQE_RESP_SEND = 2,
	CQE_RESP_SEND_IMM = 3,
	CQE_REQ_ERR = 13,
	CQE_RESP_ERR = 14
};
enum {
	SYND_LENGTH = 0x01,
	SYND_QP_OP = 0x02,
	SYND_PROTECTION = 0x04,
	SYND_FLUSHED = 0x05,
	SYND_REMOTE_INVALID = 0x12,
	SYND_REMOTE_ACCESS = 0x13,
	SYND_REMOTE_OP = 0x14,
	SYND_RETRY = 0x15,
	SYND_RNR = 0x16,
};

struct vcx_completion {
	uint8_t cqe_opcode, wqe_opcode, syndrome;
	bool solicited;
	uint16_t index;
	uint32_t bytes, imm; /* imm as it stands in the WQE */
	uint64_t stamp;	     /* device clock; 0: now */
};
uint64_t cqe_clock(void); /* the device's clock: nanoseconds */
/* Write one CQE into CQ `h` for queue pair q.  Fabric locked. */
void cqe_put(uint32_t h, const struct vcx_qp *q, const struct vcx_completion *c);
/* The program armed CQ h, having seen completions up to ci. */
void cqe_arm(struct vcx_cq *c, uint32_t ci, bool solicited_only);
#endif
