/* SPDX-License-Identifier: Apache-2.0
 * report_hops.h: the waterfall of one put, its closure and what stands beside it, as text.
 */
#ifndef PUTSCOPE_REPORT_HOPS_H
#define PUTSCOPE_REPORT_HOPS_H
#include <jansson.h>

/* From solve_hops' object; nothing where it has no hops.  all: every group and row, else what a first look needs. */
void report_hops_print(const json_t *solved, bool all);
#endif
