# SPDX-License-Identifier: Apache-2.0
"""NVTX ranges: every phase, case and batch pushed and popped, however a run ends; and none of it inside a batch."""
import os
import re
import signal
import stat
import subprocess

import pytest

from cli import BUILD, ROOT, cases, putscope, samples, sane, start, wait_for_samples

LOG = BUILD / "tests/libnvtx_log.so"
needs_nvtx = pytest.mark.skipif(not LOG.exists(), reason="built without NVTX: no nvtx3/nvToolsExt.h on this machine")
needs_vcx = pytest.mark.skipif(not (BUILD / "libvcx.so").exists(), reason="vcx is not built here")
FAKE = ("run", "/dev/null", "-k", "bench=fake")
QUICK = ("run", "quick", "-k", "bench=quick", "--nic", "virtual", "--gpu", "none", "-k", "sizes=8", "-k", "min_samples=100",
         "-k", "ci_target=100")


def injected(tmp_path):
    # Sanitizers want to be loaded first; the library is none of theirs.
    return {"NVTX_INJECTION64_PATH": LOG, "NVTX_LOG": tmp_path / "nvtx.log", "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}


class Range:
    def __init__(self, thread, kind, payload, name, inside):
        self.thread, self.kind, self.payload, self.name, self.inside = thread, kind, payload, name, inside
        self.children = []


def ranges(tmp_path):
    """All ranges, in order of their push; fails unless each is popped, by its thread, in the domain putscope."""
    found, open_ = [], []
    for line in (tmp_path / "nvtx.log").read_text().splitlines():
        what, thread, domain, *rest = line.split(" ", 5)
        assert domain == "putscope", line
        if what == "push":
            r = Range(thread, int(rest[0]), int(rest[1]), rest[2], open_[-1] if open_ else None)
            if r.inside:
                r.inside.children.append(r)
            found.append(r)
            open_.append(r)
        else:
            assert open_ and open_.pop().thread == thread, f"popped without a push: {line}"
    assert not open_, f"never popped: {[r.name for r in open_]}"
    assert len({r.thread for r in found}) == 1     # the engine's own
    return found


PHASE, CASE, WARMUP, BATCH = 1, 2, 3, 4


def phases(found):
    return [r.name for r in found if r.inside is None]


def batches_of(found, case):
    mine = [r for r in found if r.kind == CASE and r.name == case]
    assert mine and all(r.inside.name == "measure" for r in mine)
    return [b for r in mine for b in r.children]


def whole(found, folder):
    """Each batch in samples.csv has its range, inside its case's, with its index; warm-up is told apart; nothing lies deeper."""
    want = {}
    for r in samples(folder):
        want.setdefault(r["case_id"], set()).add((int(r["batch"]), r["warmup"] == "1"))
    for case, batches in want.items():
        got = batches_of(found, case)
        assert batches <= {(b.payload, b.kind == WARMUP) for b in got}, case
        for b in got:
            assert b.name == f"{'warm-up' if b.kind == WARMUP else 'batch'} {b.payload}" and not b.children
    assert all(r.kind == PHASE for r in found if r.inside is None)


@needs_nvtx
def test_every_phase_case_and_batch(tmp_path):
    sane(putscope(*FAKE, "-k", "fake=good,waived", "--out", "r", cwd=tmp_path, **injected(tmp_path)), 0)
    found = ranges(tmp_path)
    assert phases(found) == ["setup", "self-test", "measure", "report"]
    whole(found, tmp_path / "r")
    got = batches_of(found, "fake/good")
    assert [b.payload for b in got] == list(range(12)) and [b.kind for b in got] == [WARMUP] * 2 + [BATCH] * 10
    assert "fake/waived" not in {r.name for r in found}


@needs_nvtx
def test_a_failed_case_is_balanced(tmp_path):
    sane(putscope(*FAKE, "-k", "fake=good,fails,nan", "--out", "r", cwd=tmp_path, **injected(tmp_path)), 1)
    found = ranges(tmp_path)
    whole(found, tmp_path / "r")
    assert cases(tmp_path / "r")["fake/fails"]["status"] == "failed"
    assert [b.payload for b in batches_of(found, "fake/fails")] == [0, 1, 2, 3]    # the one that failed, too


@needs_nvtx
@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_is_balanced(tmp_path, sig):
    run = start(*FAKE, "-k", "fake=slow", "-k", "min_batches=100000", "--time", 60, "--out", "r", cwd=tmp_path, **injected(tmp_path))
    wait_for_samples(tmp_path / "r", 300)
    run.send_signal(sig)
    run.communicate(timeout=20)
    assert run.returncode == 1
    found = ranges(tmp_path)
    assert phases(found) == ["setup", "self-test", "measure", "report"]
    whole(found, tmp_path / "r")


@needs_nvtx
@needs_vcx
def test_three_paths_under_the_virtual_nic(tmp_path):
    """putscope starts itself anew under vcx: the run is there.  One put fails its case, the rest goes on."""
    done = putscope(*QUICK, "--vcx", "fault.error-cqe=150", "--time", 30, "--out", "r", cwd=tmp_path, **injected(tmp_path))
    sane(done, 1)
    found = ranges(tmp_path)
    assert phases(found) == ["setup", "self-test", "measure", "report"]
    assert [r.name for r in found if r.inside and r.inside.name == "self-test"] == ["gpu", "proxy", "host"]
    whole(found, tmp_path / "r")
    status = [c["status"] for c in cases(tmp_path / "r").values()]
    assert status.count("failed") == 1 and status.count("ok") >= 5


@needs_nvtx
@needs_vcx
def test_a_refused_run_is_balanced(tmp_path):
    done = putscope(*QUICK, "--vcx", "refuse=port", "--out", "r", cwd=tmp_path, **injected(tmp_path))
    sane(done, 3)
    assert phases(ranges(tmp_path)) == ["setup"]


def symbols(obj):
    out = subprocess.run(["nm", obj], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in out.splitlines() if line.strip()}


def test_nothing_of_nvtx_between_launch_and_sync():
    """No object but run.c's and engine.c's calls a range, none but range.c's has anything of NVTX; and those two hold no launch:
    a batch is one call from engine.c, whose pop comes after its return."""
    calls, nvtx, launches = set(), set(), set()
    for obj in (BUILD / "o").rglob("*.o"):
        name = str(obj.relative_to(BUILD / "o"))
        if name.startswith(("harness/tests/", "harness/vcx/tests/")) or name == "dlink.o":
            continue
        s = symbols(obj)
        if s & {"range_push", "range_push_batch", "range_pop"}:
            calls.add(name)
        if any(x.lower().startswith("nvtx") for x in s):
            nvtx.add(name)
        if s & {"sm_launch", "sm_sync", "sm_graph_launch", "sm_call"}:
            launches.add(name)
    built = "HAVE_NVTX 1" in (BUILD / "config.h").read_text()
    assert nvtx == ({"harness/range.c.o"} if built else set())
    assert calls == ({"harness/range.c.o", "harness/run.c.o", "harness/engine.c.o"} if built else set())
    assert launches and not launches & (calls | nvtx)
    body = (ROOT / "harness/engine.c").read_text()
    assert re.search(r"range_push_batch\(.*?\);\s*failed = w->bench->batch\(w->state, &b\);\s*range_pop\(\);", body, re.S)


# ---- make profile ----
def make_profile(path, *args):
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}
    cuda = "CUDA=" + re.search(r"HAVE_CUDA (\d)", (BUILD / "config.h").read_text())[1]
    return subprocess.run(["make", "--no-print-directory", f"B={os.environ.get('B', 'build')}", f"SAN={os.environ.get('SAN', '')}", cuda,
                           "profile", *map(str, args)], cwd=ROOT, env={**env, "PATH": path}, capture_output=True, text=True, timeout=120)


def test_profile_without_nsys_says_so():
    path = ":".join(p for p in os.environ["PATH"].split(":") if not os.access(os.path.join(p, "nsys"), os.X_OK))
    done = make_profile(path)
    assert done.returncode == 2
    assert "nsys (Nsight Systems) is not installed" in done.stderr and "nothing was profiled" in done.stderr


def test_profile_asks_nsys_for_what_is_needed(tmp_path):
    """A stand-in for nsys writes down how it was called."""
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin/nsys"
    fake.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/args\n')
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    done = make_profile(f"{fake.parent}:{os.environ['PATH']}", "CONFIG=one-op", f"PROFILE={tmp_path}/p", "GPU=none", "NIC=virtual")
    assert done.returncode == 0, done.stderr
    args = (tmp_path / "args").read_text().split("\n")
    assert args[0] == "profile" and "--trace=cuda,nvtx,osrt" in args and f"--output={tmp_path}/p" in args
    assert "--trace-fork-before-exec=true" in args and "--wait=all" in args    # the run is a child of a child
    at = args.index("run")
    assert args[at - 1].endswith("/putscope") and args[at:at + 6] == ["run", "one-op", "--gpu", "none", "--nic", "virtual"]
