/* SPDX-License-Identifier: Apache-2.0
 * proxy_rate.h: message rates of the proxy, and its hand-off without a NIC.
 */
#ifndef PUTSCOPE_PROXY_RATE_H
#define PUTSCOPE_PROXY_RATE_H
#include "case.h"
#include "path/pool.h"

/* One point of the design space. */
struct proxy_point {
	const char *protocol; /* tuned, baseline */
	const char *counter;  /* host, gpu */
	struct pool_shape shape;
};

/* 1..8 workers, 1..32 rings, 1..16 work requests a post, a window that fits; else -EINVAL with the sentence. */
int proxy_opts_check(const struct opts *o);
/* Append BENCH/PROTOCOL/T../R../B..: rate_msgs_per_s over a window of messages of 8 B. */
int proxy_rate_add(struct case_list *l, const struct env *env, const char *bench,
		   const struct proxy_point *at);
/* Append BENCH/handoff/PROTOCOL: a descriptor enqueued -> its echo by the worker seen; no NIC takes part. */
int proxy_handoff_add(struct case_list *l, const struct env *env, const char *bench,
		      const char *protocol);
/* struct bench's open, batch and close for these cases. */
int proxy_rate_open(struct env *env, struct case_desc *c, void **state);
int proxy_rate_batch(void *state, struct batch *b);
void proxy_rate_close(void *state);
#endif
