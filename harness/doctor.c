/* SPDX-License-Identifier: Apache-2.0
 * doctor.c: `putscope doctor`: the table of checks, their run over the devices, and the print.
 */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "doctor.h"
#include "doctor_nvml.h"
#include "err.h"
#include "nic/nic.h"

#define USAGE                                                                                                              \
	"usage: putscope doctor [--json]   what this machine can do, what is wrong, what puts it right; changes nothing\n" \
	"  ok       nothing to do\n"                                                                                       \
	"  warn     numbers come out, but worse than the hardware's or not comparable\n"                                   \
	"  fail     what it is about cannot be measured until it is put right\n"                                           \
	"  unknown  could not be read; as root more can\n"                                                                 \
	"exit status: 0 no fail, 1 some fail.  PUTSCOPE_SYSROOT=DIR (for tests) reads /sys and /proc below DIR and asks no device"

/* How often a check runs. */
enum scope {
	ONCE,
	ONCE_GPU,    /* once, where there is a GPU */
	ONCE_NIC,    /* once, where there is a real NIC */
	GPU_OR_NONE, /* each GPU, or once to say that there is none */
	EACH_GPU,
	NIC_OR_NONE, /* each NIC, virtual ones too, or once to say that there is none */
	EACH_NIC_VIRTUAL,  /* each NIC, virtual ones too */
	EACH_NIC,	   /* real ones: the files of a virtual one mean nothing */
	EACH_PAIR,	   /* each GPU with the NIC nearest to it */
	EACH_PAIR_VIRTUAL, /* or with the virtual NIC */
};

static const struct {
	const char *name;
	enum scope scope;
	doctor_check_fn *run;
} checks[] = {
	{"machine", ONCE, check_machine},
	{"cpus", ONCE, check_cpus},
	{"load", ONCE, check_load},
	{"cpu-governor", ONCE, check_governor},
	{"invariant-tsc", ONCE, check_tsc},
	{"memlock", ONCE, check_memlock},
	{"hugepages", ONCE, check_hugepages},
	{"numa", ONCE, check_numa},
	{"iommu", ONCE, check_iommu},
	{"gpu", GPU_OR_NONE, check_gpu},
	{"cuda", ONCE_GPU, check_cuda},
	{"gpu-driver", ONCE_GPU, check_gpu_driver},
	{"gpu-peer-mapping", ONCE_GPU, check_gpu_peer_mapping},
	{"gpu-bar1", EACH_GPU, check_gpu_bar1},
	{"gpu-pcie", EACH_GPU, check_gpu_pcie},
	{"gpu-clocks", EACH_GPU, check_gpu_clocks},
	{"gpu-mig", EACH_GPU, check_gpu_mig},
	{"gpu-mps", ONCE_GPU, check_gpu_mps},
	{"gpu-users", EACH_GPU, check_gpu_users},
	{"nic", NIC_OR_NONE, check_nic},
	{"nic-link", EACH_NIC, check_nic_link},
	{"nic-gid", EACH_NIC, check_nic_gid},
	{"nic-pcie", EACH_NIC, check_nic_pcie},
	{"nic-mrrs", EACH_NIC, check_nic_mrrs},
	{"nic-relaxed-ordering", EACH_NIC, check_nic_relaxed_ordering},
	{"nic-cqe-compression", EACH_NIC, check_nic_cqe_compression},
	{"nic-flow-control", EACH_NIC, check_nic_flow_control},
	{"nic-users", ONCE_NIC, check_nic_users},
	{"path-distance", EACH_PAIR, check_distance},
	{"path-acs", EACH_PAIR, check_acs},
	{"path-numa", EACH_PAIR, check_pinning},
	{"register-host", EACH_NIC_VIRTUAL, check_reg_host},
	{"register-gpu", EACH_PAIR_VIRTUAL, check_reg_gpu},
};

static void append(char *text, const char *fmt, va_list ap)
{
	size_t at = strlen(text);

	vsnprintf(text + at, DOCTOR_TEXT - at, fmt, ap);
}

void say_found(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	append(f->found, fmt, ap);
	va_end(ap);
}

void say_status(struct finding *f, enum doctor_status s, const char *fmt, ...)
{
	va_list ap;

	f->status = s;
	f->means[0] = 0;
	va_start(ap, fmt);
	append(f->means, fmt, ap);
	va_end(ap);
}

void say_remedy(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	append(f->remedy, fmt, ap);
	va_end(ap);
}

void say_unread(struct finding *f, const char *what, int err)
{
	say_found(f, "%s cannot be read: %s", what, strerror(-err));
	say_status(f, DOCTOR_UNKNOWN, "not known, so nothing is said about it");
	if (err == -EACCES || err == -EPERM)
		say_remedy(f, DOCTOR_AS_ROOT);
}

/* ---- devices ---- */
void doctor_dev_pci(struct doctor_dev *dev, const char *bdf)
{
	char link[DOCTOR_PATH];
	long long numa;

	snprintf(dev->bdf, sizeof dev->bdf, "%s", bdf);
	dev->numa = sys_number(&numa, "/sys/bus/pci/devices/%s/numa_node", bdf)
			    ? -1
			    : (int)numa;
	if (!sys_real(link, sizeof link, "/sys/bus/pci/devices/%s", bdf) &&
	    !strncmp(link, "/sys/devices/", 13))
		snprintf(dev->path, sizeof dev->path, "%s", link + 13);
	if (!sys_real(link, sizeof link, "/sys/bus/pci/devices/%s/driver", bdf))
		snprintf(dev->driver, sizeof dev->driver, "%.31s",
			 strrchr(link, '/') + 1);
}

/* Class codes: PCI Code and ID Assignment Specification; vendors 10de NVIDIA, 15b3 Mellanox. */
static void look_at_function(struct doctor *d, const char *bdf)
{
	long long vendor = 0, class = 0;
	struct doctor_dev *gpu = &d->gpus[d->gpu_count];

	if (sys_number(&vendor, "/sys/bus/pci/devices/%s/vendor", bdf) ||
	    sys_number(&class, "/sys/bus/pci/devices/%s/class", bdf))
		return;
	if (vendor == 0x15b3 && class >> 16 == 0x02 &&
	    !sys_there("/sys/bus/pci/devices/%s/infiniband", bdf))
		d->idle_nics++;
	if (vendor != 0x10de || (class >> 8 != 0x0300 && class >> 8 != 0x0302) ||
	    d->gpu_count == DOCTOR_DEVICES)
		return;
	doctor_dev_pci(gpu, bdf);
	snprintf(gpu->name, sizeof gpu->name, "%s", bdf);
	gpu->nvml = nvml_handle(bdf);
	d->gpu_count++;
}

static void find_gpus(struct doctor *d)
{
	char **names, bdf[32];
	int n = sys_names(&names, "/sys/bus/pci/devices");

	d->pci_read = n >= 0;
	for (int i = 0; i < n; i++)
		look_at_function(d, names[i]);
	sys_names_free(names, n);
	if (d->gpu_count)
		return;
	/* A sandbox may hide the bus and still lend the driver. */
	for (unsigned i = 0; i < nvml_count() && i < DOCTOR_DEVICES; i++) {
		struct doctor_dev *gpu = &d->gpus[d->gpu_count++];

		gpu->nvml = nvml_at(i, bdf, sizeof bdf);
		doctor_dev_pci(gpu, bdf);
		snprintf(gpu->name, sizeof gpu->name, "%s", bdf);
	}
}

static void find_nics(struct doctor *d)
{
	char **names, link[DOCTOR_PATH];
	int n = sys_names(&names, "/sys/class/infiniband");

	for (int i = 0; i < n && d->nic_count < DOCTOR_DEVICES; i++) {
		struct doctor_dev *nic = &d->nics[d->nic_count++];

		if (!sys_real(link, sizeof link, "/sys/class/infiniband/%s/device",
			      names[i]))
			doctor_dev_pci(nic, strrchr(link, '/') + 1);
		else
			nic->numa = -1;
		snprintf(nic->name, sizeof nic->name, "%.63s", names[i]);
	}
	sys_names_free(names, n);
}

static void find_virtual_nics(struct doctor *d)
{
	char names[16][64];

	d->nic_count = nic_names(names, 16);
	for (unsigned i = 0; i < d->nic_count; i++) {
		d->nics[i].numa = -1;
		memcpy(d->nics[i].name, names[i], sizeof names[i]);
	}
}

static void find_devices(struct doctor *d)
{
	d->virtual_nic = nic_is_virtual();
	find_gpus(d);
	if (d->virtual_nic)
		find_virtual_nics(d);
	else
		find_nics(d);
}

/* ---- run and print ---- */
static const char *const status_names[] = {"ok", "warn", "fail", "unknown"};

static int run_check(const struct doctor *d, unsigned i, const struct subject *s,
		     json_t *out)
{
	struct finding f = {.status = DOCTOR_UNKNOWN};
	const struct doctor_dev *first = s->gpu ? s->gpu : s->nic;
	const char *second = s->gpu && s->nic ? s->nic->name : NULL;
	json_t *j;

	if (first)
		say_found(&f, "%s%s%s: ", first->name, second ? " - " : "",
			  second ? second : "");
	checks[i].run(d, s, &f);
	j = json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", checks[i].name, "status",
		      status_names[f.status], "found", f.found, "means", f.means,
		      "remedy", f.remedy);
	return j ? json_array_append_new(out, j) : -1;
}

static bool runs_once(const struct doctor *d, enum scope scope)
{
	switch (scope) {
	case ONCE:
		return true;
	case ONCE_GPU:
		return d->gpu_count > 0;
	case ONCE_NIC:
		return d->nic_count > 0 && !d->virtual_nic;
	case GPU_OR_NONE:
		return !d->gpu_count;
	case NIC_OR_NONE:
		return !d->nic_count;
	default:
		return false;
	}
}

static const struct doctor_dev *partner(const struct doctor *d, enum scope scope,
					const struct doctor_dev *gpu)
{
	if (scope == EACH_PAIR_VIRTUAL && d->virtual_nic && d->nic_count)
		return &d->nics[0];
	return scope == EACH_PAIR || scope == EACH_PAIR_VIRTUAL ? nearest_nic(d, gpu)
								: NULL;
}

/* Over the devices that the check is about. */
static int run_over(const struct doctor *d, unsigned i, json_t *out)
{
	enum scope scope = checks[i].scope;
	bool pairs = scope == EACH_PAIR || scope == EACH_PAIR_VIRTUAL;
	bool gpus = scope == EACH_GPU || scope == GPU_OR_NONE || pairs;
	bool nics = scope == NIC_OR_NONE || scope == EACH_NIC_VIRTUAL ||
		    (scope == EACH_NIC && !d->virtual_nic);
	struct subject s = {0};
	int err = 0;

	if (runs_once(d, scope))
		return run_check(d, i, &s, out);
	for (unsigned g = 0; gpus && g < d->gpu_count; g++) {
		s.gpu = &d->gpus[g];
		s.nic = partner(d, scope, s.gpu);
		if (s.nic || !pairs)
			err |= run_check(d, i, &s, out);
	}
	for (unsigned n = 0; nics && n < d->nic_count; n++) {
		s.nic = &d->nics[n];
		err |= run_check(d, i, &s, out);
	}
	return err;
}

static const char *text_of(const json_t *check, const char *key)
{
	return json_string_value(json_object_get(check, key));
}

static void print_text(const json_t *out, const unsigned *count)
{
	const json_t *c;
	size_t i;

	json_array_foreach(out, i, c)
	{
		printf("%-8s %-20s %s\n", text_of(c, "status"), text_of(c, "name"),
		       text_of(c, "found"));
		printf("%-8s   means: %s\n", "", text_of(c, "means"));
		if (*text_of(c, "remedy"))
			printf("%-8s   do:    %s\n", "", text_of(c, "remedy"));
	}
	for (unsigned s = 0; s <= DOCTOR_UNKNOWN; s++)
		printf("%u %s%s", count[s], status_names[s],
		       s == DOCTOR_UNKNOWN ? "\n" : ", ");
}

static void count_statuses(const json_t *out, unsigned *count)
{
	const json_t *c;
	size_t i;

	json_array_foreach(out, i, c)
	{
		for (unsigned s = 0; s <= DOCTOR_UNKNOWN; s++)
			count[s] += !strcmp(text_of(c, "status"), status_names[s]);
	}
}

int cmd_doctor(int argc, char **argv)
{
	unsigned count[DOCTOR_UNKNOWN + 1] = {0};
	bool json = false;
	int rc = command_dir(argc, argv, USAGE, NULL, &json, NULL), err = 0;
	struct doctor *d;
	json_t *out, *all;

	if (rc)
		return rc - 1;
	d = calloc(1, sizeof *d);
	out = json_array();
	if (!d || !out) {
		free(d);
		json_decref(out);
		err_say(-ENOMEM, "no memory for the list of devices");
		return command_fail(EXIT_FAILED);
	}
	nvml_open();
	find_devices(d);
	for (unsigned i = 0; !err && i < sizeof checks / sizeof *checks; i++)
		err = run_over(d, i, out);
	nvml_close();
	count_statuses(out, count);
	all = json_pack("{s:O}", "checks", out);
	if (json && all) {
		json_dumpf(all, stdout, JSON_INDENT(1));
		putchar('\n');
	} else if (!json) {
		print_text(out, count);
	}
	err |= !all;
	json_decref(all);
	json_decref(out);
	free(d);
	if (err) {
		err_say(-ENOMEM, "no memory for the findings");
		return command_fail(EXIT_FAILED);
	}
	return count[DOCTOR_FAIL] ? EXIT_FAILED : EXIT_DONE;
}
