/* SPDX-License-Identifier: Apache-2.0
 * facts.h: what this machine is, for run.json.
 */
#ifndef PUTSCOPE_FACTS_H
#define PUTSCOPE_FACTS_H
#include <jansson.h>

struct env;
/* Host facts of this process and, where env is open, of its SM and NICs; new reference. */
json_t *facts_rank(int rank, const struct env *env);
/* One line to stderr: which rank is on which host, with which GPU and NIC. */
void facts_print(const json_t *rank);
#endif
