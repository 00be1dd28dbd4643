/* SPDX-License-Identifier: Apache-2.0
 * doctor_gpu_state.c: in what state the GPU is: clocks and throttling, MIG, MPS, who else uses it.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "doctor_nvml.h"

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
		now = 0;
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
