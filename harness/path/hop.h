/* SPDX-License-Identifier: Apache-2.0
 * hop.h: run the experiments that take a put apart: stamps at each of the SM's steps, a plain run beside it.
 */
#ifndef PUTSCOPE_HOP_H
#define PUTSCOPE_HOP_H
#include "case.h"
#include "hop_model.h"
#include "rig.h"

/* Append the case of an experiment; group "base", or the delays of a virtual NIC, "HOP=NS+HOP=NS". */
int hop_case_add(struct case_list *l, const struct env *env, const char *bench,
		 const struct hop_exp *x, const char *group, uint64_t bytes);
/* Beside them: metric "rtt" (hold_ns: the responder waits so long; outlives the list) or "gap" (many WQEs behind one doorbell). */
int hop_beside_add(struct case_list *l, const struct env *env, const char *bench,
		   const char *metric, const char *endpoints, const uint64_t *hold_ns);
/* Where a case lies, and whether it can run here. */
void hop_place(struct case_desc *c, const struct env *env);

/* struct bench's open, batch, close: of the experiments, and of what stands beside. */
struct hop_ops {
	int (*open)(struct env *env, struct case_desc *c, void **state);
	int (*batch)(void *state, struct batch *b);
	void (*close)(void *state);
};
extern const struct hop_ops hop_ops, hop_beside_ops;

/* Queue pairs of both kinds of endpoints; closed with the env. */
struct hop_pair *hop_pair(struct env *e, bool across,
			  bool bf); /* NULL with the sentence */
void hop_pair_broken(struct env *e, bool across, bool bf);
void hop_pairs_close(struct env *e);

/* A group's delays: "base" or "HOP=NS[+HOP=NS]..."; -EINVAL with the sentence. */
int hop_group_parse(const char *group, uint64_t ns[NIC_HOPS]);
#endif
