/* SPDX-License-Identifier: Apache-2.0
 * sysfs.h: what libibverbs reads of /sys to find two ConnectX-7.
 */
#ifndef VCX_SYSFS_H
#define VCX_SYSFS_H
#include <stdint.h>

int sysfs_make(const char *root, uint32_t fabric_id); /* 0 or errno */
int sysfs_remove_tree(const char *path); /* rm -r of what is ours; 0 or errno */
#endif
