/* SPDX-License-Identifier: Apache-2.0
 * cuda_try.h: the one way to call the CUDA runtime: see err.h for its like.
 */
#ifndef PUTSCOPE_CUDA_TRY_H
#define PUTSCOPE_CUDA_TRY_H
#include <cuda_runtime.h>

#include "err.h"

/* Runs CALL; on failure it stores a sentence, sets ERR to -EIO and jumps to OUT. */
#define CUDA_TRY(call, err, out)                                                       \
	do {                                                                           \
		cudaError_t rc_ = (call);                                              \
		if (rc_ != cudaSuccess) {                                              \
			cudaGetLastError();                                            \
			err = err_say(-EIO, "%s: %s", #call, cudaGetErrorString(rc_)); \
			goto out;                                                      \
		}                                                                      \
	} while (0)
#endif
