/* SPDX-License-Identifier: Apache-2.0
 * test_guard.c: who rings through the CPU's mapping while it is guarded is seen, whoever has a mapping of his own is not disturbed.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "nic/guard.h"

#define PAGE 4096u

static uint8_t *cpu,
	*device; /* the CPU's mapping of the page, and the one that stands for the GPU's or the NIC's */

static int open_page(void **state)
{
	int fd = memfd_create("doorbells", 0);

	(void)state;
	if (fd < 0 || ftruncate(fd, PAGE))
		return -1;
	cpu = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	device = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	guard_set(GUARD_HOLDS);
	return cpu == MAP_FAILED || device == MAP_FAILED ? -1 : guard_add(cpu + 0x800);
}

static int close_page(void **state)
{
	(void)state;
	guard_remove(cpu + 0x800);
	munmap(cpu, PAGE);
	munmap(device, PAGE);
	return 0;
}

static void the_devices_own_mapping_goes_on(void **state)
{
	const unsigned long clean = guard_launches();

	(void)state;
	assert_int_equal(guard_on(), 0);
	*(volatile uint64_t *)(void *)(device + 0x800) = 7;
	assert_int_equal(guard_off(), 0);
	assert_int_equal(guard_launches(), clean + 1);
	assert_int_equal(*(volatile uint64_t *)(void *)(cpu + 0x800), 7);
}

/* A proxy that claims to be the gpu path: a thread rings for it. */
static void *ring(void *arg)
{
	*(volatile uint64_t *)(void *)(cpu + 0x900) = (uintptr_t)arg;
	return NULL;
}

static void a_proxy_that_pretends_is_seen_and_its_store_arrives(void **state)
{
	const unsigned long clean = guard_launches(), seen = guard_touches();
	pthread_t t;

	(void)state;
	for (uintptr_t k = 1; k <= 3; k++) {
		assert_int_equal(guard_on(), 0);
		assert_int_equal(pthread_create(&t, NULL, ring, (void *)k), 0);
		pthread_join(t, NULL);
		assert_int_equal(guard_off(), 1);
		assert_int_equal(*(volatile uint64_t *)(void *)(device + 0x900), k);
	}
	assert_int_equal(guard_launches(), clean);
	assert_int_equal(guard_touches(), seen + 3);
	ring((void *)9); /* unguarded again */
	assert_int_equal(guard_touches(), seen + 3);
}

static void nothing_is_guarded_where_it_was_not_shown_to_hold(void **state)
{
	(void)state;
	for (int s = GUARD_UNTRIED; s < GUARD_HOLDS; s++) {
		guard_set((enum guard_state)s);
		assert_int_equal(guard_on(), 0);
		ring((void *)1);
		assert_int_equal(guard_off(), 0);
	}
}

static void a_page_of_two_queues_stays_until_the_last_is_gone(void **state)
{
	(void)state;
	assert_int_equal(guard_add(cpu), 0);
	guard_remove(cpu);
	assert_int_equal(guard_on(), 0);
	ring((void *)1);
	assert_int_equal(guard_off(), 1);
}

/* Any other fault still ends the process as it would have. */
static void another_fault_still_kills(void **state)
{
	int status;
	pid_t child;

	(void)state;
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		uint8_t *none =
			mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		signal(SIGSEGV, SIG_DFL);
		guard_on();
		*(volatile uint8_t *)none = 1;
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, open_page, close_page)
		T(the_devices_own_mapping_goes_on),
		T(a_proxy_that_pretends_is_seen_and_its_store_arrives),
		T(nothing_is_guarded_where_it_was_not_shown_to_hold),
		T(a_page_of_two_queues_stays_until_the_last_is_gone),
		T(another_fault_still_kills),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
