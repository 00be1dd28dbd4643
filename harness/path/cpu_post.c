/* SPDX-License-Identifier: Apache-2.0
 * cpu_post.c: posting and polling by the CPU, on any verbs device.
 */
#include "err.h"
#include "path/cpu_post.h"
#include "sm/dev.h"

#define POLLS_PER_CLOCK 16u
#define POLLS_PATIENT 4096u /* of ibv_poll_cq; see dev_give_way */

void cpu_post_init(struct cpu_post *c, const struct put *p, enum end from)
{
	const struct endpoint *me = &p->env->end[from], *peer = &p->env->end[!from];

	memset(c, 0, sizeof *c);
	if (!p->pair[from])
		return; /* that endpoint is the other rank's */
	c->qp = p->pair[from]->qp;
	c->cq = p->pair[from]->cq;
	c->src = (uint64_t)(uintptr_t)me->src;
	c->dst = peer->dst_addr;
	c->flag_dst = c->dst + DATA_BYTES;
	c->sge.lkey = c->flag_sge.lkey = me->src_mr->lkey;
	c->wr.sg_list = &c->sge;
	c->wr.num_sge = c->flag_wr.num_sge = 1;
	c->wr.opcode = c->flag_wr.opcode = IBV_WR_RDMA_WRITE;
	c->wr.wr.rdma.rkey = c->flag_wr.wr.rdma.rkey = peer->dst_rkey;
	c->wr.send_flags = IBV_SEND_SIGNALED | (p->slots.inl ? IBV_SEND_INLINE : 0);
	c->flag_wr.sg_list = &c->flag_sge;
	c->flag_wr.send_flags = IBV_SEND_SIGNALED;
	c->flag_wr.wr.rdma.remote_addr = c->flag_dst;
	c->flag_sge.length = 8;
}

int cpu_post(struct cpu_post *c, uint32_t off, uint32_t bytes, bool with_flag)
{
	struct ibv_send_wr *bad;
	int rc;

	c->sge.addr = c->src + off;
	c->sge.length = bytes;
	c->wr.wr.rdma.remote_addr = c->dst + off;
	c->wr.next = NULL;
	if (with_flag) {
		c->flag_sge.addr = c->src + off;
		c->wr.next = &c->flag_wr;
		c->wr.send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
	} else {
		c->wr.send_flags |= IBV_SEND_SIGNALED;
	}
	rc = ibv_post_send(c->qp, &c->wr, &bad);
	return rc ? err_say(-rc, "ibv_post_send of %u B: %s", bytes, strerror(rc)) : 0;
}

int cpu_wait(struct cpu_post *c, uint64_t deadline_ticks)
{
	uint64_t start = 0, now;
	struct ibv_wc wc;
	uint32_t spins = 0;
	int n;

	while (!(n = ibv_poll_cq(c->cq, 1, &wc))) {
		dev_relax();
		if (++spins % POLLS_PER_CLOCK)
			continue;
		if (spins > POLLS_PATIENT)
			dev_give_way();
		now = clock_host_ticks();
		if (!start)
			start = now;
		if (now - start > deadline_ticks)
			return err_say(
				-ETIMEDOUT,
				"no completion within the deadline after ibv_post_send");
	}
	if (n < 0)
		return err_say(-EIO, "ibv_poll_cq failed");
	if (wc.status != IBV_WC_SUCCESS)
		return err_say(-EREMOTEIO,
			       "put ended in an error completion: %s, vendor 0x%02x",
			       ibv_wc_status_str(wc.status), wc.vendor_err);
	return 0;
}
