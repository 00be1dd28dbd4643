/* SPDX-License-Identifier: Apache-2.0
 * doctor_config.c: what PCI config space and the IOMMU's files say: MRRS, relaxed ordering, ACS, translation.
 *
 * Config space beyond its first 64 bytes is root's; offsets and bits: linux/pci_regs.h (PCI Express Base Specification
 * 7.5.3, 7.7.11).
 */
#include <errno.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define CONFIG_BYTES 4096
#define CONFIG_OPEN_BYTES 64 /* what anyone may read */

struct config {
	uint8_t b[CONFIG_BYTES];
	long n;
};

static unsigned word(const struct config *c, unsigned at)
{
	return at + 2 <= (unsigned)c->n ? c->b[at] | (unsigned)c->b[at + 1] << 8 : 0;
}

/* 0, or -EACCES when only the open part can be read. */
static int config_read(const char *bdf, struct config *c)
{
	c->n = sys_bytes(c->b, sizeof c->b, "/sys/bus/pci/devices/%s/config", bdf);
	if (c->n < 0)
		return (int)c->n;
	return c->n <= CONFIG_OPEN_BYTES ? -EACCES : 0;
}

/* Offset of a capability, 0 when there is none. */
static unsigned capability(const struct config *c, unsigned id)
{
	unsigned at = c->b[PCI_CAPABILITY_LIST];

	for (int i = 0; i < 48 && at >= 64 && at + 2 <= (unsigned)c->n; i++) {
		if (c->b[at] == id)
			return at;
		at = c->b[at + 1] & ~3u;
	}
	return 0;
}

static unsigned ext_capability(const struct config *c, unsigned id)
{
	unsigned at = PCI_CFG_SPACE_SIZE;

	for (int i = 0; i < 512 && at >= PCI_CFG_SPACE_SIZE && at + 4 <= (unsigned)c->n;
	     i++) {
		if (word(c, at) == id)
			return at;
		at = word(c, at + 2) >> 4;
	}
	return 0;
}

/* Device control of the NIC's PCIe capability; 0 or -errno, said. */
static int device_control(const struct doctor_dev *dev, unsigned *v, struct finding *f)
{
	struct config c;
	int err = *dev->bdf ? config_read(dev->bdf, &c) : -ENODEV;
	unsigned at = err ? 0 : capability(&c, PCI_CAP_ID_EXP);

	if (!err && !at)
		err = -ENODATA;
	if (err)
		say_unread(f, "PCIe device control in config space", err);
	else
		*v = word(&c, at + PCI_EXP_DEVCTL);
	return err;
}

void check_nic_mrrs(const struct doctor *d, const struct subject *s, struct finding *f)
{
	unsigned v, mrrs, mps;

	(void)d;
	if (device_control(s->nic, &v, f))
		return;
	mrrs = 128u << ((v & PCI_EXP_DEVCTL_READRQ) >> 12);
	mps = 128u << ((v & PCI_EXP_DEVCTL_PAYLOAD) >> 5);
	say_found(f, "MRRS %u B, MPS %u B", mrrs, mps);
	if (mrrs >= 512) {
		say_status(
			f, DOCTOR_OK,
			"the NIC reads a payload in pieces of up to %u B; below that size nothing depends on it",
			mrrs);
		return;
	}
	say_status(
		f, DOCTOR_WARN,
		"the NIC reads a payload in pieces of %u B: payload_fetch and bandwidth suffer above that size",
		mrrs);
	say_remedy(
		f,
		"sudo setpci -s %s CAP_EXP+08.w=5000:7000   (MRRS 4096 B, until the next boot)",
		s->nic->bdf);
}

void check_nic_relaxed_ordering(const struct doctor *d, const struct subject *s,
				struct finding *f)
{
	unsigned v;

	(void)d;
	if (device_control(s->nic, &v, f))
		return;
	if (v & PCI_EXP_DEVCTL_RELAX_EN) {
		say_found(f, "allowed by PCIe device control");
		say_status(
			f, DOCTOR_OK,
			"used only by memory regions that ask for it: putscope's ask for strict order");
		return;
	}
	say_found(f, "switched off in PCIe device control");
	say_status(
		f, DOCTOR_WARN,
		"the NIC's writes stay strictly ordered: small puts are not touched, bandwidth of large ones may be on some hosts");
	say_remedy(f, "sudo setpci -s %s CAP_EXP+08.w=0010:0010   (until the next boot)",
		   s->nic->bdf);
}

/* ---- ACS ---- */
struct acs_sum {
	unsigned bridges, without, redirecting;
	int err;
};

static void acs_of_bridge(const char *bdf, struct acs_sum *sum, struct finding *f)
{
	struct config c;
	int err = config_read(bdf, &c);
	unsigned at;

	sum->bridges++;
	/* 256 B: all that old hardware, or an emulated bus, has; then there is no ACS in it. */
	if (err) {
		sum->err = err;
		return;
	}
	at = ext_capability(&c, PCI_EXT_CAP_ID_ACS);
	if (!at) {
		sum->without++;
		return;
	}
	if (!(word(&c, at + PCI_ACS_CTRL) & (PCI_ACS_RR | PCI_ACS_CR)))
		return;
	sum->redirecting++;
	say_found(f, "%s redirects; ", bdf);
	say_remedy(f, "%ssudo setpci -s %s ECAP_ACS+06.w=0000", *f->remedy ? "; " : "",
		   bdf);
}

/* The bridges above a device, from `from` of its path on; the root complex and the device itself are none. */
static void acs_of_path(const struct doctor_dev *dev, size_t from, struct acs_sum *sum,
			struct finding *f)
{
	char path[DOCTOR_PATH], *save, *last, *next;

	snprintf(path, sizeof path, "%s", dev->path + from);
	last = strtok_r(path, "/", &save);
	for (; last && (next = strtok_r(NULL, "/", &save)); last = next)
		if (strncmp(last, "pci", 3))
			acs_of_bridge(last, sum, f);
}

void check_acs(const struct doctor *d, const struct subject *s, struct finding *f)
{
	struct acs_sum sum = {0};
	size_t from = path_common(s->gpu->path, s->nic->path);

	(void)d;
	if (!*s->gpu->path || !*s->nic->path) {
		say_unread(f, "the PCI path in sysfs", -ENODATA);
		return;
	}
	acs_of_path(s->gpu, from, &sum, f);
	acs_of_path(s->nic, from, &sum, f);
	if (sum.redirecting) {
		say_found(f, "%u of %u bridges between them", sum.redirecting,
			  sum.bridges);
		say_status(
			f, DOCTOR_WARN,
			"traffic between GPU and NIC makes a detour through the root complex: longer hops, less bandwidth, "
			"on some hosts hung GPUDirect");
		say_remedy(
			f,
			"   (until the next boot; not while virtual machines use devices of this switch)");
	} else if (sum.err) {
		say_unread(f, "ACS control of the bridges in config space", sum.err);
	} else {
		say_found(f, "no redirection in %u bridges between them (%u have no ACS)",
			  sum.bridges, sum.without);
		say_status(f, DOCTOR_OK,
			   "traffic between GPU and NIC takes the short way");
	}
}

/* ---- IOMMU ---- */
struct iommu_sum {
	unsigned translated, direct, without;
};

/* Group types: Documentation/ABI/testing/sysfs-kernel-iommu_groups. */
static void iommu_of(const struct doctor_dev *dev, struct iommu_sum *sum,
		     struct finding *f)
{
	char type[32];

	if (!*dev->bdf)
		return;
	if (sys_line(type, sizeof type, "/sys/bus/pci/devices/%s/iommu_group/type",
		     dev->bdf)) {
		sum->without++;
		return;
	}
	say_found(f, ", %s %s", dev->name, type);
	if (!strcmp(type, "identity"))
		sum->direct++;
	else
		sum->translated++;
}

/* What of the boot line is about the IOMMU; 0 or -errno. */
static int iommu_words(char *buf, size_t n)
{
	int err;
	char *line = sys_text(&err, "/proc/cmdline"), *save, *word;

	*buf = 0;
	for (word = line ? strtok_r(line, " \n", &save) : NULL; word;
	     word = strtok_r(NULL, " \n", &save))
		if (!strncmp(word, "iommu", 5) || !strncmp(word, "intel_iommu", 11) ||
		    !strncmp(word, "amd_iommu", 9))
			snprintf(buf + strlen(buf), n - strlen(buf), " %s", word);
	free(line);
	return err;
}

void check_iommu(const struct doctor *d, const struct subject *s, struct finding *f)
{
	char words[200], **units;
	struct iommu_sum sum = {0};
	int boot = iommu_words(words, sizeof words),
	    n = sys_names(&units, "/sys/class/iommu");
	bool pt = word_in(words, "iommu=pt") || word_in(words, "iommu.passthrough=1");

	(void)s;
	sys_names_free(units, n);
	if (n < 0 && boot) {
		say_unread(f, "/sys/class/iommu and /proc/cmdline", boot);
		return;
	}
	if (n < 0 && (n != -ENOENT || !d->pci_read)) { /* a sandbox hides it */
		say_unread(f, "/sys/class/iommu", n);
		return;
	}
	say_found(f, "%s%s%s", n > 0 ? "on" : "off", *words ? ", boot line:" : "", words);
	if (n <= 0) {
		say_status(f, DOCTOR_OK,
			   "as this kernel sees it no address of a device is translated");
		return;
	}
	for (unsigned i = 0; i < d->gpu_count; i++)
		iommu_of(&d->gpus[i], &sum, f);
	for (unsigned i = 0; !d->virtual_nic && i < d->nic_count; i++)
		iommu_of(&d->nics[i], &sum, f);
	if (!sum.translated && (sum.direct || pt)) {
		say_status(f, DOCTOR_OK,
			   "passthrough: addresses of the devices are not translated");
		return;
	}
	say_status(
		f, !sum.translated ? DOCTOR_UNKNOWN : DOCTOR_WARN,
		sum.translated
			? "addresses of GPU or NIC are translated: fetches take longer, and traffic between them may go "
			  "through the root complex or hang"
			: "whether addresses of GPU and NIC are translated is not told");
	if (sum.translated && pt)
		say_remedy(
			f,
			"sudo dmesg | grep -iE 'iommu|dmar'   (the boot line asks for passthrough; this says why it is not given)");
	else if (sum.translated)
		say_remedy(
			f,
			"sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub && sudo update-grub && sudo reboot");
}
