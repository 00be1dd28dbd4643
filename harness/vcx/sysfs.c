/* SPDX-License-Identifier: Apache-2.0
 * sysfs.c: write and remove the tree.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric_id.h"
#include "sysfs.h"

#define DEVICES 2u

static int put(const char *root, const char *path, const char *value)
{
	char file[4096];
	int fd;
	size_t n = strlen(value);

	if ((size_t)snprintf(file, sizeof file, "%s/%s", root, path) >= sizeof file)
		return ENAMETOOLONG;
	for (char *p = file + strlen(root) + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = 0;
		if (mkdir(file, 0755) && errno != EEXIST)
			return errno;
	}
	fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return errno;
	if (write(fd, value, n) != (ssize_t)n || write(fd, "\n", 1) != 1) {
		close(fd);
		return EIO;
	}
	close(fd);
	return 0;
}

static int device(const char *root, unsigned dev, uint32_t fabric_id)
{
	static const struct {
		const char *path, *value;
	} files[] = {
		{"node_type", "1: CA"},
		{"fw_ver", "28.39.2048"},
		{"hca_type", "MT4129"}, /* ConnectX-7 */
		{"board_id", "VCX0000000001"},
		{"hw_rev", "0"},
		{"device/modalias",
		 "pci:v000015B3d00001021sv000015B3sd00000023bc02sc07i00"},
		{"device/vendor", "0x15b3"},
		{"device/device", "0x1021"},
		{"device/numa_node", "0"},
		{"ports/1/pkeys/0", "0xffff"},
		{"ports/1/link_layer", "Ethernet"},
		{"ports/1/state", "4: ACTIVE"},
	};
	uint64_t guid = vcx_guid(fabric_id, dev);
	char path[128], value[64];
	int rc = 0;

	for (unsigned i = 0; i < sizeof files / sizeof *files && !rc; i++) {
		snprintf(path, sizeof path, "class/infiniband/mlx5_%u/%s", dev,
			 files[i].path);
		rc = put(root, path, files[i].value);
	}
	snprintf(value, sizeof value, "%04x:%04x:%04x:%04x", (unsigned)(guid >> 48),
		 (unsigned)(guid >> 32 & 0xffff), (unsigned)(guid >> 16 & 0xffff),
		 (unsigned)(guid & 0xffff));
	for (int i = 0; i < 2 && !rc; i++) {
		snprintf(path, sizeof path, "class/infiniband/mlx5_%u/%s", dev,
			 i ? "sys_image_guid" : "node_guid");
		rc = put(root, path, value);
	}
	if (!rc) {
		snprintf(path, sizeof path, "class/infiniband_verbs/uverbs%u/ibdev", dev);
		snprintf(value, sizeof value, "mlx5_%u", dev);
		rc = put(root, path, value);
	}
	if (!rc) {
		snprintf(path, sizeof path, "class/infiniband_verbs/uverbs%u/dev", dev);
		snprintf(value, sizeof value, "231:%u", 192 + dev);
		rc = put(root, path, value);
	}
	if (!rc) {
		snprintf(path, sizeof path, "class/infiniband_verbs/uverbs%u/abi_version",
			 dev);
		rc = put(root, path, "1");
	}
	return rc;
}

int sysfs_make(const char *root, uint32_t fabric_id)
{
	int rc = put(root, "class/infiniband_verbs/abi_version", "6");

	/* The last made comes first in a listing of tmpfs, and libibverbs keeps that order. */
	for (unsigned dev = DEVICES; dev-- > 0 && !rc;)
		rc = device(root, dev, fabric_id);
	return rc;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *f)
{
	(void)s;
	(void)type;
	(void)f;
	return remove(path) && errno != ENOENT ? errno : 0;
}

int sysfs_remove_tree(const char *path)
{
	int rc = nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);

	return rc < 0 ? errno : rc;
}
