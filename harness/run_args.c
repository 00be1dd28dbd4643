/* SPDX-License-Identifier: Apache-2.0
 * run_args.c: the command line of `putscope run`.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "err.h"
#include "nic/nic.h"
#include "ranks.h"
#include "record.h"
#include "registry.h"
#include "run_args.h"

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
#define SHORTS ":k:h" /* the colon: getopt leaves the messages to us */

static int set_pair(struct opts *o, const char *pair)
{
	char key[64];
	const char *eq = strchr(pair, '=');

	if (!eq || eq == pair || (size_t)(eq - pair) >= sizeof key)
		return err_say(-EINVAL, "-k %s: not KEY=VALUE", pair);
	snprintf(key, sizeof key, "%.*s", (int)(eq - pair), pair);
	return opts_set(o, key, eq + 1, "-k");
}

static int take(struct run_args *a, int c, const char *value)
{
	static const char *const keys[] = {['o'] = "out",
					   ['n'] = "nic",
					   ['g'] = "gpu",
					   ['t'] = "time",
					   ['r'] = "repeat"};
	char where[32];

	if (c == 'j') {
		a->json = true;
		return 0;
	}
	if (c == 'k')
		return set_pair(a->o, value);
	if (c == 'v') {
		if (a->vcx_n == VIRTUAL_OPTS_MAX)
			return err_say(-EINVAL, "more than %d --vcx options",
				       VIRTUAL_OPTS_MAX);
		return virtual_check(a->vcx[a->vcx_n++] = value);
	}
	snprintf(where, sizeof where, "--%s", keys[c]);
	return opts_set(a->o, keys[c], value, where);
}

/* Once over the arguments: with take_them false only CONFIG is found, since the command line outranks it. */
static int pass(struct run_args *a, bool take_them, bool *chooses_bench)
{
	int c, err = 0;

	optind = 0; /* glibc: start anew */
	while (!err && (c = getopt_long(a->argc, a->argv, SHORTS, longs, NULL)) != -1) {
		const char *it = a->argv[optind - 1];

		if (c == ':')
			return err_say(-EINVAL,
				       "%s needs a value; see `putscope run --help`", it);
		if (c == '?')
			return err_say(
				-EINVAL,
				"'%s' is no option of run, or has a value that it does "
				"not take; see `putscope run --help`",
				it);
		if (c == 'h')
			return 1;
		*chooses_bench |= c == 'k' && !strncmp(optarg, "bench=", 6);
		if (take_them)
			err = take(a, c, optarg);
	}
	if (err)
		return err;
	if (a->argc - optind > 1)
		return err_say(-EINVAL, "one CONFIG at a time: '%s' and '%s'",
			       a->argv[optind], a->argv[optind + 1]);
	a->config = optind < a->argc ? a->argv[optind] : NULL;
	return 0;
}

static int choose_benches(struct run_args *a, char *uses, size_t size)
{
	char names[1024];
	size_t at = 0;

	snprintf(names, sizeof names, "%s", opts_str(a->o, "bench"));
	*uses = 0;
	for (char *save, *w = strtok_r(names, ", ", &save); w;
	     w = strtok_r(NULL, ", ", &save)) {
		const struct bench *b = registry_find(w);

		if (!b)
			return err_say(
				-EINVAL,
				"bench '%s' does not exist; `putscope list` shows those that do",
				w);
		for (unsigned i = 0; i < a->bench_n; i++)
			if (a->bench[i] == b)
				return err_say(-EINVAL, "bench '%s' stands twice", w);
		if (a->bench_n == BENCHES_MAX)
			return err_say(-EINVAL, "more than %d benches at once",
				       BENCHES_MAX);
		a->bench[a->bench_n++] = b;
		a->needs_env |= b->needs_env;
		at += (size_t)snprintf(uses + at, size - at, "%s%s", at ? " " : "",
				       b->uses);
		if (at >= size)
			return err_say(-EINVAL, "too many benches at once");
	}
	return a->bench_n ? 0 : err_say(-EINVAL, "bench is empty: nothing to run");
}

static int check_limits(const struct opts *o)
{
	static const struct {
		const char *key;
		int64_t min, max;
	} limits[] = {
		{"repeat", 1, 1000},
		{"min_batches", 1, 1000000},
		{"min_samples", 1, 1000000000},
		{"warmup", 0, 1000000},
	};

	for (unsigned i = 0; i < sizeof limits / sizeof *limits; i++) {
		int64_t v = opts_int(o, limits[i].key);

		if (v < limits[i].min || v > limits[i].max)
			return err_say(-EINVAL, "%s is %lld; it must be %lld to %lld",
				       limits[i].key, (long long)v,
				       (long long)limits[i].min,
				       (long long)limits[i].max);
	}
	if (!(opts_dbl(o, "time") > 0))
		return err_say(-EINVAL, "time must be more than 0 seconds");
	return 0;
}

static int check_ranks(const struct run_args *a)
{
	int n = ranks_launched();

	if (n > 1 && n % 2)
		return err_say(-EINVAL,
			       "%d ranks cannot be paired: start 1 or an even number", n);
	if (n > 1 && opts_int(a->o, "repeat") > 1)
		return err_say(
			-EINVAL,
			"--repeat under an MPI launcher: start the launcher so many "
			"times instead");
	return 0;
}

/* An option that would be passed over in silence is an error. */
static int check_vcx(const struct run_args *a)
{
	if (!a->vcx_n)
		return 0;
	if (!a->needs_env)
		return err_say(-EINVAL, "--vcx %s: the chosen benches use no NIC (%s)",
			       a->vcx[0], opts_str(a->o, "bench"));
	if (nic_is_virtual() && !virtual_started_here())
		return err_say(
			-EINVAL,
			"--vcx %s: this putscope was started by `vcx`: give the option "
			"to that, vcx -o %s",
			a->vcx[0], a->vcx[0]);
	if (!nic_is_virtual() && virtual_needed(opts_str(a->o, "nic")) == 0)
		return err_say(
			-EINVAL,
			"--vcx %s: the NIC of this run is not virtual; add --nic virtual",
			a->vcx[0]);
	return 0;
}

/* Would each folder be taken?  Only rank 0 asks, since it alone makes one. */
static int check_out(const struct run_args *a)
{
	int64_t n = opts_int(a->o, "repeat");
	const char *rank = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK")
							  : getenv("PMI_RANK");
	char base[2900], dir[3000];
	int err = 0;

	if (rank && strcmp(rank, "0"))
		return 0;
	run_args_dir(a, base, sizeof base);
	for (int64_t i = 1; !err && i <= n; i++) {
		run_launch_dir(dir, sizeof dir, base, i);
		err = record_would_open(n > 1 ? dir : base);
	}
	return err;
}

int run_args_parse(struct run_args *a, int argc, char **argv)
{
	bool chooses_bench = false;
	char uses[1024];
	int err;

	a->argc = argc;
	a->argv = argv;
	a->o = opts_new();
	if (!a->o)
		return err_say(-ENOMEM, "no memory for the options");
	OUR_TRY(pass(a, false, &chooses_bench), err, out);
	/* Without a CONFIG `quick` is read, unless the command line chooses benches: then the table's defaults hold. */
	if (!a->config && !chooses_bench)
		a->config = "quick";
	if (a->config) {
		const char *config = a->config;

		OUR_TRY(opts_load(a->o, config), err, out);
		OUR_TRY(pass(a, true, &chooses_bench), err, out);
		a->config = config;
	} else {
		OUR_TRY(pass(a, true, &chooses_bench), err, out);
	}
	OUR_TRY(choose_benches(a, uses, sizeof uses), err, out);
	OUR_TRY(check_limits(a->o), err, out);
	OUR_TRY(opts_check_used(a->o, uses), err, out);
	OUR_TRY(check_ranks(a), err, out);
	OUR_TRY(check_vcx(a), err, out);
	err = check_out(a);
out:
	return err;
}

void run_args_dir(const struct run_args *a, char *dir, size_t n)
{
	const char *name = a->config ? a->config : a->bench[0]->name;
	const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	int len = (int)strcspn(base, ".");
	char stamp[32];
	time_t now = time(NULL);
	struct tm tm;

	if (*opts_str(a->o, "out")) {
		snprintf(dir, n, "%s", opts_str(a->o, "out"));
		return;
	}
	strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
	snprintf(dir, n, "results/%.*s-%s", len, base, stamp);
	for (int i = 2; !access(dir, F_OK) && i < 1000; i++)
		snprintf(dir, n, "results/%.*s-%s-%d", len, base, stamp, i);
}

char **run_args_again(const struct run_args *a, char *const extra[])
{
	size_t n = 0, at = 1;
	char **args;

	while (extra[n])
		n++;
	while (at < (size_t)a->argc && strcmp(a->argv[at], "--"))
		at++;
	args = calloc((size_t)a->argc + n + 2, sizeof *args);
	if (!args) {
		err_say(-ENOMEM, "no memory for the arguments");
		return NULL;
	}
	args[0] = "/proc/self/exe";
	memcpy(args + 1, a->argv, at * sizeof *args);
	memcpy(args + 1 + at, extra, n * sizeof *args); /* the last one holds */
	memcpy(args + 1 + at + n, a->argv + at, ((size_t)a->argc - at) * sizeof *args);
	return args;
}
