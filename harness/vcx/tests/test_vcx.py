# SPDX-License-Identifier: Apache-2.0
"""vcx: its verbs, its checks of the posting protocol, its options and its launcher."""
import os
import re
import signal
import subprocess

import pytest

from vcx_run import ROOT, SLOW, VCX, client, command, need, named, read_stats, run, run_stats, wait_until


def names_of(program):
    """The cases that a client lists; without it (nothing is built) the tests that need it fail, not the collection."""
    try:
        return subprocess.run([client(program), "list"], capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return ["clients-are-not-built"]


# ---- verbs ----
def passes(tmp_path, cmd, *opts):
    rc, out, err, stats = run_stats(tmp_path, cmd, *opts)
    if rc == 77:
        pytest.skip(out.strip())
    assert rc == 0, out + err
    assert re.search(r"^\d{2,} checks, 0 failed$", out, re.M), out
    return err, stats


@pytest.mark.parametrize("where", ["loopback", "across"])
def test_verbs(tmp_path, where):
    err, stats = passes(tmp_path, [client("t_verbs"), where])
    assert not err and not stats.violations() and not stats["errors"]
    assert stats["bytes_in"] == stats["bytes_out"] > 10_000_000
    assert set(stats["opcodes"]) == {"0x08", "0x09", "0x0a", "0x0b", "0x10", "0x11", "0x12"}
    assert stats["opcodes"]["0x0a"] == 23 and stats["opcodes"]["0x12"] == 2
    assert stats["arms"] == stats["events"] == 2


@pytest.mark.parametrize("what", [
    "address",
    "registration",
])
def test_verbs_detail(tmp_path, what):
    passes(tmp_path, [client("t_verbs"), what])


@pytest.mark.parametrize("what", ["wrap", "nop", "straddle", "burst", "pinned"])
def test_by_hand(tmp_path, what):
    err, stats = passes(tmp_path, [client("t_hand"), what])
    assert not err and not stats.violations() and not stats["errors"]
    assert what != "wrap" or stats["wqes"] == stats["cqes"] == 70000
    assert what != "burst" or stats["wqes"] == 64 * 300


@pytest.mark.parametrize("what", ["hops", "order", "blueflame", "clock", "gone"])
def test_instrument(tmp_path, what):
    _, stats = passes(tmp_path, [client("t_delay"), what])
    if what == "blueflame":
        assert stats["blueflames"] > 0.8 * 200000 * 6 / 7


@pytest.mark.parametrize("case", names_of("t_errors"))
def test_errors(tmp_path, case):
    violation = {"opcode": "wqe-opcode", "overrun": "cq-overrun"}.get(case)
    err, stats = passes(tmp_path, [client("t_errors"), case])
    assert stats.violations() == ({violation: 1} if violation else {})
    assert named(err) == ([violation] if violation else [])
    assert bool(stats["errors"]) == (case not in ("overrun", "rnr-patience"))


# ---- mistakes of the posting protocol ----
# mistake: what the program sees, the violations
GOOD, NONE = "good CQE, written", "no CQE, not written"
MISTAKES = {
    "correct": (GOOD, []),
    "no-doorbell": (NONE, []),
    "no-cqe-asked": ("no CQE, written", []),
    "record-never": (NONE, ["late-record"]),
    "record-off-by-one": (NONE, ["late-record"]),
    "record-after-doorbell": (NONE, ["late-record"]),
    "record-little-endian": (NONE, ["late-record", "record-byte-order"]),  # the low half is 0: late as well
    "record-beyond-ring": (NONE, ["record-beyond-ring"]),
    "doorbell-little-endian": (NONE, ["doorbell-byte-order"]),
    "doorbell-unknown-qp": (NONE, ["doorbell-unknown-qp"]),
    "doorbell-wrong-page": (NONE, ["doorbell-wrong-page"]),
    "wrong-index": ("error CQE 0x02, not written", ["wqe-index"]),
    "wrong-qpn": ("error CQE 0x02, not written", ["wqe-qpn"]),
    "ds-zero": ("error CQE 0x02, not written", ["wqe-size"]),
    "ds-too-big": ("error CQE 0x02, not written", ["wqe-size"]),
    "bad-opcode": ("error CQE 0x02, not written", ["wqe-opcode"]),
    "rkey-little-endian": ("error CQE 0x13, not written", ["key-byte-order"]),
    "cq-not-drained": ("no CQE, written", ["cq-overrun"]),
}


def commit(tmp_path, mistake, *opts, n=1):
    """Commit it n times under vcx: what the program sees each time, stderr, statistics."""
    rc, out, err, stats = run_stats(tmp_path, [client("t_bugs"), mistake, str(n)], *opts)
    assert rc == 0, out + err
    return out.splitlines(), err, stats


def test_every_mistake_is_here():
    assert sorted(names_of("t_bugs")) == sorted(MISTAKES)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake(tmp_path, mistake):
    sees, violations = MISTAKES[mistake]
    n = 17 if mistake == "cq-not-drained" else 1  # into 16 entries
    lines, err, stats = commit(tmp_path, mistake, n=n)
    assert lines == [GOOD] * (n - 1) + [sees]
    assert sorted(stats.violations()) == violations
    assert sorted(named(err)) == violations
    assert bool(err) == bool(violations)


@pytest.mark.parametrize("level, times", [(0, 1), (1, 3)])
def test_violations_are_named_once_or_each_time(tmp_path, level, times):
    lines, err, stats = commit(tmp_path, "record-never", f"log={level}", n=3)
    assert lines == [NONE] * 3
    assert named(err) == ["late-record"] * times
    assert ("further ones are only counted" in err) == (level == 0)
    assert stats.violations() == {"late-record": 3}


def test_log_2_tells_each_wqe(tmp_path):
    assert len(re.findall(r"WQE \d+ opcode 0x08", commit(tmp_path, "correct", "log=2", n=3)[1])) == 3


# ---- doorbell records ----
def test_record_recheck_is_lenient(tmp_path):
    lines, err, stats = commit(tmp_path, "record-after-doorbell", "record-recheck")
    assert lines == [GOOD]
    assert not err and not stats.violations() and stats["late_record_notes"] == 1


def test_strict_record_names_it_all_the_same(tmp_path):
    lines, err, stats = commit(tmp_path, "record-after-doorbell", "record-recheck", "strict-record")
    assert lines == [GOOD]
    assert named(err) == ["late-record"] and stats.violations() == {"late-record": 1}
    assert not stats["late_record_notes"]


def test_recheck_does_not_invent_a_record(tmp_path):
    assert commit(tmp_path, "record-never", "record-recheck")[0] == [NONE]


@pytest.mark.parametrize("opt", ["strict-record", "record-recheck"])
def test_correct_programs_do_not_mind(tmp_path, opt):
    lines, err, stats = commit(tmp_path, "correct", opt, n=40)
    assert lines == [GOOD] * 40
    assert not err and not stats.violations() and not stats["late_record_notes"]


# ---- faults: the third of five requests ----
FLUSHED = "error CQE 0x05, not written"
FAULTS = {
    "error-cqe": ["error CQE 0x14, not written", FLUSHED, FLUSHED],
    "retry-exceeded": ["error CQE 0x15, not written", FLUSHED, FLUSHED],
    "rnr": ["error CQE 0x16, not written", FLUSHED, FLUSHED],
    "lost-cqe": ["no CQE, written", GOOD, GOOD],
}


@pytest.mark.parametrize("kind", FAULTS)
def test_fault(tmp_path, kind):
    lines, err, stats = commit(tmp_path, "correct", f"fault.{kind}=3", n=5)
    assert lines == [GOOD, GOOD, *FAULTS[kind]]
    assert not stats.violations()


def test_fault_lost_doorbell(tmp_path):
    lines, err, stats = commit(tmp_path, "correct", "fault.lost-doorbell=3", n=3)
    assert lines == [GOOD, GOOD, NONE]
    assert stats["doorbells"] == 3 and stats["wqes"] == 2 and not stats.violations()


def test_the_next_doorbell_makes_up_for_a_lost_one(tmp_path):
    lines, err, stats = commit(tmp_path, "correct", "fault.lost-doorbell=1", n=2)
    assert lines[0] == NONE and lines[1].startswith("good CQE")
    assert stats["wqes"] == stats["cqes"] == 2 and not stats.violations()


def test_a_fault_that_is_not_reached(tmp_path):
    assert commit(tmp_path, "correct", "fault.error-cqe=6", n=5)[0] == [GOOD] * 5


def test_sink(tmp_path):
    for what in ("correct", "bad-opcode"):  # no WQE is read
        lines, err, stats = commit(tmp_path, what, "mode=sink", n=5)
        assert lines == ["good CQE, not written"] * 5
        assert stats["wqes"] == 5 and not stats["bytes_out"] and not stats.violations()
    assert commit(tmp_path, "no-doorbell", "mode=sink")[0] == [NONE]
    assert commit(tmp_path, "correct", "mode=normal")[0] == [GOOD]


# ---- refusals ----
def devinfo(*opts):
    need("ibv_devinfo")
    rc, out, err = run(["ibv_devinfo", "-v"], *opts)
    assert rc == 0 and not err, err
    assert re.findall(r"^hca_id:\s+(\w+)", out, re.M) == ["mlx5_0", "mlx5_1"]
    return out


def test_refuse_port():
    assert re.findall(r"state:\s+(PORT_\w+)", devinfo()) == ["PORT_ACTIVE"] * 2
    assert re.findall(r"state:\s+(PORT_\w+)", devinfo("refuse=port")) == ["PORT_DOWN"] * 2


def test_refuse_gid():
    assert len(re.findall(r"GID\[\s*3\]:.*RoCE v2", devinfo())) == 2
    out = devinfo("refuse=gid")
    assert "RoCE v2" not in out and "RoCE v1" in out


def test_refuse_uar_map(tmp_path):
    rc, out, err, stats = run_stats(tmp_path, [client("t_verbs"), "loopback"], "refuse=uar-map")
    assert rc == 1 and "Operation not permitted" in out, out + err  # a refusal, no crash
    assert not stats["qps_max"] and not stats["doorbells"]


@pytest.mark.parametrize("step", ["peermem", "dmabuf"])
def test_refuse_what_needs_a_gpu(tmp_path, step):
    passes(tmp_path, [client("t_verbs"), "loopback"], f"refuse={step}")


# ---- the launcher ----
@pytest.mark.parametrize("opt", ["nonsense=1", "log=3", "log=x", "log", "mode=fast", "fault.lost-doorbell=0", "fault.rnr=-1",
                                 "fault.flood=1", "refuse=everything", "strict-record=1", "stats=", "delay.cqe=1"])
def test_options_that_are_refused(tmp_path, opt):
    rc, out, err = run(["touch", str(tmp_path / "ran")], opt)
    assert rc == 2 and err.startswith("vcx: " + opt + ": ") and not out
    assert len(err.splitlines()) == 1 and not (tmp_path / "ran").exists()


def test_usage():
    assert run([])[0] == 2
    rc, out, err = run(["--help"])
    assert rc == 0 and "usage: vcx" in out and "fault.KIND=N" in out


@pytest.mark.parametrize("status", [0, 1, 37, 255])
def test_exit_status_is_passed_through(status):
    assert run(["sh", "-c", f"exit {status}"])[0] == status


def test_a_command_that_is_not_there():
    rc, out, err = run(["/nowhere/at-all"])
    assert rc == 2 and "/nowhere/at-all" in err


def test_output_and_arguments_are_the_commands_own():
    rc, out, err = run(["sh", "-c", 'printf "%s|" "$@"; echo e >&2', "x", "-o", "log=9", "a b", ""])
    assert (rc, out, err) == (0, "-o|log=9|a b||", "e\n")


def test_inside_another_vcx():
    assert run([VCX, "sh", "-c", "exit 5"])[0] == 5
    rc, out, err = run([VCX, "-o", "log=1", "true"])
    assert rc == 2 and "another vcx" in err


def test_stats_of_each_process(tmp_path):
    one = f"{client('t_bugs')} correct >/dev/null"
    rc, out, err = run(["sh", "-c", f"{one}; {one}"], f"stats={tmp_path}/%p.json")
    files = sorted(tmp_path.glob("*.json"))
    assert rc == 0 and len(files) >= 2
    busy = [s for s in map(read_stats, files) if s["wqes"]]
    assert [s["wqes"] for s in busy] == [1, 1] and busy[0]["pid"] != busy[1]["pid"]
    assert all(str(s["pid"]) in {f.stem for f in files} for s in busy)


SLEEPER = 'echo "$$ $SYSFS_PATH"; exec sleep 60'


def start(script=SLEEPER, *opts):
    """A launcher whose command has printed its process number and its sysfs tree: (launcher, pid, the launcher's folder)."""
    p = subprocess.Popen(command(["sh", "-c", script], *opts), stdout=subprocess.PIPE, text=True, cwd=ROOT)
    pid, sysfs = p.stdout.readline().split()
    folder = os.path.dirname(sysfs)
    assert os.path.basename(folder).startswith("vcx.") and os.path.isdir(sysfs)
    return p, int(pid), folder


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"  # nobody in a container reaps it
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_kill_of_the_launcher():
    p, pid, folder = start()
    p.kill()
    assert p.wait(5) == -signal.SIGKILL
    assert wait_until(lambda: gone(pid), 5), "the command outlives its launcher"
    assert os.path.isdir(folder)  # nobody could remove it
    assert run(["true"])[0] == 0
    assert not os.path.exists(folder)


def test_kill_of_the_command():
    p, pid, folder = start()
    os.kill(pid, signal.SIGKILL)
    assert p.wait(5) == 128 + signal.SIGKILL
    assert not os.path.exists(folder)


def test_a_living_launchers_folder_is_left_alone():
    p, pid, folder = start()
    assert run(["true"])[0] == 0
    assert os.path.isdir(folder)
    p.terminate()
    assert p.wait(5) == 128 + signal.SIGTERM
    assert gone(pid) and not os.path.exists(folder)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_reach_the_command(sig):
    script = f'trap "exit 9" {sig.name[3:]}; sleep 0.1; echo "$$ $SYSFS_PATH"; while :; do sleep 0.05; done'
    p, pid, folder = start(script)
    p.send_signal(sig)
    assert p.wait(5 * SLOW) == 9
    assert gone(pid) and not os.path.exists(folder)


def test_a_signal_at_the_commands_very_start():
    for turn in range(300):
        p = subprocess.Popen(command(["sh", "-c", "kill -TERM $PPID; exec sleep 60"]))
        try:
            assert p.wait(3 * SLOW) == 128 + signal.SIGTERM
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
            pytest.fail(f"turn {turn}: the signal was lost")


def test_the_last_launcher_removes_a_shared_fabric(tmp_path):
    fabric = tmp_path / "fabric"
    p, _, _ = start(SLEEPER, f"fabric={fabric}")
    try:
        assert run([client("t_bugs"), "correct"], f"fabric={fabric}")[0] == 0
        assert fabric.exists()
    finally:
        p.terminate()
        p.wait(5)
    assert not fabric.exists()
