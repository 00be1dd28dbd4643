/* SPDX-License-Identifier: Apache-2.0
 * sm_probe.h: what the probes of one SM instruction share: memory, launch, samples.
 */
#ifndef PUTSCOPE_SM_PROBE_H
#define PUTSCOPE_SM_PROBE_H
#include "launched.h"
#include "sm_dev.h"

/* What a case's arg points to. */
struct sm_probe {
	const char *name;    /* of the case, behind the probe's */
	enum sm_place place; /* SM_GPU is waived on a host thread */
	const struct dev_kernel *host, *cuda;
	bool adds; /* atomics: the sum is checked */
};
int sm_probe_add(struct case_list *l, const struct env *env, const char *bench,
		 const char *metric, const struct sm_probe *p);
int sm_probe_open(struct env *env, struct case_desc *c, void **state);
int sm_probe_batch(void *state, struct batch *b);
void sm_probe_close(void *state);
#endif
