# SPDX-License-Identifier: Apache-2.0
"""Probes of one SM instruction, on a host thread."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "harness/tests"))
from cli import BUILD, cases, putscope, sane, series  # noqa: E402


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    if not (BUILD / "libvcx.so").exists():
        pytest.skip("vcx is not built here")
    out = tmp_path_factory.mktemp("sm") / "r"
    sane(putscope("run", "-k", "bench=clock,sm-store,fence,atomic", "--nic", "virtual", "--gpu", "none", "--time", 30,
                  "--out", out, cwd=out.parent, timeout=120), 0)
    return out


def test_every_case_ran_or_says_why_not(run):
    ran = [c for c in cases(run).values() if c["status"] == "ok"]
    waived = [c for c in cases(run).values() if c["status"] == "waived"]
    assert len(ran) == 2 + 4 + 6 + 1 and len(waived) == 4 + 4 + 2
    assert all(len(series(run)[c["id"], c["main_metric"]]) >= 1000 for c in ran)
    assert all("GPU" in c["reason"] and c["id"].endswith("gpu-memory") for c in waived)


def test_the_empty_window_is_not_subtracted_from_itself(run):
    v = sorted(series(run)["clock/sm", "read"])
    assert v[len(v) // 2] > 0 and cases(run)["clock/sm"]["timer_overhead_ns"] == 0
