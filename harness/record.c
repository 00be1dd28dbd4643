/* SPDX-License-Identifier: Apache-2.0
 * record.c: the result folder.
 */
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "load.h"
#include "record.h"
#include "solve.h"
#include "stats.h"

#define SAMPLES_HEADER "case_id,metric,size_bytes,batch,seq,warmup,value_ns\n"

struct record {
	char dir[3072];
	int samples; /* fd */
	size_t lines;
	json_t *head;
};

static int dir_is_empty(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	if (!d)
		return -errno;
	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return n == 0;
}

static int not_empty(const char *dir)
{
	return err_say(
		-EEXIST,
		"output folder %s exists and is not empty: name another, or remove it",
		dir);
}

/* mkdir -p; the last one may exist if it is empty. */
static int make_dir(const char *dir)
{
	char part[3072];
	int rc;

	snprintf(part, sizeof part, "%s", dir);
	for (char *p = part + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		if (mkdir(part, 0777) && errno != EEXIST)
			return err_say(-errno, "output folder %s: cannot make %s: %s",
				       dir, part, strerror(errno));
		*p = '/';
	}
	if (!mkdir(part, 0777))
		return 0;
	if (errno != EEXIST)
		return err_say(-errno, "output folder %s: %s", dir, strerror(errno));
	rc = dir_is_empty(dir);
	if (rc < 0)
		return err_say(rc, "output folder %s: %s", dir, strerror(-rc));
	return rc ? 0 : not_empty(dir);
}

int record_would_open(const char *dir)
{
	char part[3072];
	struct stat st;
	char *slash;
	int rc;

	snprintf(part, sizeof part, "%s", dir);
	if (!stat(part, &st)) {
		rc = dir_is_empty(part);
		if (rc < 0)
			return err_say(rc, "output folder %s: %s", dir, strerror(-rc));
		if (!rc)
			return not_empty(dir);
	}
	/* The lowest folder that is there must let us write. */
	while (stat(part, &st) && errno == ENOENT && (slash = strrchr(part, '/'))) {
		*slash = 0;
		if (slash == part)
			snprintf(part, sizeof part, "/");
	}
	if (stat(part, &st) && errno == ENOENT)
		snprintf(part, sizeof part, ".");
	if (!stat(part, &st) && !S_ISDIR(st.st_mode))
		errno = ENOTDIR;
	else if (!access(part, W_OK | X_OK))
		return 0;
	return err_say(-errno, "output folder %s: cannot write in %s: %s", dir, part,
		       strerror(errno));
}

static int write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t k = write(fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -errno;
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

int record_open(struct record **out, const char *dir)
{
	struct record *r = calloc(1, sizeof *r);
	char path[4096];
	int err;

	*out = NULL;
	if (!r)
		return err_say(-ENOMEM, "no memory for the record");
	r->samples = -1;
	snprintf(r->dir, sizeof r->dir, "%s", dir);
	OUR_TRY(make_dir(dir), err, out);
	snprintf(path, sizeof path, "%s/samples.csv", dir);
	r->samples = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
	if (r->samples < 0) {
		err = err_say(-errno, "%s: %s", path, strerror(errno));
		goto out;
	}
	err = write_all(r->samples, SAMPLES_HEADER, strlen(SAMPLES_HEADER));
	if (err) {
		err_say(err, "%s: %s", path, strerror(-err));
		goto out;
	}
	*out = r;
	return 0;
out:
	record_close(r);
	return err;
}

const char *record_dir(const struct record *r)
{
	return r->dir;
}

int record_head(struct record *r, json_t *head)
{
	json_decref(r->head);
	r->head = head;
	return head ? 0 : err_say(-ENOMEM, "no memory for run.json");
}

size_t record_samples(const struct record *r)
{
	return r->lines;
}

int record_batch(struct record *r, const struct case_desc *c, const struct batch *b)
{
	size_t size = 0;
	FILE *f;
	char *text = NULL;
	int err;

	f = open_memstream(&text, &size);
	if (!f)
		return err_say(-ENOMEM, "no memory for a batch of samples");
	for (size_t s = 0; s < b->series_count; s++) {
		const struct series *x = &b->series[s];

		r->lines += x->n;
		for (size_t i = 0; i < x->n; i++)
			fprintf(f, "%s,%s,%llu,%u,%zu,%d,%.3f\n", c->id, x->metric,
				(unsigned long long)c->size_bytes, b->index, i, b->warmup,
				x->ns[i]);
	}
	fclose(f);
	err = write_all(r->samples, text, size);
	free(text);
	return err ? err_say(err, "%s/samples.csv: %s", r->dir, strerror(-err)) : 0;
}

/* "" is "does not apply": null in JSON. */
static json_t *word(const char *s)
{
	return s && *s ? json_string(s) : json_null();
}

json_t *record_case_json(const struct case_desc *c)
{
	json_t *j = json_pack("{s:s, s:s, s:s, s:I, s:s, s:s}", "id", c->id, "bench",
			      c->bench, "path", c->path, "size_bytes",
			      (json_int_t)c->size_bytes, "status",
			      case_status_name(c->status), "main_metric", c->main_metric);
	const struct {
		const char *key, *value;
	} words[] = {
		{"nature", c->nature},
		{"ordering", c->ordering},
		{"inline", c->inlined},
		{"queue", c->queue},
		{"cq", c->cq},
		{"dbrec", c->dbrec},
		{"data", c->data},
		{"opcode", c->opcode ? c->opcode : ""},
		{"group", c->group ? c->group : ""},
		{"doorbell", c->doorbell},
		{"completion", c->completion},
		{"method", c->method ? c->method : ""},
		{"endpoints", c->endpoints},
		{"sm", c->sm},
		{"protocol", c->protocol},
		{"state", c->state},
		{"governor", c->governor},
		{"reason", c->reason},
	};
	const struct {
		const char *key;
		uint64_t value;
	} proxy[] = {{"workers", c->workers}, {"rings", c->rings}, {"window", c->window}},
	  counts[] = {
		  {"qps", c->qps},
		  {"batch", c->batch},
		  {"signalled", c->signalled},
		  {"spinners", c->spinners},
		  {"puts", c->puts},
		  {"payload_errors", c->payload_errors},
		  {"rerings", c->rerings},
		  {"violations", c->violations},
	  };

	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		json_object_set_new(j, words[i].key, word(words[i].value));
	for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++)
		json_object_set_new(j, counts[i].key,
				    json_integer((json_int_t)counts[i].value));
	for (unsigned i = 0; i < sizeof proxy / sizeof *proxy; i++)
		json_object_set_new(j, proxy[i].key,
				    proxy[i].value
					    ? json_integer((json_int_t)proxy[i].value)
					    : json_null());
	json_object_set_new(j, "cpu_mhz",
			    c->cpu_mhz > 0 ? json_real(c->cpu_mhz) : json_null());
	json_object_set_new(j, "litmus", json_boolean(c->litmus));
	json_object_set_new(j, "oversubscribed", json_boolean(c->oversubscribed));
	json_object_set_new(j, "step_ns", json_real(c->step_ns));
	json_object_set_new(j, "timer_overhead_ns", json_real(c->timer_overhead_ns));
	return j;
}

/* Write a file beside and rename it over the old one. */
static int replace(const struct record *r, const char *name, const char *text, size_t n)
{
	char path[4096], fresh[4160];
	int fd, err;

	snprintf(path, sizeof path, "%s/%s", r->dir, name);
	snprintf(fresh, sizeof fresh, "%s.new", path);
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_say(-errno, "%s: %s", fresh, strerror(errno));
	err = write_all(fd, text, n);
	if (close(fd) && !err)
		err = -errno;
	if (!err && rename(fresh, path))
		err = -errno;
	return err ? err_say(err, "%s: %s", path, strerror(-err)) : 0;
}

static int write_json(const struct record *r, json_t *j)
{
	char *text = json_dumps(j, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
	int err;

	if (!text)
		return err_say(-ENOMEM, "no memory for run.json");
	err = replace(r, "run.json", text, strlen(text));
	free(text);
	return err;
}

static void csv_number(FILE *f, double v)
{
	if (isfinite(v))
		fprintf(f, ",%.3f", v);
	else
		fputc(',', f);
}

static int write_summary(const struct record *r, json_t *run)
{
	struct load *set;
	json_t *solved;
	char *text = NULL;
	size_t n = 0;
	FILE *f;
	int err = load_open(&set, r->dir, LOAD_WRITER);

	if (err)
		return err;
	f = open_memstream(&text, &n);
	fputs("case_id,metric,size_bytes,n,p50_ns,p50_lo_ns,p50_hi_ns,p90_ns,p99_ns,p99_9_ns,max_ns\n",
	      f);
	for (size_t i = 0; i < set->n; i++) {
		const struct load_series *s = &set->v[i];
		const double cols[] = {s->stats.p50, s->stats.p50_lo, s->stats.p50_hi,
				       s->stats.p90, s->stats.p99,    s->stats.p99_9,
				       s->stats.max};

		fprintf(f, "%s,%s,%llu,%zu", s->case_id, s->metric,
			(unsigned long long)s->size_bytes, s->stats.n);
		for (unsigned k = 0; k < sizeof cols / sizeof *cols; k++)
			csv_number(f, cols[k]);
		fputc('\n', f);
	}
	fclose(f);
	err = replace(r, "summary.csv", text, n);
	free(text);
	solved = err ? NULL : solve_hops(set);
	if (solved)
		json_object_update_missing(run,
					   solved); /* a merged set brings its own hops */
	else if (!err)
		err = -EIO;
	json_decref(solved);
	load_close(set);
	return err;
}

int record_write_cases(struct record *r, json_t *cases, json_t *evidence,
		       double duration_s, bool summary, bool complete,
		       const char *why_incomplete)
{
	json_t *j = json_copy(r->head);
	int err;

	/* complete only once the summary stands and both CSVs are sealed */
	json_object_set_new(j, "complete", json_false());
	json_object_set_new(j, "why_incomplete", word(why_incomplete));
	json_object_set_new(j, "duration_s", json_real(duration_s));
	json_object_set_new(j, "cases", cases);
	json_object_set_new(j, "evidence", evidence ? evidence : json_null());
	err = write_json(r, j);
	if (!err && summary) {
		err = write_summary(r, j);
		json_object_set_new(j, "seals",
				    json_pack("{s:o*, s:o*}", "samples.csv",
					      load_seal(r->dir, "samples.csv"),
					      "summary.csv",
					      load_seal(r->dir, "summary.csv")));
		json_object_set_new(j, "complete", json_boolean(complete));
		if (!err)
			err = write_json(r, j);
	}
	json_decref(j);
	return err;
}

int record_write(struct record *r, const struct case_list *l, json_t *evidence,
		 double duration_s, bool summary, bool complete,
		 const char *why_incomplete)
{
	json_t *cases = json_array();

	for (size_t i = 0; i < l->n; i++) {
		struct case_desc c = l->v[i];

		if (!complete && c.status == CASE_OK && !c.done) {
			c.status = CASE_INCOMPLETE;
			snprintf(c.reason, sizeof c.reason, "%s",
				 "still being measured when this was written");
		}
		json_array_append_new(cases, record_case_json(&c));
	}
	return record_write_cases(r, cases, evidence, duration_s, summary, complete,
				  why_incomplete);
}

void record_close(struct record *r)
{
	if (!r)
		return;
	if (r->samples >= 0)
		close(r->samples);
	json_decref(r->head);
	free(r);
}
