# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command share: start it, read its result folder, make the statistics anew."""
import csv
import functools
import json
import os
import pathlib
import re
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("B", "build")).resolve()
PUTSCOPE = str(BUILD / "putscope")
SAMPLES = ["case_id", "metric", "size_bytes", "batch", "seq", "warmup", "value_ns"]
SUMMARY = ["case_id", "metric", "size_bytes", "n", "p50_ns", "p50_lo_ns", "p50_hi_ns", "p90_ns", "p99_ns", "p99_9_ns",
           "max_ns"]


def environment(extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI", "SLURM_"))}
    return {**env, **{k: str(v) for k, v in extra.items()}}


def putscope(*args, cwd, timeout=60, prefix=(), **env):
    return subprocess.run([*prefix, PUTSCOPE, *map(str, args)], cwd=cwd, env=environment(env), capture_output=True,
                          text=True, timeout=timeout)


def start(*args, cwd, **env):
    return subprocess.Popen([PUTSCOPE, *map(str, args)], cwd=cwd, env=environment(env), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def wait_for_samples(folder, lines, limit_s=20):
    """Until samples.csv of a run in progress has so many lines."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        try:
            if (folder / "samples.csv").read_bytes().count(b"\n") >= lines:
                return
        except FileNotFoundError:
            pass
        time.sleep(0.02)
    raise AssertionError(f"no {lines} lines in {folder}/samples.csv after {limit_s} s")


def sane(done, *codes):
    """One of these exit codes, never a signal or a sanitizer's word."""
    said = done.stdout + done.stderr
    assert done.returncode in codes, f"exit {done.returncode}, not {codes}: {said[-2000:]}"
    assert "Sanitizer" not in said and "runtime error" not in said, said[-2000:]


def run_json(folder):
    return json.loads((folder / "run.json").read_text())


def cases(folder):
    return {c["id"]: c for c in run_json(folder)["cases"]}


@functools.lru_cache(maxsize=2)
def _samples(path, _stamp):
    text = path.read_text()
    assert text.endswith("\n")
    rows = list(csv.reader(text.splitlines()))
    assert rows[0] == SAMPLES
    for r in rows[1:]:
        assert len(r) == 7 and all(x.isdecimal() for x in r[2:6]) and re.fullmatch(r"-?\d+\.\d{3}", r[6]), r
    return [dict(zip(SAMPLES, r)) for r in rows[1:]]


def samples(folder):
    """Strict: every line whole and well formed."""
    path = folder / "samples.csv"
    return _samples(path, path.stat().st_mtime_ns)


def series(folder):
    """{(case, metric): [values]} without warm-up."""
    out = {}
    for r in samples(folder):
        mine = out.setdefault((r["case_id"], r["metric"]), [])
        if r["warmup"] == "0":
            mine.append(float(r["value_ns"]))
    return out


def batches(folder):
    """{(case, metric): {batch numbers}} without warm-up."""
    out = {}
    for r in samples(folder):
        if r["warmup"] == "0":
            out.setdefault((r["case_id"], r["metric"]), set()).add(r["batch"])
    return out


def summary(folder):
    rows = list(csv.reader((folder / "summary.csv").read_text().splitlines()))
    assert rows[0] == SUMMARY
    return {(r[0], r[1]): dict(zip(SUMMARY, r)) for r in rows[1:]}


def quantile(values, q):
    """Hyndman-Fan 7, as README.md says."""
    v = sorted(values)
    at = q * (len(v) - 1)
    i = int(at)
    return v[-1] if i + 1 >= len(v) else v[i] + (at - i) * (v[i + 1] - v[i])


def agrees(folder):
    """summary.csv is what samples.csv gives."""
    told, got = summary(folder), series(folder)
    assert set(told) == set(got)
    for key, row in told.items():
        v = got[key]
        assert int(row["n"]) == len(v), key
        want = {"p50_ns": quantile(v, .5), "p90_ns": quantile(v, .9), "max_ns": max(v),
                "p99_ns": quantile(v, .99) if len(v) >= 100 else None,
                "p99_9_ns": quantile(v, .999) if len(v) >= 10000 else None} if v else {}
        for col, x in want.items():
            if x is None:
                assert row[col] == "", (key, col)
            else:
                assert abs(float(row[col]) - x) <= 0.0015, (key, col, row[col], x)
        if v:
            assert float(row["p50_lo_ns"]) <= float(row["p50_ns"]) <= float(row["p50_hi_ns"]), key
