/* SPDX-License-Identifier: Apache-2.0
 * load: how long does one load take, by where its data lies?  The price of every poll, and of each look at a flag.
 *
 * Times:     a load issued -> its value used, one load at a time
 * Path:      SM -> L2 -> SM (l2-hit); SM -> L2 -> HBM -> SM (hbm); SM -> PCIe -> host memory -> PCIe -> SM (host);
 *            with a host thread as SM: core -> its first cache (host-cache), core -> memory (host)
 * Clock:     the SM's own: clock64, or the host's ticks
 * Includes:  one pair of clock reads a load, whose cost (the launch's own baseline) is subtracted; address translation:
 *            hbm and a host thread's host walk a span that no first TLB covers
 * Lies when: l2-hit is taken for one number: lines lie in the near or the far half of the L2, and p50 sits between;
 *            host on a GPU is taken for a cold read: the CPU wrote these lines shortly before and its cache answers
 */
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "launched.h"
#include "load_dev.h"
#include "stats.h"

#pragma weak load_kernels_cuda

#define NODE_BYTES \
	256u /* one node: two cache lines, so that no neighbour is fetched along */

static const struct span {
	const char *name;
	enum sm_place place;
	enum load_scope scope;
	size_t gpu_bytes, thread_bytes; /* walked; 0: not on this kind of SM */
	bool gpu_warm, thread_warm;	/* in its cache, or in none */
	const char *waived;		/* why, where bytes is 0 */
} spans[] = {
	{"l2-hit", SM_GPU, LOAD_GPU, 1u << 20, 0, true, false,
	 "needs a GPU: its L2; a host thread's own cache is host-cache"},
	/* Ten times the L2 of an H200, four times that of a B200. */
	{"hbm", SM_GPU, LOAD_GPU, 512u << 20, 0, false, false,
	 "needs a GPU: its memory; a host thread's memory is host"},
	{"host-cache", SM_HOST, LOAD_SYS, 0, 16u << 10, false, true,
	 "a host thread's own cache; the like of it on a GPU is l2-hit"},
	{"host", SM_HOST, LOAD_SYS, 1u << 20, 128u << 20, false, false, ""},
};

struct load {
	struct launched l;
	const struct span *s;
	uint8_t *mem;
	size_t bytes;
	uint32_t *order; /* nodes in the order of the walk */
	uint32_t nodes, at;
	bool warm;
};

static int load_cases(const struct opts *o, const struct env *env, struct case_list *out)
{
	(void)o;
	for (unsigned i = 0; i < sizeof spans / sizeof *spans; i++) {
		const struct span *s = &spans[i];
		struct case_desc *c = launched_case(out, env, "load", s->name, "rtt", 0);

		if (!c)
			return -ENOMEM;
		c->arg = s;
		c->data = s->place == SM_GPU ? "gpu" : "host";
		if ((launched_on_gpu(env) && !s->gpu_bytes) ||
		    (launched_on_threads(env) && !s->thread_bytes))
			launched_waive(c, s->waived);
	}
	return 0;
}

static void load_close(void *state)
{
	struct load *f = state;

	sm_free(f->l.env->sm, f->mem, f->bytes, f->s->place);
	free(f->order);
	free(f);
}

/* This line leaves every cache of the CPU. */
static void evict_line(void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("clflush (%0)" ::"r"(p) : "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dc civac, %0" ::"r"(p) : "memory");
#endif
}

/* What the copy left in the GPU's L2 is driven out by as much memory again, which sm_alloc zeroes. */
static int evict_gpu(struct load *f)
{
	void *other;
	int err = sm_alloc(f->l.env->sm, f->bytes, SM_GPU, &other);

	if (!err)
		sm_free(f->l.env->sm, other, f->bytes, SM_GPU);
	return err;
}

/* Each node holds the address of the next in the walk, the last that of the first. */
static int fill(struct load *f)
{
	uint8_t *staging = f->s->place == SM_GPU ? malloc(f->bytes) : f->mem;
	int err = 0;

	if (!staging)
		return err_say(-ENOMEM, "no memory for a walk over %zu bytes", f->bytes);
	for (uint32_t i = 0; i < f->nodes; i++) {
		size_t here = (size_t)f->order[i] * NODE_BYTES,
		       next = (size_t)f->order[(i + 1) % f->nodes] * NODE_BYTES;
		uint64_t address = (uint64_t)(uintptr_t)(f->mem + next);

		memcpy(staging + here, &address, sizeof address);
	}
	if (f->s->place == SM_GPU) {
		err = sm_copy_in(f->l.env->sm, f->mem, SM_GPU, staging, f->bytes);
		free(staging);
		return err || f->warm ? err : evict_gpu(f);
	}
	for (uint32_t i = 0; !sm_is_gpu(f->l.env->sm) && !f->warm && i < f->nodes; i++)
		evict_line(f->mem + (size_t)i * NODE_BYTES);
	return 0;
}

static int load_open(struct env *env, struct case_desc *c, void **state)
{
	const struct span *s = c->arg;
	bool gpu = sm_is_gpu(env->sm);
	uint64_t rng = (uint64_t)opts_int(env->opts, "seed");
	struct load *f = calloc(1, sizeof *f);
	int err;

	if (!f)
		return err_say(-ENOMEM, "no memory for %s", c->id);
	f->s = s;
	f->bytes = gpu ? s->gpu_bytes : s->thread_bytes;
	f->warm = gpu ? s->gpu_warm : s->thread_warm;
	f->nodes = (uint32_t)(f->bytes / NODE_BYTES);
	launched_init(&f->l, env, c,
		      gpu ? &load_kernels_cuda[s->scope] : &load_kernels_host[s->scope],
		      1);
	PTR_TRY(f->order = malloc(f->nodes * sizeof *f->order), err, out);
	OUR_TRY(sm_alloc(env->sm, f->bytes, s->place, (void **)&f->mem), err, out);
	for (uint32_t i = 0; i < f->nodes; i++)
		f->order[i] = i;
	stats_shuffle(f->order, f->nodes, &rng);
	OUR_TRY(fill(f), err, out);
	*state = f;
	return 0;
out:
	load_close(f);
	return err;
}

static uint64_t node_address(const struct load *f, uint32_t at)
{
	return (uint64_t)(uintptr_t)(f->mem + (size_t)f->order[at] * NODE_BYTES);
}

static int load_batch(void *state, struct batch *b)
{
	struct load *f = state;
	struct env *e = f->l.env;
	const struct load_args a = {node_address(f, f->at), f->warm ? f->nodes : 0,
				    e->stamps, e->result};
	int err;

	f->at = (f->at + LOAD_TURNS) % f->nodes;
	OUR_TRY(launched_start(&f->l, &a), err, out);
	OUR_TRY(launched_end(&f->l), err, out);
	if (e->stamps[LOAD_TURNS] != node_address(f, f->at)) {
		f->l.c->payload_errors++;
		e->count.payload_errors++;
		return err_say(-EBADMSG,
			       "%s: the walk ended at a node that it does not lead to",
			       f->l.c->id);
	}
	err = launched_samples(&f->l, b, "rtt", LOAD_TURNS);
out:
	return err;
}

const struct bench bench_load = {
	.name = "load",
	.question = "bound: one dependent load from L2, from HBM, from host memory",
	.uses = "",
	.needs_env = true,
	.cases = load_cases,
	.open = load_open,
	.batch = load_batch,
	.close = load_close,
};
