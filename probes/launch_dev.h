/* SPDX-License-Identifier: Apache-2.0
 * launch_dev.h: the null kernel of launch_dev.c, and what launch_cuda.cu measures beside it.
 */
#ifndef PUTSCOPE_LAUNCH_DEV_H
#define PUTSCOPE_LAUNCH_DEV_H
#include "path/dev_path.h"

struct launch_args {
	uint64_t unused;
};

struct launch_cuda; /* a stream and an event of its own */

#ifdef __cplusplus
extern "C" {
#endif
extern const struct dev_kernel launch_null_host, launch_null_cuda;
/* On the current device.  Both calls: n samples in host ticks; -ETIMEDOUT, with the sentence, when one takes longer than
 * deadline_ticks. */
int launch_cuda_open(struct launch_cuda **l);
int launch_cuda_event_query(struct launch_cuda *l, uint64_t *ticks, uint32_t n,
			    uint64_t deadline_ticks);
int launch_cuda_callback(struct launch_cuda *l, uint64_t *ticks, uint32_t n,
			 uint64_t deadline_ticks);
void launch_cuda_close(struct launch_cuda *l);
#ifdef __cplusplus
}
#endif
#endif
