/* SPDX-License-Identifier: Apache-2.0
 * compare_setup.c: version, options, machine and devices of two runs, side by side.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare_semantics.h"
#include "compare_setup.h"

static void keep(json_t *to, const json_t *from, const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (json_object_get(from, keys[i]))
			json_object_set(to, keys[i], json_object_get(from, keys[i]));
}

/* Without these keys in each object of the list `name`; the caller's own list stays whole. */
static void drop_of_each(json_t *of, const char *name, const char *const *keys, size_t n)
{
	json_t *list = json_deep_copy(json_object_get(of, name)), *one;
	size_t k;

	json_array_foreach(list, k, one) for (size_t i = 0; i < n; i++)
		json_object_del(one, keys[i]);
	if (list)
		json_object_set_new(of, name, list);
}

/* The part of run.json that is the same in every launch of one set-up; new reference. */
static json_t *setup_of(const json_t *run)
{
	static const char *const top[] = {"putscope"};
	static const char *const facts[] = {
		"host",	       "kernel",      "arch",	       "cpu",
		"governor",    "clocksource", "nvidia_driver", "compiler",
		"environment", "sm",	      "nics",	       "placement"};
	static const char *const by_launch[] = {"out", "seed", "repeat", "time"};
	/* The addresses of a port name it and change nothing; each virtual fabric has its own. */
	static const char *const addresses[] = {"gid", "lid"};
	json_t *j = json_object(), *ranks = json_array(), *rank,
	       *options = json_copy(json_object_get(run, "options"));
	size_t k;

	keep(j, run, top, sizeof top / sizeof *top);
	for (size_t i = 0; i < sizeof by_launch / sizeof *by_launch; i++)
		json_object_del(options, by_launch[i]);
	json_object_set_new(j, "options", options ? options : json_null());
	json_array_foreach(json_object_get(run, "ranks"), k, rank)
	{
		json_t *mine = json_object();

		keep(mine, rank, facts, sizeof facts / sizeof *facts);
		drop_of_each(mine, "nics", addresses, 2);
		json_array_append_new(ranks, mine);
	}
	json_object_set_new(j, "ranks", ranks);
	return j;
}

static void print_value(char *text, size_t size, const json_t *v)
{
	char room[32], *dump;

	if (!json_is_object(v) && !json_is_array(v)) {
		snprintf(text, size, "%s", semantic_text(v, room, sizeof room));
		return;
	}
	dump = json_dumps(v, JSON_COMPACT);
	snprintf(text, size, "%s", dump ? dump : "?");
	free(dump);
}

static void differ(json_t *out, const char *path, const json_t *a, const json_t *b);

static void differ_members(json_t *out, const char *path, const json_t *a,
			   const json_t *b)
{
	const char *key;
	char below[256];
	json_t *v;

	json_object_foreach((json_t *)a, key, v)
	{
		snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "", key);
		differ(out, below, v, json_object_get(b, key));
	}
	json_object_foreach((json_t *)b, key, v)
	{
		snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "", key);
		if (!json_object_get(a, key))
			differ(out, below, NULL, v);
	}
}

static void differ(json_t *out, const char *path, const json_t *a, const json_t *b)
{
	char line[640], va[160], vb[160], below[256];

	if (json_is_object(a) && json_is_object(b)) {
		differ_members(out, path, a, b);
		return;
	}
	if (json_is_array(a) && json_array_size(a) == json_array_size(b)) {
		for (size_t i = 0; i < json_array_size(a); i++) {
			snprintf(below, sizeof below, "%s[%zu]", path, i);
			differ(out, below, json_array_get(a, i), json_array_get(b, i));
		}
		return;
	}
	if ((a && b && json_equal(a, b)) ||
	    ((!a || json_is_null(a)) && (!b || json_is_null(b))))
		return;
	print_value(va, sizeof va, a);
	print_value(vb, sizeof vb, b);
	snprintf(line, sizeof line, "%s %s / %s", path, va, vb);
	json_array_append_new(out, json_string(line));
}

json_t *setup_differ(const json_t *run_a, const json_t *run_b)
{
	json_t *a = setup_of(run_a), *b = setup_of(run_b), *out = json_array();

	differ(out, "", a, b);
	json_decref(a);
	json_decref(b);
	return out;
}
