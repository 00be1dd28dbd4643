# SPDX-License-Identifier: Apache-2.0
"""compare, merge and export from end to end: what is alike is compared, what is not is refused with its reason."""
import csv
import io
import json
import shutil

import pytest

from cli import ROOT, agrees, batches, run_json, samples, series

QUICK = ("run", "quick", "--gpu", "none", "--nic", "virtual", "-k", "sizes=8", "-k", "bench=quick", "-k", "ops=10",
         "-k", "min_samples=100", "-k", "paths=gpu,host")
FAKE = ("run", "/dev/null", "-k", "bench=fake")


def launch(putscope, out, *more):
    done = putscope(*QUICK, "--time", 2, "--out", out, *more)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def runs(putscope, tmp_path_factory):
    """Three launches of one set-up; nothing changes these folders."""
    at = tmp_path_factory.mktemp("runs")
    return [launch(putscope, at / n, "-k", f"seed={i + 1}") for i, n in enumerate("abc")]


@pytest.fixture(scope="module")
def fake(putscope, tmp_path_factory):
    out = tmp_path_factory.mktemp("fake") / "a"
    assert putscope(*FAKE, "-k", "fake=good,slow,waived", "-k", "min_samples=100", "--out", out).returncode == 0
    return out


def edited(folder, to, change):
    """A copy whose run.json `change` has edited (run.json itself is not sealed)."""
    shutil.copytree(folder, to)
    run = run_json(to)
    change(run)
    (to / "run.json").write_text(json.dumps(run))
    return to


def compared(putscope, *args, rc=0):
    done = putscope("compare", *args, "--json")
    assert done.returncode == rc, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_two_launches(putscope, runs):
    j = compared(putscope, *runs)
    ids = {c["id"] for c in run_json(runs[0])["cases"]}
    assert {r["case"] for r in j["cases"]} == ids and j["unlike"] == [] and j["hops"] == []
    assert j["correction"] == "Holm" and j["effect_size"] == "Cliff's delta" and j["margin_percent"] == 3
    have = series(runs[0])
    for r in j["cases"]:
        assert {"case", "path", "metric", "size_bytes", "a_ns", "b_ns", "shift_ns", "lo_ns", "hi_ns", "verdict"} <= set(r)
        assert r["lo_ns"] <= r["shift_ns"] <= r["hi_ns"] and abs(r["b_ns"] - r["a_ns"] - r["shift_ns"]) < 1e-6
        assert r["verdict"] in ("faster", "slower", "same", "noisy") and -1 <= r["effect"] <= 1
        assert r["n_a"] == len(have[r["case"], r["metric"]]) and r["launches_a"] == 1
        if r["verdict"] == "same":
            assert max(-r["lo_ns"], r["hi_ns"]) <= r["margin_ns"] and r["words"] == "seems same"
        if r["verdict"] in ("faster", "slower"):
            assert r["p_holm"] < .05 and (r["shift_ns"] > 0) == (r["verdict"] == "slower")
    assert {r["metric"] for r in j["cases"]} & {"wall", "kernel", "timer", "unaccounted"} == set()
    assert "wall" in {r["metric"] for r in compared(putscope, *runs[:2], "--components")["cases"]}
    text = putscope("compare", *runs[:2]).stdout
    assert "ONE LAUNCH" in text and "Holm" in text and "Cliff's delta" in text and "+-3 %" in text


def test_a_set_is_the_same_as_itself(putscope, fake):
    j = compared(putscope, fake, fake, "--margin", "60")
    by = {r["case"]: r for r in j["cases"]}
    assert by["fake/good"]["verdict"] == "same" and by["fake/good"]["shift_ns"] == by["fake/good"]["effect"] == 0
    assert [u["case"] for u in j["unlike"]] == ["fake/waived"] and "waived" in j["unlike"][0]["why"]


def test_a_known_shift_is_found(putscope, fake, tmp_path):
    """The same samples, 40 ns higher, in a set that says it is incomplete: it has no seals to break."""
    out = tmp_path / "b"
    assert putscope(*FAKE, "-k", "fake=good", "-k", "min_samples=100", "--out", out).returncode == 0
    head, *lines = (out / "samples.csv").read_text().splitlines()
    higher = [",".join([*f[:6], f"{float(f[6]) + 40:.3f}"]) for f in (line.split(",") for line in lines)]
    (out / "samples.csv").write_text("\n".join([head, *higher]) + "\n")
    done = putscope("compare", fake, out)
    assert done.returncode == 2 and "samples.csv" in done.stderr        # sealed: an edited set is refused
    edited(out, tmp_path / "open", lambda r: r.update(complete=False, why_incomplete="edited"))
    j = compared(putscope, fake, tmp_path / "open")
    r = next(r for r in j["cases"] if r["case"] == "fake/good")
    assert r["verdict"] == "slower" and abs(r["shift_ns"] - 40) < .1 and r["words"] == "seems slower"
    assert compared(putscope, tmp_path / "open", fake)["cases"][0]["verdict"] == "faster"


@pytest.mark.parametrize("key, value", [("ordering", "sys-release"), ("queue", "gpu"), ("endpoints", "loopback"), ("qps", 2),
                                        ("size_bytes", 9), ("a_key_of_a_later_version", "x")])
def test_unlike_semantics_are_refused(putscope, runs, tmp_path, key, value):
    b = edited(runs[1], tmp_path / "b", lambda run: run["cases"][0].update({key: value}))
    j = compared(putscope, runs[0], b)
    mine = run_json(b)["cases"][0]["id"]
    assert mine not in {r["case"] for r in j["cases"]} and j["cases"]
    assert [u["case"] for u in j["unlike"]] == [mine] and f"{key} " in j["unlike"][0]["why"]
    assert mine not in {r["case"] for r in compared(putscope, runs[0], b, "--force")["cases"]}
    done = putscope("merge", tmp_path / "m", runs[0], b)
    assert done.returncode == 2 and key in done.stderr and not (tmp_path / "m").exists()


def test_natures_need_force(putscope, runs, tmp_path):
    def hardware(run):
        for c in run["cases"]:
            c.update(nature="hardware", sm="gpu")

    b = edited(runs[1], tmp_path / "b", hardware)
    j = compared(putscope, runs[0], b, rc=1)
    assert j["cases"] == [] and all("--force" in u["why"] and "nature virtual / hardware" in u["why"] for u in j["unlike"])
    j = compared(putscope, runs[0], b, "--force")
    assert j["cases"] and j["unlike"] == []
    assert all("nature virtual / hardware" in r["across"] and "sm host-thread / gpu" in r["across"] for r in j["cases"])
    rows = [x for x in putscope("compare", runs[0], b, "--force").stdout.splitlines() if x.startswith("  quick/")]
    assert rows and all("ACROSS NATURES: nature virtual / hardware" in x for x in rows)


def test_nothing_alike(putscope, runs, fake):
    j = compared(putscope, runs[0], fake, rc=1)
    assert j["cases"] == [] and len(j["unlike"]) == len(run_json(runs[0])["cases"]) + 3


def test_cut_and_absent_folders_are_refused(putscope, runs, tmp_path):
    b = tmp_path / "b"
    shutil.copytree(runs[1], b)
    text = (b / "samples.csv").read_text()
    (b / "samples.csv").write_text(text[:-9])
    for args in (["compare", runs[0], b], ["merge", tmp_path / "m", runs[0], b], ["export", b]):
        done = putscope(*args)
        assert done.returncode == 2 and "samples.csv" in done.stderr and done.stdout == "", args
    assert not (tmp_path / "m").exists()
    for args in (["compare", runs[0]], ["compare", runs[0], tmp_path / "no"], ["compare", *runs, "--margin", "x"],
                 ["compare", *runs, "--margin", "-1"], ["compare", *runs, "--bogus"], ["merge", tmp_path / "m", runs[0]],
                 ["merge", runs[2], *runs[:2]], ["merge", tmp_path / "m", runs[0], runs[0]], ["export"],
                 ["export", runs[0], "--json"]):
        done = putscope(*args)
        assert done.returncode == 2 and done.stderr and not (tmp_path / "m").exists(), args


def test_merge_keeps_every_sample_and_is_whole(putscope, runs, tmp_path):
    out = tmp_path / "m"
    done = putscope("merge", out, *runs)
    assert done.returncode == 0, done.stderr
    assert putscope("check", out).returncode == 0
    assert "3 launches put together" in putscope("report", out, "--methods").stdout
    agrees(out)
    run, first = run_json(out), 0
    assert run["complete"] and [x["launch"] for x in run["launches"]] == [1, 2, 3]
    for x, d in zip(run["launches"], runs):
        assert x["first_batch"] == first and x["from"] == str(d) and x["run"] == run_json(d)
        mine = [{**r, "batch": int(r["batch"]) - first} for r in samples(out)
                if first <= int(r["batch"]) < first + x["batches"]]
        assert mine == [{**r, "batch": int(r["batch"])} for r in samples(d)]
        first += x["batches"]
    for c in run["cases"]:
        parts = [next(k for k in run_json(d)["cases"] if k["id"] == c["id"]) for d in runs]
        assert c["puts"] == sum(p["puts"] for p in parts) and c["status"] == "ok"
    assert run["evidence"]["doorbells_by_sm"] == sum(run_json(d)["evidence"]["doorbells_by_sm"] for d in runs)
    assert sum(map(len, batches(out).values())) == sum(len(v) for d in runs for v in batches(d).values())


def test_merged_sets_know_their_launches(putscope, runs, tmp_path):
    assert putscope("merge", tmp_path / "ab", *runs[:2]).returncode == 0
    assert putscope("merge", tmp_path / "abc", tmp_path / "ab", runs[2]).returncode == 0
    run = run_json(tmp_path / "abc")
    assert [x["from"] for x in run["launches"]] == [str(d) for d in runs] and putscope("check", tmp_path / "abc").returncode == 0
    j = compared(putscope, tmp_path / "abc", tmp_path / "ab")
    assert {(r["launches_a"], r["launches_b"]) for r in j["cases"]} == {(3, 2)}
    assert not any(r["words"].startswith("seems") for r in j["cases"])
    assert "ONE LAUNCH" not in putscope("compare", tmp_path / "abc", tmp_path / "ab").stdout
    assert "ONE LAUNCH" in putscope("compare", tmp_path / "abc", runs[0]).stdout
    bad = edited(tmp_path / "ab", tmp_path / "bad", lambda r: r["launches"][1].update(first_batch=0))
    done = putscope("compare", bad, runs[0])
    assert done.returncode == 2 and "first_batch" in done.stderr


def test_merge_refuses_other_set_ups(putscope, runs, tmp_path):
    other = launch(putscope, tmp_path / "o", "--vcx", "fault.lost-cqe=99999999")
    assert run_json(other)["options"]["vcx"] == ["fault.lost-cqe=99999999"]
    for change, word in ((None, "vcx"), (lambda r: r["options"].update(pin=False), "options.pin yes / no"),
                         (lambda r: r["ranks"][0].update(host="elsewhere"), "host"),
                         (lambda r: r.update(putscope="v9"), "putscope"),
                         (lambda r: r.update(complete=False, why_incomplete="killed"), "killed"),
                         (lambda r: r["cases"].pop(), "not one set-up")):
        b = edited(runs[1], tmp_path / word.replace("/", "-"), change) if change else other
        done = putscope("merge", tmp_path / "m", runs[0], b)
        assert done.returncode == 2 and word in done.stderr and not (tmp_path / "m").exists(), done.stderr
    j = compared(putscope, runs[0], other)
    assert any("options.vcx" in line for line in j["sides"][1]["differs_from_a"]) and j["cases"]


HOPS = [("wqe_build", ["wqe_build"], 20), ("nic", ["nic_exec", "wqe_fetch"], 300), ("cqe_write", ["cqe_write"], 500)]


def with_hops(folder, to, moved=0, wiggle=0, nature="virtual"):
    rows = [{"hop": h, "members": m, "est_ns": e + wiggle + (moved if h == "cqe_write" else 0), "nature": nature,
             "how": "solved", "group": g} for g in ("base", "other") for h, m, e in HOPS]
    for r in rows:
        r.update(lo_ns=r["est_ns"] - 4, hi_ns=r["est_ns"] + 4)
    return edited(folder, to, lambda run: run.update(hops=rows))


def test_the_hop_that_moved(putscope, runs, tmp_path):
    a, b = with_hops(runs[0], tmp_path / "a"), with_hops(runs[1], tmp_path / "b", moved=100)
    j = compared(putscope, a, b)
    assert [(r["hop"], r["verdict"]) for r in j["hops"]] == [("wqe_build", "same"), ("nic", "same"), ("cqe_write", "slower")]
    r = j["hops"][2]
    assert r["members"] == ["cqe_write"] and (r["a_ns"], r["b_ns"], r["shift_ns"]) == (500, 600, 100)
    assert abs(r["lo_ns"] - (100 - 32 ** .5)) < 1e-6 and abs(r["margin_ns"] - .03 * 820) < 1e-6
    text = putscope("compare", a, b).stdout
    assert "hops that moved: 1 of 3" in text and "nic_exec+wqe_fetch" in text
    c = with_hops(runs[1], tmp_path / "c", nature="hardware")
    j = compared(putscope, a, c)
    assert j["hops"] == [] and all("--force" in u["why"] for u in j["unlike"])
    assert all(r["across"] for r in compared(putscope, a, c, "--force")["hops"])
    j = compared(putscope, a, runs[1])
    assert [u["hop"] for u in j["unlike"]] == [h for h, _, _ in HOPS]


def test_hops_of_several_launches(putscope, runs, tmp_path):
    sides = []
    for name, moved in (("a", 0), ("b", 100)):
        parts = [with_hops(d, tmp_path / f"{name}{i}", moved, wiggle) for i, (d, wiggle) in enumerate(zip(runs, (-2, 0, 2)))]
        sides.append(tmp_path / name)
        assert putscope("merge", sides[-1], *parts).returncode == 0
        base = [h for h in run_json(sides[-1])["hops"] if h["group"] == "base"]
        assert [h["est_ns"] for h in base] == [20, 300, 500 + moved]
        assert abs(base[0]["hi_ns"] - 20 - 4.3027 * 2 / 3 ** .5) < 1e-3     # Student's t over three launches
    j = compared(putscope, *sides)
    assert [(r["verdict"], r["words"], r["launches_a"]) for r in j["hops"]] == [
        ("same", "same", 3), ("same", "same", 3), ("slower", "slower", 3)]


def test_export(putscope, runs, fake, tmp_path):
    done = putscope("export", runs[0])
    assert done.returncode == 0
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    have = series(runs[0])
    assert {(r["case"], r["metric"]) for r in rows} == set(have) and len(rows) == len(have)
    by_id = {c["id"]: c for c in run_json(runs[0])["cases"]}
    for r in rows:
        c, v = by_id[r["case"]], sorted(have[r["case"], r["metric"]])
        for key in ("path", "nature", "queue", "completion", "sm"):
            assert r[key] == (c[key] or "")
        assert int(r["n"]) == len(v) and float(r["max_ns"]) == v[-1] and float(r["min_ns"]) == v[0] and r["p50_per_s"] == ""
        assert float(r["p50_lo_ns"]) <= float(r["p50_ns"]) <= float(r["p50_hi_ns"]) and r["launches"] == "1"
    readme = (ROOT / "results/README.md").read_text()
    for column in rows[0]:
        assert f"`{column}`" in readme, column
    rows = list(csv.DictReader(io.StringIO(putscope("export", fake).stdout)))
    waived = [r for r in rows if r["status"] == "waived"]
    assert len(waived) == 1 and waived[0]["n"] == "0" and waived[0]["p50_ns"] == "" and waived[0]["reason"]


def test_export_quotes_and_rates(putscope, runs, tmp_path):
    def change(run):
        run["cases"][0].update(reason='cores 0, 1: "pinned"', later="x,y")
        run.update(complete=False, why_incomplete="edited")

    b = edited(runs[0], tmp_path / "b", change)
    text = (b / "samples.csv").read_text()
    (b / "samples.csv").write_text(text.replace(",issue,", ",rate_msgs_per_s,"))
    rows = list(csv.DictReader(io.StringIO(putscope("export", b).stdout)))
    mine = [r for r in rows if r["case"] == run_json(b)["cases"][0]["id"]]
    assert mine and all(r["reason"] == 'cores 0, 1: "pinned"' and r["later"] == "x,y" for r in mine)
    rate = [r for r in rows if r["metric"] == "rate_msgs_per_s"]
    assert rate and all(r["p50_ns"] == "" and float(r["p50_per_s"]) >= 0 for r in rate)
    j = compared(putscope, b, b)
    assert {r["unit"] for r in j["cases"] if r["metric"] == "rate_msgs_per_s"} == {"1/s"}
