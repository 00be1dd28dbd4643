/* SPDX-License-Identifier: Apache-2.0
 * nic.c: the engine.
 *
 * Who runs it: a thread of this process, and pollers while spinners exceed CPUs (vcx_step).  One of them at a time, by a
 * flag that nobody waits for.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "device_clock.h"
#include "event.h"
#include "log.h"
#include "nic.h"
#include "op.h"
#include "stats.h"
#include "uar.h"
#include "vcx.h"
#include "wqe.h"

#define IDLE_SPINS 200000u /* looks without work before the thread naps: a few ms */
#define IDLE_PATIENT 2048u /* looks without work, tens of us */
#define NAP_NS 20000
#define CLOCK_EVERY \
	16384u /* looks without work between updates of the clock page: each costs as much as several looks */

static int bar_fd = -1;
static _Atomic bool stop, waiting; /* waiting: some queue pair waits for a receiver */
static atomic_flag busy = ATOMIC_FLAG_INIT;
static pthread_t thread;
static bool started;
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

void nic_wait(struct vcx_qp *q)
{
	waiting = q->waits = true;
}

void nic_run(struct vcx_qp *q, const struct ring *r)
{
	if ((q->state == QP_RTS || q->state == QP_ERR) && op_run(q, r))
		nic_wait(q);
}

static void again(struct vcx_qp *q)
{
	if (!q->used || !q->waits)
		return;
	q->waits = false;
	nic_run(q, NULL);
	/* Its record has not come yet, or came just now, behind the look of this run. */
	if (vcx_option.record_recheck && q->state == QP_RTS &&
	    (q->ci != wqe_record(q) || wqe_is_posted(q, q->ci)))
		nic_wait(q);
}

/* Queue pairs that met a receiver not ready, or a record that was behind (record-recheck). */
static void look_again(void)
{
	if (!atomic_exchange(&waiting, false))
		return;
	fabric_lock();
	uar_each_qp(again);
	fabric_unlock();
}

bool nic_events(void)
{
	bool ran;

	if (!event_due())
		return false;
	fabric_lock();
	ran = event_run();
	fabric_unlock();
	return ran;
}

static bool step(void)
{
	bool found = uar_look();

	if (atomic_load_explicit(&waiting, memory_order_relaxed))
		look_again();
	return found | nic_events();
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
		if (idle % CLOCK_EVERY == 0)
			device_clock_update();
		if (vcx_polite() && event_pending())
			sched_yield(); /* what is due soon is due before a nap ends */
		else if ((vcx_polite() || idle > IDLE_SPINS) && !event_pending())
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
	if (bar_fd < 0 || ftruncate(bar_fd, (off_t)DEVICE_PAGES * VCX_PAGE))
		return errno;
	rc = uar_start(bar_fd);
	if (!rc)
		rc = device_clock_start(bar_fd);
	if (rc)
		return rc;
	event_calibrate();
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
