/* SPDX-License-Identifier: Apache-2.0
 * run.c: `putscope run`: options, the virtual NIC, the rig, self-tests, the engine, the record, the table.
 *
 * Everything that can be wrong in what was asked is found before anything is written.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "command.h"
#include "engine.h"
#include "env.h"
#include "err.h"
#include "facts.h"
#include "opt.h"
#include "ranks.h"
#include "record.h"
#include "registry.h"
#include "virtual.h"
#include "version.h"

#define BENCHES_MAX 16

struct run {
	struct opts *o;
	const char *config;
	bool json, needs_env;
	const char *vcx[VIRTUAL_OPTS_MAX];
	int vcx_n;
	const struct bench *bench[BENCHES_MAX];
	unsigned bench_n;
	char uses[1024]; /* keys that the chosen benches read */
	struct env *env;
	struct case_list cases;
	struct record *record;
};

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
	     "CONFIG: a file, or a name in configs/ (default quick). --vcx: options of the virtual NIC (see vcx --help).\n"
	     "--repeat N: N launches, each into a folder of its own, DIR-1 .. DIR-N.\nKeys:");
	opts_help(help_line);
	return EXIT_DONE;
}

static int set_pair(struct opts *o, const char *pair, const char *where)
{
	char key[64];
	const char *eq = strchr(pair, '=');

	if (!eq || eq == pair || (size_t)(eq - pair) >= sizeof key)
		return err_say(-EINVAL, "%s %s: not KEY=VALUE", where, pair);
	snprintf(key, sizeof key, "%.*s", (int)(eq - pair), pair);
	return opts_set(o, key, eq + 1, where);
}

/* The command line outranks CONFIG, so CONFIG is read first: two passes over the arguments. */
static int parse(struct run *r, int argc, char **argv)
{
	static const struct option longs[] = {
		{"out", required_argument, NULL, 'o'},
		{"nic", required_argument, NULL, 'n'},
		{"gpu", required_argument, NULL, 'g'},
		{"time", required_argument, NULL, 't'},
		{"repeat", required_argument, NULL, 'r'},
		{"vcx", required_argument, NULL, 'v'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	static const char *const keys[] = {['o'] = "out",
					   ['n'] = "nic",
					   ['g'] = "gpu",
					   ['t'] = "time",
					   ['r'] = "repeat"};

	for (int pass = 0; pass < 2; pass++) {
		int c, err = 0;

		optind = 1;
		while (!err && (c = getopt_long(argc, argv, "k:h", longs, NULL)) != -1) {
			char where[32];

			if (c == '?')
				return err_say(-EINVAL, "see putscope run --help");
			if (c == 'h')
				return 1;
			if (pass == 0)
				continue;
			snprintf(where, sizeof where, c == 'k' ? "-k" : "--%s",
				 c == 'k' || c == 'v' || c == 'j' ? "" : keys[c]);
			if (c == 'j')
				r->json = true;
			else if (c == 'k')
				err = set_pair(r->o, optarg, where);
			else if (c == 'v' && r->vcx_n == VIRTUAL_OPTS_MAX)
				err = err_say(-EINVAL, "more than %d --vcx options",
					      VIRTUAL_OPTS_MAX);
			else if (c == 'v')
				err = virtual_check(r->vcx[r->vcx_n++] = optarg);
			else
				err = opts_set(r->o, keys[c], optarg, where);
		}
		if (err)
			return err;
		if (argc - optind > 1)
			return err_say(-EINVAL, "one CONFIG at a time: '%s' and '%s'",
				       argv[optind], argv[optind + 1]);
		r->config = optind < argc ? argv[optind] : "quick";
		if (pass == 0 && (err = opts_load(r->o, r->config)))
			return err;
	}
	return 0;
}

static int choose_benches(struct run *r)
{
	char names[1024];
	size_t at = 0;

	snprintf(names, sizeof names, "%s", opts_str(r->o, "bench"));
	for (char *save, *w = strtok_r(names, ", ", &save); w;
	     w = strtok_r(NULL, ", ", &save)) {
		const struct bench *b = registry_find(w);

		if (!b)
			return err_say(
				-EINVAL,
				"bench '%s' does not exist; `putscope list` shows those that do",
				w);
		if (r->bench_n == BENCHES_MAX)
			return err_say(-EINVAL, "more than %d benches", BENCHES_MAX);
		r->bench[r->bench_n++] = b;
		r->needs_env |= b->needs_env;
		at += (size_t)snprintf(r->uses + at, sizeof r->uses - at, "%s%s",
				       at ? " " : "", b->uses);
	}
	if (!r->bench_n)
		return err_say(-EINVAL, "bench is empty: nothing to run");
	if (opts_int(r->o, "repeat") < 1 || opts_int(r->o, "min_batches") < 1 ||
	    opts_int(r->o, "min_samples") < 1)
		return err_say(-EINVAL,
			       "repeat, min_batches and min_samples must be 1 or more");
	if (!(opts_dbl(r->o, "time") > 0))
		return err_say(-EINVAL, "time must be more than 0 seconds");
	return opts_check_used(r->o, r->uses);
}

static int list_cases(struct run *r)
{
	for (unsigned i = 0; i < r->bench_n; i++) {
		int err = r->bench[i]->cases(r->o, r->env, &r->cases);

		if (err)
			return err;
	}
	return 0;
}

static void default_dir(const struct run *r, char *dir, size_t n)
{
	const char *base =
		strrchr(r->config, '/') ? strrchr(r->config, '/') + 1 : r->config;
	int len = (int)strcspn(base, ".");
	char stamp[32];
	time_t now = time(NULL);
	struct tm tm;

	strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
	snprintf(dir, n, "results/%.*s-%s", len, base, stamp);
	for (int i = 2; !access(dir, F_OK) && i < 1000; i++)
		snprintf(dir, n, "results/%.*s-%s-%d", len, base, stamp, i);
}

static int open_record(struct run *r)
{
	char dir[3000], stamp[40];
	time_t now = time(NULL);
	struct tm tm;
	int err;

	snprintf(dir, sizeof dir, "%s", opts_str(r->o, "out"));
	if (!*dir)
		default_dir(r, dir, sizeof dir);
	err = record_open(&r->record, dir);
	if (err)
		return err;
	strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S%z", localtime_r(&now, &tm));
	return record_head(r->record,
			   json_pack("{s:s, s:i, s:s, s:s, s:s, s:o, s:I, s:[o]}",
				     "schema", RECORD_SCHEMA, "version", RECORD_VERSION,
				     "putscope", PUTSCOPE_VERSION, "start", stamp,
				     "config", r->config, "options", opts_json(r->o),
				     "seed", (json_int_t)opts_int(r->o, "seed"), "ranks",
				     facts_rank(0, r->env)));
}

/* One put of each path before any timing; a path that fails takes its cases with it. */
static void self_tests(struct run *r)
{
	for (size_t i = 0; i < r->cases.n && !run_stop; i++) {
		struct case_desc *c = &r->cases.v[i];
		size_t first = 0;
		int err;

		if (c->status != CASE_OK || !registry_find(c->bench)->needs_env)
			continue;
		while (strcmp(r->cases.v[first].path, c->path) ||
		       r->cases.v[first].status == CASE_WAIVED)
			first++;
		if (first != i)
			continue;
		err = env_self_test(r->env, c->path);
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
			"putscope: interrupted; what was measured is in %s, marked incomplete\n",
			record_dir(r->record));
	return !ran ? EXIT_NOTHING : bad || run_stop ? EXIT_FAILED : EXIT_DONE;
}

static int measure(struct run *r)
{
	double start = 1e-9 * (double)clock_monotonic_raw_ns(),
	       budget = opts_dbl(r->o, "time");
	const char *why = NULL;
	int err, status;

	self_tests(r);
	err = record_write(r->record, &r->cases, NULL, 0, false, false, RECORD_RUNNING);
	if (!err)
		err = engine_run(r->env, r->o, &r->cases, r->record, budget);
	if (run_stop)
		why = "interrupted by a signal";
	if (!err)
		err = record_write(r->record, &r->cases,
				   r->env ? env_evidence(r->env) : NULL,
				   1e-9 * (double)clock_monotonic_raw_ns() - start, true,
				   !run_stop, why);
	status = outcome(r, err);
	if (!err)
		report_print(record_dir(r->record), r->json, false);
	return status;
}

static volatile sig_atomic_t launch_pid; /* --repeat: the launch in hand */

static void on_signal(int sig)
{
	run_stop = 1;
	if (launch_pid > 0)
		kill((pid_t)launch_pid, sig);
}

static void take_signals(void)
{
	const struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

static int run_here(struct run *r)
{
	int err, status;

	if (r->needs_env) {
		err = env_open(&r->env, r->o);
		if (err)
			return command_fail(command_status(err));
		err = env_serve(r->env);
		if (err) {
			env_close(r->env);
			return err < 0 ? command_fail(EXIT_FAILED) : EXIT_DONE;
		}
	}
	take_signals();
	err = list_cases(r);
	if (!err)
		err = open_record(r);
	status = err ? command_fail(EXIT_USAGE) : measure(r);
	record_close(r->record);
	env_close(r->env);
	return status;
}

/* --repeat: each launch is a process of its own, with a folder of its own. */
static int run_repeated(struct run *r, int argc, char **argv)
{
	int64_t n = opts_int(r->o, "repeat");
	char base[2900], dir[3000], **args = calloc((size_t)argc + 6, sizeof *args);
	int worst = EXIT_DONE;

	if (!args)
		return command_fail(EXIT_FAILED);
	snprintf(base, sizeof base, "%s", opts_str(r->o, "out"));
	if (!*base)
		default_dir(r, base, sizeof base);
	take_signals();
	args[0] = "/proc/self/exe";
	memcpy(args + 1, argv, (size_t)argc * sizeof *args);
	args[argc + 1] = "--repeat=1";
	args[argc + 2] = "--out";
	args[argc + 3] = dir;
	for (int64_t i = 1; i <= n && !run_stop; i++) {
		int status = 0;
		pid_t pid;

		snprintf(dir, sizeof dir, "%s-%lld", base, (long long)i);
		pid = fork();
		if (!pid) {
			execv(args[0], args);
			_exit(EXIT_FAILED);
		}
		launch_pid = pid;
		while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		launch_pid = 0;
		if (pid < 0 || !WIFEXITED(status))
			worst = EXIT_FAILED;
		else if (WEXITSTATUS(status) > worst)
			worst = WEXITSTATUS(status);
	}
	free(args);
	return worst;
}

int cmd_run(int argc, char **argv)
{
	struct run r = {.o = opts_new()};
	int err = r.o ? parse(&r, argc, argv) : -ENOMEM, status;

	if (err == 1) {
		status = usage();
		goto out;
	}
	if (!err)
		err = choose_benches(&r);
	if (!err && ranks_launched() > 1 && ranks_launched() % 2)
		err = err_say(-EINVAL,
			      "%d ranks cannot be paired: start 1 or an even number",
			      ranks_launched());
	if (!err && r.needs_env) {
		int v = virtual_needed(opts_str(r.o, "nic"));

		err = v < 0 ? v : 0;
		if (v == 1 && opts_int(r.o, "repeat") == 1) {
			char **args = calloc((size_t)argc + 2, sizeof *args);

			args[0] = "/proc/self/exe";
			memcpy(args + 1, argv, (size_t)argc * sizeof *args);
			status = virtual_start(args, r.vcx, r.vcx_n);
			free(args);
			goto out;
		}
	}
	if (err)
		status = command_fail(EXIT_USAGE);
	else
		status = opts_int(r.o, "repeat") > 1 ? run_repeated(&r, argc, argv)
						     : run_here(&r);
out:
	case_list_free(&r.cases);
	opts_free(r.o);
	return status;
}
