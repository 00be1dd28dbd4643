/* SPDX-License-Identifier: Apache-2.0
 * dev_loop.h: what every timed loop of device code shares: patience while polling, the result of a launch.
 */
#ifndef PUTSCOPE_DEV_LOOP_H
#define PUTSCOPE_DEV_LOOP_H
#include "path/dev_path.h"
#include "path/payload.h"

#define POLLS_PER_CLOCK 16u /* a poll that found nothing reads the clock this rarely */

#define POLLS_PATIENT 16384u /* then somebody else may need this core to answer us */

struct dev_patience {
	uint64_t start;
	uint32_t spins;
};
/* After a poll that found nothing.  0 mostly; every 16th time the ticks since the first such reading, plus 1. */
DEV uint64_t dev_turn(struct dev_patience *p)
{
	uint64_t now;

	dev_relax();
	if (++p->spins % POLLS_PER_CLOCK)
		return 0;
	if (p->spins > POLLS_PATIENT)
		dev_give_way();
	now = dev_clock();
	if (!p->start)
		p->start = now;
	return now - p->start + 1;
}

/* 0 .. range - 1, another for each put and, independently, each salt (splitmix64's finaliser): puts and looks fall on every
 * phase of whatever runs in a loop. */
DEV uint32_t dev_phase(uint64_t seq, uint64_t salt, uint32_t range)
{
	uint64_t z = (seq * 64 + salt) * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)((z >> 32) * range >> 32);
}

DEV void dev_pause(uint64_t ticks)
{
	const uint64_t from = dev_clock();

	while (dev_clock() - from < ticks)
		;
}

/* Poll a flag word until it holds `want` under `mask`. */
DEV uint32_t dev_wait_flag(const uint8_t *flag, uint64_t want, uint64_t mask,
			   uint64_t deadline)
{
	struct dev_patience p = {0, 0};

	while ((dev_ld8b(flag) & mask) != (want & mask))
		if (dev_turn(&p) > deadline)
			return DEV_DEADLINE;
	return DEV_OK;
}

DEV void dev_result_open(struct dev_result *r)
{
	r->entry_wall = dev_wall();
	r->entry = dev_clock();
	r->status = DEV_OK;
	r->rerings = r->syndrome = r->at = 0;
}

/* Hand over the stamps of the puts that ended, then the result; the result goes last. */
DEV void dev_result_close(struct dev_result *r, struct dev_result *out, uint32_t done,
			  uint32_t per_op, const uint64_t *t, uint64_t *stamps,
			  const uint64_t *baseline)
{
	r->at = done;
	for (uint32_t i = 0; i < per_op * done; i++)
		stamps[i] = t[i];
	for (uint32_t i = 0; i < DEV_BASELINE; i++)
		r->baseline[i] = baseline[i];
	r->exit = dev_clock();
	r->exit_wall = dev_wall();
	*out = *r;
}
#endif
