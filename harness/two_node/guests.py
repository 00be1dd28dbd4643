# SPDX-License-Identifier: Apache-2.0
"""Two QEMU guests on one virtual wire: started, watched by what they say on their consoles, their out-boxes opened."""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tarfile
import time

import image
from image import Missing

ROOT = image.HERE.parents[1]
CACHE = ROOT / "build/two_node"
OUTBOX_BYTES = 64 << 20
MEMORY_MIB = 768
NICE = 15
MPIRUN = "mpirun --mca plm_rsh_agent /bin/rsh_agent -np 2 --host node1,node2 --map-by node --bind-to none"


def free_ports(n):
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(n)]
        for s in socks:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in socks]


def be_nice():
    """15, not 15 more: under `nice make` guests at 19 stand still for a minute beside a program that spins."""
    os.setpriority(os.PRIO_PROCESS, 0, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))


class Guest:
    def __init__(self, work, node, kernel, initrd, ports, limit_s):
        here, there = ports if node == 1 else ports[::-1]
        self.name, self.log, self.outbox = f"node{node}", work / f"node{node}.log", work / f"node{node}.tar"
        self.qemu_log = work / f"qemu{node}.log"
        self.log.unlink(missing_ok=True)
        with open(self.outbox, "wb") as f:
            f.truncate(OUTBOX_BYTES)
        # tcg by name: kvm hangs on hosts that are guests themselves.  dgram: stream and socket cost 44 ms an exchange.
        wire = (f"dgram,id=wire,local.type=inet,local.host=127.0.0.1,local.port={here},remote.type=inet,"
                f"remote.host=127.0.0.1,remote.port={there}")
        args = ["timeout", "-k", "5", limit_s + 10,     # outlives this program, should that be killed
                image.find("qemu-system-x86_64"), "-accel", "tcg,thread=multi", "-cpu", "max", "-M", "q35",
                "-smp", 1, "-m", MEMORY_MIB, "-nodefaults", "-no-reboot", "-display", "none", "-serial", f"file:{self.log}",
                "-netdev", wire, "-device", f"virtio-net-pci,netdev=wire,mac=52:54:00:00:00:0{node},romfile=",
                "-drive", f"file={self.outbox},format=raw,if=virtio", "-kernel", kernel, "-initrd", initrd,
                "-append", f"console=ttyS0 quiet panic=-1 mitigations=off node={node}"]
        with open(self.qemu_log, "wb") as log:
            self.process = subprocess.Popen([str(a) for a in args], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            preexec_fn=be_nice)

    def running(self):
        return self.process.poll() is None

    def said(self):
        text = self.log.read_bytes().decode(errors="replace") if self.log.exists() else ""
        return text.replace("\r", "")

    def marks(self):
        """[(seconds of the guest's own clock, words)] of its @@ lines."""
        lines = [line[3:].split(" ", 1) for line in self.said().splitlines(keepends=True)
                 if line.startswith("@@ ") and line.endswith("\n")]
        return [(float(at), words.strip()) for at, words in lines]

    def power_off(self):
        """As if its cord were pulled."""
        if self.running():
            self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def complaint(self):
        tail = self.said().splitlines()[-8:] or self.qemu_log.read_text(errors="replace").splitlines()[-8:]
        return f"{self.name} said last:\n  " + "\n  ".join(tail)

    def unpack(self, to):
        shutil.rmtree(to, ignore_errors=True)
        try:
            with tarfile.open(self.outbox) as tar:
                tar.extractall(to)
        except tarfile.TarError as e:
            raise Missing(f"{self.name} left no out-box ({e}); {self.complaint()}") from e


def run(work, build, command, limit_s, look=lambda node1, node2: None):
    """Boot both, let node 1 run `command`, call `look` ten times a second, wait for their power-off: both guests."""
    work.mkdir(parents=True, exist_ok=True)
    kernel, version, tree = image.kernel(CACHE)
    initrd = image.initramfs(work, build, version, tree, command)
    end, ports, both = time.monotonic() + limit_s, free_ports(2), []
    try:
        for node in (1, 2):
            both.append(Guest(work, node, kernel, initrd, ports, limit_s))
        while any(g.running() for g in both):
            look(*both)
            for g in both:
                if any(words.startswith("FAILED") for _, words in g.marks()):
                    raise Missing(g.complaint())
            if time.monotonic() > end:
                raise Missing(f"the guests did not end within {limit_s} s; " + "; ".join(g.complaint() for g in both))
            time.sleep(0.1)
    finally:
        for g in both:
            g.power_off()
    return both


def packets(folder: pathlib.Path):
    """{counter: what it grew by} of a guest's Soft-RoCE device."""
    def read(name):
        return {k: int(v) for k, v in (line.split(":") for line in (folder / name).read_text().split())}
    before, after = read("counters.before"), read("counters.after")
    return {k: after[k] - before[k] for k in after}
