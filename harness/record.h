/* SPDX-License-Identifier: Apache-2.0
 * record.h: the only writer of a result folder: run.json, samples.csv, summary.csv (DESIGN of the forms: results/README.md).
 *
 * samples.csv grows by whole lines, one write a batch; run.json and summary.csv are replaced by rename.  A killed run
 * therefore leaves whole lines and a run.json that says "complete": false.
 */
#ifndef PUTSCOPE_RECORD_H
#define PUTSCOPE_RECORD_H
#include <jansson.h>

#include "case.h"

#define RECORD_SCHEMA "putscope-run"
#define RECORD_VERSION 1
/* Why a run is incomplete, as long as it has not said better. */
#define RECORD_RUNNING \
	"the run did not come to its end: it is still going on, or was killed"

struct record;

/* Would record_open take this folder?  Makes nothing. */
int record_would_open(const char *dir);
/* Make the folder (or take an empty one).  -EEXIST: not empty; -EACCES ...: with the sentence. */
int record_open(struct record **r, const char *dir);
const char *record_dir(const struct record *r);
/* What does not change: options, seed, facts; stolen reference. */
int record_head(struct record *r, json_t *head);
size_t record_samples(const struct record *r); /* lines of samples.csv so far */
int record_batch(struct record *r, const struct case_desc *c, const struct batch *b);
/* Rewrite run.json (and summary.csv when `summary`) with the cases as they stand.  evidence: stolen, may be NULL. */
int record_write(struct record *r, const struct case_list *l, json_t *evidence,
		 double duration_s, bool summary, bool complete,
		 const char *why_incomplete);
/* The same for cases that are JSON already (record_case_json); stolen. */
int record_write_cases(struct record *r, json_t *cases, json_t *evidence,
		       double duration_s, bool summary, bool complete,
		       const char *why_incomplete);
void record_close(struct record *r);
json_t *
record_case_json(const struct case_desc *c); /* all semantics of a case; new reference */
#endif
