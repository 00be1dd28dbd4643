/* SPDX-License-Identifier: Apache-2.0
 * env.h: the SM and the NICs of a run, as the engine sees them (rig.h has the inside).
 */
#ifndef PUTSCOPE_ENV_H
#define PUTSCOPE_ENV_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct env;
struct opts;

/* Open what the options name.  -EINVAL / -ENODEV: usage, or a named device is absent (exit 2); -EPERM and others: a
 * device that is there refuses (exit 3). */
int env_open(struct env **e, const struct opts *o);
void env_close(struct env *e);
json_t *
env_facts(const struct env *e); /* {gpu, nics, clocks, placement}: new reference */
json_t *env_evidence(
	const struct env
		*e); /* who rang, what arrived, what the virtual NIC saw: new reference */
const char *env_nature(const struct env *e); /* "hardware" or "virtual" */
/* Does this rank only serve (rank 1 of a pair)?  Then answer the other rank until it ends: 1 when it did, -errno; 0 of the
 * rank that measures. */
bool env_serves(const struct env *e);
int env_serve(struct env *e);
/* Rank 0: rank 1 is asked for its evidence and is served no more, so that it does not wait for what rank 0 does next. */
void env_peer_end(struct env *e);
/* Why the other rank was lost during the run; NULL when it was not. */
const char *env_peer_lost(const struct env *e);
json_t *env_ranks(const struct env *e); /* facts of every rank, by rank: new reference */
/* One put of a path (gpu, proxy, host), data checked, before any timing. */
int env_self_test(struct env *e, const char *path);
#endif
