# SPDX-License-Identifier: Apache-2.0
"""style.py: the one look of all figures: widths, type, colours, units, what is printed around them.

Colours are those of Okabe and Ito (told apart by colour-blind readers); each path also has its own
line style and marker, and stacked parts have hatches, so that a grey print still reads.  No type is
smaller than 7 pt at the width a paper prints the figure with (3.3 in a column, 7 in a page).
The same data gives the same bytes: no date is written, and SVG ids come from a fixed salt.
"""
import math
import os
import sys

import load

os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
try:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib import ticker
    from matplotlib.colors import to_rgb
except ImportError as e:
    print(f"plot: matplotlib is needed to draw ({e}): install python3-matplotlib (apt or dnf), or "
          f"`pip install matplotlib`, for {sys.executable}", file=sys.stderr)
    sys.exit(2)

COLUMN, PAGE = 3.3, 7.0        # inches: one column, the page
SMALL, NORMAL, TITLE = 7, 7.5, 8.5   # pt
LINE = 1.3 * SMALL / 72        # inches: one line of small type

RC = {"font.family": "DejaVu Sans", "font.size": NORMAL, "axes.labelsize": NORMAL,
      "xtick.labelsize": SMALL, "ytick.labelsize": SMALL, "legend.fontsize": SMALL,
      "axes.titlesize": NORMAL, "axes.linewidth": .6, "lines.linewidth": 1.2,
      "lines.markersize": 4, "grid.linewidth": .4, "grid.color": "0.85", "axes.grid": True,
      "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
      "hatch.linewidth": .6, "legend.frameon": False, "pdf.fonttype": 42, "svg.fonttype": "path",
      "svg.hashsalt": "putscope", "savefig.dpi": 300, "figure.dpi": 100}

#        path          colour    line style               markers, one a variant
LOOKS = {"gpu":        ("#0072B2", "-", "oDph8"),
         "proxy":      ("#D55E00", (0, (5, 1.5)), "sPdX*"),
         "host":       ("#000000", (0, (5, 1.5, 1, 1.5)), "^v<>1"),
         "gpu-cpu-db": ("#CC79A7", (0, (1, 1)), "Xd*Ps"),
         "gpu-p2p":    ("#56B4E9", (0, (3, 1, 1, 1, 1, 1)), "*hpD8"),
         "none":       ("#666666", (0, (8, 2)), "d8pXP")}

#        part            colour    hatch   what the legend calls it
PARTS = {"kernel":       ("#0072B2", "", "kernel"),
         "exposed_comm": ("#E69F00", "////", "exposed communication"),
         "cpu_wait":     ("#F0E442", "....", "CPU wait"),
         "unaccounted":  ("#FFFFFF", "xxxx", "unaccounted")}

METRICS = {"issue": "issue", "put_completion": "put completion", "rtt": "round trip"}


def look(path, variant, variants):
    """kwargs of a line: the path gives colour and line style, the variant shade and marker."""
    colour, dash, markers = LOOKS.get(path, LOOKS["none"])
    pale = .65 * variant / max(variants - 1, 3)
    return {"color": tuple(c + (1 - c) * pale for c in to_rgb(colour)), "linestyle": dash,
            "marker": markers[variant % len(markers)],
            "markerfacecolor": "white" if variant % 2 else None, "markeredgewidth": .8}


def looks(things):
    """{label: look} for things that have a label and a path, in their order."""
    of_path = {}
    for label, path in dict(things).items():
        of_path.setdefault(path, []).append(label)
    return {label: look(path, i, len(mine)) for path, mine in of_path.items()
            for i, label in enumerate(mine)}


# Units.

def bytes_text(size):
    """8 B, 1 KiB, 4 MiB, 1 MiB+1: exact and short."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        near = round(size / unit)
        off = size - near * unit
        if near and abs(off) <= 16 and (unit > 1024 or off == 0 or size > 2048):
            return f"{near} {name}" + (f"{off:+d}" if off else "")
    return f"{size} B"


def unit_of(values):
    """(nanoseconds in it, its name) that suits the (logarithmic) middle of values given in ns."""
    values = [v for v in values if v is not None and v > 0] or [1]
    middle = math.sqrt(min(values) * max(values))
    for ns, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if middle >= .9 * ns:
            return ns, name
    return 1.0, "ns"


def time_text(ns):
    """Three digits and a unit."""
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")):
        if abs(ns) >= unit or unit == 1.0:
            v = ns / unit
            return f"{v:.{max(0, 2 - int(math.floor(math.log10(max(abs(v), 1)))))}f} {name}"
    return ""


def time_axis(axis, values, narrow=False):
    """Log scale.  Data stay in ns; tick labels are in one unit, returned for the axis label."""
    values = [v for v in values if v is not None and v > 0]
    unit, name = unit_of(values)
    text = ticker.FuncFormatter(lambda v, _: f"{v / unit:.6g}")
    axis.set_major_formatter(text)
    if values:
        lo, hi = min(values) / 1.25, max(values) * 1.25
        (axis.axes.set_xlim if axis.axis_name == "x" else axis.axes.set_ylim)(lo, hi)
        if hi / lo < 4:
            axis.set_major_locator(ticker.MaxNLocator(3 if narrow else 4, steps=[1, 2, 2.5, 5, 10]))
        else:
            axis.set_major_locator(ticker.FixedLocator(log_ticks(lo, hi, 3 if narrow else 10)))
        axis.set_minor_formatter(ticker.NullFormatter())
    return name


def log_ticks(lo, hi, most):
    """1-2-5, 1-3 or whole decades: the densest with no more than `most` ticks between lo and hi."""
    decades = range(math.floor(math.log10(lo)), math.ceil(math.log10(hi)) + 1)
    for subs in ((1, 2, 5), (1, 3), (1,)):
        ticks = [s * 10.0 ** d for d in decades for s in subs if lo <= s * 10.0 ** d <= hi]
        if len(ticks) <= most:
            break
    return ticks


def size_axis(ax, sizes, most=8):
    """log2 x, ticks at powers of two with byte labels, as many as fit."""
    ax.set_xscale("log", base=2)
    lo, hi = math.floor(math.log2(min(sizes))), math.ceil(math.log2(max(sizes)))
    step = max(1, math.ceil((hi - lo + 1) / most))
    ticks = [2 ** e for e in range(lo, hi + 1, step)]
    ax.xaxis.set_major_locator(ticker.FixedLocator(ticks))
    ax.xaxis.set_major_formatter(ticker.FixedFormatter([bytes_text(t) for t in ticks]))
    ax.xaxis.set_minor_locator(ticker.FixedLocator([2 ** e for e in range(lo, hi + 1)]))
    ax.xaxis.set_minor_formatter(ticker.NullFormatter())
    ax.set_xlim(min(sizes) / 2 ** .8, max(sizes) * 2 ** .8)
    plt.setp(ax.get_xticklabels(), rotation=40, ha="right", rotation_mode="anchor")
    ax.set_xlabel("message size")


# The frame around the panels.

def figure(width, heights, columns=1, **kwargs):
    """A figure of `width` inches with rows of the given heights; finish() adds room around them."""
    fig, axes = plt.subplots(len(heights), columns, figsize=(width, sum(heights)), squeeze=False,
                             layout="constrained", gridspec_kw={"height_ratios": heights}, **kwargs)
    fig.get_layout_engine().set(w_pad=.04, h_pad=.04, wspace=.02, hspace=.04)
    return fig, axes


def badges(run, cases):
    """What a reader must know before he believes a number: natures, and what was not as it should."""
    nic = run.facts()["nic_nature"]
    out = []
    virtual = [c for c in cases if c.get("nature") == "virtual"]
    if [c for c in virtual if c.get("sm") != "host-thread"] or (virtual and nic != "hardware"):
        out.append("virtual NIC")
    if any(c.get("sm") == "host-thread" for c in cases):
        out.append("host SM")
    if [c for c in cases if c.get("nature") == "hardware"]:
        out.append("hardware" if not virtual else "hardware and virtual mixed")
    if [c for c in cases if c.get("nature") not in ("hardware", "virtual")]:
        out.append("nature not recorded")
    out += some("oversubscribed", cases, [c for c in cases if c.get("oversubscribed")])
    cut = [c for c in cases if c.get("status") == "incomplete"]
    out += ["incomplete"] if run.incomplete else some("incomplete", cases, cut)
    return out + some("failed", cases, [c for c in cases if c.get("status") == "failed"])


def some(text, cases, marked):
    """`text`, with the paths it holds for where it does not hold for all."""
    if not marked:
        return []
    paths = dict.fromkeys(c["path"] for c in marked)
    return [text if len(marked) == len(cases) else f"{text}: {', '.join(paths)}"]


def footer(run, rows):
    facts = run.facts()
    n = [r.n for r in rows]
    n = f"n = {min(n)}" if min(n) == max(n) else f"n = {min(n)} to {max(n)}"
    return (f"putscope {facts['git'] or '(version not recorded)'}; GPU: {facts['gpu'] or 'none'}; "
            f"NIC: {facts['nic'] or 'not recorded'}; {n}")


def wrap(fig, text, width, size=SMALL, weight="normal"):
    """Lines of `text` no wider than `width` inches, as the font really sets them."""
    renderer = fig.canvas.get_renderer()
    prop = matplotlib.font_manager.FontProperties(family=RC["font.family"], size=size, weight=weight)

    def inches(s):
        return renderer.get_text_width_height_descent(s, prop, False)[0] / fig.dpi

    lines = [""]
    for w in text.split():
        if lines[-1] and inches(lines[-1] + " " + w) > width:
            lines.append("")
        lines[-1] = (lines[-1] + " " + w).strip()
        while inches(lines[-1]) > width and len(lines[-1]) > 8:    # one long word: an id
            cut = next(i for i in range(len(lines[-1]), 0, -1) if inches(lines[-1][:i]) <= width)
            lines[-1:] = [lines[-1][:cut], lines[-1][cut:]]
    return lines


def finish(fig, run, title, cases, rows, handles=(), notes=()):
    """Print title and badges above, legend, notes and footer below, and make room for them."""
    width, body = fig.get_size_inches()
    room, edge = width - .12, .06
    head = [(s, TITLE, "bold") for s in wrap(fig, title, room, TITLE, "bold")]
    head += [(s, SMALL, "bold") for s in wrap(fig, " · ".join(badges(run, cases)), room, SMALL,
                                              "bold")]
    foot = [s for n in notes for s in wrap(fig, n, room)] + wrap(fig, footer(run, rows), room)
    legend = legend_that_fits(fig, handles, room) if handles else None
    legend_in = legend.get_window_extent(fig.canvas.get_renderer()).height / fig.dpi if legend else 0
    top = sum(1.35 * size / 72 for _, size, _ in head) + .08
    bottom = len(foot) * LINE + legend_in + .1
    total = top + body + bottom
    fig.set_size_inches(width, total)
    fig.get_layout_engine().set(rect=(0, bottom / total, 1, body / total))
    y = total - edge
    for text, size, weight in head:
        fig.text(edge / width, y / total, text, size=size, weight=weight, va="top")
        y -= 1.35 * size / 72
    y = edge + len(foot) * LINE
    if legend:
        legend.set_bbox_to_anchor((.5, (y + .02) / total), fig.transFigure)
    for text in foot:
        fig.text(edge / width, y / total, text, size=SMALL, va="top", color="0.15")
        y -= LINE
    fig.draw_without_rendering()
    fig.set_layout_engine("none")       # laid out once, for all formats
    return fig


def legend_that_fits(fig, handles, room):
    """The legend in as many columns as the width holds."""
    for columns in range(min(len(handles), 6), 0, -1):
        legend = fig.legend(handles=handles, loc="lower center", ncol=columns, borderpad=.1,
                            handlelength=3, columnspacing=1.2, labelspacing=.3, borderaxespad=0)
        wide = legend.get_window_extent(fig.canvas.get_renderer()).width / fig.dpi
        if columns == 1 or wide <= room:
            return legend
        legend.remove()
    return None


def save(fig, path, fmt):
    """Write atomically: a half figure is never left behind."""
    meta = {"svg": {"Date": None, "Creator": "putscope"},
            "pdf": {"CreationDate": None, "Creator": "putscope", "Producer": None},
            "png": {"Software": "putscope"}}[fmt]
    part = f"{path}.part"
    try:
        fig.savefig(part, format=fmt, metadata=meta)
        os.replace(part, path)
    except OSError as e:
        raise load.PlotError(f"{path}: cannot be written: {e.strerror}") from None
    finally:
        if os.path.exists(part):
            os.remove(part)
