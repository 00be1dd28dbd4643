/* SPDX-License-Identifier: Apache-2.0
 * guard.c: doorbell pages that the CPU must not touch, and who did.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "err.h"
#include "nic/guard.h"

#define PAGES_MAX 64u

static uintptr_t pages[PAGES_MAX];
static unsigned users[PAGES_MAX]; /* queue pairs share a page */
static unsigned count;
static size_t page_bytes;
static enum guard_state state;
static volatile sig_atomic_t active;
static _Atomic unsigned touched;
static unsigned long launches, touches;
static struct sigaction before;

const char *guard_state_name(enum guard_state s)
{
	static const char *const names[] = {"untried", "host-sm", "breaks", "holds"};

	return names[s];
}

void guard_set(enum guard_state s)
{
	state = s;
}

enum guard_state guard_get(void)
{
	return state;
}

unsigned long guard_launches(void)
{
	return launches;
}

unsigned long guard_touches(void)
{
	return touches;
}

static uintptr_t page_of(const void *p)
{
	if (!page_bytes)
		page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	return (uintptr_t)p & ~(uintptr_t)(page_bytes - 1);
}

int guard_add(void *p)
{
	const uintptr_t page = page_of(p);

	for (unsigned i = 0; i < count; i++) {
		if (pages[i] != page)
			continue;
		users[i]++;
		return 0;
	}
	if (count == PAGES_MAX)
		return err_say(-ENOSPC, "more than %u doorbell pages to guard",
			       PAGES_MAX);
	users[count] = 1;
	pages[count++] = page;
	return 0;
}

void guard_remove(void *p)
{
	const uintptr_t page = page_of(p);

	for (unsigned i = 0; i < count; i++) {
		if (pages[i] != page || --users[i])
			continue;
		pages[i] = pages[count - 1];
		users[i] = users[count - 1];
		count--;
		return;
	}
}

static int protect_all(int prot)
{
	int err = 0;

	for (unsigned i = 0; i < count; i++)
		if (mprotect((void *)pages[i], page_bytes, prot))
			err = -errno;
	return err;
}

/* A guarded page is opened again, so that the access goes through; anything else is the business of who was here before. */
static void on_fault(int sig, siginfo_t *info, void *context)
{
	const uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)(page_bytes - 1);

	for (unsigned i = 0; active && i < count; i++) {
		if (pages[i] != page)
			continue;
		atomic_fetch_add(&touched, 1);
		mprotect((void *)page, page_bytes, PROT_READ | PROT_WRITE);
		return;
	}
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(sig, info, context);
	else if (before.sa_handler != SIG_IGN && before.sa_handler != SIG_DFL)
		before.sa_handler(sig);
	else
		signal(sig, SIG_DFL); /* the access is tried again, and kills */
}

int guard_on(void)
{
	struct sigaction sa = {.sa_sigaction = on_fault,
			       .sa_flags = SA_SIGINFO | SA_NODEFER};
	int err;

	if (state != GUARD_HOLDS || !count)
		return 0;
	if (sigaction(SIGSEGV, &sa, &before))
		return err_say(-errno, "a handler of SIGSEGV: %s", strerror(errno));
	atomic_store(&touched, 0);
	active = 1;
	err = protect_all(PROT_NONE);
	if (!err)
		return 0;
	guard_off();
	return err_say(err, "mprotect of a doorbell page: %s", strerror(-err));
}

unsigned guard_off(void)
{
	unsigned n;

	if (!active)
		return 0;
	protect_all(PROT_READ | PROT_WRITE);
	active = 0;
	sigaction(SIGSEGV, &before, NULL);
	n = atomic_load(&touched);
	touches += n;
	launches += !n;
	return n;
}
