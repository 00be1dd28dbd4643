/* SPDX-License-Identifier: Apache-2.0
 * load.c: strict reading of run.json and samples.csv.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "load.h"
#include "record.h"

#define SAMPLES_HEADER "case_id,metric,size_bytes,batch,seq,warmup,value_ns"
#define FIELDS 7u

unsigned load_split(char *line, char *field[], unsigned max)
{
	unsigned n = 0;

	while (n < max) {
		field[n++] = line;
		line = strchr(line, ',');
		if (!line)
			return n;
		*line++ = 0;
	}
	return max + 1;
}

static struct load_series *series_of(struct load *l, const char *case_id,
				     const char *metric)
{
	/* Samples come in runs of one series, the series of a batch in one order. */
	for (size_t i = 0; i < l->n; i++) {
		struct load_series *s = &l->v[(l->last + i) % l->n];

		if (!strcmp(s->metric, metric) && !strcmp(s->case_id, case_id)) {
			l->last = (size_t)(s - l->v);
			return s;
		}
	}
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;
		struct load_series *v = realloc(l->v, cap * sizeof *v);

		if (!v)
			return NULL;
		l->v = v;
		l->cap = cap;
	}
	memset(&l->v[l->n], 0, sizeof *l->v);
	l->last = l->n;
	snprintf(l->v[l->n].case_id, sizeof l->v->case_id, "%s", case_id);
	snprintf(l->v[l->n].metric, sizeof l->v->metric, "%s", metric);
	return &l->v[l->n++];
}

static int append(struct load_series *s, double v, uint32_t batch)
{
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 256;
		double *nv = realloc(s->v, cap * sizeof *nv);
		uint32_t *nb;

		if (!nv)
			return -ENOMEM;
		s->v = nv;
		nb = realloc(s->batch, cap * sizeof *nb);
		if (!nb)
			return -ENOMEM;
		s->batch = nb;
		s->cap = cap;
	}
	if (!s->n || s->batch[s->n - 1] != batch)
		s->batches++;
	s->v[s->n] = v;
	s->batch[s->n++] = batch;
	return 0;
}

static bool whole_number(const char *s, uint64_t *out)
{
	char *end;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	*out = strtoull(s, &end, 10);
	return !*end && !errno;
}

/* One line without its newline; 0, or -EBADMSG (malformed), or -ENOMEM. */
static int take_line(struct load *l, char *line)
{
	char *f[FIELDS + 1], *end;
	uint64_t size, batch, seq, warmup;
	struct load_series *s;
	double v;

	if (load_split(line, f, FIELDS) != FIELDS || !*f[0] || !*f[1] ||
	    strlen(f[0]) >= sizeof s->case_id || strlen(f[1]) >= sizeof s->metric)
		return -EBADMSG;
	if (!whole_number(f[2], &size) || !whole_number(f[3], &batch) ||
	    !whole_number(f[4], &seq) || !whole_number(f[5], &warmup) || warmup > 1 ||
	    batch > LOAD_BATCH_MAX)
		return -EBADMSG;
	v = strtod(f[6], &end);
	if (end == f[6] || *end || !isfinite(v))
		return -EBADMSG;
	s = series_of(l, f[0], f[1]);
	if (!s)
		return -ENOMEM;
	s->size_bytes = size;
	if (batch > s->last_batch)
		s->last_batch = (uint32_t)batch;
	l->lines++;
	return warmup ? 0 : append(s, v, (uint32_t)batch);
}

static int read_samples(struct load *l, const char *dir)
{
	char path[4096], *line = NULL;
	size_t cap = 0, at = 1;
	ssize_t n;
	FILE *f;
	int err = 0;

	snprintf(path, sizeof path, "%s/samples.csv", dir);
	f = fopen(path, "r");
	if (!f)
		return err_say(-errno, "%s: %s", path, strerror(errno));
	n = getline(&line, &cap, f);
	if (n < 0 || strcmp(line, SAMPLES_HEADER "\n"))
		err = err_say(-EBADMSG, "%s:1: the first line is not '%s'", path,
			      SAMPLES_HEADER);
	while (!err && (n = getline(&line, &cap, f)) >= 0) {
		bool whole = n && line[n - 1] == '\n';

		at++;
		if (!whole && !l->complete) {
			l->cut = true;
			break;
		}
		if (whole)
			line[n - 1] = 0;
		err = whole && !memchr(line, 0, (size_t)n - 1) ? take_line(l, line)
							       : -EBADMSG;
		if (err)
			err_say(err, "%s:%zu: %s", path, at,
				err == -ENOMEM ? "no memory for more samples"
				: whole	       ? "malformed line"
					: "the file is cut in the middle of a line");
	}
	free(line);
	fclose(f);
	return err;
}

static double number_of(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static int summarise(struct load *l)
{
	uint64_t seed = (uint64_t)json_integer_value(json_object_get(l->run, "seed"));

	for (size_t i = 0; i < l->n; i++) {
		struct load_series *s = &l->v[i];
		double step = 0;
		size_t k;
		json_t *c;

		json_array_foreach(
			json_object_get(l->run, "cases"), k,
			c) if (!strcmp(json_string_value(json_object_get(c, "id")),
				       s->case_id)) step = number_of(c, "step_ns");
		if (s->n) {
			int err = stats_summarise_launches(s->v, s->batch, s->n, l->first,
							   l->launches, step, seed,
							   &s->stats);

			if (err)
				return err;
		} else {
			s->stats =
				(struct stats){0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
		}
	}
	return 0;
}

json_t *load_seal(const char *dir, const char *name)
{
	char path[4096];
	unsigned char buf[65536];
	uint64_t h =
		0xcbf29ce484222325ull; /* FNV-1a: offset basis and prime of 64 bits */
	json_int_t bytes = 0;
	size_t n;
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "r");
	if (!f)
		return NULL;
	while ((n = fread(buf, 1, sizeof buf, f)) > 0) {
		bytes += (json_int_t)n;
		for (size_t i = 0; i < n; i++)
			h = (h ^ buf[i]) * 0x100000001b3ull;
	}
	fclose(f);
	snprintf(path, sizeof path, "%016llx", (unsigned long long)h);
	return json_pack("{s:I, s:s}", "bytes", bytes, "fnv1a", path);
}

/* A complete run is sealed: each byte of its CSVs is as it was written. */
static int check_seal(const struct load *l, const char *dir, const char *name)
{
	const json_t *want = json_object_get(json_object_get(l->run, "seals"), name);
	json_t *is = load_seal(dir, name);
	int err = 0;

	if (!is)
		err = err_say(-ENOENT, "%s/%s: %s", dir, name, strerror(errno));
	else if (!want)
		err = err_say(
			-EBADMSG,
			"%s/run.json: it does not say what %s held (seals): not whole, or of a putscope before seals",
			dir, name);
	else if (!json_equal(want, is))
		err = err_say(
			-EBADMSG,
			"%s/%s is not the file that the run wrote: cut or edited (run.json has its length and "
			"checksum)",
			dir, name);
	json_decref(is);
	return err;
}

/* Which batches each launch of a merged result has; a run that was not merged is one launch. */
static int read_launches(struct load *l, const char *dir)
{
	const json_t *launches = json_object_get(l->run, "launches");
	size_t n = json_array_size(launches), k;
	json_t *launch;

	l->launches = n ? (unsigned)n : 1;
	l->first = calloc(l->launches, sizeof *l->first);
	if (!l->first)
		return err_say(-ENOMEM, "no memory for the launches of %s", dir);
	json_array_foreach(launches, k, launch)
	{
		const json_t *first = json_object_get(launch, "first_batch");
		json_int_t v = json_integer_value(first);

		if (!json_is_integer(first) || v > LOAD_BATCH_MAX ||
		    (k ? v <= (json_int_t)l->first[k - 1] : v != 0))
			return err_say(
				-EBADMSG,
				"%s/run.json: launch %zu has no first_batch that follows "
				"that of the one before",
				dir, k + 1);
		l->first[k] = (uint32_t)v;
	}
	return 0;
}

static int read_run(struct load *l, const char *dir)
{
	char path[4096];
	json_error_t e;
	size_t k;
	json_t *c;

	snprintf(path, sizeof path, "%s/run.json", dir);
	l->run = json_load_file(path, 0, &e);
	if (!l->run)
		return err_say(e.line < 0 ? -ENOENT : -EBADMSG, "%s:%d: %s", path, e.line,
			       e.text);
	if (!json_is_object(l->run) || !json_is_array(json_object_get(l->run, "cases")) ||
	    !json_is_string(json_object_get(l->run, "schema")))
		return err_say(-EBADMSG,
			       "%s: no result of putscope (no schema, or no cases)",
			       path);
	json_array_foreach(json_object_get(l->run, "cases"), k, c) if (
		!json_is_string(json_object_get(c, "id")) ||
		!json_is_string(json_object_get(
			c, "path"))) return err_say(-EBADMSG,
						    "%s: case %zu has no id or no path",
						    path, k);
	if (strcmp(json_string_value(json_object_get(l->run, "schema")), RECORD_SCHEMA) ||
	    json_integer_value(json_object_get(l->run, "version")) != RECORD_VERSION)
		return err_say(
			-EBADMSG,
			"%s: schema %s version %lld; this putscope reads %s version %d",
			path, json_string_value(json_object_get(l->run, "schema")),
			(long long)json_integer_value(json_object_get(l->run, "version")),
			RECORD_SCHEMA, RECORD_VERSION);
	l->complete = json_is_true(json_object_get(l->run, "complete"));
	return 0;
}

int load_open(struct load **out, const char *dir, enum load_mode mode)
{
	struct load *l = calloc(1, sizeof *l);
	int err;

	*out = NULL;
	if (!l)
		return err_say(-ENOMEM, "no memory for %s", dir);
	OUR_TRY(read_run(l, dir), err, out);
	OUR_TRY(read_launches(l, dir), err, out);
	if (mode == LOAD_WRITER)
		l->complete = true; /* the writer's own file must be whole */
	OUR_TRY(read_samples(l, dir), err, out);
	if (mode == LOAD_READER && l->complete) {
		OUR_TRY(check_seal(l, dir, "samples.csv"), err, out);
		OUR_TRY(check_seal(l, dir, "summary.csv"), err, out);
	}
	OUR_TRY(summarise(l), err, out);
	*out = l;
	return 0;
out:
	load_close(l);
	return err;
}

void load_close(struct load *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].v);
		free(l->v[i].batch);
	}
	free(l->v);
	free(l->first);
	json_decref(l->run);
	free(l);
}

const struct load_series *load_find(const struct load *l, const char *case_id,
				    const char *metric)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->v[i].case_id, case_id) && !strcmp(l->v[i].metric, metric))
			return &l->v[i];
	return NULL;
}
