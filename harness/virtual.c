/* SPDX-License-Identifier: Apache-2.0
 * virtual.c: choose between the machine's NIC and vcx.  Where a device exists it is used or the run fails.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "err.h"
#include "nic/nic.h"
#include "vcx/launch.h"
#include "virtual.h"

#define SYS_RDMA "/sys/class/infiniband"
#define STARTED "PUTSCOPE_STARTED_VCX" /* left in the environment of the run under vcx */

static int real_devices(void)
{
	DIR *d = opendir(SYS_RDMA);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

int virtual_needed(const char *nic)
{
	char path[512];

	if (nic_is_virtual())
		return 0;
	if (getenv("VCX_ACTIVE")) /* never start over: that would not end */
		return err_say(
			-EPERM,
			"the virtual NIC was started but its library did not load (see the loader's words "
			"above): is libvcx.so beside the program, and built for this machine?");
	if (!strcmp(nic, "virtual"))
		return 1;
	if (!strcmp(nic, "auto"))
		return real_devices() == 0;
	snprintf(path, sizeof path, SYS_RDMA "/%.255s", nic);
	if (access(path, F_OK))
		return err_say(-ENODEV,
			       "no RDMA device named %s in " SYS_RDMA
			       " (%d there); see ibv_devices, or use --nic virtual",
			       nic, real_devices());
	return 0;
}

bool virtual_started_here(void)
{
	return getenv(STARTED) != NULL;
}

int virtual_check(const char *opt)
{
	char why[200];

	return vcx_launch_check(opt, why, sizeof why)
		       ? err_say(-EINVAL, "--vcx %s: %s", opt, why)
		       : 0;
}

/* Ranks of one launch on one host share a fabric by themselves: a file named after the launch. */
static bool shared_fabric(char *opt, size_t size, const char **vcx_opts, int n)
{
	const char *all = getenv("OMPI_COMM_WORLD_SIZE"),
		   *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE"),
		   *name = getenv("PMIX_NAMESPACE");

	if (!all || !here || !name || atoi(all) < 2 || strcmp(all, here) ||
	    strchr(name, '/'))
		return false;
	for (int i = 0; i < n; i++)
		if (!strncmp(vcx_opts[i], "fabric=", 7))
			return false;
	snprintf(opt, size, "fabric=" VCX_SHARED_FABRIC "%u-%.100s", (unsigned)geteuid(),
		 name);
	return true;
}

int virtual_start(char **argv, const char **vcx_opts, int n)
{
	const char *opts[VIRTUAL_OPTS_MAX + 1];
	struct vcx_launch l = {.opts = opts, .nopts = n};
	char fabric[200];

	memcpy(opts, vcx_opts, (size_t)n * sizeof *opts);
	if (shared_fabric(fabric, sizeof fabric, vcx_opts, n))
		opts[l.nopts++] = fabric;

	fputs("putscope: no ConnectX is used: the NIC is virtual (vcx); every number says so\n",
	      stderr);
	setenv(STARTED, "1", 1);
	return vcx_launch(&l, argv);
}
