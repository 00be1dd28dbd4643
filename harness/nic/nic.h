/* SPDX-License-Identifier: Apache-2.0
 * nic.h: one way to a ConnectX, real or virtual, through libibverbs and libmlx5.
 *
 * Ownership: whoever opens closes; a nic must outlive its regions and queue pairs, an SM outlives the queue pairs that
 * it drives.
 */
#ifndef PUTSCOPE_NIC_H
#define PUTSCOPE_NIC_H
#include <infiniband/verbs.h>
#include <stdbool.h>

#include "nic/wqe.h"

struct json_t;
struct sm;

struct nic {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	char name[64];
	uint8_t port;
	int gid_index;
	union ibv_gid gid;
	uint16_t lid;
	enum ibv_mtu mtu;
	bool ethernet;
	bool mlx5; /* direct verbs work: the SM can drive its queues */
};
/* Open a device by name; port 1, the first RoCE v2 GID on IPv4 or else any RoCE v2 GID (InfiniBand: the LID).
 * -ENODEV: no such device (names those there are); -EPERM: it is there and refuses. */
int nic_open(struct nic **nic, const char *name);
void nic_close(struct nic *nic);
/* Names of the RDMA devices, at most max; the count, 0 when there is none. */
unsigned nic_names(char names[][64], unsigned max);
bool nic_is_virtual(void);			 /* vcx plays the NIC in this process */
struct json_t *nic_facts(const struct nic *nic); /* new reference */

/* What a peer must know to connect; plain data, exchanged between ranks. */
struct nic_addr {
	uint32_t qpn, psn;
	union ibv_gid gid;
	uint16_t lid;
	uint8_t mtu, ethernet;
};

/* An RC queue pair with its own CQ.  With `sm` its queues are driven by device code (q holds device addresses);
 * without, by ibv_post_send on the CPU. */
struct nic_qp {
	struct nic *nic;
	struct sm *sm;
	struct ibv_cq *cq;
	struct ibv_cq_ex *
		cq_ex; /* the same, where it tells when completions were made; else NULL */
	struct ibv_qp *qp;
	struct nic_queue q;
	struct nic_cursor *cursor;
	size_t cursor_bytes;
	uint8_t *
		reg; /* the doorbell register as the CPU writes it (likewise); its page is known to guard.c */
	const uint8_t *
		cqes; /* the CQ's ring as the CPU reads it (driven by device code only) */
};
int nic_qp_open(struct nic_qp **qp, struct nic *nic, struct sm *sm, unsigned depth,
		unsigned receives);
void nic_qp_close(struct nic_qp *qp);
/* Post n receives without a buffer, for writes with immediate data (opened with receives, without sm). */
int nic_qp_receive(struct nic_qp *qp, unsigned n);
/* Take their completions: when the NIC made each, by its clock. */
int nic_qp_received(struct nic_qp *qp, unsigned n, uint64_t *stamps);
/* The NIC clock's stamp of the CQE at ci, of a queue pair that device code drives; false: it is not there yet. */
bool nic_cqe_stamp(const struct nic_qp *qp, uint32_t ci, uint64_t *stamp);
void nic_qp_addr(const struct nic_qp *qp, struct nic_addr *a);
int nic_qp_connect(struct nic_qp *qp, const struct nic_addr *peer);

/* The NIC's free-running clock against the host's ticks: one reading between two ticks, the tightest of some. */
struct nic_moment {
	uint64_t nic, host;
	double bound_ns; /* half the width of the reading */
};
/* -EOPNOTSUPP: the device shows no clock. */
int nic_clock_read(const struct nic *nic, double host_ns_per_tick, struct nic_moment *m);
/* Rate and drift of the NIC's clock against the host's over a twentieth of a second; drift: of what the device says. */
struct clock_fit;
int nic_clock_fit(const struct nic *nic, double host_ns_per_tick, struct clock_fit *c);
double nic_clock_mhz(const struct nic *nic); /* as the device says; 0: it does not */

/* Register [p, p + bytes) for local and remote write, read and atomics. */
int nic_reg(struct nic *nic, void *p, size_t bytes, struct ibv_mr **mr);

/* Syndrome of an error CQE (low byte) in words, with what usually causes it. */
const char *nic_syndrome(uint32_t syndrome);
#endif
