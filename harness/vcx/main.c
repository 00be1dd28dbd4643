/* SPDX-License-Identifier: Apache-2.0
 * main.c: `vcx [-o KEY=VALUE]... COMMAND ...`: run a program on the virtual ConnectX.
 */
#include <getopt.h>
#include <stdio.h>

#include "launch.h"
#include "option.h"

#define OPTS_MAX 64

static int usage(FILE *f)
{
	fputs("usage: vcx [-o KEY=VALUE]... COMMAND [ARGUMENT]...\n"
	      "Runs COMMAND on a virtual ConnectX: two devices, mlx5_0 and mlx5_1, under the unmodified libibverbs and libmlx5.\n",
	      f);
	fputs(vcx_option_help, f);
	return f == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
	const char *opts[OPTS_MAX];
	struct vcx_launch l = {opts, 0};
	static const struct option longs[] = {{"help", no_argument, NULL, 'h'}, {0}};
	char why[256];
	int c;

	while ((c = getopt_long(argc, argv, "+o:h", longs, NULL)) != -1) {
		if (c == 'h')
			return usage(stdout);
		if (c != 'o')
			return usage(stderr);
		if (l.nopts == OPTS_MAX || vcx_launch_check(optarg, why, sizeof why)) {
			fprintf(stderr, "vcx: %s\n",
				l.nopts == OPTS_MAX ? "too many options" : why);
			return 2;
		}
		opts[l.nopts++] = optarg;
	}
	if (optind == argc)
		return usage(stderr);
	return vcx_launch(&l, argv + optind);
}
