# SPDX-License-Identifier: Apache-2.0
"""Two ranks: what they refuse of each other on one host, and a run across two emulated hosts (harness/two_node)."""
import json
import os
import shutil
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT

MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
needs_mpi = pytest.mark.skipif(not shutil.which("mpirun"), reason="no Open MPI")
not_sanitized = pytest.mark.skipif(bool(os.environ.get("SAN")), reason="Open MPI's own leaks and races are not ours")
SHORT = ["-k", "sizes=8", "-k", "min_samples=100", "--time", "20"]


def pair(out, rank0, rank1):
    """One rank each with options of its own."""
    def rank(args):
        return ["-np", "1", str(BUILD / "putscope"), "run", "quick", "--out", str(out), *args]
    return subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", *rank(rank0), ":", *rank(rank1)], text=True,
                          capture_output=True, timeout=60, env=dict(os.environ, **MPI), check=False)


@needs_mpi
@not_sanitized
def test_both_ranks_stand_in_the_result(tmp_path):
    done = pair(tmp_path / "r", SHORT, SHORT)
    assert done.returncode == 0, done.stderr
    first = [line for line in done.stderr.splitlines() if "rank 0:" in line or "rank 1:" in line]
    assert len(first) == 2 and all("host " in line and "NIC mlx5" in line for line in first), done.stderr
    run = json.loads((tmp_path / "r/run.json").read_text())
    assert [r["rank"] for r in run["ranks"]] == [0, 1] and run["ranks"][0]["pid"] != run["ranks"][1]["pid"]
    assert all(r["clocks"] and r["nics"] for r in run["ranks"])
    assert run["evidence"]["peer"]["virtual_nic"] is not None and run["evidence"]["dirty"] == []


@needs_mpi
@not_sanitized
@pytest.mark.parametrize("rank0, rank1, words", [
    ([], ["-k", "sizes=64"], "option sizes"), (["-k", "seed=7"], [], "option seed is 7 at rank 0 and 1 at rank 1"),
    ([], ["--vcx", "refuse=gid"], "rank 1 (.*): .*no RoCE v2 GID"), (["--vcx", "refuse=port"], [], "not active")])
def test_a_rank_that_does_not_fit_is_named(tmp_path, rank0, rank1, words):
    import re
    done = pair(tmp_path / "r", rank0, rank1)
    assert done.returncode != 0 and re.search(words, done.stderr), done.stderr
    assert not (tmp_path / "r").exists()


@needs_mpi
@not_sanitized
@pytest.mark.skipif(not shutil.which("qemu-system-x86_64"), reason="no QEMU: make deps-two-node installs it")
def test_two_hosts(tmp_path):
    done = subprocess.run([sys.executable, ROOT / "harness/two_node/two_node.py", "--build", BUILD, "--out", tmp_path], text=True,
                          capture_output=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
