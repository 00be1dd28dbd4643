/* SPDX-License-Identifier: Apache-2.0
 * stats.h: what this process's NIC has seen; violations of the posting protocol by kind.
 */
#ifndef VCX_STATS_H
#define VCX_STATS_H
#include <stdint.h>

/* kind, what it means (named once on stderr, each time with log=1) */
#define VCX_VIOLATIONS(V)                                                              \
	V(DOORBELL_UNKNOWN_QP, "doorbell-unknown-qp",                                  \
	  "a doorbell names a queue pair that does not exist")                         \
	V(DOORBELL_WRONG_PAGE, "doorbell-wrong-page",                                  \
	  "a doorbell was rung on a page that is not its queue pair's")                \
	V(DOORBELL_BYTE_ORDER, "doorbell-byte-order", "a doorbell is little-endian")   \
	V(LATE_RECORD, "late-record",                                                  \
	  "a doorbell arrived before its record (written late, off by one, or never)") \
	V(RECORD_BYTE_ORDER, "record-byte-order",                                      \
	  "a doorbell record is little-endian or holds more than 16 bits")             \
	V(RECORD_BEYOND_RING, "record-beyond-ring",                                    \
	  "a doorbell record is further ahead than the ring is long")                  \
	V(WQE_INDEX, "wqe-index",                                                      \
	  "a WQE does not carry its own index: not yet visible, or built wrongly")     \
	V(WQE_QPN, "wqe-qpn", "a WQE carries another queue pair's number")             \
	V(WQE_SIZE, "wqe-size",                                                        \
	  "a WQE's size (ds) is 0, too large, or does not fit its segments")           \
	V(WQE_OPCODE, "wqe-opcode", "a WQE's opcode is not supported")                 \
	V(KEY_BYTE_ORDER, "key-byte-order", "a key is little-endian")                  \
	V(CQ_OVERRUN, "cq-overrun", "a CQ is full: its consumer index was not advanced")

#define V(id, name, meaning) VIOLATION_##id,
enum vcx_violation { VCX_VIOLATIONS(V) VIOLATION_KINDS };
#undef V

struct vcx_counts {
	uint64_t doorbells, wqes, cqes, bytes_out, bytes_read, errors, arms, events,
		late_notes, steps_by_pollers, blueflames, blueflames_from_ring;
	uint64_t opcode[256], syndrome[256], violation[VIOLATION_KINDS];
	uint32_t qps_max;
};
extern struct vcx_counts vcx_counts;

/* Count one, say it: the first of its kind always, each with log=1. */
void vcx_violation(enum vcx_violation v, uint32_t qpn, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void vcx_stats_write(void); /* to the file of the option stats */
#endif
