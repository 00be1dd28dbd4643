/* SPDX-License-Identifier: Apache-2.0
 * fabric.h: the state that all processes of one fabric share: who there is, queue pairs, CQs, regions.
 *
 * It lies in a file that the launcher made (or in private memory, without one).  Every object carries its owner's
 * process; a process executes only its own send queues, and reaches another's memory by process_vm_*.
 */
#ifndef VCX_FABRIC_H
#define VCX_FABRIC_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hop.h"

#define VCX_DEVICES 2u
#define VCX_OBJECTS 8192u /* of each kind, in one fabric */
#define VCX_PROCS 64u
#define VCX_PAGE 4096u
#define VCX_UARS 1024u /* doorbell pages of one process */
#define VCX_GIDS 4u

enum qp_state {
	QP_RESET,
	QP_INIT,
	QP_RTR,
	QP_RTS,
	QP_SQD,
	QP_SQE,
	QP_ERR
}; /* enum ibv_qp_state */

/* Stages of a request, op.c. */
enum op_stage {
	STAGE_EXEC,
	STAGE_WQE,
	STAGE_PAYLOAD,
	STAGE_ARRIVE,
	STAGE_VISIBLE,
	STAGE_RECEIVED,
	STAGE_RESPOND,
	STAGE_ACK,
	STAGE_CQE,
	STAGES
};

struct vcx_cq {
	bool used, armed, overrun;
	bool armed_solicited;
	pid_t pid;
	uint32_t cqn, cqe_cnt, cqe_bytes, pi;
	uint64_t buf, rec; /* owner's addresses */
	int channel;	   /* owner's write end, -1: none */
	uint64_t user_handle;
	uint32_t events;
	uint32_t arm_seen;   /* arm word of its record, as last acted upon */
	uint32_t notable_pi; /* pi behind the last solicited or error completion */
	bool notable;	     /* there has been one */
};

struct vcx_qp {
	bool used;
	pid_t pid;
	uint8_t dev, state, rnr_retry, rnr_timer;
	bool waits; /* for a receiver, or (record-recheck) for its record: looked at without a doorbell */
	uint32_t qpn, pd, scq, rcq, uidx, uar, dest, access;
	uint32_t sq_cnt, rq_cnt, rq_shift;
	uint64_t sq, rq, rec; /* owner's addresses */
	uint8_t dgid[16], sgid_index, hop_limit, traffic_class, sl;
	bool has_av;
	uint32_t flow_label;
	uint32_t ci, rci; /* next WQE to execute; next receive to consume */
	uint32_t rnr_tries;
	uint64_t rnr_until_ns; /* not before */
	/* On its way, of the owner's NIC: requests that wait for a stage, and when the last one of each is due. */
	uint32_t pending[STAGES], inflight;
	uint64_t last_due[STAGES];
	bool halted; /* request halt_seq failed: those behind it are flushed */
	uint64_t halt_seq;
	uint32_t psn_rq, psn_sq, path_mtu, timeout, retry_cnt, rd_atomic, dest_rd_atomic,
		pkey_index;
};

struct vcx_mr {
	bool used;
	pid_t pid;
	uint32_t pd, key, access;
	uint64_t iova, len, host;
	void *gpu; /* CUDA context of GPU memory, else NULL; means something to the owner only */
};

struct vcx_proc {
	pid_t pid;    /* 0: free */
	int declared; /* spinners that it declared, -1: none declared */
	bool polled;  /* it has called ibv_poll_cq */
	_Atomic uint64_t
		bytes_in; /* written into its memory by puts and sends, its own included */
};

/* Switched while programs run, by any process of the fabric. */
struct vcx_control {
	_Atomic uint64_t delay_ns[VCX_HOPS]; /* the options' */
	_Atomic uint64_t extra_ns[VCX_HOPS]; /* vcx_delay's, on top */
	_Atomic bool delays;		     /* one of them is not 0 */
	_Atomic bool stamps;		     /* vcx_stamping */
};

struct vcx_fabric {
	uint64_t magic;
	pthread_mutex_t lock; /* robust, shared by processes */
	uint32_t id;	      /* random: part of GIDs, QPNs and keys */
	uint32_t next_key;
	struct vcx_control control;
	_Atomic int spinners; /* of all processes */
	struct vcx_proc procs[VCX_PROCS];
	bool pds[VCX_OBJECTS];
	pid_t pd_pid[VCX_OBJECTS];
	struct vcx_cq cqs[VCX_OBJECTS];
	struct vcx_qp qps[VCX_OBJECTS];
	struct vcx_mr mrs[VCX_OBJECTS];
};

extern struct vcx_fabric *fab;
extern pid_t vcx_me;

int fabric_attach(void); /* 0 or errno */
void fabric_leave(void); /* drop what this process owns */
void fabric_sweep(void); /* drop what dead processes own; lock held */
void fabric_lock(void);
void fabric_unlock(void);
void fabric_delays_changed(void);
void fabric_declare(int spinners);
void fabric_polled(void);
void fabric_bytes_in(pid_t to, uint64_t bytes);
uint64_t fabric_my_bytes_in(void);

/* Numbers as programs see them; handle = index. */
uint32_t fabric_qpn(uint32_t h);
uint32_t fabric_cqn(uint32_t h);
struct vcx_qp *fabric_qp(uint32_t qpn); /* NULL when there is none */
struct vcx_mr *fabric_mr(uint32_t key);
void fabric_gid(unsigned dev, unsigned index, uint8_t gid[16]);
uint64_t fabric_guid(unsigned dev);

/* Own objects by handle; NULL when it is not this process's. */
struct vcx_cq *own_cq(uint32_t h);
struct vcx_qp *own_qp(uint32_t h);
struct vcx_mr *own_mr(uint32_t h);
#endif
