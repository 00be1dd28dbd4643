/* SPDX-License-Identifier: Apache-2.0
 * registry.c: bench.def and probes.def as a table.
 */
#include <stddef.h>
#include <string.h>

#include "registry.h"

#define BENCH(symbol) extern const struct bench symbol;
#include "bench/bench.def"
#include "probes/probes.def"
BENCH(bench_fake) /* for the tests */
#undef BENCH

#define BENCH(symbol) &symbol,
const struct bench *const registry[] = {
#include "bench/bench.def"
#include "probes/probes.def"
	BENCH(bench_fake) NULL,
};

const struct bench *registry_find(const char *name)
{
	for (const struct bench *const *b = registry; *b; b++)
		if (!strcmp((*b)->name, name))
			return *b;
	return NULL;
}
