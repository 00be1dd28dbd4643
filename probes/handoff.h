/* SPDX-License-Identifier: Apache-2.0
 * handoff.h: between handoff.c (cases, samples) and handoff_cuda.cu (two blocks on one GPU).
 */
#ifndef PUTSCOPE_HANDOFF_H
#define PUTSCOPE_HANDOFF_H
#include "path/dev_path.h"

#define HANDOFF_TURNS 256u /* round trips of one launch */

enum handoff_kind { HANDOFF_RELAXED, HANDOFF_ACQ_REL, HANDOFF_PAYLOAD, HANDOFF_KINDS };

struct handoff_args {
	uint64_t *ping, *pong, *payload; /* GPU memory, a line of its own each */
	uint64_t first;			 /* turn i carries first + i, never used before */
	uint64_t deadline_ticks;
	uint64_t *
		stamps; /* [HANDOFF_TURNS] ticks of each round trip, then struct handoff_sides */
	struct dev_result *result; /* of the asking side */
};

/* Behind the stamps: which SMs, and what the answering side found. */
struct handoff_sides {
	uint64_t asking_sm, answering_sm;
	uint64_t answered; /* turns that the answering side has answered */
	uint64_t stale;	   /* payloads that were not there although their flag was */
};

#ifdef __cplusplus
extern "C" {
#endif
/* One launch of two blocks on the current device, to its end.  The caller looks at *a->result. */
int handoff_cuda_run(const struct handoff_args *a, enum handoff_kind kind);
#ifdef __cplusplus
}
#endif
#endif
