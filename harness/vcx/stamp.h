/* SPDX-License-Identifier: Apache-2.0
 * stamp.h: the NIC's own account of each work request, kept for whoever checks a measurement against it.
 */
#ifndef VCX_STAMP_H
#define VCX_STAMP_H
#include "op.h"

static inline bool stamp_on(void)
{
	return atomic_load_explicit(&fab->control.stamps, memory_order_relaxed);
}
void stamp_keep(const struct op *o); /* fabric locked */
#endif
