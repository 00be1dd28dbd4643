/* SPDX-License-Identifier: Apache-2.0
 * device_clock.h: the device's clock as libmlx5 reads it: a page with the counter, a page with its rate.
 */
#ifndef VCX_DEVICE_CLOCK_H
#define VCX_DEVICE_CLOCK_H

/* Pages of the device's descriptor: doorbells below VCX_UARS, then what libmlx5 maps by command << 8 (rdma-core
 * providers/mlx5/mlx5.h: MLX5_MMAP_GET_CORE_CLOCK_CMD 5, MLX5_MMAP_GET_CLOCK_INFO_CMD 7). */
#define DEVICE_CLOCK_PAGE 0x500u
#define DEVICE_CLOCK_INFO_PAGE 0x700u
#define DEVICE_PAGES 0x800u

int device_clock_start(int fd); /* 0 or errno */
/* A page of memory does not tick by itself: the NIC's thread writes it while idle, and whoever asks through libibverbs
 * writes it first. */
void device_clock_update(void);
#endif
