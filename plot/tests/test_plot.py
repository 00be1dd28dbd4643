# SPDX-License-Identifier: Apache-2.0
"""Figures of invented runs: what is drawn is what summary.csv says, and bad folders are refused."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed (python3-matplotlib)")
PLOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(PLOT), str(PLOT / "tests")]
import command                                                          # noqa: E402
import fig_cdf, fig_components, fig_paths, fig_size                     # noqa: E401,E402
import load                                                             # noqa: E402
import maker                                                            # noqa: E402
import pick                                                             # noqa: E402
import style                                                            # noqa: E402

FIGURES = {"paths": fig_paths, "size": fig_size, "components": fig_components, "cdf": fig_cdf}
FEW = [maker.case(p, s) for p in maker.BASE for s in (8, 1024, 65536)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return maker.write(tmp_path_factory.mktemp("run") / "r", FEW)


def plot(*args, script="all.py", **env):
    return subprocess.run([sys.executable, "-B", str(PLOT / script), *map(str, args)], text=True,
                          capture_output=True, env={**os.environ, **env}, timeout=120)


def drawn(figure, folder, **kwargs):
    run = load.Run(str(folder))
    with style.plt.style.context(["default", style.RC]):
        fig = figure.draw(run, **kwargs)
    style.plt.close(fig)
    return run, fig


def texts(fig):
    """All the words in a figure."""
    out = [t.get_text() for t in fig.findobj(style.matplotlib.text.Text) if t.get_visible()]
    return "\n".join(out)


def lines(ax):
    return {ln.get_label(): ln for ln in ax.get_lines()}


# What comes out.

@pytest.fixture(scope="module")
def written(whole):
    """Standard output of `all.py`, run once into the default folder."""
    r = plot(whole, SOURCE_DATE_EPOCH="1", PYTHONHASHSEED="1")
    assert r.returncode == 0, r.stderr
    return r.stdout


def test_all_writes_each_figure_in_three_formats(whole, written):
    heads = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}
    for name in FIGURES:
        for fmt, head in heads.items():
            data = (whole / "figures" / f"{name}.{fmt}").read_bytes()
            assert data.startswith(head) and len(data) > 2000
    assert not list((whole / "figures").glob("*.part"))
    assert "skipped hops: run.json holds no hops" in written and "skipped proxy: no case has the hops" in written
    assert written.count("skipped") == 2


@pytest.mark.parametrize("name", FIGURES)
def test_each_script_runs_alone(whole, tmp_path, name):
    r = plot(whole, "--out", tmp_path / "o", "--format", "svg", script=f"fig_{name}.py")
    assert r.returncode == 0, r.stderr
    assert [p.name for p in (tmp_path / "o").iterdir()] == [f"{name}.svg"]
    assert r.stdout == f"wrote {tmp_path / 'o' / name}.svg\n"


def test_same_data_same_bytes(whole, written, tmp_path):
    assert plot(whole, "--out", tmp_path, SOURCE_DATE_EPOCH="86400000",
                PYTHONHASHSEED="2").returncode == 0
    files = sorted((whole / "figures").iterdir())
    assert len(files) == 12
    for f in files:
        assert f.read_bytes() == (tmp_path / f.name).read_bytes(), f.name


# What is drawn is what summary.csv says.

def test_size_lines_are_the_summary(whole):
    run, fig = drawn(fig_size, whole)
    assert len(fig.axes) == 3
    for ax, metric in zip(fig.axes, fig_size.METRICS):
        for path in maker.BASE:
            rows = [r for r in run.rows if r.metric == metric and r.case_id.startswith(f"put/{path}/")]
            line = lines(ax)[path]
            assert list(line.get_xdata()) == [r.size for r in rows] == [8, 1024, 65536]
            assert list(line.get_ydata()) == [r.p50 for r in rows]
            assert list(lines(ax)["_p99 " + path].get_ydata()) == [r.p99 for r in rows]
            bars = [s for c in ax.collections if isinstance(c, style.matplotlib.collections.LineCollection)
                    for s in c.get_segments()]
            for r in rows:
                assert any(s[:, 1] == pytest.approx([r.lo, r.hi]) for s in bars)


def test_paths_marks_are_the_summary(whole):
    run, fig = drawn(fig_paths, whole)
    for ax, metric in zip(fig.axes, fig_paths.METRICS):
        rows = [run.row(f"put/{p}/8", metric, 8) for p in maker.BASE]
        assert [t.get_text() for t in ax.get_yticklabels()] == ["gpu", "proxy", "host"]
        for y, (box, r) in enumerate(zip(ax.containers, rows)):
            point, _, (bar,) = box.lines
            assert (list(point.get_xdata()), list(point.get_ydata())) == ([r.p50], [y])
            assert bar.get_segments()[0][:, 0] == pytest.approx([r.lo, r.hi])
        assert [ln.get_xdata()[0] for ln in ax.get_lines() if ln.get_label() == "_p99"] == \
            [r.p99 for r in rows]
        assert style.time_text(rows[0].p50) in [t.get_text() for t in ax.texts]


def test_components_stack_to_wall(whole):
    run, fig = drawn(fig_components, whole)
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["gpu", "proxy", "host"]
    for ax, path in zip(fig.axes, maker.BASE):
        assert ax.get_ylabel() in ("share of wall (%)", "")
        for x, size in enumerate((8, 1024, 65536)):
            wall = run.row(f"put/{path}/{size}", "wall", size)
            mine = [b for b in ax.patches if round(b.get_x() + b.get_width() / 2) == x]
            parts = [run.row(wall.case_id, p, size).p50 / wall.p50 * 100 for p in style.PARTS]
            assert [b.get_height() for b in mine] == pytest.approx(parts)
            assert [b.get_y() for b in mine] == pytest.approx([sum(parts[:i]) for i in range(4)])
            assert sum(parts) == pytest.approx(100, rel=.05)


def test_components_at_one_size_share_a_panel(tmp_path):
    run, fig = drawn(fig_components, maker.write(tmp_path / "r", [maker.case(p, 8) for p in
                                                                 ("gpu", "proxy")]))
    ax, = fig.axes
    assert ax.get_ylabel() == "time of one put (µs)"
    assert [t.get_text() for t in ax.get_xticklabels()] == ["gpu", "proxy"]
    assert ax.patches[0].get_height() == pytest.approx(run.row("put/gpu/8", "kernel", 8).p50 / 1000)


def test_cdf_holds_every_sample_and_no_warmup(whole):
    run, fig = drawn(fig_cdf, whole)
    below, above = fig.axes[2:4]        # put_completion
    v = sorted(run.samples("put/gpu/8", "put_completion", 8))
    assert len(v) == run.row("put/gpu/8", "put_completion", 8).n == 200
    assert list(lines(below)["gpu"].get_xdata()) == v
    assert list(lines(below)["gpu"].get_ydata())[-1] == 1
    assert list(lines(above)["gpu"].get_ydata())[-1] == 1 / 200
    assert above.get_yscale() == "log"


def test_thousands_of_samples_are_thinned_but_keep_the_tail(tmp_path):
    folder = maker.write(tmp_path / "r", [maker.case("gpu", 8)], n=30000, metrics=("put_completion",))
    run, fig = drawn(fig_cdf, folder)
    line = lines(fig.axes[1])["gpu"]
    v = sorted(run.samples("put/gpu/8", "put_completion", 8))
    assert len(line.get_xdata()) == fig_cdf.MOST_POINTS < len(v)
    assert list(line.get_xdata()[-200:]) == v[-200:]
    assert all(y == (len(v) - v.index(x)) / len(v) for x, y in zip(*line.get_data()))


# What is written in a figure.

@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("width", [style.COLUMN, style.PAGE])
def test_labels_units_footer_and_nothing_cut_off(whole, name, width):
    _, fig = drawn(FIGURES[name], whole, width=width)
    said = texts(fig)
    for words in ("virtual NIC", "host SM", "oversubscribed: proxy", "putscope synthetic", "GPU: none",
                  "NIC: mlx5_0"):
        assert words in " ".join(said.split("\n")), words
    assert "n = 200" in said or "n = 10" in said
    assert fig.get_figwidth() == width
    assert min(t.get_fontsize() for t in fig.findobj(style.matplotlib.text.Text)) >= 7
    box = fig.get_tightbbox(fig.canvas.get_renderer())      # inches, of all that is drawn
    assert min(box.x0, box.y0) >= -.01
    assert box.x1 <= width + .01 and box.y1 <= fig.get_figheight() + .01
    for ax in fig.axes:
        axis = ax.xaxis if name in ("paths", "cdf") else ax.yaxis
        if axis.get_label_text() or name != "components":     # there the first of a row has it
            assert any(u in axis.get_label_text() for u in ("(ns", "(µs", "(ms", "(%"))
    assert fig.axes[0].get_ylabel() or name == "paths"


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("width", [style.COLUMN, style.PAGE])
def test_nothing_lies_on_top_of_another(whole, name, width):
    _, fig = drawn(FIGURES[name], whole, width=width)
    renderer = fig.canvas.get_renderer()
    boxes = [(a, a.get_window_extent(renderer)) for a in fig.texts + fig.legends]
    boxes += [(a, a.get_tightbbox(renderer)) for a in fig.axes if a.get_visible()]
    for i, (a, p) in enumerate(boxes):
        for b, q in boxes[:i]:
            apart = min(p.x1, q.x1) - max(p.x0, q.x0), min(p.y1, q.y1) - max(p.y0, q.y0)
            assert min(apart) <= 2.5, f"{a} and {b}"        # pixels at 100 to the inch


def test_svg_carries_the_virtual_label(whole, written):
    for name in FIGURES:
        assert "<!-- virtual NIC · host SM" in (whole / "figures" / f"{name}.svg").read_text()


def test_natures_are_told_apart(tmp_path):
    cases = [maker.case("gpu", 8, nature="hardware", sm="gpu"), maker.case("proxy", 8, sm="gpu")]
    said = texts(drawn(fig_paths, maker.write(tmp_path / "mixed", cases))[1])
    assert "virtual NIC · hardware and virtual mixed" in said and "host SM" not in said
    said = texts(drawn(fig_paths, maker.write(tmp_path / "hw", cases[:1],
                                              ranks=[maker.rank("GPU X", "mlx5_2", False)]))[1])
    assert "\nhardware" in said and "virtual" not in said and "GPU: GPU X; NIC: mlx5_2" in said


def test_a_host_sm_on_a_real_nic_is_not_called_a_virtual_nic(tmp_path):
    folder = maker.write(tmp_path / "r", [maker.case("gpu", 8)], ranks=[maker.rank(None, "m", False)])
    said = texts(drawn(fig_paths, folder)[1])
    assert "host SM" in said and "virtual NIC" not in said


def test_waived_and_failed_cases_are_named(tmp_path):
    cases = [maker.case("gpu", 8), maker.case("proxy", 8, status="failed", reason="error CQE"),
             maker.case("host", 8, status="waived", reason="no CUDA device")]
    said = texts(drawn(fig_paths, maker.write(tmp_path / "r", cases), width=style.PAGE)[1])
    assert "not measured: host waived: no CUDA device" in said
    assert "failed: proxy" in said


def test_labels_say_what_differs_and_no_more(tmp_path):
    cases = [maker.case("gpu", 8, id=f"o/{o}/{i}", ordering=o, inline=i)
             for o in ("none", "sys-fence") for i in ("inline", "pointer")] + [maker.case("proxy", 8)]
    run = load.Run(str(maker.write(tmp_path / "r", cases)))
    assert [f[0] for f in pick.at_size(run, "issue", 8)] == [
        "gpu, none, inline", "gpu, none, pointer", "gpu, sys-fence, inline", "gpu, sys-fence, pointer",
        "proxy"]
    assert [f[0] for f in pick.at_size(run, "issue", 8, ["none"])] == ["gpu, inline", "gpu, pointer"]


def test_inline_then_pointer_is_one_line_and_said(tmp_path):
    cases = [maker.case("gpu", s, inline="inline" if s < 29 else "pointer") for s in (8, 28, 64)]
    _, fig = drawn(fig_size, maker.write(tmp_path / "r", cases))
    assert list(lines(fig.axes[0])["gpu"].get_xdata()) == [8, 28, 64]
    assert "inline up to 28 B, then by pointer: gpu" in texts(fig)


def test_a_falling_median_is_noted(tmp_path, monkeypatch):
    monkeypatch.setattr(maker, "values", lambda rng, path, m, size, n:
                        [(500 if size == 64 else 1000) + rng.random() for _ in range(n)])
    folder = maker.write(tmp_path / "r", [maker.case("gpu", s) for s in (8, 64, 256)])
    _, fig = drawn(fig_size, folder)
    assert "issue p50 falls as size grows: gpu 8 B to 64 B" in texts(fig)
    assert list(lines(fig.axes[0])["_falls gpu"].get_xdata()) == [64]


def test_no_more_lines_than_can_be_told_apart(tmp_path):
    cases = [maker.case("gpu", 8, id=f"b/{q}", qps=q) for q in range(1, 13)] + [maker.case("host", 8)]
    _, fig = drawn(fig_cdf, maker.write(tmp_path / "r", cases, metrics=("issue",)))
    assert len(fig.axes[0].get_lines()) == 8 and "host" in lines(fig.axes[0])
    assert "8 of 13 lines drawn" in texts(fig)


@pytest.mark.parametrize("size,text", [(1, "1 B"), (1000, "1000 B"), (1024, "1 KiB"), (1500, "1500 B"),
                                       (1048577, "1 MiB+1"), (4194304, "4 MiB"), (65535, "64 KiB-1")])
def test_byte_labels(size, text):
    assert style.bytes_text(size) == text


def test_size_axis_ticks_have_byte_labels(whole):
    _, fig = drawn(fig_size, whole)
    shown = [t.get_text() for t in fig.axes[0].get_xticklabels() if t.get_text()]
    assert fig.axes[0].get_xscale() == "log" and all(t.endswith("B") for t in shown)


# Small and odd runs.

def test_one_size_one_path_one_metric(tmp_path):
    folder = maker.write(tmp_path / "r", [maker.case("host", 8)], n=10, metrics=("rtt",), parts=())
    r = plot(folder, "--format", "svg")
    assert r.returncode == 0, r.stderr
    assert "skipped size: needs issue" in r.stdout and "skipped components: needs `wall`" in r.stdout
    assert sorted(p.name for p in (folder / "figures").iterdir()) == ["cdf.svg", "paths.svg"]


def test_missing_part_is_said(tmp_path):
    folder = maker.write(tmp_path / "r", FEW, parts=("kernel", "exposed_comm", "unaccounted"))
    assert "CPU wait not recorded: gpu; proxy; host" in texts(drawn(fig_components, folder)[1])


def test_a_stopped_run_is_drawn_and_marked(tmp_path):
    folder = maker.write(tmp_path / "r", FEW, status="incomplete")
    with open(folder / "samples.csv", "a") as f:
        f.write("put/gpu/8,issue,8,99")             # the line being written when it was killed
    (folder / "summary.csv").unlink()
    r = plot(folder, "--format", "svg")
    assert r.returncode == 0, r.stderr
    assert "no summary.csv" in r.stdout and "was cut short by the stop" in r.stdout
    for name in FIGURES:
        assert "incomplete" in (folder / "figures" / f"{name}.svg").read_text()
    run, fig = drawn(fig_size, folder)
    assert all(row.lo is None for row in run.rows)
    full = load.Run(str(maker.write(tmp_path / "full", FEW)))
    assert [(r.n, r.p50, r.p99, r.max) for r in sorted(run.rows)] == \
        [(r.n, pytest.approx(r.p50), r.p99 and pytest.approx(r.p99), r.max) for r in sorted(full.rows)]


def test_one_incomplete_case_is_named(tmp_path):
    cases = [maker.case("gpu", 8), maker.case("host", 8, status="incomplete")]
    assert "incomplete: host" in texts(drawn(fig_paths, maker.write(tmp_path / "r", cases))[1])


# Bad input: exit 2, one line that names the file and the line, nothing written.

def cut(path, keep):
    path.write_bytes(path.read_bytes()[:keep])


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def head_only(path):
    path.write_text(path.read_text().split("\n")[0] + "\n")


BAD = {
    "no run.json": (lambda d: (d / "run.json").unlink(), "run.json: not there"),
    "cut run.json": (lambda d: cut(d / "run.json", 300), "run.json:"),
    "run.json a list": (lambda d: (d / "run.json").write_text("[]"), "an object was expected"),
    "no cases": (lambda d: (d / "run.json").write_text("{}"), "no list `cases`"),
    "cut summary": (lambda d: cut(d / "summary.csv", 400), "truncated file"),
    "empty summary": (lambda d: cut(d / "summary.csv", 0), "summary.csv:1: empty file"),
    "no samples.csv": (lambda d: (d / "samples.csv").unlink(), "samples.csv: not there"),
    "cut samples": (lambda d: cut(d / "samples.csv", 5000), "truncated file"),
    "samples cut at a line": (lambda d: cut(d / "samples.csv", (d / "samples.csv").read_bytes()
                                            .rindex(b"\nput/host/8,rtt") + 1), "of the 200 samples"),
    "no column": (lambda d: edit(d / "summary.csv", "p50_lo_ns", "lo"), "summary.csv:1: no column p50_lo"),
    "word for number": (lambda d: edit(d / "summary.csv", ",8,200,", ",8,many,"), "summary.csv:2: n is 'many'"),
    "unknown case": (lambda d: edit(d / "summary.csv", "put/gpu/8,", "put/x/8,"), "summary.csv:2: case 'put/x/8'"),
    "too many fields": (lambda d: edit(d / "samples.csv", "put/gpu/8,", "put/gpu/8,,"), "samples.csv:2: 8 fields"),
    "nan": (lambda d: edit(d / "samples.csv", ",8,0,0,1,", ",8,0,0,1,nan"), "samples.csv:2: bad sample"),
    "bad warmup": (lambda d: edit(d / "samples.csv", ",8,0,0,1,", ",8,0,0,2,"), "samples.csv:2: bad sample"),
    "no data": (lambda d: (head_only(d / "summary.csv"), head_only(d / "samples.csv")), "empty, not one sample"),
    "not text": (lambda d: (d / "summary.csv").write_bytes(b"\xff\xfe\n"), "summary.csv:1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_folder(tmp_path, capsys, name):
    folder = maker.write(tmp_path / "r", [maker.case(p, 8) for p in maker.BASE])
    spoil, words = BAD[name]
    spoil(folder)
    assert command.draw_all({"cdf": fig_cdf}, "x", [str(folder)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("plot: ") and words in err and err.count("\n") == 1
    assert not (folder / "figures").exists()


def test_bad_folder_through_the_command(tmp_path):
    r = plot(tmp_path / "none")
    assert (r.returncode, r.stdout) == (2, "") and "no such folder" in r.stderr
    folder = maker.write(tmp_path / "r", [maker.case("gpu", 8)])
    assert plot(folder, "--format", "bmp").returncode == 2
    assert plot().returncode == 2
    r = plot(folder, "--size", 9)
    assert r.returncode == 2 and "no figure could be drawn" in r.stderr and "at 9 B" in r.stdout
    (tmp_path / "file").write_text("")
    r = plot(folder, "--out", tmp_path / "file")
    assert r.returncode == 2 and "cannot be made" in r.stderr


def test_without_matplotlib_the_package_is_named(whole, tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('No module named matplotlib')\n")
    for script in ["all.py", *(f"fig_{n}.py" for n in FIGURES)]:
        r = plot(whole, script=script, PYTHONPATH=str(tmp_path))
        assert r.returncode == 2 and "install python3-matplotlib" in r.stderr
        assert "Traceback" not in r.stderr


def test_reading_alone_needs_no_matplotlib(whole):
    code = f"import sys; sys.path.insert(0, {str(PLOT)!r}); import load, pick; load.Run({str(whole)!r}); " \
           "sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-B", "-c", code]).returncode == 0


def test_maker_is_repeatable(tmp_path):
    a, b = (maker.write(tmp_path / d, FEW[:1]) for d in "ab")
    assert (a / "samples.csv").read_bytes() == (b / "samples.csv").read_bytes()
    assert json.loads((a / "run.json").read_text())["putscope"] == "synthetic"
