/* SPDX-License-Identifier: Apache-2.0
 * list.c: `putscope list`: every bench, whether it can run here, and why not.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "err.h"
#include "opt.h"
#include "record.h"
#include "registry.h"

#define USAGE \
	"usage: putscope list [--json]   benches, then their cases at default options; nothing is opened"

static int list_bench(const struct bench *b, const struct opts *o, json_t *out)
{
	struct case_list l = {0};
	int err = b->cases(o, NULL, &l);

	if (!err && !out)
		printf("%-12s %s\n", b->name, b->question);
	for (size_t i = 0; !err && i < l.n; i++) {
		if (out)
			json_array_append_new(out, record_case_json(&l.v[i]));
		else
			printf("    %s%s%s\n", l.v[i].id,
			       l.v[i].status == CASE_WAIVED ? "  waived: " : "",
			       l.v[i].status == CASE_WAIVED ? l.v[i].reason : "");
	}
	case_list_free(&l);
	return err;
}

int cmd_list(int argc, char **argv)
{
	bool json = false;
	int rc = command_dir(argc, argv, USAGE, NULL, &json, NULL), err = 0;
	json_t *out;
	struct opts *o;

	if (rc)
		return rc - 1;
	o = opts_new();
	out = json ? json_array() : NULL;
	for (const struct bench *const *b = registry; o && !err && *b; b++)
		if ((*b)->question)
			err = list_bench(*b, o, out);
	if (out && !err) {
		json_dumpf(out, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
		putchar('\n');
	}
	json_decref(out);
	opts_free(o);
	return err ? command_fail(EXIT_FAILED) : EXIT_DONE;
}
