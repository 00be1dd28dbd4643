/* SPDX-License-Identifier: Apache-2.0
 * compare_semantics.c: which keys of a case say what was measured, and where two cases differ in them.
 */
#include <stdio.h>
#include <string.h>

#include "compare_semantics.h"

const char *const semantic_keys[] = {
	"bench",	  "path",	"nature",   "size_bytes",
	"ordering",	  "inline",	"queue",    "cq",
	"dbrec",	  "data",	"doorbell", "completion",
	"method",	  "endpoints",	"sm",	    "qps",
	"batch",	  "signalled",	"spinners", "litmus",
	"oversubscribed", "main_metric"};
const size_t semantic_count = sizeof semantic_keys / sizeof *semantic_keys;

static bool among(const char *key, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(key, list[i]))
			return true;
	return false;
}

bool semantic_is(const char *key)
{
	static const char *const outcome[] = {
		"id",	      "status",		"reason",
		"puts",	      "payload_errors", "rerings",
		"violations", "step_ns",	"timer_overhead_ns",
		"governor",   "cpu_mhz"};

	return !among(key, outcome, sizeof outcome / sizeof *outcome);
}

/* A virtual NIC takes a thread that spins: these follow from who plays SM and NIC. */
static bool of_nature(const char *key)
{
	static const char *const keys[] = {"nature", "sm", "spinners", "oversubscribed"};

	return among(key, keys, sizeof keys / sizeof *keys);
}

const char *semantic_text(const json_t *v, char *room, size_t size)
{
	if (json_is_string(v))
		return *json_string_value(v) ? json_string_value(v) : "-";
	if (json_is_boolean(v))
		return json_is_true(v) ? "yes" : "no";
	if (json_is_integer(v))
		snprintf(room, size, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		snprintf(room, size, "%.12g", json_real_value(v));
	else
		snprintf(room, size, v && !json_is_null(v) ? "?" : "-");
	return room;
}

/* "does not apply" is spelled null, "", or by leaving the key out. */
static bool empty(const json_t *v)
{
	return !v || json_is_null(v) || (json_is_string(v) && !*json_string_value(v));
}

static bool differs(const char *key, const json_t *a, const json_t *b,
		    enum semantic_part part)
{
	if (!semantic_is(key) ||
	    (part != SEMANTIC_ALL && of_nature(key) != (part == SEMANTIC_NATURE)))
		return false;
	return !(empty(a) && empty(b)) && !json_equal(a, b);
}

static void add(char *text, size_t size, const char *key, const json_t *a,
		const json_t *b)
{
	char ra[32], rb[32];
	size_t at = strlen(text);

	snprintf(text + at, size - at, "%s%s %s / %s", at ? ", " : "", key,
		 semantic_text(a, ra, sizeof ra), semantic_text(b, rb, sizeof rb));
}

unsigned semantic_differ(const json_t *a, const json_t *b, enum semantic_part part,
			 char *text, size_t size)
{
	unsigned n = 0;
	const char *key;
	json_t *v;

	*text = 0;
	json_object_foreach((json_t *)a, key, v)
	{
		const json_t *w = json_object_get(b, key);

		if (!differs(key, v, w, part))
			continue;
		add(text, size, key, v, w);
		n++;
	}
	json_object_foreach((json_t *)b, key, v)
	{
		if (json_object_get(a, key) || !differs(key, NULL, v, part))
			continue;
		add(text, size, key, NULL, v);
		n++;
	}
	return n;
}

bool metric_is_rate(const char *metric)
{
	return !strncmp(metric, "rate_", 5) || !strncmp(metric, "goodput_", 8);
}

json_t *case_find(const json_t *run, const char *id)
{
	size_t k;
	json_t *c;

	json_array_foreach(json_object_get(run, "cases"), k, c)
	{
		if (!strcmp(case_str(c, "id"), id))
			return c;
	}
	return NULL;
}

const char *case_str(const json_t *c, const char *key)
{
	const char *s = json_string_value(json_object_get(c, key));

	return s ? s : "";
}
