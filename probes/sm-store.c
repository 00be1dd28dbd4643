/* SPDX-License-Identifier: Apache-2.0
 * sm-store: how long is the SM busy with one store?  Part of wqe_build and doorbell_store.
 *
 * Times:     before one store -> after its issue (not its arrival, which nobody can see from here)
 * Path:      SM -> its store path
 * Clock:     the SM's own
 * Includes:  nothing; a system fence before each window leaves nothing outstanding
 * Lies when: the issue is taken for the flight: a posted store is long gone when it arrives
 */
#include "sm_probe.h"

#pragma weak sm_store_kernels_cuda

static const struct sm_probe all[] = {
	{"4/gpu-memory", SM_GPU, &sm_store_kernels_host[STORE_4],
	 &sm_store_kernels_cuda[STORE_4], false},
	{"4/host-memory", SM_HOST, &sm_store_kernels_host[STORE_4],
	 &sm_store_kernels_cuda[STORE_4], false},
	{"8/gpu-memory", SM_GPU, &sm_store_kernels_host[STORE_8],
	 &sm_store_kernels_cuda[STORE_8], false},
	{"8/host-memory", SM_HOST, &sm_store_kernels_host[STORE_8],
	 &sm_store_kernels_cuda[STORE_8], false},
	{"16/gpu-memory", SM_GPU, &sm_store_kernels_host[STORE_16],
	 &sm_store_kernels_cuda[STORE_16], false},
	{"16/host-memory", SM_HOST, &sm_store_kernels_host[STORE_16],
	 &sm_store_kernels_cuda[STORE_16], false},
	{"mmio/gpu-memory", SM_GPU, &sm_store_kernels_host[STORE_MMIO],
	 &sm_store_kernels_cuda[STORE_MMIO], false},
	{"mmio/host-memory", SM_HOST, &sm_store_kernels_host[STORE_MMIO],
	 &sm_store_kernels_cuda[STORE_MMIO], false},
};

static int sm_store_cases(const struct opts *o, const struct env *env,
			  struct case_list *out)
{
	int err = 0;

	(void)o;
	for (unsigned i = 0; i < sizeof all / sizeof *all && !err; i++)
		err = sm_probe_add(out, env, "sm-store", "issue", &all[i]);
	return err;
}

const struct bench bench_sm_store = {
	.name = "sm-store",
	.question = "bound: how long the SM is busy with one store, by width and target",
	.uses = "",
	.needs_env = true,
	.cases = sm_store_cases,
	.open = sm_probe_open,
	.batch = sm_probe_batch,
	.close = sm_probe_close,
};
