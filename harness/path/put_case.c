/* SPDX-License-Identifier: Apache-2.0
 * put_case.c: a case of puts spelled out: all its semantics in words, and whether it can run here.
 */
#include <stdio.h>

#include "err.h"
#include "path/put.h"

int put_opts_check(const struct opts *o)
{
	const struct opt_sizes *s = opts_sizes(o, "sizes");
	int64_t ops = opts_int(o, "ops");

	if (ops < 1 || ops > (int64_t)PUT_OPS_MAX)
		return err_say(-EINVAL, "ops: %lld is outside 1 .. %u", (long long)ops,
			       PUT_OPS_MAX);

	for (size_t i = 0; i < s->n; i++)
		if (!s->v[i] || s->v[i] > PUT_BYTES_MAX)
			return err_say(-EINVAL, "sizes: %llu bytes is outside 1 .. %u",
				       (unsigned long long)s->v[i], PUT_BYTES_MAX);
	return 0;
}

static void waive(struct case_desc *c, const char *reason)
{
	c->status = CASE_WAIVED;
	snprintf(c->reason, sizeof c->reason, "%s", reason);
}

/* The SM builds the work request and polls the CQE; who rings is another matter. */
static bool sm_builds(const char *path)
{
	return !strcmp(path, "gpu") || !strcmp(path, "gpu-cpu-db");
}

/* Threads that spin at once while this case runs: what plays the SM, the worker, the forwarder or the
 * posting CPU, the virtual NIC. */
static unsigned spinners(const struct env *e, const char *path)
{
	unsigned sm = sm_is_gpu(e->sm) ? 0 : 1;
	unsigned n = !strcmp(path, "gpu") ? sm : !strcmp(path, "host") ? 1 : sm + 1;

	if (e->virtual_nic && e->ranks.count == 2)
		n++; /* the other rank's virtual NIC runs on this host too */
	return n + e->virtual_nic;
}

static void place(struct case_desc *c, const struct env *e)
{
	c->data = e->data_place == SM_GPU ? "gpu" : "host";
	c->endpoints = rig_endpoints(e);
	c->sm = sm_kind(e->sm);
	c->nature = env_nature(e);
	c->spinners = spinners(e, c->path);
	c->oversubscribed = c->spinners > sm_cpus();
	if (e->end[END_B].remote && !strcmp(c->main_metric, "rtt"))
		waive(c,
		      "this version measures round trips between the endpoints of one process only");
	if (sm_builds(c->path) && !e->end[END_A].nic->mlx5)
		waive(c,
		      "the NIC is no mlx5 device: an SM cannot build its work requests");
	if (e->data_place == SM_GPU && !strcmp(c->inlined, "inline") &&
	    !sm_builds(c->path))
		waive(c, "the CPU cannot inline a payload that lies in GPU memory");
	if (e->data_place == SM_GPU && !strcmp(c->path, "host") &&
	    !strcmp(c->main_metric, "rtt"))
		waive(c, "the CPU cannot poll a flag in GPU memory");
}

int put_case_add(struct case_list *l, const struct env *env, const char *bench,
		 const char *path, const char *metric, uint64_t bytes,
		 const char *ordering, bool inl)
{
	bool gpu = !strcmp(path, "gpu");
	struct case_desc *c = case_add(l);

	if (!c)
		return err_say(-ENOMEM, "no memory for the list of cases");
	c->bench = bench;
	c->path = path;
	c->size_bytes = bytes;
	c->ordering = !strcmp(path, "host") ? "" /* a kernel's end orders its stores */
		      : !strcmp(path, "gpu-cpu-db") ? "sys-fence"
						    : ordering;
	c->litmus =
		gpu && strcmp(ordering, "sys-fence") && strcmp(ordering, "sys-release");
	c->inlined = inl ? "inline" : "pointer";
	c->queue = c->cq = c->dbrec = "host";
	c->doorbell = "db";
	c->completion = !strcmp(metric, "rtt")	 ? "flag"
			: sm_builds(path)	 ? "cqe"
			: !strcmp(path, "proxy") ? "counter"
						 : "next-kernel";
	c->method = strcmp(path, "host") ? "" : "sync";
	c->qps = c->batch = c->signalled = 1;
	if (!strcmp(path, "proxy")) {
		c->protocol = strcmp(ordering, "sys-release") ? "tuned" : "baseline";
		c->workers = c->rings = 1;
	}
	c->main_metric = metric;
	c->data = c->endpoints = c->sm = "";
	c->nature = "virtual";
	snprintf(c->id, sizeof c->id, "%s/%s%s%s/%s/%s/%llu", bench, path,
		 *c->ordering ? "/" : "", c->ordering, c->inlined, metric,
		 (unsigned long long)bytes);
	if (!strcmp(path, "gpu-cpu-db") && !strcmp(metric, "rtt"))
		waive(c, "this version forwards doorbells of puts, not of round trips");
	if (inl && bytes > WQE_INLINE_MAX)
		waive(c, "more than 28 B do not fit inline in one 64 B work queue entry");
	if (env)
		place(c, env);
	return 0;
}

/* Another way than sync: its name in the id, and who spins beside the thread that posts.  event: on a host SM, the CPU that looks
 * while the SM runs; callback, graph: on a GPU, the CPU in the sync behind it all. */
static void set_method(struct case_desc *c, const struct env *env, const char *method)
{
	char rest[CASE_ID_CHARS];
	const size_t at = strlen(c->bench) + strlen("/host");

	c->method = method;
	snprintf(rest, sizeof rest, "%s", c->id + at);
	snprintf(c->id + at, sizeof c->id - at, "/%s%.200s", method, rest);
	if (!env)
		return;
	c->spinners += strcmp(method, "event") ? sm_is_gpu(env->sm) : !sm_is_gpu(env->sm);
	c->oversubscribed = c->spinners > sm_cpus();
}

int put_cases_add(struct case_list *l, const struct opts *o, const struct env *env,
		  const char *bench, const char *path, const char *metric, uint64_t bytes,
		  const char *ordering, bool inl)
{
	const char *methods[OPT_LIST_MAX] = {""};
	size_t n = strcmp(path, "host") ? 1 : opts_list(o, "host_method", methods);
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		err = put_case_add(l, env, bench, path, metric, bytes, ordering, inl);
		if (!err && *methods[i] && strcmp(methods[i], "sync"))
			set_method(&l->v[l->n - 1], env, methods[i]);
	}
	return err;
}
