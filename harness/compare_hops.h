/* SPDX-License-Identifier: Apache-2.0
 * compare_hops.h: the hops of several launches of one set-up.
 */
#ifndef PUTSCOPE_COMPARE_HOPS_H
#define PUTSCOPE_COMPARE_HOPS_H
#include <jansson.h>

/* The hop of run.json "hops" with the same hop, members and group; borrowed, NULL when there is none. */
json_t *hop_find(const json_t *run, const json_t *like);
/* run.json "hops" for these launches (each {run: ...}): a hop that each of them has, est_ns = mean, 95 % interval by
 * Student's t over launches; new reference, NULL when no launch has hops. */
json_t *hops_merge(const json_t *launches);
#endif
