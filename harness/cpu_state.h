/* SPDX-License-Identifier: Apache-2.0
 * cpu_state.h: which CPUs are near a NIC, and at what clock a CPU runs at this moment.
 */
#ifndef PUTSCOPE_CPU_STATE_H
#define PUTSCOPE_CPU_STATE_H
#include <stddef.h>

#include "clock.h"

struct ibv_context;

/* n CPUs for spinning threads beside a NIC: those of its NUMA node that this process may use, then the others it may use,
 * none of the first `skip`; used again from the start when there are fewer than n. */
void cpus_near(const struct ibv_context *nic, unsigned skip, int *cpus, unsigned n);

/* Nanoseconds of one cycle of this thread's core now, from a chain of dependent instructions of one cycle each: needs no
 * privilege, and takes some 10 us, during which the clock may already rise. */
double cpu_cycle_ns(const struct clock_fit *host);
/* What cpufreq says of a CPU: its governor ("": not readable, as in most virtual machines), and its clock in MHz (NAN). */
void cpu_governor(int cpu, char *name, size_t size);
double cpu_mhz(int cpu);
#endif
