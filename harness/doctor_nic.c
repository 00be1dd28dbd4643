/* SPDX-License-Identifier: Apache-2.0
 * doctor_nic.c: the NIC: driver and firmware, link, GIDs, CQE compression, flow control, who else uses it.
 */
#include <ctype.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "doctor.h"

#define RDMA "/sys/class/infiniband/%s"
#define GIDS_MAX 256

void nic_interface(const struct doctor_dev *nic, char *buf, size_t n)
{
	char **names;
	int count = sys_names(&names, RDMA "/device/net", nic->name);

	snprintf(buf, n, "%s", count > 0 ? names[0] : "");
	sys_names_free(names, count);
}

static bool is_ethernet(const struct doctor_dev *nic)
{
	char layer[32];

	return !sys_line(layer, sizeof layer, RDMA "/ports/1/link_layer", nic->name) &&
	       !strcmp(layer, "Ethernet");
}

static void no_nic(const struct doctor *d, struct finding *f)
{
	if (d->idle_nics) {
		say_found(f, "%u ConnectX function%s on the PCI bus, no RDMA device",
			  d->idle_nics, d->idle_nics == 1 ? "" : "s");
		say_status(
			f, DOCTOR_FAIL,
			"the NIC that is there is not used: `run` would take the virtual one");
		say_remedy(f, "sudo modprobe -a mlx5_core mlx5_ib ib_uverbs");
		return;
	}
	say_found(f, "no RDMA device in /sys/class/infiniband, no ConnectX %s",
		  d->pci_read ? "on the PCI bus"
			      : "to be seen: the PCI bus cannot be read");
	say_status(
		f, DOCTOR_WARN,
		"`run` takes the virtual NIC (vcx): the protocol and the SM's half are real, nothing is a ConnectX's speed");
	say_remedy(f, "none here: measure on a machine with a ConnectX");
}

void check_nic(const struct doctor *d, const struct subject *s, struct finding *f)
{
	const struct doctor_dev *nic = s->nic;
	char fw[64], board[64], type[64];

	if (!nic) {
		no_nic(d, f);
		return;
	}
	if (d->virtual_nic) {
		say_found(f, "virtual: vcx plays it in this process");
		say_status(
			f, DOCTOR_WARN,
			"rows say virtual: nothing is a ConnectX's speed; link, firmware and PCIe path are not checked");
		say_remedy(
			f,
			"build/putscope doctor   (without build/vcx, to see the machine's own NICs)");
		return;
	}
	sys_line(type, sizeof type, RDMA "/hca_type", nic->name);
	sys_line(board, sizeof board, RDMA "/board_id", nic->name);
	if (sys_line(fw, sizeof fw, RDMA "/fw_ver", nic->name))
		strcpy(fw, "not told");
	say_found(f, "%s, board %s, firmware %s, driver %s",
		  *type ? type : "type not told", *board ? board : "not told", fw,
		  *nic->driver ? nic->driver : "none");
	if (!strcmp(nic->driver, "mlx5_core")) {
		say_status(
			f, DOCTOR_OK,
			"a ConnectX: the SM, a proxy and the host can drive it; compare numbers of one firmware only");
		return;
	}
	say_status(f, DOCTOR_WARN,
		   "no ConnectX: only paths where the CPU posts run on it");
	say_remedy(
		f,
		"build/putscope run --nic NAME   (the name of a ConnectX, see ibv_devices)");
}

void check_nic_link(const struct doctor *d, const struct subject *s, struct finding *f)
{
	const char *nic = s->nic->name;
	char state[32], phys[32], rate[64], layer[32], dev[64];
	int err = sys_line(state, sizeof state, RDMA "/ports/1/state", nic);

	(void)d;
	if (err) {
		say_unread(f, "the state of port 1", err);
		return;
	}
	sys_line(phys, sizeof phys, RDMA "/ports/1/phys_state", nic);
	sys_line(rate, sizeof rate, RDMA "/ports/1/rate", nic);
	sys_line(layer, sizeof layer, RDMA "/ports/1/link_layer", nic);
	nic_interface(s->nic, dev, sizeof dev);
	say_found(f, "port 1: state %s, physical %s, %s, %s", state,
		  *phys ? phys : "not told", *rate ? rate : "rate not told",
		  *layer ? layer : "link layer not told");
	if (*dev)
		say_found(f, ", interface %s", dev);
	if (strstr(state, "ACTIVE")) {
		say_status(f, DOCTOR_OK, "the port sends; the rate bounds large puts");
		return;
	}
	say_status(f, DOCTOR_FAIL, "nothing can be sent through this NIC");
	if (is_ethernet(s->nic))
		say_remedy(
			f,
			"sudo ip link set dev %s up   (then the cable: sudo ethtool %s)",
			*dev ? dev : "INTERFACE", *dev ? dev : "INTERFACE");
	else
		say_remedy(
			f,
			"ibstat %s   (physical link up but not active: no subnet manager answers, sudo systemctl start opensm)",
			nic);
}

struct gids {
	int v2, routable, v1;
	int first_v2;
};

static bool gid_is_zero(const char *gid)
{
	return strspn(gid, "0:") == strlen(gid);
}

static int gids_read(const char *nic, struct gids *g)
{
	char **names, gid[64], type[32];
	int n = sys_names(&names, RDMA "/ports/1/gids", nic), err = n < 0 ? n : 0;

	*g = (struct gids){.first_v2 = -1};
	for (int i = 0; i < n && i < GIDS_MAX; i++) {
		if (sys_line(gid, sizeof gid, RDMA "/ports/1/gids/%s", nic, names[i]) ||
		    gid_is_zero(gid))
			continue;
		/* an empty entry answers EINVAL */
		if (sys_line(type, sizeof type, RDMA "/ports/1/gid_attrs/types/%s", nic,
			     names[i]))
			continue;
		if (strcmp(type, "RoCE v2")) {
			g->v1++;
			continue;
		}
		g->first_v2 = g->v2++ ? g->first_v2 : atoi(names[i]);
		g->routable += strncmp(gid, "fe80", 4) != 0;
	}
	sys_names_free(names, n);
	return err;
}

static void check_lid(const char *nic, struct finding *f)
{
	long long lid = 0;
	int err = sys_number(&lid, RDMA "/ports/1/lid", nic);

	if (err) {
		say_unread(f, "the LID of port 1", err);
		return;
	}
	say_found(f, "InfiniBand, LID %lld", lid);
	if (lid) {
		say_status(f, DOCTOR_OK, "peers find this port by its LID");
		return;
	}
	say_status(f, DOCTOR_FAIL,
		   "no subnet manager gave a LID: no peer can be reached");
	say_remedy(f, "sudo systemctl start opensm   (on one node of the fabric)");
}

void check_nic_gid(const struct doctor *d, const struct subject *s, struct finding *f)
{
	char dev[64];
	struct gids g;
	int err;

	(void)d;
	if (!is_ethernet(s->nic)) {
		check_lid(s->nic->name, f);
		return;
	}
	err = gids_read(s->nic->name, &g);
	if (err) {
		say_unread(f, "the GID table of port 1", err);
		return;
	}
	nic_interface(s->nic, dev, sizeof dev);
	if (!*dev)
		strcpy(dev, "INTERFACE");
	say_found(f, "%d RoCE v2 GIDs (%d beyond link-local), %d RoCE v1", g.v2,
		  g.routable, g.v1);
	if (g.v2)
		say_found(f, ", first v2 at index %d", g.first_v2);
	if (g.routable) {
		say_status(f, DOCTOR_OK, "peers on other nodes can be reached");
		return;
	}
	if (g.v2)
		say_status(f, DOCTOR_WARN,
			   "only link-local: peers behind a router cannot be reached");
	else
		say_status(f, DOCTOR_FAIL,
			   "no RoCE v2 address: no queue pair can be connected");
	say_remedy(
		f,
		"sudo ip address add 192.168.100.1/24 dev %s   (another last number on each node)",
		dev);
}

/* A setting of the firmware: no file shows it, and its tool needs root. */
void check_nic_cqe_compression(const struct doctor *d, const struct subject *s,
			       struct finding *f)
{
	(void)d;
	say_found(f, "the firmware's CQE_COMPRESSION is shown by no file");
	say_status(
		f, DOCTOR_UNKNOWN,
		"AGGRESSIVE holds CQEs back to merge them: put_completion of many puts would come late and in steps; BALANCED does not");
	say_remedy(f, "sudo mlxconfig -d %s query CQE_COMPRESSION PCI_WR_ORDERING",
		   *s->nic->bdf ? s->nic->bdf : s->nic->name);
}

/* Global pause frames: 1 on, 0 off, -1 not told.  ETHTOOL_GPAUSEPARAM needs no rights. */
static int pause_frames(const char *dev)
{
	struct ethtool_pauseparam p = {.cmd = ETHTOOL_GPAUSEPARAM};
	struct ifreq r = {.ifr_data = (char *)&p};
	int fd = sys_faked() ? -1 : socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -1;
	snprintf(r.ifr_name, sizeof r.ifr_name, "%.15s", dev);
	rc = ioctl(fd, SIOCETHTOOL, &r);
	close(fd);
	return rc ? -1 : p.rx_pause && p.tx_pause;
}

/* PFC and ECN as the vendor's driver shows them in sysfs (the kernel's own shows neither). */
void check_nic_flow_control(const struct doctor *d, const struct subject *s,
			    struct finding *f)
{
	char dev[64], pfc[128], ecn[16];
	bool have_pfc, have_ecn, lossless;
	int pause;

	(void)d;
	if (!is_ethernet(s->nic)) {
		say_found(f, "not Ethernet: InfiniBand has credits");
		say_status(f, DOCTOR_OK, "the fabric loses nothing when it is full");
		return;
	}
	nic_interface(s->nic, dev, sizeof dev);
	if (!*dev) {
		say_unread(f, "the network interface", -ENOENT);
		return;
	}
	pause = pause_frames(dev);
	have_pfc = !sys_line(pfc, sizeof pfc, "/sys/class/net/%s/qos/pfc", dev);
	have_ecn =
		!sys_line(ecn, sizeof ecn, "/sys/class/net/%s/ecn/roce_np/enable/3", dev);
	lossless = pause > 0 || (have_pfc && strpbrk(pfc, "123456789"));
	say_found(f, "%s: pause frames %s, PFC %s, ECN of priority 3 %s", dev,
		  pause < 0 ? "not told"
		  : pause   ? "on"
			    : "off",
		  have_pfc ? pfc : "not told", have_ecn ? ecn : "not told");
	if (lossless) {
		say_status(
			f, DOCTOR_OK,
			"a full switch holds packets back: no retransmission in a tail");
		return;
	}
	if (!have_pfc)
		say_status(
			f, DOCTOR_UNKNOWN,
			"a lossy fabric drops packets when full, and a retransmission costs milliseconds in a tail");
	else
		say_status(
			f, DOCTOR_WARN,
			"lossy: a full switch drops packets, and a retransmission costs milliseconds in a tail");
	say_remedy(
		f,
		have_pfc
			? "sudo dcb pfc set dev %s prio-pfc 3:on   (and the same on the switch)"
			: "dcb pfc show dev %s",
		dev);
}

/* Does this process hold a device file of verbs open?  1, 0, -errno. */
static int holds_uverbs(const char *pid)
{
	char **fds, link[DOCTOR_PATH];
	int n = sys_names(&fds, "/proc/%s/fd", pid), holds = 0;

	for (int i = 0; i < n && !holds; i++)
		holds = !sys_link(link, sizeof link, "/proc/%s/fd/%s", pid, fds[i]) &&
			!strncmp(link, "/dev/infiniband/uverbs", 22);
	sys_names_free(fds, n);
	return n < 0 ? n : holds;
}

void check_nic_users(const struct doctor *d, const struct subject *s, struct finding *f)
{
	char **pids, comm[64], self[16];
	int n = sys_names(&pids, "/proc"), users = 0, hidden = 0, rc;

	(void)d;
	(void)s;
	snprintf(self, sizeof self, "%d", getpid());
	for (int i = 0; i < n; i++) {
		if (!isdigit((unsigned char)pids[i][0]) || !strcmp(pids[i], self))
			continue;
		rc = holds_uverbs(pids[i]);
		hidden += rc == -EACCES || rc == -EPERM;
		if (rc <= 0)
			continue;
		if (sys_line(comm, sizeof comm, "/proc/%s/comm", pids[i]))
			strcpy(comm, "name not told");
		say_found(f, "%s%s %s", users++ ? ", " : "in use by ", pids[i], comm);
	}
	sys_names_free(pids, n);
	if (n < 0) {
		say_unread(f, "/proc", n);
	} else if (users) {
		say_status(
			f, DOCTOR_WARN,
			"others' traffic shares NIC and wire: latencies rise, tails more");
		say_remedy(f, "rdma resource show qp   (then end what need not run)");
	} else if (hidden) {
		say_found(
			f,
			"no user among the processes that could be looked at; %d could not",
			hidden);
		say_status(f, DOCTOR_UNKNOWN, "others' traffic would raise latencies");
		say_remedy(f, DOCTOR_AS_ROOT);
	} else {
		say_found(f, "no other process holds a verbs device open");
		say_status(f, DOCTOR_OK,
			   "nobody else's verbs traffic goes through the NIC");
	}
}
