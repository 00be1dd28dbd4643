# SPDX-License-Identifier: Apache-2.0
"""Probes of memory, flags and launches, a host thread as SM: each case runs or says why not, and what runs makes sense
against the others of the same run."""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "harness/tests"))
from cli import BUILD, ROOT, agrees, batches, cases, putscope, run_json, samples, sane, series  # noqa: E402

HERE = ("--nic", "virtual", "--gpu", "none")
SAN = bool(os.environ.get("SAN"))   # a sanitizer's build is slower: its times say nothing
CPUS = len(os.sched_getaffinity(0))
PROBES = "load,handoff,posted-write,gpu-cpu-flag,launch"
# id: (main metric, samples of one batch)
RUNS = {"load/host-cache": ("rtt", 512), "load/host": ("rtt", 512), "posted-write/lines": ("gap", 128),
        "posted-write/one-word": ("gap", 128), "gpu-cpu-flag/host": ("rtt", 256), "launch/issue": ("wall", 128),
        "launch/sync": ("wall", 128)}
WAIVED = {"load/l2-hit", "load/hbm", "handoff/relaxed", "handoff/acq-rel", "handoff/payload", "gpu-cpu-flag/device",
          "launch/event-query", "launch/callback"}
STAMPED = {"load", "posted-write", "gpu-cpu-flag"}   # samples are stamps of one launch, and so have its baseline


def probe(out, *args, bench=PROBES, prefix=()):
    return putscope("run", "-k", f"bench={bench}", *HERE, *args, "--out", out, cwd=out.parent, timeout=120, prefix=prefix)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    if not (BUILD / "libvcx.so").exists():
        pytest.skip("vcx is not built here")
    out = tmp_path_factory.mktemp("probes") / "r"
    done = probe(out, "--time", 30)
    sane(done, 0)
    return out, done


def test_each_case_runs_or_says_why_not(run):
    told = cases(run[0])
    assert set(told) == set(RUNS) | WAIVED
    for name, (metric, _) in RUNS.items():
        assert told[name]["status"] == "ok" and told[name]["main_metric"] == metric, told[name]
    for name in WAIVED:
        assert told[name]["status"] == "waived" and len(told[name]["reason"]) > 20, told[name]
        assert not [k for k in series(run[0]) if k[0] == name]


def test_rows_say_what_they_are(run):
    for c in cases(run[0]).values():
        assert c["path"] == "none" and c["nature"] == "virtual" and c["sm"] == "host-thread", c["id"]
        assert c["id"].startswith(c["bench"] + "/")


def test_counts(run):
    v, b = series(run[0]), batches(run[0])
    for name, (metric, per_batch) in RUNS.items():
        n = len(b[name, metric])
        assert n >= 10 and len(v[name, metric]) == n * per_batch >= 1000, name
        if name.split("/")[0] in STAMPED:
            assert len(v[name, "timer"]) == 32 * n, name
    for where in ("lines", "one-word"):
        assert len(v[f"posted-write/{where}", "gap_drained"]) == len(b[f"posted-write/{where}", "gap"])


def test_nothing_arrived_wrong(run):
    assert run_json(run[0])["evidence"]["payload_errors"] == 0
    assert all(c["payload_errors"] == 0 for c in cases(run[0]).values())


def test_check_is_content_and_the_numbers_are_the_samples(run):
    sane(putscope("check", run[0], cwd=run[0]), 0)
    agrees(run[0])


def test_step_and_overhead_are_of_one_event(run):
    """A sample that is the mean of 64 stores has a 64th of the clock's step and overhead."""
    told = cases(run[0])
    assert told["posted-write/lines"]["step_ns"] == pytest.approx(told["load/host"]["step_ns"] / 64)
    assert told["posted-write/lines"]["timer_overhead_ns"] < told["load/host"]["timer_overhead_ns"] / 8


@pytest.mark.skipif(SAN, reason="times of a sanitizer's build")
def test_bounds_are_sane_against_each_other(run):
    p50 = {k: statistics.median(x) for k, x in series(run[0]).items() if x}
    cache, memory = p50["load/host-cache", "rtt"], p50["load/host", "rtt"]
    step = cases(run[0])["load/host"]["step_ns"]
    assert -2 * step <= cache < memory, (cache, memory)
    assert 20 < memory < 5000                                      # no cache answers so late, no memory later
    for where in ("lines", "one-word"):
        assert 0 < p50[f"posted-write/{where}", "gap"] < memory, where  # posted: nobody waits for each
    assert 10 < p50["gpu-cpu-flag/host", "rtt"] < 100e3
    assert 0 < p50["launch/issue", "wall"] < p50["launch/sync", "wall"] < 10e6


@pytest.mark.skipif(SAN or CPUS < 3, reason="needs three CPUs: SM, CPU and the virtual NIC; and no sanitizer")
def test_a_flag_through_a_kernel_costs_what_a_flag_costs(tmp_path):
    out = tmp_path / "r"
    sane(probe(out, "--time", 15, bench="gpu-cpu-flag,flag-rtt"), 0)
    v = series(out)
    assert statistics.median(v["gpu-cpu-flag/host", "rtt"]) <= 5 * statistics.median(v["flag-rtt", "rtt"]) + 200


def test_one_cpu(tmp_path):
    """Both sides of a flag on one core: each yields to the other, and no deadline passes."""
    out = tmp_path / "r"
    done = probe(out, "--time", 20, "-k", "min_samples=512", bench="gpu-cpu-flag,launch",
                 prefix=("taskset", "-c", str(min(os.sched_getaffinity(0)))))
    sane(done, 0)
    assert cases(out)["gpu-cpu-flag/host"]["oversubscribed"]


def test_report_names_each_bound_and_takes_no_launch_for_a_put(run):
    text = putscope("report", run[0], cwd=run[0]).stdout
    for name in RUNS:
        assert f"bound: {name}" in text
    assert "Components" not in text
    told = json.loads(putscope("report", run[0], "--json", cwd=run[0]).stdout)
    assert told["components"] == []
    wall = {c["case"]: c for c in told["cases"] if c["metric"] == "wall"}
    assert wall["launch/sync"]["p50_ns"] > wall["launch/issue"]["p50_ns"] > 0


def test_a_walk_leads_where_it_must_whatever_the_seed(tmp_path):
    """A walk that ends at a wrong node would fail its case."""
    for seed in (2, 7):
        out = tmp_path / f"r{seed}"
        sane(probe(out, "-k", f"seed={seed}", "-k", "min_batches=2", "-k", "min_samples=512", "--time", 10, bench="load"), 0)
        assert run_json(out)["seed"] == seed and samples(out)


def test_all_probes_are_listed_and_explained(tmp_path):
    """probes.def, `list` and README.md name the same cases."""
    done = putscope("list", cwd=tmp_path)
    sane(done, 0)
    listed = set(re.findall(r"^    (\S+/\S+)", done.stdout, re.M))
    table = (ROOT / "probes/README.md").read_text()
    for name in set(RUNS) | WAIVED:
        assert name in listed and f"`{name}`" in table, name


def test_bounds_program_refuses_without_a_gpu():
    program = BUILD / "tests/bounds"
    if not program.exists():
        pytest.skip("make bounds has not been run")
    done = subprocess.run([program], capture_output=True, text=True, timeout=120, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 77 and "no GPU" in done.stderr
