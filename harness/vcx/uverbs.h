/* SPDX-License-Identifier: Apache-2.0
 * uverbs.h: the kernel side of libibverbs and libmlx5, as far as they use it here.  All return 0 or errno; the fabric is
 * locked by the caller.
 */
#ifndef VCX_UVERBS_H
#define VCX_UVERBS_H
#include "attr.h"

int uverbs_ioctl(unsigned dev, struct ib_uverbs_ioctl_hdr *h);
int uverbs_write(
	unsigned dev,
	struct ib_uverbs_ioctl_hdr *h); /* the older commands, wrapped (INVOKE_WRITE) */
int uverbs_create_cq(unsigned dev, struct ib_uverbs_ioctl_hdr *h);
int uverbs_destroy_cq(struct ib_uverbs_ioctl_hdr *h);
int uverbs_create_qp(unsigned dev, struct ib_uverbs_ioctl_hdr *h);
int uverbs_destroy_qp(struct ib_uverbs_ioctl_hdr *h);
int uverbs_modify_qp(struct ib_uverbs_ioctl_hdr *h);
int uverbs_query_qp(struct ib_uverbs_ioctl_hdr *h);

struct ib_uverbs_query_port_resp;
void uverbs_fill_port(struct ib_uverbs_query_port_resp *r);
/* Region of this process: 0 and its handle, or errno. */
int uverbs_new_mr(uint32_t pd, uint64_t host, uint64_t iova, uint64_t len,
		  uint32_t access, uint32_t *handle);

/* Completion channels: the read end is the program's, the write end ours. */
int channel_new(int *fd);   /* 0 or errno */
int channel_writer(int fd); /* the write end, -1 when fd is no channel */
/* Take back what was written for `handle` and not yet read: the number of events. */
uint32_t channel_take_back(int writer, uint64_t handle);
#endif
