/* SPDX-License-Identifier: Apache-2.0
 * run.c: `putscope run`: options, the virtual NIC, the rig, self-tests, the engine, the record, the table.
 *
 * Everything that can be wrong in what was asked is found before anything is written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "command.h"
#include "engine.h"
#include "env.h"
#include "err.h"
#include "facts.h"
#include "opt.h"
#include "range.h"
#include "ranks.h"
#include "record.h"
#include "registry.h"
#include "run_args.h"
#include "version.h"

/* An interrupted run with more samples ends without summary.csv and table, so that it ends at once; `report` makes the
 * table from samples.csv. */
#define SAMPLES_AT_ONCE 200000u

struct run {
	struct run_args a;
	double start_s;
	struct env *env;
	struct case_list cases;
	struct record *record;
};

static double now_s(void)
{
	return 1e-9 * (double)clock_monotonic_raw_ns();
}

static void help_line(const char *key, const char *type, const char *def,
		      const char *help)
{
	printf("  %-12s %s\n  %-12s   (%s; default %s)\n", key, help, "", type,
	       *def ? def : "empty");
}

static int usage(void)
{
	puts("usage: putscope run [CONFIG] [-k KEY=VALUE]... [--out DIR] [--nic auto|virtual|NAME] [--gpu auto|none|N]\n"
	     "                    [--time S] [--repeat N] [--vcx KEY=VALUE]... [--json]\n"
	     "CONFIG: a file, or a name in configs/. Without one: quick; with -k bench=...: none, the defaults below.\n"
	     "--vcx: options of the virtual NIC (see vcx --help).\n"
	     "--repeat N: N launches, each into a folder of its own, DIR-1 .. DIR-N.\n"
	     "--json: the report as JSON instead of the table (an array of them with --repeat).\n"
	     "Ctrl-C or SIGTERM end a run; what was measured is kept, marked incomplete, exit status 1.\nKeys:");
	opts_help(help_line);
	return EXIT_DONE;
}

static int list_cases(struct run *r)
{
	for (unsigned i = 0; i < r->a.bench_n; i++) {
		int err = r->a.bench[i]->cases(r->a.o, r->env, &r->cases);

		if (err)
			return err;
	}
	for (size_t i = 0; i < r->cases.n; i++)
		for (size_t k = 0; k < i; k++)
			if (!strcmp(r->cases.v[i].id, r->cases.v[k].id))
				return err_say(
					-EINVAL,
					"two cases are named %s: does a list name the "
					"same thing twice?",
					r->cases.v[i].id);
	return 0;
}

/* The keys, and what the virtual NIC was asked to do: a delay or a fault is part of how a number was made. */
static json_t *options_of(const struct run *r)
{
	json_t *j = opts_json(r->a.o), *vcx = json_array();

	for (int i = 0; i < r->a.vcx_n; i++)
		json_array_append_new(vcx, json_string(r->a.vcx[i]));
	if (r->a.vcx_n)
		json_object_set(j, "vcx", vcx);
	json_decref(vcx);
	return j;
}

static int open_record(struct run *r)
{
	char dir[3000], stamp[40];
	time_t now = time(NULL);
	struct tm tm;
	int err;

	run_args_dir(&r->a, dir, sizeof dir);
	err = record_open(&r->record, dir);
	if (err)
		return err;
	strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S%z", localtime_r(&now, &tm));
	return record_head(r->record,
			   json_pack("{s:s, s:i, s:s, s:s, s:s?, s:o, s:I, s:o}",
				     "schema", RECORD_SCHEMA, "version", RECORD_VERSION,
				     "putscope", PUTSCOPE_VERSION, "start", stamp,
				     "config", r->a.config, "options", options_of(r),
				     "seed", (json_int_t)opts_int(r->a.o, "seed"),
				     "ranks", env_ranks(r->env)));
}

/* One put of each path before any timing; a path that fails takes its cases with it. */
static void self_tests(struct run *r)
{
	for (size_t i = 0; i < r->cases.n && !run_stop; i++) {
		struct case_desc *c = &r->cases.v[i];
		size_t first = 0;
		int err;

		if (c->status != CASE_OK || !registry_find(c->bench)->needs_env ||
		    !strcmp(c->path, "none"))
			continue; /* a probe puts nothing */
		while (strcmp(r->cases.v[first].path, c->path) ||
		       r->cases.v[first].status == CASE_WAIVED)
			first++;
		if (first != i)
			continue;
		range_push(RANGE_PHASE, c->path);
		err = env_self_test(r->env, c->path);
		range_pop();
		for (size_t k = i; err && k < r->cases.n; k++) {
			struct case_desc *d = &r->cases.v[k];

			if (d->status != CASE_OK || strcmp(d->path, c->path))
				continue;
			d->status = CASE_FAILED;
			snprintf(d->reason, sizeof d->reason,
				 "self-test of the %s path: %.200s", c->path, err_last());
		}
	}
}

/* Why a run ended early, for people and for run.json. */
static const char *stopped_by(const struct run *r)
{
	const char *lost = env_peer_lost(r->env);

	return lost ? lost
	       : ranks_launched() > 1
		       ? "interrupted by a signal (a launcher sends one when another rank has ended)"
		       : "interrupted by a signal";
}

static int outcome(const struct run *r, int err)
{
	size_t ran = 0, bad = 0;

	for (size_t i = 0; i < r->cases.n; i++) {
		const struct case_desc *c = &r->cases.v[i];

		ran += c->status != CASE_WAIVED;
		bad += c->status == CASE_FAILED || c->status == CASE_INCOMPLETE;
		if (c->status == CASE_FAILED)
			fprintf(stderr, "putscope: %s failed: %s\n", c->id, c->reason);
	}
	if (err)
		return command_fail(EXIT_FAILED);
	if (run_stop)
		fprintf(stderr,
			"putscope: %s; what was measured is in %s, marked incomplete; "
			"its table: putscope report %s\n",
			stopped_by(r), record_dir(r->record), record_dir(r->record));
	return !ran ? EXIT_NOTHING : bad || run_stop ? EXIT_FAILED : EXIT_DONE;
}

static int measure(struct run *r)
{
	double budget = opts_dbl(r->a.o, "time");
	const char *why = NULL;
	bool table;
	int err, status;

	range_push(RANGE_PHASE, "self-test");
	self_tests(r);
	range_pop();
	range_push(RANGE_PHASE, "measure");
	err = record_write(r->record, &r->cases, NULL, 0, false, false, RECORD_RUNNING);
	if (!err)
		err = engine_run(r->env, r->a.o, &r->cases, r->record,
				 budget - (now_s() - r->start_s));
	range_pop();
	range_push(RANGE_PHASE, "report");
	if (r->env)
		env_peer_end(r->env);
	if (run_stop)
		why = stopped_by(r);
	table = !run_stop || record_samples(r->record) <= SAMPLES_AT_ONCE;
	if (!err)
		err = record_write(r->record, &r->cases,
				   r->env ? env_evidence(r->env) : NULL,
				   now_s() - r->start_s, table, !run_stop, why);
	status = outcome(r, err);
	if (!err && table)
		report_print(record_dir(r->record), r->a.json, false);
	range_pop();
	return status;
}

static void on_signal(int sig)
{
	(void)sig;
	run_stop = 1;
}

static void catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

/* Devices, cases, record.  On failure *status is how the run ends. */
static int set_up(struct run *r, int *status)
{
	int err = r->a.needs_env ? env_open(&r->env, r->a.o) : 0;

	if (err) {
		*status = command_status(err);
		return err;
	}
	catch_signals();
	*status = EXIT_USAGE;
	if (env_serves(r->env))
		return 0;
	err = list_cases(r);
	return err ? err : open_record(r);
}

static int serve(struct run *r)
{
	int err;

	range_push(RANGE_PHASE, "serve");
	err = env_serve(r->env);
	range_pop();
	return err < 0 ? command_fail(EXIT_FAILED) : EXIT_DONE;
}

static int run_here(struct run *r)
{
	int err, status;

	r->start_s = now_s();
	range_push(RANGE_PHASE, "setup");
	err = set_up(r, &status);
	range_pop();
	status = err ? command_fail(status) : env_serves(r->env) ? serve(r) : measure(r);
	record_close(r->record);
	env_close(r->env);
	return status;
}

/* This run again, under the virtual NIC. */
static int run_virtual(struct run *r)
{
	char *none[] = {NULL}, **args = run_args_again(&r->a, none);
	int status;

	if (!args)
		return command_fail(EXIT_FAILED);
	status = virtual_start(args, r->a.vcx, r->a.vcx_n);
	free(args);
	return status;
}

int cmd_run(int argc, char **argv)
{
	struct run r = {0};
	int err = run_args_parse(&r.a, argc, argv), v = 0, status;

	if (!err && r.a.needs_env)
		v = virtual_needed(opts_str(r.a.o, "nic"));
	if (err == 1)
		status = usage();
	else if (err || v < 0)
		status = command_fail(EXIT_USAGE);
	else if (opts_int(r.a.o, "repeat") > 1)
		status = run_repeated(&r.a);
	else if (v == 1)
		status = run_virtual(&r);
	else
		status = run_here(&r);
	case_list_free(&r.cases);
	opts_free(r.a.o);
	return status;
}
