/* SPDX-License-Identifier: Apache-2.0
 * doctor_nvml.c: load libnvidia-ml.so.1 and read from it.  No call here changes a setting.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "doctor_nvml.h"

#define NVML_CLOCK_SM 1
#define USERS_MAX 256

/* Layouts: nvml.h, nvmlPciInfo_t, nvmlProcessInfo_v2_t, nvmlBAR1Memory_t, nvmlMemory_t, nvmlUtilization_t. */
struct pci_info {
	char bus_id_legacy[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};
struct process_info {
	unsigned pid;
	unsigned long long used_bytes;
	unsigned gpu_instance, compute_instance;
};
struct memory_info {
	unsigned long long total, free, used;
};
struct utilization {
	unsigned gpu, memory;
};

static struct {
	void *lib;
	unsigned count;
	char why[200];
	const char *(*error_string)(int);
} nvml;

const char *nvml_why(void)
{
	return nvml.why;
}

/* NULL when this driver's library has no such call. */
static void *call_named(const char *name)
{
	void *fn = nvml.lib ? dlsym(nvml.lib, name) : NULL;

	if (nvml.lib && !fn)
		snprintf(nvml.why, sizeof nvml.why, "this driver's NVML has no %s", name);
	return fn;
}

static int said(int rc, const char *name)
{
	if (rc)
		snprintf(nvml.why, sizeof nvml.why, "%s: %s", name,
			 nvml.error_string ? nvml.error_string(rc) : "failed");
	return rc ? -1 : 0;
}

/* Call NAME with the arguments; -1 when it is missing or fails. */
#define NVML(name, types, ...)                            \
	({                                                \
		int(*fn_) types;                          \
		*(void **)&fn_ = call_named(#name);       \
		fn_ ? said(fn_(__VA_ARGS__), #name) : -1; \
	})

void nvml_open(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s%slibnvidia-ml.so.1", sys_root(),
		 sys_faked() ? "/usr/lib/" : "");
	nvml.lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!nvml.lib) {
		snprintf(nvml.why, sizeof nvml.why, "libnvidia-ml.so.1 does not load");
		return;
	}
	*(void **)&nvml.error_string = dlsym(nvml.lib, "nvmlErrorString");
	if (NVML(nvmlInit_v2, (void)) ||
	    NVML(nvmlDeviceGetCount_v2, (unsigned *), &nvml.count))
		nvml_close();
}

void nvml_close(void)
{
	int (*shutdown)(void);

	if (!nvml.lib)
		return;
	*(void **)&shutdown = dlsym(nvml.lib, "nvmlShutdown");
	if (shutdown)
		shutdown();
	dlclose(nvml.lib);
	nvml.lib = NULL;
	nvml.count = 0;
}

unsigned nvml_count(void)
{
	return nvml.count;
}

void *nvml_handle(const char *bdf)
{
	void *gpu = NULL;

	return NVML(nvmlDeviceGetHandleByPciBusId_v2, (const char *, void **), bdf, &gpu)
		       ? NULL
		       : gpu;
}

void *nvml_at(unsigned i, char *bdf, size_t n)
{
	struct pci_info pci = {0};
	void *gpu = NULL;

	*bdf = 0;
	if (NVML(nvmlDeviceGetHandleByIndex_v2, (unsigned, void **), i, &gpu))
		return NULL;
	if (!NVML(nvmlDeviceGetPciInfo_v3, (void *, struct pci_info *), gpu, &pci))
		snprintf(bdf, n, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
	return gpu;
}

int nvml_name(void *gpu, char *name, unsigned n)
{
	return NVML(nvmlDeviceGetName, (void *, char *, unsigned), gpu, name, n);
}

int nvml_cc(void *gpu, int *major, int *minor)
{
	return NVML(nvmlDeviceGetCudaComputeCapability, (void *, int *, int *), gpu,
		    major, minor);
}

int nvml_sm_mhz(void *gpu, unsigned *now, unsigned *max)
{
	if (NVML(nvmlDeviceGetClockInfo, (void *, int, unsigned *), gpu, NVML_CLOCK_SM,
		 now))
		return -1;
	return NVML(nvmlDeviceGetMaxClockInfo, (void *, int, unsigned *), gpu,
		    NVML_CLOCK_SM, max);
}

/* By its older name, then by the one since driver 535. */
int nvml_reasons(void *gpu, unsigned long long *mask)
{
	if (!NVML(nvmlDeviceGetCurrentClocksThrottleReasons,
		  (void *, unsigned long long *), gpu, mask))
		return 0;
	return NVML(nvmlDeviceGetCurrentClocksEventReasons,
		    (void *, unsigned long long *), gpu, mask);
}

int nvml_mig(void *gpu, unsigned *now, unsigned *pending)
{
	return NVML(nvmlDeviceGetMigMode, (void *, unsigned *, unsigned *), gpu, now,
		    pending);
}

int nvml_bar1(void *gpu, unsigned long long *total_bytes)
{
	struct memory_info m = {0};
	int rc = NVML(nvmlDeviceGetBAR1MemoryInfo, (void *, struct memory_info *), gpu,
		      &m);

	*total_bytes = m.total;
	return rc;
}

int nvml_memory(void *gpu, unsigned long long *total_bytes)
{
	struct memory_info m = {0};
	int rc = NVML(nvmlDeviceGetMemoryInfo, (void *, struct memory_info *), gpu, &m);

	*total_bytes = m.total;
	return rc;
}

int nvml_busy(void *gpu, unsigned *percent)
{
	struct utilization u = {0};
	int rc = NVML(nvmlDeviceGetUtilizationRates, (void *, struct utilization *), gpu,
		      &u);

	*percent = u.gpu;
	return rc;
}

int nvml_users(void *gpu, unsigned *pids, unsigned max)
{
	struct process_info p[USERS_MAX];
	unsigned n = USERS_MAX;
	int others = 0;

	if (NVML(nvmlDeviceGetComputeRunningProcesses_v3,
		 (void *, unsigned *, struct process_info *), gpu, &n, p))
		return -1;
	for (unsigned i = 0; i < n && i < USERS_MAX; i++) {
		if (p[i].pid == (unsigned)getpid())
			continue;
		if ((unsigned)others < max)
			pids[others] = p[i].pid;
		others++;
	}
	return others;
}
