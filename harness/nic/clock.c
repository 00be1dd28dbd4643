/* SPDX-License-Identifier: Apache-2.0
 * clock.c: the NIC's clock beside the host's.
 */
#include "clock.h"
#include "err.h"
#include "nic/nic.h"

#define READINGS 16

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
