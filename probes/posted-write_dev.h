/* SPDX-License-Identifier: Apache-2.0
 * posted-write_dev.h: arguments of the kernels in posted-write_dev.c, shared by gcc and nvcc.
 */
#ifndef PUTSCOPE_POSTED_WRITE_DEV_H
#define PUTSCOPE_POSTED_WRITE_DEV_H
#include "path/dev_path.h"

#define POSTED_STORES 16384u /* of one launch, the run-in first */
#define POSTED_RUN_IN 8192u  /* stores that fill whatever buffers there are; not timed */
#define POSTED_GROUP 64u     /* stores between two clock reads */
#define POSTED_GROUPS ((POSTED_STORES - POSTED_RUN_IN) / POSTED_GROUP)
#define POSTED_LINE_BYTES 64u
#define POSTED_BYTES (POSTED_STORES * POSTED_LINE_BYTES)

enum posted_where { POSTED_LINES, POSTED_ONE_WORD, POSTED_WHERES };

struct posted_args {
	uint8_t *to;	/* host memory, POSTED_BYTES */
	uint64_t value; /* store i writes value + i */
	uint64_t *
		stamps; /* [POSTED_GROUPS] ticks of each group, [POSTED_GROUPS] of the whole launch to its fence */
	struct dev_result *result;
};

#ifdef __cplusplus
extern "C" {
#endif
extern const struct dev_kernel posted_kernels_host[POSTED_WHERES],
	posted_kernels_cuda[POSTED_WHERES];
#ifdef __cplusplus
}
#endif
#endif
