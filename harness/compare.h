/* SPDX-License-Identifier: Apache-2.0
 * compare.h: two or more result folders side by side; the first is what the others are compared with.
 */
#ifndef PUTSCOPE_COMPARE_H
#define PUTSCOPE_COMPARE_H
#include <jansson.h>
#include <stdbool.h>

#include "compare_stats.h"
#include "load.h"

struct compare_side {
	const char *dir;
	struct load *l;
};
/* A case and metric of side 0 and of another side, or a hop of both. */
struct compare_row {
	size_t other;	     /* side */
	const json_t *a, *b; /* the cases, or the hops, of run.json */
	const struct load_series *series_a, *series_b; /* NULL for a hop */
	char across
		[200]; /* what differs in nature, "" nothing: filled only with --force */
	struct shift s;
};
struct compare_rows {
	struct compare_row *v;
	size_t n, cap;
};
struct compare {
	struct compare_side *side;
	size_t sides;
	double margin; /* part of A's median within which two are the same */
	bool force, components, json;
	struct compare_rows cases, hops;
	json_t *unlike; /* [{case | hop, b, why}] */
};

/* Match and compare side `other` with side 0: rows and unlike ones are appended; no verdicts yet.  0 or -errno. */
int compare_cases(struct compare *c, size_t other);
int compare_hops(struct compare *c, size_t other);
/* A zeroed row; NULL, with the sentence, when out of memory.  Valid until the next. */
struct compare_row *compare_row(struct compare_rows *rows, size_t other);
/* what: "case" or "hop". */
void compare_unlike(struct compare *c, size_t other, const char *what, const char *name,
		    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* One launch on a side: what its samples say holds for that launch. */
bool compare_one_launch(const struct compare_row *r);
/* The verdict in words: "slower", or "seems slower" where there is only one launch on a side. */
const char *compare_words(const struct compare_row *r);

void compare_print(const struct compare *c);
json_t *compare_json(const struct compare *c); /* new reference */
/* What of versions, options and machine differs between side 0 and this one: lines; new reference. */
json_t *compare_differs(const struct compare *c, size_t other);
#endif
