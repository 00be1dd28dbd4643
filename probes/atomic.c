/* SPDX-License-Identifier: Apache-2.0
 * atomic: what does it cost to reserve a slot?  The price of a queue that many threads share.
 *
 * Times:     an atomic add issued -> its old value used
 * Path:      SM -> L2 -> SM (device memory), SM -> PCIe -> host memory -> SM (host memory)
 * Clock:     the SM's own
 * Includes:  nothing; one thread, no contention; the sum is checked
 * Lies when: the queue is contended: then it is the L2's or the link's atomic rate that counts
 */
#include "sm_probe.h"

#pragma weak atomic_kernels_cuda

static const struct sm_probe all[] = {
	{"gpu/gpu-memory", SM_GPU, &atomic_kernels_host[ATOMIC_GPU],
	 &atomic_kernels_cuda[ATOMIC_GPU], true},
	{"sys/gpu-memory", SM_GPU, &atomic_kernels_host[ATOMIC_SYS],
	 &atomic_kernels_cuda[ATOMIC_SYS], true},
	{"sys/host-memory", SM_HOST, &atomic_kernels_host[ATOMIC_SYS],
	 &atomic_kernels_cuda[ATOMIC_SYS], true},
};

static int atomic_cases(const struct opts *o, const struct env *env,
			struct case_list *out)
{
	int err = 0;

	(void)o;
	for (unsigned i = 0; i < sizeof all / sizeof *all && !err; i++)
		err = sm_probe_add(out, env, "atomic", "rtt", &all[i]);
	return err;
}

const struct bench bench_atomic = {
	.name = "atomic",
	.question =
		"bound: an atomic add that returns the old value, by scope and target",
	.uses = "",
	.needs_env = true,
	.cases = atomic_cases,
	.open = sm_probe_open,
	.batch = sm_probe_batch,
	.close = sm_probe_close,
};
