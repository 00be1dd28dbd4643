/* SPDX-License-Identifier: Apache-2.0
 * clock.c: the NIC's clock beside the host's.
 */
#include <math.h>
#include <time.h>

#include "clock.h"
#include "err.h"
#include "nic/nic.h"

#define READINGS 16
#define FIT_NS 50000000 /* between the two readings of a fit */

double nic_clock_mhz(const struct nic *nic)
{
	struct ibv_device_attr_ex attr = {0};

	if (ibv_query_device_ex(nic->ctx, NULL, &attr))
		return 0;
	return (double)attr.hca_core_clock / 1000;
}

int nic_clock_read(const struct nic *nic, double host_ns_per_tick, struct nic_moment *m)
{
	struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

	m->bound_ns = 1e18;
	for (int i = 0; i < READINGS; i++) {
		uint64_t before = clock_host_ticks(), after;
		int rc = ibv_query_rt_values_ex(nic->ctx, &v);
		double half;

		after = clock_host_ticks();
		if (rc || !(v.comp_mask & IBV_VALUES_MASK_RAW_CLOCK))
			return err_say(-EOPNOTSUPP, "%s shows no clock: %s", nic->name,
				       strerror(rc ? rc : EOPNOTSUPP));
		half = (double)(after - before) * host_ns_per_tick / 2;
		if (half >= m->bound_ns)
			continue;
		m->bound_ns = half;
		m->host = before + (after - before) / 2;
		m->nic = (uint64_t)v.raw_clock.tv_sec * 1000000000u +
			 (uint64_t)v.raw_clock.tv_nsec;
	}
	return 0;
}

int nic_clock_fit(const struct nic *nic, double host_ns_per_tick, struct clock_fit *c)
{
	const struct timespec nap = {0, FIT_NS};
	double mhz = nic_clock_mhz(nic), ns;
	struct nic_moment a, b;
	int err;

	memset(c, 0, sizeof *c);
	c->name = "nic";
	c->step_ns = c->overhead_ns = c->drift_ppm = NAN;
	if (!mhz)
		return err_say(-EOPNOTSUPP, "%s does not say how fast its clock is",
			       nic->name);
	err = nic_clock_read(nic, host_ns_per_tick, &a);
	if (err)
		return err;
	nanosleep(&nap, NULL);
	err = nic_clock_read(nic, host_ns_per_tick, &b);
	if (err)
		return err;
	ns = (double)(b.host - a.host) * host_ns_per_tick;
	c->ns_per_tick = ns / (double)(b.nic - a.nic);
	c->drift_ppm = (1000 / mhz - c->ns_per_tick) / c->ns_per_tick * 1e6;
	c->bound_ns = fmax(a.bound_ns, b.bound_ns);
	return 0;
}
