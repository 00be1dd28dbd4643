/* SPDX-License-Identifier: Apache-2.0
 * command.c: what the commands share.
 */
#include <getopt.h>
#include <stdio.h>

#include "command.h"
#include "err.h"

int command_fail(int status)
{
	fprintf(stderr, "putscope: %s\n", err_last());
	return status;
}

int command_status(int err)
{
	switch (err) {
	case 0:
		return EXIT_DONE;
	case -EINVAL:
	case -ENODEV:
	case -ENOENT:
	case -EEXIST:
	case -EBADMSG:
		return EXIT_USAGE;
	default:
		return EXIT_REFUSED;
	}
}

int command_dir(int argc, char **argv, const char *usage, const char **dir, bool *json,
		bool *methods)
{
	static const struct option longs[] = {{"json", no_argument, NULL, 'j'},
					      {"methods", no_argument, NULL, 'm'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	int c;

	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (c == 'h') {
			puts(usage);
			return EXIT_DONE + 1;
		}
		if (c == 'j') {
			*json = true;
		} else if (c == 'm' && methods) {
			*methods = true;
		} else {
			fprintf(stderr, "%s\n", usage);
			return EXIT_USAGE + 1;
		}
	}
	if (dir && argc - optind != 1) {
		fprintf(stderr, "putscope: name one result folder\n%s\n", usage);
		return EXIT_USAGE + 1;
	}
	if (!dir && argc != optind) {
		fprintf(stderr, "putscope: unexpected '%s'\n%s\n", argv[optind], usage);
		return EXIT_USAGE + 1;
	}
	if (dir)
		*dir = argv[optind];
	return 0;
}
