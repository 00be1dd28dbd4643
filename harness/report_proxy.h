/* SPDX-License-Identifier: Apache-2.0
 * report_proxy.h: what a result folder says of the CPU proxy.
 */
#ifndef PUTSCOPE_REPORT_PROXY_H
#define PUTSCOPE_REPORT_PROXY_H
#include "load.h"

/* {hops, closure, states, rates, enqueue, handoff}, arrays (results/README.md); new reference, NULL when out of memory. */
json_t *report_proxy(const struct load *l);
void report_proxy_print(const json_t *proxy);
/* It stands in a table of its own. */
bool report_proxy_own(const json_t *c, const char *metric);
#endif
