/* SPDX-License-Identifier: Apache-2.0
 * merge.h: from launches that were found alike to one result folder.
 */
#ifndef PUTSCOPE_MERGE_H
#define PUTSCOPE_MERGE_H
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct merge_part {
	const char *dir;
	json_t *run;
	uint32_t batches; /* one more than its last batch number */
};
/* Write the folder `out`: samples in the order of the parts, sealed.  The parts are of one set-up. */
int merge_write(const char *out, const struct merge_part *parts, size_t n);
#endif
