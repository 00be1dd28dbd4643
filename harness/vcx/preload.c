/* SPDX-License-Identifier: Apache-2.0
 * preload.c: the calls of libibverbs and libmlx5 that would reach the kernel.
 *
 * Only /dev/infiniband/uverbs0 and 1 and what was opened from them are ours; all else goes to the kernel unchanged.  The
 * library creates no file: the sysfs tree is the launcher's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/netlink.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "device_clock.h"
#include "fabric.h"
#include "log.h"
#include "nic.h"
#include "stats.h"
#include "uverbs.h"
#include "vcx.h"

#define DEVICE_PATH "/dev/infiniband/uverbs"
#define DEVICE_MAJOR 231
#define DEVICE_MINOR 192
#define FDS \
	(1u << 20) /* the kernel's default ceiling of descriptors, /proc/sys/fs/nr_open */

enum fd_kind { FD_FOREIGN, FD_DEVICE0, FD_DEVICE1, FD_CHANNEL };
static uint8_t kind_of[FDS];
static int writer_of[FDS]; /* of a channel */

static enum fd_kind kind(int fd)
{
	return fd >= 0 && (unsigned)fd < FDS ? kind_of[fd] : FD_FOREIGN;
}

/* Device number of a path, -1 when it is not ours. */
static int device_of(const char *path)
{
	size_t n = sizeof DEVICE_PATH - 1;

	if (!path || strncmp(path, DEVICE_PATH, n) || !path[n] || path[n + 1] ||
	    path[n] < '0' || path[n] >= (char)('0' + VCX_DEVICES))
		return -1;
	return path[n] - '0';
}

static int open_device(int dev, int flags)
{
	int fd = nic_open(flags);

	if (fd < 0)
		return -1;
	if ((unsigned)fd >= FDS) {
		syscall(SYS_close, fd);
		errno = EMFILE;
		return -1;
	}
	kind_of[fd] = (uint8_t)(FD_DEVICE0 + dev);
	return fd;
}

int channel_new(int *fd)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC))
		return errno;
	if ((unsigned)p[0] >= FDS) {
		syscall(SYS_close, p[0]);
		syscall(SYS_close, p[1]);
		return EMFILE;
	}
	kind_of[p[0]] = FD_CHANNEL;
	writer_of[p[0]] = p[1];
	*fd = p[0];
	return 0;
}

int channel_writer(int fd)
{
	return kind(fd) == FD_CHANNEL ? writer_of[fd] : -1;
}

uint32_t channel_take_back(int writer, uint64_t handle)
{
	uint32_t taken = 0;
	int unread = 0, reader = -1;
	uint64_t event;

	for (unsigned fd = 0; fd < FDS && reader < 0; fd++)
		if (kind_of[fd] == FD_CHANNEL && writer_of[fd] == writer)
			reader = (int)fd;
	if (reader < 0 || syscall(SYS_ioctl, reader, FIONREAD, &unread))
		return 0;
	for (; unread >= (int)sizeof event; unread -= (int)sizeof event) {
		if (read(reader, &event, sizeof event) != sizeof event)
			break;
		if (event == handle)
			taken++;
		else if (write(writer, &event, sizeof event) !=
			 sizeof event) /* another CQ's: to the back of the line */
			LOG(0, "a completion event was lost");
	}
	return taken;
}

static int open_path(int at, const char *path, int flags, mode_t mode)
{
	int dev = device_of(path);

	return dev >= 0 ? open_device(dev, flags)
			: (int)syscall(SYS_openat, at, path, flags, mode);
}

#define TAKE_MODE(flags, mode)                           \
	do {                                             \
		va_list ap_;                             \
		mode = 0;                                \
		if ((flags) & (O_CREAT | __O_TMPFILE)) { \
			va_start(ap_, flags);            \
			mode = va_arg(ap_, mode_t);      \
			va_end(ap_);                     \
		}                                        \
	} while (0)

int open(const char *path, int flags, ...)
{
	mode_t mode;

	TAKE_MODE(flags, mode);
	return open_path(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	mode_t mode;

	TAKE_MODE(flags, mode);
	return open_path(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

int openat(int at, const char *path, int flags, ...)
{
	mode_t mode;

	TAKE_MODE(flags, mode);
	return open_path(at, path, flags, mode);
}

static void device_stat(struct stat *s, unsigned dev)
{
	memset(s, 0, sizeof *s);
	s->st_mode = S_IFCHR | 0666;
	s->st_rdev = makedev(DEVICE_MAJOR, DEVICE_MINOR + dev);
	s->st_nlink = 1;
}

int stat(const char *path, struct stat *s)
{
	int dev = device_of(path);

	if (dev < 0)
		return (int)syscall(SYS_newfstatat, AT_FDCWD, path, s, 0);
	device_stat(s, (unsigned)dev);
	return 0;
}

int fstat(int fd, struct stat *s)
{
	enum fd_kind k = kind(fd);

	if (k != FD_DEVICE0 && k != FD_DEVICE1)
		return (int)syscall(SYS_fstat, fd, s);
	device_stat(s, k - FD_DEVICE0);
	return 0;
}

int close(int fd)
{
	if (kind(fd) == FD_CHANNEL)
		syscall(SYS_close, writer_of[fd]);
	if (kind(fd) != FD_FOREIGN)
		kind_of[fd] = FD_FOREIGN;
	return (int)syscall(SYS_close, fd);
}

int ioctl(int fd, unsigned long request, ...)
{
	enum fd_kind k = kind(fd);
	va_list ap;
	void *arg;
	int rc;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if ((k != FD_DEVICE0 && k != FD_DEVICE1) || request != RDMA_VERBS_IOCTL)
		return (int)syscall(SYS_ioctl, fd, request, arg);
	fabric_lock();
	rc = uverbs_ioctl(k - FD_DEVICE0, arg);
	fabric_unlock();
	if (!rc)
		return 0;
	LOG(2, "  refused: %s", strerror(rc));
	errno = rc;
	return -1;
}

/* Discovery takes the sysfs path even where ib_core is loaded. */
int socket(int domain, int type, int protocol)
{
	if (domain != AF_NETLINK || protocol != NETLINK_RDMA)
		return (int)syscall(SYS_socket, domain, type, protocol);
	errno = EPROTONOSUPPORT;
	return -1;
}

/* ---- ibv_poll_cq runs a step of the NIC when cores are short ---- */
#define EMPTY_PATIENT 4096u
static int (*real_poll)(struct ibv_cq *cq, int n, struct ibv_wc *wc);

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	static __thread bool declared;
	static __thread unsigned empty; /* polls in a row that found nothing */
	int got = real_poll(cq, n, wc);

	if (got) {
		empty = 0;
		return got;
	}
	if (!declared) {
		declared = true;
		fabric_polled();
	}
	if (!vcx_polite() && ++empty < EMPTY_PATIENT)
		return 0; /* the NIC's thread has a core of its own, or so it seems */
	return vcx_step() ? real_poll(cq, n, wc) : 0;
}

/* ---- the device's clock is written when it is asked for ---- */
static int (*real_values)(struct ibv_context *ctx, struct ibv_values_ex *v);

static int query_values(struct ibv_context *ctx, struct ibv_values_ex *v)
{
	device_clock_update();
	return real_values(ctx, v);
}

static void hook_clock(struct ibv_context *ctx)
{
	struct verbs_context *v = verbs_get_ctx(ctx);

	if (!v || !v->query_rt_values || v->query_rt_values == query_values)
		return;
	real_values = v->query_rt_values;
	v->query_rt_values = query_values;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	static struct ibv_context *(*real)(struct ibv_device *);
	struct ibv_context *ctx;

	if (!real)
		*(void **)&real = dlvsym(RTLD_NEXT, "ibv_open_device", "IBVERBS_1.1");
	if (!real) {
		errno = ENOSYS;
		return NULL;
	}
	ctx = real(device);
	if (ctx && ctx->ops.poll_cq != poll_cq) {
		real_poll = ctx->ops.poll_cq;
		ctx->ops.poll_cq = poll_cq;
	}
	if (ctx)
		hook_clock(ctx);
	return ctx;
}

__attribute__((constructor)) static void begin(void)
{
	vcx_option_from_env();
}

__attribute__((destructor)) static void end(void)
{
	if (!fab || getpid() != vcx_me)
		return; /* a child that was forked, or nothing was used */
	nic_stop();
	vcx_stats_write();
	fabric_leave();
}
