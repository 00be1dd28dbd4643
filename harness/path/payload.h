/* SPDX-License-Identifier: Apache-2.0
 * payload.h: what a put carries, so that the receiver can tell iteration and offset from the bytes.
 */
#ifndef PUTSCOPE_PAYLOAD_H
#define PUTSCOPE_PAYLOAD_H
#include "sm/dev.h"

/* Word k (8 bytes) of the payload of put number seq: an odd multiplier each, never zero for k == 0 in use. */
DEV uint64_t payload_word(uint64_t seq, uint64_t k)
{
	uint64_t x = (seq + 1) * 0x9e3779b97f4a7c15ull ^ (k + 1) * 0xc2b2ae3d27d4eb4full;

	return x ^ x >> 29;
}
/* Store the first min(bytes, 8) bytes of `word` at p (8-aligned): the SM's own part of a gathered payload. */
DEV void payload_store_head(uint8_t *p, uint64_t word, uint32_t bytes)
{
	if (bytes >= 8) {
		dev_st8b(p, word);
		return;
	}
	for (uint32_t i = 0; i < bytes; i++)
		dev_st1b(p + i, (uint8_t)(word >> (8 * i)));
}
/* The bits of a head word that `bytes` bytes carry. */
DEV uint64_t payload_head_mask(uint32_t bytes)
{
	return bytes >= 8 ? ~0ull : (1ull << (8 * bytes)) - 1;
}
#endif
