/* SPDX-License-Identifier: Apache-2.0
 * uverbs.c: device, port, GIDs, protection domains, regions, doorbell pages.
 *
 * Fields that libmlx5 insists on: rdma-core providers/mlx5/mlx5.c (mlx5_alloc_context).  tot_bfregs = 0 makes it ask for
 * doorbell pages one by one; cqe_version = 1 makes CQEs carry the user's index.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <sys/eventfd.h>

#include "fabric.h"
#include "log.h"
#include "mem.h"
#include "nic.h"
#include "option.h"
#include "stats.h"
#include "uar.h"
#include "uverbs.h"

#define GID_ROCE_V1 1 /* enum ib_uverbs_gid_type */
#define GID_ROCE_V2 2
enum {
	ACCESS_LOCAL_WRITE = 1,
	ACCESS_REMOTE_WRITE = 2,
	ACCESS_REMOTE_ATOMIC = 8
}; /* IBV_ACCESS_* */
#define PORT_DOWN 1
#define PORT_ACTIVE 4
#define METHOD(object, method) ((uint32_t)(object) << 16 | (method))

void uverbs_fill_port(struct ib_uverbs_query_port_resp *r)
{
	memset(r, 0, sizeof *r);
	r->state = vcx_option.refuse & REFUSE_PORT ? PORT_DOWN : PORT_ACTIVE;
	r->max_mtu = r->active_mtu = 5; /* IBV_MTU_4096 */
	r->gid_tbl_len = VCX_GIDS;
	r->port_cap_flags = 1u << 16; /* IBV_PORT_CM_SUP */
	r->max_msg_sz = 1u << 30;
	r->pkey_tbl_len = 1;
	r->max_vl_num = 1;
	r->active_width = 2;				 /* 4x */
	r->active_speed = 128;				 /* NDR lanes: 400 Gb/s */
	r->phys_state = r->state == PORT_ACTIVE ? 5 : 3; /* LinkUp, Disabled */
	r->link_layer = 2;				 /* Ethernet */
}

static void fill_gid(unsigned dev, uint32_t index, struct ib_uverbs_gid_entry *e)
{
	uint8_t gid[16];

	memset(e, 0, sizeof *e);
	fabric_gid(dev, index, gid);
	memcpy(e->gid, gid, 16);
	e->gid_index = index;
	e->port_num = 1;
	e->gid_type = index & 1 ? GID_ROCE_V2 : GID_ROCE_V1;
	e->netdev_ifindex = 1;
}

static uint32_t gid_count(void)
{
	return vcx_option.refuse & REFUSE_GID ? 1 : VCX_GIDS; /* refused: RoCE v1 alone */
}

static int get_context(struct ib_uverbs_ioctl_hdr *h)
{
	struct mlx5_ib_alloc_ucontext_resp r;
	uint32_t vectors = 2;
	uint64_t core_support = 1; /* IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS */

	memset(&r, 0, sizeof r);
	r.qp_tab_size = 1u << 18;
	r.bf_reg_size = UAR_BFREG_BYTES;
	r.cache_line_size = 64;
	r.max_sq_desc_sz = 1024;
	r.max_rq_desc_sz = 512;
	r.max_send_wqebb = 32768;
	r.max_recv_wr = 32768;
	r.max_srq_recv_wr = 32767;
	r.num_ports = 1;
	r.response_length = sizeof r;
	r.cqe_version = 1;
	r.eth_min_inline = MLX5_USER_INLINE_MODE_NONE;
	r.comp_mask = MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_CORE_CLOCK_OFFSET;
	r.hca_core_clock_offset = 0; /* in its page: device_clock.h */
	r.clock_info_versions = 1u << MLX5_IB_CLOCK_INFO_V1;
	r.log_uar_size = 12;
	r.num_uars_per_page = 1;
	ATTR_PUT(h, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, vectors);
	ATTR_PUT(h, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, core_support);
	ATTR_PUT(h, UVERBS_ATTR_UHW_OUT, r);
	return 0;
}

static int query_port(struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_query_port_resp_ex r;

	if (attr_u64(h, UVERBS_ATTR_QUERY_PORT_PORT_NUM) != 1)
		return EINVAL;
	memset(&r, 0, sizeof r);
	uverbs_fill_port(&r.legacy_resp);
	ATTR_PUT(h, UVERBS_ATTR_QUERY_PORT_RESP, r);
	return 0;
}

static int query_gid_entry(unsigned dev, struct ib_uverbs_ioctl_hdr *h)
{
	uint32_t index = (uint32_t)attr_u64(h, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX);
	struct ib_uverbs_gid_entry e;

	if (index >= VCX_GIDS)
		return EINVAL;
	if (index >= gid_count())
		return ENODATA; /* an empty entry */
	fill_gid(dev, index, &e);
	ATTR_PUT(h, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, e);
	return 0;
}

static int query_gid_table(unsigned dev, struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_gid_entry e[VCX_GIDS];
	uint64_t n = gid_count();

	for (uint32_t i = 0; i < n; i++)
		fill_gid(dev, i, &e[i]);
	attr_put(h, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, e, n * sizeof *e);
	ATTR_PUT(h, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, n);
	return 0;
}

static int destroy_pd(struct ib_uverbs_ioctl_hdr *h)
{
	uint32_t pd = (uint32_t)attr_u64(h, UVERBS_ATTR_DESTROY_PD_HANDLE);

	if (pd >= VCX_OBJECTS || !fab->pds[pd] || fab->pd_pid[pd] != vcx_me)
		return EINVAL;
	for (uint32_t i = 0; i < VCX_OBJECTS; i++)
		if ((fab->mrs[i].used && fab->mrs[i].pd == pd) ||
		    (fab->qps[i].used && fab->qps[i].pd == pd))
			return EBUSY;
	fab->pds[pd] = false;
	return 0;
}

int uverbs_new_mr(uint32_t pd, uint64_t host, uint64_t iova, uint64_t len,
		  uint32_t access, uint32_t *handle)
{
	void *gpu = mem_gpu_context(host);

	/* ib_check_mr_access: who may be written from afar must be writable here */
	if ((access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)) &&
	    !(access & ACCESS_LOCAL_WRITE))
		return EINVAL;
	if (gpu && (vcx_option.refuse & REFUSE_PEERMEM))
		return EFAULT; /* what ibv_reg_mr says without nvidia_peermem */
	if (pd >= VCX_OBJECTS || !fab->pds[pd] || fab->pd_pid[pd] != vcx_me)
		return EINVAL;
	for (uint32_t h = 1; h < VCX_OBJECTS; h++) {
		struct vcx_mr *m = &fab->mrs[h];

		if (m->used)
			continue;
		/* index in the middle: 11 random bits of the fabric above, a count below, so that no old key fits */
		*m = (struct vcx_mr){.used = true,
				     .pid = vcx_me,
				     .pd = pd,
				     .access = access,
				     .iova = iova,
				     .len = len,
				     .host = host,
				     .gpu = gpu,
				     .key = (fab->id & 0x7ff) << 21 | h << 8 |
					    (fab->next_key++ & 0xff)};
		*handle = h;
		return 0;
	}
	return ENOMEM;
}

/* The CPU cannot map such a descriptor: callers pass the exporting address as iova, which is what the NIC then uses. */
static int reg_dmabuf_mr(struct ib_uverbs_ioctl_hdr *h)
{
	uint64_t iova = attr_u64(h, UVERBS_ATTR_REG_DMABUF_MR_IOVA);
	uint32_t m;
	int rc;

	if (vcx_option.refuse & REFUSE_DMABUF)
		return EOPNOTSUPP;
	rc = uverbs_new_mr((uint32_t)attr_u64(h, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE),
			   iova, iova, attr_u64(h, UVERBS_ATTR_REG_DMABUF_MR_LENGTH),
			   (uint32_t)attr_u64(h, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS),
			   &m);
	if (rc)
		return rc;
	attr_put_object(h, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, m);
	ATTR_PUT(h, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, fab->mrs[m].key);
	ATTR_PUT(h, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, fab->mrs[m].key);
	return 0;
}

static int destroy_mr(struct ib_uverbs_ioctl_hdr *h)
{
	struct vcx_mr *m = own_mr((uint32_t)attr_u64(h, UVERBS_ATTR_DESTROY_MR_HANDLE));

	if (!m)
		return EINVAL;
	m->used = false;
	return 0;
}

static int alloc_uar(struct ib_uverbs_ioctl_hdr *h)
{
	bool nc = attr_u64(h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE) !=
		  0; /* MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF is 0 */
	uint32_t id, len = VCX_PAGE;
	uint64_t offset;
	int rc = uar_alloc(nc, &id);

	if (rc)
		return rc;
	offset = (uint64_t)id * VCX_PAGE;
	attr_put_object(h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, id);
	ATTR_PUT(h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, offset);
	ATTR_PUT(h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, len);
	ATTR_PUT(h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, id);
	return 0;
}

int uverbs_ioctl(unsigned dev, struct ib_uverbs_ioctl_hdr *h)
{
	LOG(2, "ioctl object 0x%x method 0x%x, %u attributes", h->object_id, h->method_id,
	    h->num_attrs);
	switch (METHOD(h->object_id, h->method_id)) {
	case METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE):
		return uverbs_write(dev, h);
	case METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT):
		return get_context(h);
	case METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT):
		return query_port(h);
	case METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY):
		return query_gid_entry(dev, h);
	case METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE):
		return query_gid_table(dev, h);
	case METHOD(UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC):
		attr_put_object(h, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE,
				(uint64_t)eventfd(0, EFD_CLOEXEC));
		return 0;
	case METHOD(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY):
		return destroy_pd(h);
	case METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR):
		return reg_dmabuf_mr(h);
	case METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY):
		return destroy_mr(h);
	case METHOD(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE):
		return uverbs_create_cq(dev, h);
	case METHOD(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY):
		return uverbs_destroy_cq(h);
	case METHOD(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE):
		return uverbs_create_qp(dev, h);
	case METHOD(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY):
		return uverbs_destroy_qp(h);
	case METHOD(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC):
		return alloc_uar(h);
	case METHOD(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY):
		return uar_free(
			(uint32_t)attr_u64(h, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE));
	case METHOD(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER):
		return EOPNOTSUPP; /* probes of capabilities: the library goes on without */
	}
	LOG(1, "ioctl object 0x%x method 0x%x is not there", h->object_id, h->method_id);
	return EPROTONOSUPPORT;
}
