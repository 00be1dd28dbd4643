/* SPDX-License-Identifier: Apache-2.0
 * repeat.c: --repeat N: each launch is a process of its own, since what differs from launch to launch (pages, cores, the
 * place of a queue) is what repeating is for.
 */
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "err.h"
#include "load.h"
#include "report_json.h"
#include "run_args.h"

static volatile sig_atomic_t child, stopped;

static void forward(int sig)
{
	stopped = 1;
	if (child > 0)
		kill((pid_t)child, sig);
}

/* In the child, with the signals of `mask` still blocked. */
static void become(char **args, const sigset_t *mask, pid_t parent, bool quiet)
{
	struct sigaction sa = {.sa_handler = SIG_DFL};
	int null;

	prctl(PR_SET_PDEATHSIG, SIGTERM); /* a killed parent leaves no launch going on */
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	null = quiet ? open("/dev/null", O_WRONLY) : -1;
	if (null >= 0)
		dup2(null, STDOUT_FILENO);
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (getppid() == parent)
		execv(args[0], args);
	_exit(EXIT_FAILED);
}

/* One launch; its exit status, EXIT_FAILED when it was killed or could not be started. */
static int launch(char **args, bool quiet)
{
	sigset_t stop, before;
	pid_t parent = getpid(), pid;
	int status = 0, rc;

	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, &before); /* none between fork and `child` */
	pid = fork();
	if (!pid)
		become(args, &before, parent, quiet);
	child = pid;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0) {
		err_say(-errno, "cannot start a launch: %s", strerror(errno));
		return command_fail(EXIT_FAILED);
	}
	do
		rc = waitpid(pid, &status, 0);
	while (rc < 0 && errno == EINTR);
	child = 0;
	return rc == pid && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

void run_launch_dir(char *dir, size_t n, const char *base, int64_t i)
{
	snprintf(dir, n, "%s-%lld", base, (long long)i);
}

/* A failed launch outweighs one that could run nothing. */
static int worse(int a, int b)
{
	if (a == EXIT_NOTHING || b == EXIT_NOTHING)
		return a == EXIT_NOTHING && b != EXIT_DONE ? b
		       : b == EXIT_NOTHING && a		   ? a
							   : EXIT_NOTHING;
	return a > b ? a : b;
}

/* The reports of all launches as one array. */
static void print_all(const char *base, int64_t n)
{
	json_t *all = json_array();

	for (int64_t i = 1; i <= n; i++) {
		char dir[3000];
		struct load *l;

		run_launch_dir(dir, sizeof dir, base, i);
		if (load_open(&l, dir, LOAD_READER))
			continue; /* it has said why, or never began */
		json_array_append_new(all, report_json(l));
		load_close(l);
	}
	json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
	putchar('\n');
	json_decref(all);
}

int run_repeated(const struct run_args *a)
{
	struct sigaction sa = {.sa_handler = forward};
	int64_t n = opts_int(a->o, "repeat");
	char base[2900], dir[3000];
	char *extra[] = {"--repeat", "1", "--out", dir, NULL};
	char **args = run_args_again(a, extra);
	int worst = EXIT_DONE;

	if (!args)
		return command_fail(EXIT_FAILED);
	run_args_dir(a, base, sizeof base);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	for (int64_t i = 1; i <= n && !stopped; i++) {
		run_launch_dir(dir, sizeof dir, base, i);
		worst = worse(worst, launch(args, a->json));
	}
	if (stopped)
		worst = EXIT_FAILED;
	if (a->json)
		print_all(base, n);
	free(args);
	return worst;
}
