# SPDX-License-Identifier: Apache-2.0
"""Where the words of a command go."""
import os
import subprocess

import pytest

from cli import PUTSCOPE


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("args", [("list",), ("list", "--json"), ("run", "--help"), ("--version",)])
def test_words_that_find_no_room_are_no_success(args, tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run([PUTSCOPE, *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30, cwd=tmp_path)
    assert done.returncode == 1 and "standard output" in done.stderr
