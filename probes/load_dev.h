/* SPDX-License-Identifier: Apache-2.0
 * load_dev.h: arguments of the kernels in load_dev.c, shared by gcc and nvcc.
 */
#ifndef PUTSCOPE_LOAD_DEV_H
#define PUTSCOPE_LOAD_DEV_H
#include "path/dev_path.h"

#define LOAD_TURNS 512u /* timed loads of one launch */

enum load_scope { LOAD_GPU, LOAD_SYS, LOAD_SCOPES };

struct load_args {
	uint64_t
		first; /* device address of the node to begin at; each node holds the next one's */
	uint64_t warm; /* loads before the timed ones: once around, or none */
	uint64_t *
		stamps; /* [LOAD_TURNS] ticks of each load, [LOAD_TURNS] where the walk ended */
	struct dev_result *result;
};

#ifdef __cplusplus
extern "C" {
#endif
extern const struct dev_kernel load_kernels_host[LOAD_SCOPES],
	load_kernels_cuda[LOAD_SCOPES];
#ifdef __cplusplus
}
#endif
#endif
