#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the time of a batch goes, over size: kernel, exposed communication, CPU wait, the rest.

Each bar stacks the p50 of the disjoint parts; the short line across it is the p50 of wall.  Medians
need not add up, so line and bar may differ a little.  Bars are in time where all walls are alike,
else in percent of wall, with the wall printed above.
"""
import sys

import command
import load
import pick
import style
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

MOST_BARS = 12      # a panel; more sizes are thinned out, ends kept


def draw(run, width=None, size=None, only=()):
    found = [bars_of(run, s, size) for s in pick.series(run, "wall", only)]
    found = [b for b in found if b[1]]
    if not found:
        raise load.NoData("needs `wall` and at least one of " + ", ".join(style.PARTS)
                          + ("" if size is None else f" at {size} B"))
    walls = [wall.p50 for _, bars in found for wall, _ in bars]
    share = max(walls) > 6 * min(walls)
    width = width or style.PAGE
    columns = min(len(found), 3 if width > 5 else 1)
    lines = -(-len(found) // columns)
    fig, axes = style.figure(width, [2.2] * lines, columns, sharey=True)
    unit, name = style.unit_of(walls)
    for ax, (s, bars) in zip(axes.flat, found):
        panel(ax, s, bars, share, unit)
    for ax in axes.flat[len(found):]:
        ax.set_visible(False)
    for ax in axes[:, 0]:
        ax.set_ylabel("share of wall (%)" if share else f"time of one batch ({name})")
    rows = [r for _, bars in found for wall, parts in bars for r in (wall, *parts.values())]
    drawn = {wall.size for _, bars in found for wall, _ in bars}
    notes = notes_of(found, {r.size for s, _ in found for r in s.rows} - drawn if size is None else ())
    notes += [f"not measured: {text}" for text in pick.not_measured(run, only)]
    return style.finish(fig, run, "Components of a batch over message size",
                        [run.cases[wall.case_id] for _, bars in found for wall, _ in bars], rows,
                        key(found), notes)


def bars_of(run, s, size):
    """(series, [(row of wall, {part: row})]), with no bar where no part was measured."""
    bars = []
    for wall in s.rows:
        parts = {p: run.row(wall.case_id, p, wall.size) for p in style.PARTS}
        parts = {p: r for p, r in parts.items() if r}
        if parts and wall.p50 > 0 and size in (None, wall.size):
            bars.append((wall, parts))
    if len(bars) > MOST_BARS:
        step = (len(bars) - 1) / (MOST_BARS - 1)
        bars = [bars[round(i * step)] for i in range(MOST_BARS)]
    return s, bars


def panel(ax, s, bars, share, unit):
    for x, (wall, parts) in enumerate(bars):
        scale = 100 / wall.p50 if share else 1 / unit
        up, down = 0.0, 0.0
        for part in (p for p in style.PARTS if p in parts):
            colour, hatch, label = style.PARTS[part]
            high = parts[part].p50 * scale
            ax.bar([x], [high], .75, bottom=up if high >= 0 else down, color=colour, hatch=hatch,
                   edgecolor="0.2", linewidth=.5, label=label if x == 0 else "_")
            up, down = (up + high, down) if high >= 0 else (up, down + high)
        ax.hlines(wall.p50 * scale, x - .45, x + .45, color="black", linewidth=1.3, zorder=3)
        ax.annotate(style.time_text(wall.p50), (x, max(up, wall.p50 * scale)), (0, 3),
                    textcoords="offset points", rotation=90, ha="center", va="bottom",
                    size=style.SMALL)
    ax.set_xticks(range(len(bars)), [style.bytes_text(wall.size) for wall, _ in bars], rotation=45,
                  ha="right", rotation_mode="anchor")
    ax.set_xlim(-.7, max(len(bars), 3) - .3)
    ax.grid(False, axis="x")
    ax.margins(y=.3)
    ax.set_title(s.label, loc="left")
    ax.set_xlabel("message size")


def notes_of(found, left_out):
    out = []
    for part in style.PARTS:
        lack = dict.fromkeys(s.label for s, bars in found for _, p in bars if part not in p)
        if lack:
            out.append(f"{style.PARTS[part][2]} not recorded: {', '.join(lack)}")
    if left_out:
        out.append(f"{len(left_out)} sizes left out for room")
    return out + ["bars: p50 of each part, one sample a batch; medians need not add up to that of wall"]


def key(found):
    there = {p for _, bars in found for _, parts in bars for p in parts}
    marks = [Patch(facecolor=c, hatch=h, edgecolor="0.2", linewidth=.5, label=label)
             for p, (c, h, label) in style.PARTS.items() if p in there]
    return marks + [Line2D([], [], color="black", linewidth=1.3, label="wall (number: its p50)")]


if __name__ == "__main__":
    sys.exit(command.draw_all({"components": sys.modules[__name__]}, __doc__))
