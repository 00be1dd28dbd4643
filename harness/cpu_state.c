/* SPDX-License-Identifier: Apache-2.0
 * cpu_state.c: CPUs near a NIC, and their clock.
 */
#include <infiniband/verbs.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_state.h"
#include "sm/sm.h"

#define CPUFREQ "/sys/devices/system/cpu/cpu%d/cpufreq/%s"
#define CHAIN 64u /* instructions of one turn */
#define TURNS 64u /* of one run */
#define RUNS 5u /* the shortest counts: an interrupt makes one longer, nothing shorter */
#define MHZ_PER_KHZ 1e-3

static bool line_of(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "r");
	bool got = f && fgets(line, (int)size, f);

	if (f)
		fclose(f);
	if (got)
		line[strcspn(line, "\n")] = 0;
	return got;
}

/* "0-3,8": each of them into the set. */
static void parse_list(const char *s, cpu_set_t *set)
{
	while (*s >= '0' && *s <= '9') {
		char *end;
		long a = strtol(s, &end, 10), b = a;

		if (*end == '-')
			b = strtol(end + 1, &end, 10);
		for (; a <= b && a < CPU_SETSIZE; a++)
			CPU_SET((int)a, set);
		s = *end == ',' ? end + 1 : end;
	}
}

static void near_set(const struct ibv_context *nic, cpu_set_t *set)
{
	char path[IBV_SYSFS_PATH_MAX + 32], line[1024];

	CPU_ZERO(set);
	snprintf(path, sizeof path, "%s/device/local_cpulist", nic->device->ibdev_path);
	if (line_of(path, line, sizeof line))
		parse_list(line, set);
}

void cpus_near(const struct ibv_context *nic, unsigned skip, int *cpus, unsigned n)
{
	unsigned k = 0, found;
	cpu_set_t near;
	int first = 0;

	near_set(nic, &near);
	for (; sm_cpus() > skip && skip; first++)
		skip -= sm_cpu_allowed(first);
	for (int wanted = 1; wanted >= 0; wanted--)
		for (int cpu = first; cpu < CPU_SETSIZE && k < n; cpu++)
			if (sm_cpu_allowed(cpu) && !!CPU_ISSET(cpu, &near) == wanted)
				cpus[k++] = cpu;
	found = k;
	for (; k < n; k++)
		cpus[k] = cpus[k - found];
}

static uint64_t chain_ticks(void)
{
	uint64_t x = 1, start = clock_host_ticks();

	for (unsigned i = 0; i < TURNS; i++) {
#if defined(__x86_64__)
		__asm__ volatile(".rept 64\n\txorq %1, %0\n\t.endr"
				 : "+r"(x)
				 : "r"(start));
#else
		__asm__ volatile(".rept 64\n\teor %0, %0, %1\n\t.endr"
				 : "+r"(x)
				 : "r"(start));
#endif
	}
	return clock_host_ticks() - start;
}

double cpu_cycle_ns(const struct clock_fit *host)
{
	uint64_t least = chain_ticks();

	for (unsigned i = 1; i < RUNS; i++) {
		uint64_t t = chain_ticks();

		least = t < least ? t : least;
	}
	return (clock_ns(host, least) - host->overhead_ns) / (CHAIN * TURNS);
}

void cpu_governor(int cpu, char *name, size_t size)
{
	char path[128];

	snprintf(path, sizeof path, CPUFREQ, cpu, "scaling_governor");
	if (!line_of(path, name, size))
		*name = 0;
}

double cpu_mhz(int cpu)
{
	char path[128], line[64];

	snprintf(path, sizeof path, CPUFREQ, cpu, "scaling_cur_freq");
	return line_of(path, line, sizeof line) ? MHZ_PER_KHZ * strtod(line, NULL) : NAN;
}
