/* SPDX-License-Identifier: Apache-2.0
 * one-op: what do ordering and inlining cost one put, and which orders are safe here?
 *
 * Times:     issue and put_completion of single puts, each ordering x inline or pointer, beside proxy and host
 * Path:      as quick; gpu with nothing, GPU-scope and system-scope order between WQE, record and doorbell
 * Clock:     the SM's own (clock64, or the host's ticks where a host thread plays the SM)
 * Includes:  in the unsafe orders the wait before a lost doorbell is rung again: such puts are kept and counted
 * Lies when: a host thread plays the SM: on x86 a GPU-scope fence costs nothing and every store is ordered anyway
 */
#include "path/put.h"

/* The gpu path takes the chosen orderings; the proxy has its own two; the host path needs none. */
static int add_path(const struct opts *o, const struct env *env, struct case_list *out,
		    const char *path, uint64_t bytes, bool inl)
{
	const char *orders[OPT_LIST_MAX] = {"settled", "sys-fence"};
	size_t n = !strcmp(path, "gpu")	    ? opts_list(o, "orderings", orders)
		   : !strcmp(path, "proxy") ? 2
					    : 1;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = put_cases_add(out, o, env, "one-op", path, "put_completion", bytes,
				    orders[i], inl);
	return err;
}

static int one_op_cases(const struct opts *o, const struct env *env,
			struct case_list *out)
{
	const char *paths[OPT_LIST_MAX], *payloads[OPT_LIST_MAX];
	size_t path_n = opts_list(o, "paths", paths),
	       payload_n = opts_list(o, "payload", payloads);
	const struct opt_sizes *sizes = opts_sizes(o, "sizes");
	int err = put_opts_check(o);

	for (size_t s = 0; s < sizes->n; s++)
		for (size_t p = 0; p < path_n; p++)
			for (size_t k = 0; k < payload_n && !err; k++)
				err = add_path(o, env, out, paths[p], sizes->v[s],
					       !strcmp(payloads[k], "inline"));
	return err;
}

const struct bench bench_one_op = {
	.name = "one-op",
	.question =
		"one put: seven orderings, inline and pointer; which are safe, what each costs",
	.uses = "paths sizes ops host_method orderings payload",
	.needs_env = true,
	.cases = one_op_cases,
	.open = put_open,
	.batch = put_batch,
	.close = put_close,
};
