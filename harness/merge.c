/* SPDX-License-Identifier: Apache-2.0
 * merge.c: `putscope merge`: launches of one set-up as one result folder.
 *
 * Nothing is averaged: every sample is kept, the batches of each launch get a range of their own (run.json "launches":
 * first_batch, batches), and each launch's run.json stands whole in its entry.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "compare_semantics.h"
#include "compare_setup.h"
#include "err.h"
#include "load.h"
#include "merge.h"
#include "record.h"

#define USAGE                                                                                                                 \
	"usage: putscope merge OUT DIR DIR...\n"                                                                              \
	"Puts launches of one set-up together into the new result folder OUT: case ids, all semantics, options, version and " \
	"machine\nmust be equal.  DIR may be merged itself.  compare then knows how launches vary."

static int open_part(struct merge_part *p, const char *dir)
{
	struct load *l;
	int err = load_open(&l, dir, LOAD_READER);

	if (err)
		return err;
	p->dir = dir;
	if (!l->complete)
		err = err_say(-EINVAL,
			      "%s is incomplete (%s): only complete launches are merged",
			      dir, case_str(l->run, "why_incomplete"));
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].last_batch >= p->batches)
			p->batches = l->v[i].last_batch + 1;
	p->run = json_incref(l->run);
	load_close(l);
	return err;
}

/* A case that one launch measured and another waived is another set-up. */
static int same_case(const struct merge_part *a, const struct merge_part *b,
		     const json_t *ca)
{
	const char *id = case_str(ca, "id");
	const json_t *cb = case_find(b->run, id);
	char text[400];

	if (!cb)
		return err_say(-EINVAL, "%s has the case %s, %s does not: not one set-up",
			       a->dir, id, b->dir);
	if (semantic_differ(ca, cb, SEMANTIC_ALL, text, sizeof text))
		return err_say(-EINVAL, "%s and %s: the case %s differs: %s", a->dir,
			       b->dir, id, text);
	if (!strcmp(case_str(ca, "status"), "waived") !=
	    !strcmp(case_str(cb, "status"), "waived"))
		return err_say(-EINVAL,
			       "%s and %s: the case %s is %s in one, %s in the other",
			       a->dir, b->dir, id, case_str(ca, "status"),
			       case_str(cb, "status"));
	return 0;
}

static int same_setup(const struct merge_part *a, const struct merge_part *b)
{
	json_t *lines = setup_differ(a->run, b->run), *c;
	size_t k;
	int err = 0;

	if (json_array_size(lines))
		err = err_say(-EINVAL, "%s and %s are not of one set-up: %s%s", a->dir,
			      b->dir, json_string_value(json_array_get(lines, 0)),
			      json_array_size(lines) > 1
				      ? " (and more: see putscope compare)"
				      : "");
	json_decref(lines);
	if (!err && json_equal(json_object_get(a->run, "seals"),
			       json_object_get(b->run, "seals")))
		err = err_say(-EINVAL,
			      "%s and %s hold the same samples: one launch, twice",
			      a->dir, b->dir);
	json_array_foreach(json_object_get(a->run, "cases"), k, c)
	{
		if (!err)
			err = same_case(a, b, c);
	}
	json_array_foreach(json_object_get(b->run, "cases"), k, c)
	{
		if (!err && !case_find(a->run, case_str(c, "id")))
			err = same_case(b, a, c);
	}
	return err;
}

static int merge(const char *out, char **dirs, size_t n)
{
	struct merge_part *parts = calloc(n, sizeof *parts);
	uint64_t batches = 0;
	int err = record_would_open(out);

	if (!parts)
		err = err_say(-ENOMEM, "no memory for %zu launches", n);
	for (size_t i = 0; i < n && !err; i++) {
		err = open_part(&parts[i], dirs[i]);
		batches += parts[i].batches;
		if (!err && batches > LOAD_BATCH_MAX)
			err = err_say(
				-EINVAL,
				"%s: more than %u batches together; merge fewer launches",
				dirs[i], LOAD_BATCH_MAX);
		for (size_t k = 0; k < i && !err; k++)
			err = same_setup(&parts[k], &parts[i]);
	}
	if (!err)
		err = merge_write(out, parts, n);
	for (size_t i = 0; parts && i < n; i++)
		json_decref(parts[i].run);
	free(parts);
	return err;
}

int cmd_merge(int argc, char **argv)
{
	static const struct option longs[] = {{"help", no_argument, NULL, 'h'}, {0}};
	int c = getopt_long(argc, argv, "h", longs, NULL), err;

	if (c == 'h') {
		puts(USAGE);
		return EXIT_DONE;
	}
	if (c != -1 || argc - optind < 3) {
		fprintf(stderr, "%s%s\n",
			c == -1 ? "putscope: name a new folder and two launches or more\n"
				: "",
			USAGE);
		return EXIT_USAGE;
	}
	err = merge(argv[optind], argv + optind + 1, (size_t)(argc - optind - 1));
	if (err)
		return command_fail(EXIT_USAGE);
	printf("%s: %d folders put together; compare them with: putscope compare %s OTHER\n",
	       argv[optind], argc - optind - 1, argv[optind]);
	return EXIT_DONE;
}
