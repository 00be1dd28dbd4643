/* SPDX-License-Identifier: Apache-2.0
 * mem.h: the NIC's DMA: this process, another process of the fabric, or GPU memory of this process.
 */
#ifndef VCX_MEM_H
#define VCX_MEM_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* An address that the NIC can reach; gpu != NULL: GPU memory in that CUDA context. */
struct vcx_addr {
	uint64_t p;
	void *gpu;
	pid_t pid;
};

struct vcx_addr mem_here(void *p);
struct vcx_addr mem_add(struct vcx_addr a, uint64_t n);
int mem_copy(struct vcx_addr to, struct vcx_addr from, size_t n); /* 0 or -1 */
int mem_read(pid_t pid, void *to, uint64_t from, size_t n);	  /* host memory of pid */
int mem_write(pid_t pid, uint64_t to, const void *from, size_t n);
uint32_t mem_read32(pid_t pid,
		    uint64_t from); /* one 4-byte load where pid is this process */
void *mem_gpu_context(uint64_t p);  /* CUDA context if p is GPU memory, else NULL */
#endif
