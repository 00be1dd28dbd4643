# SPDX-License-Identifier: Apache-2.0
"""What the tests share, and the last line that `make test` ends on."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("B", "build")


def counts(reporter):
    n = {k: len(reporter.stats.get(k, ())) for k in ("passed", "failed", "error", "skipped")}
    return n["passed"], n["failed"] + n["error"], n["skipped"]


def pytest_unconfigure(config):
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter:
        print("\n%d passed, %d failed, %d skipped" % counts(reporter), flush=True)


class Command:
    """Runs a built program; every call has a time limit."""

    def __init__(self, name):
        self.path = BUILD / name

    def __call__(self, *args, timeout=90, env=None, **kw):
        full = dict(os.environ, **(env or {}))
        return subprocess.run([self.path, *map(str, args)], capture_output=True, text=True, timeout=timeout,
                              cwd=ROOT, env=full, **kw)

    def start(self, *args, env=None, **kw):
        full = dict(os.environ, **(env or {}))
        return subprocess.Popen([self.path, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, cwd=ROOT, env=full, **kw)


@pytest.fixture(scope="session")
def putscope():
    return Command("putscope")


@pytest.fixture(scope="session")
def vcx():
    return Command("vcx")
