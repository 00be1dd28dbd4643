/* SPDX-License-Identifier: Apache-2.0
 * gpu.c: the host's half of the GPU-submitted path: launch the kernel, read its stamps, check the data.
 */
#include "err.h"
#include "path/put.h"

#define RERING_NS \
	50000.0 /* unsafe orders: ring again after this long without a completion */

#pragma weak put_kernels_cuda
#pragma weak rtt_kernels_cuda

static int gpu_open(struct put *p)
{
	return rig_pair(p->env, true, p->pair);
}

static const struct dev_kernel *put_kernel(const struct put *p, bool stamped)
{
	return sm_is_gpu(p->env->sm) ? &put_kernels_cuda[p->order][p->slots.inl][stamped]
				     : &put_kernels_host[p->order][p->slots.inl][stamped];
}

static int gpu_launch(struct put *p, struct batch *b, bool stamped)
{
	struct env *e = p->env;
	struct put_args a = {0};
	double wall;
	int err;

	OUR_TRY(rig_pair(e, true, p->pair), err, out);
	OUR_TRY(put_prepare(p, &a.l), err, out);
	a.q = p->pair[END_A]->q;
	a.rering_ticks = (uint64_t)(RERING_NS / e->sm_clock.ns_per_tick);
	err = put_launch(p, true, put_kernel(p, stamped), &a, &wall);
	e->count.sm_doorbells += e->result->at + e->result->rerings;
	if (!err)
		err = put_samples(p, b, stamped, wall);
out:
	return err;
}

/* Stamped and plain in turn, the order swapped from batch to batch. */
static int gpu_puts(struct put *p, struct batch *b)
{
	bool first = b->index & 1;
	int err = gpu_launch(p, b, first);

	return err ? err : gpu_launch(p, b, !first);
}

static int gpu_rtts(struct put *p, struct batch *b)
{
	enum rtt_kind kind = p->slots.bytes > 8 ? RTT_BIG
			     : p->slots.inl	? RTT_INLINE
						: RTT_POINTER;
	const struct dev_kernel *k = sm_is_gpu(p->env->sm)
					     ? &rtt_kernels_cuda[p->order][kind]
					     : &rtt_kernels_host[p->order][kind];
	struct env *e = p->env;
	struct rtt_args a = {0};
	double wall;
	int err;

	OUR_TRY(rig_pair(e, true, p->pair), err, out);
	OUR_TRY(put_prepare(p, &a.l), err, out);
	put_reply(p, &a.r);
	a.qa = p->pair[END_A]->q;
	a.qb = p->pair[END_B]->q;
	a.flag_a_raddr = (uint64_t)(uintptr_t)a.r.flag_a;
	a.flag_b_raddr = (uint64_t)(uintptr_t)a.r.flag_b;
	err = put_launch(p, true, k, &a, &wall);
	e->count.sm_doorbells += 2ull * e->result->at;
	if (!err)
		err = put_rtt_samples(p, b);
out:
	return err;
}

static void gpu_close(struct put *p)
{
	(void)p; /* the pair belongs to the rig */
}

const struct path_ops path_gpu = {"gpu", gpu_open, gpu_puts, gpu_rtts, gpu_close};
