/* SPDX-License-Identifier: Apache-2.0
 * event.c: a binary heap of due times.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "event.h"
#include "log.h"

#define CALIBRATE_NS 5000000

struct event {
	uint64_t due, seq;
	void (*fn)(void *, uint64_t);
	void *arg;
};

static struct event *heap;
static _Atomic uint32_t n;
static uint32_t cap;
static uint64_t next_seq;
static double ns_per_tick = 1;

uint64_t event_now(void)
{
	return clock_host_ticks();
}

uint64_t event_ticks(uint64_t ns)
{
	return (uint64_t)((double)ns / ns_per_tick + 0.5);
}

double event_ns(int64_t ticks)
{
	return (double)ticks * ns_per_tick;
}

static uint64_t raw_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void event_calibrate(void)
{
	const struct timespec nap = {0, CALIBRATE_NS};
	uint64_t t0, n0, t1, n1;

	raw_ns(); /* the first call maps the vDSO's page */
	t0 = event_now();
	n0 = raw_ns();
	nanosleep(&nap, NULL);
	t1 = event_now();
	n1 = raw_ns();
	ns_per_tick = (double)(n1 - n0) / (double)(t1 - t0);
}

static bool before(const struct event *a, const struct event *b)
{
	return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

static void swap(uint32_t i, uint32_t j)
{
	struct event t = heap[i];

	heap[i] = heap[j];
	heap[j] = t;
}

void event_at(uint64_t due, void (*fn)(void *, uint64_t), void *arg)
{
	uint32_t i = n;

	if (i == cap) {
		uint32_t more = cap ? 2 * cap : 256;
		struct event *v = realloc(heap, more * sizeof *v);

		if (!v) {
			LOG(0, "no memory for %u events: one acts at once", more);
			fn(arg, due);
			return;
		}
		heap = v;
		cap = more;
	}
	heap[i] = (struct event){due, next_seq++, fn, arg};
	atomic_store_explicit(&n, i + 1, memory_order_relaxed);
	for (; i && before(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(i, (i - 1) / 2);
}

bool event_pending(void)
{
	return atomic_load_explicit(&n, memory_order_relaxed) != 0;
}

bool event_due(void)
{
	/* No fence behind this reading: it is one of many looks, and the next one comes soon. */
	return event_pending() && heap[0].due <= clock_host_ticks_before_stores();
}

static struct event pop(void)
{
	struct event top = heap[0];
	uint32_t left = n - 1, i = 0;

	heap[0] = heap[left];
	atomic_store_explicit(&n, left, memory_order_relaxed);
	for (;;) {
		uint32_t k = 2 * i + 1;

		if (k >= left)
			break;
		if (k + 1 < left && before(&heap[k + 1], &heap[k]))
			k++;
		if (!before(&heap[k], &heap[i]))
			break;
		swap(i, k);
		i = k;
	}
	return top;
}

bool event_run(void)
{
	bool ran = false;

	while (n && heap[0].due <= event_now()) {
		struct event e = pop();

		e.fn(e.arg, e.due);
		ran = true;
	}
	return ran;
}
