/* SPDX-License-Identifier: Apache-2.0
 * env.c: open and close the rig of a run; its facts and its evidence.
 */
#include <dlfcn.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "counters.h"
#include "engine.h"
#include "err.h"
#include "facts.h"
#include "nic/guard.h"
#include "path/correlate.h"
#include "path/hop.h"
#include "path/put.h"
#include "rig.h"
#include "serve.h"

static int parse_gpu(const char *text, int *gpu)
{
	char why[160];
	char *end;
	long v;

	if (!strcmp(text, "none")) {
		*gpu = -1;
		return 0;
	}
	if (!strcmp(text, "auto")) {
		*gpu = sm_gpu_count(why, sizeof why) > 0 ? 0 : -1;
		return 0;
	}
	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || *end || end == text || v < 0 || v > 1024)
		return err_say(-EINVAL,
			       "gpu '%s' is neither auto, none, nor a device number",
			       text);
	*gpu = (int)v;
	return 0;
}

/* The device(s) of the two endpoints: one for loopback, two for across. */
static int open_nics(struct env *e, const struct opts *o)
{
	const char *want = opts_str(o, "nic"), *ends = opts_str(o, "endpoints");
	bool named = strcmp(want, "auto") && strcmp(want, "virtual");
	char names[16][64];
	unsigned n = nic_names(names, 16), second = 0;
	const char *first = named ? want : names[0];
	int err;

	if (!n && !named)
		return err_say(
			-ENODEV,
			"no RDMA device: load the driver of the NIC, or run with --nic virtual");
	err = nic_open(&e->nics[0], first);
	if (err)
		return err;
	e->nic_count = 1;
	if (e->ranks.count == 2 || !strcmp(ends, "loopback") ||
	    (!strcmp(ends, "auto") && !e->virtual_nic))
		return 0;
	while (second < n && !strcmp(names[second], first))
		second++;
	if (second == n)
		return !strcmp(ends, "across")
			       ? err_say(-EINVAL,
					 "endpoints = across needs two RDMA devices; there is only %s",
					 first)
			       : 0;
	err = nic_open(&e->nics[1], names[second]);
	if (!err)
		e->nic_count = 2;
	return err;
}

static int choose_data(struct env *e, const struct opts *o)
{
	const char *want = opts_str(o, "data");
	bool gpu = !strcmp(want, "gpu") ||
		   (!strcmp(want, "auto") && sm_is_gpu(e->sm) && !e->virtual_nic);

	if (gpu && !sm_is_gpu(e->sm))
		return err_say(-EINVAL, "data = gpu, but no GPU is used (see --gpu)");
	e->data_place = gpu ? SM_GPU : SM_HOST;
	return 0;
}

static int open_endpoint(struct env *e, enum end end)
{
	struct endpoint *ep = &e->end[end];
	int err;

	ep->remote = e->ranks.count == 2 && end != (e->ranks.rank ? END_B : END_A);
	if (ep->remote)
		return 0;
	ep->nic = e->nics[end < e->nic_count ? end : 0];
	OUR_TRY(sm_alloc(e->sm, DATA_BYTES, e->data_place, (void **)&ep->src), err, out);
	OUR_TRY(sm_alloc(e->sm, DATA_BYTES + FLAG_BYTES, e->data_place,
			 (void **)&ep->dst),
		err, out);
	OUR_TRY(nic_reg(ep->nic, ep->src, DATA_BYTES, &ep->src_mr), err, out);
	OUR_TRY(nic_reg(ep->nic, ep->dst, DATA_BYTES + FLAG_BYTES, &ep->dst_mr), err,
		out);
	ep->dst_addr = (uint64_t)(uintptr_t)ep->dst;
	ep->dst_rkey = ep->dst_mr->rkey;
out:
	return err;
}

/* Rank 0 learns where endpoint B's memory lies and what rank 1 is, and says who measures what, first of all. */
static int meet_peer(struct env *e)
{
	struct serve_msg m = {.what = SERVE_MEET};
	char here[64] = "";
	json_t *all, *facts;
	size_t i;
	int err;

	if (e->ranks.count == 1 || e->ranks.rank != 0)
		return 0;
	err = serve_ask(e, &m, &e->peer.facts);
	if (err)
		return err;
	if (e->virtual_nic &&
	    (gethostname(here, sizeof here - 1) || strncmp(here, m.host, sizeof here)))
		return err_say(
			-EINVAL,
			"rank 1 runs on %s: the virtual NIC joins ranks of one host only",
			m.host);
	e->end[END_B].dst_addr = m.dst_addr;
	e->end[END_B].dst_rkey = m.dst_rkey;
	all = env_ranks(e);
	json_array_foreach(all, i, facts) facts_print(facts);
	json_decref(all);
	return 0;
}

/* A put to the other rank, before anything is timed: queue pairs connect whether or not packets pass. */
static int reach_peer(struct env *e)
{
	char why[200];
	int err;

	if (e->ranks.count == 1 || e->ranks.rank != 0)
		return 0;
	err = put_self_test(e, "host");
	if (!err)
		return 0;
	snprintf(why, sizeof why, "%s", err_last());
	return err_say(
		-EHOSTUNREACH,
		"%s here cannot put into the memory of rank 1 on %s: %s; check that both ports are in one "
		"network, that both GIDs are RoCE v2 of one address family, that MTUs agree, and that no "
		"firewall stops UDP port 4791",
		e->nics[0]->name, e->peer.host, why);
}

/* Both kinds of queue pairs now: what a device refuses is known before anything is measured. */
static int open_pairs(struct env *e)
{
	struct nic_qp *pair[END_COUNT];
	int err;

	if (e->ranks.rank != 0)
		return 0;
	err = rig_pair(e, false, pair);
	return err || !e->nics[0]->mlx5 ? err : rig_pair(e, true, pair);
}

int env_open(struct env **out, const struct opts *o)
{
	struct env *e = calloc(1, sizeof *e);
	struct sm_moment sm;
	int gpu = -1, err;

	*out = NULL;
	if (!e)
		return err_say(-ENOMEM, "no memory for the run");
	e->opts = o;
	e->virtual_nic = nic_is_virtual();
	OUR_TRY(ranks_open(&e->ranks), err, out);
	OUR_TRY(serve_hello(e), err, out);
	OUR_TRY(parse_gpu(opts_str(o, "gpu"), &gpu), err, out);
	OUR_TRY(sm_open(&e->sm, gpu), err, out);
	OUR_TRY(open_nics(e, o), err, out);
	PTR_TRY(e->counters = counters_read(e), err, out);
	OUR_TRY(choose_data(e, o), err, out);
	OUR_TRY(clock_fit_host(&e->host_clock, 100), err, out);
	OUR_TRY(sm_clocks(e->sm, &e->sm_clock, &e->sm_wall), err, out);
	OUR_TRY(open_endpoint(e, END_A), err, out);
	OUR_TRY(open_endpoint(e, END_B), err, out);
	PTR_TRY(e->staging = malloc(DATA_BYTES), err, out);
	OUR_TRY(sm_alloc(e->sm, STAMPS_MAX * sizeof *e->stamps, SM_HOST,
			 (void **)&e->stamps),
		err, out);
	OUR_TRY(sm_alloc(e->sm, sizeof *e->result, SM_HOST, (void **)&e->result), err,
		out);
	OUR_TRY(correlate(e, &sm), err, out);
	if (sm_is_gpu(e->sm))
		e->sm_wall.bound_ns = sm.bound_ns;
	OUR_TRY(meet_peer(e), err, out);
	OUR_TRY(open_pairs(e), err, out);
	OUR_TRY(reach_peer(e), err, out);
	*out = e;
	return 0;
out:
	serve_refuse(e, err);
	env_close(e);
	return err;
}

bool env_serves(const struct env *e)
{
	return e && e->ranks.count > 1 && e->ranks.rank != 0;
}

int env_serve(struct env *e)
{
	int err;

	if (!env_serves(e))
		return 0;
	err = serve_loop(e);
	return err ? err : 1;
}

void env_close(struct env *e)
{
	if (!e)
		return;
	env_peer_end(e);
	hop_pairs_close(e);
	rig_pair_broken(e, true);
	rig_pair_broken(e, false);
	for (int i = 0; i < END_COUNT; i++) {
		struct endpoint *ep = &e->end[i];

		if (ep->src_mr)
			ibv_dereg_mr(ep->src_mr);
		if (ep->dst_mr)
			ibv_dereg_mr(ep->dst_mr);
		if (ep->remote)
			continue;
		sm_free(e->sm, ep->src, DATA_BYTES, e->data_place);
		sm_free(e->sm, ep->dst, DATA_BYTES + FLAG_BYTES, e->data_place);
	}
	sm_free(e->sm, e->stamps, STAMPS_MAX * sizeof *e->stamps, SM_HOST);
	sm_free(e->sm, e->result, sizeof *e->result, SM_HOST);
	free(e->staging);
	nic_close(e->nics[0]);
	nic_close(e->nics[1]);
	sm_close(e->sm);
	ranks_close(&e->ranks);
	json_decref(e->counters);
	json_decref(e->peer.facts);
	json_decref(e->peer.evidence);
	free(e);
}

static json_t *number(double v)
{
	return isnan(v) ? json_null() : json_real(v);
}

static json_t *clock_json(const struct clock_fit *c)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:s?}", "name", c->name,
			 "ns_per_tick", number(c->ns_per_tick), "step_ns",
			 number(c->step_ns), "overhead_ns", number(c->overhead_ns),
			 "drift_ppm", number(c->drift_ppm), "bound_ns",
			 number(c->bound_ns), "warning", c->warning);
}

/* Each NIC's clock against the host's; null where a device shows none. */
static json_t *nic_clocks(const struct env *e)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < e->nic_count; i++) {
		struct clock_fit c;

		json_array_append_new(
			all, nic_clock_fit(e->nics[i], e->host_clock.ns_per_tick, &c)
				     ? json_null()
				     : clock_json(&c));
	}
	return all;
}

json_t *env_facts(const struct env *e)
{
	json_t *nics = json_array();

	for (unsigned i = 0; i < e->nic_count; i++)
		json_array_append_new(nics, nic_facts(e->nics[i]));
	return json_pack(
		"{s:o, s:o, s:{s:o, s:o, s:o, s:o}, s:{s:s, s:s, s:s, s:s, s:s}}", "sm",
		sm_facts(e->sm), "nics", nics, "clocks", "host",
		clock_json(&e->host_clock), "sm", clock_json(&e->sm_clock), "sm_shared",
		clock_json(&e->sm_wall), "nics", nic_clocks(e), "placement", "endpoints",
		rig_endpoints(e), "queue", "host", "cq", "host", "dbrec", "host", "data",
		e->data_place == SM_GPU ? "gpu" : "host");
}

/* What the virtual NIC counted, as JSON of its own making; null on a real one. */
static json_t *virtual_stats(void)
{
	int (*stats)(char *, size_t);
	json_t *j = NULL;
	char *text;
	int n;

	*(void **)&stats = dlsym(RTLD_DEFAULT, "vcx_stats");
	if (!stats)
		return json_null();
	n = stats(NULL, 0);
	text = n > 0 ? malloc((size_t)n + 1024) : NULL;
	if (text) {
		stats(text, (size_t)n + 1024);
		j = json_loads(text, 0, NULL);
	}
	free(text);
	return j ? j : json_null();
}

/* Does the GPU's mapping of a doorbell page survive that the CPU's is taken away?  Where it does not, nothing is claimed. */
static int try_guard(struct env *e)
{
	int err;

	if (!sm_is_gpu(e->sm)) {
		guard_set(GUARD_HOST_SM);
		return 0;
	}
	guard_set(GUARD_HOLDS);
	if (!put_self_test(e, "gpu"))
		return 0;
	guard_set(GUARD_BREAKS);
	err = put_self_test(e, "gpu");
	return err;
}

int env_self_test(struct env *e, const char *path)
{
	int err = put_self_test(e, path);

	if (!err && !strcmp(path, "gpu") && guard_get() == GUARD_UNTRIED)
		err = try_guard(e);
	return err;
}

static json_t *guard_evidence(void)
{
	return json_pack("{s:s, s:I, s:I}", "state", guard_state_name(guard_get()),
			 "launches", (json_int_t)guard_launches(), "cpu_touches",
			 (json_int_t)guard_touches());
}

/* Who rang the puts that an SM built, by path, as whoever rang counted; a path that rang nothing is not there. */
static json_t *rung_by(const struct env *e)
{
	json_t *j = json_object();

	if (e->count.sm_doorbells)
		json_object_set_new(j, "gpu", json_string("SM"));
	if (e->count.cpu_doorbells)
		json_object_set_new(j, "gpu-cpu-db", json_string("CPU"));
	return j;
}

json_t *env_evidence(const struct env *e)
{
	json_t *grown = counters_grown(e->counters, e);

	return json_pack("{s:o, s:I, s:I, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:O?}",
			 "uar_guard", guard_evidence(), "doorbells_by_sm",
			 (json_int_t)e->count.sm_doorbells, "doorbells_by_cpu",
			 (json_int_t)e->count.cpu_doorbells, "rung_by", rung_by(e),
			 "posts_by_cpu", (json_int_t)e->count.cpu_posts, "rerings",
			 (json_int_t)e->count.rerings, "payload_errors",
			 (json_int_t)e->count.payload_errors, "virtual_nic",
			 virtual_stats(), "nic_counters", grown, "dirty",
			 counters_dirty(grown), "peer", e->peer.evidence);
}

const char *env_nature(const struct env *e)
{
	return e->virtual_nic || !sm_is_gpu(e->sm) ? "virtual" : "hardware";
}

void env_peer_end(struct env *e)
{
	struct serve_msg m = {.what = SERVE_END};

	if (e->ranks.count != 2 || e->ranks.rank != 0 || !e->peer.joined || e->peer.ended)
		return;
	if (!e->ranks.lost)
		serve_ask(e, &m, &e->peer.evidence);
	e->peer.ended = true;
}

const char *env_peer_lost(const struct env *e)
{
	return e && *e->peer.why_lost ? e->peer.why_lost : NULL;
}

json_t *env_ranks(const struct env *e)
{
	json_t *all = json_pack("[o]", facts_rank(0, e));

	if (e && e->peer.facts)
		json_array_append(all, e->peer.facts);
	return all;
}
