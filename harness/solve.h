/* SPDX-License-Identifier: Apache-2.0
 * solve.h: the hops of one put from the experiments of a result folder.
 */
#ifndef PUTSCOPE_SOLVE_H
#define PUTSCOPE_SOLVE_H
#include "load.h"

/* Solve each group of hop experiments that the folder holds.  A new object
 *   {hops: [...], closure: [...], additivity: [...], slopes: [...], probe_effect: [...]}
 * with empty arrays where there is nothing to solve; NULL with the sentence.  Fields: results/README.md.  Series "vcx.*" are
 * not looked at. */
json_t *solve_hops(const struct load *l);
#endif
