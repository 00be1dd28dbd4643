/* SPDX-License-Identifier: Apache-2.0
 * launch_dev.c: a kernel that does nothing.
 */
#include "launch_dev.h"
#include "sm/dev.h"

DEV_KERNEL(launch_null, struct launch_args, (void)a)
DEV_C const struct dev_kernel DEV_NAME(launch_null) = DEV_ENTRY(launch_null,
								struct launch_args);
