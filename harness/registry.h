/* SPDX-License-Identifier: Apache-2.0
 * registry.h: the benches and probes, from bench/bench.def and probes/probes.def, in their order.
 */
#ifndef PUTSCOPE_REGISTRY_H
#define PUTSCOPE_REGISTRY_H
#include "case.h"

extern const struct bench *const registry[];	     /* NULL-terminated */
const struct bench *registry_find(const char *name); /* NULL when there is none */
#endif
