/* SPDX-License-Identifier: Apache-2.0
 * uverbs_write.c: the write() commands that libibverbs wraps in an ioctl.
 */
#include <endian.h>
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "fabric.h"
#include "log.h"
#include "uverbs.h"

#define EXTENDED(cmd) ((cmd) | IB_USER_VERBS_CMD_FLAG_EXTENDED)
#define FW_VER (28ull << 32 | 39u << 16 | 2048) /* a ConnectX-7 release */
#define CORE_CLOCK_KHZ 1000000u			/* CQE timestamps are in nanoseconds */

static void fill_device(unsigned dev, struct ib_uverbs_query_device_resp *r)
{
	memset(r, 0, sizeof *r);
	r->fw_ver = FW_VER;
	r->node_guid = r->sys_image_guid = htobe64(fabric_guid(dev));
	r->max_mr_size = ~0ull;
	r->page_size_cap = 0xfffff000;
	r->vendor_id = 0x15b3;
	r->vendor_part_id = 0x1021; /* ConnectX-7 */
	r->max_qp = VCX_OBJECTS - 1;
	r->max_qp_wr = 32768;
	r->max_sge = r->max_sge_rd = 30;
	r->max_cq = VCX_OBJECTS - 1;
	r->max_cqe = 4194303;
	r->max_mr = VCX_OBJECTS - 1;
	r->max_pd = VCX_OBJECTS - 1;
	r->max_qp_rd_atom = r->max_qp_init_rd_atom = 16;
	r->max_res_rd_atom = 65536;
	r->atomic_cap = 1; /* IBV_ATOMIC_HCA */
	r->max_pkeys = 1;
	r->local_ca_ack_delay = 16;
	r->phys_port_cnt = 1;
}

static int query_device(unsigned dev, struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_query_device_resp r;

	if (!attr_at(h, UVERBS_ATTR_CORE_OUT))
		return ENOSPC; /* the library asks so whether this way in works */
	fill_device(dev, &r);
	ATTR_PUT(h, UVERBS_ATTR_CORE_OUT, r);
	return 0;
}

static int query_device_ex(unsigned dev, struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_attr *out = attr_at(h, UVERBS_ATTR_CORE_OUT);
	struct ib_uverbs_ex_query_device_resp r;

	if (!out)
		return ENOSPC;
	memset(&r, 0, sizeof r);
	fill_device(dev, &r.base);
	r.response_length = out->len < sizeof r ? out->len : (uint32_t)sizeof r;
	r.timestamp_mask = ~0ull;
	r.hca_core_clock = CORE_CLOCK_KHZ;
	ATTR_PUT(h, UVERBS_ATTR_CORE_OUT, r);
	return 0;
}

static int alloc_pd(struct ib_uverbs_ioctl_hdr *h)
{
	for (uint32_t pd = 1; pd < VCX_OBJECTS; pd++) {
		struct ib_uverbs_alloc_pd_resp r = {.pd_handle = pd};
		struct mlx5_ib_alloc_pd_resp u = {.pdn = pd};

		if (fab->pds[pd])
			continue;
		fab->pds[pd] = true;
		fab->pd_pid[pd] = vcx_me;
		ATTR_PUT(h, UVERBS_ATTR_CORE_OUT, r);
		ATTR_PUT(h, UVERBS_ATTR_UHW_OUT, u);
		return 0;
	}
	return ENOMEM;
}

static int reg_mr(struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_reg_mr_resp r = {0};
	struct ib_uverbs_reg_mr q;
	uint32_t m;
	int rc;

	attr_get(h, UVERBS_ATTR_CORE_IN, &q, sizeof q);
	rc = uverbs_new_mr(q.pd_handle, q.start, q.hca_va, q.length, q.access_flags, &m);
	if (rc)
		return rc;
	r.mr_handle = m;
	r.lkey = r.rkey = fab->mrs[m].key;
	ATTR_PUT(h, UVERBS_ATTR_CORE_OUT, r);
	return 0;
}

static int create_channel(struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_create_comp_channel_resp r = {0};
	int fd, rc = channel_new(&fd);

	if (rc)
		return rc;
	r.fd = (uint32_t)fd;
	ATTR_PUT(h, UVERBS_ATTR_CORE_OUT, r);
	return 0;
}

int uverbs_write(unsigned dev, struct ib_uverbs_ioctl_hdr *h)
{
	uint32_t cmd = (uint32_t)attr_u64(h, UVERBS_ATTR_WRITE_CMD);

	LOG(2, "  write command 0x%x", cmd);
	switch (cmd) {
	case IB_USER_VERBS_CMD_QUERY_DEVICE:
		return query_device(dev, h);
	case EXTENDED(IB_USER_VERBS_EX_CMD_QUERY_DEVICE):
		return query_device_ex(dev, h);
	case IB_USER_VERBS_CMD_ALLOC_PD:
		return alloc_pd(h);
	case IB_USER_VERBS_CMD_REG_MR:
		return reg_mr(h);
	case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
		return create_channel(h);
	case IB_USER_VERBS_CMD_MODIFY_QP:
	case EXTENDED(IB_USER_VERBS_EX_CMD_MODIFY_QP):
		return uverbs_modify_qp(h);
	case IB_USER_VERBS_CMD_QUERY_QP:
		return uverbs_query_qp(h);
	}
	LOG(1, "write command 0x%x is not there", cmd);
	return EOPNOTSUPP;
}
