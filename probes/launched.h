/* SPDX-License-Identifier: Apache-2.0
 * launched.h: what the probes share whose samples are stamps of one kernel launch: the row of a case, the launch, and
 * the way from ticks to samples.
 *
 * The kernel leaves durations, in ticks of its own clock, in env->stamps and a dev_result in env->result.
 */
#ifndef PUTSCOPE_LAUNCHED_H
#define PUTSCOPE_LAUNCHED_H
#include "case.h"
#include "rig.h"

struct launched {
	struct env *env;
	struct case_desc *c;
	const struct dev_kernel *kernel;
	unsigned spinners; /* threads of ours, without the virtual NIC's */
	double per; /* events that one duration holds: a sample is a duration / per */
	double overhead_ns; /* of one duration; taken once, from the case's first launch */
	bool overhead_known;
	struct clock_fit clock; /* the SM clock's rate during the last launch */
};

/* Append the case BENCH/NAME, all fields set.  `threads`: threads of ours that spin beside an SM.  NULL when out of
 * memory, with the sentence. */
struct case_desc *launched_case(struct case_list *out, const struct env *env,
				const char *bench, const char *name, const char *metric,
				unsigned threads);
void launched_waive(struct case_desc *c, const char *reason);
/* Is a GPU the SM?  Without a rig (`list`) nobody knows: false from both. */
bool launched_on_gpu(const struct env *env);
bool launched_on_threads(const struct env *env);

/* k NULL: the probe launches by itself, between launched_ready and launched_end. */
void launched_init(struct launched *l, struct env *env, struct case_desc *c,
		   const struct dev_kernel *k, double per);
void launched_ready(struct launched *l);
/* Ready, then start the kernel. */
int launched_start(struct launched *l, const void *args);
/* Wait for the kernel's end and look at its result: -ETIMEDOUT when a deadline passed in it. */
int launched_end(struct launched *l);
/* n samples of `metric` from the first n stamps: (duration - timer overhead) / per; and the launch's baseline as the
 * series `timer`. */
int launched_samples(struct launched *l, struct batch *b, const char *metric, uint32_t n);
uint64_t launched_ticks(const struct env *env, double ns); /* of the SM clock */
#endif
