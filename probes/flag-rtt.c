/* SPDX-License-Identifier: Apache-2.0
 * flag-rtt: how long does one cache line take from core to core and back?  The floor under every host-SM number.
 *
 * Times:     store of the request flag -> load that sees the reply flag
 * Path:      core a --flag--> core b --flag--> core a, each flag in a line of its own
 * Clock:     the host's ticks
 * Includes:  one poll load a turn on each side, nothing else
 * Lies when: the two cores are hyperthreads of one core in one launch and of two in the next: compare within one run;
 *            which cores they were stands in the case's reason
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "case.h"
#include "clock.h"
#include "err.h"
#include "sm/dev.h"

#define TURNS 500u
#define DEADLINE_NS 1e9

struct line {
	uint64_t flag;
} __attribute__((aligned(128)));

struct flag_rtt {
	struct line ping, pong;
	struct clock_fit clock;
	uint64_t first, deadline_ticks;
	volatile int late;
};

/* One poll load a turn, until the flag is `want` or the deadline has passed. */
static bool wait_flag(struct flag_rtt *f, struct line *l, uint64_t want)
{
	uint64_t start = 0;
	uint32_t spins = 0;

	while (dev_ld8b(&l->flag) != want) {
		if (++spins % 4096)
			continue;
		if (!start)
			start = clock_host_ticks();
		if (f->late || clock_host_ticks() - start > f->deadline_ticks) {
			f->late = 1;
			return false;
		}
	}
	return true;
}

static void *responder(void *arg)
{
	struct flag_rtt *f = arg;

	sm_pin_always(1);
	for (uint64_t i = f->first; i < f->first + TURNS; i++) {
		if (!wait_flag(f, &f->ping, i))
			return NULL;
		dev_st8b(&f->pong.flag, i);
	}
	return NULL;
}

static void ping(struct flag_rtt *f, uint64_t *ticks)
{
	for (uint32_t i = 0; i < TURNS; i++) {
		uint64_t t0 = clock_host_ticks();

		dev_st8b(&f->ping.flag, f->first + i);
		if (!wait_flag(f, &f->pong, f->first + i))
			return;
		ticks[i] = clock_host_ticks() - t0;
	}
}

static void topology(char *out, size_t n)
{
	static const char *const keys[] = {"thread_siblings_list", "physical_package_id"};
	char path[128], got[2][64] = {"", ""};

	for (int k = 0; k < 2; k++) {
		FILE *f;

		snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/topology/%s",
			 keys[k]);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(got[k], sizeof got[k], f))
			got[k][strcspn(got[k], "\n")] = 0;
		fclose(f);
	}
	snprintf(out, n,
		 "the first two CPUs allowed, pinned; cpu0: siblings %s, package %s",
		 got[0], got[1]);
}

static int flag_rtt_cases(const struct opts *o, const struct env *env,
			  struct case_list *out)
{
	struct case_desc *c = case_add(out);

	(void)o;
	(void)env;
	if (!c)
		return err_say(-ENOMEM, "no memory for the list of cases");
	snprintf(c->id, sizeof c->id, "flag-rtt");
	c->bench = "flag-rtt";
	c->path = "none";
	c->size_bytes = 8;
	c->completion = "flag";
	c->data = "host";
	c->sm = "host-thread";
	c->nature = "hardware"; /* two real cores; no NIC and no SM takes part */
	c->spinners = 2;
	c->main_metric = "rtt";
	c->ordering = c->inlined = c->queue = c->cq = c->dbrec = c->doorbell =
		c->endpoints = "";
	topology(c->reason, sizeof c->reason);
	if (sm_cpus() < 2) {
		c->status = CASE_WAIVED;
		snprintf(c->reason, sizeof c->reason,
			 "needs two CPUs; this process may use one");
	}
	return 0;
}

static int flag_rtt_open(struct env *env, struct case_desc *c, void **state)
{
	struct flag_rtt *f;
	int err;

	(void)env;
	if (posix_memalign((void **)&f, 128, sizeof *f))
		return err_say(-ENOMEM, "no memory for flag-rtt");
	memset(f, 0, sizeof *f);
	err = clock_fit_host(&f->clock, 50);
	if (err) {
		free(f);
		return err;
	}
	f->first = 1;
	f->deadline_ticks = (uint64_t)(DEADLINE_NS / f->clock.ns_per_tick);
	c->step_ns = f->clock.step_ns;
	c->timer_overhead_ns = f->clock.overhead_ns;
	*state = f;
	return 0;
}

static int flag_rtt_batch(void *state, struct batch *b)
{
	struct flag_rtt *f = state;
	double *v = batch_series(b, "rtt", TURNS);
	uint64_t ticks[TURNS];
	pthread_t peer;
	int rc;

	if (!v)
		return err_say(-ENOMEM, "no memory for samples");
	sm_spinners(2, true, true);
	rc = pthread_create(&peer, NULL, responder, f);
	if (rc)
		return err_say(-rc, "cannot start the responder: %s", strerror(rc));
	sm_pin_always(0);
	ping(f, ticks);
	pthread_join(peer, NULL);
	sm_unpin_self();
	if (f->late)
		return err_say(-ETIMEDOUT, "a flag did not come back within a second");
	f->first += TURNS;
	for (uint32_t i = 0; i < TURNS; i++)
		v[i] = clock_ns(&f->clock, ticks[i]) - f->clock.overhead_ns;
	return 0;
}

const struct bench bench_flag_rtt = {
	.name = "flag-rtt",
	.question = "bound: one cache line from core to core and back",
	.uses = "",
	.needs_env = false,
	.cases = flag_rtt_cases,
	.open = flag_rtt_open,
	.batch = flag_rtt_batch,
	.close = free,
};
