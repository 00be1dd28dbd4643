# SPDX-License-Identifier: Apache-2.0
"""The CPU proxy's design space on the virtual NIC, a host thread as SM: rates over workers, rings and chains, hops that add up,
hand-off beside its floor, cold and warm.  What is claimed of times are ratios within one run; a test of them may try again."""
import json
import os
import statistics

import pytest

from cli import BUILD, batches, cases, putscope, run_json, samples, sane, series

pytestmark = pytest.mark.skipif(not (BUILD / "vcx").exists() or not (BUILD / "libvcx.so").exists(),
                                reason="vcx is not built here")
HERE = ("--nic", "virtual", "--gpu", "none")
CPUS = len(os.sched_getaffinity(0))
SAN = bool(os.environ.get("SAN"))   # a sanitizer's build is slower: its times say nothing
HOPS = "enqueue ring_flight worker_pickup post_send nic cq_poll notify gpu_sees".split()
WINDOW = 4096
TRIES = 3


def go(folder, *args, bench="proxy-rate", codes=(0,)):
    keys = [w for a in ("ci_target=1000", *args) for w in ("-k", a)]   # the least batches are enough
    done = putscope("run", "-k", f"bench={bench}", *HERE, *keys, "--out", folder, cwd=folder.parent, timeout=120)
    sane(done, *codes)
    return done


def report(folder):
    return json.loads(putscope("report", folder, "--json", cwd=folder.parent).stdout)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("proxy") / "r"
    done = go(out, f"window={WINDOW}", "workers=1,2", "rings=1,3", "wqe_batch=1,16", "ops=50", "min_samples=20", "time=15",
              bench="proxy-rate,load,posted-write,gpu-cpu-flag")
    return out, done, report(out)


def test_every_point_runs_or_says_why_not(run):
    rows = {i: c for i, c in cases(run[0]).items() if c["bench"] == "proxy-rate"}
    want = {f"proxy-rate/{p}/T{t}/R{r}/B{b}" for p in ("tuned", "baseline") for t in (1, 2) for r in (1, 3) for b in (1, 16)}
    assert {i for i, c in rows.items() if c["main_metric"] == "rate_msgs_per_s"} == want
    waived = {i for i, c in rows.items() if c["status"] == "waived"}
    assert waived == {i for i in want if "/T2/R1/" in i}
    assert all("fewer rings than workers" in rows[i]["reason"] for i in waived)
    assert all(c["status"] == "ok" for i, c in rows.items() if i not in waived)
    sane(putscope("check", run[0], cwd=run[0]), 0)


def test_rows_say_what_was_measured(run):
    c = cases(run[0])["proxy-rate/baseline/T2/R3/B16"]
    assert (c["workers"], c["rings"], c["qps"], c["batch"], c["window"], c["protocol"]) == (2, 3, 2, 16, WINDOW, "baseline")
    assert (c["ordering"], c["completion"], c["nature"]) == ("sys-release", "counter", "virtual")
    assert c["oversubscribed"] == (c["spinners"] > CPUS) and c["spinners"] == 4
    row = next(r for r in run[2]["cases"] if r["case"] == c["id"] and r["metric"] == "rate_msgs_per_s")
    assert all(row[k] == c[k] for k in ("workers", "rings", "qps", "batch", "window", "protocol"))
    quick = cases(run[0])["load/host"]
    assert quick["workers"] is None and quick["protocol"] is None


def test_every_message_arrived_and_was_counted(run):
    rate = [c for c in cases(run[0]).values() if c["main_metric"] == "rate_msgs_per_s" and c["status"] == "ok"]
    all_batches = {}
    for s in samples(run[0]):
        if s["metric"] == "rate_msgs_per_s":
            all_batches[s["case_id"]] = all_batches.get(s["case_id"], 0) + 1
    for c in rate:
        assert c["payload_errors"] == 0 and c["puts"] == WINDOW * all_batches[c["id"]], c["id"]
    seen = run[2]["evidence"]
    assert seen["doorbells_by_sm"] == 0 and seen["posts_by_cpu"] == seen["virtual_nic"]["wqes"]
    assert not any(seen["virtual_nic"]["violations"].values())


def test_chains_are_as_long_as_told(run):
    for r in run[2]["proxy"]["rates"]:
        posts = float(r["note"].split()[0])
        assert posts == 1 if r["batch"] == 1 else 1 < posts <= 16, r["note"]


def test_rates_are_messages_over_the_time_of_a_window(run):
    for (case, metric), v in series(run[0]).items():
        if metric == "rate_msgs_per_s":
            assert all(1e3 < x < 1e9 for x in v) and len(v) >= 20, case


def chained(folder):
    r = next(r for r in report(folder)["proxy"]["rates"] if r["case"] == "proxy-rate/tuned/T1/R1/B16")
    return r["over_batch_1"]["ratio"]


@pytest.mark.skipif(SAN, reason="times of a sanitizer's build")
def test_chains_raise_the_rate_of_one_worker(run, tmp_path):
    ratio = chained(run[0])
    for k in range(TRIES):
        if ratio >= 1.5:
            break
        go(tmp_path / f"r{k}", "protocol=tuned", "min_samples=60", "time=10")
        ratio = chained(tmp_path / f"r{k}")
    assert ratio >= 1.5
    assert "x that of B = 1" in run[1].stdout


@pytest.mark.skipif(SAN or CPUS < 6, reason="two workers, the SM and the NIC need cores of their own")
def test_a_second_worker_raises_the_rate(tmp_path):
    for k in range(TRIES):
        go(tmp_path / f"r{k}", "protocol=tuned", "workers=1,2", "rings=2", "wqe_batch=1", "min_samples=60", "time=10")
        r = next(r for r in report(tmp_path / f"r{k}")["proxy"]["rates"] if r["workers"] == 2)
        if r["over_worker_1"]["ratio"] >= 1.6:
            break
    assert r["over_worker_1"]["ratio"] >= 1.6


def test_two_workers_are_set_beside_one(run):
    r = next(r for r in run[2]["proxy"]["rates"] if r["case"] == "proxy-rate/tuned/T2/R3/B1")
    assert r["over_worker_1"]["case"] == "proxy-rate/tuned/T1/R3/B1" and r["over_worker_1"]["ratio"] > 0
    assert r["oversubscribed"] == (CPUS < 4)


def per_put(folder, case):
    """{(batch, seq): {metric: ns}}, warm-up included."""
    out = {}
    for s in samples(folder):
        if s["case_id"] == case:
            out.setdefault((s["batch"], s["seq"]), {})[s["metric"]] = float(s["value_ns"])
    return out


@pytest.mark.parametrize("order", ["settled", "sys-fence", "sys-release"])
def test_hops_of_each_put_add_up_to_its_completion(run, order):
    case = f"proxy-rate/proxy/{order}/pointer/put_completion/8"
    puts, c = per_put(run[0], case), cases(run[0])[case]
    stamped = {k: v for k, v in puts.items() if "gpu_sees" in v}
    assert len(stamped) >= 500
    for (batch, _), v in stamped.items():
        first = puts[batch, "0"]
        # SM and worker read one counter here, so nothing is left but their readings: each is paid once, by two hops in halves.
        readings = c["timer_overhead_ns"] + 6 * first["timer_worker"]
        assert first["clock_bound"] == 0
        assert abs(sum(v[h] for h in HOPS) + readings - v["put_completion_stamped"]) < 1, (batch, v)


def test_hops_stand_with_interval_and_how(run):
    rows = [r for r in run[2]["proxy"]["hops"] if r["ordering"] == "settled"]
    assert [r["hop"] for r in rows] == HOPS
    for r in rows:
        assert r["lo_ns"] <= r["est_ns"] <= r["hi_ns"] and r["how"] == "stamped" and r["nature"] == "virtual" and r["assumes"]
    metrics = {r["metric"] for r in run[2]["cases"] if r["path"] == "proxy"}
    assert set(HOPS) <= metrics
    for words in ("Hops of the proxy", *HOPS, "medians added up"):
        assert words in run[1].stdout


def test_a_hop_is_no_shorter_than_nothing(run):
    for (case, metric), v in series(run[0]).items():
        if metric in HOPS:
            assert statistics.median(v) >= -2 * cases(run[0])[case]["step_ns"], (case, metric)


def test_hand_off_beside_its_floor(run):
    rows = run[2]["proxy"]["handoff"]
    assert {r["protocol"] for r in rows} == {"tuned", "baseline"}
    p50 = {(r["case"], r["metric"]): r["p50_ns"] for r in run[2]["cases"]}
    for r in rows:
        assert r["floor_ns"] == pytest.approx(p50["load/host", "rtt"] + p50["posted-write/lines", "gap"], abs=0.01)
        assert r["over_floor"] == pytest.approx(r["est_ns"] / r["floor_ns"], rel=1e-3)
        assert r["flag_rtt_ns"] == p50["gpu-cpu-flag/host", "rtt"]
        assert cases(run[0])[r["case"]]["puts"] == 0
    assert "without a NIC, tuned" in run[1].stdout and "times" in run[1].stdout


def test_enqueue_of_both_protocols(run):
    rows = {(r["protocol"], r["ordering"]) for r in run[2]["proxy"]["enqueue"]}
    assert rows == {("tuned", "settled"), ("tuned", "sys-fence"), ("baseline", "sys-release")}
    assert "Enqueue: baseline" in run[1].stdout


def test_the_whole_space_runs(tmp_path):
    """The most workers, rings and chains; a window that no number of rings divides."""
    go(tmp_path / "r", "workers=8", "rings=8,32", "wqe_batch=16", "window=1001", "ops=20", "min_samples=10", "time=10")
    rows = [c for c in cases(tmp_path / "r").values() if c["main_metric"] == "rate_msgs_per_s"]
    assert len(rows) == 4 and all(c["status"] == "ok" and c["payload_errors"] == 0 for c in rows), rows
    assert run_json(tmp_path / "r")["evidence"]["virtual_nic"]["qps_max"] >= 16


def test_an_error_completion_fails_its_case_alone(tmp_path):
    done = putscope("run", "-k", "bench=proxy-rate", *HERE, "-k", "protocol=tuned", "-k", "wqe_batch=16", "-k", "rings=3,4",
                    "-k", "min_samples=10", "-k", "window=1000", "-k", "ci_target=1000", "--time", 10,
                    "--vcx", "fault.error-cqe=20001", "--out", tmp_path / "r", cwd=tmp_path)
    sane(done, 1)
    bad = [c for c in cases(tmp_path / "r").values() if c["status"] == "failed"]
    assert len(bad) == 1 and "error completion" in bad[0]["reason"], bad
    assert sum(c["status"] == "ok" for c in cases(tmp_path / "r").values()) >= 4


def test_counter_in_gpu_memory_needs_a_gpu(tmp_path):
    go(tmp_path / "r", "protocol=tuned", "counter=host,gpu", "wqe_batch=1", "min_samples=10", "time=5")
    c = cases(tmp_path / "r")["proxy-rate/tuned/T1/R1/B1/counter-gpu"]
    assert c["status"] == "waived" and "needs a GPU" in c["reason"] and c["completion"] == "counter-gpu"


@pytest.mark.parametrize("option, words", [
    ("workers=9", "workers: 9 is outside 1 .. 8"), ("workers=0", "whole number of 1 or more"),
    ("rings=33", "rings: 33 is outside"),
    ("wqe_batch=17", "wqe_batch: 17 is outside"), ("wqe_batch=4K", "whole number"), ("workers=1,1", "stands twice"),
    ("window=0", "window: 0 messages"), ("window=1000000", "window: 1000000 messages"), ("protocol=fast", "is none of"),
    ("counter=nic", "is none of"),
])
def test_what_is_refused(tmp_path, option, words):
    done = putscope("run", "-k", "bench=proxy-rate", *HERE, "-k", option, "--out", tmp_path / "r", cwd=tmp_path)
    sane(done, 2)
    assert words in done.stderr and not (tmp_path / "r" / "run.json").exists()


def test_cold_and_warm_stand_in_one_table(tmp_path):
    out = tmp_path / "r"
    done = go(out, "idle_ms=30", "load_ms=20", "ops=25", "min_samples=200", "warmup=1", "time=12", bench="proxy-state")
    rep = report(out)
    states = {(s["state"], s["metric"]): s for s in rep["proxy"]["states"]}
    assert set(states) == {(s, m) for s in ("cold", "warm") for m in ("put_completion", "rtt")}
    for state in ("cold", "warm"):
        s = states[state, "put_completion"]
        assert 100 < s["core_mhz"] < 10000
        if s["governor"] is None or s["cpu_mhz"] is None:
            assert "no governor and no clock" in s["note"]
        assert {h["hop"] for h in rep["proxy"]["hops"] if h["state"] == state} == set(HOPS)
    table = done.stdout[done.stdout.index("Hops of the proxy"):]
    for words in ("cold", "warm", "core_mhz", "governor", "The proxy cold and warm", "cold / warm"):
        assert words in table
    assert len(batches(out)["proxy-state/cold/put_completion", "put_completion"]) >= 8
    sane(putscope("check", out, cwd=out), 0)


def test_cold_means_without_work(tmp_path):
    """Before each of its launches a cold case sleeps: two launches a batch."""
    out = tmp_path / "r"
    go(out, "idle_ms=100", "load_ms=1", "ops=10", "min_samples=10", "min_batches=3", "warmup=0", "time=30",
       bench="proxy-state")
    n = {s: len(batches(out)[f"proxy-state/{s}/put_completion", "put_completion"]) for s in ("cold", "warm")}
    rtt = len(batches(out)["proxy-state/cold/rtt", "rtt"])
    assert n["cold"] >= 3 and run_json(out)["duration_s"] >= 0.1 * (2 * n["cold"] + rtt)


def test_a_pause_that_nobody_waits_for(tmp_path):
    done = putscope("run", "-k", "bench=proxy-state", *HERE, "-k", "idle_ms=1e9", "--out", tmp_path / "r", cwd=tmp_path)
    sane(done, 2)
    assert "idle_ms" in done.stderr
