/* SPDX-License-Identifier: Apache-2.0
 * cqe.c: write completions into CQs, of this process or of another, and wake those that wait.
 *
 * Timestamps (+48) are CLOCK_MONOTONIC_RAW in nanoseconds; the device says hca_core_clock = 1 GHz.
 */
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cqe.h"
#include "log.h"
#include "mem.h"
#include "option.h"
#include "stats.h"

#define CQE_BYTES 64u
#define INDEX_MASK 0xffffffu /* CQ consumer and producer index: 24 bits */
#define VENDOR_SYNDROME 0x51 /* any value; real firmware tells more by it */

static void wake(struct vcx_cq *c)
{
	uint64_t event = c->user_handle;
	char path[64];
	int fd = c->channel;

	c->armed = false;
	c->events++;
	vcx_counts.events++;
	if (c->channel < 0)
		return;
	if (c->pid != vcx_me) {
		snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)c->pid, c->channel);
		fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
	}
	if (fd < 0 || write(fd, &event, sizeof event) != sizeof event)
		LOG(0, "a completion event for CQ 0x%x could not be delivered", c->cqn);
	if (c->pid != vcx_me && fd >= 0)
		syscall(SYS_close, fd);
}

uint64_t cqe_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void put32(uint8_t *cqe, unsigned at, uint32_t v)
{
	v = htobe32(v);
	memcpy(cqe + at, &v, 4);
}

/* Offsets: struct mlx5_cqe64 and mlx5_err_cqe. */
static void fill(uint8_t *n, const struct vcx_qp *q, const struct vcx_completion *c,
		 bool owner)
{
	uint64_t stamp;
	uint16_t index = htobe16(c->index);

	memset(n, 0, CQE_BYTES);
	put32(n, 32,
	      q->uidx); /* srqn_uidx: CQE version 1 finds the queue pair by the user's index */
	if (c->cqe_opcode >= CQE_RESP_WR_IMM && c->cqe_opcode <= CQE_RESP_SEND_IMM)
		put32(n, 24, q->dest); /* flags_rqpn */
	if (c->syndrome) {
		n[54] = VENDOR_SYNDROME;
		n[55] = c->syndrome;
	} else {
		memcpy(n + 36, &c->imm, 4);
		put32(n, 44, c->bytes);
		stamp = htobe64(c->stamp ? c->stamp : cqe_clock());
		memcpy(n + 48, &stamp, 8);
	}
	put32(n, 56, (uint32_t)c->wqe_opcode << 24 | q->qpn);
	memcpy(n + 60, &index, 2);
	n[63] = (uint8_t)(c->cqe_opcode << 4 | owner);
}

/* All but op_own first, op_own last: the program takes the CQE as written once it sees op_own. */
static void store(const struct vcx_cq *c, uint64_t at, const uint8_t *n)
{
	uint64_t tail;

	if (c->pid != vcx_me) {
		mem_write(c->pid, at, n, CQE_BYTES - 1);
		mem_write(c->pid, at + CQE_BYTES - 1, n + CQE_BYTES - 1, 1);
		return;
	}
	memcpy((void *)(uintptr_t)at, n, CQE_BYTES - 8);
	memcpy(&tail, n + CQE_BYTES - 8, 8);
	__atomic_store_n((uint64_t *)(uintptr_t)(at + CQE_BYTES - 8), tail,
			 __ATOMIC_RELEASE);
}

static bool fault_takes_it(void)
{
	static uint64_t nth;

	return vcx_option.fault[FAULT_LOST_CQE] &&
	       ++nth == vcx_option.fault[FAULT_LOST_CQE];
}

void cqe_put(uint32_t h, const struct vcx_qp *q, const struct vcx_completion *done)
{
	struct vcx_cq *c = &fab->cqs[h];
	uint8_t n[CQE_BYTES] __attribute__((aligned(8)));
	uint32_t ci;

	if (h >= VCX_OBJECTS || !c->used)
		return;
	ci = be32toh(mem_read32(c->pid, c->rec)) & INDEX_MASK;
	if (((c->pi - ci) & INDEX_MASK) >= c->cqe_cnt) {
		vcx_violation(VIOLATION_CQ_OVERRUN, q->qpn, "CQ 0x%x of %u entries",
			      c->cqn, c->cqe_cnt);
		c->overrun = true;
		return;
	}
	if (done->syndrome) {
		vcx_counts.errors++;
		vcx_counts.syndrome[done->syndrome]++;
	}
	if (fault_takes_it())
		return;
	fill(n, q, done, (c->pi & c->cqe_cnt) != 0);
	store(c,
	      c->buf + (uint64_t)(c->pi & (c->cqe_cnt - 1)) * c->cqe_bytes +
		      (c->cqe_bytes - CQE_BYTES),
	      n);
	c->pi = (c->pi + 1) & INDEX_MASK;
	vcx_counts.cqes++;
	if (done->solicited || done->syndrome) {
		c->notable = true;
		c->notable_pi = c->pi;
	}
	if (c->armed && (!c->armed_solicited || done->solicited || done->syndrome))
		wake(c);
}

void cqe_arm(struct vcx_cq *c, uint32_t ci, bool solicited_only)
{
	c->armed = true;
	c->armed_solicited = solicited_only;
	vcx_counts.arms++;
	/* Something came before the arm did; a solicited-only arm waits for what is notable. */
	if (solicited_only ? c->notable && ((c->notable_pi - ci) & INDEX_MASK) - 1 <
						   ((c->pi - ci) & INDEX_MASK)
			   : ((c->pi - ci) & INDEX_MASK) != 0)
		wake(c);
}
