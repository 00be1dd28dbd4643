# SPDX-License-Identifier: Apache-2.0
"""The waterfall of hops: bars add up, nothing overlaps, what is odd is drawn as it is and said."""
import copy
import pathlib
import sys

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed (python3-matplotlib)")
PLOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(PLOT), str(PLOT / "tests")]
import load                                                             # noqa: E402
import maker                                                            # noqa: E402

CASES = [maker.case("gpu", 8)]


def folder(tmp_path, hops=None, closure=None, cases=CASES, **more):
    return maker.write(tmp_path / "r", cases, n=20, metrics=("put_completion",), parts=(),
                       hops=maker.hops() if hops is None else hops,
                       closure=maker.closures() if closure is None else closure, **more)


# The reader.

def test_hops_are_read_as_they_stand(tmp_path):
    run = load.Run(str(folder(tmp_path)))
    assert [h.members[0] for h in run.hops] == [n.strip() for n in maker.HOPS]
    wqe = run.hops[5]
    assert (wqe.est, wqe.how, wqe.assumes, wqe.group) == (712, "solved", "BlueFlame adds nothing", "base")
    assert len(run.closure) == 64 and sum(not c.predictable for c in run.closure) == 2
    assert run.closure[0].residual == pytest.approx(run.closure[0].predicted / run.closure[0].measured - 1)


BAD = {
    "no list": ({"hops": {}}, "`hops` is not a list"),
    "no object": ({"closure": [3]}, "closure[0] is not an object"),
    "branch": ({"hops": [maker.hop("order", branch="up")]}, "hops[0]: branch is 'up', not both|flag|cqe"),
    "how": ({"hops": [maker.hop("order", how="guessed")]}, "how is 'guessed'"),
    "members": ({"hops": [maker.hop("order", members=[])]}, "members is not a list of hops"),
    "word": ({"hops": [maker.hop("order", est_ns="many")]}, "est_ns is 'many'"),
    "turned": ({"hops": [maker.hop("order", lo_ns=9, hi_ns=8)]}, "lo_ns 9 is above hi_ns 8"),
    "twice": ({"hops": [maker.hop("order")] * 2}, "hops[1]: order stands there twice"),
    "held out": ({"closure": [maker.closure(held_out=1)]}, "closure[0]: held_out"),
    "to nowhere": ({"closure": [maker.closure(branch="both")]}, "branch is 'both', not flag|cqe"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_is_named(tmp_path, name):
    change, words = BAD[name]
    with pytest.raises(load.PlotError) as e:
        load.Run(str(folder(tmp_path, **copy.deepcopy(change))))
    assert words in str(e.value) and "run.json" in str(e.value)
