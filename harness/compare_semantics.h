/* SPDX-License-Identifier: Apache-2.0
 * compare_semantics.h: what makes two cases alike, by the keys of a case in run.json.
 */
#ifndef PUTSCOPE_COMPARE_SEMANTICS_H
#define PUTSCOPE_COMPARE_SEMANTICS_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* The semantics of this version, in the order in which they are printed. */
extern const char *const semantic_keys[];
extern const size_t semantic_count;
/* Everything but what came out of the measuring (status, counts, clock): also keys of versions to come. */
bool semantic_is(const char *key);

enum semantic_part {
	SEMANTIC_ALL,
	SEMANTIC_ROLE,	 /* all but those of the nature */
	SEMANTIC_NATURE, /* who plays SM and NIC: nature, sm, spinners, oversubscribed */
};
/* Text "key a / b, key a / b" of the semantics that differ (cut when it does not fit); how many do. */
unsigned semantic_differ(const json_t *a, const json_t *b, enum semantic_part part,
			 char *text, size_t size);
/* One value as text: "-" where it does not apply. */
const char *semantic_text(const json_t *v, char *room, size_t size);
/* Does a larger value of this metric mean faster?  Rates: yes. */
bool metric_is_rate(const char *metric);
/* The case of this id, NULL when there is none (borrowed). */
json_t *case_find(const json_t *run, const char *id);
const char *case_str(const json_t *c, const char *key); /* "" when there is none */
#endif
