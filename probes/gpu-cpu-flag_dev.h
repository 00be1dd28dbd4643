/* SPDX-License-Identifier: Apache-2.0
 * gpu-cpu-flag_dev.h: arguments of the kernel in gpu-cpu-flag_dev.c, shared by gcc and nvcc.
 */
#ifndef PUTSCOPE_GPU_CPU_FLAG_DEV_H
#define PUTSCOPE_GPU_CPU_FLAG_DEV_H
#include "path/dev_path.h"

#define FLAG_TURNS 256u /* round trips of one launch */

struct flag_args {
	uint8_t *ping, *pong; /* host memory, a line of its own each */
	uint64_t first;	      /* turn i carries first + i, never used before */
	uint64_t deadline_ticks;
	uint64_t *stamps; /* [FLAG_TURNS] ticks of each round trip */
	struct dev_result *result;
};

#ifdef __cplusplus
extern "C" {
#endif
extern const struct dev_kernel flag_kernel_host, flag_kernel_cuda;
#ifdef __cplusplus
}
#endif
#endif
