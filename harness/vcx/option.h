/* SPDX-License-Identifier: Apache-2.0
 * option.h: the options of vcx, one table for the launcher (which checks them) and the library (which obeys them).
 *
 * They travel in the environment variable VCX_OPTIONS, one KEY=VALUE a line.
 */
#ifndef VCX_OPTION_H
#define VCX_OPTION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hop.h"

enum vcx_fault {
	FAULT_ERROR_CQE,
	FAULT_LOST_DOORBELL,
	FAULT_LOST_CQE,
	FAULT_RETRY_EXCEEDED,
	FAULT_RNR,
	FAULT_KINDS
};
enum vcx_refuse {
	REFUSE_UAR_MAP = 1,
	REFUSE_DMABUF = 2,
	REFUSE_PEERMEM = 4,
	REFUSE_PORT = 8,
	REFUSE_GID = 16,
};

struct vcx_option {
	int log;
	bool sink;	    /* mode=sink: complete by doorbell index, read no WQE */
	bool strict_record; /* a doorbell ahead of its record is a violation */
	bool record_recheck; /* as newer NICs: execute when the record follows; else the doorbell is lost */
	unsigned refuse; /* enum vcx_refuse, or'ed */
	uint64_t fault
		[FAULT_KINDS]; /* the Nth WQE (doorbell, for lost-doorbell), 0: never */
	uint64_t delay_ns[VCX_HOPS];
	char stats[1024];  /* file, "" none; %p is the process number */
	char fabric[1024]; /* launcher only: a file that several launchers share */
};
extern struct vcx_option vcx_option;

/* Set one KEY=VALUE; 0, or -1 with the reason in why. */
int vcx_option_set(struct vcx_option *o, const char *pair, char *why, size_t n);
void vcx_option_from_env(void); /* the library: what the launcher has checked */
extern const char *const vcx_fault_names[FAULT_KINDS];
extern const char *const vcx_hop_names[VCX_HOPS];
int vcx_hop_find(const char *name); /* -1: there is none */
extern const char vcx_option_help[];
#endif
