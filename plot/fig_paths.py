#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Paths side by side at one size: issue, put completion, round trip; p50, its interval, p99.

One panel a metric, one row a path (or a variant of a path), so that rows compare down the panel.
The number beside a row is its p50.  What was not measured is named below, with the reason.
"""
import sys

import command
import load
import pick
import style
from matplotlib.lines import Line2D

METRICS = ("issue", "put_completion", "rtt")
ROW = .2    # inches


def draw(run, width=None, size=None, only=()):
    size = pick.best_size(run, METRICS, only) if size is None else size
    panels = {m: pick.at_size(run, m, size, only) for m in METRICS}
    panels = {m: found for m, found in panels.items() if found}
    if not panels:
        raise load.NoData(f"no {', '.join(METRICS)} was measured"
                          + ("" if size is None else f" at {size} B"))
    looks = style.looks((label, case["path"]) for f in panels.values() for label, case, _ in f)
    fig, axes = style.figure(width or style.COLUMN,
                             [.45 + ROW * len(found) for found in panels.values()])
    for ax, (metric, found) in zip(axes[:, 0], panels.items()):
        panel(ax, metric, found, looks, detail=fig.get_figwidth() > 5)
    cases = [case for found in panels.values() for _, case, _ in found]
    rows = [row for found in panels.values() for *_, row in found]
    notes = [f"not measured: {text}" for text in pick.not_measured(run, only)]
    notes += [f"no {style.METRICS[m]} in this run" for m in METRICS if m not in panels]
    return style.finish(fig, run, f"Put paths side by side, {style.bytes_text(size)}", cases, rows,
                        key(rows), notes)


def panel(ax, metric, found, looks, detail):
    ax.set_xscale("log")
    times = []
    for y, (label, _, r) in enumerate(found):
        ink = dict(looks[label], linestyle="none", markersize=3.5)
        bars = None if r.lo is None or r.hi is None else [[r.p50 - r.lo], [r.hi - r.p50]]
        ax.errorbar([r.p50], [y], xerr=bars, capsize=4, elinewidth=1, label=label, **ink)
        if r.p99 is not None:
            ax.plot([r.p50, r.p99], [y, y], color=ink["color"], linewidth=.6, linestyle=":",
                    label="_to p99")
            ax.plot([r.p99], [y], marker="|", markersize=8, markeredgewidth=1.4,
                    color=ink["color"], linestyle="none", label="_p99")
        ax.text(1.01, y, number(r, detail), transform=ax.get_yaxis_transform(), va="center",
                size=style.SMALL)
        times += [r.p50, r.lo, r.hi, r.p99]
    ax.set_yticks(range(len(found)), [label for label, *_ in found])
    ax.set_ylim(len(found) - .4, -.6)
    ax.grid(False, axis="y")
    unit = style.time_axis(ax.xaxis, times)
    ax.set_xlabel(f"{style.METRICS[metric]} ({unit}, log)")


def number(r, detail):
    """p50, and where there is room its interval."""
    text = style.time_text(r.p50)
    if detail and r.lo is not None and r.hi is not None:
        text += f"  [{style.time_text(r.lo)}, {style.time_text(r.hi)}]"
    return text


def key(rows):
    grey = {"color": "0.3", "linestyle": "none"}
    marks = [Line2D([], [], marker="o", label="p50", **grey)]
    if any(r.lo is not None for r in rows):
        marks += [Line2D([], [], marker="|", markersize=5, color="0.3", label="95 % interval of p50")]
    if any(r.p99 is not None for r in rows):
        marks += [Line2D([], [], marker="|", markersize=8, markeredgewidth=1.4, label="p99", **grey)]
    return marks


if __name__ == "__main__":
    sys.exit(command.draw_all({"paths": sys.modules[__name__]}, __doc__))
