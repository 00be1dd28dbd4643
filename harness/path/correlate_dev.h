/* SPDX-License-Identifier: Apache-2.0
 * correlate_dev.h: arguments of the kernel in correlate_dev.c.
 */
#ifndef PUTSCOPE_CORRELATE_DEV_H
#define PUTSCOPE_CORRELATE_DEV_H
#include "path/dev_path.h"

#define CORRELATE_TURNS 64u

struct correlate_args {
	uint64_t *ask; /* host memory: the CPU counts up */
	uint64_t *
		answer; /* host memory: [0] the count that is answered, [1] the clock then */
	uint64_t deadline_ticks;
	struct dev_result *result;
};

#ifdef __cplusplus
extern "C" {
#endif
extern const struct dev_kernel correlate_kernel_host, correlate_kernel_cuda;
#ifdef __cplusplus
}
#endif
#endif
