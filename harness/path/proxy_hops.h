/* SPDX-License-Identifier: Apache-2.0
 * proxy_hops.h: the hops of puts by the proxy, from the stamps of both sides.
 */
#ifndef PUTSCOPE_PROXY_HOPS_H
#define PUTSCOPE_PROXY_HOPS_H
#include "path/correlate.h"
#include "path/pool.h"
#include "path/put.h"

/* In the order of the path; series of these names, as many samples as puts. */
#define PROXY_HOP_LIST(H)                                                   \
	H(ENQUEUE, "enqueue", "put begins -> descriptor stored")            \
	H(RING_FLIGHT, "ring_flight", "-> the worker's look that finds it") \
	H(WORKER_PICKUP, "worker_pickup", "-> work request ready")          \
	H(POST_SEND, "post_send", "-> ibv_post_send returned")              \
	H(NIC, "nic", "-> the ibv_poll_cq that finds the CQE begins")       \
	H(CQ_POLL, "cq_poll", "-> it returned")                             \
	H(NOTIFY, "notify", "-> counter stored")                            \
	H(GPU_SEES, "gpu_sees", "-> the SM's load that sees it")
#define H(id, name, words) PROXY_##id,
enum proxy_hop { PROXY_HOP_LIST(H) PROXY_HOPS };
#undef H
extern const char *const proxy_hop_names[PROXY_HOPS], *const proxy_hop_words[PROXY_HOPS];

/* Of the stamped launch that just ended.  Also clock_bound, how far the two clocks may be apart (0 where a host thread plays
 * the SM), timer_worker, what reading the clock cost the worker, and core_cycle, how long a cycle of its core took when it
 * woke.  moment: taken before the launch. */
int proxy_hop_series(struct put *p, struct batch *b, const struct sm_moment *moment);
#endif
