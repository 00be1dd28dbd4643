/* SPDX-License-Identifier: Apache-2.0
 * attr.h: attributes of an RDMA_VERBS_IOCTL call (rdma/rdma_user_ioctl_cmds.h).
 */
#ifndef VCX_ATTR_H
#define VCX_ATTR_H
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdint.h>
#include <string.h>

static inline struct ib_uverbs_attr *attr_at(struct ib_uverbs_ioctl_hdr *h, unsigned id)
{
	for (unsigned i = 0; i < h->num_attrs; i++)
		if (h->attrs[i].attr_id == id)
			return &h->attrs[i];
	return NULL;
}
/* Input of up to n bytes, the rest zeroed; data of 8 bytes or less lie in the attribute itself. */
static inline void attr_get(struct ib_uverbs_ioctl_hdr *h, unsigned id, void *to,
			    size_t n)
{
	struct ib_uverbs_attr *a = attr_at(h, id);
	size_t len;

	memset(to, 0, n);
	if (!a)
		return;
	len = a->len ? a->len : 8;
	memcpy(to,
	       a->len <= 8 ? (const void *)&a->data : (const void *)(uintptr_t)a->data,
	       len < n ? len : n);
}
static inline uint64_t attr_u64(struct ib_uverbs_ioctl_hdr *h, unsigned id)
{
	uint64_t v;

	attr_get(h, id, &v, sizeof v);
	return v;
}
static inline void attr_put(struct ib_uverbs_ioctl_hdr *h, unsigned id, const void *from,
			    size_t n)
{
	struct ib_uverbs_attr *a = attr_at(h, id);

	if (!a)
		return;
	memset((void *)(uintptr_t)a->data, 0, a->len);
	memcpy((void *)(uintptr_t)a->data, from, n < a->len ? n : a->len);
	a->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
}
/* A handle or descriptor that the call made. */
static inline void attr_put_object(struct ib_uverbs_ioctl_hdr *h, unsigned id, uint64_t v)
{
	struct ib_uverbs_attr *a = attr_at(h, id);

	if (!a)
		return;
	a->data = v;
	a->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
}
#define ATTR_PUT(h, id, v) attr_put(h, id, &(v), sizeof(v))
#endif
