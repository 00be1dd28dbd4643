/* SPDX-License-Identifier: Apache-2.0
 * device_clock.c: CLOCK_MONOTONIC_RAW in nanoseconds, as a counter of 1 GHz.
 */
#include <endian.h>
#include <errno.h>
#include <rdma/mlx5-abi.h>
#include <stddef.h>
#include <sys/mman.h>

#include "cqe.h"
#include "device_clock.h"

#define SHIFT 8 /* of mult: 1 ns a cycle is 1 << 8 */

static uint64_t *page; /* high word, low word; each big-endian */

static void *map(int fd, unsigned at)
{
	void *p = mmap(NULL, VCX_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       (off_t)at * VCX_PAGE);

	return p == MAP_FAILED ? NULL : p;
}

int device_clock_start(int fd)
{
	struct mlx5_ib_clock_info *info = map(fd, DEVICE_CLOCK_INFO_PAGE);

	page = map(fd, DEVICE_CLOCK_PAGE);
	if (!page || !info)
		return errno;
	device_clock_update();
	info->cycles = info->nsec = cqe_clock();
	info->mult = 1u << SHIFT;
	info->shift = SHIFT;
	info->mask = ~0ull >> 1;
	info->overflow_period = ~0ull >> 1;
	return 0;
}

/* A reader takes high, low, high and tries again where high has changed: both are stored at once. */
void device_clock_update(void)
{
	if (page)
		__atomic_store_n(page, htobe64(cqe_clock()), __ATOMIC_RELAXED);
}
