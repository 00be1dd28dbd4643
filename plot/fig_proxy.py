#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One put by the CPU proxy, hop by hop: a waterfall for each case, cold and warm side by side where both were measured.

Each bar starts where the last one of its case ended; the short line at its end is the 95 % interval of that hop
alone.  Below, the medians added up and put_completion as measured without the worker's stamps.
"""
import sys

import command
import load
import pick
import style
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

HOPS = ("enqueue", "ring_flight", "worker_pickup", "post_send", "nic", "cq_poll", "notify", "gpu_sees")
SIDES = {"enqueue": "SM", "ring_flight": "SM → worker", "worker_pickup": "worker", "post_send": "worker",
         "nic": "NIC", "cq_poll": "worker", "notify": "worker", "gpu_sees": "worker → SM"}
COLOURS = ("#56B4E9", "#D55E00", "#F0E442", "#0072B2")      # four greys in a grey print
HATCH = {"virtual": "////"}
MOST = len(COLOURS)
BAR = .14           # inches: one bar
WHOLE = "put_completion"


def draw(run, width=None, size=None, only=()):
    found = [(c, rows) for c in run.cases.values() if pick.wanted(c["id"], only)
             for rows in [hops_of(run, c)] if rows]
    states = [(c, rows) for c, rows in found if c.get("state")]
    found = states or found
    if not found:
        raise load.NoData("no case has the hops of a proxy (" + ", ".join(HOPS) + ")")
    size = size or min({c["size_bytes"] for c, _ in found}, key=lambda s: (s != 8, s))
    here = [(c, rows) for c, rows in found if c["size_bytes"] == size]
    if not here:
        raise load.NoData(f"no case has the hops of a proxy at {size} B")
    drawn = here[:MOST]
    names = pick.labels([c for c, _ in drawn])
    width = width or style.PAGE
    fig, axes = style.figure(width, [(len(HOPS) + 2) * (BAR * len(drawn) + .09) + .35])
    waterfall(axes[0, 0], run, drawn, width > 5)
    notes = ["medians need not add up to that of put_completion: the hops of each single put do"]
    notes += bounds_of(run, drawn)
    if len(here) > MOST:
        notes.append(f"{MOST} of {len(here)} cases drawn; choose others with --case TEXT")
    rows = [r for _, mine in drawn for r in mine.values()]
    title = f"One put of {style.bytes_text(size)} by the CPU proxy, hop by hop"
    return style.finish(fig, run, title, [c for c, _ in drawn], rows, key(drawn, names), notes)


def hops_of(run, case):
    """{hop: row}, and put_completion's; nothing where one of the hops is not there."""
    rows = {h: run.row(case["id"], h, case["size_bytes"]) for h in (*HOPS, WHOLE)}
    return rows if all(rows[h] for h in HOPS) else None


def waterfall(ax, run, drawn, detail):
    step = len(drawn) + .6
    ticks = []
    for i, hop in enumerate(HOPS):
        side = f"  ({SIDES[hop]})" if detail else ""
        ticks.append((i * step + (len(drawn) - 1) / 2, hop + side))
    ticks.append((len(HOPS) * step + (len(drawn) - 1) / 2, "sum"))
    ticks.append(((len(HOPS) + 1) * step + (len(drawn) - 1) / 2, "put_completion"))
    for k, (case, rows) in enumerate(drawn):
        at = 0.0
        for i, hop in enumerate(HOPS):
            bar(ax, k, i * step + k, at, rows[hop], case)
            at += rows[hop].p50
        ax.plot([0, at], [len(HOPS) * step + k] * 2, color="black", linewidth=1.1, marker="|", markersize=5,
                label=f"_sum {case['id']}")
        note(ax, at, len(HOPS) * step + k, at)
        if rows[WHOLE]:
            bar(ax, k, (len(HOPS) + 1) * step + k, 0.0, rows[WHOLE], case)
    ends = [sum(rows[h].p50 for h in HOPS) for _, rows in drawn]
    ends += [rows[WHOLE].hi or rows[WHOLE].p50 for _, rows in drawn if rows[WHOLE]]
    unit, name = style.unit_of([max(ends)])
    ax.set_xlim(min(0, *ends) * 1.05, max(ends) * (1.18 if detail else 1.35))
    ax.set_ylim((len(HOPS) + 2) * step - .7, -.8)
    ax.set_yticks(*zip(*ticks))
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    ax.xaxis.set_major_locator(style.ticker.MaxNLocator(6 if detail else 4, steps=[1, 2, 2.5, 5, 10]))
    ax.xaxis.set_major_formatter(style.ticker.FuncFormatter(lambda v, _: f"{v / unit:.6g}"))
    ax.set_xlabel(f"time since the put began ({name})")


def bar(ax, k, y, at, row, case):
    ax.barh([y], [row.p50], .86, left=at, color=COLOURS[k], hatch=HATCH.get(case.get("nature"), ""),
            edgecolor="0.2", linewidth=.5, label=f"{row.metric} {case['id']}", zorder=2)
    right = at + max(row.p50, 0)
    if None not in (row.lo, row.hi):
        ax.plot([at + row.lo, at + row.hi], [y, y], color="black", linewidth=.8, marker="|", markersize=4,
                markeredgewidth=.8, label=f"_interval {row.metric} {case['id']}", zorder=3)
        right = max(right, at + row.hi)
    note(ax, right, y, row.p50)


def note(ax, x, y, ns):
    ax.annotate(style.time_text(ns), (x, y), (3, 0), textcoords="offset points", va="center_baseline",
                size=style.SMALL, zorder=4, bbox={"pad": .2, "facecolor": "white", "edgecolor": "none"})


def bounds_of(run, drawn):
    """What ring_flight and gpu_sees are uncertain by."""
    bounds = [run.row(c["id"], "clock_bound", c["size_bytes"]) for c, _ in drawn]
    worst = max((r.p50 for r in bounds if r), default=None)
    if not worst:
        return []
    return [f"ring_flight and gpu_sees lie between two clocks that may be {style.time_text(worst)} apart"]


def key(drawn, names):
    marks = [Patch(facecolor=COLOURS[k], hatch=HATCH.get(c.get("nature"), ""), edgecolor="0.2", linewidth=.5,
                   label=names[c["id"]]) for k, (c, _) in enumerate(drawn)]
    return marks + [Line2D([], [], color="black", linewidth=.8, marker="|", markersize=4, label="95 % interval")]


if __name__ == "__main__":
    sys.exit(command.draw_all({"proxy": sys.modules[__name__]}, __doc__))
