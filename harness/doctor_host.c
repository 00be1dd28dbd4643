/* SPDX-License-Identifier: Apache-2.0
 * doctor_host.c: the machine: CPUs, clock, memory limits, NUMA, IOMMU.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define CPU_DIR "/sys/devices/system/cpu"
#define SPINNERS \
	4 /* device thread, proxy worker, virtual NIC, and one left for the rest */
#define BUSY_LOAD 0.5		 /* of the CPUs, as `report` warns */
#define CAP_IPC_LOCK_BIT 14	 /* linux/capability.h */
#define MEMLOCK_MIN (64ll << 20) /* queues and buffers of one run, with room */

/* Bare metal or not, where that can be told: 1 virtual, 0 not, -1 unknown. */
static int hypervisor(char *by, size_t n)
{
	char flags[8192], product[128];
	int err;
	char *cpuinfo = sys_text(&err, "/proc/cpuinfo");
	bool x86 = cpuinfo && !text_field(cpuinfo, "flags", flags, sizeof flags);
	bool flag = x86 && word_in(flags, "hypervisor");

	free(cpuinfo);
	sys_line(by, n, "/sys/class/dmi/id/sys_vendor");
	if (!sys_line(product, sizeof product, "/sys/class/dmi/id/product_name"))
		snprintf(by + strlen(by), n - strlen(by), " %s", product);
	if (flag)
		return 1;
	return x86 ? 0 : sys_there("/sys/hypervisor/type") ? 1 : -1;
}

void check_machine(const struct doctor *d, const struct subject *s, struct finding *f)
{
	char by[256] = "";
	int virtual = hypervisor(by, sizeof by);

	(void)d;
	(void)s;
	if (virtual < 0) {
		say_found(f,
			  "virtual machine or bare metal: not told by /proc/cpuinfo%s%s",
			  *by ? "; it says to be " : "", by);
		say_status(f, DOCTOR_UNKNOWN,
			   "in a virtual machine, tails are partly the hypervisor's");
		say_remedy(f, "systemd-detect-virt");
		return;
	}
	say_found(f, "%s%s%s", virtual ? "virtual machine" : "bare metal",
		  *by ? ": " : "", by);
	if (virtual) {
		say_status(
			f, DOCTOR_WARN,
			"a virtual CPU can be taken away in the middle of a put: p99 and max are partly the "
			"hypervisor's; PCIe paths, IOMMU and ACS shown here are the guest's, not the machine's");
		say_remedy(
			f,
			"none from inside: measure on bare metal, or ask for pinned virtual CPUs");
	} else {
		say_status(f, DOCTOR_OK, "tails are the machine's own");
	}
}

void check_cpus(const struct doctor *d, const struct subject *s, struct finding *f)
{
	char allowed[1024], online[1024], quota[64];
	int err, n;
	char *status = sys_text(&err, "/proc/self/status");
	double limit = 0, period = 0;

	(void)d;
	(void)s;
	if (!status || text_field(status, "Cpus_allowed_list", allowed, sizeof allowed)) {
		say_unread(f, "/proc/self/status", status ? -EINVAL : err);
		free(status);
		return;
	}
	free(status);
	n = cpulist_count(allowed);
	sys_line(online, sizeof online, CPU_DIR "/online");
	say_found(f, "%d CPUs allowed (%.200s) of those online (%.200s)", n, allowed,
		  *online ? online : "not told");
	/* cgroup v2, as a container sees its own: "max 100000" or "200000 100000" (microseconds) */
	if (!sys_line(quota, sizeof quota, "/sys/fs/cgroup/cpu.max") &&
	    sscanf(quota, "%lf %lf", &limit, &period) == 2 && period > 0)
		say_found(f, ", and a quota of %.1f CPUs", limit / period);
	if (n >= SPINNERS && (period <= 0 || limit / period >= SPINNERS)) {
		say_status(f, DOCTOR_OK, "each thread that spins has a core of its own");
		return;
	}
	say_status(
		f, DOCTOR_WARN,
		"fewer than %d: threads that spin share cores, rows are marked oversubscribed, and latencies are "
		"the scheduler's",
		SPINNERS);
	if (cpulist_count(online) >= SPINNERS)
		say_remedy(
			f,
			"taskset -c %s build/putscope run   (in a container: lift its CPU set and quota)",
			online);
	else
		say_remedy(f, "none here: measure on a machine with %d CPUs or more",
			   SPINNERS);
}

void check_load(const struct doctor *d, const struct subject *s, struct finding *f)
{
	char line[128], online[1024];
	double load;
	int cpus, err = sys_line(line, sizeof line, "/proc/loadavg");

	(void)d;
	(void)s;
	if (err || sscanf(line, "%lf", &load) != 1) {
		say_unread(f, "/proc/loadavg", err ? err : -EINVAL);
		return;
	}
	err = sys_line(online, sizeof online, CPU_DIR "/online");
	cpus = cpulist_count(online);
	if (err || cpus < 1) {
		say_unread(f, CPU_DIR "/online", err ? err : -EINVAL);
		return;
	}
	say_found(f, "load of the last minute %.2f on %d CPUs", load, cpus);
	if (load <= BUSY_LOAD * cpus) {
		say_status(f, DOCTOR_OK, "others leave the CPUs alone");
		return;
	}
	say_status(
		f, DOCTOR_WARN,
		"others use the CPUs: latencies of proxy and host paths, and all tails, are partly theirs");
	say_remedy(
		f,
		"ps -eo pid,user,pcpu,comm --sort=-pcpu | head   (then stop what need not run)");
}

void check_governor(const struct doctor *d, const struct subject *s, struct finding *f)
{
	char **cpus, governor[32], other[32] = "";
	int n = sys_names(&cpus, CPU_DIR), read = 0, fast = 0, err = 0, rc;

	(void)d;
	(void)s;
	for (int i = 0; i < n; i++) {
		if (strncmp(cpus[i], "cpu", 3) || cpus[i][3] < '0' || cpus[i][3] > '9')
			continue;
		rc = sys_line(governor, sizeof governor,
			      CPU_DIR "/%s/cpufreq/scaling_governor", cpus[i]);
		err = rc && rc != -ENOENT ? rc : err;
		read += !rc;
		fast += !rc && !strcmp(governor, "performance");
		if (!rc && strcmp(governor, "performance") && !*other)
			strcpy(other, governor);
	}
	sys_names_free(cpus, n);
	if (!read && (err || n < 0)) {
		say_unread(f, CPU_DIR "/cpu*/cpufreq", err ? err : n);
		return;
	}
	if (!read) {
		say_found(f, "no CPU has a cpufreq governor");
		say_status(
			f, DOCTOR_UNKNOWN,
			"firmware or a hypervisor sets the CPUs' clocks, out of sight");
		return;
	}
	say_found(f, "%d of %d CPUs with governor performance%s%s", fast, read,
		  *other ? ", others " : "", other);
	if (fast == read) {
		say_status(f, DOCTOR_OK, "the CPUs hold their clocks");
		return;
	}
	say_status(
		f, DOCTOR_WARN,
		"a CPU that waits slows down: proxy and host latencies come out longer and spread, the GPU's issue does not");
	say_remedy(f, "echo performance | sudo tee " CPU_DIR
		      "/cpu*/cpufreq/scaling_governor");
}

void check_tsc(const struct doctor *d, const struct subject *s, struct finding *f)
{
	char flags[8192], source[64];
	int err;
	char *cpuinfo = sys_text(&err, "/proc/cpuinfo");
	bool constant, nonstop;

	(void)d;
	(void)s;
	sys_line(source, sizeof source,
		 "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	if (!cpuinfo) {
		say_unread(f, "/proc/cpuinfo", err);
		return;
	}
	if (text_field(cpuinfo, "flags", flags, sizeof flags)) {
		bool arm = !text_field(cpuinfo, "CPU implementer", flags, sizeof flags);

		free(cpuinfo);
		say_found(f, arm ? "aarch64: cntvct_el0" : "no flags in /proc/cpuinfo");
		if (arm)
			say_status(
				f, DOCTOR_OK,
				"the architecture's counter keeps one rate on all cores");
		else
			say_status(
				f, DOCTOR_UNKNOWN,
				"whether the CPU's counter keeps its rate is not known");
		return;
	}
	free(cpuinfo);
	constant = word_in(flags, "constant_tsc");
	nonstop = word_in(flags, "nonstop_tsc");
	say_found(f, "constant_tsc %s, nonstop_tsc %s, kernel clock source %s",
		  constant ? "yes" : "no", nonstop ? "yes" : "no",
		  *source ? source : "not told");
	if (constant && nonstop) {
		say_status(f, DOCTOR_OK,
			   "ticks of the CPU are nanoseconds by one factor");
		return;
	}
	say_status(
		f, DOCTOR_WARN,
		"the CPU's counter may change its rate: proxy and host times in ns may be off; each run fits its "
		"rate and states the drift");
	say_remedy(
		f,
		"measure on a CPU with an invariant counter; in a virtual machine start it with the CPU flag +invtsc");
}

void check_memlock(const struct doctor *d, const struct subject *s, struct finding *f)
{
	char limit[128], caps[64], soft[32], hard[32];
	int err;
	char *limits = sys_text(&err, "/proc/self/limits");
	char *status = sys_text(&err, "/proc/self/status");
	bool cap = status && !text_field(status, "CapEff", caps, sizeof caps) &&
		   strtoull(caps, NULL, 16) >> CAP_IPC_LOCK_BIT & 1;
	bool real_nic = d->nic_count && !d->virtual_nic;

	(void)s;
	if (!limits || text_field(limits, "Max locked memory", limit, sizeof limit) ||
	    sscanf(limit, "%31s %31s", soft, hard) != 2) {
		say_unread(f, "/proc/self/limits", -EINVAL);
		goto out;
	}
	say_found(f, "locked memory: soft limit %s, hard limit %s bytes%s", soft, hard,
		  cap ? "; CAP_IPC_LOCK sets it aside" : "");
	if (cap || !strcmp(soft, "unlimited")) {
		say_status(f, DOCTOR_OK, "registering memory is not held back");
		goto out;
	}
	if (atoll(soft) >= MEMLOCK_MIN)
		say_status(f, DOCTOR_WARN, "large sizes may fail to register");
	else if (real_nic)
		say_status(
			f, DOCTOR_FAIL,
			"too little: the NIC's queues and buffers cannot be registered");
	else
		say_status(
			f, DOCTOR_WARN,
			"enough for the virtual NIC; a real one will refuse to register");
	if (!strcmp(hard, "unlimited"))
		say_remedy(f, "ulimit -l unlimited");
	else
		say_remedy(
			f,
			"echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/90-memlock.conf   (then log in again)");
out:
	free(limits);
	free(status);
}

void check_hugepages(const struct doctor *d, const struct subject *s, struct finding *f)
{
	char total[64] = "", unused[64] = "", size[64] = "", thp[128];
	int err;
	char *text = sys_text(&err, "/proc/meminfo");

	(void)d;
	(void)s;
	if (!text) {
		say_unread(f, "/proc/meminfo", err);
		return;
	}
	err = text_field(text, "HugePages_Total", total, sizeof total) ||
	      text_field(text, "HugePages_Free", unused, sizeof unused) ||
	      text_field(text, "Hugepagesize", size, sizeof size);
	free(text);
	if (err) {
		say_found(f, "/proc/meminfo names no huge pages");
		say_status(f, DOCTOR_UNKNOWN, "the kernel may have none");
		return;
	}
	say_found(f, "%s huge pages of %s, %s free", total, size, unused);
	if (!sys_line(thp, sizeof thp, "/sys/kernel/mm/transparent_hugepage/enabled"))
		say_found(f, "; transparent: %s", thp);
	say_status(
		f, DOCTOR_OK,
		"putscope's buffers are ordinary pages, so its numbers do not depend on them");
}

void check_numa(const struct doctor *d, const struct subject *s, struct finding *f)
{
	char nodes[128];
	long long balancing = 0;
	int err = sys_line(nodes, sizeof nodes, "/sys/devices/system/node/online");
	int n = cpulist_count(nodes);

	(void)s;
	if (err) {
		say_unread(f, "/sys/devices/system/node/online", err);
		return;
	}
	err = sys_number(&balancing, "/proc/sys/kernel/numa_balancing");
	say_found(f, "%d NUMA node%s (%s), automatic balancing %s", n, n == 1 ? "" : "s",
		  nodes,
		  err	      ? "not told"
		  : balancing ? "on"
			      : "off");
	for (unsigned i = 0; i < d->gpu_count; i++)
		say_found(f, ", GPU %s on node %d", d->gpus[i].name, d->gpus[i].numa);
	for (unsigned i = 0; !d->virtual_nic && i < d->nic_count; i++)
		say_found(f, ", %s on node %d", d->nics[i].name, d->nics[i].numa);
	if (n == 1)
		say_status(f, DOCTOR_OK, "all memory is equally near");
	else if (err)
		say_status(f, DOCTOR_UNKNOWN,
			   "whether the kernel moves pages during a run is not known");
	else if (!balancing)
		say_status(f, DOCTOR_OK, "the kernel does not move pages during a run");
	else
		say_status(
			f, DOCTOR_WARN,
			"the kernel unmaps and moves pages while a run goes on: rare long delays in proxy and host paths");
	if (n > 1 && !err && balancing)
		say_remedy(f, "sudo sysctl kernel.numa_balancing=0");
}
