/* SPDX-License-Identifier: Apache-2.0
 * slots.h: payload of one launch laid out in slots: made, poisoned and checked by the host, between launches.
 */
#ifndef PUTSCOPE_SLOTS_H
#define PUTSCOPE_SLOTS_H
#include "rig.h"

/* Put i of the launch goes from slot i of the source to slot i of the destination. */
struct slots {
	uint64_t seq0;	 /* number of put 0 in the run */
	uint32_t bytes;	 /* of one put */
	uint32_t stride; /* from slot to slot */
	uint32_t ops;
	uint32_t inl; /* the SM writes all of the payload, else its first word */
};
/* Source: every byte but those that the SM writes itself, which hold poison until it does. */
int slots_fill(struct env *e, enum end at, const struct slots *s);
/* Destination: poison, so that a byte that never arrived is seen. */
int slots_poison(struct env *e, enum end at, const struct slots *s);
/* Count the puts whose bytes at the destination are not what iteration and offset say. */
int slots_bad(struct env *e, enum end at, const struct slots *s, uint64_t *bad);
/* The same, but bytes on their way get time to arrive: an acknowledgement does not wait for the data to be visible. */
int slots_bad_at_last(struct env *e, enum end at, const struct slots *s, uint64_t *bad);
#endif
