/* SPDX-License-Identifier: Apache-2.0
 * dev_path.h: arguments and results of the kernels in *_dev.c, shared by gcc and nvcc.
 */
#ifndef PUTSCOPE_DEV_PATH_H
#define PUTSCOPE_DEV_PATH_H
#include "nic/wqe.h"

#define PUT_OPS_MAX 512u /* puts of one launch: their stamps stay in 12 KiB of scratch */
#define HOP_OPS_MAX 256u /* likewise where each put has eight stamps: 16 KiB */
#define DEV_BASELINE 32u /* back-to-back clock reads of each launch */
#define RERING_NONE 0u

enum put_order {
	ORDER_NONE,	 /* WQE, record, doorbell: nothing between (unsafe control) */
	ORDER_GPU_FENCE, /* WQE, record, fence.gpu, doorbell */
	ORDER_GPU_FENCE_DBREC, /* WQE, fence.gpu, record, fence.gpu, doorbell */
	ORDER_GPU_RELEASE,     /* WQE, record, doorbell by st.release.gpu */
	ORDER_THREADFENCE2,    /* WQE, __threadfence, record, __threadfence, doorbell */
	ORDER_SYS_RELEASE,     /* WQE, record, doorbell by st.release.sys */
	ORDER_SYS_FENCE,       /* WQE, record, fence.sys, doorbell */
	ORDER_COUNT,
};

/* How the SM enqueues for a proxy. */
enum proxy_order {
	PROXY_SETTLED,	   /* tuned; the payload was visible before the put began */
	PROXY_SYS_FENCE,   /* tuned; a system fence inside the window makes it visible */
	PROXY_SYS_RELEASE, /* baseline: slot by an atomic, room by a look at the host, descriptor by a release at system scope */
	PROXY_ORDERS
};

enum dev_status { DEV_OK, DEV_DEADLINE, DEV_ERROR_CQE };

/* What a launch says of itself; written once, at its end. */
struct dev_result {
	uint32_t status;   /* enum dev_status */
	uint32_t at;	   /* the put it stopped at */
	uint32_t syndrome; /* of an error CQE: syndrome | vendor syndrome << 8 */
	uint32_t rerings;  /* doorbells rung again (unsafe orderings only) */
	uint64_t entry_wall,
		exit_wall;    /* shared clock, at the kernel's first and last act */
	uint64_t entry, exit; /* SM clock, likewise */
	uint64_t baseline[DEV_BASELINE];
};

/* A side's memory: where puts come from and where they land. */
struct dev_slots {
	uint8_t *src; /* device address, written by the SM; also what laddr names */
	uint64_t laddr, raddr;
	uint32_t lkey, rkey;
	uint32_t stride, count; /* put i uses slot i % count */
};

/* What every launch of puts is told. */
struct dev_launch {
	struct dev_slots s; /* endpoint A's */
	uint32_t bytes, ops;
	uint64_t seq0; /* number of the first put */
	uint64_t deadline_ticks;
	uint64_t *
		stamps; /* puts: [3 * ops] t0, after the doorbell (0 when plain), completion; round trips: [2 * ops] */
	struct dev_result *result;
};

struct put_args {
	struct dev_launch l;
	struct nic_queue q;
	uint64_t rering_ticks;
};

/* Where each side of a round trip polls (8 B, device addresses), and B's own slots. */
struct dev_reply {
	struct dev_slots s;
	uint8_t *flag_b, *flag_a;
};

/* Request and reply by one SM that plays both endpoints in turn: A puts to B, sees the flag as B, and so back. */
struct rtt_args {
	struct dev_launch l;
	struct dev_reply r;
	struct nic_queue qa, qb;
	uint64_t flag_b_raddr,
		flag_a_raddr; /* the flag words as the NIC names them (big payloads) */
	uint64_t
		hold_ticks; /* rtt_hold: B waits so long before it answers puts of odd number, and gap_ticks to 2 gap_ticks more in any case */
	uint32_t gap_ticks; /* likewise: A's puts start so much later than they could */
};

/* A proxy's rings as the SM sees them.  Descriptor: two words that both carry the tag, the low 16 bits of the entry's
 * number + 1, so that a reader of either half knows whether it is there. */
#define PROXY_RINGS_MAX 32u
#define PROXY_RING_ENTRIES 256u
#define PROXY_DESC_BYTES 16u
#define PROXY_PROGRESS_OFF (PROXY_RING_ENTRIES * PROXY_DESC_BYTES)
#define PROXY_RING_BYTES \
	(PROXY_PROGRESS_OFF + 64u) /* progress: entries taken, by the worker */
#define PROXY_LINE_BYTES 64u
#define PROXY_FLAG 0x8000u /* in the upper size part: put the 8 B flag behind this put */
#define PROXY_ERROR (1ull << 63) /* the counter's error bit; low bits: syndrome */
/* Of ring 0; that of ring r lies r of these sizes behind it. */
struct proxy_view {
	uint8_t *ring; /* PROXY_RING_BYTES: host memory, device address */
	uint8_t *
		counter; /* PROXY_LINE_BYTES: completed puts, host memory, written by the worker */
	uint8_t *
		reserve; /* PROXY_LINE_BYTES: entries reserved (baseline), memory of the SM */
};
static inline
#ifdef __CUDACC__
	__device__ __host__
#endif
		uint64_t
		proxy_desc_word(uint32_t offset, uint32_t tag, uint32_t part)
{
	return (uint64_t)offset << 32 | (uint64_t)(tag & 0xffff) << 16 | (part & 0xffff);
}

struct proxy_args {
	struct dev_launch l;
	struct proxy_view v;
};
/* A window of l.ops messages, message i through ring i % rings; stamps[0]: its ticks. */
struct proxy_rate_args {
	struct dev_launch l;
	struct proxy_view v;
	uint32_t rings;
};
struct proxy_rtt_args {
	struct dev_launch l;
	struct dev_reply r;
	struct proxy_view v; /* ring 0 is A's, ring 1 B's */
};

/* The host path's producer: writes the head of one put's payload, as the kernel that ends before the put. */
struct produce_args {
	uint8_t *src;
	uint64_t seq;
	uint32_t bytes, pad;
	uint64_t *walls; /* [2]: entry, exit, shared clock */
};

#ifdef __cplusplus
extern "C" {
#endif
#define PUT_INLINE 1
#define PUT_STAMPED 1
enum rtt_kind { RTT_INLINE, RTT_POINTER, RTT_BIG, RTT_KINDS };
/* [ordering][inline][stamped]; the _cuda tables are there only in a build with CUDA. */
extern const struct dev_kernel put_kernels_host[ORDER_COUNT][2][2],
	put_kernels_cuda[ORDER_COUNT][2][2];
extern const struct dev_kernel rtt_kernels_host[ORDER_COUNT][RTT_KINDS],
	rtt_kernels_cuda[ORDER_COUNT][RTT_KINDS];
extern const struct dev_kernel rtt_hold_kernel_host,
	rtt_hold_kernel_cuda; /* 8 B inline; stamps: [3 * ops] request, reply seen, ticks held */
extern const struct dev_kernel proxy_kernels_host[PROXY_ORDERS][2],
	proxy_kernels_cuda[PROXY_ORDERS][2]; /* [order][stamped] */
extern const struct dev_kernel proxy_rate_kernels_host[PROXY_ORDERS],
	proxy_rate_kernels_cuda[PROXY_ORDERS]; /* settled and sys-release only */
extern const struct dev_kernel proxy_rtt_kernels_host[2],
	proxy_rtt_kernels_cuda[2]; /* [big] */
extern const struct dev_kernel produce_kernel_host, produce_kernel_cuda;
#ifdef __cplusplus
}
#endif
#endif
