/* SPDX-License-Identifier: Apache-2.0
 * nic.c: the engine.
 *
 * A register in memory keeps one value.  A doorbell therefore means: look at the queue pair that it names and, where several
 * share the page, at the others of that page, since their doorbells may have been overwritten.  Counts of doorbells are a
 * lower bound.
 *
 * Who runs it: a thread of this process, and pollers while spinners exceed CPUs (vcx_step).  One of them at a time, by a
 * flag that nobody waits for.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cqe.h"
#include "log.h"
#include "mem.h"
#include "nic.h"
#include "option.h"
#include "stats.h"
#include "vcx.h"
#include "wqe.h"

#define IDLE_SPINS 200000u /* looks without work before the thread naps: a few ms */
#define IDLE_PATIENT 2048u /* looks without work, tens of us */
#define NAP_NS 20000

struct page {
	bool used, nc;
	uint32_t *qps; /* handles */
	uint32_t n, cap;
};

static struct page pages[VCX_UARS];
static uint32_t active[VCX_UARS]; /* used pages, in any order */
static _Atomic uint32_t active_n;
static uint8_t *bar; /* the NIC's mapping of all pages */
static int bar_fd = -1;
static _Atomic bool stop, waiting; /* waiting: some queue pair waits for a receiver */
static atomic_flag busy = ATOMIC_FLAG_INIT;
static pthread_t thread;
static bool started;
uint32_t nic_cq_top;
static cpu_set_t
	start_cpus; /* what the process might use before anybody pinned a thread */
static int start_cpu_count = 1;

__attribute__((constructor)) static void remember_cpus(void)
{
	if (sched_getaffinity(0, sizeof start_cpus, &start_cpus)) {
		CPU_ZERO(&start_cpus);
		CPU_SET(0, &start_cpus);
	}
	start_cpu_count = CPU_COUNT(&start_cpus);
}

int vcx_polite(void)
{
	return fab && atomic_load_explicit(&fab->spinners, memory_order_relaxed) >
			      start_cpu_count;
}

void vcx_app_spinners(int n)
{
	if (!fabric_attach())
		fabric_declare(n < 0 ? 0 : n);
}

void vcx_app_pinned(int n)
{
	cpu_set_t left = start_cpus;

	if (!started || getpid() != vcx_me)
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE && n > 0 && CPU_COUNT(&left) > 1; cpu++) {
		if (!CPU_ISSET(cpu, &left))
			continue;
		CPU_CLR(cpu, &left);
		n--;
	}
	pthread_setaffinity_np(thread, sizeof left, &left);
}

/* ---- pages ---- */
int nic_uar_alloc(bool nc, uint32_t *id)
{
	if (vcx_option.refuse & REFUSE_UAR_MAP)
		return EPERM;
	for (uint32_t u = 1; u < VCX_UARS; u++) {
		if (pages[u].used)
			continue;
		memset(bar + (size_t)u * VCX_PAGE, 0, VCX_PAGE);
		pages[u].used = true;
		pages[u].nc = nc;
		pages[u].n = 0;
		active[active_n] = u;
		atomic_fetch_add(&active_n, 1);
		*id = u;
		return 0;
	}
	return ENOMEM;
}

int nic_uar_free(uint32_t id)
{
	if (id >= VCX_UARS || !pages[id].used)
		return EINVAL;
	if (pages[id].n)
		return EBUSY;
	pages[id].used = false;
	for (uint32_t i = 0; i < active_n; i++) {
		if (active[i] != id)
			continue;
		active[i] = active[active_n - 1];
		atomic_fetch_sub(&active_n, 1);
		break;
	}
	return 0;
}

void nic_qp_listed(struct vcx_qp *q, bool listed)
{
	struct page *p = &pages[q->uar % VCX_UARS];
	uint32_t h = (uint32_t)(q - fab->qps);

	if (!listed) {
		for (uint32_t i = 0; i < p->n; i++)
			if (p->qps[i] == h)
				p->qps[i--] = p->qps[--p->n];
		return;
	}
	if (p->n == p->cap) {
		uint32_t cap = p->cap ? 2 * p->cap : 8;
		uint32_t *v = realloc(p->qps, cap * sizeof *v);

		if (!v)
			return;
		p->qps = v;
		p->cap = cap;
	}
	p->qps[p->n++] = h;
}

/* ---- doorbells ---- */
static bool lost_by_fault(void)
{
	return vcx_option.fault[FAULT_LOST_DOORBELL] &&
	       vcx_counts.doorbells == vcx_option.fault[FAULT_LOST_DOORBELL];
}

/* A doorbell for q named WQE `index`.  libmlx5 names the last WQE, others the next one: both are legal.  Late: it names a
 * WQE that is there, but the record does not include it yet. */
static void check_record(struct vcx_qp *q, uint32_t index)
{
	uint32_t pi = wqe_record(q);
	int16_t ahead = (int16_t)(pi - index);

	if (ahead > 0 || (ahead == 0 && (q->ci != pi || !wqe_is_posted(q, index))))
		return;
	if (ahead < 0 && !wqe_is_posted(q, index))
		return;
	if (vcx_option.record_recheck && !vcx_option.strict_record)
		vcx_counts.late_notes++;
	else
		vcx_violation(VIOLATION_LATE_RECORD, q->qpn,
			      "doorbell for WQE %u, record %u", index, pi);
	if (vcx_option.record_recheck)
		waiting = q->waits = true;
}

static void wrong_number(uint64_t v, uint32_t qpn, uint32_t page)
{
	uint64_t swapped = __builtin_bswap64(v);
	const struct vcx_qp *q = fabric_qp(qpn), *s = fabric_qp((uint32_t)swapped >> 8);

	if (q)
		vcx_violation(VIOLATION_DOORBELL_WRONG_PAGE, qpn,
			      "page %u, its own is %u", page, q->uar);
	else if (s && s->pid == vcx_me)
		vcx_violation(VIOLATION_DOORBELL_BYTE_ORDER, s->qpn, "register 0x%016llx",
			      (unsigned long long)v);
	else
		vcx_violation(VIOLATION_DOORBELL_UNKNOWN_QP, qpn, "page %u", page);
}

static void run(struct vcx_qp *q)
{
	if (q->state != QP_RTS && q->state != QP_ERR)
		return;
	if (wqe_run(q))
		waiting = q->waits = true;
}

/* Queue pairs of the page with work that their records show; `but` has just been run. */
static void run_others(const struct page *p, const struct vcx_qp *but)
{
	for (uint32_t i = 0; i < p->n; i++) {
		struct vcx_qp *q = &fab->qps[p->qps[i]];

		if (q != but && q->used && q->state >= QP_RTS && wqe_record(q) != q->ci)
			run(q);
	}
}

static void doorbell(uint32_t u, uint64_t v)
{
	uint32_t qpn = (uint32_t)v >> 8;
	struct vcx_qp *q;

	fabric_lock();
	vcx_counts.doorbells++;
	if (lost_by_fault()) {
		fabric_unlock();
		return;
	}
	q = fabric_qp(qpn);
	if (!q || q->pid != vcx_me || q->uar != u) {
		wrong_number(v, qpn, u);
		q = NULL;
	} else {
		if (!vcx_option.sink)
			check_record(q, (uint32_t)(v >> 40) & 0xffff);
		run(q);
	}
	if (pages[u].n > 1)
		run_others(&pages[u], q);
	fabric_unlock();
}

/* Arm word: sequence, command bit (solicited only), consumer index; as libmlx5 writes it to register and record. */
static void arm_by(struct vcx_cq *c, uint32_t word)
{
	c->arm_seen = word;
	cqe_arm(c, word & 0xffffff, word >> 24 & 1);
}

/* CQs share the register, so an arm may have been overwritten by another's: the records are looked at too. */
static void arm(uint64_t v)
{
	struct vcx_cq *c;

	fabric_lock();
	c = own_cq((uint32_t)v - fabric_cqn(0));
	if (c)
		arm_by(c, (uint32_t)(v >> 32));
	for (uint32_t h = 0; h <= nic_cq_top; h++) {
		uint32_t word;

		c = own_cq(h);
		if (!c || c->channel < 0)
			continue;
		word = be32toh(mem_read32(c->pid, c->rec + 4)); /* MLX5_CQ_ARM_DB */
		if (word != c->arm_seen)
			arm_by(c, word);
	}
	fabric_unlock();
}

/* Take a register's value if it holds one. */
static bool take(uint8_t *reg, uint64_t *v)
{
	_Atomic uint64_t *r = (_Atomic uint64_t *)(void *)reg;

	if (!atomic_load_explicit(r, memory_order_relaxed))
		return false;
	*v = be64toh(atomic_exchange(r, 0));
	return true;
}

static bool look_at(uint32_t u)
{
	uint8_t *page = bar + (size_t)u * VCX_PAGE;
	bool found = false;
	uint64_t v;

	for (uint32_t at = UAR_BF_OFFSET;
	     at < UAR_BF_OFFSET + UAR_BFREGS * UAR_BFREG_BYTES;
	     at += UAR_BFREG_BYTES / 2) {
		if (take(page + at, &v)) {
			doorbell(u, v);
			found = true;
		}
	}
	if (take(page + UAR_ARM_OFFSET, &v)) {
		arm(v);
		found = true;
	}
	return found;
}

static void again(struct vcx_qp *q)
{
	if (!q->used || !q->waits)
		return;
	q->waits = false;
	run(q);
	/* Its record has not come yet, or came just now, behind the look of this run. */
	if (vcx_option.record_recheck && q->state == QP_RTS &&
	    (q->ci != wqe_record(q) || wqe_is_posted(q, q->ci)))
		waiting = q->waits = true;
}

/* Queue pairs that met a receiver not ready, or a record that was behind (record-recheck). */
static void look_again(void)
{
	if (!atomic_exchange(&waiting, false))
		return;
	fabric_lock();
	for (uint32_t i = 0; i < active_n; i++) {
		const struct page *p = &pages[active[i]];

		for (uint32_t k = 0; k < p->n; k++)
			again(&fab->qps[p->qps[k]]);
	}
	fabric_unlock();
}

static bool step(void)
{
	bool found = false;

	for (uint32_t i = 0; i < atomic_load_explicit(&active_n, memory_order_relaxed);
	     i++)
		found |= look_at(active[i]);
	if (atomic_load_explicit(&waiting, memory_order_relaxed))
		look_again();
	return found;
}

int vcx_step(void)
{
	bool found;

	if (!started || atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
		return 0;
	found = step();
	atomic_flag_clear_explicit(&busy, memory_order_release);
	if (found)
		vcx_counts.steps_by_pollers++;
	return found;
}

static void *nic_main(void *arg)
{
	const struct timespec nap = {0, NAP_NS};
	uint32_t idle = 0;

	(void)arg;
	pthread_setname_np(pthread_self(), "vcx-nic");
	sched_setaffinity(0, sizeof start_cpus,
			  &start_cpus); /* its creator's pinning is not its own */
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		bool found = false;

		if (!atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
			found = step();
			atomic_flag_clear_explicit(&busy, memory_order_release);
		}
		idle = found ? 0 : idle + 1;
		if (vcx_polite() || idle > IDLE_SPINS)
			nanosleep(&nap, NULL);
		else if (idle > IDLE_PATIENT && idle % 64 == 0)
			sched_yield(); /* who is to ring may wait for this core */
	}
	return NULL;
}

static int start(void)
{
	sigset_t all, old;
	int rc;

	bar_fd = (int)syscall(SYS_memfd_create, "vcx-doorbells", MFD_CLOEXEC);
	if (bar_fd < 0 || ftruncate(bar_fd, (off_t)VCX_UARS * VCX_PAGE))
		return errno;
	bar = mmap(NULL, (size_t)VCX_UARS * VCX_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
		   bar_fd, 0);
	if (bar == MAP_FAILED)
		return errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = true;
	rc = pthread_create(&thread, NULL, nic_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	started = !rc;
	return rc;
}

int nic_open(int flags)
{
	int rc = fabric_attach();

	if (!rc && !started)
		rc = start();
	if (rc) {
		LOG(0, "the virtual NIC cannot start: %s", strerror(rc));
		errno = rc;
		return -1;
	}
	return fcntl(bar_fd, flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
}

void nic_stop(void)
{
	if (!started || getpid() != vcx_me)
		return;
	stop = true;
	pthread_join(thread, NULL);
	started = false;
}
