/* SPDX-License-Identifier: Apache-2.0
 * load.h: read a result folder back; the statistics of every case and metric, made from the samples.
 */
#ifndef PUTSCOPE_LOAD_H
#define PUTSCOPE_LOAD_H
#include <jansson.h>
#include <stdbool.h>

#include "case.h"
#include "stats.h"

#define LOAD_BATCH_MAX 10000000u /* more than a run can hold: a damaged number */

struct load_series {
	char case_id[CASE_ID_CHARS], metric[48];
	uint64_t size_bytes;
	double *v; /* without warm-up */
	uint32_t *batch;
	size_t n, cap;
	uint32_t batches;    /* that hold samples */
	uint32_t last_batch; /* the highest number, warm-up included */
	struct stats stats;  /* NAN where there are only warm-up samples */
};
struct load {
	json_t *run;
	struct load_series *v; /* in order of first sight */
	size_t n, cap, last;   /* last: the series of the line before */
	size_t lines;	       /* samples read, warm-up included */
	bool complete;	       /* what run.json says */
	uint32_t *
		first; /* first batch of each launch, ascending; one launch unless merged */
	unsigned launches;
	bool cut; /* the last line of samples.csv is not whole (an incomplete run): it was left out */
};
enum load_mode {
	LOAD_READER,
	LOAD_WRITER
}; /* the writer looks while run.json is not yet complete */

/* -ENOENT: no such folder or file; -EBADMSG: truncated or malformed, the sentence names file and line. */
int load_open(struct load **l, const char *dir, enum load_mode mode);
void load_close(struct load *l);
const struct load_series *load_find(const struct load *l, const char *case_id,
				    const char *metric);
/* Length and FNV-1a (64 bits) of a file of the folder: {bytes, fnv1a}, or NULL; new reference. */
json_t *load_seal(const char *dir, const char *name);
/* One CSV line cut in place at its commas (our CSV has no quotes): number of fields, at most max. */
unsigned load_split(char *line, char *field[], unsigned max);
#endif
