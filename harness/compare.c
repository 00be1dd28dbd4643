/* SPDX-License-Identifier: Apache-2.0
 * compare.c: `putscope compare`: did a put get faster or slower, by how much, and can these sets tell?
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "compare.h"
#include "err.h"

#define USAGE                                                                                                                        \
	"usage: putscope compare A B [C ...] [--margin PERCENT] [--force] [--components] [--json]\n"                                 \
	"Result folders, each compared with A, case by case where all semantics are equal.\n"                                        \
	"--margin: shifts within so much of A's median are 'same' (default 3).  --force: also across natures (virtual, hardware).\n" \
	"--components: kernel, exposed_comm, cpu_wait ... too."
#define MARGIN_PERCENT 3.0
#define MARGIN_MAX 1000.0

/* 0, or an exit status + 1. */
static int parse(struct compare *c, int argc, char **argv)
{
	static const struct option longs[] = {{"force", no_argument, NULL, 'f'},
					      {"margin", required_argument, NULL, 'm'},
					      {"components", no_argument, NULL, 'c'},
					      {"json", no_argument, NULL, 'j'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	char *end;
	int k;

	c->margin = MARGIN_PERCENT / 100;
	while ((k = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (k == 'h') {
			puts(USAGE);
			return EXIT_DONE + 1;
		}
		c->force |= k == 'f';
		c->components |= k == 'c';
		c->json |= k == 'j';
		if (k == '?') {
			fputs(USAGE "\n", stderr);
			return EXIT_USAGE + 1;
		}
		if (k != 'm')
			continue;
		c->margin = strtod(optarg, &end) / 100;
		if (end == optarg || *end || !(c->margin >= 0) ||
		    c->margin > MARGIN_MAX / 100) {
			fprintf(stderr,
				"putscope: --margin %s: not a percentage from 0 to %.0f\n",
				optarg, MARGIN_MAX);
			return EXIT_USAGE + 1;
		}
	}
	if (argc - optind < 2) {
		fputs("putscope: name two result folders or more\n" USAGE "\n", stderr);
		return EXIT_USAGE + 1;
	}
	return 0;
}

static int open_sides(struct compare *c, char **dirs, size_t n)
{
	int err = 0;

	c->side = calloc(n, sizeof *c->side);
	c->unlike = json_array();
	if (!c->side || !c->unlike)
		return err_say(-ENOMEM, "no memory for %zu result folders", n);
	for (c->sides = 0; !err && c->sides < n; c->sides++) {
		c->side[c->sides].dir = dirs[c->sides];
		err = load_open(&c->side[c->sides].l, dirs[c->sides], LOAD_READER);
	}
	return err;
}

static int give_verdicts(const struct compare_rows *rows)
{
	struct shift **s = malloc((rows->n ? rows->n : 1) * sizeof *s);
	int err;

	if (!s)
		return err_say(-ENOMEM, "no memory to compare %zu rows", rows->n);
	for (size_t i = 0; i < rows->n; i++)
		s[i] = &rows->v[i].s;
	err = shift_verdicts(s, rows->n);
	free(s);
	return err;
}

static int compare(struct compare *c)
{
	int err = 0;

	for (size_t i = 1; i < c->sides && !err; i++) {
		err = compare_cases(c, i);
		if (!err)
			err = compare_hops(c, i);
	}
	if (!err)
		err = give_verdicts(&c->cases);
	return err ? err : give_verdicts(&c->hops);
}

static int print(const struct compare *c)
{
	if (c->json) {
		json_t *j = compare_json(c);

		json_dumpf(j, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
		putchar('\n');
		json_decref(j);
	} else {
		compare_print(c);
	}
	if (c->cases.n || c->hops.n)
		return EXIT_DONE;
	fflush(stdout);
	fprintf(stderr,
		"putscope: nothing was compared: no case of %s is alike in the others; what differs is listed as unlike\n",
		c->side[0].dir);
	return EXIT_FAILED;
}

int cmd_compare(int argc, char **argv)
{
	struct compare c = {0};
	int rc = parse(&c, argc, argv), err;

	if (rc)
		return rc - 1;
	err = open_sides(&c, argv + optind, (size_t)(argc - optind));
	if (!err)
		err = compare(&c);
	rc = err ? command_fail(EXIT_USAGE) : print(&c);
	for (size_t i = 0; i < c.sides; i++)
		load_close(c.side[i].l);
	free(c.side);
	free(c.cases.v);
	free(c.hops.v);
	json_decref(c.unlike);
	return rc;
}
