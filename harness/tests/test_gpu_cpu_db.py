# SPDX-License-Identifier: Apache-2.0
"""The put that the SM builds and a host thread rings: data, who rang, failures; a host thread plays the SM."""
import os
import shutil
import statistics

import pytest

from cli import BUILD, cases, putscope, run_json, sane, series

pytestmark = pytest.mark.skipif(not (BUILD / "libvcx.so").exists(), reason="vcx is not built here")
SAN = bool(os.environ.get("SAN"))
SELF_TEST = 2   # puts: one by a stamped launch, one by a plain one


def run(folder, paths, *args, code=0, bench="quick", prefix=(), **env):
    done = putscope("run", "quick", "-k", f"bench={bench}", "-k", f"paths={paths}", "-k", "min_samples=400", "-k", "min_batches=4", "-k", "ci_target=100",
                    "--nic", "virtual", "--gpu", "none", "--time", 30, *args, "--out", folder, cwd=folder.parent, prefix=prefix, **env)
    sane(done, code)
    return cases(folder), run_json(folder)["evidence"], done


def puts_of(case):
    return sum(c["puts"] for c in case.values() if c["main_metric"] == "put_completion")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("db") / "r"
    return folder, *run(folder, "gpu-cpu-db", "-k", "sizes=1,8,28,4099,65536")


def test_data_and_rows(alone):
    folder, case, evidence, done = alone
    for c in case.values():
        assert c["path"] == "gpu-cpu-db" and c["id"].startswith("quick/gpu-cpu-db/sys-fence/")
        if c["main_metric"] == "rtt":
            assert c["status"] == "waived" and "round trips" in c["reason"]
            continue
        assert c["status"] == "ok" and c["puts"] >= 400 and c["payload_errors"] == 0, c
        assert (c["ordering"], c["completion"], c["nature"]) == ("sys-fence", "cqe", "virtual")
    assert len(case) == 10 and {c["inline"] for c in case.values()} == {"inline", "pointer"}
    sane(putscope("check", folder, cwd=folder.parent), 0)
    assert "gpu-cpu-db" in done.stdout.split("Components of one put")[1]


def test_the_cpu_rang_and_nobody_else(alone):
    """The forwarder counts what it rang, the NIC what it executed: one each, and two for the self-test (stamped, plain); the SM rang nothing."""
    _, case, evidence, done = alone
    assert evidence["rung_by"] == {"gpu-cpu-db": "CPU"}
    assert evidence["doorbells_by_cpu"] == puts_of(case) + SELF_TEST == evidence["virtual_nic"]["wqes"]
    assert evidence["doorbells_by_sm"] == evidence["posts_by_cpu"] == evidence["payload_errors"] == 0
    assert not [k for k, n in evidence["virtual_nic"]["violations"].items() if n]
    assert f"the CPU forwarded {evidence['doorbells_by_cpu']}" in done.stdout


def test_issue_is_part_of_the_put(alone):
    folder, case, *_ = alone
    v = series(folder)
    for c in case.values():
        if c["status"] == "ok":
            assert statistics.median(v[c["id"], "issue"]) < statistics.median(v[c["id"], "put_completion_stamped"]), c["id"]
            for m in ("wall", "kernel", "exposed_comm"):
                assert min(v[c["id"], m]) > 0


def test_beside_the_gpu_path_on_one_queue_pair(tmp_path):
    """Batches of both in turn: each goes on with the WQE index and the half of the register that the other left."""
    case, evidence, _ = run(tmp_path / "r", "gpu,gpu-cpu-db", "-k", "ops=33")
    assert {c["status"] for c in case.values()} == {"ok", "waived"}
    assert evidence["rung_by"] == {"gpu": "SM", "gpu-cpu-db": "CPU"}
    assert evidence["virtual_nic"]["wqes"] == evidence["doorbells_by_cpu"] + evidence["doorbells_by_sm"]
    assert not [k for k, n in evidence["virtual_nic"]["violations"].items() if n]


@pytest.mark.parametrize("fault, word", [("error-cqe", "remote operation error"), ("lost-doorbell", "deadline")])
def test_a_fault_fails_its_case_and_the_rest_goes_on(tmp_path, fault, word):
    case, evidence, _ = run(tmp_path / "r", "gpu-cpu-db", "-k", "sizes=8,64", "--vcx", f"fault.{fault}=150", code=1)
    failed = [c for c in case.values() if c["status"] == "failed"]
    assert len(failed) == 1 and word in failed[0]["reason"], failed
    assert [c["status"] for c in case.values()].count("ok") == 2


def test_one_op_has_one_order(tmp_path):
    case, *_ = run(tmp_path / "r", "gpu-cpu-db", bench="one-op")
    assert {c["ordering"] for c in case.values()} == {"sys-fence"} and {c["status"] for c in case.values()} == {"ok", "waived"}


@pytest.mark.skipif(not shutil.which("mpirun"), reason="no Open MPI")
@pytest.mark.skipif(SAN, reason="Open MPI's own leaks and races are not ours")
def test_across_two_ranks(tmp_path):
    mpirun = ("mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none")
    case, evidence, _ = run(tmp_path / "r", "gpu-cpu-db", "-k", "sizes=8", prefix=mpirun, OMPI_ALLOW_RUN_AS_ROOT=1,
                            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
    ok = [c for c in case.values() if c["status"] == "ok"]
    assert len(ok) == 2 and {c["endpoints"] for c in ok} == {"nodes"} and evidence["doorbells_by_cpu"] == puts_of(case) + SELF_TEST
