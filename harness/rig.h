/* SPDX-License-Identifier: Apache-2.0
 * rig.h: what is open during a run: the SM, one or two NICs, both endpoints' memory and queue pairs, the clocks.
 *
 * Endpoint A issues, endpoint B receives.  A process alone holds both.  env.c fills it; paths and benches use it.
 */
#ifndef PUTSCOPE_RIG_H
#define PUTSCOPE_RIG_H
#include "clock.h"
#include "env.h"
#include "nic/nic.h"
#include "opt.h"
#include "path/dev_path.h"
#include "ranks.h"
#include "sm/sm.h"

#define DATA_BYTES (16u << 20) /* source, and as much destination, of each endpoint */
#define FLAG_BYTES 4096u /* behind the destination: the flag words of big round trips */
#define PUT_BYTES_MAX (4u << 20) /* largest message */
#define QUEUE_DEPTH 256u
#define STAMPS_MAX (8 * PUT_OPS_MAX)

enum end { END_A, END_B, END_COUNT };

struct endpoint {
	struct nic *nic;
	uint8_t *src, *dst; /* SM addresses, in env->data_place */
	struct ibv_mr *src_mr, *dst_mr;
	uint64_t
		dst_addr; /* the destination as its NIC names it, for the other endpoint's puts */
	uint32_t dst_rkey;
	bool remote; /* another rank holds it: no pointer above is set */
};

/* What rank 0 knows of the rank that serves; NULL or empty where there is none. */
struct peer {
	bool joined, ended; /* said hello; is served no more */
	char host[64];
	char why_lost[256]; /* it was lost before it ended */
	json_t *facts, *evidence;
};

struct env {
	const struct opts *opts;
	struct ranks ranks;
	struct peer peer;
	json_t *counters; /* of nics[], when they were opened */
	struct sm *sm;
	enum sm_place data_place;
	unsigned nic_count; /* 1: loopback inside one device; 2: across two */
	struct nic *nics[2];
	struct endpoint end[END_COUNT];
	struct nic_qp *sm_qp
		[END_COUNT]; /* driven by device code; NULL until a gpu case needs it */
	struct nic_qp *cpu_qp[END_COUNT]; /* posted by ibv_post_send (proxy, host) */
	struct hop_pair *
		hops; /* path/hop.c's own queue pairs; NULL until a hop case needs them */
	uint8_t *
		staging; /* DATA_BYTES of plain memory: payload is made and checked here */
	uint64_t *stamps;	   /* SM_HOST, STAMPS_MAX words */
	struct dev_result *result; /* SM_HOST */
	struct clock_fit host_clock, sm_clock, sm_wall;
	uint64_t next_seq;
	bool virtual_nic;
	struct { /* counted by us, shown as evidence */
		uint64_t sm_doorbells, cpu_doorbells, cpu_posts, rerings, payload_errors;
	} count;
};

/* The connected pair of each kind; opened at first use, opened anew after rig_pair_broken (a queue pair whose WQE
 * failed takes no more). */
int rig_pair(struct env *e, bool by_sm, struct nic_qp *pair[END_COUNT]);
void rig_pair_broken(struct env *e, bool by_sm);
/* A further pair for the CPU, its opener's own; not between two ranks, where B serves one pair of a kind. */
int rig_pair_more(struct env *e, struct nic_qp *pair[END_COUNT]);
void rig_pair_close(struct nic_qp *pair[END_COUNT]);
const char *
rig_endpoints(const struct env
		      *e); /* "loopback", "across" (two devices) or "nodes" (two ranks) */
/* Destination of an endpoint, here or at the other rank: poison it; count the puts that arrived wrong. */
struct slots;
int rig_poison(struct env *e, enum end at, const struct slots *s);
int rig_bad(struct env *e, enum end at, const struct slots *s, uint64_t *bad);
#endif
