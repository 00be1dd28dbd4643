/* SPDX-License-Identifier: Apache-2.0
 * fence: what does order cost?  The hop `order`, and how much of it is waiting for stores to drain.
 *
 * Times:     before the fence -> after it retired
 * Path:      SM -> its outstanding stores -> L2 (gpu scope) or memory and PCIe (sys scope) -> SM
 * Clock:     the SM's own
 * Includes:  the drain of 0 (idle), 1 or 16 stores of 16 B that were issued right before the window; behind less idle is the
 *            drain
 * Lies when: on x86: a GPU-scope fence is no instruction there, a system fence an mfence
 */
#include "sm_probe.h"

#pragma weak fence_kernels_cuda

static const struct sm_probe all[] = {
	{"gpu/idle", SM_HOST, &fence_kernels_host[FENCE_GPU][BEHIND_0],
	 &fence_kernels_cuda[FENCE_GPU][BEHIND_0], false},
	{"gpu/behind-1/gpu-memory", SM_GPU, &fence_kernels_host[FENCE_GPU][BEHIND_1],
	 &fence_kernels_cuda[FENCE_GPU][BEHIND_1], false},
	{"gpu/behind-1/host-memory", SM_HOST, &fence_kernels_host[FENCE_GPU][BEHIND_1],
	 &fence_kernels_cuda[FENCE_GPU][BEHIND_1], false},
	{"gpu/behind-16/gpu-memory", SM_GPU, &fence_kernels_host[FENCE_GPU][BEHIND_16],
	 &fence_kernels_cuda[FENCE_GPU][BEHIND_16], false},
	{"gpu/behind-16/host-memory", SM_HOST, &fence_kernels_host[FENCE_GPU][BEHIND_16],
	 &fence_kernels_cuda[FENCE_GPU][BEHIND_16], false},
	{"sys/idle", SM_HOST, &fence_kernels_host[FENCE_SYS][BEHIND_0],
	 &fence_kernels_cuda[FENCE_SYS][BEHIND_0], false},
	{"sys/behind-1/gpu-memory", SM_GPU, &fence_kernels_host[FENCE_SYS][BEHIND_1],
	 &fence_kernels_cuda[FENCE_SYS][BEHIND_1], false},
	{"sys/behind-1/host-memory", SM_HOST, &fence_kernels_host[FENCE_SYS][BEHIND_1],
	 &fence_kernels_cuda[FENCE_SYS][BEHIND_1], false},
	{"sys/behind-16/gpu-memory", SM_GPU, &fence_kernels_host[FENCE_SYS][BEHIND_16],
	 &fence_kernels_cuda[FENCE_SYS][BEHIND_16], false},
	{"sys/behind-16/host-memory", SM_HOST, &fence_kernels_host[FENCE_SYS][BEHIND_16],
	 &fence_kernels_cuda[FENCE_SYS][BEHIND_16], false},
};

static int fence_cases(const struct opts *o, const struct env *env, struct case_list *out)
{
	int err = 0;

	(void)o;
	for (unsigned i = 0; i < sizeof all / sizeof *all && !err; i++)
		err = sm_probe_add(out, env, "fence", "order", &all[i]);
	return err;
}

const struct bench bench_fence = {
	.name = "fence",
	.question = "bound: a fence, by scope, idle and behind outstanding stores",
	.uses = "",
	.needs_env = true,
	.cases = fence_cases,
	.open = sm_probe_open,
	.batch = sm_probe_batch,
	.close = sm_probe_close,
};
