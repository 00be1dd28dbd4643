/* SPDX-License-Identifier: Apache-2.0
 * slots.c: payload that depends on iteration and offset.
 */
#include "clock.h"
#include "path/payload.h"
#include "path/slots.h"

#define POISON 0xa5
#define ARRIVE_NS 200000000u /* until bytes that do not arrive count as wrong */

/* Word k of put i: the SM writes word 0 (and all of an inline payload) with the put's number, the host the rest. */
static uint64_t expected_word(const struct slots *s, uint32_t i, uint32_t k)
{
	return payload_word(k == 0 || s->inl ? s->seq0 + i : (uint64_t)i, k);
}

static uint32_t word_bytes(const struct slots *s, uint32_t at)
{
	return s->bytes - at < 8 ? s->bytes - at : 8;
}

int slots_fill(struct env *e, enum end at, const struct slots *s)
{
	for (uint32_t i = 0; i < s->ops; i++) {
		uint8_t *slot = e->staging + (size_t)i * s->stride;

		for (uint32_t off = 0, k = 0; off < s->bytes; off += 8, k++) {
			uint64_t word = expected_word(s, i, k);

			memcpy(slot + off, &word, word_bytes(s, off));
		}
		memset(slot, POISON, word_bytes(s, 0));
	}
	return sm_copy_in(e->sm, e->end[at].src, e->data_place, e->staging,
			  (size_t)s->stride * s->ops);
}

int slots_poison(struct env *e, enum end at, const struct slots *s)
{
	size_t span = (size_t)s->stride * s->ops;
	int err;

	memset(e->staging, POISON, span);
	err = sm_copy_in(e->sm, e->end[at].dst, e->data_place, e->staging, span);
	return err ? err
		   : sm_copy_in(e->sm, e->end[at].dst + DATA_BYTES, e->data_place,
				e->staging, 8);
}

static bool slot_right(const struct slots *s, uint32_t i, const uint8_t *slot)
{
	for (uint32_t off = 0, k = 0; off < s->bytes; off += 8, k++) {
		uint64_t want = expected_word(s, i, k);

		if (memcmp(slot + off, &want, word_bytes(s, off)))
			return false;
	}
	return true;
}

int slots_bad(struct env *e, enum end at, const struct slots *s, uint64_t *bad)
{
	const uint8_t *got = e->end[at].dst;

	*bad = 0;
	if (e->data_place == SM_GPU) {
		int err = sm_copy_out(e->sm, e->staging, got, SM_GPU,
				      (size_t)s->stride * s->ops);

		if (err)
			return err;
		got = e->staging;
	}
	for (uint32_t i = 0; i < s->ops; i++)
		*bad += !slot_right(s, i, got + (size_t)i * s->stride);
	return 0;
}

int slots_bad_at_last(struct env *e, enum end at, const struct slots *s, uint64_t *bad)
{
	const uint64_t late = clock_monotonic_raw_ns() + ARRIVE_NS;
	int err;

	do
		err = slots_bad(e, at, s, bad);
	while (!err && *bad && clock_monotonic_raw_ns() < late);
	return err;
}
