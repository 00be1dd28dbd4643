# SPDX-License-Identifier: Apache-2.0
"""Real runs: the three paths through the unmodified libibverbs and libmlx5 on the virtual NIC (or on this machine's own).

Nothing here gates on an absolute time but generous limits; speeds are compared within one run.
"""
import fcntl
import json
import os
import pathlib
import shutil
import time

import pytest

from conftest import BUILD

SAN = "san" in BUILD.name
ROOTLESS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


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


def report(putscope, out):
    return json.loads(putscope("report", out, "--json").stdout)


def find(rep, **want):
    return [c for c in rep["cases"] if all(c[k] == v for k, v in want.items())]


@pytest.fixture(scope="module")
def quick(putscope, tmp_path_factory):
    out = tmp_path_factory.mktemp("quick") / "r"
    at = time.time()
    done = putscope("run", "quick", "-k", "bench=quick,flag-rtt", "--out", out, timeout=120)
    assert done.returncode == 0, done.stderr
    assert time.time() - at <= 60 or SAN
    return out


def test_data_and_evidence(putscope, quick):
    run = json.loads((quick / "run.json").read_text())
    assert all(c["payload_errors"] == 0 for c in run["cases"])
    evidence = run["evidence"]
    gpu = sum(c["puts"] * (2 if c["main_metric"] == "rtt" else 1) for c in run["cases"] if c["path"] == "gpu")
    assert evidence["doorbells_by_sm"] >= gpu > 0 and evidence["posts_by_cpu"] > 0
    nic = evidence["virtual_nic"]
    if nic:
        assert sum(nic["violations"].values()) == 0
        # a register in memory keeps one value: the NIC's own count is a lower bound, its count of WQEs is exact
        assert nic["wqes"] >= evidence["doorbells_by_sm"] + evidence["posts_by_cpu"]
        assert nic["errors"] == 0


def test_every_ordering_and_odd_sizes(putscope, tmp_path):
    done = putscope("run", "one-op", "-k", "sizes=1,7,8,27,28,29,4099", "-k", "ops=50", "-k", "min_samples=100", "-k",
                    "ci_target=100", "--time", 80, "--out", tmp_path / "r", timeout=120)
    assert done.returncode == 0, done.stderr
    cases = json.loads((tmp_path / "r/run.json").read_text())["cases"]
    assert len({c["ordering"] for c in cases if c["path"] == "gpu"}) == 7
    for c in cases:
        big = c["inline"] == "inline" and c["size_bytes"] > 28
        assert c["status"] == ("waived" if big else "ok") and c["payload_errors"] == 0, c


def test_rtt_of_big_puts(putscope, tmp_path):
    done = putscope("run", "size-sweep", "-k", "sizes=3,65537,4M", "-k", "min_samples=20", "-k", "min_batches=5", "-k",
                    "ci_target=100", "--time", 80, "--out", tmp_path / "r", timeout=120)
    assert done.returncode == 0, done.stderr
    rep = report(putscope, tmp_path / "r")
    for path in ("gpu", "proxy", "host"):
        times = [find(rep, path=path, metric="rtt", size_bytes=s)[0]["p50_ns"] for s in (3, 65537, 4 << 20)]
        assert times[0] < times[1] < times[2], (path, times)


@pytest.mark.parametrize("fault, word", [("error-cqe", "remote operation error"), ("retry-exceeded", "retry"),
                                         ("lost-doorbell", "deadline"), ("lost-cqe", "deadline")])
def test_a_fault_fails_its_case_and_the_rest_goes_on(putscope, tmp_path, fault, word):
    done = putscope("run", "quick", "-k", "bench=quick", "-k", "sizes=8", "-k", "paths=gpu", "-k", "min_samples=100", "--time", 30, "--vcx",
                    f"fault.{fault}=150", "--out", tmp_path / "r")
    assert done.returncode == 1
    cases = json.loads((tmp_path / "r/run.json").read_text())["cases"]
    failed = [c for c in cases if c["status"] == "failed"]
    assert len(failed) == 1 and word in failed[0]["reason"], failed
    assert len([c for c in cases if c["status"] == "ok"]) >= 2


@pytest.mark.parametrize("step, code, word", [("port", 3, "not active"), ("gid", 3, "RoCE v2"), ("uar-map", 3, "refuses a queue pair")])
def test_a_refusal_is_named(putscope, tmp_path, step, code, word):
    done = putscope("run", "quick", "--vcx", f"refuse={step}", "--out", tmp_path / "r")
    assert done.returncode == code and word in done.stderr, done.stderr
    assert not (tmp_path / "r").exists()


@pytest.mark.skipif(not shutil.which("mpirun"), reason="no Open MPI")
@pytest.mark.skipif(SAN, reason="Open MPI's own leaks and races are not ours")
def test_two_ranks(putscope, tmp_path):
    import subprocess
    done = subprocess.run(["mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none", BUILD / "putscope", "run", "quick", "-k", "bench=quick,flag-rtt", "-k",
                           "sizes=8,4096", "--out", tmp_path / "r"], capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, **ROOTLESS))
    assert done.returncode == 0, done.stderr + done.stdout
    assert putscope("check", tmp_path / "r").returncode == 0
    cases = json.loads((tmp_path / "r/run.json").read_text())["cases"]
    ok = [c for c in cases if c["endpoints"] == "nodes" and c["status"] == "ok"]
    assert {c["path"] for c in ok} == {"gpu", "proxy", "host"} and all(c["payload_errors"] == 0 for c in ok)
    assert leftovers() == []


def test_built_in_a_folder_with_a_blank(tmp_path):
    import subprocess
    home = tmp_path / "put scope:x"
    home.mkdir()
    for name in ("putscope", "vcx", "libvcx.so"):
        shutil.copy2(BUILD / name, home / name)
    args = ["run", "/dev/null", "-k", "bench=quick", "-k", "paths=gpu", "-k", "min_samples=100", "--time", "20", "--out"]
    done = subprocess.run([home / "putscope", *args, tmp_path / "r"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    (home / "libvcx.so").write_bytes(b"no library")     # it does not load: said once, not tried for ever
    done = subprocess.run([home / "putscope", *args, tmp_path / "s"], capture_output=True, text=True, timeout=20)
    assert done.returncode in (2, 3) and "did not load" in done.stderr and not (tmp_path / "s").exists()
