/* SPDX-License-Identifier: Apache-2.0
 * vcx.h: what the virtual ConnectX offers to a program that runs under it; found with dlsym(RTLD_DEFAULT, ...).
 *
 * vcx is a preload library under the unmodified libibverbs and libmlx5: it plays the uverbs kernel side (ioctl on a
 * memfd) and the NIC (a thread that polls the doorbell pages, walks work queues, moves bytes and writes CQEs).
 */
#ifndef VCX_H
#define VCX_H
#include <stddef.h>
#include <stdint.h>

#include "hop.h"

/* This process declares that n of its threads spin while they wait, besides the NIC's thread. */
void vcx_app_spinners(int n);
/* This process pins its spinning threads to the first n of the CPUs that it may use: the NIC's thread keeps off them where
 * that leaves it one. 0: it may use all again. */
void vcx_app_pinned(int n);
/* One step of this process's NIC by the calling thread; 1 if it found work.  Never waits for a lock. */
int vcx_step(void);
/* 1 while the spinners of the fabric exceed the CPUs: pollers should call vcx_step or yield. */
int vcx_polite(void);
/* From now on every work request waits ns more at HOP (the spelling of delay.HOP), on top of the option; -1: no such hop. */
int vcx_delay(const char *hop, uint64_t ns);

/* What the NIC itself saw of one work request: nanoseconds between its moments, -1 where it did not pass one.  In the order
 * of enum vcx_hop (hop.h).  The truth that a solver is compared with, and may not use. */
struct vcx_stamp {
	uint32_t qpn, bytes;
	uint16_t index;
	uint8_t opcode, blueflame;
	double ns[VCX_HOPS];
};
void vcx_stamping(int on);
/* Take the oldest stamps, at most n; how many.  Of those that nobody takes the oldest are lost. */
int vcx_stamps(struct vcx_stamp *v, int n);

/* The statistics as JSON text, as snprintf: returns the length that is needed. */
int vcx_stats(char *buf, size_t n);
#endif
