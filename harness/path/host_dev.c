/* SPDX-License-Identifier: Apache-2.0
 * host_dev.c: the kernel of the host-initiated put: it writes the payload's head and ends; the put starts after it.
 */
#include "path/dev_loop.h"

DEV void produce_one(const struct produce_args *a)
{
	a->walls[0] = dev_wall();
	payload_store_head(a->src, payload_word(a->seq, 0), a->bytes);
	a->walls[1] = dev_wall();
}

DEV_KERNEL(produce, struct produce_args, produce_one(a))
DEV_C const struct dev_kernel DEV_NAME(produce_kernel) = DEV_ENTRY(produce,
								   struct produce_args);
