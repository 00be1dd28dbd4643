/* SPDX-License-Identifier: Apache-2.0
 * event.h: what is due later: the virtual NIC's delays are due times in a queue, never a sleep in the path.
 */
#ifndef VCX_EVENT_H
#define VCX_EVENT_H
#include <stdbool.h>
#include <stdint.h>

/* Ticks of the host's counter, and how many of them n nanoseconds are (and back). */
uint64_t event_now(void);
uint64_t event_ticks(uint64_t ns);
double event_ns(int64_t ticks);
/* Measures the tick's length: some milliseconds, once. */
void event_calibrate(void);

/* Call fn(arg, due) when `due` has come; those of one due time in the order of their making.  Fabric locked. */
void event_at(uint64_t due, void (*fn)(void *arg, uint64_t due), void *arg);
bool event_pending(void); /* needs no lock */
bool event_due(
	void); /* is something due?  Needs no lock: asked by whoever runs the NIC */
bool event_run(void); /* run what is due; fabric locked; true when something ran */
#endif
