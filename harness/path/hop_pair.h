/* SPDX-License-Identifier: Apache-2.0
 * hop_pair.h: a connected pair of queue pairs, from endpoint A's device to the same device or to the other one.
 */
#ifndef PUTSCOPE_HOP_PAIR_H
#define PUTSCOPE_HOP_PAIR_H
#include "path/hop.h"

#define HOP_PAIRS 4u

struct hop_side {
	struct nic *nic;
	struct nic_qp *qp; /* A's is driven by the SM, B's by the CPU */
	struct ibv_mr *src, *dst;
};
struct hop_pair {
	bool open;
	struct hop_side end[END_COUNT];
};
#endif
