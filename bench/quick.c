/* SPDX-License-Identifier: Apache-2.0
 * quick: what does one put cost on each path, on this machine, in under a minute?
 *
 * Times:     issue, put_completion (and put_completion_stamped), rtt of single puts, components of each batch
 * Path:      SM builds WQE -> record -> doorbell -> NIC -> remote memory -> CQE -> SM   (gpu)
 *            SM stores a descriptor -> worker ibv_post_send -> NIC -> ... -> counter -> SM   (proxy)
 *            kernel ends -> CPU ibv_post_send -> NIC -> ... -> CQE -> next kernel   (host)
 * Clock:     the SM's own (clock64, or the host's ticks where a host thread plays the SM); host path: the clock that
 *            kernels share (globaltimer)
 * Includes:  for gpu and proxy nothing but the put; for host the launch of the next kernel
 * Lies when: spinners exceed CPUs (rows marked oversubscribed), or the NIC is virtual and is taken for a ConnectX
 */
#include "path/put.h"

static int quick_cases(const struct opts *o, const struct env *env, struct case_list *out)
{
	const char *paths[OPT_LIST_MAX];
	size_t n = opts_list(o, "paths", paths);
	const struct opt_sizes *sizes = opts_sizes(o, "sizes");
	int err = put_opts_check(o);

	for (size_t p = 0; p < n && !err; p++) {
		for (size_t s = 0; s < sizes->n && !err; s++) {
			uint64_t bytes = sizes->v[s];

			err = put_cases_add(out, o, env, "quick", paths[p],
					    "put_completion", bytes, "sys-fence", false);
			if (!err && bytes <= 8 && !strcmp(paths[p], "proxy"))
				err = put_cases_add(out, o, env, "quick", paths[p],
						    "put_completion", bytes, "settled",
						    false);
			if (!err && bytes <= WQE_INLINE_MAX)
				err = put_cases_add(out, o, env, "quick", paths[p],
						    "put_completion", bytes, "sys-fence",
						    true);
			if (!err && bytes <= 8)
				err = put_cases_add(out, o, env, "quick", paths[p], "rtt",
						    bytes, "sys-fence", true);
		}
	}
	return err;
}

const struct bench bench_quick = {
	.name = "quick",
	.question = "one put on each path: issue, completion, round trip, components",
	.uses = "paths sizes ops host_method",
	.needs_env = true,
	.cases = quick_cases,
	.open = put_open,
	.batch = put_batch,
	.close = put_close,
};
