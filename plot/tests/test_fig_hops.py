# SPDX-License-Identifier: Apache-2.0
"""The waterfall of hops: bars add up, nothing overlaps, what is odd is drawn as it is and said."""
import copy
import itertools
import pathlib
import sys

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed (python3-matplotlib)")
PLOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(PLOT), str(PLOT / "tests")]
import command                                                          # noqa: E402
import fig_hops                                                         # noqa: E402
import load                                                             # noqa: E402
import maker                                                            # noqa: E402
import style                                                            # noqa: E402

CASES = [maker.case("gpu", 8)]


def folder(tmp_path, hops=None, closure=None, cases=CASES, **more):
    return maker.write(tmp_path / "r", cases, n=20, metrics=("put_completion",), parts=(),
                       hops=maker.hops() if hops is None else hops,
                       closure=maker.closures() if closure is None else closure, **more)


def drawn(tmp_path, *rows, width=style.PAGE, group=None, only=(), **more):
    run = load.Run(str(folder(tmp_path, *rows, **more)))
    with style.plt.style.context(["default", style.RC]):
        fig = fig_hops.draw(run, width=width, only=only, **({"group": group} if group else {}))
    style.plt.close(fig)
    return fig


def words(fig):
    return " ".join(" ".join(t.get_text() for t in fig.texts).split())


def bars(fig):
    """{branch: hop: (where it starts, where it ends)}, as drawn."""
    out = {}
    for c in fig.axes[0].containers:
        b, = c.patches
        out[c.get_label()] = (b.get_x(), b.get_x() + b.get_width())
    return out


def line(ax, label):
    return next(ln for ln in ax.get_lines() if ln.get_label() == label)


def in_view(axis):
    """The tick labels that are drawn: matplotlib keeps some beyond the ends of an axis."""
    lo, hi = sorted(axis.get_view_interval())
    return [t.label1 for t in axis.get_major_ticks() if lo <= t.get_loc() <= hi]


def without(*names):
    return [h for h in maker.hops() if h["hop"] not in names]


SUMS = without("payload_fetch", "wire_out", "remote_write", "wire_back", "cqe_write") + [
    maker.hop("payload_fetch+wire_out+remote_write", 1305, "flag"),
    maker.hop("payload_fetch+wire_out+wire_back+cqe_write", 1508, "cqe"),
    maker.hop("nic_exec+wire_back", 381, "cqe")]
ODD = maker.hops(nic_exec=dict(est_ns=-60., lo_ns=-900., hi_ns=500.),
                 wire_out=dict(est_ns=None, lo_ns=None, hi_ns=None),
                 doorbell_flight=dict(est_ns=None),
                 poll=dict(est_ns=-8., lo_ns=-20., hi_ns=4.),
                 remote_write=dict(est_ns=None, how="bound", lo_ns=None, hi_ns=700.),
                 cqe_write=dict(nature="hardware", lo_ns=-500., hi_ns=1800.))
SHAPES = {"whole": (None, None), "sums": (SUMS, None), "odd": (ODD, []),
          "flag alone": (without("wire_back", "cqe_write", "completion")[:-1], [maker.closure()]),
          "far off": (None, [maker.closure(f"write/across/pointer/db/cqe/{s}", 2000. * s, .2)
                             for s in (1, 8, 64, 512, 4096)])}


# What is drawn.

@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", [style.COLUMN, style.PAGE])
def test_no_text_lies_on_another_and_nothing_is_cut_off(tmp_path, shape, width):
    fig = drawn(tmp_path, *SHAPES[shape], width=width)
    renderer = fig.canvas.get_renderer()
    found = list(fig.texts)
    for ax in fig.axes:
        found += [*ax.texts, ax.xaxis.label, ax.yaxis.label, ax.title, ax._left_title,
                  *in_view(ax.xaxis), *in_view(ax.yaxis)]
    found += [t for legend in fig.legends for t in legend.get_texts()]
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in found
             if t.get_text() and t.get_visible()]
    assert len(boxes) > 30
    for (a, p), (b, q) in itertools.combinations(boxes, 2):
        apart = min(p.x1, q.x1) - max(p.x0, q.x0), min(p.y1, q.y1) - max(p.y0, q.y0)
        assert min(apart) <= .5, f"{a!r} and {b!r}"
    box = fig.get_tightbbox(renderer)
    assert min(box.x0, box.y0) >= -.01
    assert box.x1 <= width + .01 and box.y1 <= fig.get_figheight() + .01
    assert min(t.get_fontsize() for t in found) >= 7


@pytest.mark.parametrize("width", [style.COLUMN, style.PAGE])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_number_lies_on_a_bar_or_an_interval(tmp_path, shape, width):
    fig = drawn(tmp_path, *SHAPES[shape], width=width)
    ax, renderer = fig.axes[0], fig.canvas.get_renderer()
    ink = [c.patches[0].get_window_extent(renderer) for c in ax.containers]
    ink += [ln.get_window_extent(renderer) for ln in ax.get_lines()
            if ln.get_label().startswith(("_interval", "_sum"))]
    for t in ax.texts:
        p = style.matplotlib.text.Text.get_window_extent(t, renderer)
        inside = ax.get_window_extent(renderer)
        assert inside.x0 - 1 <= p.x0 and p.x1 <= inside.x1 + 1, t.get_text()
        for q in ink:
            apart = min(p.x1, q.x1) - max(p.x0, q.x0), min(p.y1, q.y1) - max(p.y0, q.y0)
            assert min(apart) <= .5, t.get_text()


def test_bars_add_up(tmp_path):
    fig = drawn(tmp_path)
    got, at, fork = bars(fig), 0.0, None
    assert len(got) == len(maker.HOPS)
    for name, (branch, ns, how, _) in maker.HOPS.items():
        if branch != "both":
            fork = at if fork is None else fork
            at = fork if name in ("remote_write", "wire_back") else at
        assert got[f"{branch}: {name.strip()}"] == pytest.approx((at, at + ns))
        lo, hi = line(fig.axes[0], f"_interval {branch}: {name.strip()}").get_xdata()
        assert (lo, hi) == pytest.approx((at + ns - max(3, ns * .03), at + ns + max(3, ns * .03)))
        at += ns
    flag, cqe = fork + 472, fork + 770
    assert list(line(fig.axes[0], "_sum flag").get_xdata()) == pytest.approx([0, flag])
    assert list(line(fig.axes[0], "_sum cqe").get_xdata()) == pytest.approx([0, cqe])
    assert set(line(fig.axes[0], "_fork").get_xdata()) == {fork}
    ticks = [t.get_text() for t in fig.axes[0].get_yticklabels()]
    assert ticks[:8] == list(fig_hops.TRUNK)
    assert ticks[8:] == ["remote_write", "poll", f"→ flag: {style.time_text(flag)}", "wire_back",
                         "cqe_write", "poll", "completion", f"→ CQE: {style.time_text(cqe)}"]


def test_rows_lie_below_one_another_and_numbers_beside_them(tmp_path):
    fig = drawn(tmp_path)
    ax = fig.axes[0]
    ys = [c.patches[0].get_y() for c in ax.containers]
    assert ys == sorted(ys) and ax.get_ylim()[0] > ax.get_ylim()[1]
    for c, t in zip(ax.containers, ax.texts):
        b, = c.patches
        assert t.xy[1] == pytest.approx(b.get_y() + b.get_height() / 2)
    assert ax.texts[5].get_text() == "712 ns  [691 ns, 733 ns]"
    assert drawn(tmp_path, width=style.COLUMN).axes[0].texts[5].get_text() == "712 ns"


def test_virtual_is_hatched_bounds_are_open_and_how_is_said(tmp_path):
    fig = drawn(tmp_path, maker.hops(order={"nature": "hardware"}))
    look = {c.get_label(): c.patches[0] for c in fig.axes[0].containers}
    assert look["both: order"].get_hatch() == "" and look["both: wqe_fetch"].get_hatch() == "////"
    assert look["both: doorbell_flight"].get_facecolor() == (1, 1, 1, 1)
    assert look["both: wqe_fetch"].get_facecolor() != (1, 1, 1, 1)
    said = words(fig)
    assert "host SM · hardware and virtual mixed" in said and "bounded only: doorbell_flight" in said
    assert "assumptions: BlueFlame adds nothing (for wqe_fetch)" in said
    keys = [t.get_text() for t in fig.legends[0].get_texts()]
    assert keys[:4] == ["virtual", "hardware", "bound (open)", "interval"]


def test_sums_are_one_bar_with_their_members(tmp_path):
    fig = drawn(tmp_path, SUMS)
    got = bars(fig)
    assert got["flag: payload_fetch+wire_out+remote_write"] == pytest.approx((1834, 3139))
    assert got["cqe: payload_fetch+wire_out+wire_back+cqe_write"] == pytest.approx((1834, 3342))
    assert got["flag: poll"][0] == pytest.approx(3139)
    ticks = [t.get_text().replace("\n", " ") for t in fig.axes[0].get_yticklabels()]
    assert "payload_fetch + wire_out + remote_write" in ticks
    assert "cqe: nic_exec+wire_back" not in got
    assert "shares hops with a bar, not drawn: → CQE, nic_exec+wire_back 381 ns" in words(fig)
    assert "hops without a bar" not in words(fig)


def test_of_sums_that_overlap_those_are_drawn_that_leave_no_hop_out(tmp_path):
    rows = [maker.hop(n, 300, "flag") for n in ("wire_out+remote_write", "nic_exec+wire_out",
                                                "remote_write+poll")]
    fig = drawn(tmp_path, rows)
    assert bars(fig) == {"flag: nic_exec+wire_out": (0, 300), "flag: remote_write+poll": (300, 600)}
    assert "hops without a bar: wqe_build, order" in words(fig)


def test_a_poll_of_both_branches_stands_in_each(tmp_path):
    fig = drawn(tmp_path, without("poll") + [maker.hop("poll", 62, "both")])
    got = bars(fig)
    assert got["flag: poll"] == pytest.approx((3139, 3201))
    assert got["cqe: poll"] == pytest.approx((3342, 3404)) and got["cqe: completion"][0] == 3404


def test_below_zero_runs_to_the_left_and_is_never_clipped(tmp_path):
    fig = drawn(tmp_path, ODD)
    got = bars(fig)
    assert got["both: nic_exec"] == pytest.approx((647, 587))
    assert got["both: wqe_fetch"][0] == pytest.approx(587)
    assert fig.axes[0].get_xlim()[0] < 647 - 900
    assert "below zero, as solved: nic_exec, poll" in words(fig)
    assert "-60.0 ns  [-900 ns, 500 ns]" in [t.get_text() for t in fig.axes[0].texts]


def test_what_is_not_known_moves_nothing_and_is_said(tmp_path):
    fig = drawn(tmp_path, ODD)
    got, said = bars(fig), [t.get_text() for t in fig.axes[0].texts]
    assert "both: wire_out" not in got and "not known" in said
    assert got["flag: remote_write"] == pytest.approx((1954, 2654)) and "≤ 700 ns" in said
    assert got["flag: poll"] == pytest.approx((1954, 1946)) and "320 ns to 340 ns" in said
    ticks = [t.get_text() for t in fig.axes[0].get_yticklabels()]
    assert "→ flag: 1.95 µs + ?" in ticks
    assert "+ ?: without doorbell_flight, wire_out, remote_write, which have no" in words(fig)


def test_one_branch_only(tmp_path):
    fig = drawn(tmp_path, *SHAPES["flag alone"])
    assert {b.split(":")[0] for b in bars(fig)} == {"both", "flag"}
    assert "no hops of the branch → CQE in this run" in words(fig)


def test_one_hop_alone(tmp_path):
    fig = drawn(tmp_path, [maker.hop("order")], [])
    assert bars(fig) == {"both: order": (0, 588)}


# The closure.

def test_closure_points_are_the_rows(tmp_path):
    rows = maker.closures()
    fig = drawn(tmp_path, None, rows)
    ax = fig.axes[1]
    for (branch, held_out), marker in fig_hops.MARKS.items():
        mine = [c for c in rows if (c["branch"], c["held_out"]) == (branch, held_out)
                and c["predictable"]]
        points = line(ax, f"{branch} {held_out}")
        assert points.get_marker() == marker and len(mine) in (15, 16)
        assert list(points.get_xdata()) == [c["measured_ns"] for c in mine]
        assert list(points.get_ydata()) == [c["predicted_ns"] for c in mine]
    assert len(set(fig_hops.MARKS.values())) == 4
    assert "cannot be predicted without itself: imm/across/inline/bf/flag/8; imm/loop/inline/bf/cqe/8" \
        in words(fig)
    band = ax.collections[0].get_paths()[0].vertices
    assert {round(y / x, 6) for x, y in band} == {.95, 1.05}


def test_what_lies_outside_the_band_is_named(tmp_path):
    rows = [maker.closure("a/cqe/8", residual=.05), maker.closure("b/cqe/8", residual=-.0712),
            maker.closure("c/flag/8", residual=.2, held_out=True),
            maker.closure("d/flag/8", predicted_ns=None)]
    said = words(drawn(tmp_path, None, rows))
    assert "fitted: 1 of 2 predicted within ±5 %; outside: b/cqe/8 -7.1 %" in said
    assert "held out: 0 of 1 predicted within ±5 %; outside: c/flag/8 +20.0 %" in said
    assert "no time to draw in the closure: d/flag/8" in said


def test_no_closure_rows(tmp_path):
    fig = drawn(tmp_path, None, [])
    assert len(fig.axes) == 1 and "no closure in this run" in words(fig)
    fig = drawn(tmp_path, None, [maker.closure(predictable=False, predicted_ns=None)])
    assert len(fig.axes) == 1 and "without itself: write/across/pointer/db/cqe/8" in words(fig)


def test_case_chooses_closure_rows(tmp_path):
    fig = drawn(tmp_path, None, None, only=["imm/loop"])
    assert "fitted: 8 of 8" in words(fig) and len(bars(fig)) == len(maker.HOPS)


# Groups, badges, the command.

def test_only_one_group_is_drawn(tmp_path):
    rows = maker.hops() + [maker.hop("order", 99, group="gpu-queue")]
    ends = maker.closures() + [maker.closure("q/cqe/8", group="gpu-queue")]
    assert len(bars(drawn(tmp_path, rows, ends))) == len(maker.HOPS)
    fig = drawn(tmp_path, rows, ends, group="gpu-queue")
    assert bars(fig) == {"both: order": (0, 99)} and "fitted: 1 of 1" in words(fig)
    assert "One put, hop by hop: gpu-queue" in words(fig)
    with pytest.raises(load.NoData, match="no hops of group x, only of base, gpu-queue"):
        drawn(tmp_path, rows, ends, group="x")


def test_badges_are_those_of_the_experiments(tmp_path):
    cases = [maker.case("gpu", 8, id="write/across/pointer/db/cqe/8"), maker.case("proxy", 8)]
    said = words(drawn(tmp_path, None, [maker.closure()], cases=cases))
    assert "virtual NIC · host SM" in said and "oversubscribed" not in said
    said = words(drawn(tmp_path, None, [maker.closure("x/cqe/8")], cases=cases))
    assert "oversubscribed: proxy" in said


def test_without_hops_it_is_skipped_in_words(tmp_path, capsys):
    run = maker.write(tmp_path / "r", CASES, n=20)
    assert command.draw_all({"hops": fig_hops}, "x", [str(run)]) == 2
    assert "skipped hops: run.json holds no hops" in capsys.readouterr().out
    blind = [maker.hop("order", est_ns=None, lo_ns=None, hi_ns=None)]
    with pytest.raises(load.NoData, match="not one hop of group base"):
        drawn(tmp_path, blind)


def test_command_writes_three_formats_and_takes_a_group(tmp_path, capsys):
    run = folder(tmp_path, maker.hops() + [maker.hop("order", 99, group="far")])
    heads = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}
    for more, out in ([], "a"), ([], "b"), (["--group", "far"], "c"):
        assert command.draw_all({"hops": fig_hops}, "x", [str(run), "--out", str(tmp_path / out), *more]) == 0
    for fmt, head in heads.items():
        a, b, c = ((tmp_path / d / f"hops.{fmt}").read_bytes() for d in "abc")
        assert a.startswith(head) and a == b != c
    assert "<!-- virtual NIC · host SM" in (tmp_path / "a" / "hops.svg").read_text()
    assert "skipped" not in capsys.readouterr().out


# The reader.

def test_hops_are_read_as_they_stand(tmp_path):
    run = load.Run(str(folder(tmp_path)))
    assert [h.members[0] for h in run.hops] == [n.strip() for n in maker.HOPS]
    wqe = run.hops[5]
    assert (wqe.est, wqe.how, wqe.assumes, wqe.group) == (712, "solved", "BlueFlame adds nothing", "base")
    assert len(run.closure) == 64 and sum(not c.predictable for c in run.closure) == 2
    assert run.closure[0].residual == pytest.approx(run.closure[0].predicted / run.closure[0].measured - 1)


def test_the_age_of_a_sample_is_no_whole_to_close_on(tmp_path):
    live = maker.closure("write/across/pointer/db/live-source/8", branch="live")
    run = load.Run(str(folder(tmp_path, closure=maker.closures() + [live])))
    assert len(run.closure) == 65
    fig = fig_hops.draw(run)
    assert all("live-source" not in t.get_text() for t in fig.findobj(style.plt.Text))


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
    "to nowhere": ({"closure": [maker.closure(branch="both")]}, "branch is 'both', not flag|cqe|live"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_is_named(tmp_path, name):
    change, words = BAD[name]
    with pytest.raises(load.PlotError) as e:
        load.Run(str(folder(tmp_path, **copy.deepcopy(change))))
    assert words in str(e.value) and "run.json" in str(e.value)
