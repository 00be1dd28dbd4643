/* SPDX-License-Identifier: Apache-2.0
 * sm_cuda.h: a CUDA device as SM, shared by sm_cuda.cu and sm_cuda_queue.cu.
 */
#ifndef PUTSCOPE_SM_CUDA_H
#define PUTSCOPE_SM_CUDA_H
#include <cuda_runtime.h>

#include "sm/sm_ops.h"

struct sm_gpu {
	int device;
	cudaStream_t stream;
	cudaEvent_t event; /* of sm_mark */
	struct cudaDeviceProp prop;
	int driver, runtime;
};

int gpu_mark(struct sm *sm);
int gpu_reached(struct sm *sm);
int gpu_call(struct sm *sm, void (*fn)(void *), void *arg);
int gpu_graph_make(struct sm *sm, const struct sm_step *steps, size_t n,
		   struct sm_graph **g);
int gpu_graph_launch(struct sm *sm, struct sm_graph *g);
void gpu_graph_free(struct sm *sm, struct sm_graph *g);
#endif
