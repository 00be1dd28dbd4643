/* SPDX-License-Identifier: Apache-2.0
 * wqe.h: mlx5 work queue entry, doorbell and completion entry, as device code writes and reads them.
 *
 * Layouts: rdma-core providers/mlx5/mlx5dv.h (struct mlx5_wqe_ctrl_seg, mlx5_wqe_raddr_seg, mlx5_wqe_data_seg,
 * mlx5_cqe64).  All fields are big-endian; the 64-bit words below are what little-endian stores must hold.
 * mlx5dv's inline helpers are host code only, hence these.
 */
#ifndef PUTSCOPE_WQE_H
#define PUTSCOPE_WQE_H
#include "sm/dev.h"

#define WQE_BB_BYTES 64u /* MLX5_SEND_WQE_BB */
#define WQE_OP_NOP 0x00u
#define WQE_OP_WRITE 0x08u     /* MLX5_OPCODE_RDMA_WRITE */
#define WQE_CQE_ALWAYS 0x08u   /* MLX5_WQE_CTRL_CQ_UPDATE, in fm_ce_se (byte 11) */
#define WQE_INLINE 0x80000000u /* MLX5_INLINE_SEG */
#define WQE_INLINE_MAX \
	28u /* what ctrl (16) + raddr (16) + header (4) leave in one 64 B block */
#define CQE_BYTES 64u
#define CQE_STAMP 48u	   /* be64: the NIC clock when the completion was made */
#define CQE_TAIL 60u	   /* be16 wqe_counter, signature, op_own */
#define CQE_OP_INVALID 15u /* MLX5_CQE_INVALID */
#define CQE_OP_REQ_ERR 13u /* MLX5_CQE_REQ_ERR */
#define CQE_SYNDROME \
	52u /* the 32-bit word that holds vendor syndrome (+54) and syndrome (+55) */

/* Where this queue goes on: kept in memory between launches. */
struct nic_cursor {
	uint32_t pi;	  /* next WQE block, not masked */
	uint32_t ci;	  /* next CQE, not masked */
	uint32_t reg_off; /* half of the doorbell register to ring next */
	uint32_t pad;
};

/* A send queue and its completion queue as device code uses them; every address is a device address. */
struct nic_queue {
	uint8_t *sq;
	uint8_t *sq_rec; /* doorbell record, send word */
	uint8_t *reg;	 /* doorbell register */
	uint8_t *cq;
	uint8_t *cq_rec;
	struct nic_cursor *cursor;
	uint32_t sq_count;   /* blocks, a power of two */
	uint32_t cq_count;   /* entries, a power of two */
	uint32_t reg_toggle; /* xor of reg_off between rings */
	uint32_t qpn;
};

/* First 8 bytes of a control segment: also what the doorbell register takes. */
DEV uint64_t wqe_ctrl(uint32_t index, uint32_t opcode, uint32_t qpn, uint32_t ds)
{
	return (uint64_t)dev_be32(qpn << 8 | ds) << 32 |
	       dev_be32((index & 0xffff) << 8 | opcode);
}
DEV uint64_t wqe_ctrl_flags(uint32_t fm_ce_se)
{
	return (uint64_t)fm_ce_se << 24; /* byte 11 */
}

/* Where the payload of a put comes from and goes to.  Keys are in host order. */
struct wqe_put {
	uint64_t laddr, raddr;
	uint32_t lkey, rkey, bytes;
};

/* Three 16-byte stores: control, remote address, pointer. */
DEV void wqe_write_pointer(uint8_t *w, uint64_t ctrl, const struct wqe_put *p)
{
	dev_st16(w, ctrl, wqe_ctrl_flags(WQE_CQE_ALWAYS));
	dev_st16(w + 16, dev_be64(p->raddr), dev_be32(p->rkey));
	dev_st16(w + 32, (uint64_t)dev_be32(p->lkey) << 32 | dev_be32(p->bytes),
		 dev_be64(p->laddr));
}
/* Four 16-byte stores: control, remote address, then the payload d[0..3] (up to 28 B) behind its header. */
DEV void wqe_write_inline(uint8_t *w, uint64_t ctrl, const struct wqe_put *p,
			  const uint64_t *d)
{
	dev_st16(w, ctrl, wqe_ctrl_flags(WQE_CQE_ALWAYS));
	dev_st16(w + 16, dev_be64(p->raddr), dev_be32(p->rkey));
	dev_st16(w + 32, d[0] << 32 | dev_be32(WQE_INLINE | p->bytes),
		 d[1] << 32 | d[0] >> 32);
	dev_st16(w + 48, d[2] << 32 | d[1] >> 32, d[3] << 32 | d[2] >> 32);
}
DEV uint32_t wqe_inline_ds(uint32_t bytes)
{
	return 2 + (4 + bytes + 15) / 16;
}

/* One look at the CQE that ci stands at.  0: the NIC has not written it; 1: a completion; -1: an error CQE. */
DEV int cqe_look(const struct nic_queue *q, uint32_t ci)
{
	const uint8_t *e = q->cq + (size_t)(ci & (q->cq_count - 1)) * CQE_BYTES;
	uint32_t op_own = dev_ld4b(e + CQE_TAIL) >> 24;

	if (op_own >> 4 == CQE_OP_INVALID || (op_own & 1) != ((ci & q->cq_count) != 0))
		return 0;
	return op_own >> 4 == CQE_OP_REQ_ERR ? -1 : 1;
}
/* Syndrome (low byte) and vendor syndrome (next) of the error CQE at ci. */
DEV uint32_t cqe_syndrome(const struct nic_queue *q, uint32_t ci)
{
	uint32_t v = dev_ld4b(q->cq + (size_t)(ci & (q->cq_count - 1)) * CQE_BYTES +
			      CQE_SYNDROME);

	return v >> 24 | (v >> 8 & 0xff00);
}
/* Hand the CQE back: the consumer index record, read by the NIC to see an overrun. */
DEV void cqe_release(const struct nic_queue *q, uint32_t ci_next)
{
	dev_st4b(q->cq_rec, dev_be32(ci_next & 0xffffff));
}
#endif
