# SPDX-License-Identifier: Apache-2.0
"""The command from outside, on the bench `fake`, whose samples are known: exit codes, files, refusals, damage, signals."""
import json
import os
import re
import shutil
import signal
import time

import pytest

from cli import (SAMPLES, agrees, batches, cases, putscope, run_json, samples, sane, series, start, summary,
                 wait_for_samples)

FAKE = ("run", "/dev/null", "-k", "bench=fake")
SLOW = (*FAKE, "-k", "fake=slow", "-k", "min_batches=100000", "--time", 60, "--out")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A complete run without a failed case; not to be written to."""
    d = tmp_path_factory.mktemp("whole")
    sane(putscope(*FAKE, "--time", 5, "--out", d / "r", cwd=d), 0)
    return d / "r"


@pytest.fixture
def copy(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "copy")


# ---- what a run leaves ----
def test_four_kinds_of_case(tmp_path):
    out = tmp_path / "r"
    done = putscope(*FAKE, "-k", "fake=good,fails,waived,slow", "--time", 5, "--out", out, cwd=tmp_path)
    sane(done, 1)
    assert "fake/fails failed: failed because the test asks for it" in done.stderr
    c = cases(out)
    assert {k: v["status"] for k, v in c.items()} == {
        "fake/good": "ok", "fake/fails": "failed", "fake/waived": "waived", "fake/slow": "ok"}
    assert c["fake/fails"]["reason"] == "failed because the test asks for it"
    assert c["fake/waived"]["reason"] == "waived because the test asks for it"
    assert c["fake/good"]["reason"] is None
    assert run_json(out)["complete"] is True
    agrees(out)
    assert sorted(os.listdir(out)) == ["run.json", "samples.csv", "summary.csv"]
    assert len(batches(out)["fake/fails", "put_completion"]) == 1   # what came before the failure stays
    assert not [k for k in series(out) if k[0] == "fake/waived"]
    sane(putscope("report", out, cwd=tmp_path), 0)
    done = putscope("check", out, cwd=tmp_path)
    sane(done, 1)
    assert "fake/fails" in done.stdout


def test_known_samples_give_known_numbers(whole):
    v = series(whole)["fake/good", "put_completion"]
    assert sorted(v) == pytest.approx(sorted(i + b / 1000 for i in range(1, 101) for b in range(2, 12)))
    row = summary(whole)["fake/good", "put_completion"]
    assert row["n"] == "1000"
    assert float(row["p50_ns"]) == pytest.approx((50.011 + 51.002) / 2, abs=0.001)
    assert float(row["p50_hi_ns"]) - float(row["p50_lo_ns"]) >= 2      # one step of 1 ns on each side
    assert float(row["max_ns"]) == pytest.approx(100.011)
    assert row["p99_9_ns"] == ""
    assert summary(whole)["fake/good", "wall"]["p50_ns"] == "100.000"
    assert summary(whole)["fake/good", "unaccounted"]["p50_ns"] == "1.000"
    assert [r["batch"] for r in samples(whole) if r["warmup"] == "1" and r["metric"] == "wall"] == ["0", "1"]
    agrees(whole)


def test_run_json_says_what_was_asked(whole):
    run = run_json(whole)
    assert run["schema"] == "putscope-run" and run["version"] == 1 and run["seed"] == 1
    assert run["options"]["bench"] == "fake" and run["options"]["time"] == 5
    assert run["why_incomplete"] is None and run["duration_s"] < 5
    case = run["cases"][0]
    for key in ("nature", "ordering", "inline", "queue", "cq", "dbrec", "data", "doorbell", "completion", "endpoints", "sm",
                "qps", "batch", "signalled", "spinners", "puts", "payload_errors", "litmus", "oversubscribed", "step_ns"):
        assert key in case, key
    assert case["puts"] == 1200 and case["nature"] == "virtual"


def test_complete_run_is_good(whole):
    done = putscope("check", whole, cwd=whole)
    sane(done, 0)
    assert "whole, valid" in done.stdout


def test_nothing_could_run(tmp_path):
    sane(putscope(*FAKE, "-k", "fake=waived", "--out", "r", cwd=tmp_path), 77)
    assert cases(tmp_path / "r")["fake/waived"]["status"] == "waived"


def test_time_is_spent(tmp_path):
    done = putscope(*SLOW[:-3], "--time", 0.3, "--out", "r", cwd=tmp_path)
    sane(done, 1)
    case = cases(tmp_path / "r")["fake/slow"]
    assert case["status"] == "incomplete" and "time" in case["reason"]


def test_config_and_command_line(tmp_path):
    conf = tmp_path / "my.conf"
    conf.write_text("# mine\nbench = fake\nfake = good, waived\ntime = 4\nseed = 9\n")
    sane(putscope("run", conf, "--time", 5, "-k", "fake=good", "--out", "r", cwd=tmp_path), 0)
    run = run_json(tmp_path / "r")
    assert run["options"]["time"] == 5 and run["options"]["seed"] == 9
    assert [c["id"] for c in run["cases"]] == ["fake/good"]


def test_same_seed_same_files(whole, tmp_path):
    sane(putscope(*FAKE, "--time", 5, "--out", "r", cwd=tmp_path), 0)
    for name in ("samples.csv", "summary.csv"):
        assert (tmp_path / "r" / name).read_bytes() == (whole / name).read_bytes()


def test_empty_folder_is_taken(tmp_path):
    (tmp_path / "r").mkdir()
    sane(putscope(*FAKE, "--out", "r", cwd=tmp_path), 0)
    agrees(tmp_path / "r")


def test_default_folder(tmp_path):
    sane(putscope(*FAKE, cwd=tmp_path), 0)
    sane(putscope(*FAKE, cwd=tmp_path), 0)
    made = os.listdir(tmp_path / "results")
    assert len(made) == 2 and all(re.match(r"null-\d{8}-\d{6}", m) for m in made)


def test_repeat_makes_a_folder_each(tmp_path):
    sane(putscope(*FAKE, "--repeat", 2, "--out", "r", cwd=tmp_path), 0)
    assert sorted(os.listdir(tmp_path)) == ["r-1", "r-2"]
    for name in ("r-1", "r-2"):
        sane(putscope("check", name, cwd=tmp_path), 0)


# ---- the other commands ----
def test_json_of_each_command(whole, tmp_path):
    listed = json.loads(putscope("list", "--json", cwd=tmp_path).stdout)
    assert {c["bench"] for c in listed} >= {"quick", "flag-rtt"} and "fake" not in {c["bench"] for c in listed}
    done = putscope("report", whole, "--json", cwd=tmp_path)
    sane(done, 0)
    report = json.loads(done.stdout)
    row = next(r for r in report["cases"] if r["metric"] == "put_completion")
    assert row["p50_ns"] == pytest.approx(50.5065, abs=0.001) and row["p99_9_ns"] is None
    assert report["components"][0]["wall_ns"] == 100
    done = putscope("check", whole, "--json", cwd=tmp_path)
    sane(done, 0)
    check = json.loads(done.stdout)
    assert check["good"] and check["complete"] and not check["errors"]
    assert check["samples"] == len(samples(whole))
    sane(done := putscope(*FAKE, "--json", "--out", "j", cwd=tmp_path), 0)
    assert json.loads(done.stdout)["schema"] == "putscope-report"


def test_list_and_methods(whole, tmp_path):
    done = putscope("list", cwd=tmp_path)
    sane(done, 0)
    assert "quick" in done.stdout and not os.listdir(tmp_path)
    done = putscope("report", whole, "--methods", cwd=tmp_path)
    sane(done, 0)
    assert "median" in done.stdout


@pytest.mark.parametrize("args", [("--help",), ("-h",), ("help",), ("--version",), ("run", "--help"), ("list", "--help"),
                                  ("report", "--help"), ("check", "-h")])
def test_help_is_no_error(args, tmp_path):
    done = putscope(*args, cwd=tmp_path)
    sane(done, 0)
    assert "putscope" in done.stdout


# ---- refusals: exit 2, a clear word, nothing written ----
QUICK = ("run", "/dev/null", "-k", "bench=quick", "--nic", "virtual", "--time", 1, "--out", "r")
BAD = {
    "unknown-key": ((*FAKE, "-k", "no_such_key=1", "--out", "r"), {}, "no_such_key"),
    "no-value": ((*FAKE, "-k", "seed", "--out", "r"), {}, "KEY=VALUE"),
    "size-suffix": ((*QUICK, "-k", "sizes=4Q"), {}, "unknown suffix 'Q'"),
    "size-0": ((*QUICK, "-k", "sizes=8,0"), {}, "'0'"),
    "size-too-large": ((*QUICK, "-k", "sizes=4194305"), {}, "4194305"),
    "size-overflow": ((*QUICK, "-k", "sizes=99999999999999999999"), {}, "too large"),
    "negative-time": ((*FAKE, "--time", "-1", "--out", "r"), {}, "--time"),
    "time-0": ((*FAKE, "--time", "0", "--out", "r"), {}, "time"),
    "repeat-0": ((*FAKE, "--repeat", "0", "--out", "r"), {}, "repeat"),
    "no-config": (("run", "no-such-config", "--out", "r"), {}, "no-such-config"),
    "two-configs": (("run", "/dev/null", "/dev/null", "--out", "r"), {}, "one CONFIG"),
    "no-nic": (("run", "/dev/null", "--nic", "mlx5_77", "--out", "r"), {}, "mlx5_77"),
    "no-nic-path": (("run", "/dev/null", "--nic", "../../..", "--out", "r"), {}, "../../.."),
    "odd-ranks": ((*FAKE, "--out", "r"), {"OMPI_COMM_WORLD_SIZE": 3, "OMPI_COMM_WORLD_RANK": 0}, "3 ranks"),
    "vcx-option": ((*FAKE, "--vcx", "colour=red", "--out", "r"), {}, "colour"),
    "vcx-fault": ((*FAKE, "--vcx", "fault.no-such=1", "--out", "r"), {}, "no-such"),
    "unknown-bench": (("run", "/dev/null", "-k", "bench=nope", "--out", "r"), {}, "'nope'"),
    "empty-bench": (("run", "/dev/null", "-k", "bench=", "--out", "r"), {}, "bench"),
    "unused-key": ((*FAKE, "-k", "sizes=8", "--out", "r"), {}, "sizes"),
    "unknown-long": ((*FAKE, "--bogus", "--out", "r"), {}, "bogus"),
    "out-below-a-file": ((*FAKE, "--out", "/dev/null/r"), {}, "/dev/null"),
    "out-unwritable": ((*FAKE, "--out", "/proc/no-such/r"), {}, "/proc/no-such"),
    "unknown-command": (("measure",), {}, "measure"),
    "no-command": ((), {}, "usage"),
    "report-of-none": (("report", "none"), {}, "none"),
    "check-of-none": (("check", "none"), {}, "none"),
    "check-of-two": (("check", "a", "b"), {}, "one result folder"),
    "report-unknown": (("report", "--bogus", "a"), {}, "bogus"),
    "list-extra": (("list", "extra"), {}, "extra"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name, tmp_path):
    args, env, word = BAD[name]
    done = putscope(*args, cwd=tmp_path, **env)
    sane(done, 2)
    assert word in done.stderr, done.stderr
    assert not re.search(r"putscope: *$", done.stderr, re.M), f"a message without words: {done.stderr!r}"
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="there is a GPU")
def test_gpu_that_is_not_there(tmp_path):
    done = putscope(*QUICK, "--gpu", 0, cwd=tmp_path)
    sane(done, 2)
    assert "gpu" in done.stderr.lower()
    assert os.listdir(tmp_path) == []


def test_bad_line_of_a_config(tmp_path):
    (tmp_path / "c.conf").write_text("bench = fake\n\nfake = good, ugly\n")
    done = putscope("run", "./c.conf", "--out", "r", cwd=tmp_path)
    sane(done, 2)
    assert "c.conf:3" in done.stderr and "fake" in done.stderr and "ugly" in done.stderr
    assert os.listdir(tmp_path) == ["c.conf"]


def test_folder_that_is_not_empty(tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "mine").write_text("dear to me")
    done = putscope(*FAKE, "--out", "r", cwd=tmp_path)
    sane(done, 2)
    assert "not empty" in done.stderr
    assert os.listdir(tmp_path / "r") == ["mine"] and (tmp_path / "r" / "mine").read_text() == "dear to me"


def test_config_that_is_a_folder(tmp_path):
    sane(putscope("run", tmp_path, "-k", "bench=fake", "--out", "r", cwd=tmp_path), 2)


# ---- damage ----
def cuts(data, name):
    n = len(data)
    at = {0, 1, n // 2, n - 3, n - 2, n - 1, *range(0, n, max(n // 40, 1))}
    if name != "run.json":
        ends = [i + 1 for i, b in enumerate(data) if b == 10]
        for e in (ends[0], ends[len(ends) // 3], ends[len(ends) // 2], ends[-2]):
            at |= {e - 1, e, e + 1}
    return sorted(a for a in at if 0 <= a < n)


@pytest.mark.parametrize("command", ["report", "check"])
@pytest.mark.parametrize("name", ["run.json", "samples.csv", "summary.csv"])
def test_cut_file_is_refused(command, name, copy):
    data = (copy / name).read_bytes()
    wrong = []
    for at in cuts(data, name):
        (copy / name).write_bytes(data[:at])
        done = putscope(command, copy, cwd=copy)
        sane(done, 0, 1, 2, 3)
        if done.returncode != 2:
            wrong.append((at, done.returncode))
    assert not wrong, f"{command}: {name} of {len(data)} bytes cut at (byte, exit): {wrong}"


@pytest.mark.parametrize("command", ["report", "check"])
@pytest.mark.parametrize("name", ["run.json", "samples.csv", "summary.csv"])
def test_missing_file_is_refused(command, name, copy):
    (copy / name).unlink()
    done = putscope(command, copy, cwd=copy)
    sane(done, 2)
    assert name in done.stderr


@pytest.mark.parametrize("value", ["1.002", "23.004", "50.007", "51.002", "77.011", "100.011"])
def test_one_digit_of_a_sample(value, copy):
    text = (copy / "samples.csv").read_text()
    line = next(x for x in text.splitlines() if x.startswith("fake/good,put_completion,") and x.endswith(f",0,{value}"))
    for digit in range(len(value)):
        if value[digit] == ".":
            continue
        other = value[:digit] + str((int(value[digit]) + 1) % 10) + value[digit + 1:]
        (copy / "samples.csv").write_text(text.replace(line + "\n", line[:-len(value)] + other + "\n"))
        done = putscope("check", copy, cwd=copy)
        assert done.returncode in (1, 2), f"{value} became {other}, exit {done.returncode}"


@pytest.mark.parametrize("field", ["size_bytes", "batch", "seq", "warmup"])
def test_another_field_of_a_sample(field, copy):
    lines = (copy / "samples.csv").read_text().splitlines()
    words = lines[500].split(",")
    words[SAMPLES.index(field)] = str(1 - int(words[5])) if field == "warmup" else str(int(words[SAMPLES.index(field)]) + 1)
    lines[500] = ",".join(words)
    (copy / "samples.csv").write_text("\n".join(lines) + "\n")
    sane(putscope("check", copy, cwd=copy), 1, 2)


@pytest.mark.parametrize("line", [
    "fake/good,put_completion,8,2,0,0", "fake/good,put_completion,8,2,0,0,1.000,1", "fake/good,put_completion,8,2,0,2,1.000",
    "fake/good,put_completion,8,x,0,0,1.000", "fake/good,put_completion,8,2,0,0,nan", "fake/good,put_completion,8,2,0,0,",
    "fake/good,put_completion,8,2,0,0,1.0x", ",put_completion,8,2,0,0,1.000", "fake/good,,8,2,0,0,1.000", "",
    "fake/good,put_completion,8,-2,0,0,1.000", "fake/good,put_completion,8,4294967296,0,0,1.000",
    "fake/good,put_completion,8,4294967295,0,0,1.000", "fake/good,put_completion,8,40000000,0,0,1.000",
    "fake/good,put_completion,99999999999999999999,2,0,0,1.000", "fake/good,put_completion,8,2,0,0,1e999",
    f"{'x' * 5000},put_completion,8,2,0,0,1.000", f"fake/good,{'y' * 5000},8,2,0,0,1.000"])
@pytest.mark.parametrize("command", ["report", "check"])
def test_malformed_line(command, line, copy):
    lines = (copy / "samples.csv").read_text().splitlines()
    lines[300] = line
    (copy / "samples.csv").write_text("\n".join(lines) + "\n")
    done = putscope(command, copy, cwd=copy)
    sane(done, *((1, 2) if command == "check" else (0, 2)))     # well formed but untrue is for check to say


UNTRUE = {
    "case-twice": lambda r: r["cases"].append(dict(r["cases"][0])),
    "no-case": lambda r: r["cases"].clear(),
    "no-cases": lambda r: r.pop("cases"),
    "cases-no-list": lambda r: r.update(cases={}),
    "case-no-object": lambda r: r["cases"].__setitem__(0, 7),
    "no-schema": lambda r: r.pop("schema"),
    "another-schema": lambda r: r.update(schema="another"),
    "newer-version": lambda r: r.update(version=99),
    "no-id": lambda r: r["cases"][0].pop("id"),
    "id-no-text": lambda r: r["cases"][0].update(id=5),
    "another-id": lambda r: r["cases"][0].update(id="fake/other"),
    "no-nature": lambda r: r["cases"][0].update(nature=None),
    "payload-errors": lambda r: r["cases"][0].update(payload_errors=3),
    "failed": lambda r: r["cases"][0].update(status="failed"),
    "unknown-status": lambda r: r["cases"][0].update(status="fine"),
    "incomplete": lambda r: r.update(complete=False),
    "too-few-batches": lambda r: r["options"].update(min_batches=11),
    "too-few-samples": lambda r: r["options"].update(min_samples=1001),
}


@pytest.mark.parametrize("name", UNTRUE)
def test_untrue_run_json(name, copy):
    run = run_json(copy)
    UNTRUE[name](run)
    (copy / "run.json").write_text(json.dumps(run))
    sane(putscope("check", copy, cwd=copy), 1, 2)
    sane(putscope("report", copy, cwd=copy), 0, 2)
    sane(putscope("report", copy, "--json", cwd=copy), 0, 2)


# ---- signals ----
def end_all_in(folder):
    """Processes that a test has started there and that outlived it."""
    for pid in (int(x) for x in os.listdir("/proc") if x.isdigit()):
        try:
            if os.readlink(f"/proc/{pid}/cwd") == str(folder):
                os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


def incomplete(folder, *, cut=False):
    assert run_json(folder)["complete"] is False
    if not cut:
        samples(folder)
    done = putscope("check", folder, cwd=folder)
    sane(done, 1)
    assert "incomplete" in done.stdout and "malformed" not in done.stdout + done.stderr
    done = putscope("report", folder, cwd=folder)
    sane(done, 0, 1)
    assert "INCOMPLETE" in done.stdout


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_signal_keeps_what_was_measured(sig, tmp_path):
    out = tmp_path / "r"
    p = start(*SLOW, out, cwd=tmp_path)
    wait_for_samples(out, 400)
    began = time.monotonic()
    p.send_signal(sig)
    said = p.communicate(timeout=10)
    assert time.monotonic() - began < 2
    assert p.returncode == 1, said
    assert "interrupted" in said[1]
    case = cases(out)["fake/slow"]
    assert case["status"] == "incomplete" and case["reason"].startswith("interrupted")
    incomplete(out)
    agrees(out)


def test_signal_to_a_repeated_run(tmp_path):
    p = start(*SLOW, "r", "--repeat", 3, cwd=tmp_path)
    try:
        wait_for_samples(tmp_path / "r-1", 400)
        p.send_signal(signal.SIGTERM)
        p.wait(timeout=10)
        size = (tmp_path / "r-1" / "samples.csv").stat().st_size
        time.sleep(0.4)
        assert (tmp_path / "r-1" / "samples.csv").stat().st_size == size, "a launch goes on without its parent"
        assert p.returncode == 1
        incomplete(tmp_path / "r-1")
        assert not (tmp_path / "r-2").exists()
    finally:
        end_all_in(tmp_path)


def test_killed_run(tmp_path):
    out = tmp_path / "r"
    p = start(*SLOW, out, cwd=tmp_path)
    wait_for_samples(out, 700)
    p.kill()
    p.communicate()
    incomplete(out)
    assert not (out / "summary.csv").exists()
    data = (out / "samples.csv").read_bytes()
    (out / "samples.csv").write_bytes(data[:-4])    # a file system may keep less than was written
    incomplete(out, cut=True)


def test_full_disk_is_said(tmp_path):
    """Beyond the limit of a file's size writes fail, as on a full disk."""
    done = putscope(*SLOW, "r", cwd=tmp_path, prefix=("bash", "-c", "trap '' XFSZ; ulimit -f 16; exec \"$@\"", "bash"))
    sane(done, 1)
    assert "samples.csv" in done.stderr
    assert putscope("check", "r", cwd=tmp_path).returncode in (1, 2)
