# SPDX-License-Identifier: Apache-2.0
"""The waterfall of the proxy's hops: bars add up, cold and warm stand side by side, what is missing is said."""
import pathlib
import sys

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed (python3-matplotlib)")
PLOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(PLOT), str(PLOT / "tests")]
import fig_proxy                                                        # noqa: E402
import load                                                             # noqa: E402
import maker                                                            # noqa: E402
import style                                                            # noqa: E402

NS = dict(zip(fig_proxy.HOPS, (28, 700, 30, 120, 2300, 90, 20, 800)))


def folder(tmp_path, cases, without=(), bound=0):
    """Twenty samples of each hop around its ns, of the second case half as much again."""
    made = maker.write(tmp_path / "r", cases, n=20, metrics=("put_completion",), parts=())
    path = made / "summary.csv"
    rows = path.read_text().splitlines()
    for i, c in enumerate(cases):
        for metric, ns in (*NS.items(), ("clock_bound", bound)):
            ns *= 1 + .5 * i
            if metric not in without:
                rows.append(f"{c['id']},{metric},{c['size_bytes']},20,{ns},{ns - 5},{ns + 5},{ns + 9},,,{ns + 20}")
    path.write_text("\n".join(rows) + "\n")
    return made


def state(name):
    return maker.case("proxy", 8, id=f"proxy-state/{name}/put_completion", state=name)


def drawn(made, **kwargs):
    run = load.Run(str(made))
    with style.plt.style.context(["default", style.RC]):
        fig = fig_proxy.draw(run, **kwargs)
    style.plt.close(fig)
    return fig


def bars(fig):
    return {c.get_label(): c.patches[0] for c in fig.axes[0].containers}


def words(fig):
    return " ".join(t.get_text() for t in fig.findobj(style.matplotlib.text.Text))


def test_each_bar_starts_where_the_last_one_ended(tmp_path):
    fig = drawn(folder(tmp_path, [state("cold"), state("warm")]))
    for i, name in enumerate(("cold", "warm")):
        at = 0.0
        for hop, ns in NS.items():
            b = bars(fig)[f"{hop} proxy-state/{name}/put_completion"]
            assert b.get_x() == pytest.approx(at) and b.get_width() == pytest.approx(ns * (1 + .5 * i))
            at += b.get_width()
        total, = [ln for ln in fig.axes[0].get_lines() if ln.get_label() == f"_sum proxy-state/{name}/put_completion"]
        assert list(total.get_xdata()) == pytest.approx([0, at])


def test_cold_and_warm_are_told_apart(tmp_path):
    fig = drawn(folder(tmp_path, [state("cold"), state("warm"), maker.case("proxy", 8, id="quick/proxy")]))
    names = [t.get_text() for t in fig.legends[0].get_texts()]
    assert names == ["proxy, cold", "proxy, warm", "95 % interval"]
    a, b = (bars(fig)[f"enqueue proxy-state/{s}/put_completion"] for s in ("cold", "warm"))
    assert a.get_facecolor() != b.get_facecolor() and a.get_y() != b.get_y() and a.get_hatch() == "////"


def test_intervals_are_those_of_the_summary(tmp_path):
    fig = drawn(folder(tmp_path, [state("warm")]))
    line, = [ln for ln in fig.axes[0].get_lines() if ln.get_label().startswith("_interval ring_flight")]
    assert list(line.get_xdata()) == pytest.approx([28 + 695, 28 + 705])


def test_what_lies_between_two_clocks_is_said(tmp_path):
    assert "two clocks" not in words(drawn(folder(tmp_path, [state("warm")])))
    assert "may be 900 ns apart" in words(drawn(folder(tmp_path / "b", [state("warm")], bound=900)))


def test_a_case_that_lacks_a_hop_is_not_drawn(tmp_path):
    with pytest.raises(load.NoData, match="no case has the hops of a proxy"):
        drawn(folder(tmp_path, [state("warm")], without=("notify",)))


def test_more_cases_than_can_be_told_apart(tmp_path):
    cases = [maker.case("proxy", 8, id=f"p{i}", inline=f"kind{i}") for i in range(6)]
    assert "4 of 6 cases drawn" in words(drawn(folder(tmp_path, cases)))


@pytest.mark.parametrize("width", [style.COLUMN, style.PAGE])
def test_nothing_is_cut_off(tmp_path, width):
    fig = drawn(folder(tmp_path, [state("cold"), state("warm")]), width=width)
    fig.draw_without_rendering()
    page = fig.bbox
    ax = fig.axes[0]
    for t in (*fig.texts, *ax.texts, *ax.get_yticklabels(), *fig.legends[0].get_texts()):
        box = t.get_window_extent()
        assert page.x0 - 1 <= box.x0 and box.x1 <= page.x1 + 1, t.get_text()
