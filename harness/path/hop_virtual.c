/* SPDX-License-Identifier: Apache-2.0
 * hop_virtual.c: delays and stamps of the virtual NIC.  On a real one all this does nothing.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "err.h"
#include "path/hop_virtual.h"
#include "vcx/vcx.h"

#define H(id, name) "vcx." name,
static const char *const series_names[VCX_HOPS] = {VCX_HOP_LIST(H)};
#undef H

static struct {
	bool looked;
	int (*delay)(const char *, uint64_t);
	void (*stamping)(int);
	int (*stamps)(struct vcx_stamp *, int);
} vcx;

static bool found(void)
{
	if (!vcx.looked) {
		*(void **)&vcx.delay = dlsym(RTLD_DEFAULT, "vcx_delay");
		*(void **)&vcx.stamping = dlsym(RTLD_DEFAULT, "vcx_stamping");
		*(void **)&vcx.stamps = dlsym(RTLD_DEFAULT, "vcx_stamps");
		vcx.looked = true;
	}
	return vcx.delay && vcx.stamping && vcx.stamps;
}

static void drain(void)
{
	struct vcx_stamp s[64];

	while (vcx.stamps(s, 64) > 0)
		;
}

void hop_virtual_set(double base_ns, const uint64_t ns[NIC_HOPS])
{
	if (!found())
		return;
	for (int h = 0; h < NIC_HOPS; h++) {
		/* One thread plays both devices and its stores leave in order: where data and completion fall due 250 ns
		 * apart, the second was seen 30-70 ns late on cores that are 500 ns away from each other.  So they stay two
		 * bases apart in loopback and one across, and half a base each when a hop takes half a base more. */
		double base =
			h == NIC_REMOTE_WRITE ? HOP_VIRTUAL_REMOTE * base_ns : base_ns;

		vcx.delay(nic_hop_names[h], (uint64_t)base + ns[h]);
	}
	vcx.stamping(1);
	drain();
}

void hop_virtual_clear(void)
{
	if (!found())
		return;
	vcx.stamping(0);
	for (int h = 0; h < NIC_HOPS; h++)
		vcx.delay(nic_hop_names[h], 0);
}

int hop_virtual_series(struct batch *b, uint32_t qpn, unsigned max)
{
	struct vcx_stamp *s;
	unsigned n = 0;
	int got, err = 0;

	if (!found())
		return 0;
	s = calloc(max, sizeof *s);
	if (!s)
		return err_say(-ENOMEM, "no memory for the virtual NIC's stamps");
	while (n < max && (got = vcx.stamps(s + n, (int)(max - n))) > 0) {
		unsigned kept = n;

		for (unsigned i = n; i < n + (unsigned)got; i++)
			if (s[i].qpn == qpn)
				s[kept++] = s[i];
		n = kept;
	}
	for (int h = 0; h < VCX_HOPS && n && !err; h++) {
		double *v;

		if (s[0].ns[h] < 0)
			continue; /* this experiment does not pass it */
		v = batch_series(b, series_names[h], n);
		if (!v)
			err = err_say(-ENOMEM, "no memory for samples");
		for (unsigned i = 0; v && i < n; i++)
			v[i] = s[i].ns[h] < 0 ? 0 : s[i].ns[h];
	}
	free(s);
	return err;
}
