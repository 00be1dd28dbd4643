/* SPDX-License-Identifier: Apache-2.0
 * sm_cuda_queue.cu: work in order on the stream of a CUDA device: events, host functions, graphs.
 */
#include <stdlib.h>

#include "sm/cuda_try.h"
#include "sm/sm_cuda.h"

int gpu_mark(struct sm *sm)
{
	struct sm_gpu *g = (struct sm_gpu *)sm->impl;
	int err = 0;

	CUDA_TRY(cudaEventRecord(g->event, g->stream), err, out);
out:
	return err;
}

int gpu_reached(struct sm *sm)
{
	struct sm_gpu *g = (struct sm_gpu *)sm->impl;
	cudaError_t rc = cudaEventQuery(g->event);
	int err = 0;

	if (rc == cudaErrorNotReady) {
		cudaGetLastError(); /* no error: who asks next shall not find it */
		return 0;
	}
	CUDA_TRY(rc, err, out);
	return 1;
out:
	return err;
}

int gpu_call(struct sm *sm, void (*fn)(void *), void *arg)
{
	struct sm_gpu *g = (struct sm_gpu *)sm->impl;
	int err = 0;

	CUDA_TRY(cudaLaunchHostFunc(g->stream, fn, arg), err, out);
out:
	return err;
}

struct sm_graph {
	cudaGraph_t graph;
	cudaGraphExec_t exec;
};

void gpu_graph_free(struct sm *sm, struct sm_graph *g)
{
	(void)sm;
	if (g->exec)
		cudaGraphExecDestroy(g->exec);
	if (g->graph)
		cudaGraphDestroy(g->graph);
	free(g);
}

static int gpu_graph_add(struct sm_graph *g, const struct sm_step *s,
			 cudaGraphNode_t *last)
{
	void *params[] = {(void *)s->args};
	struct cudaKernelNodeParams k = {};
	struct cudaHostNodeParams h = {};
	size_t behind = *last ? 1 : 0;
	cudaGraphNode_t node;
	int err = 0;

	if (s->kernel) {
		k.func = (void *)s->kernel->gpu;
		k.gridDim = dim3(1);
		k.blockDim = dim3(s->kernel->threads);
		k.kernelParams = params;
		CUDA_TRY(cudaGraphAddKernelNode(&node, g->graph, last, behind, &k), err,
			 out);
	} else {
		h.fn = s->fn;
		h.userData = s->arg;
		CUDA_TRY(cudaGraphAddHostNode(&node, g->graph, last, behind, &h), err,
			 out);
	}
	*last = node;
out:
	return err;
}

int gpu_graph_make(struct sm *sm, const struct sm_step *steps, size_t n,
		   struct sm_graph **out)
{
	struct sm_gpu *gpu = (struct sm_gpu *)sm->impl;
	struct sm_graph *g = (struct sm_graph *)calloc(1, sizeof *g);
	cudaGraphNode_t last = NULL;
	int err = 0;

	*out = NULL;
	if (!g)
		return err_say(-ENOMEM, "no memory for a graph");
	CUDA_TRY(cudaGraphCreate(&g->graph, 0), err, out);
	for (size_t i = 0; i < n; i++)
		OUR_TRY(gpu_graph_add(g, &steps[i], &last), err, out);
	CUDA_TRY(cudaGraphInstantiate(&g->exec, g->graph, 0), err, out);
	CUDA_TRY(cudaGraphUpload(g->exec, gpu->stream), err, out);
	CUDA_TRY(cudaStreamSynchronize(gpu->stream), err, out);
	*out = g;
	return 0;
out:
	gpu_graph_free(sm, g);
	return err;
}

int gpu_graph_launch(struct sm *sm, struct sm_graph *g)
{
	struct sm_gpu *gpu = (struct sm_gpu *)sm->impl;
	int err = 0;

	CUDA_TRY(cudaGraphLaunch(g->exec, gpu->stream), err, out);
out:
	return err;
}
