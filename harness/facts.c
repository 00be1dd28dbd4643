/* SPDX-License-Identifier: Apache-2.0
 * facts.c: host facts: what is unknown is null.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "env.h"
#include "facts.h"

/* First line of a small file, null when it cannot be read. */
static json_t *line_of(const char *path)
{
	char line[256];
	FILE *f = fopen(path, "r");
	json_t *j = json_null();

	if (!f)
		return j;
	if (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		j = json_string(line);
	}
	fclose(f);
	return j;
}

static json_t *number_in(const char *path)
{
	json_t *line = line_of(path), *j = json_null();

	if (json_is_string(line))
		j = json_integer(atoll(json_string_value(line)));
	json_decref(line);
	return j;
}

/* Value of `key : value` in /proc/cpuinfo, of the first CPU. */
static json_t *cpuinfo(const char *key)
{
	char line[8192];
	FILE *f = fopen("/proc/cpuinfo", "r");
	json_t *j = NULL;

	while (f && !j && fgets(line, sizeof line, f)) {
		char *colon = strchr(line, ':');

		if (!colon || strncmp(line, key, strlen(key)))
			continue;
		colon[strcspn(colon, "\n")] = 0;
		j = json_string(colon + 1 + strspn(colon + 1, " "));
	}
	if (f)
		fclose(f);
	return j ? j : json_null();
}

static json_t *affinity(void)
{
	json_t *j = json_array();
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof set, &set))
		return j;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			json_array_append_new(j, json_integer(i));
	return j;
}

/* An allow-list: nothing else of the environment is written down. */
static json_t *environment(void)
{
	static const char *const names[] = {
		"CUDA_VISIBLE_DEVICES",	       "CUDA_MODULE_LOADING",
		"CUDA_DEVICE_MAX_CONNECTIONS", "MLX5_SHUT_UP_BF",
		"MLX5_POST_SEND_PREFER_BF",    "MLX5_CQE_SIZE",
		"MLX5_SINGLE_THREADED",	       "MLX5_TOTAL_UUARS",
		"MLX5_NUM_LOW_LAT_UUARS",      "OMPI_COMM_WORLD_SIZE",
		"OMPI_COMM_WORLD_RANK",	       "NVIDIA_VISIBLE_DEVICES"};
	json_t *j = json_object();

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (getenv(names[i]))
			json_object_set_new(j, names[i], json_string(getenv(names[i])));
	return j;
}

static json_t *hypervisor(void)
{
	json_t *flags = cpuinfo("flags");
	const char *s = json_string_value(flags);
	json_t *j = s ? json_boolean(strstr(s, " hypervisor") != NULL) : json_null();

	json_decref(flags);
	return j;
}

json_t *facts_rank(int rank, const struct env *env)
{
	struct utsname u;
	double load[1];
	json_t *j;

	if (uname(&u))
		memset(&u, 0, sizeof u);
	j = json_pack("{s:i, s:s, s:s, s:s, s:i, s:I}", "rank", rank, "host", u.nodename,
		      "kernel", u.release, "arch", u.machine, "pid", (int)getpid(),
		      "memory_bytes",
		      (json_int_t)sysconf(_SC_PHYS_PAGES) *
			      (json_int_t)sysconf(_SC_PAGESIZE));
	json_object_set_new(j, "cpu", cpuinfo("model name"));
	json_object_set_new(j, "cpus_online",
			    json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	json_object_set_new(j, "cpus_allowed", affinity());
	json_object_set_new(j, "hypervisor", hypervisor());
	json_object_set_new(
		j, "governor",
		line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
	json_object_set_new(
		j, "cpu_khz",
		number_in("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"));
	json_object_set_new(
		j, "clocksource",
		line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"));
	json_object_set_new(j, "numa_nodes", line_of("/sys/devices/system/node/online"));
	json_object_set_new(j, "nvidia_driver", line_of("/proc/driver/nvidia/version"));
	json_object_set_new(j, "load_1min",
			    getloadavg(load, 1) == 1 ? json_real(load[0]) : json_null());
	json_object_set_new(j, "compiler", json_string(__VERSION__));
	json_object_set_new(j, "environment", environment());
	if (env)
		json_object_update_missing_new(j, env_facts(env));
	return j;
}

static const char *text(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

void facts_print(const json_t *rank)
{
	const json_t *sm = json_object_get(rank, "sm"),
		     *nic = json_array_get(json_object_get(rank, "nics"), 0),
		     *device = json_object_get(sm, "device");

	fprintf(stderr, "putscope: rank %lld: host %s, ",
		(long long)json_integer_value(json_object_get(rank, "rank")),
		text(rank, "host"));
	if (device)
		fprintf(stderr, "GPU %lld (%s), ", (long long)json_integer_value(device),
			text(sm, "name"));
	else
		fputs("no GPU (a host thread plays the SM), ", stderr);
	fprintf(stderr, "NIC %s port %lld (%s, GID %s)\n", text(nic, "device"),
		(long long)json_integer_value(json_object_get(nic, "port")),
		text(nic, "link"), text(nic, "gid"));
}
