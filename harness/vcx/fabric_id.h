/* SPDX-License-Identifier: Apache-2.0
 * fabric_id.h: a fabric's number, from the identity of its file: two fabrics that exist at once never share it by accident
 * of a random number, and launcher and library agree on it without talking.
 */
#ifndef VCX_FABRIC_ID_H
#define VCX_FABRIC_ID_H
#include <stdint.h>
#include <sys/stat.h>

#define VCX_GUID_PREFIX 0x0c42a100ull /* an OUI of the vendor, as a real card shows */

static inline uint32_t vcx_fabric_id(const struct stat *s)
{
	uint64_t x = ((uint64_t)s->st_dev << 48) ^ (uint64_t)s->st_ino;

	x = (x ^ x >> 33) * 0xff51afd7ed558ccdull; /* murmur3's finaliser */
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
	return (uint32_t)(x ^ x >> 33);
}
static inline uint64_t vcx_guid(uint32_t fabric_id, unsigned dev)
{
	return VCX_GUID_PREFIX << 32 | (uint64_t)(fabric_id & 0x7fffffff) << 1 | dev;
}
#endif
