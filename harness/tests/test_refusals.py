# SPDX-License-Identifier: Apache-2.0
"""What the command refuses, and that it says why and writes nothing; the order of batches; launches in a row."""
import csv
import json
import os
import signal
import time

import pytest

FAKE = ("/dev/null", "-k", "bench=fake")


def run_fake(putscope, out, kinds="good", *more, **kw):
    return putscope("run", *FAKE, "-k", f"fake={kinds}", "--out", out, *more, **kw)


def rows(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


@pytest.fixture
def good(putscope, tmp_path):
    out = tmp_path / "good"
    done = run_fake(putscope, out)
    assert done.returncode == 0, done.stderr
    return out


def test_order_is_that_of_the_seed(putscope, tmp_path):
    orders = []
    for name, seed in (("a", 1), ("b", 1), ("c", 9)):
        run_fake(putscope, tmp_path / name, "good,slow", "-k", f"seed={seed}", "-k", "ci_target=100")
        orders.append([r["case_id"] for r in rows(tmp_path / name / "samples.csv") if r["seq"] == "0"])
    assert orders[0] == orders[1] != orders[2]


BAD = {
    "unknown key": (["-k", "bogus=1"], "bogus"),
    "not a pair": (["-k", "ops"], "KEY=VALUE"),
    "unknown suffix": (["-k", "sizes=8Q"], "Q"),
    "size 0": (["-k", "sizes=0"], "0"),
    "unused key": (["-k", "ops=5"], "ops"),
    "unknown bench": (["-k", "bench=nothing"], "nothing"),
    "missing config": (["no-such-config"], "no-such-config"),
    "two configs": (["quick"], "quick"),
    "unknown option": (["--bogus"], "bogus"),
    "unknown vcx option": (["--vcx", "bogus=1"], "bogus"),
    "vcx option of later": (["--vcx", "adversary=5"], "adversary"),
    "time 0": (["--time", "0"], "time"),
    "negative": (["-k", "seed=-1"], "seed"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_writes_nothing(putscope, tmp_path, what):
    args, word = BAD[what]
    config = [] if what == "missing config" else ["/dev/null", "-k", "bench=fake"]
    done = putscope("run", *config, "--out", tmp_path / "r", *args)
    assert done.returncode == 2, done.stdout + done.stderr
    assert word in done.stderr and done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_bad_input_that_needs_the_rig(putscope, tmp_path):
    for args, word in ((["-k", "sizes=4194305"], "4194305"), (["-k", "ops=0"], "ops"), (["-k", "ops=513"], "ops"),
                       (["--gpu", "x"], "gpu"), (["--gpu", "99"], "99"), (["--nic", "mlx5_77"], "mlx5_77"),
                       (["-k", "data=gpu", "--gpu", "none"], "gpu")):
        done = putscope("run", "quick", "--out", tmp_path / "r", *args)
        assert done.returncode == 2 and word in done.stderr, (args, done.stderr)
        assert list(tmp_path.iterdir()) == []


def test_ranks(putscope, tmp_path):
    done = run_fake(putscope, tmp_path / "r", env={"OMPI_COMM_WORLD_SIZE": "3"})
    assert done.returncode == 2 and "paired" in done.stderr
    for launcher in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"):   # it says 2, this process sees 1
        done = putscope("run", "quick", "--out", tmp_path / "r", env={launcher: "2"})
        assert done.returncode == 2 and "2 ranks" in done.stderr, (launcher, done.stderr)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("args, word", [
    (("--bogus",), "--bogus"), (("--out",), "needs a value"), (("-k",), "needs a value"), (("--json=1",), "--json=1"),
    (("-k", "bench=fake,fake"), "twice"), (("-k", "bench=quick", "-k", "sizes=8,8"), "twice"),
    (("-k", "bench=fake", "-k", "warmup=4294967296"), "warmup"), (("-k", "bench=fake", "-k", "min_batches=0"), "min_batches"),
    (("-k", "bench=fake", "--vcx", "fault.error-cqe=1"), "use no NIC")])
def test_every_refusal_says_what(putscope, tmp_path, args, word):
    done = putscope("run", "--out", tmp_path / "r", *args)
    assert done.returncode == 2 and word in done.stderr and done.stderr.strip() != "putscope:", done.stderr
    assert not (tmp_path / "r").exists()


def test_vcx_option_inside_vcx_is_refused(putscope, vcx, tmp_path):
    done = vcx(putscope.path, "run", "quick", "--vcx", "fault.error-cqe=1", "--out", tmp_path / "r")
    assert done.returncode == 2 and "vcx -o" in done.stderr and not (tmp_path / "r").exists()


def test_a_bench_chosen_by_hand_needs_no_config(putscope, tmp_path):
    done = putscope("run", "-k", "bench=fake", "--out", tmp_path / "r")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "r/run.json").read_text())["config"] is None


def test_repeat(putscope, tmp_path):
    done = putscope("run", "-k", "bench=fake", "--repeat", 2, "--json", "--out", tmp_path / "r")
    assert done.returncode == 0 and [r["schema"] for r in json.loads(done.stdout)] == ["putscope-report"] * 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r-1", "r-2"]
    done = putscope("run", "-k", "bench=fake", "--repeat", 3, "--out", tmp_path / "r")
    assert done.returncode == 2 and not (tmp_path / "r-3").exists()     # found before the first launch


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_a_repeated_run_ends_its_launch(putscope, tmp_path, sig):
    run = putscope.start("run", *FAKE, "-k", "fake=slow", "-k", "min_samples=100000", "--repeat", 3, "--out", tmp_path / "r")
    samples = tmp_path / "r-1/samples.csv"
    end = time.time() + 10
    while not samples.exists() or samples.stat().st_size < 5000:
        assert time.time() < end and run.poll() is None
        time.sleep(.05)
    at = time.time()
    run.send_signal(sig)
    run.wait(timeout=10)
    while "seals" not in json.loads((tmp_path / "r-1/run.json").read_text()):    # written when the launch ends in order
        assert time.time() - at < 2
        time.sleep(.05)
    assert not (tmp_path / "r-2").exists()
    assert putscope("check", tmp_path / "r-1").returncode == 1


def test_commands(putscope):
    for args in ([], ["nothing"], ["list", "x"], ["report", "--bogus", "."], ["compare", "a", "b"]):
        assert putscope(*args).returncode == 2
    for args in (["--help"], ["run", "--help"], ["report", "--help"], ["check", "--help"], ["list", "--help"], ["--version"]):
        done = putscope(*args)
        assert done.returncode == 0 and done.stdout


def test_edited_sample_is_found(putscope, good):
    text = (good / "samples.csv").read_text().splitlines()
    i = next(i for i, line in enumerate(text) if "put_completion,8,5,49,0," in line)   # no warm-up
    text[i] = text[i].replace(",50.0", ",9950.0")
    (good / "samples.csv").write_text("\n".join(text) + "\n")
    done = putscope("check", good)
    assert done.returncode == 2 and "samples.csv" in done.stderr and putscope("report", good).returncode == 2
    text[i] = text[i].replace("9950.0", "fifty")
    (good / "samples.csv").write_text("\n".join(text) + "\n")
    done = putscope("check", good)
    assert done.returncode == 2 and f"samples.csv:{i + 1}" in done.stderr


def test_a_series_of_warm_up_only_has_no_number(putscope, tmp_path):
    out = tmp_path / "r"
    assert run_fake(putscope, out, "slow", "-k", "warmup=1000", "--time", ".3").returncode == 1
    assert {r["p50_ns"] for r in rows(out / "summary.csv")} == {""}
    assert putscope("report", out).returncode == 0


def test_conf_lines_stand_alone(putscope, tmp_path):
    conf = tmp_path / "a.conf"
    for text, where in (("bench = fake\nout = x\n  pin = maybe\n", ":3:"), ("bench = fake\nsizes = 8,\n  4096\n", ":3:"),
                        ("bench = fake\nfake = " + "good," * 80 + "\nbogus = 1\n", ":2:")):
        conf.write_text(text)
        done = putscope("run", conf, "--out", tmp_path / "r")
        assert done.returncode == 2 and where in done.stderr, (text, done.stderr)
    done = putscope("run", tmp_path, "-k", "bench=fake", "--out", tmp_path / "r")
    assert done.returncode == 2 and not (tmp_path / "r").exists()
