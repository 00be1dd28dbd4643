# SPDX-License-Identifier: Apache-2.0
"""What a guest boots: the distribution's kernel, and an initramfs made of this machine's own programs.

The kernel is fetched once into a cache folder and never installed.  The initramfs holds busybox, Open MPI, putscope, what
ldd names for each, and the modules of Soft-RoCE.
"""
import os
import pathlib
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
# crc32_generic is asked for by name at run time, so modules.dep does not show that rdma_rxe needs it.
MODULES = ["virtio_pci", "virtio_net", "virtio_blk", "crc32_generic", "rdma_rxe", "sch_netem"]
PROGRAMS = ["ip", "rdma", "tc", "mpirun", "orted"]
# Plug-ins of Open MPI for other networks and launchers would bring some hundred libraries along.
PLUGINS_OUT = re.compile(r"(ucx|ofi|psm|openib|slurm|flux|gridengine|io_|fs_|fbtl|fcoll|sharedfp|scoll|spml|sshmem|memheap)")
SKELETON = ["bin", "dev", "etc", "lib64", "mod", "proc", "root", "sys", "tmp", "usr/bin"]


class Missing(Exception):
    """Something this machine lacks; the text says what, and what to do."""


def text_of(args, **kw):
    """What a command prints, or its complaint as our own."""
    done = subprocess.run(args, capture_output=True, text=True, **kw)
    if done.returncode:
        raise Missing(f"{' '.join(map(str, args))}: exit {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def find(program):
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise Missing(f"no {program} here: run 'make deps-two-node'")
    return path


def kernel_packages():
    """The plain kernel behind Debian's or Ubuntu's metapackage, and its modules; the -cloud- one has no rdma_rxe."""
    for meta in ("linux-image-amd64", "linux-image-generic"):
        done = subprocess.run(["apt-cache", "depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts",
                               "--no-breaks", "--no-replaces", "--no-enhances", meta], capture_output=True, text=True)
        names = {w for w in done.stdout.split() if re.match(r"linux-(image|modules)(-extra|-unsigned)?-\d", w)}
        if done.returncode == 0 and names:
            return sorted(names)
    raise Missing("no linux-image-amd64 or linux-image-generic among the packages: run 'apt-get update'")


def kernel(cache):
    """The kernel's folder, fetched at first use: (vmlinuz, version, root of its modules)."""
    tree = cache / "kernel"
    if not tree.exists():
        new = cache / "kernel.new"
        shutil.rmtree(new, ignore_errors=True)
        (new / "debs").mkdir(parents=True)
        text_of(["apt-get", "download", "-q", *kernel_packages()], cwd=new / "debs")
        for deb in (new / "debs").iterdir():
            text_of(["dpkg", "-x", deb, new])
        shutil.rmtree(new / "debs")
        version = next((new / "boot").glob("vmlinuz-*")).name.removeprefix("vmlinuz-")
        text_of([find("depmod"), "-b", new, version])
        new.rename(tree)
    image = next((tree / "boot").glob("vmlinuz-*"))
    return image, image.name.removeprefix("vmlinuz-"), tree


class Root:
    """The tree that becomes the initramfs; a file is put where this machine has it, with the libraries it loads."""

    def __init__(self, path):
        self.path = path
        shutil.rmtree(path, ignore_errors=True)
        for d in SKELETON:
            (path / d).mkdir(parents=True)

    def put(self, file, to=None):
        target = self.path / str(to or file).lstrip("/")
        if target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
        with open(file, "rb") as f:
            if f.read(4) != b"\x7fELF":
                return
        said = subprocess.run(["ldd", file], capture_output=True, text=True).stdout
        if " not found" in said:
            raise Missing(f"{file} does not find all of its libraries: {said}")
        for lib in re.findall(r"(/\S+) \(0x", said):
            self.put(lib)

    def put_program(self, name):
        path = os.path.realpath(find(name))
        self.put(path)
        if not (self.path / "bin" / name).exists():
            (self.path / "bin" / name).symlink_to(path)

    def put_modules(self, version, tree):
        order = []
        for m in MODULES:
            out = text_of([find("modprobe"), "-d", tree, "-S", version, "--show-depends", m])
            order += [w[1] for w in map(str.split, out.splitlines()) if w[:1] == ["insmod"] and w[1] not in order]
        for ko in order:
            packed = {".xz": ["xz", "-dc"], ".zst": ["zstd", "-dc"]}.get(pathlib.Path(ko).suffix)
            name = pathlib.Path(ko).name.split(".ko")[0] + ".ko"
            if packed:
                (self.path / "mod" / name).write_bytes(subprocess.run([*packed, ko], check=True, capture_output=True).stdout)
            else:
                shutil.copy2(ko, self.path / "mod" / name)
        names = [pathlib.Path(ko).name.split(".ko")[0] for ko in order]
        (self.path / "mod/order").write_text("".join(n + "\n" for n in names))

    def pack(self, file):
        with open(file, "wb") as out:
            names = text_of(["find", "."], cwd=self.path)
            subprocess.run([find("cpio"), "-o", "-H", "newc", "--quiet", "-R", "0:0"], cwd=self.path, input=names.encode(),
                           stdout=out, check=True)


def initramfs(work, build, version, tree, command):
    """Both guests boot the same file; `command` is the shell text that node 1 measures with."""
    root = Root(work / "root")
    busybox = find("busybox")
    root.put(busybox, "/bin/busybox")
    for p in PROGRAMS:
        root.put_program(p)
    libs = pathlib.Path("/usr/lib/x86_64-linux-gnu")
    for f in [*libs.glob("libibverbs/librxe-*.so"), "/etc/libibverbs.d/rxe.driver", "/etc/openmpi/openmpi-mca-params.conf"]:
        root.put(f)
    for f in [*libs.glob("openmpi/lib/openmpi3/*.so"), *libs.glob("pmix2/lib/pmix/*.so")]:
        if not PLUGINS_OUT.search(f.name):
            root.put(f)
    for f in pathlib.Path("/usr/share/openmpi").glob("help-*.txt"):
        root.put(f)
    for name in ("putscope", "libputscope-mpi.so"):
        root.put(build / name, f"/opt/{name}")
    root.put(HERE / "init.sh", "/init")
    root.put(HERE / "rsh_agent.sh", "/bin/rsh_agent")
    (root.path / "measure").write_text(command)
    for name in ("init", "bin/rsh_agent"):
        (root.path / name).chmod(0o755)
    root.put_modules(version, tree)
    root.pack(work / "initrd")
    return work / "initrd"
