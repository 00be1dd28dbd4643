# SPDX-License-Identifier: Apache-2.0
"""Four ways to a host-initiated put, on a host thread as SM: data, hops that add up to the window, failures on any thread."""
import json
import os
import statistics

import pytest

from cli import BUILD, cases, putscope, run_json, sane, series

pytestmark = pytest.mark.skipif(not (BUILD / "libvcx.so").exists(), reason="vcx is not built here")
METHODS = ("sync", "event", "callback", "graph")
HOPS = ("kernel_end_seen", "post_send", "cq_poll", "next_launch")
SAN = bool(os.environ.get("SAN"))
DELAY = 200e3       # of every completion: far over what a busy machine adds to a median
UNACCOUNTED_MAX = 0.03


def run(folder, *args, code=0, methods=METHODS):
    done = putscope("run", "host-methods", "-k", "bench=quick", "-k", f"host_method={','.join(methods)}", "-k", "sizes=8", "-k", "min_samples=400",
                    "-k", "min_batches=4", "-k", "ci_target=100", "--nic", "virtual", "--gpu", "none", "--time", 30, *args, "--out", folder,
                    cwd=folder.parent)
    sane(done, code)
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Batches of 100 puts: more pieces of work than the SM's queue holds."""
    return run(tmp_path_factory.mktemp("methods") / "r", "-k", "sizes=3,8,4099")


def test_every_method_is_a_case_of_its_own(whole):
    seen = {}
    for c in cases(whole).values():
        assert c["status"] == "ok" and c["payload_errors"] == 0 and c["path"] == "host", c
        assert c["puts"] > 0 and c["completion"] in ("next-kernel", "flag") and c["nature"] == "virtual"
        plain = c["id"].replace(f"/{c['method']}/", "/")
        assert c["id"] == plain if c["method"] == "sync" else c["id"].startswith(f"quick/host/{c['method']}/")
        seen.setdefault(plain, set()).add(c["method"])
    assert len(seen) == 7 and all(v == set(METHODS) for v in seen.values()), seen
    evidence = run_json(whole)["evidence"]
    posts = sum(c["puts"] * (2 if c["main_metric"] == "rtt" else 1) for c in cases(whole).values())
    assert evidence["posts_by_cpu"] >= posts and evidence["doorbells_by_sm"] == 0 == evidence["payload_errors"]
    assert evidence["virtual_nic"]["wqes"] >= evidence["posts_by_cpu"]
    sane(putscope("check", whole, cwd=whole.parent), 0)


def test_hops_add_up_to_the_window(whole):
    """Four intervals between five readings of one clock: each had the cost of a reading subtracted, the window once.  Its rate was
    fitted twice, as the host's and as the SM's."""
    v = series(whole)
    for c in cases(whole).values():
        if c["main_metric"] != "put_completion":
            assert not [k for k in v if k[0] == c["id"] and k[1] in HOPS]
            continue
        for whole_ns, *parts in zip(v[c["id"], "put_completion"], *(v[c["id"], h] for h in HOPS), strict=True):
            assert sum(parts) + 3 * c["timer_overhead_ns"] == pytest.approx(whole_ns, rel=1e-5, abs=0.1), c["id"]
        assert v[c["id"], "post_send"] == v[c["id"], "issue"]


@pytest.mark.skipif(SAN, reason="times of a sanitizer's build")
def test_wall_time_is_accounted_for(whole):
    v = series(whole)
    for c in cases(whole).values():
        if c["main_metric"] == "put_completion":
            wall, rest = v[c["id"], "wall"], v[c["id"], "unaccounted"]
            assert abs(statistics.median(rest)) <= UNACCOUNTED_MAX * statistics.median(wall), c["id"]
            parts = zip(*(v[c["id"], m] for m in ("kernel", "exposed_comm", "cpu_wait", "unaccounted")))
            for w, p in zip(wall, parts, strict=True):
                assert sum(p) == pytest.approx(w, rel=0.001, abs=0.01), c["id"]


def test_a_slow_completion_is_in_cq_poll_and_nowhere_else(tmp_path):
    """The NIC makes each completion wait: whoever polls for it, that is where the time goes."""
    out = run(tmp_path / "r", "--vcx", f"delay.cqe_write={DELAY:.0f}", "-k", "ops=20", "-k", "min_samples=80")
    v = series(out)
    for c in cases(out).values():
        if c["main_metric"] != "put_completion":
            continue
        p50 = {h: statistics.median(v[c["id"], h]) for h in HOPS}
        assert p50.pop("cq_poll") >= DELAY, c["id"]
        assert max(p50.values()) < DELAY / 2, (c["id"], p50)
        assert statistics.median(v[c["id"], "exposed_comm"]) >= DELAY


FAILS = [*((m, "error-cqe=50", "remote operation error", "put_completion") for m in METHODS),
         ("callback", "lost-cqe=50", "deadline", "put_completion"), ("graph", "error-cqe=150", "remote operation error", "rtt")]


@pytest.mark.parametrize("method, fault, word, metric", FAILS)
def test_a_put_that_fails_on_any_thread_fails_its_case(tmp_path, method, fault, word, metric):
    """Also where a function behind the kernel puts: the sentence comes along, the kernels behind it end, the rest goes on."""
    out = run(tmp_path / "r", "--vcx", f"fault.{fault}", "-k", "min_samples=100", code=1, methods=(method,))
    failed = [c for c in cases(out).values() if c["status"] == "failed"]
    assert len(failed) == 1 and word in failed[0]["reason"], failed
    assert failed[0]["method"] == method and failed[0]["main_metric"] == metric
    assert [c["status"] for c in cases(out).values()].count("ok") == 2


def test_by_default_only_sync(tmp_path):
    listed = json.loads(putscope("list", "--json", cwd=tmp_path).stdout)
    host = [c for c in listed if c["path"] == "host"]
    assert host and {c["method"] for c in host} == {"sync"}
    assert "quick/host/pointer/put_completion/8" in {c["id"] for c in host}
    assert {c["method"] for c in listed if c["path"] != "host"} == {None}


def test_an_unknown_method_is_named(tmp_path):
    done = putscope("run", "quick", "-k", "host_method=sync,wish", cwd=tmp_path)
    sane(done, 2)
    assert "wish" in done.stderr and "callback" in done.stderr
