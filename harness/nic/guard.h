/* SPDX-License-Identifier: Apache-2.0
 * guard.h: proof that the CPU rings no doorbell while the GPU submits.
 *
 * The CPU's own mapping of the doorbell pages is made inaccessible (mprotect) while a GPU-submitted launch is timed; the GPU
 * and the NIC have mappings of their own.  A CPU that rings meanwhile takes a SIGSEGV, which is counted and let through, so
 * that a run ends with a finding and not with a crash.  Used on one thread (that of the engine).
 */
#ifndef PUTSCOPE_GUARD_H
#define PUTSCOPE_GUARD_H
#include <stdbool.h>
#include <stddef.h>

enum guard_state {
	GUARD_UNTRIED, /* no path that a GPU submits was run */
	GUARD_HOST_SM, /* a host thread is the SM: it rings through the CPU's mapping */
	GUARD_BREAKS,  /* this driver's GPU mapping does not survive it: not used */
	GUARD_HOLDS,
};
const char *guard_state_name(enum guard_state s);
void guard_set(enum guard_state s);
enum guard_state guard_get(void);

/* Register the page around p (up to 64 of them; more: -ENOSPC), forget it again.  The page must stay mapped in between. */
int guard_add(void *p);
void guard_remove(void *p);
/* From on to off no CPU access to the pages goes unseen; without GUARD_HOLDS both do nothing.  off: accesses seen. */
int guard_on(void);
unsigned guard_off(void);
unsigned long guard_launches(void); /* that ended with no access */
unsigned long guard_touches(void);
#endif
