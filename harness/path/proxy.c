/* SPDX-License-Identifier: Apache-2.0
 * proxy.c: puts by the CPU proxy: one worker, a ring for each endpoint, one put at a time.
 */
#include <stdlib.h>

#include "err.h"
#include "path/pool.h"
#include "path/proxy_hops.h"

#pragma weak proxy_kernels_cuda
#pragma weak proxy_rtt_kernels_cuda

static void proxy_close(struct put *p)
{
	pool_close(p->impl);
}

static int proxy_open(struct put *p)
{
	const struct pool_shape shape = {
		.workers = 1, .rings = END_COUNT, .batch = 1, .both_ends = true};
	struct pool *x;
	int err = pool_open(&x, p->env, &shape);

	p->impl = x;
	return err;
}

static enum proxy_order order_of(const struct case_desc *c)
{
	return !strcmp(c->ordering, "settled")	   ? PROXY_SETTLED
	       : !strcmp(c->ordering, "sys-fence") ? PROXY_SYS_FENCE
						   : PROXY_SYS_RELEASE;
}

static int proxy_launch(struct put *p, struct batch *b, bool stamped)
{
	const enum proxy_order order = order_of(p->c);
	const struct dev_kernel *k = sm_is_gpu(p->env->sm)
					     ? &proxy_kernels_cuda[order][stamped]
					     : &proxy_kernels_host[order][stamped];
	struct proxy_args a = {0};
	struct sm_moment moment;
	double wall;
	int err;

	if (p->before)
		OUR_TRY(p->before(p), err, out);
	if (stamped)
		OUR_TRY(correlate(p->env, &moment), err, out);
	OUR_TRY(pool_reset(p->impl, p->slots.inl), err, out);
	OUR_TRY(put_prepare(p, &a.l), err, out);
	OUR_TRY(pool_view(p->impl, &a.v), err, out);
	pool_go(p->impl, stamped ? POOL_STAMPED : POOL_POST, 1);
	err = put_launch(p, false, k, &a, &wall);
	pool_park(p->impl);
	if (!err)
		err = put_samples(p, b, stamped, wall);
	if (!err && stamped)
		err = proxy_hop_series(p, b, &moment);
out:
	return err;
}

/* Stamped and plain in turn, the order swapped from batch to batch. */
static int proxy_puts(struct put *p, struct batch *b)
{
	bool first = b->index & 1;
	int err = proxy_launch(p, b, first);

	return err ? err : proxy_launch(p, b, !first);
}

static int proxy_rtts(struct put *p, struct batch *b)
{
	const bool big = p->slots.bytes > 8;
	struct proxy_rtt_args a = {0};
	double wall;
	int err;

	if (p->before)
		OUR_TRY(p->before(p), err, out);
	OUR_TRY(pool_reset(p->impl, p->slots.inl), err, out);
	OUR_TRY(put_prepare(p, &a.l), err, out);
	put_reply(p, &a.r);
	OUR_TRY(pool_view(p->impl, &a.v), err, out);
	pool_go(p->impl, POOL_POST, END_COUNT);
	err = put_launch(p, false,
			 sm_is_gpu(p->env->sm) ? &proxy_rtt_kernels_cuda[big]
					       : &proxy_rtt_kernels_host[big],
			 &a, &wall);
	pool_park(p->impl);
	if (!err)
		err = put_rtt_samples(p, b);
out:
	return err;
}

const struct path_ops path_proxy = {"proxy", proxy_open, proxy_puts, proxy_rtts,
				    proxy_close};
