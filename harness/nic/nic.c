/* SPDX-License-Identifier: Apache-2.0
 * nic.c: open and choose a device, its port and address; register memory; name errors.
 */
#include <dlfcn.h>
#include <infiniband/mlx5dv.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "nic/nic.h"

#define GID_TABLE_MAX 256

bool nic_is_virtual(void)
{
	return dlsym(RTLD_DEFAULT, "vcx_step") != NULL;
}

unsigned nic_names(char names[][64], unsigned max)
{
	int n = 0;
	struct ibv_device **list =
		ibv_get_device_list(&n); /* NULL (ENOSYS) without RDMA in the kernel */
	unsigned count = 0;

	if (!list)
		return 0;
	for (; count < max && (int)count < n; count++)
		snprintf(names[count], 64, "%s", ibv_get_device_name(list[count]));
	ibv_free_device_list(list);
	return count;
}

static int no_device(const char *name)
{
	char names[16][64], all[512] = "";
	unsigned n = nic_names(names, 16);

	for (unsigned i = 0; i < n; i++) {
		size_t at = strlen(all);

		snprintf(all + at, sizeof all - at, "%s%s", i ? ", " : "", names[i]);
	}
	return err_say(-ENODEV, "no RDMA device named %s; %s%s", name,
		       n ? "there are: " : "there is none at all", all);
}

static struct ibv_context *open_by_name(const char *name, bool *found)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *ctx = NULL;

	*found = false;
	if (!list)
		return NULL;
	for (int i = 0; i < n && !*found; i++) {
		if (strcmp(name, ibv_get_device_name(list[i])))
			continue;
		*found = true;
		ctx = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	return ctx;
}

static bool gid_is_ipv4(const union ibv_gid *g)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(g->raw, prefix, sizeof prefix);
}

/* RoCE v2 wherever there is one: v1 does not route, and peers that disagree on the version never connect. */
static int choose_gid(struct nic *nic, int table_len)
{
	struct ibv_gid_entry e;
	int best = -1;

	for (int i = 0; i < table_len && i < GID_TABLE_MAX; i++) {
		if (ibv_query_gid_ex(nic->ctx, nic->port, (uint32_t)i, &e, 0) ||
		    e.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if (best < 0 || (gid_is_ipv4(&e.gid) && !gid_is_ipv4(&nic->gid))) {
			best = i;
			nic->gid = e.gid;
		}
	}
	if (best < 0)
		return err_say(
			-EPERM,
			"%s port %u has no RoCE v2 GID: give its network interface an address",
			nic->name, nic->port);
	nic->gid_index = best;
	return 0;
}

static int choose_port(struct nic *nic)
{
	struct ibv_port_attr attr;
	int rc = ibv_query_port(nic->ctx, nic->port, &attr);

	if (rc)
		return err_say(-EPERM, "%s port %u cannot be queried: %s", nic->name,
			       nic->port, strerror(rc));
	if (attr.state != IBV_PORT_ACTIVE)
		return err_say(
			-EPERM,
			"%s port %u is %s, not active: check cable and link (ibv_devinfo)",
			nic->name, nic->port, ibv_port_state_str(attr.state));
	nic->mtu = attr.active_mtu;
	nic->lid = attr.lid;
	nic->ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	return nic->ethernet ? choose_gid(nic, attr.gid_tbl_len) : 0;
}

int nic_open(struct nic **out, const char *name)
{
	struct nic *nic = calloc(1, sizeof *nic);
	bool found;
	int err;

	*out = NULL;
	if (!nic)
		return err_say(-ENOMEM, "no memory for a NIC");
	snprintf(nic->name, sizeof nic->name, "%s", name);
	nic->port = 1;
	errno = 0;
	nic->ctx = open_by_name(name, &found);
	if (!found) {
		err = no_device(name);
		goto out;
	}
	if (!nic->ctx) {
		err = err_say(
			-EPERM,
			"RDMA device %s is there but cannot be opened: %s; check the permissions of "
			"/dev/infiniband/uverbs*",
			name, strerror(errno));
		goto out;
	}
	nic->mlx5 = mlx5dv_is_supported(nic->ctx->device);
	PTR_TRY(nic->pd = ibv_alloc_pd(nic->ctx), err, out);
	OUR_TRY(choose_port(nic), err, out);
	*out = nic;
	return 0;
out:
	nic_close(nic);
	return err;
}

void nic_close(struct nic *nic)
{
	if (!nic)
		return;
	if (nic->pd)
		ibv_dealloc_pd(nic->pd);
	if (nic->ctx)
		ibv_close_device(nic->ctx);
	free(nic);
}

int nic_reg(struct nic *nic, void *p, size_t bytes, struct ibv_mr **mr)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	errno = 0;
	*mr = ibv_reg_mr(nic->pd, p, bytes, access);
	if (*mr)
		return 0;
	return err_say(
		-EPERM,
		"%s cannot register %zu bytes at %p: %s; for GPU memory load nvidia_peermem, for host "
		"memory raise 'ulimit -l'",
		nic->name, bytes, p, strerror(errno ? errno : EIO));
}

json_t *nic_facts(const struct nic *nic)
{
	struct ibv_device_attr attr;
	char gid[33];

	for (int i = 0; i < 16; i++)
		snprintf(gid + 2 * i, 3, "%02x", nic->gid.raw[i]);
	memset(&attr, 0, sizeof attr);
	if (ibv_query_device(nic->ctx, &attr))
		attr.fw_ver[0] = 0;
	return json_pack("{s:s, s:b, s:s, s:i, s:i, s:s, s:i, s:s, s:i, s:s, s:i, s:i}",
			 "device", nic->name, "virtual", nic_is_virtual(), "firmware",
			 attr.fw_ver, "vendor_part_id", (int)attr.vendor_part_id, "port",
			 nic->port, "link", nic->ethernet ? "ethernet" : "infiniband",
			 "gid_index", nic->gid_index, "gid", gid, "lid", nic->lid,
			 "registration", "host-verbs", "mtu_bytes", 128 << nic->mtu,
			 "mlx5", nic->mlx5);
}

/* Names: mlx5 PRM, "Completion With Error Syndromes"; rdma-core providers/mlx5/cq.c. */
const char *nic_syndrome(uint32_t syndrome)
{
	switch (syndrome & 0xff) {
	case 0x01:
		return "local length error";
	case 0x02:
		return "local QP operation error: the WQE is malformed";
	case 0x04:
		return "local protection error: wrong lkey or address outside its region";
	case 0x05:
		return "flushed: an earlier WQE of this queue failed";
	case 0x06:
		return "memory window bind error";
	case 0x10:
		return "bad response";
	case 0x11:
		return "local access error";
	case 0x12:
		return "remote invalid request";
	case 0x13:
		return "remote access error: wrong rkey, address outside its region, or no remote-write right";
	case 0x14:
		return "remote operation error";
	case 0x15:
		return "transport retry exceeded: the peer does not answer";
	case 0x16:
		return "receiver not ready retry exceeded";
	case 0x22:
		return "remote aborted";
	default:
		return "unknown syndrome";
	}
}
