/* SPDX-License-Identifier: Apache-2.0
 * run_args.h: what `putscope run` was asked to do, checked as far as can be before anything is opened or written.
 */
#ifndef PUTSCOPE_RUN_ARGS_H
#define PUTSCOPE_RUN_ARGS_H
#include <stdbool.h>

#include "case.h"
#include "opt.h"
#include "virtual.h"

#define BENCHES_MAX 16

struct run_args {
	int argc;
	char **argv; /* of the command: argv[0] is "run" */
	struct opts *o;
	const char *config; /* as it was named; NULL: none was read */
	bool json, needs_env;
	const char *vcx[VIRTUAL_OPTS_MAX];
	int vcx_n;
	const struct bench *bench[BENCHES_MAX];
	unsigned bench_n;
};

/* 0; 1 when only help was asked for; -errno with the sentence.  a is zeroed by the caller. */
int run_args_parse(struct run_args *a, int argc, char **argv);
/* The result folder: --out, or one named after the config or the bench and the time. */
void run_args_dir(const struct run_args *a, char *dir, size_t n);
/* DIR-I, the folder of launch I of --repeat. */
void run_launch_dir(char *dir, size_t n, const char *base, int64_t i);
/* argv[0] = this program, then the command line with `extra` (NULL-terminated) as its last options; NULL when out of memory. */
char **run_args_again(const struct run_args *a, char *const extra[]);
/* --repeat N: launches of their own, each with its own folder DIR-1 .. DIR-N; the exit status of all. */
int run_repeated(const struct run_args *a);
#endif
