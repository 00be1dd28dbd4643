/* SPDX-License-Identifier: Apache-2.0
 * doctor_nvml.h: the few calls of NVML that only read, from a library loaded at run time.
 *
 * Prototypes: nvml.h of the CUDA Toolkit 12 and 13.  Each returns 0 or -1 with nvml_why() set.
 */
#ifndef PUTSCOPE_DOCTOR_NVML_H
#define PUTSCOPE_DOCTOR_NVML_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* nvmlClocksEventReasons (nvml.h) */
#define NVML_REASON_IDLE 0x001u
#define NVML_REASON_APP_CLOCKS 0x002u
#define NVML_REASON_POWER_CAP 0x004u
#define NVML_REASON_HW_SLOWDOWN 0x008u
#define NVML_REASON_SW_THERMAL 0x020u
#define NVML_REASON_HW_THERMAL 0x040u
#define NVML_REASON_POWER_BRAKE 0x080u
#define NVML_REASONS_SLOW                                                           \
	(NVML_REASON_POWER_CAP | NVML_REASON_HW_SLOWDOWN | NVML_REASON_SW_THERMAL | \
	 NVML_REASON_HW_THERMAL | NVML_REASON_POWER_BRAKE)

void nvml_open(void); /* once; without the library every call below fails and says so */
void nvml_close(void);
const char *nvml_why(void); /* why the last call failed */
unsigned nvml_count(void);
void *nvml_handle(const char *bdf); /* NULL when NVML does not know it */
void *nvml_at(unsigned i, char *bdf, size_t n);

int nvml_name(void *gpu, char *name, unsigned n);
int nvml_cc(void *gpu, int *major, int *minor);
int nvml_sm_mhz(void *gpu, unsigned *now, unsigned *max);
int nvml_reasons(void *gpu, unsigned long long *mask);
int nvml_mig(void *gpu, unsigned *now, unsigned *pending);
int nvml_bar1(void *gpu, unsigned long long *total_bytes);
int nvml_memory(void *gpu, unsigned long long *total_bytes);
int nvml_busy(void *gpu, unsigned *percent);
/* Compute processes other than this one: at most max pids; the count, or -1. */
int nvml_users(void *gpu, unsigned *pids, unsigned max);
#endif
