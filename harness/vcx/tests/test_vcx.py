# SPDX-License-Identifier: Apache-2.0
"""vcx: our own verbs programs, planted mistakes, faults, and unmodified clients in two processes.

REPEAT=10 runs each client ten times (the normal test: once).
"""
import fcntl
import ipaddress
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = ROOT / os.environ.get("B", "build")
VCX = BUILD / "vcx"
REPEAT = int(os.environ.get("REPEAT", "1"))
SAN = "san" in BUILD.name
PORT = 18500 + os.getpid() % 1000 * 4


def run(*args, opts=(), timeout=60, **kw):
    o = [x for k in opts for x in ("-o", str(k))]
    return subprocess.run([VCX, *o, *map(str, args)], capture_output=True, text=True, timeout=timeout, **kw)


def leftovers():
    """Folders and fabrics that no launcher holds; another user of this machine may be running one."""
    found = []
    for p in [*pathlib.Path("/dev/shm").glob("vcx*"), *pathlib.Path("/tmp").glob("vcx.*")]:
        try:
            with open(p / "lock" if p.is_dir() else p) as f:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        except FileNotFoundError:
            if not p.exists() or time.time() - p.stat().st_mtime < 5:
                continue
        found.append(p)
    return found


def stats_of(path):
    return json.loads(path.read_text())


def violations(stats):
    return {k: v for k, v in stats["violations"].items() if v}


# ---- our own programs ----
@pytest.mark.parametrize("args", ["t_verbs mlx5_0 mlx5_0", "t_verbs mlx5_0 mlx5_1", "t_verbs mlx5_1 mlx5_0", "t_hand", "t_errors"])
def test_programs(tmp_path, args):
    name, *rest = args.split()
    done = run(BUILD / "tests" / name, *rest, opts=[f"stats={tmp_path}/s"], timeout=120)
    assert done.returncode == 0 and re.search(r"^\d+ checks, 0 bad$", done.stdout, re.M), done.stdout + done.stderr
    s = stats_of(tmp_path / "s")
    assert violations(s) == {} and s["wqes"] > 0
    if name == "t_hand":
        assert s["qps_max"] >= 128 and s["opcodes"]["0x00"] == 70      # 70 NOPs
    if name == "t_errors":
        assert {"0x04", "0x05", "0x13", "0x15", "0x16", "0x12"} <= set(s["syndromes"])


# mistake: (violation that is named, what the program sees)
MISTAKES = {
    "correct": (None, "good CQE"),
    "no-doorbell": (None, "no CQE"),
    "record-never": ("late-record", "no CQE"),
    "record-off-by-one": ("late-record", "no CQE"),
    "record-after-doorbell": ("late-record", "no CQE"),
    "record-little-endian": ("record-byte-order", "no CQE"),
    "record-beyond-ring": ("record-beyond-ring", "no CQE"),
    "doorbell-little-endian": ("doorbell-byte-order", "no CQE"),
    "doorbell-unknown-qp": ("doorbell-unknown-qp", "no CQE"),
    "wrong-index": ("wqe-index", "error CQE 0x02"),
    "wrong-qpn": ("wqe-qpn", "error CQE 0x02"),
    "ds-zero": ("wqe-size", "error CQE 0x02"),
    "inline-past-wqe": ("wqe-size", "error CQE 0x02"),
    "bad-opcode": ("wqe-opcode", "error CQE 0x02"),
    "rkey-little-endian": ("key-byte-order", "error CQE 0x13"),
    "cq-not-drained": ("cq-overrun", "good CQE"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_planted_mistake_is_named(tmp_path, mistake):
    kind, sees = MISTAKES[mistake]
    done = run(BUILD / "tests/t_bugs", mistake, opts=[f"stats={tmp_path}/s"])
    found = violations(stats_of(tmp_path / "s"))
    assert done.stdout.strip() == sees, done.stderr
    if kind is None:
        assert found == {} and "violation" not in done.stderr
    else:
        assert kind in found, found
        assert done.stderr.count(f"violation {kind}") == 1      # once, however often
    assert set(found) <= {kind, "late-record"}


def test_record_may_follow_on_newer_nics(tmp_path):
    done = run(BUILD / "tests/t_bugs", "record-after-doorbell", opts=["record-recheck", f"stats={tmp_path}/s"])
    s = stats_of(tmp_path / "s")
    assert done.stdout.strip() == "good CQE" and violations(s) == {} and s["late_record_notes"] == 1
    done = run(BUILD / "tests/t_bugs", "record-after-doorbell", opts=["record-recheck", "strict-record", f"stats={tmp_path}/s"])
    assert done.stdout.strip() == "good CQE" and violations(stats_of(tmp_path / "s")) == {"late-record": 1}


@pytest.mark.parametrize("fault, sees", [("error-cqe", "error CQE 0x14"), ("retry-exceeded", "error CQE 0x15"),
                                         ("rnr", "error CQE 0x16"), ("lost-doorbell", "no CQE"), ("lost-cqe", "no CQE")])
def test_faults(fault, sees):
    assert run(BUILD / "tests/t_bugs", "correct", opts=[f"fault.{fault}=1"]).stdout.strip() == sees
    assert run(BUILD / "tests/t_bugs", "correct", opts=[f"fault.{fault}=2"]).stdout.strip() == "good CQE"


def test_sink_completes_without_reading(tmp_path):
    done = run(BUILD / "tests/t_bugs", "wrong-index", opts=["mode=sink", f"stats={tmp_path}/s"])
    s = stats_of(tmp_path / "s")
    assert done.stdout.strip() == "good CQE" and violations(s) == {} and s["bytes_out"] == 0


def test_refusals():
    devinfo = shutil.which("ibv_devinfo") or pytest.skip("no ibv_devinfo")
    assert "PORT_DOWN" in run(devinfo, opts=["refuse=port"]).stdout
    assert "RoCE v2" not in run(devinfo, "-v", opts=["refuse=gid"]).stdout
    done = run(BUILD / "tests/t_verbs", "mlx5_0", "mlx5_1", opts=["refuse=uar-map"])
    assert done.returncode == 1 and "Operation not permitted" in done.stdout
    for step in ("peermem", "dmabuf"):      # of GPU memory alone
        assert run("true", opts=[f"refuse={step}"]).returncode == 0


# ---- the launcher ----
@pytest.mark.parametrize("opt", ["bogus=1", "log=3", "mode=x", "fault.bogus=1", "fault.rnr=0", "refuse=x", "strict-record=1",
                                 "delay.wire_out=5", "adversary=1", "stats=", "log"])
def test_bad_options(opt):
    done = run("true", opts=[opt])
    assert done.returncode == 2 and opt.split("=")[0] in done.stderr


def test_exit_status_and_signals():
    assert run("true").returncode == 0
    assert run("sh", "-c", "exit 7").returncode == 7
    assert run("sh", "-c", "kill -9 $$").returncode == 137
    assert run("no-such-command").returncode == 2
    assert subprocess.run([VCX], capture_output=True).returncode == 2
    assert subprocess.run([VCX, "--help"], capture_output=True).returncode == 0
    p = subprocess.Popen([VCX, "sh", "-c", "trap 'exit 9' TERM; echo up; while :; do sleep .05; done"], stdout=subprocess.PIPE)
    p.stdout.readline()
    p.terminate()
    assert p.wait(5) == 9
    assert leftovers() == []


def test_killed_launcher_takes_its_command_along():
    p = subprocess.Popen([VCX, "sh", "-c", "echo $$; exec sleep 60"], stdout=subprocess.PIPE, text=True)
    child = int(p.stdout.readline())
    p.send_signal(signal.SIGKILL)
    p.wait()
    end = time.time() + 5
    while pathlib.Path(f"/proc/{child}").exists() and time.time() < end:
        time.sleep(.02)
    assert not pathlib.Path(f"/proc/{child}").exists()
    assert run("true").returncode == 0 and leftovers() == []     # the next launcher cleans up


def test_a_live_launcher_is_left_alone():
    p = subprocess.Popen([VCX, "sh", "-c", "echo up; sleep 1; test -d $SYSFS_PATH"], stdout=subprocess.PIPE)
    p.stdout.readline()
    assert run("true").returncode == 0
    assert p.wait(10) == 0


def test_nested_joins_the_outer_one():
    done = run(VCX, "sh", "-c", "echo $VCX_FABRIC; echo $LD_PRELOAD | tr : '\\n' | grep -c libvcx")
    assert done.returncode == 0 and done.stdout.split()[1] == "1"


# ---- unmodified clients ----
def listening(port):
    return any(f":{port:04X} " in line and " 0A " in line for line in open("/proc/net/tcp"))


def pair(tmp_path, command, fabrics=("one", "one"), timeout=15, prefix=()):
    """Server and client of an unmodified tool; (server, client) as CompletedProcess, with their statistics."""
    global PORT
    if not shutil.which(command[0]):
        pytest.skip(f"no {command[0]}")
    PORT += 1
    opts = [("-o", f"fabric={tmp_path}/{f}", "-o", f"stats={tmp_path}/{who}") for f, who in zip(fabrics, ("server", "client"))]
    args = [*command, "-p", str(PORT)]
    server = subprocess.Popen([*prefix, VCX, *opts[0], *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        end = time.time() + 10
        while not listening(PORT):
            assert time.time() < end and server.poll() is None, server.communicate()[0]
            time.sleep(.02)
        at = time.time()
        client = subprocess.run([*prefix, VCX, *opts[1], *args, "127.0.0.1"], capture_output=True, text=True, timeout=timeout)
        client.seconds = time.time() - at
        if fabrics[0] != fabrics[1]:
            server.kill()       # its peer has failed; it would wait for ever, as on a real wire
        out = server.communicate(timeout=timeout)[0]
    finally:
        server.kill()
        server.wait()
    return subprocess.CompletedProcess(args, server.returncode, out), client


def numbers(text):
    """The last line of figures that perftest prints."""
    return [float(x) for x in [m for m in re.findall(r"^ *(\d+ +\d+ +[\d. ]+.*)$", text, re.M)][-1].split()[:4]]


# command: bytes that the client sends to the server, from what it prints
# (without -N, ib_write_bw -q 16 spends some 20 s of CPU in its own search for a peak bandwidth)
CLIENTS = {
    "ibv_rc_pingpong -g 3 -n 1000 -c": lambda out: 1000 * 4096,
    "ibv_rc_pingpong -g 3 -n 1000 -e": lambda out: 1000 * 4096,
    "ib_write_lat -x 3": lambda out: numbers(out)[0] * numbers(out)[1],
    "ib_write_bw -x 3 -q 16 -N": lambda out: numbers(out)[0] * numbers(out)[1],
    "ib_read_lat -x 3": lambda out: 0,
    "ib_send_lat -x 3": lambda out: numbers(out)[0] * numbers(out)[1],
    "ib_atomic_bw -x 3": lambda out: 8 * numbers(out)[1],
}


@pytest.mark.parametrize("repeat", range(REPEAT))
@pytest.mark.parametrize("command", CLIENTS)
def test_unmodified_client(tmp_path, command, repeat):
    server, client = pair(tmp_path, command.split())
    assert client.returncode == 0 and server.returncode == 0, client.stdout + client.stderr + server.stdout
    assert client.seconds <= 10 or SAN
    assert "invalid data" not in client.stdout + server.stdout
    s, c = stats_of(tmp_path / "server"), stats_of(tmp_path / "client")
    assert violations(s) == violations(c) == {} and s["errors"] == c["errors"] == 0
    assert s["bytes_in"] == CLIENTS[command](client.stdout), client.stdout
    if "read" in command:
        assert c["bytes_read"] == numbers(client.stdout)[0] * numbers(client.stdout)[1]
    assert leftovers() == [] and list(tmp_path.glob("one*")) == []


def test_on_one_cpu(tmp_path):
    server, client = pair(tmp_path, "ibv_rc_pingpong -g 3 -n 200".split(), timeout=40, prefix=("taskset", "-c", str(min(os.sched_getaffinity(0)))))
    assert client.returncode == 0 and server.returncode == 0, client.stdout


@pytest.mark.parametrize("command", ["ibv_rc_pingpong -g 3 -n 100", "ib_write_bw -x 3 -n 100"])
def test_different_fabrics_never_meet(tmp_path, command):
    server, client = pair(tmp_path, command.split(), fabrics=("one", "two"))
    assert client.returncode not in (0, None) and "usec/iter" not in client.stdout, client.stdout
    assert re.search("retry|fail|Fail|Completion", client.stdout + client.stderr), client.stdout + client.stderr
    assert stats_of(tmp_path / "client")["syndromes"].get("0x15", 0) >= 1



def test_two_devices():
    done = run(shutil.which("ibv_devices") or pytest.skip("no ibv_devices"))
    assert re.findall(r"mlx5_\d", done.stdout) == ["mlx5_0", "mlx5_1"]
    done = run("ibv_devinfo", "-v")
    guids = re.findall(r"node_guid:\s+(\S+)", done.stdout)
    gids = re.findall(r"GID\[ *\d+\]:\s+(\S+?),", done.stdout)
    gids = [ipaddress.ip_address(g) for g in gids]
    assert done.returncode == 0 and len(set(guids)) == 2
    assert len(gids) == 8 and len(set(gids)) == 4       # RoCE v1 and v2 of each address
    assert done.stdout.count("PORT_ACTIVE") == 2
