/* SPDX-License-Identifier: Apache-2.0
 * main.c: putscope's commands.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "err.h"
#include "version.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"list", cmd_list,
	 "benches and cases, one line each; waived ones with the reason"},
	{"run", cmd_run, "measure a config; write a result folder; print its table"},
	{"report", cmd_report,
	 "the table of a result folder; --methods: how each number was made"},
	{"check", cmd_check, "is this result folder whole, valid and honest?"},
	{"compare", cmd_compare,
	 "what became faster or slower from one result folder to others"},
	{"merge", cmd_merge, "launches of one set-up as one result folder"},
	{"export", cmd_export, "a result folder as tidy CSV, a row per case and metric"},
	{"doctor", cmd_doctor,
	 "what this machine can do, what is wrong, what puts it right"},
};

static int usage(FILE *f)
{
	fputs("putscope takes one device-initiated put apart, beside a CPU proxy and a host-initiated put.\n"
	      "usage: putscope COMMAND ...   (putscope COMMAND --help says more)\n",
	      f);
	for (unsigned i = 0; i < sizeof commands / sizeof *commands; i++)
		fprintf(f, "  %-8s %s\n", commands[i].name, commands[i].help);
	fputs("exit status: 0 done, 1 a case or check failed, 2 usage or an absent device, 3 a device refuses, 77 nothing could "
	      "run\n",
	      f);
	return f == stdout ? EXIT_DONE : EXIT_USAGE;
}

/* A report that did not reach its file is no success. */
static int finish(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "putscope: standard output: %s\n", strerror(errno));
	return status ? status : EXIT_FAILED;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		exit(usage(stderr));
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
	    !strcmp(argv[1], "help"))
		exit(finish(usage(stdout)));
	if (!strcmp(argv[1], "--version")) {
		puts("putscope " PUTSCOPE_VERSION);
		exit(finish(EXIT_DONE));
	}
	for (unsigned i = 0; i < sizeof commands / sizeof *commands; i++)
		if (!strcmp(argv[1], commands[i].name))
			exit(finish(commands[i].run(argc - 1, argv + 1)));
	fprintf(stderr, "putscope: unknown command '%s'\n", argv[1]);
	exit(usage(stderr));
}
