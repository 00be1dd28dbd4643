# SPDX-License-Identifier: Apache-2.0
"""Probes of one SM instruction, on a host thread."""
import pytest
from cli import putscope, report


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    out = tmp_path_factory.mktemp("sm") / "run"
    p = putscope("run", "-k", "bench=clock,sm-store,fence,atomic", "--gpu", "none", "--nic", "virtual", "--out", str(out))
    assert p.returncode == 0, p.stderr
    return {(r["case"], r["metric"]): r for r in report(out)["cases"]}


def test_every_case_ran_or_says_why_not(rows):
    ran = [r for r in rows.values() if r["status"] == "ok" and r["metric"] != "timer"]
    waived = [r for r in rows.values() if r["status"] == "waived"]
    assert len(ran) == 2 + 4 + 6 + 1 and len(waived) == 4 + 4 + 2
    assert all(r["n"] >= 1000 for r in ran)
    assert all("GPU" in r["reason"] and "gpu-memory" in r["case"] for r in waived)


def test_the_empty_window_is_not_subtracted_from_itself(rows):
    assert rows["clock/sm", "read"]["p50_ns"] > 0


def test_a_system_fence_costs_more_than_none(rows):
    """On x86 a GPU-scope fence is no instruction; means, since a median may lie on the same step of the clock."""
    assert rows["fence/sys/idle", "order"]["p90_ns"] >= rows["fence/gpu/idle", "order"]["p90_ns"]
