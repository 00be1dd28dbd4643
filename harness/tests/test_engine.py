# SPDX-License-Identifier: Apache-2.0
"""What the engine decides, on the bench `fake`: whose turn it is, what fails a case, how soon a run ends."""
import signal
import time

from cli import cases, putscope, run_json, sane, start

FAKE = ("run", "/dev/null", "-k", "bench=fake")


def test_a_case_with_its_minimum_gives_way(tmp_path):
    """Two cases of 50 ms a batch: in equal turns `few` would get 260 of its 300 samples."""
    done = putscope(*FAKE, "-k", "fake=slow,few", "-k", "min_samples=300", "-k", "ci_target=0", "--time", 2.8, "--out", "r",
                    cwd=tmp_path)
    sane(done, 0)


def test_a_value_that_is_no_number_fails_its_case(tmp_path):
    sane(putscope(*FAKE, "-k", "fake=good,nan", "--out", "r", cwd=tmp_path), 1)
    case = cases(tmp_path / "r")
    assert case["fake/good"]["status"] == "ok" and case["fake/nan"]["status"] == "failed"
    assert "sample 7 of put_completion in batch 3" in case["fake/nan"]["reason"]
    sane(putscope("report", "r", cwd=tmp_path), 0)


def test_a_large_run_ends_at_once(tmp_path):
    out = tmp_path / "r"
    run = start(*FAKE, "-k", "fake=flood", "-k", "min_samples=100000000", "--time", 60, "--out", "r", cwd=tmp_path)
    end = time.monotonic() + 30
    while not (out / "samples.csv").exists() or (out / "samples.csv").stat().st_size < 30 << 20:
        assert time.monotonic() < end and run.poll() is None
        time.sleep(.05)
    at = time.monotonic()
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=20)
    assert time.monotonic() - at < 2 and run.returncode == 1 and "putscope report" in err
    assert run_json(out)["complete"] is False
    case = cases(out)["fake/flood"]
    assert case["status"] == "incomplete" and case["reason"].startswith("interrupted")
    assert not (out / "summary.csv").exists()
    sane(putscope("check", "r", cwd=tmp_path), 1)
    assert "put_completion" in putscope("report", "r", cwd=tmp_path).stdout
