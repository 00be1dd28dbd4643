#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One put, hop by hop: a waterfall along the trunk that forks to flag and CQE, and how well the hops close.

Each bar starts where the last one ended; both branches start where the trunk ends.  Hops that cannot be
told apart are one bar, named by its members; where such sums share hops, a set of them that shares none
is drawn and the others are named below.  An estimate below zero runs to the left, as it was solved.
Beside it, predicted against measured for each experiment.
"""
import functools
import sys
import textwrap

import command
import load
import pick
import style
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

GROUP = "base"      # the hops that are drawn without --group
TRUNK = ("wqe_build", "order", "doorbell_store", "doorbell_flight", "nic_exec", "wqe_fetch",
         "payload_fetch", "wire_out")
TAILS = {"flag": ("remote_write", "poll"), "cqe": ("wire_back", "cqe_write", "poll", "completion")}
NAMES = {"both": "trunk", "flag": "→ flag", "cqe": "→ CQE"}
COLOURS = {"both": "#56B4E9", "flag": "#F0E442", "cqe": "#D55E00"}     # three greys in a grey print
HATCH = {"virtual": "////", "hardware": ""}
HOWS = {"stamped": "stamped", "solved": "solved", "assumed": "assumed", "bound": "bounded only"}
MARKS = {("flag", False): "o", ("cqe", False): "s", ("flag", True): "^", ("cqe", True): "D"}
INTERVAL = {"color": "black", "linewidth": .8, "marker": "|", "markersize": 4, "markeredgewidth": .8}
BAND = .05          # of the measured value: the line between closed and not
ROW, MORE = .175, .115      # inches: a row, each further line of its label
MOST_NAMES = 12     # in a note


def draw(run, width=None, size=None, only=(), group=GROUP):
    hops = [h for h in run.hops if h.group == group]
    if not hops:
        groups = dict.fromkeys(h.group for h in run.hops)
        raise load.NoData(f"run.json holds no hops of group {group}, only of {', '.join(groups)}"
                          if groups else "run.json holds no hops (no experiments that split a put "
                          "were solved in this run)")
    if all(v is None for h in hops for v in (h.est, h.lo, h.hi)):
        raise load.NoData(f"not one hop of group {group} has an estimate or a bound")
    blocks, spare = blocks_of(hops)
    drawn = [h for rows in blocks.values() for h in rows]
    # A live clock says when the NIC looked, not how long a put took: it is no whole to close on.
    closure = [c for c in run.closure if c.group == group and c.branch != "live" and pick.wanted(c.experiment, only)]
    shown = [c for c in closure if c.predictable and None not in (c.measured, c.predicted)
             and min(c.measured, c.predicted) > 0]
    width = width or style.PAGE
    fig, axes = frame(width, blocks, bool(shown))
    waterfall(axes[0], blocks, width > 5)
    if shown:
        closure_panel(axes[1], shown)
    beside(fig, axes[0])
    cases = cases_of(run, hops, closure)
    ids = {c.get("id") for c in cases}
    rows = [r for r in run.rows if r.case_id in ids] or run.rows
    notes = notes_of(blocks, spare) + closure_notes(closure, shown)
    title = "One put, hop by hop" + ("" if group == GROUP else f": {group}")
    return style.finish(fig, run, title, cases, rows, key(drawn, shown), notes)


# Which rows make the bars.

def blocks_of(hops):
    """({both, flag, cqe: rows of the bars}, rows that share a hop with a bar)."""
    tail = {m for members in TAILS.values() for m in members}
    trunk = [h for h in hops if h.branch == "both" and not tail & set(h.members)]
    blocks = {"both": cover(in_path(trunk, TRUNK))}
    taken = frozenset(m for h in blocks["both"] for m in h.members)
    for branch, members in TAILS.items():
        mine = [h for h in hops if h.branch == branch or (h.branch == "both" and h not in trunk
                                                          and set(h.members) <= {*TRUNK, *members})]
        blocks[branch] = cover(in_path(mine, TRUNK + members), taken)
    drawn = [h for rows in blocks.values() for h in rows]
    return blocks, [h for h in hops if h not in drawn]


def in_path(rows, path):
    """Rows in order of their first hop; as they stand where a hop is not of this path."""
    if any(m not in path for h in rows for m in h.members):
        return rows
    return sorted(rows, key=lambda h: min(path.index(m) for m in h.members))


def cover(rows, taken=frozenset()):
    """The rows that share no hop and leave the fewest hops out; of equals the earlier ones."""
    @functools.lru_cache(maxsize=None)
    def best(i, taken):
        if i == len(rows):
            return 0, ()
        without = best(i + 1, taken)
        members = frozenset(rows[i].members)
        if members & taken:
            return without
        covered, chosen = best(i + 1, taken | members)
        with_it = covered + len(members) * (1 if rows[i].est is not None else .01), (i, *chosen)
        return with_it if with_it[0] >= without[0] else without
    return [rows[i] for i in best(0, taken)[1]]


# The waterfall.

def lines_of(h, narrow):
    """The members of a row, broken into lines that leave room for the bars."""
    text = "\u00a0+ ".join(h.members)
    wrapped = textwrap.wrap(text, 16 if narrow else 24, break_long_words=False)
    return [line.replace("\u00a0", " ") for line in wrapped]


def frame(width, blocks, closure):
    """Side by side on a page, one above the other in a column."""
    narrow = width <= 5
    rows = sum(ROW + MORE * (len(lines_of(h, narrow)) - 1) for b in blocks.values() for h in b)
    tall = .5 + rows + ROW * sum(1.5 for b in TAILS if blocks[b])
    if not closure:
        fig, axes = style.figure(width, [tall])
    elif narrow:
        fig, axes = style.figure(width, [tall, 1.9])
    else:
        fig, axes = style.figure(width, [max(tall, 2.4)], 2, width_ratios=[2.1, 1])
    return fig, list(axes.flat)


def waterfall(ax, blocks, detail):
    """Rows from the top: trunk, flag, CQE, each branch with a line from nothing to its end."""
    y, ticks, ax.marks = 0.0, [], []
    fork, ends, heads = 0.0, [0.0], []
    for branch, rows in blocks.items():
        if not rows:
            continue
        at, above = fork, None
        for h in rows:
            lines = lines_of(h, not detail)
            high = ROW + MORE * (len(lines) - 1)
            middle = y + high / 2
            if above is None and branch != "both":
                heads.append(middle)
            elif above is not None:
                ax.plot([at, at], [above, middle], color="0.4", linewidth=.5, zorder=1.5)
            bar(ax, branch, h, at, middle, detail)
            at += h.est or 0.0
            ends.append(at)
            ticks.append((middle, "\n".join(lines)))
            y, above = y + high, middle
        if branch == "both":
            fork, root = at, above
            continue
        ax.plot([0, at], [y + ROW / 2] * 2, color="black", linewidth=1.1, marker="|",
                markersize=5, label=f"_sum {branch}")
        part = " + ?" if any(h.est is None for h in blocks["both"] + rows) else ""
        ticks.append((y + ROW / 2, f"{NAMES[branch]}: {style.time_text(at)}{part}"))
        y += 1.5 * ROW
    if heads and blocks["both"]:
        ax.plot([fork, fork], [root, heads[-1]], color="0.4", linewidth=.7, zorder=1.5,
                linestyle=(0, (4, 2)), label="_fork")
    ax.axvline(0, color="0.4", linewidth=.6, zorder=1)
    ax.set_ylim(y, 0)
    ax.set_yticks(*zip(*ticks))
    for text in ax.get_yticklabels():
        text.set_weight("bold" if text.get_text().startswith("→") else "normal")
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    unit, name = style.unit_of([max(ends)])
    ax.xaxis.set_major_locator(style.ticker.MaxNLocator(6 if detail else 4, steps=[1, 2, 2.5, 5, 10]))
    ax.xaxis.set_major_formatter(style.ticker.FuncFormatter(lambda v, _: f"{v / unit:.6g}"))
    ax.set_xlabel(f"time since the first store of the put ({name})")


def bar(ax, branch, h, at, y, detail):
    """A row that starts at `at`: its bar, its interval, and what is to be written beside it."""
    edges = [at]
    high = h.est if h.est is not None else h.hi if h.hi is not None else h.lo
    if high is not None and (h.est is not None or h.how == "bound"):
        ax.barh([y], [high], .68 * ROW, left=at, label=f"{branch}: {h.hop}", zorder=2,
                color="white" if h.how == "bound" else COLOURS[branch], hatch=HATCH[h.nature],
                edgecolor="0.2", linewidth=.6, linestyle="--" if h.how == "bound" else "-")
        edges.append(at + high)
    known = [at + v for v in (h.lo, h.hi) if v is not None]
    if known:
        ax.plot(known, [y] * len(known), label=f"_interval {branch}: {h.hop}", zorder=3, **INTERVAL)
    edges += known
    ax.marks.append((y, min(edges), max(edges), number(h, detail)))


def number(h, detail):
    """The estimate, and where there is room its interval; a bound alone says its ends."""
    lo, hi = (None if v is None else style.time_text(v) for v in (h.lo, h.hi))
    if h.est is not None:
        text = style.time_text(h.est)
        return text + f"  [{lo}, {hi}]" if detail and lo and hi else text
    if lo and hi:
        return f"{lo} to {hi}"
    return f"≥ {lo}" if lo else f"≤ {hi}" if hi else "not known"


def beside(fig, ax):
    """Write the numbers right of their bars, or left where that side is too short."""
    fig.draw_without_rendering()
    renderer, inches = fig.canvas.get_renderer(), ax.get_window_extent().width / fig.dpi
    prop = style.matplotlib.font_manager.FontProperties(family=style.RC["font.family"],
                                                        size=style.SMALL)
    need = [renderer.get_text_width_height_descent(text, prop, False)[0] / fig.dpi + .09
            for *_, text in ax.marks]
    lo = min([0.0] + [left for _, left, *_ in ax.marks])
    hi = max([0.0] + [right for *_, right, _ in ax.marks])
    lo, hi = lo - .02 * (hi - lo), hi + .02 * (hi - lo) or 1.0
    for _ in range(200):        # ends well before: each round adds a fiftieth
        inch = (hi - lo) / inches
        if all(right + n * inch <= hi or left - n * inch >= lo
               for n, (_, left, right, _) in zip(need, ax.marks)):
            break
        hi += .02 * (hi - lo)
    ax.set_xlim(lo, hi)
    for n, (y, left, right, text) in zip(need, ax.marks):
        to_right = right + n * inch <= hi
        ax.annotate(text, (right if to_right else left, y), (3 if to_right else -3, 0), zorder=4,
                    textcoords="offset points", ha="left" if to_right else "right",
                    va="center_baseline", size=style.SMALL,
                    bbox={"pad": .3, "facecolor": "white", "edgecolor": "none"})


# The closure.

def closure_panel(ax, shown):
    ax.set_xscale("log")
    ax.set_yscale("log")
    for (branch, held_out), marker in MARKS.items():
        mine = [c for c in shown if (c.branch, c.held_out) == (branch, held_out)]
        ax.plot([c.measured for c in mine], [c.predicted for c in mine],
                label=f"{branch} {held_out}", **mark(branch, held_out))
    times = [v for c in shown for v in (c.measured, c.predicted)]
    unit = style.time_axis(ax.xaxis, times, narrow=True)
    style.time_axis(ax.yaxis, times, narrow=True)
    ends = ax.get_xlim()
    ax.fill_between(ends, [(1 - BAND) * v for v in ends], [(1 + BAND) * v for v in ends],
                    color="0.85", linewidth=0, zorder=.5, label="_band")
    ax.plot(ends, ends, color="0.4", linewidth=.6, zorder=.6, label="_equal")
    ax.set_title("closure", loc="left")
    ax.set_box_aspect(1)
    ax.set_anchor("N")
    ax.set_xlabel(f"measured ({unit}, log)")
    ax.set_ylabel(f"predicted ({unit}, log)")


def mark(branch, held_out):
    return {"marker": MARKS[branch, held_out], "linestyle": "none", "markersize": 4,
            "markerfacecolor": "none" if held_out else COLOURS[branch], "markeredgecolor": "0.1",
            "markeredgewidth": .7}


# What is written around them.

def cases_of(run, hops, closure):
    """The cases behind the hops, for the badges: those named by the closure, else all measured."""
    have = {r.case_id for r in run.rows}
    names = tuple({c.experiment for c in closure})
    measured = [c for c in run.cases.values() if c["id"] in have]
    cases = [c for c in measured if c["id"] in names
             or c["id"].endswith(tuple("/" + n for n in names))] or measured
    more = {h.nature for h in hops} - {c.get("nature") for c in cases}
    return cases + [{"path": "hops", "nature": n} for n in sorted(more)]


def notes_of(blocks, spare):
    rows = [h for b in blocks.values() for h in b]
    found = {how: dict.fromkeys(h.hop for h in rows if h.how == how) for how in load.HOWS}
    out = ["; ".join(f"{HOWS[how]}: {', '.join(names)}" for how, names in found.items() if names)]
    assumed = dict.fromkeys((h.hop, h.assumes) for h in rows if h.assumes)
    out += ["assumptions: " + "; ".join(f"{a} (for {hop})" for hop, a in assumed)] if assumed else []
    lost = dict.fromkeys(h.hop for h in rows if h.est is None)
    if lost:
        out.append(f"+ ?: without {', '.join(lost)}, which has no estimate"
                   if len(lost) == 1 else f"+ ?: without {', '.join(lost)}, which have no estimate")
    below = dict.fromkeys(h.hop for h in rows if h.est is not None and h.est < 0)
    out += [f"below zero, as solved: {', '.join(below)}"] if below else []
    if spare:
        out.append("shares hops with a bar, not drawn: "
                   + "; ".join(f"{NAMES[h.branch]}, {h.hop} {number(h, False)}" for h in spare))
    there = {m for h in rows for m in h.members}
    lack = [m for m in TRUNK if m not in there]
    for branch, members in TAILS.items():
        if blocks[branch]:
            mine = {m for h in blocks["both"] + blocks[branch] for m in h.members}
            lack += [f"{m} ({NAMES[branch]})" for m in members if m not in mine]
        else:
            out.append(f"no hops of the branch {NAMES[branch]} in this run")
    return out + ([f"hops without a bar: {', '.join(lack)}"] if lack else [])


def closure_notes(closure, shown):
    if not closure:
        return ["no closure in this run: nothing says how well the hops predict what was measured"]
    out = []
    for held_out, words in ((False, "fitted"), (True, "held out")):
        mine = [c for c in shown if c.held_out == held_out]
        far = [f"{c.experiment} {100 * residual(c):+.1f} %" for c in mine if abs(residual(c)) > BAND]
        if mine:
            out.append(f"{words}: {len(mine) - len(far)} of {len(mine)} predicted within "
                       f"±{100 * BAND:g} %" + (f"; outside: {some(far)}" if far else ""))
    lost = list(dict.fromkeys(c.experiment for c in closure if not c.predictable))
    out += [f"cannot be predicted without itself: {some(lost)}"] if lost else []
    lost = list(dict.fromkeys(c.experiment for c in closure if c.predictable and c not in shown))
    return out + ([f"no time to draw in the closure: {some(lost)}"] if lost else [])


def residual(c):
    return c.predicted / c.measured - 1 if c.residual is None else c.residual


def some(names):
    more = f"; and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return "; ".join(names[:MOST_NAMES]) + more


def key(rows, shown):
    patch = functools.partial(Patch, edgecolor="0.2", linewidth=.6)
    marks = []
    if any(h.nature == "virtual" for h in rows):
        marks.append(patch(facecolor="white", hatch=HATCH["virtual"], label="virtual"))
    if any(h.nature == "hardware" for h in rows):
        marks.append(patch(facecolor="0.7", label="hardware"))
    if any(h.how == "bound" for h in rows):
        marks.append(patch(facecolor="white", linestyle="--", label="bound (open)"))
    if any(None not in (h.lo, h.hi) for h in rows):
        marks.append(Line2D([], [], label="interval", **INTERVAL))
    for (branch, held_out) in MARKS:
        if any((c.branch, c.held_out) == (branch, held_out) for c in shown):
            marks.append(Line2D([], [], **mark(branch, held_out),
                                label=NAMES[branch] + (" held out" if held_out else " fitted")))
    return marks + ([Patch(facecolor="0.85", label=f"±{100 * BAND:g} %")] if shown else [])


if __name__ == "__main__":
    sys.exit(command.draw_all({"hops": sys.modules[__name__]}, __doc__))
