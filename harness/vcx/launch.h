/* SPDX-License-Identifier: Apache-2.0
 * launch.h: run a command on the virtual ConnectX.
 *
 * The launcher owns all that lies in the file system: a folder with a lock that it holds while it lives, the sysfs tree that
 * libibverbs reads, the fabric file.  A folder whose lock has no holder is removed by the next launcher.
 */
#ifndef VCX_LAUNCH_H
#define VCX_LAUNCH_H
#include <stddef.h>

/* Fabric files by this name belong to nobody once no launcher holds them, and are removed. */
#define VCX_SHARED_DIR "/dev/shm"
#define VCX_SHARED_NAME "vcxfabric-"
#define VCX_SHARED_FABRIC VCX_SHARED_DIR "/" VCX_SHARED_NAME

struct vcx_launch {
	const char **opts; /* KEY=VALUE, or a bare flag; checked */
	int nopts;
};
/* Is this option one of vcx's?  0, or -1 with the reason in err. */
int vcx_launch_check(const char *opt, char *err, size_t n);
/* Run argv (argv[0] by PATH) and wait: its exit status, or 128 + signal; 2 when it cannot be started.  Inside another vcx
 * the command joins that one. */
int vcx_launch(const struct vcx_launch *l, char *const argv[]);
#endif
