/* SPDX-License-Identifier: Apache-2.0
 * cpu_post.h: a put posted by the CPU with plain ibv_post_send: what the proxy's worker and the host path share.
 */
#ifndef PUTSCOPE_CPU_POST_H
#define PUTSCOPE_CPU_POST_H
#include "path/put.h"

/* Work requests made ready once, so that a post fills in addresses only. */
struct cpu_post {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_sge sge, flag_sge;
	struct ibv_send_wr wr, flag_wr;
	uint64_t src, dst, flag_dst; /* bases: the peer's memory as the NIC names it */
};
void cpu_post_init(struct cpu_post *c, const struct put *p, enum end from);
/* Post the put at offset off; with_flag chains an 8 B inline put of its first word to the peer's flag word.  One CQE. */
int cpu_post(struct cpu_post *c, uint32_t off, uint32_t bytes, bool with_flag);
/* Poll until one CQE.  0; -ETIMEDOUT; -EREMOTEIO with the status in words. */
int cpu_wait(struct cpu_post *c, uint64_t deadline_ticks);
#endif
