/* SPDX-License-Identifier: Apache-2.0
 * engine.h: how many batches of which case, in which order, until when.
 */
#ifndef PUTSCOPE_ENGINE_H
#define PUTSCOPE_ENGINE_H
#include <signal.h>

#include "case.h"
#include "record.h"

struct env;
struct opts;

extern volatile sig_atomic_t
	run_stop; /* set by SIGINT and SIGTERM: end after the batch in hand */

/* Measure every case that is CASE_OK; each ends ok, failed (with its reason) or incomplete.  budget_s bounds the whole.
 * 0, or -errno when nothing more can be recorded. */
int engine_run(struct env *env, const struct opts *o, struct case_list *l,
	       struct record *r, double budget_s);
#endif
