/* SPDX-License-Identifier: Apache-2.0
 * op.h: one work request on its way through the virtual NIC, stage by stage.
 *
 * Without delays all stages run in one go, on the thread that saw the doorbell.  A delay puts the next stage into the
 * event queue; requests of one queue pair keep their order in every stage.
 */
#ifndef VCX_OP_H
#define VCX_OP_H
#include "fabric.h"
#include "mem.h"

#define OP_WQE_BYTES 1024u /* max_sq_desc_sz that the device reports */
#define OP_SEGS_MAX 64u

/* MLX5_OPCODE_* of mlx5dv.h. */
enum {
	OP_NOP = 0x00,
	OP_WRITE = 0x08,
	OP_WRITE_IMM = 0x09,
	OP_SEND = 0x0a,
	OP_SEND_IMM = 0x0b,
	OP_READ = 0x10,
	OP_CS = 0x11,
	OP_FA = 0x12
};

struct seg {
	struct vcx_addr a;
	uint32_t len;
};

/* Moments of one request; those it did not pass stay 0. */
enum op_moment {
	T_SEEN,	    /* its doorbell was seen in the register */
	T_DOORBELL, /* acted upon */
	T_EXEC,	    /* its turn came */
	T_WQE,	    /* the work queue entry is at hand */
	T_PAYLOAD,  /* the payload is at hand */
	T_ARRIVED,  /* at the responder */
	T_ACKED,    /* the requester knows */
	T_VISIBLE,  /* the data is in the responder's memory */
	T_CQE,	    /* the completion is in memory */
	T_MOMENTS
};

struct op {
	struct op *next, *prev; /* of all that are on their way, or of the free ones */
	struct vcx_qp *q;	/* NULL: its queue pair is gone */
	struct vcx_qp *peer;	/* as last looked up */
	uint64_t seq;
	uint64_t at; /* when the stage before was due, or ended */
	bool was_due;
	int syndrome;
	uint8_t opcode;
	bool bf;      /* the entry came with the doorbell */
	bool across;  /* to another device */
	bool gathers; /* payload from memory, not inline */
	uint8_t refs; /* branches that still run */
	uint16_t index;
	uint32_t ds, blocks, bytes;
	uint64_t raddr, swap, compare, old;
	uint32_t rkey, total, segs;
	struct seg seg[OP_SEGS_MAX];
	bool has_receive;
	uint32_t receive; /* index of the receive that it consumes */
	uint8_t *
		data; /* payload between sampling and delivery; NULL: still where it was */
	uint64_t stamp,
		far_stamp; /* device clock when the requester's and the responder's completion were made; 0: when
				      it is written */
	uint64_t t[T_MOMENTS];
	uint8_t w[OP_WQE_BYTES];
};

/* A doorbell's own: when it was seen in the register and acted upon (stamps), when it was due (0: at once), and the entry that
 * came with it. */
struct ring {
	uint64_t seen, acted, due;
	const uint8_t *bf;
};

/* Walk q's send queue from q->ci to its doorbell record; fabric locked.  r: NULL when no doorbell led here.  True: q waits
 * for a receiver that is not ready and must be looked at again. */
bool op_run(struct vcx_qp *q, const struct ring *r);
/* Forget what is on its way for q, which is destroyed or reset. */
void op_drop(struct vcx_qp *q);
#endif
