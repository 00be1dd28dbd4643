/* SPDX-License-Identifier: Apache-2.0
 * doctor.h: what the files of `putscope doctor` share.
 *
 * A check reads, never sets.  It fills one finding: what was found, what it means for the numbers, and the command that
 * puts it right.  What cannot be read is unknown, with the reason; nothing is guessed.
 */
#ifndef PUTSCOPE_DOCTOR_H
#define PUTSCOPE_DOCTOR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOCTOR_TEXT 640 /* bytes of each sentence */
#define DOCTOR_PATH 512
#define DOCTOR_DEVICES 64 /* GPUs, and as many NICs */
#define DOCTOR_AS_ROOT "sudo build/putscope doctor"

/* ok: nothing to do.  warn: numbers come out, but worse or not comparable.  fail: what it is about cannot be measured
 * until it is put right.  unknown: could not be read. */
enum doctor_status { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL, DOCTOR_UNKNOWN };

struct finding {
	enum doctor_status status;
	char found[DOCTOR_TEXT], means[DOCTOR_TEXT], remedy[DOCTOR_TEXT];
};

/* A PCI function (bdf "" when it has none, as a software NIC) and the name that its driver gives it. */
struct doctor_dev {
	char bdf[32];		/* 0000:18:00.0 */
	char name[64];		/* mlx5_0; of a GPU the bdf */
	char path[DOCTOR_PATH]; /* pci0000:16/0000:16:01.0/..., as in /sys/devices */
	char driver[32];	/* "" when none is bound */
	int numa;		/* -1: not told */
	void *nvml;		/* the GPU's handle, NULL when NVML does not know it */
};

struct doctor {
	struct doctor_dev gpus[DOCTOR_DEVICES], nics[DOCTOR_DEVICES];
	unsigned gpu_count, nic_count;
	unsigned idle_nics; /* ConnectX functions on the bus that no driver serves */
	bool virtual_nic;   /* vcx plays the NIC in this process */
	bool pci_read;	    /* /sys/bus/pci/devices could be listed */
};

/* What one run of a check is about; NULL where it is about the machine. */
struct subject {
	const struct doctor_dev *gpu, *nic;
};

typedef void doctor_check_fn(const struct doctor *d, const struct subject *s,
			     struct finding *f);
doctor_check_fn check_machine, check_cpus, check_load, check_governor, check_tsc,
	check_memlock, check_hugepages, check_numa, check_iommu;
doctor_check_fn check_gpu, check_gpu_driver, check_gpu_peer_mapping, check_gpu_bar1,
	check_cuda, check_gpu_clocks, check_gpu_mig, check_gpu_mps, check_gpu_users;
doctor_check_fn check_nic, check_nic_link, check_nic_gid, check_nic_relaxed_ordering,
	check_nic_cqe_compression, check_nic_flow_control, check_nic_users;
doctor_check_fn check_gpu_pcie, check_nic_pcie, check_nic_mrrs, check_distance, check_acs,
	check_pinning;
doctor_check_fn check_reg_host, check_reg_gpu;

/* ---- a finding ---- */
#define DOCTOR_PRINTF(a, b) __attribute__((format(printf, a, b)))
void say_found(struct finding *f, const char *fmt, ...) DOCTOR_PRINTF(2, 3); /* appends */
/* Status and meaning. */
void say_status(struct finding *f, enum doctor_status s, const char *fmt, ...)
	DOCTOR_PRINTF(3, 4);
void say_remedy(struct finding *f, const char *fmt, ...)
	DOCTOR_PRINTF(2, 3); /* appends */
/* Unknown: `what` could not be read for the reason -errno; a refusal says to run as root. */
void say_unread(struct finding *f, const char *what, int err);

/* ---- files: all below /sys and /proc, through one root (PUTSCOPE_SYSROOT, for tests) ---- */
bool sys_faked(void); /* a root is set: the live machine must not be asked */
const char *sys_root(void);
/* First line of a file without its newline, unprintable bytes as '?'; 0 or -errno. */
int sys_line(char *buf, size_t n, const char *fmt, ...) DOCTOR_PRINTF(3, 4);
/* A whole text file (at most 1 MiB), to be freed; NULL with *err. */
char *sys_text(int *err, const char *fmt, ...) DOCTOR_PRINTF(2, 3);
/* Bytes of a file from its start: how many, or -errno. */
long sys_bytes(void *buf, size_t n, const char *fmt, ...) DOCTOR_PRINTF(3, 4);
int sys_number(long long *v, const char *fmt, ...) DOCTOR_PRINTF(2, 3);
/* Names in a folder, sorted, without those that begin with a dot; free *names with sys_names_free.  Count or -errno. */
int sys_names(char ***names, const char *fmt, ...) DOCTOR_PRINTF(2, 3);
void sys_names_free(char **names, int n);
/* Where a link leads, without the root; 0 or -errno. */
int sys_real(char *buf, size_t n, const char *fmt, ...) DOCTOR_PRINTF(3, 4);
/* What a link says, be it there or not; 0 or -errno. */
int sys_link(char *buf, size_t n, const char *fmt, ...) DOCTOR_PRINTF(3, 4);
bool sys_there(const char *fmt, ...) DOCTOR_PRINTF(1, 2);
/* The text behind `key` at the start of a line of /proc text, blanks and colons skipped; 0 or -ENOENT. */
int text_field(const char *text, const char *key, char *buf, size_t n);
bool word_in(const char *text, const char *word);
/* "0-3,8": how many; is every member of a in b?  -1 when it does not parse. */
int cpulist_count(const char *list);
int cpulist_within(const char *a, const char *b);

/* ---- devices ---- */
void doctor_dev_pci(struct doctor_dev *dev, const char *bdf);
/* The NIC nearest to a GPU, NULL when there is none with a PCI path. */
const struct doctor_dev *nearest_nic(const struct doctor *d,
				     const struct doctor_dev *gpu);
/* Length of the common beginning of two paths, in whole components. */
size_t path_common(const char *a, const char *b);
int gpu_index(const struct doctor *d, const struct doctor_dev *gpu);
/* Map a doorbell page of the first GPU's NIC to that GPU: 1 it works, 0 the driver refuses, -1 not tried; why in words. */
int uar_trial(const struct doctor *d, char *why, size_t n);
/* The network interface of a NIC, "" when it has none. */
void nic_interface(const struct doctor_dev *nic, char *buf, size_t n);
#endif
