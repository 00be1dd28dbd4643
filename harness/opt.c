/* SPDX-License-Identifier: Apache-2.0
 * opt.c: values from the table in opt.def; parsing, the check
 * that each was used.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "opt.h"

enum opt_scope { HARNESS, BENCH };

struct opt_entry {
	const char *key;
	enum opt_type type;
	const char *def, *choices;
	enum opt_scope scope;
	const char *help;
};

static const struct opt_entry table[] = {
#define OPT(key, type, def, choices, scope, help) {#key, type, def, choices, scope, help},
#include "opt.def"
#undef OPT
};
#define COUNT (sizeof table / sizeof *table)

struct value {
	char text[1024];
	char where[300]; /* "" while it is the default */
	int64_t i;
	double d;
	struct opt_sizes sizes;
	char words[1024]; /* CHOICES, cut at their commas */
	const char *list[OPT_LIST_MAX];
	size_t list_n;
};
struct opts {
	struct value v[COUNT];
};

static int find(const char *key)
{
	for (unsigned i = 0; i < COUNT; i++)
		if (!strcmp(table[i].key, key))
			return (int)i;
	return -1;
}

int opts_parse_size(const char *s, uint64_t *out)
{
	static const struct {
		const char *suffix;
		unsigned shift;
	} units[] = {{"", 0},	{"B", 0},    {"K", 10}, {"KiB", 10}, {"k", 10},
		     {"M", 20}, {"MiB", 20}, {"G", 30}, {"GiB", 30}};
	char *end;
	unsigned long long v;

	if (*s < '0' || *s > '9')
		return err_say(
			-EINVAL,
			"'%s' is not a size: digits and one of K, M, G, KiB, MiB, GiB",
			s);
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno)
		return err_say(-EINVAL, "size '%s' is too large", s);
	for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
		if (strcmp(end, units[i].suffix))
			continue;
		if (v > UINT64_MAX >> units[i].shift)
			return err_say(-EINVAL, "size '%s' is too large", s);
		*out = (uint64_t)v << units[i].shift;
		return *out ? 0
			    : err_say(-EINVAL,
				      "size '%s': a put of no bytes moves nothing", s);
	}
	return err_say(-EINVAL,
		       "size '%s': unknown suffix '%s'; use K, M, G, KiB, MiB or GiB", s,
		       end);
}

/* Cut `words` at commas and blanks; each piece is handed to `each`. */
static int for_words(char *words,
		     int (*each)(struct value *, const struct opt_entry *, char *),
		     struct value *v, const struct opt_entry *e)
{
	unsigned n = 0;

	for (char *save, *w = strtok_r(words, ", \t", &save); w;
	     w = strtok_r(NULL, ", \t", &save)) {
		int err;

		if (++n > OPT_LIST_MAX)
			return err_say(-EINVAL, "more than %d items", OPT_LIST_MAX);
		err = each(v, e, w);
		if (err)
			return err;
	}
	return n ? 0 : err_say(-EINVAL, "the list is empty");
}

static bool is_choice(const char *choices, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = choices; *p;) {
		size_t k = strcspn(p, " ");

		if (k == n && !strncmp(p, word, n))
			return true;
		p += k + (p[k] == ' ');
	}
	return false;
}

static int add_size(struct value *v, const struct opt_entry *e, char *w)
{
	uint64_t size;
	int err = opts_parse_size(w, &size);

	(void)e;
	if (err)
		return err;
	for (size_t i = 0; i < v->sizes.n; i++)
		if (v->sizes.v[i] == size)
			return err_say(-EINVAL, "size '%s' stands twice", w);
	v->sizes.v[v->sizes.n++] = size;
	return 0;
}

static int add_count(struct value *v, const struct opt_entry *e, char *w)
{
	char *end;
	unsigned long long n;

	(void)e;
	errno = 0;
	n = strtoull(w, &end, 10);
	if (*w < '0' || *w > '9' || errno || *end || !n)
		return err_say(-EINVAL, "'%s' is not a whole number of 1 or more", w);
	for (size_t i = 0; i < v->sizes.n; i++)
		if (v->sizes.v[i] == n)
			return err_say(-EINVAL, "'%s' stands twice", w);
	v->sizes.v[v->sizes.n++] = n;
	return 0;
}

static int add_choice(struct value *v, const struct opt_entry *e, char *w)
{
	if (!is_choice(e->choices, w))
		return err_say(-EINVAL, "'%s' is none of: %s", w, e->choices);
	for (size_t i = 0; i < v->list_n; i++)
		if (!strcmp(v->list[i], w))
			return err_say(-EINVAL, "'%s' stands twice", w);
	v->list[v->list_n++] = w;
	return 0;
}

static int parse_number(struct value *v, const struct opt_entry *e)
{
	char *end;

	errno = 0;
	v->d = strtod(v->text, &end);
	if (errno || end == v->text || *end || !isfinite(v->d) || v->d < 0)
		return err_say(-EINVAL, "'%s' is not a number of 0 or more", v->text);
	if (e->type == OPT_DBL)
		return 0;
	errno = 0;
	v->i = strtoll(v->text, &end, 10);
	return errno || *end ? err_say(-EINVAL, "'%s' is not a whole number", v->text)
			     : 0;
}

static int parse_bool(struct value *v)
{
	static const char *const yes[] = {"yes", "true", "on", "1"}, *const no[] = {
									     "no",
									     "false",
									     "off", "0"};

	for (int i = 0; i < 4; i++) {
		if (!strcmp(v->text, yes[i]) || !strcmp(v->text, no[i])) {
			v->i = !strcmp(v->text, yes[i]);
			return 0;
		}
	}
	return err_say(-EINVAL, "'%s' is neither yes nor no", v->text);
}

static int parse(struct value *v, const struct opt_entry *e)
{
	switch (e->type) {
	case OPT_INT:
	case OPT_DBL:
		return parse_number(v, e);
	case OPT_BOOL:
		return parse_bool(v);
	case OPT_CHOICE:
		return is_choice(e->choices, v->text)
			       ? 0
			       : err_say(-EINVAL, "'%s' is none of: %s", v->text,
					 e->choices);
	case OPT_CHOICES:
		snprintf(v->words, sizeof v->words, "%s", v->text);
		return for_words(v->words, add_choice, v, e);
	case OPT_SIZES:
		snprintf(v->words, sizeof v->words, "%s", v->text);
		return for_words(v->words, add_size, v, e);
	case OPT_COUNTS:
		snprintf(v->words, sizeof v->words, "%s", v->text);
		return for_words(v->words, add_count, v, e);
	case OPT_STR:
		return 0;
	}
	return -EINVAL;
}

int opts_set(struct opts *o, const char *key, const char *value, const char *where)
{
	int k = find(key), err;
	struct value *v;

	if (k < 0)
		return err_say(
			-EINVAL,
			"%s: unknown key '%s'; `putscope run --help` lists the keys",
			where, key);
	v = calloc(1, sizeof *v); /* parsed aside: a bad value leaves the old one */
	if (!v)
		return err_say(-ENOMEM, "no memory for option %s", key);
	if (strlen(value) >= sizeof v->text) {
		free(v);
		return err_say(-EINVAL, "%s: %s: the value is longer than %zu characters",
			       where, key, sizeof v->text - 1);
	}
	snprintf(v->text, sizeof v->text, "%s", value);
	snprintf(v->where, sizeof v->where, "%s", where);
	err = parse(v, &table[k]);
	if (err) {
		char why[400];

		snprintf(why, sizeof why, "%s", err_last());
		err_say(err, "%s: %s: %s", where, key, why);
	} else {
		o->v[k] = *v;
		for (size_t i = 0; i < v->list_n; i++)
			o->v[k].list[i] = o->v[k].words + (v->list[i] - v->words);
	}
	free(v);
	return err;
}

struct opts *opts_new(void)
{
	struct opts *o = calloc(1, sizeof *o);

	for (unsigned i = 0; o && i < COUNT; i++) {
		if (opts_set(o, table[i].key, table[i].def, "default")) {
			free(o);
			return NULL;
		}
		o->v[i].where[0] = 0;
	}
	return o;
}

void opts_free(struct opts *o)
{
	free(o);
}

/* ---- reading ---- */
static const struct value *value(const struct opts *o, const char *key)
{
	int k = find(key);

	return &o->v[k < 0 ? 0 : k];
}

const char *opts_str(const struct opts *o, const char *key)
{
	return value(o, key)->text;
}

int64_t opts_int(const struct opts *o, const char *key)
{
	return value(o, key)->i;
}

double opts_dbl(const struct opts *o, const char *key)
{
	return value(o, key)->d;
}

bool opts_bool(const struct opts *o, const char *key)
{
	return value(o, key)->i != 0;
}

const struct opt_sizes *opts_sizes(const struct opts *o, const char *key)
{
	return &value(o, key)->sizes;
}

size_t opts_list(const struct opts *o, const char *key, const char *out[OPT_LIST_MAX])
{
	const struct value *v = value(o, key);

	memcpy(out, v->list, v->list_n * sizeof *out);
	return v->list_n;
}

bool opts_has(const struct opts *o, const char *key, const char *choice)
{
	const struct value *v = value(o, key);

	for (size_t i = 0; i < v->list_n; i++)
		if (!strcmp(v->list[i], choice))
			return true;
	return false;
}

int opts_check_used(const struct opts *o, const char *uses)
{
	for (unsigned i = 0; i < COUNT; i++)
		if (o->v[i].where[0] && table[i].scope == BENCH &&
		    !is_choice(uses, table[i].key))
			return err_say(
				-EINVAL,
				"%s: key '%s' is read by none of the chosen benches (%s)",
				o->v[i].where, table[i].key, opts_str(o, "bench"));
	return 0;
}

json_t *opts_json(const struct opts *o)
{
	json_t *j = json_object();

	for (unsigned i = 0; i < COUNT; i++) {
		const struct value *v = &o->v[i];
		json_t *x;

		switch (table[i].type) {
		case OPT_INT:
			x = json_integer(v->i);
			break;
		case OPT_DBL:
			x = json_real(v->d);
			break;
		case OPT_BOOL:
			x = json_boolean(v->i);
			break;
		default:
			x = json_string(v->text);
		}
		json_object_set_new(j, table[i].key, x);
	}
	return j;
}

void opts_help(void (*line)(const char *key, const char *type, const char *def,
			    const char *help))
{
	static const char *const types[] = {
		"text", "whole number", "number", "yes|no",
		"",	"list",		"sizes",  "whole numbers"};

	for (unsigned i = 0; i < COUNT; i++) {
		if (!strcmp(table[i].key, "fake"))
			continue; /* of the tests alone */
		line(table[i].key,
		     table[i].choices ? table[i].choices : types[table[i].type],
		     table[i].def, table[i].help);
	}
}
