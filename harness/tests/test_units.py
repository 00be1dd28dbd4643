# SPDX-License-Identifier: Apache-2.0
"""The cmocka programs: one pytest test for each of theirs, read from their TAP output."""
import os
import re
import subprocess

from conftest import BUILD


def tap(program):
    """(name, passed, output) of each test; a crash, a missing plan or no test at all is a failure of its own."""
    run = subprocess.run([program], capture_output=True, text=True, timeout=120,
                         env=dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP"))
    out = run.stdout + run.stderr
    found = [(m[2], m[1] == "ok", out) for m in re.finditer(r"^(ok|not ok) \d+ - (.*)$", out, re.M)]
    plan = re.search(r"^1\.\.(\d+)", out, re.M)
    whole = plan and int(plan[1]) == len(found) > 0 and (run.returncode == 0) == all(ok for _, ok, _ in found)
    return found if whole else found + [("ends as planned", False, f"{out}\nexit status {run.returncode}")]


def pytest_generate_tests(metafunc):
    programs = sorted(p for p in (BUILD / "tests").glob("test_*") if os.access(p, os.X_OK))
    rows = [(p.name, *t) for p in programs for t in tap(p)]
    metafunc.parametrize("program, name, passed, output", rows, ids=[f"{r[0]}-{r[1]}" for r in rows])


def test_unit(program, name, passed, output):
    assert passed, output
