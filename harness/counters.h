/* SPDX-License-Identifier: Apache-2.0
 * counters.h: what the kernel's driver counts for the ports in use: packets, errors, retransmissions.
 *
 * They belong to the port: traffic of other programs is in them too.
 */
#ifndef PUTSCOPE_COUNTERS_H
#define PUTSCOPE_COUNTERS_H
#include <jansson.h>

struct env;

/* {device: {counter: value}} of every NIC that is open, from its counters/ and hw_counters/ in sysfs; a device without
 * them (the virtual NIC) has an empty object.  New reference; NULL when out of memory. */
json_t *counters_read(const struct env *e);
/* What each has grown by since `before`; those that stood still are left out.  New reference. */
json_t *counters_grown(const json_t *before, const struct env *e);
/* One sentence for each counter in `grown` that tells of lost or repeated packets: a run with any is dirty. */
json_t *counters_dirty(const json_t *grown);
#endif
