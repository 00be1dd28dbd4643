/* SPDX-License-Identifier: Apache-2.0
 * hop_virtual.h: the virtual NIC as an instrument: its delays are switched, its own stamps are kept beside the samples.
 *
 * The stamps (series "vcx.HOP") are the truth that the solver is compared with; the solver does not read them.
 */
#ifndef PUTSCOPE_HOP_VIRTUAL_H
#define PUTSCOPE_HOP_VIRTUAL_H
#include "case.h"
#include "hop_model.h"

#define HOP_VIRTUAL_REMOTE 3.0 /* remote_write takes so many times base_ns */
/* base_ns at every hop (remote_write: more) and ns[] on top, from now on; and forget old stamps. */
void hop_virtual_set(double base_ns, const uint64_t ns[NIC_HOPS]);
void hop_virtual_clear(void); /* no delays, no stamps */
/* Stamps of the work requests since then, of queue pair qpn, as series of b. */
int hop_virtual_series(struct batch *b, uint32_t qpn, unsigned max);
#endif
