/* SPDX-License-Identifier: Apache-2.0
 * log.h: what vcx says on stderr.  0: always; 1: each violation and object; 2: each ioctl and WQE.
 */
#ifndef VCX_LOG_H
#define VCX_LOG_H
#include <stdio.h>

#include "option.h"

#define LOG(level, ...)                                       \
	do {                                                  \
		if (vcx_option.log >= (level)) {              \
			fprintf(stderr, "vcx: " __VA_ARGS__); \
			fputc('\n', stderr);                  \
		}                                             \
	} while (0)
#endif
