/* SPDX-License-Identifier: Apache-2.0
 * doctor_path.c: PCIe: how far GPU and NIC are apart, how fast their links are, where they sit.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

/* As nvidia-smi topo -m names them. */
enum distance { PIX, PXB, PHB, NODE, SYS, DISTANCE_UNKNOWN };
static const char *const distance_names[] = {"PIX",  "PXB", "PHB",
					     "NODE", "SYS", "unknown"};

/* ---- the tree ---- */
size_t path_common(const char *a, const char *b)
{
	size_t i = 0, at = 0;

	for (; a[i] && a[i] == b[i]; i++)
		if (a[i] == '/')
			at = i;
	if ((!a[i] || a[i] == '/') && (!b[i] || b[i] == '/'))
		at = i;
	return at;
}

static unsigned slashes(const char *s)
{
	unsigned n = 0;

	for (; *s; s++)
		n += *s == '/';
	return n;
}

static bool one_node(void)
{
	char nodes[64];

	return !sys_line(nodes, sizeof nodes, "/sys/devices/system/node/online") &&
	       cpulist_count(nodes) == 1;
}

static enum distance distance(const struct doctor_dev *a, const struct doctor_dev *b)
{
	size_t at = path_common(a->path, b->path);
	unsigned below_a = slashes(a->path + at), below_b = slashes(b->path + at);

	if (!*a->path || !*b->path)
		return DISTANCE_UNKNOWN;
	if (memchr(a->path, '/', at)) /* they meet below the root complex: in a switch */
		return below_a <= 2 && below_b <= 2 ? PIX : PXB;
	if (at)
		return PHB;
	if (a->numa >= 0 && b->numa >= 0)
		return a->numa == b->numa ? NODE : SYS;
	return one_node() ? NODE : DISTANCE_UNKNOWN;
}

const struct doctor_dev *nearest_nic(const struct doctor *d, const struct doctor_dev *gpu)
{
	const struct doctor_dev *best = NULL;

	for (unsigned i = 0; !d->virtual_nic && i < d->nic_count; i++)
		if (*d->nics[i].bdf &&
		    (!best || distance(gpu, &d->nics[i]) < distance(gpu, best)))
			best = &d->nics[i];
	return best;
}

int gpu_index(const struct doctor *d, const struct doctor_dev *gpu)
{
	return (int)(gpu - d->gpus);
}

static const char *const distance_words[] = {
	"one switch between them",
	"several switches between them",
	"they meet in the CPU's root complex",
	"two root complexes of one NUMA node between them",
	"the link between two CPUs lies between them",
	"sysfs does not show how they are joined",
};

void check_distance(const struct doctor *d, const struct subject *s, struct finding *f)
{
	enum distance here = distance(s->gpu, s->nic), best = here;
	const struct doctor_dev *better = NULL;

	say_found(f, "%s: %s", distance_names[here], distance_words[here]);
	for (unsigned g = 0; g < d->gpu_count; g++) {
		const struct doctor_dev *nic = nearest_nic(d, &d->gpus[g]);

		if (distance(&d->gpus[g], nic) < best) {
			best = distance(&d->gpus[g], nic);
			better = &d->gpus[g];
		}
	}
	if (here == DISTANCE_UNKNOWN) {
		say_status(f, DOCTOR_UNKNOWN,
			   "how long doorbell and payload travel is not known");
		say_remedy(f, "nvidia-smi topo -m");
		return;
	}
	if (here <= PXB) {
		say_status(f, DOCTOR_OK,
			   "doorbell and payload go from switch to switch, past the CPU");
		return;
	}
	say_status(
		f, DOCTOR_WARN,
		here == SYS
			? "doorbell, WQE fetch and payload cross the CPUs' link: each hop takes longer, bandwidth may halve"
			: "doorbell, WQE fetch and payload go through the CPU: longer hops and less bandwidth than below one switch");
	if (better)
		say_remedy(
			f,
			"CUDA_DEVICE_ORDER=PCI_BUS_ID build/putscope run --gpu %d --nic %s   (%s)",
			gpu_index(d, better), nearest_nic(d, better)->name,
			distance_names[best]);
	else
		say_remedy(
			f,
			"nvidia-smi topo -m; lspci -tv   (then move the NIC to a slot below the GPU's switch: no pair here is nearer)");
}

/* ---- links ---- */
struct link {
	double now_gts, max_gts;
	long long now_lanes, max_lanes;
};

static int link_read(const char *bdf, struct link *l)
{
	char now[64], max[64];
	int err = sys_line(now, sizeof now, "/sys/bus/pci/devices/%s/current_link_speed",
			   bdf);

	err = err ? err
		  : sys_line(max, sizeof max, "/sys/bus/pci/devices/%s/max_link_speed",
			     bdf);
	err = err ? err
		  : sys_number(&l->now_lanes,
			       "/sys/bus/pci/devices/%s/current_link_width", bdf);
	err = err ? err
		  : sys_number(&l->max_lanes, "/sys/bus/pci/devices/%s/max_link_width",
			       bdf);
	if (err)
		return err;
	return sscanf(now, "%lf", &l->now_gts) == 1 &&
			       sscanf(max, "%lf", &l->max_gts) == 1
		       ? 0
		       : -ENODATA;
}

static int generation(double gts)
{
	static const double speeds[] = {2.5, 5, 8, 16, 32, 64, 128};

	for (unsigned i = 0; i < sizeof speeds / sizeof *speeds; i++)
		if (gts <= speeds[i])
			return (int)i + 1;
	return 0;
}

/* The bridge above a function, "" when it sits on the root complex. */
static void bridge_above(const struct doctor_dev *dev, char *bdf, size_t n)
{
	char path[DOCTOR_PATH], *cut;

	snprintf(path, sizeof path, "%s", dev->path);
	cut = strrchr(path, '/');
	if (cut)
		*cut = 0;
	cut = cut ? strrchr(path, '/') : NULL;
	snprintf(bdf, n, "%.31s", cut ? cut + 1 : "");
}

static void check_link(const struct doctor_dev *dev, bool idles, struct finding *f)
{
	struct link l, slot;
	char above[32];
	bool known, bound_by_slot;
	int err = *dev->bdf ? link_read(dev->bdf, &l) : -ENODEV;

	if (err || l.now_lanes <= 0 || l.max_lanes <= 0) {
		say_unread(f, "link speed and width in sysfs", err ? err : -ENODATA);
		return;
	}
	say_found(f, "PCIe Gen%d x%lld, can do Gen%d x%lld", generation(l.now_gts),
		  l.now_lanes, generation(l.max_gts), l.max_lanes);
	bridge_above(dev, above, sizeof above);
	known = *above && !link_read(above, &slot) && slot.max_lanes > 0;
	if (known)
		say_found(f, "; the port above it (%s) can do Gen%d x%lld", above,
			  generation(slot.max_gts), slot.max_lanes);
	if (l.now_gts >= l.max_gts && l.now_lanes >= l.max_lanes) {
		say_status(f, DOCTOR_OK, "the link is as fast as the device can");
		return;
	}
	bound_by_slot = known && slot.max_gts <= l.now_gts;
	if (idles && l.now_lanes >= l.max_lanes && !bound_by_slot) {
		say_status(
			f, DOCTOR_UNKNOWN,
			"a GPU at rest may lower its link's speed and raise it under load; if it stays, all PCIe hops are slower");
		say_remedy(
			f,
			"cat /sys/bus/pci/devices/%s/current_link_speed   (again while a run goes on)",
			dev->bdf);
		return;
	}
	say_status(
		f, DOCTOR_WARN,
		"slower than the device: at most %.0f of %.0f GB/s each way; large puts are bound by it, small ones "
		"take longer on the wires",
		l.now_gts * (double)l.now_lanes / 8, l.max_gts * (double)l.max_lanes / 8);
	if (bound_by_slot && slot.max_lanes <= l.now_lanes)
		say_remedy(
			f,
			"sudo lspci -vvs %s | grep -i lnk   (the slot can no more: move the card to a Gen%d x%lld slot)",
			dev->bdf, generation(l.max_gts), l.max_lanes);
	else if (*above)
		say_remedy(
			f,
			"sudo setpci -s %s CAP_EXP+10.w=20:20   (trains the link again; if it stays, reseat the card)",
			above);
	else
		say_remedy(f, "sudo lspci -vvs %s | grep -i lnk", dev->bdf);
}

void check_gpu_pcie(const struct doctor *d, const struct subject *s, struct finding *f)
{
	(void)d;
	check_link(s->gpu, true, f);
}

void check_nic_pcie(const struct doctor *d, const struct subject *s, struct finding *f)
{
	(void)d;
	check_link(s->nic, false, f);
}

/* ---- NUMA ---- */
void check_pinning(const struct doctor *d, const struct subject *s, struct finding *f)
{
	char allowed[1024], near[1024];
	int err, within, node = s->nic->numa;
	char *status = sys_text(&err, "/proc/self/status");

	(void)d;
	if (status && text_field(status, "Cpus_allowed_list", allowed, sizeof allowed))
		err = -ENODATA;
	free(status);
	say_found(f, "GPU on node %d, NIC on node %d", s->gpu->numa, node);
	if (!err && node >= 0)
		err = sys_line(near, sizeof near,
			       "/sys/devices/system/node/node%d/cpulist", node);
	if (err || node < 0) {
		if (one_node()) {
			say_status(f, DOCTOR_OK,
				   "there is one node: all memory is equally near");
			return;
		}
		say_status(
			f, DOCTOR_UNKNOWN,
			"which CPUs are near is not known: proxy and host paths may run far away");
		say_remedy(f, "nvidia-smi topo -m");
		return;
	}
	within = cpulist_within(allowed, near);
	say_found(f, "; CPUs allowed %.200s, the NIC's node has %.200s", allowed, near);
	if (within == 1) {
		say_status(f, DOCTOR_OK,
			   "proxy and host threads, and their memory, stay near the NIC");
		return;
	}
	say_status(
		f, within < 0 ? DOCTOR_UNKNOWN : DOCTOR_WARN,
		"proxy and host threads, and queues in host memory, may land on a far node: longer and less even latencies");
	say_remedy(f, "numactl --cpunodebind=%d --membind=%d build/putscope run", node,
		   node);
}
