/* SPDX-License-Identifier: Apache-2.0
 * fabric.c: attach to the shared state, identity, and cleaning up after the dead.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabric.h"
#include "fabric_id.h"
#include "log.h"
#include "option.h"

#define FABRIC_MAGIC           \
	(0x76637866ull << 32 | \
	 sizeof(struct vcx_fabric)) /* "vcxf" and the layout's size */

struct vcx_fabric *fab;
pid_t vcx_me;

void fabric_lock(void)
{
	if (pthread_mutex_lock(&fab->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&fab->lock);
}

void fabric_unlock(void)
{
	pthread_mutex_unlock(&fab->lock);
}

static void init(uint32_t id)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&fab->lock, &a);
	pthread_mutexattr_destroy(&a);
	fab->id = id;
	fab->next_key = fab->id >> 8;
	fab->magic = FABRIC_MAGIC;
}

void fabric_delays_changed(void)
{
	struct vcx_control *c = &fab->control;
	bool any = false;

	for (int h = 0; h < VCX_HOPS; h++)
		any |= c->delay_ns[h] || c->extra_ns[h];
	atomic_store(&c->delays, any);
}

/* Whoever was started with delays sets them for the whole fabric. */
static void take_delays(void)
{
	for (int h = 0; h < VCX_HOPS; h++)
		if (vcx_option.delay_ns[h])
			atomic_store(&fab->control.delay_ns[h], vcx_option.delay_ns[h]);
	fabric_delays_changed();
}

static bool is_dead(pid_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

static void drop(pid_t pid)
{
	for (uint32_t i = 0; i < VCX_OBJECTS; i++) {
		if (fab->qps[i].used && fab->qps[i].pid == pid)
			fab->qps[i].used = false;
		if (fab->cqs[i].used && fab->cqs[i].pid == pid)
			fab->cqs[i].used = false;
		if (fab->mrs[i].used && fab->mrs[i].pid == pid)
			fab->mrs[i].used = false;
		if (fab->pds[i] && fab->pd_pid[i] == pid)
			fab->pds[i] = false;
	}
}

static int weight(const struct vcx_proc *p)
{
	return 1 + (p->declared >= 0 ? p->declared : p->polled ? 1 : 0);
}

static void forget(struct vcx_proc *p)
{
	drop(p->pid);
	atomic_fetch_sub(&fab->spinners, weight(p));
	memset(p, 0, sizeof *p);
}

void fabric_sweep(void)
{
	for (unsigned i = 0; i < VCX_PROCS; i++)
		if (fab->procs[i].pid && fab->procs[i].pid != vcx_me &&
		    is_dead(fab->procs[i].pid))
			forget(&fab->procs[i]);
}

static struct vcx_proc *my_slot(void)
{
	for (unsigned i = 0; i < VCX_PROCS; i++)
		if (fab->procs[i].pid == vcx_me)
			return &fab->procs[i];
	return NULL;
}

static int join(void)
{
	struct vcx_proc *old;

	fabric_lock();
	fabric_sweep();
	old = my_slot(); /* an exec skips destructors: the same process comes again */
	if (old)
		forget(old);
	for (unsigned i = 0; i < VCX_PROCS; i++) {
		if (fab->procs[i].pid)
			continue;
		memset(&fab->procs[i], 0, sizeof fab->procs[i]);
		fab->procs[i].declared = -1;
		fab->procs[i].pid = vcx_me;
		atomic_fetch_add(&fab->spinners, 1);
		fabric_unlock();
		return 0;
	}
	fabric_unlock();
	LOG(0, "more than %u processes in one fabric", VCX_PROCS);
	return ENOSPC;
}

int fabric_attach(void)
{
	const char *file = getenv("VCX_FABRIC");
	struct flock whole = {.l_type = F_WRLCK};
	struct stat st;
	uint32_t id = 0;
	int fd = -1;

	if (fab)
		return 0;
	vcx_me = getpid();
	if (file && *file) {
		fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return errno;
		prctl(PR_SET_PTRACER,
		      PR_SET_PTRACER_ANY); /* peers of the fabric reach this process's memory */
		fcntl(fd, F_OFD_SETLKW,
		      &whole); /* against another process's first look; the launcher's flock is another lock */
		if (fstat(fd, &st) || ftruncate(fd, sizeof *fab))
			return errno;
		id = vcx_fabric_id(&st);
	} else if (getrandom(&id, sizeof id, 0) != sizeof id) {
		return EIO;
	}
	fab = mmap(NULL, sizeof *fab, PROT_READ | PROT_WRITE,
		   fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	if (fab == MAP_FAILED) {
		fab = NULL;
		return errno;
	}
	if (fab->magic != FABRIC_MAGIC)
		init(id);
	take_delays();
	if (fd >= 0) {
		whole.l_type =
			F_UNLCK; /* the mapping keeps the file, and with it the lock, open */
		fcntl(fd, F_OFD_SETLK, &whole);
		syscall(SYS_close, fd);
	}
	return join();
}

void fabric_leave(void)
{
	struct vcx_proc *p;

	if (!fab || getpid() != vcx_me)
		return;
	fabric_lock();
	p = my_slot();
	if (p)
		forget(p);
	fabric_unlock();
}

static void reweigh(struct vcx_proc *p, int declared, bool polled)
{
	int before = weight(p);

	p->declared = declared;
	p->polled = polled;
	atomic_fetch_add(&fab->spinners, weight(p) - before);
}

void fabric_declare(int spinners)
{
	struct vcx_proc *p;

	fabric_lock();
	p = my_slot();
	if (p)
		reweigh(p, spinners, p->polled);
	fabric_unlock();
}

void fabric_polled(void)
{
	struct vcx_proc *p;

	fabric_lock();
	p = my_slot();
	if (p && !p->polled)
		reweigh(p, p->declared, true);
	fabric_unlock();
}

void fabric_bytes_in(pid_t to, uint64_t bytes)
{
	for (unsigned i = 0; i < VCX_PROCS; i++)
		if (fab->procs[i].pid == to)
			atomic_fetch_add_explicit(&fab->procs[i].bytes_in, bytes,
						  memory_order_relaxed);
}

uint64_t fabric_my_bytes_in(void)
{
	struct vcx_proc *p = fab ? my_slot() : NULL;

	return p ? atomic_load(&p->bytes_in) : 0;
}

/* QPNs are 24 bits: a random part of the fabric over the index, so that a number from another fabric names nothing. */
static uint32_t qpn_base(void)
{
	return (fab->id & 0x3ff) << 13 | 0x800000;
}

uint32_t fabric_qpn(uint32_t h)
{
	return qpn_base() + h;
}

uint32_t fabric_cqn(uint32_t h)
{
	return 0x400 + h;
}

struct vcx_qp *fabric_qp(uint32_t qpn)
{
	uint32_t h = qpn - qpn_base();

	return h < VCX_OBJECTS && fab->qps[h].used ? &fab->qps[h] : NULL;
}

struct vcx_mr *fabric_mr(uint32_t key)
{
	uint32_t h = key >> 8 & (VCX_OBJECTS - 1);

	return fab->mrs[h].used && fab->mrs[h].key == key ? &fab->mrs[h] : NULL;
}

uint64_t fabric_guid(unsigned dev)
{
	return vcx_guid(fab->id, dev);
}

/* 0, 1: link-local from the GUID (RoCE v1, v2); 2, 3: an IPv4 address of 198.18.0.0/15 (RFC 2544), v1 and v2. */
void fabric_gid(unsigned dev, unsigned index, uint8_t gid[16])
{
	uint64_t guid = htobe64(fabric_guid(dev));

	memset(gid, 0, 16);
	if (index < 2) {
		gid[0] = 0xfe;
		gid[1] = 0x80;
		memcpy(gid + 8, &guid, 8);
		return;
	}
	gid[10] = gid[11] = 0xff;
	gid[12] = 198;
	gid[13] = 18 + (fab->id >> 15 & 1);
	gid[14] = fab->id >> 7 & 0xff;
	gid[15] = (fab->id & 0x7f) << 1 | dev;
}

struct vcx_cq *own_cq(uint32_t h)
{
	return h < VCX_OBJECTS && fab->cqs[h].used && fab->cqs[h].pid == vcx_me
		       ? &fab->cqs[h]
		       : NULL;
}

struct vcx_qp *own_qp(uint32_t h)
{
	return h < VCX_OBJECTS && fab->qps[h].used && fab->qps[h].pid == vcx_me
		       ? &fab->qps[h]
		       : NULL;
}

struct vcx_mr *own_mr(uint32_t h)
{
	return h < VCX_OBJECTS && fab->mrs[h].used && fab->mrs[h].pid == vcx_me
		       ? &fab->mrs[h]
		       : NULL;
}
