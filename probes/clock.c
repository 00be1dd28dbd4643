/* SPDX-License-Identifier: Apache-2.0
 * clock: what does reading the clock cost?  The empty window under every other number.
 *
 * Times:     a reading of the clock -> the next reading
 * Path:      none: nothing stands between
 * Clock:     itself: the SM's own (sm), the one that SMs share (sm-shared; globaltimer steps by 32 ns on an H200)
 * Includes:  the overhead that every window subtracts: the median would be 0 after subtraction of itself for `sm`
 * Lies when: a clock that steps is read twice within a step: 0 is seen, and now and then a whole step
 */
#include "sm_probe.h"

#pragma weak clock_kernels_cuda

static const struct sm_probe all[] = {
	{"sm", SM_HOST, &clock_kernels_host[0], &clock_kernels_cuda[0], false},
	{"sm-shared", SM_HOST, &clock_kernels_host[1], &clock_kernels_cuda[1], false},
};

static int clock_cases(const struct opts *o, const struct env *env, struct case_list *out)
{
	int err = 0;

	(void)o;
	for (unsigned i = 0; i < sizeof all / sizeof *all && !err; i++)
		err = sm_probe_add(out, env, "clock", "read", &all[i]);
	return err;
}

const struct bench bench_clock = {
	.name = "clock",
	.question = "bound: what reading a clock costs, and how finely it steps",
	.uses = "",
	.needs_env = true,
	.cases = clock_cases,
	.open = sm_probe_open,
	.batch = sm_probe_batch,
	.close = sm_probe_close,
};
