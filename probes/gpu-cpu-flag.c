/* SPDX-License-Identifier: Apache-2.0
 * gpu-cpu-flag: how long does a flag take from an SM to a CPU core and back?  The floor under every proxy: a request
 * and its completion cannot be told faster.
 *
 * Times:     SM stores the request flag -> SM's load that sees the CPU's reply
 * Path:      SM --posted write--> host memory <--poll-- CPU; CPU --store--> host memory <--PCIe read-- SM
 * Clock:     the SM's own: clock64, or the host's ticks
 * Includes:  the CPU's poll turn; the SM's poll turn, a whole PCIe read: the reply is seen by the first read that starts
 *            after it has landed, so that up to one read (see load/host) lies between landing and seeing
 * Lies when: half of it is taken for one way: the two ways are unlike; the responding core is oversubscribed or far (another
 *            socket) from the GPU; a host thread plays the SM: then it is the round trip between two cores (flag-rtt)
 */
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "gpu-cpu-flag_dev.h"
#include "launched.h"
#include "sm/dev.h"

#pragma weak flag_kernel_cuda

#define MEM_BYTES 4096u
#define PONG_OFF 256u /* neither flag is fetched along with the other */
#define DEADLINE_NS 1e9
#define SPINS_PER_CLOCK 1024u
#define LOOKS_PATIENT \
	16384u /* then another process may have the core that is to ask us; see dev_give_way */

struct gpu_cpu_flag {
	struct launched l;
	uint8_t *mem;
	uint64_t first, deadline_host_ticks;
};

static int flag_cases(const struct opts *o, const struct env *env, struct case_list *out)
{
	struct case_desc *c;

	(void)o;
	c = launched_case(out, env, "gpu-cpu-flag", "host", "rtt", 1);
	if (!c)
		return -ENOMEM;
	c->data = "host";
	c->completion = "flag";
	c = launched_case(out, env, "gpu-cpu-flag", "device", "rtt", 1);
	if (!c)
		return -ENOMEM;
	c->data = "gpu";
	c->completion = "flag";
	launched_waive(
		c,
		launched_on_threads(env)
			? "needs a GPU: the SM's flag would lie in its memory"
			: "the CPU cannot store into GPU memory: that needs a mapping such as GDRCopy's, which this "
			  "version does not make");
	return 0;
}

static void flag_close(void *state)
{
	struct gpu_cpu_flag *f = state;

	sm_free(f->l.env->sm, f->mem, MEM_BYTES, SM_HOST);
	free(f);
}

static int flag_open(struct env *env, struct case_desc *c, void **state)
{
	struct gpu_cpu_flag *f = calloc(1, sizeof *f);
	int err;

	if (!f)
		return err_say(-ENOMEM, "no memory for %s", c->id);
	launched_init(&f->l, env, c,
		      sm_is_gpu(env->sm) ? &flag_kernel_cuda : &flag_kernel_host, 1);
	f->first = 1;
	f->deadline_host_ticks = (uint64_t)(DEADLINE_NS / env->host_clock.ns_per_tick);
	err = sm_alloc(env->sm, MEM_BYTES, SM_HOST, (void **)&f->mem);
	if (err) {
		flag_close(f);
		return err;
	}
	*state = f;
	return 0;
}

/* The CPU's wait for one request.  False: it did not come within the deadline. */
static bool await(const struct gpu_cpu_flag *f, uint64_t want)
{
	uint64_t start = 0;
	uint32_t spins = 0;

	while (dev_ld8b(f->mem) != want) {
		dev_relax();
		if (++spins > LOOKS_PATIENT)
			dev_give_way();
		if (spins % SPINS_PER_CLOCK)
			continue;
		if (!start)
			start = clock_host_ticks();
		if (clock_host_ticks() - start > f->deadline_host_ticks)
			return false;
	}
	return true;
}

static bool respond(const struct gpu_cpu_flag *f)
{
	for (uint64_t i = f->first; i < f->first + FLAG_TURNS; i++) {
		if (!await(f, i))
			return false;
		dev_st8b(f->mem + PONG_OFF, i);
	}
	return true;
}

static int flag_batch(void *state, struct batch *b)
{
	struct gpu_cpu_flag *f = state;
	struct env *e = f->l.env;
	const struct flag_args a = {f->mem,    f->mem + PONG_OFF,
				    f->first,  launched_ticks(e, DEADLINE_NS),
				    e->stamps, e->result};
	bool answered;
	int err = launched_start(&f->l, &a);

	if (err)
		return err;
	sm_pin_self(sm_is_gpu(e->sm) ? 0 : 1); /* a host SM has taken the first core */
	answered = respond(f);
	sm_unpin_self();
	OUR_TRY(launched_end(&f->l), err, out);
	if (!answered)
		return err_say(-ETIMEDOUT,
			       "%s: the CPU did not see a request within a second",
			       f->l.c->id);
	err = launched_samples(&f->l, b, "rtt", FLAG_TURNS);
	f->first += FLAG_TURNS;
out:
	return err;
}

const struct bench bench_gpu_cpu_flag = {
	.name = "gpu-cpu-flag",
	.question = "bound: a flag from an SM to a CPU core and back",
	.uses = "",
	.needs_env = true,
	.cases = flag_cases,
	.open = flag_open,
	.batch = flag_batch,
	.close = flag_close,
};
