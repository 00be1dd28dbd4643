/* SPDX-License-Identifier: Apache-2.0
 * case.c: lists of cases, samples of a batch.
 */
#include <stdlib.h>
#include <string.h>

#include "case.h"

const char *case_status_name(enum case_status s)
{
	static const char *const names[] = {"ok", "waived", "failed", "incomplete"};

	return names[s];
}

struct case_desc *case_add(struct case_list *l)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 32;
		struct case_desc *v = realloc(l->v, cap * sizeof *v);

		if (!v)
			return NULL;
		l->v = v;
		l->cap = cap;
	}
	memset(&l->v[l->n], 0, sizeof *l->v);
	return &l->v[l->n++];
}

void case_list_free(struct case_list *l)
{
	free(l->v);
	memset(l, 0, sizeof *l);
}

double *batch_series(struct batch *b, const char *metric, size_t n)
{
	struct series *s;

	if (b->series_count == BATCH_SERIES_MAX)
		return NULL;
	s = &b->series[b->series_count];
	s->ns = calloc(n ? n : 1, sizeof *s->ns);
	if (!s->ns)
		return NULL;
	s->metric = metric;
	s->n = n;
	b->series_count++;
	return s->ns;
}

void batch_reset(struct batch *b)
{
	for (size_t i = 0; i < b->series_count; i++)
		free(b->series[i].ns);
	b->series_count = 0;
}
