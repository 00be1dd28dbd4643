/* SPDX-License-Identifier: Apache-2.0
 * size-sweep: how do issue, completion, round trip and their components move with the message size, on each path?
 *
 * Times:     put_completion and rtt of single puts gathered from memory, 1 B to 4 MiB, odd sizes included
 * Path:      as quick; a round trip over 8 B is data and an 8 B flag behind it on the same queue pair
 * Clock:     as quick
 * Includes:  nothing of making or checking the payload: both happen between launches
 * Lies when: medians are read across 8 B: below it the SM writes the payload byte by byte before the window
 */
#include "path/put.h"

static int size_sweep_cases(const struct opts *o, const struct env *env,
			    struct case_list *out)
{
	static const char *const metrics[] = {"put_completion", "rtt"};
	const char *paths[OPT_LIST_MAX];
	size_t n = opts_list(o, "paths", paths);
	const struct opt_sizes *sizes = opts_sizes(o, "sizes");
	int err = put_opts_check(o);

	for (unsigned m = 0; m < 2; m++)
		for (size_t p = 0; p < n; p++)
			for (size_t s = 0; s < sizes->n && !err; s++)
				err = put_cases_add(out, o, env, "size-sweep", paths[p],
						    metrics[m], sizes->v[s], "sys-fence",
						    false);
	return err;
}

const struct bench bench_size_sweep = {
	.name = "size-sweep",
	.question =
		"issue, completion, round trip and components over message size, on each path",
	.uses = "paths sizes ops host_method",
	.needs_env = true,
	.cases = size_sweep_cases,
	.open = put_open,
	.batch = put_batch,
	.close = put_close,
};
