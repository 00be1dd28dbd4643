/* SPDX-License-Identifier: Apache-2.0
 * sm_dev.h: arguments of the kernels that time one instruction of the SM: a store, a fence, an atomic.
 */
#ifndef PUTSCOPE_SM_PROBES_DEV_H
#define PUTSCOPE_SM_PROBES_DEV_H
#include "path/dev_path.h"

#define SM_TURNS 256u /* of one launch */
#define SM_LINES 64u  /* lines that the stores go to in turn */
#define SM_LINE_BYTES 128u
#define SM_BYTES (SM_LINES * SM_LINE_BYTES)

struct sm_args {
	uint8_t *at; /* SM_BYTES, device address */
	uint64_t *
		stamps; /* [SM_TURNS] ticks of each, [SM_TURNS]: what the atomics added up to */
	struct dev_result *result;
};

enum sm_store { STORE_4, STORE_8, STORE_16, STORE_MMIO, STORES };
enum sm_fence { FENCE_GPU, FENCE_SYS, FENCES };
enum sm_behind { BEHIND_0, BEHIND_1, BEHIND_16, BEHINDS };
enum sm_atomic { ATOMIC_GPU, ATOMIC_SYS, ATOMICS };

#ifdef __cplusplus
extern "C" {
#endif
extern const struct dev_kernel sm_store_kernels_host[STORES],
	sm_store_kernels_cuda[STORES];
extern const struct dev_kernel fence_kernels_host[FENCES][BEHINDS],
	fence_kernels_cuda[FENCES][BEHINDS];
extern const struct dev_kernel atomic_kernels_host[ATOMICS], atomic_kernels_cuda[ATOMICS];
extern const struct dev_kernel clock_kernels_host[2],
	clock_kernels_cuda[2]; /* SM's, shared */
#ifdef __cplusplus
}
#endif
#endif
