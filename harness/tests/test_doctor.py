# SPDX-License-Identifier: Apache-2.0
"""`putscope doctor` over small fake trees of /sys and /proc, each with one thing wrong: verdict and remedy."""
import json
import os
import re
import shutil
import struct
import subprocess

import pytest

from cli import BUILD, putscope, sane

GPU, NIC = "0000:19:00.0", "0000:1a:00.0"
ROOT_PORT, UP, DOWN_GPU, DOWN_NIC = "0000:16:01.0", "0000:17:00.0", "0000:18:00.0", "0000:18:01.0"
SWITCH = f"pci0000:16/{ROOT_PORT}/{UP}"
KEYS = {"name", "status", "found", "means", "remedy"}

FAKE_NVML = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int is(const char *w) { const char *e = getenv("FAKE_NVML"); return e && strstr(e, w); }
const char *nvmlErrorString(int rc) { return rc == 18 ? "Driver/library version mismatch" : "Not Supported"; }
int nvmlInit_v2(void) { return is("mismatch") ? 18 : 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *b, void **h) { *h = (void *)1; return strcmp(b, "0000:19:00.0") ? 6 : 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = (void *)1; return i ? 6 : 0; }
struct pci { char legacy[16]; unsigned domain, bus, device, id, sub; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(void *h, struct pci *p) { p->domain = 0; p->bus = 0x19; p->device = 0; return 0; }
int nvmlDeviceGetName(void *h, char *s, unsigned n) { snprintf(s, n, "NVIDIA H200"); return 0; }
int nvmlDeviceGetCudaComputeCapability(void *h, int *a, int *b) { *a = is("volta") ? 7 : 9; *b = 0; return 0; }
int nvmlDeviceGetClockInfo(void *h, int t, unsigned *v) { *v = t == 1 ? 345 : 0; return 0; }
int nvmlDeviceGetMaxClockInfo(void *h, int t, unsigned *v) { *v = t == 1 ? 1980 : 0; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *h, unsigned long long *m) { *m = is("hot") ? 0x48 : 1; return 0; }
int nvmlDeviceGetMigMode(void *h, unsigned *n, unsigned *p) { *n = *p = is("mig") != 0; return is("nomig") ? 3 : 0; }
struct mem { unsigned long long total, free, used; };
int nvmlDeviceGetBAR1MemoryInfo(void *h, struct mem *m) { m->total = 1ull << 38; return 0; }
int nvmlDeviceGetMemoryInfo(void *h, struct mem *m) { m->total = 141ull << 30; return 0; }
int nvmlDeviceGetUtilizationRates(void *h, unsigned *u) { u[0] = is("users") ? 97 : 0; u[1] = 0; return 0; }
struct proc { unsigned pid; unsigned long long used; unsigned g, c; };
int nvmlDeviceGetComputeRunningProcesses_v3(void *h, unsigned *n, struct proc *p)
{
	*n = is("users") ? 2 : 0;
	for (unsigned i = 0; i < *n; i++)
		p[i].pid = 4242 + i;
	return 0;
}
"""


@pytest.fixture(scope="module")
def nvml(tmp_path_factory):
    d = tmp_path_factory.mktemp("nvml")
    (d / "nvml.c").write_text(FAKE_NVML)
    lib = d / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", lib, d / "nvml.c"], check=True, timeout=60)
    return lib


def config(mrrs=4096, relaxed=True, acs=None, root=True):
    """Config space: a PCIe capability at 0x60, and ACS at 0x100 where `acs` is its control word."""
    b = bytearray(4096)
    b[0x34] = 0x60
    b[0x60] = 0x10
    struct.pack_into("<H", b, 0x68, (mrrs // 128).bit_length() - 1 << 12 | 1 << 5 | relaxed << 4)
    if acs is not None:
        struct.pack_into("<HHHH", b, 0x100, 0x000d, 1, 0x5f, acs)
    return bytes(b if root else b[:64])


class Tree:
    def __init__(self, root):
        self.root = root

    def put(self, path, text):
        p = self.root / path
        p.parent.mkdir(parents=True, exist_ok=True)
        p.write_bytes(text if isinstance(text, bytes) else (str(text) + "\n").encode())

    def remove(self, path):
        p = self.root / path
        shutil.rmtree(p) if p.is_dir() and not p.is_symlink() else p.unlink()

    def link(self, path, target):
        """A relative link to `target`, a path of the tree."""
        p = self.root / path
        p.parent.mkdir(parents=True, exist_ok=True)
        p.symlink_to(os.path.relpath(self.root / target, p.parent.resolve()))

    def pci(self, where, vendor, cls, driver, node=0, gts="32.0 GT/s PCIe", lanes=16, space=None):
        bdf = where.rsplit("/", 1)[1]
        files = {"vendor": vendor, "class": cls, "numa_node": node, "current_link_speed": gts, "max_link_speed": gts,
                 "current_link_width": lanes, "max_link_width": lanes, "config": space or config()}
        for name, text in files.items():
            self.put(f"sys/devices/{where}/{name}", text)
        self.link(f"sys/bus/pci/devices/{bdf}", f"sys/devices/{where}")
        if driver:
            (self.root / f"sys/bus/pci/drivers/{driver}").mkdir(parents=True, exist_ok=True)
            self.link(f"sys/devices/{where}/driver", f"sys/bus/pci/drivers/{driver}")

    def set(self, bdf, name, text):
        self.put(f"sys/bus/pci/devices/{bdf}/{name}", text)

    def gpu(self, where=f"{SWITCH}/{DOWN_GPU}/{GPU}", **kw):
        self.pci(where, "0x10de", "0x030200", "nvidia", **kw)
        bdf = where.rsplit("/", 1)[1]
        self.set(bdf, "resource", "0x0000000090000000 0x0000000090ffffff 0x0000000000040200\n"
                                  "0x0000380000000000 0x0000383fffffffff 0x000000000014220c")
        self.put(f"proc/driver/nvidia/gpus/{bdf}/information", "Model: \t\t NVIDIA H200")

    def nic(self, name="mlx5_0", where=f"{SWITCH}/{DOWN_NIC}/{NIC}", **kw):
        self.pci(where, "0x15b3", "0x020000", "mlx5_core", **kw)
        ib = f"sys/devices/{where}/infiniband/{name}"
        for path, text in {"hca_type": "MT4129", "fw_ver": "28.39.2048", "board_id": "MT_0000000838",
                           "ports/1/state": "4: ACTIVE", "ports/1/phys_state": "5: LinkUp",
                           "ports/1/rate": "400 Gb/sec (4X NDR)", "ports/1/link_layer": "Ethernet",
                           "ports/1/gids/0": "fe80:0000:0000:0000:0000:0000:0000:0001",
                           "ports/1/gids/1": "0000:0000:0000:0000:0000:ffff:c0a8:6401",
                           "ports/1/gids/2": "0000:0000:0000:0000:0000:0000:0000:0000",
                           "ports/1/gid_attrs/types/0": "IB/RoCE v1", "ports/1/gid_attrs/types/1": "RoCE v2"}.items():
            self.put(f"{ib}/{path}", text)
        self.link(f"{ib}/device", f"sys/devices/{where}")
        self.link(f"sys/class/infiniband/{name}", ib)
        (self.root / f"sys/devices/{where}/net/ens1").mkdir(parents=True)

    def host(self):
        flags = "fpu constant_tsc nonstop_tsc aes"
        for path, text in {
                "proc/cpuinfo": f"processor\t: 0\nflags\t\t: {flags}\n", "proc/loadavg": "0.10 0.2 0.3 1/900 77",
                "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro secret=1 iommu=pt",
                "proc/self/status": "Name:\tputscope\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-15\n",
                "proc/self/limits": "Limit  Soft Limit  Hard Limit  Units\n"
                                    "Max locked memory         unlimited            unlimited            bytes\n",
                "proc/meminfo": "HugePages_Total:    64\nHugePages_Free:     64\nHugepagesize:       2048 kB\n",
                "proc/sys/kernel/numa_balancing": 0, "proc/1/comm": "init", "proc/4242/comm": "trainer",
                "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  "
                                              "Release Build  (builder)",
                "proc/driver/nvidia/params": "EnableMSI: 1\nRegistryDwords: \"PeerMappingOverride=1;\"\n"
                                             "RegistryDwordsPerDevice: \"\"",
                "sys/class/dmi/id/sys_vendor": "Maker", "sys/class/dmi/id/product_name": "Server 9",
                "sys/devices/system/cpu/online": "0-15", "sys/devices/system/node/online": "0-1",
                "sys/devices/system/node/node0/cpulist": "0-15", "sys/devices/system/node/node1/cpulist": "16-31",
                "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
                "sys/class/net/ens1/qos/pfc": "0,0,0,1,0,0,0,0", "sys/class/net/ens1/ecn/roce_np/enable/3": "1",
        }.items():
            self.put(path, text)
        for cpu in range(16):
            self.put(f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", "performance")
        for pid in (1, 4242):
            (self.root / f"proc/{pid}/fd").mkdir()
        for port in (f"pci0000:16/{ROOT_PORT}", SWITCH, f"{SWITCH}/{DOWN_GPU}", f"{SWITCH}/{DOWN_NIC}"):
            self.pci(port, "0x1000", "0x060400", "pcieport", space=config(acs=0))


@pytest.fixture
def bare(tmp_path):
    t = Tree(tmp_path)
    t.host()
    return t


@pytest.fixture
def tree(bare, nvml):
    """A good machine: an H200 and a ConnectX-7 below one switch."""
    bare.gpu()
    bare.nic()
    (bare.root / "usr/lib").mkdir(parents=True)
    (bare.root / "usr/lib/libnvidia-ml.so.1").symlink_to(nvml)
    return bare


def doctor(tree, code=0, **env):
    done = putscope("doctor", "--json", cwd=tree.root, PUTSCOPE_SYSROOT=tree.root, **env)
    sane(done, code)
    all_ = json.loads(done.stdout)
    assert set(all_) == {"checks"} and all(set(c) == KEYS for c in all_["checks"])
    for c in all_["checks"]:
        assert c["status"] in ("ok", "warn", "fail", "unknown") and c["found"] and c["means"], c
        assert c["remedy"] or c["status"] in ("ok", "unknown"), c
        assert not c["remedy"] or c["status"] != "ok", c
        assert not c["found"].endswith(": "), c
    assert code == any(c["status"] == "fail" for c in all_["checks"])
    return {c["name"]: c for c in all_["checks"]}


def says(check, status, found="", do=""):
    assert check["status"] == status, check
    assert re.search(found, check["found"]), check
    assert do in check["remedy"], check


def test_good_machine(tree):
    c = doctor(tree)
    assert {n for n, x in c.items() if x["status"] != "ok"} == {
        "cuda", "nic-cqe-compression", "register-host", "register-gpu"}   # no file tells
    says(c["gpu"], "ok", "NVIDIA H200, compute capability 9.0")
    says(c["gpu-driver"], "ok", "^580.95.05, open")
    says(c["gpu-bar1"], "ok", "BAR1 262144 MiB for 144384 MiB")
    says(c["gpu-clocks"], "ok", "345 MHz, at most 1980; held back by: idle$")
    says(c["gpu-pcie"], "ok", "Gen5 x16, can do Gen5 x16")
    says(c["nic"], "ok", "MT4129.*firmware 28.39.2048, driver mlx5_core")
    says(c["nic-link"], "ok", "ACTIVE.*400 Gb/sec.*Ethernet, interface ens1")
    says(c["nic-gid"], "ok", "1 RoCE v2 GIDs .1 beyond link-local., 1 RoCE v1, first v2 at index 1")
    says(c["nic-mrrs"], "ok", "MRRS 4096 B, MPS 256 B")
    says(c["path-distance"], "ok", f"{GPU} - mlx5_0: PIX")
    says(c["path-acs"], "ok", "no redirection in 2 bridges")
    says(c["iommu"], "ok", "^off")
    says(c["machine"], "ok", "bare metal: Maker Server 9")
    assert "secret" not in json.dumps(c)


def test_text_says_the_same(tree):
    done = putscope("doctor", cwd=tree.root, PUTSCOPE_SYSROOT=tree.root)
    sane(done, 0)
    c = doctor(tree)
    for x in c.values():
        assert re.search(rf"^{x['status']} +{x['name']} +{re.escape(x['found'])}$", done.stdout, re.M), x
        assert f"means: {x['means']}\n" in done.stdout
    assert re.search(r"^\d+ ok, 0 warn, 0 fail, 4 unknown$", done.stdout.splitlines()[-1])


# ---- the machine ----
def test_governor_powersave(tree):
    for cpu in (3, 4, 10):
        tree.put(f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", "powersave")
    says(doctor(tree)["cpu-governor"], "warn", "13 of 16 CPUs with governor performance, others powersave",
         "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")


def test_host_troubles(tree):
    tree.put("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor constant_tsc\n")
    tree.put("proc/loadavg", "12.00 1 1 1/900 77")
    tree.put("proc/self/status", "CapEff:\t0000000000000000\nCpus_allowed_list:\t0-1\n")
    tree.put("proc/sys/kernel/numa_balancing", 1)
    c = doctor(tree)
    says(c["machine"], "warn", "virtual machine")
    says(c["load"], "warn", "12.00 on 16 CPUs", "ps -eo")
    says(c["cpus"], "warn", "^2 CPUs allowed", "taskset -c 0-15")
    says(c["invariant-tsc"], "warn", "constant_tsc yes, nonstop_tsc no", "+invtsc")
    says(c["numa"], "warn", "balancing on", "sudo sysctl kernel.numa_balancing=0")


@pytest.mark.parametrize("soft,hard,caps,status,do", [
    ("65536", "65536", "0", "fail", "limits.d"), ("65536", "unlimited", "0", "fail", "ulimit -l unlimited"),
    ("8589934592", "8589934592", "0", "warn", "limits.d"), ("65536", "65536", "4000", "ok", "")])
def test_memlock(tree, soft, hard, caps, status, do):
    tree.put("proc/self/limits", f"Max locked memory         {soft}                {hard}                bytes\n")
    tree.put("proc/self/status", f"CapEff:\t{caps}\nCpus_allowed_list:\t0-15\n")
    says(doctor(tree, code=int(status == "fail"))["memlock"], status, soft, do)


@pytest.mark.parametrize("kind,boot,status,do", [
    ("DMA", "intel_iommu=on", "warn", "&iommu=pt /"), ("DMA-FQ", "iommu=pt", "warn", "dmesg"),
    ("identity", "iommu=pt", "ok", ""), (None, "iommu=pt", "ok", ""), (None, "intel_iommu=on", "unknown", "")])
def test_iommu(tree, kind, boot, status, do):
    tree.put("sys/class/iommu/dmar0/x", "")
    tree.put("proc/cmdline", f"ro secret=1 {boot} quiet")
    for i, bdf in enumerate((GPU, NIC) if kind else ()):
        tree.put(f"sys/kernel/iommu_groups/{i}/type", kind)
        tree.link(f"sys/bus/pci/devices/{bdf}/iommu_group", f"sys/kernel/iommu_groups/{i}")
    found = f", {GPU} {kind}, mlx5_0 {kind}" if kind else ""
    says(doctor(tree)["iommu"], status, f"^on, boot line: {boot}{found}$", do)


def test_nothing_can_be_read(tmp_path):
    """An empty root: unknown, never a guess; and no crash."""
    (tmp_path / "r").mkdir()
    c = doctor(Tree(tmp_path / "r"))
    assert {x["status"] for n, x in c.items() if n != "nic"} == {"unknown"}, c


# ---- the GPU ----
def test_peer_mapping_refused(tree):
    tree.put("proc/driver/nvidia/params", "RegistryDwords: \"RMOther=2;\"")
    says(doctor(tree, code=1)["gpu-peer-mapping"], "fail", "PeerMappingOverride not set",
         "echo 'options nvidia NVreg_RegistryDwords=\"RMOther=2;PeerMappingOverride=1;\"' | sudo tee /etc/modprobe.d/")
    tree.put("proc/driver/nvidia/params", "RegistryDwords: \"PeerMappingOverride=0;\"")
    says(doctor(tree, code=1)["gpu-peer-mapping"], "fail", "not set", "Dwords=\"PeerMappingOverride=1;\"'")
    tree.remove("sys/class/infiniband")
    tree.set(NIC, "vendor", "0x8086")
    says(doctor(tree)["gpu-peer-mapping"], "ok", "not set")


def test_gpu_troubles(tree):
    tree.put("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May")
    tree.set(GPU, "resource", "0x0 0xffffff 0x0\n0x10000000 0x1fffffff 0x0")
    tree.put("proc/77/comm", "nvidia-cuda-mps")
    (tree.root / "proc/77/fd").mkdir()
    c = doctor(tree, FAKE_NVML="hot,mig,users")
    says(c["gpu-driver"], "warn", "^535.183.01, proprietary", "sudo modprobe nvidia_peermem")
    says(c["gpu-bar1"], "warn", "BAR1 256 MiB for 144384", "firmware-setup")
    says(c["gpu-clocks"], "warn", "hardware slowdown, hardware thermal limit$", "nvidia-smi -i 0 -q")
    says(c["gpu-mig"], "warn", "MIG on", "sudo nvidia-smi -i 0 -mig 0")
    says(c["gpu-users"], "warn", "2 other compute processes .4242 trainer, 4243 name not told.; busy 97 %", "nvidia-smi")
    says(c["gpu-mps"], "warn", "1 processes", "nvidia-cuda-mps-control")
    says(doctor(tree, FAKE_NVML="nomig")["gpu-mig"], "ok", "has no MIG")
    says(doctor(tree, code=1, FAKE_NVML="volta")["gpu"], "fail", "7.0", "GENCODE")


def test_gpu_without_its_driver_or_library(tree):
    says(doctor(tree, code=1, FAKE_NVML="mismatch")["gpu"], "fail", "version mismatch", "sudo reboot")
    tree.remove("usr/lib/libnvidia-ml.so.1")
    c = doctor(tree)
    says(c["gpu"], "unknown", "NVIDIA H200; compute capability not told: libnvidia-ml.so.1 does not load")
    says(c["gpu-clocks"], "unknown", "cannot be read: libnvidia-ml")
    says(c["gpu-bar1"], "ok", "BAR1 262144 MiB$")
    tree.remove(f"sys/bus/pci/devices/{GPU}/driver")
    says(doctor(tree, code=1)["gpu"], "fail", "no driver", "sudo modprobe nvidia")


def test_bus_hidden(tree):
    """As in a sandbox that lends the driver and shows no bus."""
    tree.remove("sys/bus")
    c = doctor(tree)
    says(c["gpu"], "ok", f"{GPU}: NVIDIA H200")
    says(c["gpu-bar1"], "ok", "BAR1 262144")
    says(c["gpu-pcie"], "unknown")
    says(c["iommu"], "unknown", "/sys/class/iommu cannot be read")


def test_no_gpu(bare):
    bare.nic()
    c = doctor(bare, code=0)
    says(c["gpu"], "warn", "no NVIDIA GPU on the PCI bus")
    assert not [n for n in c if n.startswith(("gpu-", "path-"))]


# ---- the NIC ----
def test_no_rocev2_gid(tree):
    ib = "sys/class/infiniband/mlx5_0/ports/1"
    tree.put(f"{ib}/gid_attrs/types/1", "IB/RoCE v1")
    says(doctor(tree, code=1)["nic-gid"], "fail", "^mlx5_0: 0 RoCE v2", "sudo ip address add 192.168.100.1/24 dev ens1")
    tree.put(f"{ib}/gid_attrs/types/0", "RoCE v2")
    says(doctor(tree)["nic-gid"], "warn", "1 RoCE v2 GIDs .0 beyond link-local., 1 RoCE v1, first v2 at index 0", "ip addr")


def test_port_down(tree):
    tree.put("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN")
    says(doctor(tree, code=1)["nic-link"], "fail", "DOWN", "sudo ip link set dev ens1 up")


def test_infiniband_without_subnet_manager(tree):
    tree.put("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand")
    tree.put("sys/class/infiniband/mlx5_0/ports/1/lid", "0x0")
    c = doctor(tree, code=1)
    says(c["nic-gid"], "fail", "LID 0", "opensm")
    says(c["nic-flow-control"], "ok", "credits")
    tree.put("sys/class/infiniband/mlx5_0/ports/1/lid", "0x2a")
    says(doctor(tree)["nic-gid"], "ok", "LID 42")


def test_nic_settings(tree):
    tree.set(NIC, "config", config(mrrs=128, relaxed=False))
    tree.put("sys/class/net/ens1/qos/pfc", "0,0,0,0,0,0,0,0")
    (tree.root / "proc/4242/fd/7").symlink_to("/dev/infiniband/uverbs0")
    c = doctor(tree)
    says(c["nic-mrrs"], "warn", "MRRS 128", f"sudo setpci -s {NIC} CAP_EXP+08.w=5000:7000")
    says(c["nic-relaxed-ordering"], "warn", "switched off", f"sudo setpci -s {NIC} CAP_EXP+08.w=0010:0010")
    says(c["nic-flow-control"], "warn", "PFC 0,0", "sudo dcb pfc set dev ens1")
    says(c["nic-users"], "warn", "in use by 4242 trainer", "rdma resource")
    says(c["nic-cqe-compression"], "unknown", "", f"sudo mlxconfig -d {NIC} query CQE_COMPRESSION")
    tree.remove("sys/class/net")
    says(doctor(tree)["nic-flow-control"], "unknown", "PFC not told", "dcb pfc show dev ens1")


def test_nic_without_driver(bare):
    bare.pci(f"pci0000:16/{NIC}", "0x15b3", "0x020000", None)
    says(doctor(bare, code=1)["nic"], "fail", "1 ConnectX function on the PCI bus, no RDMA", "sudo modprobe -a mlx5_core")


def test_software_nic(bare):
    ib = "sys/devices/virtual/infiniband/rxe0/ports/1"
    bare.put(f"{ib}/state", "4: ACTIVE")
    bare.put(f"{ib}/link_layer", "Ethernet")
    bare.put(f"{ib}/gids/0", "fe80::1")
    bare.link("sys/class/infiniband/rxe0", "sys/devices/virtual/infiniband/rxe0")
    bare.gpu()
    c = doctor(bare, code=1)
    says(c["nic"], "warn", "rxe0.*driver none")
    says(c["nic-pcie"], "unknown")
    assert "path-distance" not in c


# ---- the path ----
def test_link_gen3_x8(tree):
    for bdf in (NIC, GPU):
        tree.set(bdf, "current_link_speed", "8.0 GT/s PCIe")
        tree.set(bdf, "current_link_width", 8)
    c = doctor(tree)
    says(c["nic-pcie"], "warn", "Gen3 x8, can do Gen5 x16; the port above it .0000:18:01.0. can do Gen5 x16",
         "sudo setpci -s 0000:18:01.0 CAP_EXP+10.w=20:20")
    assert "at most 8 of 64 GB/s" in c["nic-pcie"]["means"]
    says(c["gpu-pcie"], "warn", "Gen3 x8")
    tree.set(DOWN_NIC, "max_link_speed", "8.0 GT/s PCIe")
    tree.set(DOWN_NIC, "max_link_width", 8)
    says(doctor(tree)["nic-pcie"], "warn", "can do Gen3 x8", "move the card to a Gen5 x16 slot")


def test_gpu_link_at_rest(tree):
    tree.set(GPU, "current_link_speed", "2.5 GT/s PCIe")
    says(doctor(tree)["gpu-pcie"], "unknown", "Gen1 x16", "while a run goes on")


def far(bare, where, node=0):
    bare.gpu()
    bare.nic(where=where, node=node)
    return doctor(bare)


@pytest.mark.parametrize("where,node,cls", [
    (f"{SWITCH}/{DOWN_NIC}/0000:30:00.0/0000:31:00.0/{NIC}", 0, "PXB"), (f"pci0000:16/0000:16:03.0/{NIC}", 0, "PHB"),
    (f"pci0000:40/0000:40:01.0/{NIC}", 0, "NODE"), (f"pci0000:80/0000:80:01.0/{NIC}", 1, "SYS"),
    (f"pci0000:80/0000:80:01.0/{NIC}", -1, "unknown")])
def test_distance(bare, where, node, cls):
    c = far(bare, where, node)
    says(c["path-distance"], {"PXB": "ok", "unknown": "unknown"}.get(cls, "warn"), f": {cls}: ")
    assert cls in ("PXB",) or "nvidia-smi topo -m" in c["path-distance"]["remedy"]


def test_nearest_pair_is_named(tree):
    tree.gpu(where="pci0000:80/0000:80:01.0/0000:81:00.0", node=1)
    done = putscope("doctor", "--json", cwd=tree.root, PUTSCOPE_SYSROOT=tree.root)
    sane(done, 0)
    d = [c for c in json.loads(done.stdout)["checks"] if c["name"] == "path-distance"]
    assert [c["status"] for c in d] == ["ok", "warn"]
    assert "run --gpu 0 --nic mlx5_0   (PIX)" in d[1]["remedy"]


def test_nic_on_a_far_node(bare):
    c = far(bare, f"pci0000:80/0000:80:01.0/{NIC}", 1)
    says(c["path-numa"], "warn", "NIC on node 1; CPUs allowed 0-15, the NIC's node has 16-31",
         "numactl --cpunodebind=1 --membind=1 build/putscope run")


def test_acs(tree):
    tree.set(DOWN_NIC, "config", config(acs=0x1d))
    c = doctor(tree)
    says(c["path-acs"], "warn", "0000:18:01.0 redirects; 1 of 2", "sudo setpci -s 0000:18:01.0 ECAP_ACS+06.w=0000")
    for bdf in (DOWN_NIC, NIC):
        tree.set(bdf, "config", config(root=False))
    c = doctor(tree)
    for name in ("path-acs", "nic-mrrs", "nic-relaxed-ordering"):
        says(c[name], "unknown", "cannot be read: Permission denied", "sudo build/putscope doctor")


# ---- the command ----
def test_under_the_virtual_nic(tmp_path):
    done = subprocess.run([BUILD / "vcx", BUILD / "putscope", "doctor", "--json"], capture_output=True, text=True,
                          timeout=60, cwd=tmp_path)
    sane(done, 0, 1)
    c = [x for x in json.loads(done.stdout)["checks"] if x["name"] in ("nic", "register-host")]
    assert [(x["name"], x["status"]) for x in c] == [("nic", "warn")] * 2 + [("register-host", "ok")] * 2
    assert all("virtual" in x["found"] for x in c)


def test_usage(tmp_path):
    done = putscope("doctor", "--help", cwd=tmp_path)
    sane(done, 0)
    assert "exit status: 0 no fail, 1 some fail" in done.stdout
    sane(putscope("doctor", "extra", cwd=tmp_path), 2)
    sane(putscope("doctor", "--methods", cwd=tmp_path), 2)
