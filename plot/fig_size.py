#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Latency over message size: p50 with its interval, and the band up to p99, one line a path.

Where a median falls as the size grows, and the two intervals do not meet, the figure says so: a
latency that shrinks with size asks for a reason (inline to pointer, another algorithm, a bad run).
"""
import math
import sys

import command
import load
import pick
import style
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

METRICS = ("issue", "put_completion", "rtt")


def draw(run, width=None, size=None, only=()):
    panels = {m: pick.series(run, m, only) for m in METRICS}
    alone = [f"{s.label} ({style.METRICS[m]})" for m in panels for s in panels[m] if len(s.rows) < 2]
    panels = {m: [s for s in found if len(s.rows) > 1] for m, found in panels.items()}
    panels = {m: found for m, found in panels.items() if found}
    if not panels:
        raise load.NoData("needs " + ", ".join(METRICS[:-1]) + f" or {METRICS[-1]} at two sizes or "
                          "more; this run has " + ("one size a path" if alone else "none"))
    panels, cut = pick.few(panels, lambda s: s.path, lambda s: s.label)
    width = width or style.PAGE
    columns = len(panels) if width > 5 else 1
    fig, axes = style.figure(width, [2.3] * (len(panels) // columns), columns)
    looks = style.looks((s.label, s.path) for found in panels.values() for s in found)
    for ax, (metric, found) in zip(axes.flat, panels.items()):
        panel(ax, metric, found, looks, most=8 if width / columns > 3 else 6)
    drawn = [s for found in panels.values() for s in found]
    notes = cut + [n for m, found in panels.items() for n in falls(m, found)] + mixed(drawn)
    notes += [f"one size only, not drawn: {', '.join(alone)}"] if alone else []
    notes += [f"not measured: {text}" for text in pick.not_measured(run, only)]
    rows = [r for s in drawn for r in s.rows]
    return style.finish(fig, run, "Latency over message size", [c for s in drawn for c in s.cases],
                        rows, key(looks, rows), notes)


def panel(ax, metric, found, looks, most):
    ax.set_yscale("log")
    for s in found:
        ink = looks[s.label]
        x, p50 = [r.size for r in s.rows], [r.p50 for r in s.rows]
        p99 = [math.nan if r.p99 is None else r.p99 for r in s.rows]
        ax.fill_between(x, p50, p99, color=ink["color"], alpha=.13, linewidth=0)
        ax.plot(x, p99, color=ink["color"], linestyle=ink["linestyle"], linewidth=.5,
                label="_p99 " + s.label)
        ax.plot(x, p50, label=s.label, **ink)
        known = [r for r in s.rows if r.lo is not None and r.hi is not None]
        if known:
            ax.errorbar([r.size for r in known], [r.p50 for r in known], fmt="none",
                        yerr=[[r.p50 - r.lo for r in known], [r.hi - r.p50 for r in known]],
                        ecolor=ink["color"], elinewidth=.8, capsize=1.5)
        ring = [r for _, r in falling(s.rows)]
        ax.plot([r.size for r in ring], [r.p50 for r in ring], linestyle="none", marker="o",
                markersize=9, markerfacecolor="none", color="0.3", markeredgewidth=.7,
                label="_falls " + s.label)
    rows = [r for s in found for r in s.rows]
    style.size_axis(ax, [r.size for r in rows], most)
    unit = style.time_axis(ax.yaxis, [v for r in rows for v in (r.p50, r.lo, r.hi, r.p99)])
    ax.set_ylabel(f"{style.METRICS[metric]} ({unit}, log)")


def falling(rows):
    """Neighbours whose median falls with size by more than their intervals."""
    return [(a, b) for a, b in zip(rows, rows[1:])
            if (b.p50 if b.hi is None else b.hi) < (a.p50 if a.lo is None else a.lo)]


def falls(metric, found):
    """One note a metric, or none."""
    steps = [f"{s.label} {style.bytes_text(a.size)} to {style.bytes_text(b.size)} "
             f"({style.time_text(a.p50)} to {style.time_text(b.p50)})"
             for s in found for a, b in falling(s.rows)]
    if not steps:
        return []
    more = f"; and {len(steps) - 4} more" if len(steps) > 4 else ""
    return [f"○ {style.METRICS[metric]} p50 falls as size grows: {'; '.join(steps[:4])}{more}"]


def mixed(drawn):
    """Lines that hold inline and gathered puts: up to where they are inline."""
    upto = {}
    for s in drawn:
        inline = [r.size for c, r in zip(s.cases, s.rows) if c.get("inline") == "inline"]
        if inline and len(inline) < len(s.rows):
            upto.setdefault(max(inline), {})[s.label] = None
    return [f"inline up to {style.bytes_text(size)}, then by pointer: {'; '.join(lines)}"
            for size, lines in upto.items()]


def key(looks, rows):
    marks = [Line2D([], [], label=label, **ink) for label, ink in looks.items()]
    if any(r.p99 is not None for r in rows):
        marks.append(Patch(facecolor="0.85", edgecolor="0.3", linewidth=.5, label="p50 to p99"))
    return marks


if __name__ == "__main__":
    sys.exit(command.draw_all({"size": sys.modules[__name__]}, __doc__))
