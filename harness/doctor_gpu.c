/* SPDX-License-Identifier: Apache-2.0
 * doctor_gpu.c: the GPU: is it there, its driver, the mapping of a doorbell page to it, BAR1.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "doctor_nvml.h"
#include "sm/sm.h"

#define PARAMS "/proc/driver/nvidia/params"
#define CC_MIN 8 /* what the Makefile builds for */
#define MIB (1ull << 20)

static void no_gpu(const struct doctor *d, struct finding *f)
{
	say_found(f, "no NVIDIA GPU %s",
		  d->pci_read ? "on the PCI bus"
			      : "known to NVML, and the PCI bus cannot be read");
	say_status(
		f, d->pci_read ? DOCTOR_WARN : DOCTOR_UNKNOWN,
		"a host thread plays the SM: rows say virtual, and orderings do not rank like a GPU's");
	say_remedy(f, "%s",
		   d->pci_read ? "none here: measure on a machine with an NVIDIA GPU"
			       : "");
}

void check_gpu(const struct doctor *d, const struct subject *s, struct finding *f)
{
	const struct doctor_dev *gpu = s->gpu;
	char name[96] = "", info[256];
	int major = 0, minor = 0, err;
	char *text;

	if (!gpu) {
		no_gpu(d, f);
		return;
	}
	if (*gpu->path && strcmp(gpu->driver, "nvidia")) {
		say_found(f, "an NVIDIA GPU with %s%s",
			  *gpu->driver ? "driver " : "no driver", gpu->driver);
		say_status(
			f, DOCTOR_FAIL,
			"CUDA does not see this GPU: no path of a GPU can be measured");
		say_remedy(
			f,
			"sudo modprobe nvidia   (or install it: sudo apt-get install nvidia-open && sudo reboot)");
		return;
	}
	text = sys_text(&err, "/proc/driver/nvidia/gpus/%s/information", gpu->bdf);
	if (gpu->nvml && !nvml_name(gpu->nvml, name, sizeof name))
		say_found(f, "%s", name);
	else if (text && !text_field(text, "Model", info, sizeof info))
		say_found(f, "%s", info);
	else
		say_found(f, "an NVIDIA GPU, model not told");
	free(text);
	if (!gpu->nvml || nvml_cc(gpu->nvml, &major, &minor)) {
		bool mismatch = strstr(nvml_why(), "mismatch");

		say_found(f, "; compute capability not told: %s", nvml_why());
		say_status(
			f, mismatch ? DOCTOR_FAIL : DOCTOR_UNKNOWN,
			mismatch
				? "the driver's module and its libraries are of different versions: CUDA does not start"
				: "NVML does not answer: clocks, MIG and other users stay unknown");
		say_remedy(f, "%s", mismatch ? "sudo reboot" : "nvidia-smi");
		return;
	}
	say_found(f, ", compute capability %d.%d", major, minor);
	if (major >= CC_MIN)
		say_status(
			f, DOCTOR_OK,
			major >= 9
				? "all that putscope measures on a GPU is there"
				: "16 B vector stores with a memory order need 9.0; the rest is there");
	else
		say_status(f, DOCTOR_FAIL,
			   "older than %d.0: putscope's kernels do not load", CC_MIN);
	if (major < CC_MIN)
		say_remedy(
			f,
			"make clean && make GENCODE='-gencode arch=compute_%d%d,code=sm_%d%d'   (not tried on such a GPU)",
			major, minor, major, minor);
}

void check_cuda(const struct doctor *d, const struct subject *s, struct finding *f)
{
	char why[160] = "";
	int n;

	(void)s;
	if (sys_faked()) {
		say_found(f, "not asked: PUTSCOPE_SYSROOT is set");
		say_status(f, DOCTOR_UNKNOWN, "whether CUDA starts is not known");
		return;
	}
	n = sm_gpu_count(why, sizeof why);
	if (n > 0) {
		say_found(f, "CUDA starts and sees %d of %u GPUs", n, d->gpu_count);
		say_status(f, DOCTOR_OK, "kernels run on the GPU");
		return;
	}
	say_found(f, "CUDA sees no GPU: %s", why);
	say_status(f, DOCTOR_FAIL,
		   "the GPU that is there is not used: a host thread would play the SM");
	say_remedy(f, "%s",
		   strstr(why, "without CUDA")
			   ? "sudo apt-get install cuda-toolkit && make clean all"
			   : "nvidia-smi; echo \"$CUDA_VISIBLE_DEVICES\"");
}

/* The first word that looks like 580.95.05. */
static void driver_version(const char *line, char *buf, size_t n)
{
	*buf = 0;
	for (const char *at = line; *at && !*buf; at++) {
		size_t digits = strspn(at, "0123456789");

		if ((at == line || at[-1] == ' ') && digits && at[digits] == '.')
			snprintf(buf, n, "%.*s", (int)strcspn(at, " "), at);
	}
}

void check_gpu_driver(const struct doctor *d, const struct subject *s, struct finding *f)
{
	char line[256], version[32];
	int err = sys_line(line, sizeof line, "/proc/driver/nvidia/version");
	bool open = strstr(line, "Open Kernel Module");

	(void)d;
	(void)s;
	if (err) {
		say_unread(f, "/proc/driver/nvidia/version", err);
		return;
	}
	driver_version(line, version, sizeof version);
	say_found(f, "%s, %s kernel module", *version ? version : "version not told",
		  open ? "open" : "proprietary");
	if (open) {
		say_status(
			f, DOCTOR_OK,
			"GPU memory can be given to a NIC by dmabuf, or by nvidia_peermem");
		return;
	}
	say_status(
		f, DOCTOR_WARN,
		"no dmabuf: GPU memory reaches a NIC only by nvidia_peermem, and memory of the VMM calls not at all");
	say_remedy(
		f,
		"sudo modprobe nvidia_peermem   (or the open module: sudo apt-get install nvidia-open && sudo reboot)");
}

/* Whatever else the module is loaded with stays: dwords is `"KEY=VALUE;..."` with its quotes, or empty. */
static void override_remedy(struct finding *f, char *dwords)
{
	char *kept = dwords + (*dwords == '"');
	size_t n;

	kept[strcspn(kept, "\"")] = 0;
	if (strstr(kept, "PeerMappingOverride"))
		*kept = 0;
	n = strlen(kept);
	say_remedy(
		f,
		"echo 'options nvidia NVreg_RegistryDwords=\"%s%sPeerMappingOverride=1;\"' | sudo tee "
		"/etc/modprobe.d/zz-putscope.conf && sudo update-initramfs -u && sudo reboot",
		kept, n && kept[n - 1] != ';' ? ";" : "");
}

/* What a trial says counts; without one, what the module was loaded with. */
void check_gpu_peer_mapping(const struct doctor *d, const struct subject *s,
			    struct finding *f)
{
	char dwords[256] = "", why[160];
	int err, tried = uar_trial(d, why, sizeof why);
	char *text = sys_text(&err, PARAMS);
	bool set;

	(void)s;
	if (text && text_field(text, "RegistryDwords:", dwords, sizeof dwords))
		err = -ENODATA;
	free(text);
	if (err && tried < 0) {
		say_unread(f, PARAMS, err);
		return;
	}
	set = !err && strstr(dwords, "PeerMappingOverride=1");
	say_found(f, "PeerMappingOverride %s; mapping a doorbell page to the GPU: %s",
		  err	? "not told"
		  : set ? "= 1"
			: "not set",
		  why);
	if (tried > 0 || (tried < 0 && set)) {
		say_status(f, DOCTOR_OK, "the SM can ring a ConnectX");
		return;
	}
	if (tried < 0 && (d->virtual_nic || !d->nic_count)) {
		say_status(
			f, DOCTOR_OK,
			"not needed by the virtual NIC; a ConnectX could not be rung by the SM");
		return;
	}
	say_status(
		f, DOCTOR_FAIL,
		"the driver refuses to map the NIC's doorbell page: the gpu path cannot run, proxy and host paths can");
	if (set)
		say_remedy(
			f,
			"sudo dmesg | tail   (the module has the option, and refuses all the same)");
	else
		override_remedy(f, dwords);
}

/* Size of BAR1: the second line of `resource`, first and last address; NVML where sysfs is hidden. */
static int bar1_bytes(const struct doctor_dev *gpu, unsigned long long *bytes)
{
	unsigned long long first, last;
	int err;
	char *text = sys_text(&err, "/sys/bus/pci/devices/%s/resource", gpu->bdf);
	char *second = text ? strchr(text, '\n') : NULL;

	if (second && sscanf(second + 1, "%llx %llx", &first, &last) == 2 && last > first)
		*bytes = last - first + 1;
	else
		err = err ? err : -ENODATA;
	free(text);
	return err && gpu->nvml && !nvml_bar1(gpu->nvml, bytes) ? 0 : err;
}

void check_gpu_bar1(const struct doctor *d, const struct subject *s, struct finding *f)
{
	unsigned long long bar1 = 0, memory = 0;
	int err = bar1_bytes(s->gpu, &bar1);
	bool known = s->gpu->nvml && !nvml_memory(s->gpu->nvml, &memory);

	(void)d;
	if (err) {
		say_unread(f, "the size of BAR1", err);
		return;
	}
	say_found(f, "BAR1 %llu MiB", bar1 / MIB);
	if (known)
		say_found(f, " for %llu MiB of memory", memory / MIB);
	if (known ? bar1 >= memory : bar1 > 256 * MIB) {
		say_status(f, DOCTOR_OK,
			   "a NIC can reach all buffers of a run in GPU memory");
		return;
	}
	say_status(
		f, DOCTOR_WARN,
		"a NIC reaches only so much GPU memory at a time: large buffers may fail to register");
	say_remedy(
		f,
		"systemctl reboot --firmware-setup   (then switch on Above 4G Decoding and Resizable BAR)");
}
