# SPDX-License-Identifier: Apache-2.0
"""Run commands under vcx: one, or a server and a client on one fabric."""
import json
import os
import re
import shutil
import socket
import subprocess
import time

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
B = os.path.join(ROOT, os.environ.get("B", "build"))
VCX = os.path.join(B, "vcx")
SLOW = 4 if os.environ.get("SAN") else 1  # sanitizers


def client(name):
    return os.path.join(B, "tests", name)


def command(cmd, *opts, prefix=()):
    return [*prefix, VCX, *(x for o in opts for x in ("-o", o)), *cmd]


def run(cmd, *opts, timeout=70, **kw):
    """Run cmd under vcx with options; (exit status, stdout, stderr)."""
    r = subprocess.run(command(cmd, *opts), capture_output=True, text=True, timeout=timeout, cwd=ROOT, **kw)
    return r.returncode, r.stdout, r.stderr


class Stats(dict):
    def violations(self):
        return {k: n for k, n in self["violations"].items() if n}


def read_stats(path):
    with open(path) as f:
        s = Stats(json.load(f))
    assert s["schema"] == "vcx-stats"
    return s


def run_stats(tmp_path, cmd, *opts, **kw):
    path = tmp_path / "stats.json"
    rc, out, err = run(cmd, f"stats={path}", *opts, **kw)
    return rc, out, err, read_stats(path)


def named(err):
    """The kinds of violation that stderr names, each as often as it does."""
    return re.findall(r"^vcx: violation ([a-z-]+):", err, re.M)


def need(*tools):
    for t in tools:
        if not shutil.which(t):
            pytest.skip(f"{t} is not installed")


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def listens(port):
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/net/{table}") as f:
                rows = [line.split() for line in f]
        except FileNotFoundError:
            continue
        if any(r[3] == "0A" and int(r[1].rsplit(":", 1)[1], 16) == port for r in rows[1:]):
            return True
    return False


def wait_until(what, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.01)
    return False


class Pair:
    """What a server and a client did.  rcs: exit statuses, None for one that had to be killed; outs: what they said."""

    def __init__(self, tmp_path, server, client_, timeout, grace, fabrics, prefix, opts, during):
        port = str(free_port())
        cmds = [[*server, "-p", port], [*client_, "-p", port, "127.0.0.1"]]
        self.stats_files = [tmp_path / f"{port}.{side}.json" for side in ("server", "client")]
        self.logs = [tmp_path / f"{port}.{side}.log" for side in ("server", "client")]
        self.procs = []
        try:
            for i, cmd in enumerate(cmds):
                with open(self.logs[i], "w") as log:
                    full = command(cmd, f"fabric={fabrics[i]}", f"stats={self.stats_files[i]}", *opts, prefix=prefix)
                    self.procs.append(subprocess.Popen(full, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT))
                if i == 0:
                    wait_until(lambda: listens(int(port)) or self.ended(), 20)
                    assert not self.ended(), "the server does not listen: " + self.logs[0].read_text()
            begin = time.monotonic()
            if during:
                during(self.procs)
            wait_until(self.ended, timeout)
            wait_until(lambda: self.ended() == 2, min(grace, timeout - (time.monotonic() - begin)))
            self.took = time.monotonic() - begin
            self.rcs = [p.poll() for p in self.procs]
        finally:
            for p in self.procs:
                if p.poll() is None:
                    p.kill()
                p.wait()
        self.outs = [log.read_text() for log in self.logs]

    def ended(self):
        return sum(p.poll() is not None for p in self.procs)

    def passed(self):
        assert self.rcs == [0, 0], f"exit statuses {self.rcs}\n--- server\n{self.outs[0]}\n--- client\n{self.outs[1]}"
        self.server, self.client = (read_stats(f) for f in self.stats_files)
        for s in (self.server, self.client):
            assert not s.violations() and not s["errors"], s
        assert self.server["pid"] != self.client["pid"] and self.server["fabric"] == self.client["fabric"]
        return self


def pair(tmp_path, server, client_=None, timeout=10, grace=None, fabrics=None, prefix=(), opts=(),
         during=None):
    """Run both; `timeout` for the two of them, `grace` for the second one when the first has ended;
    `during` is called with both launchers once they are started."""
    fabric = tmp_path / "fabric"
    timeout *= SLOW
    return Pair(tmp_path, server, client_ or server, timeout, timeout if grace is None else grace,
                fabrics or (fabric, fabric), prefix, opts, during)
