/* SPDX-License-Identifier: Apache-2.0
 * doctor_reg.c: what can be told only by trying: register memory with the NIC, map its doorbell page to the GPU.
 *
 * libcuda is loaded at run time, so that a build without CUDA can try as well; prototypes and constants: cuda.h (driver
 * API).  All that is made is freed again.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"

#define TRY_BYTES (2ul << 20) /* the granule of GPU memory */
#define UAR_BYTES 4096u
#define CU_DMA_BUF_FD 1	   /* CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD */
#define CU_REGISTER_IO 0x7 /* PORTABLE | DEVICEMAP | IOMEMORY */
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* ---- the GPU, by the driver API ---- */
typedef uint64_t cu_ptr;
static struct {
	void *lib;
	int (*init)(unsigned);
	int (*by_bus)(int *, const char *);
	int (*retain)(void **, int);
	int (*release)(int);
	int (*set)(void *);
	int (*alloc)(cu_ptr *, size_t);
	int (*free)(cu_ptr);
	int (*host_register)(void *, size_t, unsigned);
	int (*host_unregister)(void *);
	int (*name_of)(int, const char **);
	int (*export)(void *, cu_ptr, size_t, int, unsigned long long); /* CUDA 11.7 */
} cu;

static int load_cuda(void)
{
	static const struct {
		void *fn;
		const char *name;
	} calls[] = {
		{&cu.init, "cuInit"},
		{&cu.by_bus, "cuDeviceGetByPCIBusId"},
		{&cu.retain, "cuDevicePrimaryCtxRetain"},
		{&cu.release, "cuDevicePrimaryCtxRelease_v2"},
		{&cu.set, "cuCtxSetCurrent"},
		{&cu.alloc, "cuMemAlloc_v2"},
		{&cu.free, "cuMemFree_v2"},
		{&cu.host_register, "cuMemHostRegister_v2"},
		{&cu.host_unregister, "cuMemHostUnregister"},
		{&cu.name_of, "cuGetErrorName"},
	};

	if (cu.lib)
		return 0;
	cu.lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	for (unsigned i = 0; cu.lib && i < sizeof calls / sizeof *calls; i++) {
		*(void **)calls[i].fn = dlsym(cu.lib, calls[i].name);
		if (!*(void **)calls[i].fn) {
			dlclose(cu.lib);
			cu.lib = NULL;
		}
	}
	if (!cu.lib)
		return -1;
	*(void **)&cu.export = dlsym(cu.lib, "cuMemGetHandleForAddressRange");
	return 0;
}

static const char *cu_name(int rc)
{
	const char *name = NULL;

	return cu.name_of(rc, &name) || !name ? "an error without a name" : name;
}

/* The device with its primary context made current; why, when it cannot be. */
static int gpu_take(const char *bdf, int *dev, char *why, size_t n)
{
	void *ctx;
	int rc;

	if (load_cuda()) {
		snprintf(why, n, "libcuda.so.1 does not load");
		return -1;
	}
	rc = cu.init(0);
	rc = rc ? rc : cu.by_bus(dev, bdf);
	rc = rc ? rc : cu.retain(&ctx, *dev);
	if (!rc) {
		rc = cu.set(ctx);
		if (rc)
			cu.release(*dev);
	}
	if (rc)
		snprintf(why, n, "CUDA cannot use the GPU (%s)", cu_name(rc));
	return rc ? -1 : 0;
}

static void gpu_give(int dev)
{
	cu.set(NULL);
	cu.release(dev);
}

/* ---- the NIC, by verbs: whatever state its port is in ---- */
struct opened {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
};

static void opened_close(struct opened *o)
{
	if (o->pd)
		ibv_dealloc_pd(o->pd);
	if (o->ctx)
		ibv_close_device(o->ctx);
}

/* 0 or -errno, with the reason in words. */
static int opened_open(struct opened *o, const char *name, char *why, size_t n)
{
	int count = 0, err = ENODEV;
	struct ibv_device **list = ibv_get_device_list(&count);

	memset(o, 0, sizeof *o);
	for (int i = 0; list && i < count && !o->ctx; i++) {
		if (strcmp(name, ibv_get_device_name(list[i])))
			continue;
		errno = 0;
		o->ctx = ibv_open_device(list[i]);
		err = errno ? errno : EIO;
	}
	if (list)
		ibv_free_device_list(list);
	errno = 0;
	o->pd = o->ctx ? ibv_alloc_pd(o->ctx) : NULL;
	if (o->pd)
		return 0;
	err = o->ctx ? (errno ? errno : EIO) : err;
	snprintf(why, n, "%s cannot be opened: %s", name,
		 err == ENODEV ? "libibverbs does not show it" : strerror(err));
	opened_close(o);
	return -err;
}

static void not_tried(struct finding *f, const char *why)
{
	say_found(f, "not tried: %s", why);
	say_status(f, DOCTOR_UNKNOWN, "whether registration works is not known");
}

void check_reg_host(const struct doctor *d, const struct subject *s, struct finding *f)
{
	struct opened o;
	struct ibv_mr *mr;
	char why[160];
	void *p;
	int err;

	if (sys_faked()) {
		not_tried(f, "PUTSCOPE_SYSROOT is set");
		return;
	}
	err = opened_open(&o, s->nic->name, why, sizeof why);
	if (err) {
		say_found(f, "%s", why);
		say_status(f, DOCTOR_FAIL, "no path can be measured with this NIC");
		say_remedy(
			f, "%s",
			err == -ENODEV
				? "sudo apt-get install ibverbs-providers; sudo modprobe ib_uverbs"
				: "sudo chmod 666 /dev/infiniband/uverbs*; ls -l /dev/infiniband");
		return;
	}
	p = aligned_alloc(UAR_BYTES, TRY_BYTES);
	errno = 0;
	mr = p ? ibv_reg_mr(o.pd, p, TRY_BYTES, ACCESS) : NULL;
	err = mr ? 0 : errno;
	say_found(f, "%lu MiB of host memory %s%s%s", TRY_BYTES >> 20,
		  mr ? "registered" : "refused: ", mr ? "" : strerror(err),
		  d->virtual_nic ? " (virtual NIC)" : "");
	if (mr) {
		say_status(f, DOCTOR_OK, "queues and payload in host memory work");
		ibv_dereg_mr(mr);
	} else {
		say_status(f, DOCTOR_FAIL, "no path can be measured with this NIC");
		say_remedy(f, "ulimit -l unlimited   (see the check memlock)");
	}
	free(p);
	opened_close(&o);
}

/* Both ways, each said; how many worked. */
static int register_gpu(struct opened *o, cu_ptr p, struct finding *f)
{
	struct ibv_mr *mr;
	int fd = -1, rc, works = 0;

	rc = cu.export ? cu.export(&fd, p, TRY_BYTES, CU_DMA_BUF_FD, 0) : -1;
	if (rc) {
		say_found(f, "dmabuf: not exported (%s)",
			  cu.export ? cu_name(rc) : "libcuda is older than 11.7");
	} else {
		errno = 0;
		mr = ibv_reg_dmabuf_mr(o->pd, 0, TRY_BYTES, p, fd, ACCESS);
		works += mr != NULL;
		say_found(f, "dmabuf: %s",
			  mr ? "registered" : strerror(errno ? errno : EIO));
		if (mr)
			ibv_dereg_mr(mr);
		close(fd);
	}
	errno = 0;
	mr = ibv_reg_mr(o->pd, (void *)(uintptr_t)p, TRY_BYTES, ACCESS);
	works += mr != NULL;
	say_found(f, "; peermem: %s", mr ? "registered" : strerror(errno ? errno : EIO));
	if (mr)
		ibv_dereg_mr(mr);
	return works;
}

void check_reg_gpu(const struct doctor *d, const struct subject *s, struct finding *f)
{
	bool module = sys_there("/sys/module/nvidia_peermem");
	struct opened o;
	char why[160];
	int dev, works, rc;
	cu_ptr p = 0;

	if (sys_faked()) {
		not_tried(f, "PUTSCOPE_SYSROOT is set");
		return;
	}
	if (opened_open(&o, s->nic->name, why, sizeof why)) {
		not_tried(f, why);
		return;
	}
	if (gpu_take(s->gpu->bdf, &dev, why, sizeof why)) {
		not_tried(f, why);
		opened_close(&o);
		return;
	}
	rc = cu.alloc(&p, TRY_BYTES);
	if (rc) {
		not_tried(f, cu_name(rc));
	} else {
		works = register_gpu(&o, p, f);
		cu.free(p);
		say_found(f, " (module nvidia_peermem %s%s)",
			  module ? "loaded" : "not loaded",
			  d->virtual_nic ? "; virtual NIC" : "");
		say_status(
			f, works ? DOCTOR_OK : DOCTOR_FAIL,
			works ? "the NIC reads and writes GPU memory directly"
			      : "the NIC cannot reach GPU memory: payload and queues can lie in host memory only");
		if (!works)
			say_remedy(f,
				   module ? "sudo dmesg | grep -iE 'nvidia|peer' | tail"
					  : "sudo modprobe nvidia_peermem");
	}
	gpu_give(dev);
	opened_close(&o);
}

/* ---- the doorbell page ---- */
static int map_page(struct ibv_context *ctx, const char *bdf, char *why, size_t n)
{
	struct mlx5dv_devx_uar *uar = NULL;
	int dev, rc;

	if (!mlx5dv_is_supported(ctx->device)) {
		snprintf(why, n, "not tried: the NIC is no ConnectX");
		return -1;
	}
	uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	if (!uar)
		uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
	if (!uar) {
		snprintf(why, n, "not tried: no doorbell page (%s)", strerror(errno));
		return -1;
	}
	if (gpu_take(bdf, &dev, why, n)) {
		mlx5dv_devx_free_uar(uar);
		return -1;
	}
	rc = cu.host_register(uar->base_addr, UAR_BYTES, CU_REGISTER_IO);
	snprintf(why, n, "%s%s", rc ? "refused, " : "works", rc ? cu_name(rc) : "");
	if (!rc)
		cu.host_unregister(uar->base_addr);
	gpu_give(dev);
	mlx5dv_devx_free_uar(uar);
	return !rc;
}

int uar_trial(const struct doctor *d, char *why, size_t n)
{
	const struct doctor_dev *nic = nearest_nic(d, &d->gpus[0]);
	struct opened o;
	int works;

	if (sys_faked() || !nic) {
		snprintf(why, n, "not tried, %s",
			 sys_faked()	  ? "PUTSCOPE_SYSROOT is set"
			 : d->virtual_nic ? "the NIC is virtual"
					  : "no NIC");
		return -1;
	}
	if (opened_open(&o, nic->name, why, n))
		return -1;
	works = map_page(o.ctx, d->gpus[0].bdf, why, n);
	opened_close(&o);
	return works;
}
