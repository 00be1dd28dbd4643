/* SPDX-License-Identifier: Apache-2.0
 * doctor_gpu.c: the GPU: driver, doorbell mapping, BAR1, clocks, MIG, MPS, who else uses it.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "doctor_nvml.h"
#include "sm/sm.h"

#define PARAMS "/proc/driver/nvidia/params"
#define CC_MIN 8 /* what the Makefile builds for */
#define MIB (1ull << 20)
#define USERS_SHOWN 4
#define BUSY_PERCENT 5u

/* NVML does not know this GPU, or a call failed: unknown, with its words. */
static void nvml_unread(struct finding *f, const char *what)
{
	say_found(f, "%s cannot be read: %s", what, nvml_why());
	say_status(f, DOCTOR_UNKNOWN, "not known, so nothing is said about it");
	if (strstr(nvml_why(), "ermission"))
		say_remedy(f, DOCTOR_AS_ROOT);
}

static void no_gpu(const struct doctor *d, struct finding *f)
{
	say_found(f, "no NVIDIA GPU %s",
		  d->pci_read ? "on the PCI bus"
			      : "known to NVML, and the PCI bus cannot be read");
	say_status(
		f, d->pci_read ? DOCTOR_WARN : DOCTOR_UNKNOWN,
		"a host thread plays the SM: rows say virtual, and orderings do not rank like a GPU's");
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

#define OVERRIDE_REMEDY                                                                     \
	"echo 'options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1;\"' | sudo tee " \
	"/etc/modprobe.d/putscope-nvidia.conf && sudo update-initramfs -u && sudo reboot"

/* What a trial says counts; without one, what the module was loaded with. */
void check_gpu_peer_mapping(const struct doctor *d, const struct subject *s,
			    struct finding *f)
{
	char dwords[256], why[160];
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
	} else if (tried < 0 && (d->virtual_nic || !d->nic_count)) {
		say_status(
			f, DOCTOR_OK,
			"not needed by the virtual NIC; a ConnectX could not be rung by the SM");
	} else {
		say_status(
			f, DOCTOR_FAIL,
			"the driver refuses to map the NIC's doorbell page: the gpu path cannot run, proxy and host paths can");
		say_remedy(
			f,
			set ? "dmesg | tail   (the module has the option, and refuses all the same)"
			    : OVERRIDE_REMEDY);
	}
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

void check_gpu_clocks(const struct doctor *d, const struct subject *s, struct finding *f)
{
	static const struct {
		unsigned bit;
		const char *word;
	} words[] = {
		{NVML_REASON_IDLE, "idle"},
		{NVML_REASON_APP_CLOCKS, "application clocks"},
		{NVML_REASON_POWER_CAP, "power cap"},
		{NVML_REASON_HW_SLOWDOWN, "hardware slowdown"},
		{NVML_REASON_SW_THERMAL, "software thermal limit"},
		{NVML_REASON_HW_THERMAL, "hardware thermal limit"},
		{NVML_REASON_POWER_BRAKE, "power brake"},
	};
	unsigned now, max;
	unsigned long long mask;

	if (!s->gpu->nvml || nvml_sm_mhz(s->gpu->nvml, &now, &max) ||
	    nvml_reasons(s->gpu->nvml, &mask)) {
		nvml_unread(f, "clocks and throttling");
		return;
	}
	say_found(f, "SM clock %u MHz, at most %u; held back by:", now, max);
	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		if (mask & words[i].bit)
			say_found(f, " %s,", words[i].word);
	f->found[strlen(f->found) - 1] = 0;
	if (!mask)
		say_found(f, " nothing");
	if (mask & NVML_REASONS_SLOW) {
		say_status(
			f, DOCTOR_WARN,
			"the SM runs slower than it can: issue and poll come out longer, and change from run to run");
		say_remedy(
			f,
			"nvidia-smi -i %d -q -d PERFORMANCE,POWER,TEMPERATURE   (cool it, or raise its limit: sudo nvidia-smi -i %d -pl WATTS)",
			gpu_index(d, s->gpu), gpu_index(d, s->gpu));
	} else if (mask & NVML_REASON_APP_CLOCKS) {
		say_status(f, DOCTOR_WARN,
			   "somebody set the clocks: issue and poll scale with them");
		say_remedy(f, "sudo nvidia-smi -i %d -rac", gpu_index(d, s->gpu));
	} else {
		say_status(
			f, DOCTOR_OK,
			"not throttled; to hold the clock for a series of runs: sudo nvidia-smi -i %d -lgc %u,%u",
			gpu_index(d, s->gpu), max, max);
	}
}

void check_gpu_mig(const struct doctor *d, const struct subject *s, struct finding *f)
{
	unsigned now = 0, pending = 0;

	if (!s->gpu->nvml) {
		nvml_unread(f, "MIG mode");
		return;
	}
	if (nvml_mig(s->gpu->nvml, &now, &pending)) {
		if (!strstr(nvml_why(), "ot Supported")) {
			nvml_unread(f, "MIG mode");
			return;
		}
		say_found(f, "this GPU has no MIG");
	} else {
		say_found(f, "MIG %s%s", now ? "on" : "off",
			  now != pending ? ", to change at the next reset" : "");
	}
	if (!now) {
		say_status(f, DOCTOR_OK, "the whole GPU is measured");
		return;
	}
	say_status(
		f, DOCTOR_WARN,
		"a slice is measured, whose L2 and memory paths are not the whole GPU's; others may share the chip");
	say_remedy(f, "sudo nvidia-smi -i %d -mig 0", gpu_index(d, s->gpu));
}

/* Processes by name: comm is cut to 15 characters by the kernel. */
static int processes_named(const char *comm)
{
	char **pids, name[32];
	int n = sys_names(&pids, "/proc"), count = 0;

	for (int i = 0; i < n; i++)
		if (isdigit((unsigned char)pids[i][0]) &&
		    !sys_line(name, sizeof name, "/proc/%s/comm", pids[i]))
			count += !strcmp(name, comm);
	sys_names_free(pids, n);
	return n < 0 ? n : count;
}

void check_gpu_mps(const struct doctor *d, const struct subject *s, struct finding *f)
{
	int n = processes_named("nvidia-cuda-mps");

	(void)d;
	(void)s;
	if (n < 0) {
		say_unread(f, "/proc", n);
	} else if (!n) {
		say_found(f, "no MPS process in sight");
		say_status(f, DOCTOR_OK,
			   "kernels go to the GPU without a server between");
	} else {
		say_found(f, "MPS runs (%d processes)", n);
		say_status(
			f, DOCTOR_WARN,
			"other clients' kernels run beside ours, and launches pass a server: host and launch times change");
		say_remedy(f, "echo quit | sudo nvidia-cuda-mps-control");
	}
}

void check_gpu_users(const struct doctor *d, const struct subject *s, struct finding *f)
{
	unsigned pids[USERS_SHOWN], busy = 0;
	int n = s->gpu->nvml ? nvml_users(s->gpu->nvml, pids, USERS_SHOWN) : -1;
	char comm[64];

	if (n < 0 || nvml_busy(s->gpu->nvml, &busy)) {
		nvml_unread(f, "other users of the GPU");
		return;
	}
	say_found(f, "%d other compute processes", n);
	for (int i = 0; i < n && i < USERS_SHOWN; i++) {
		if (sys_line(comm, sizeof comm, "/proc/%u/comm", pids[i]))
			strcpy(comm, "name not told");
		say_found(f, "%s%u %s", i ? ", " : " (", pids[i], comm);
	}
	say_found(f, "%s; busy %u %% of the last second",
		  n > USERS_SHOWN ? ", ...)"
		  : n		  ? ")"
				  : "",
		  busy);
	if (!n && busy < BUSY_PERCENT) {
		say_status(f, DOCTOR_OK, "nobody else's kernels delay ours");
		return;
	}
	say_status(
		f, DOCTOR_WARN,
		"others' kernels share SMs, L2 and PCIe: latencies may double, tails more");
	say_remedy(
		f,
		"nvidia-smi -i %d --query-compute-apps=pid,name,used_memory --format=csv   (then end what need not run)",
		gpu_index(d, s->gpu));
}
