#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the time of a put goes (mean of its batch), over size: kernel, exposed communication, CPU wait, the rest.

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
    found = [(s, bars_of(run, s, size)) for s in pick.series(run, "wall", only)]
    found = [(s, bars) for s, bars in found if bars]
    if not found:
        raise load.NoData("needs `wall` and at least one of " + ", ".join(style.PARTS)
                          + ("" if size is None else f" at {size} B"))
    sizes = sorted({wall.size for _, bars in found for wall, _ in bars})
    if len(sizes) == 1:         # nothing to lay out over size: the paths share one panel
        panels = [("", [(s.label, *bars[0]) for s, bars in found])]
    else:
        panels = [(s.label, [(style.bytes_text(wall.size), wall, parts)
                             for wall, parts in thin(bars)]) for s, bars in found]
    walls = [wall for _, bars in panels for _, wall, _ in bars]
    narrow = len(sizes) == 1 and len(walls) <= 6
    fig = draw_panels(panels, width or (style.COLUMN if narrow else style.PAGE),
                      "" if len(sizes) == 1 else "message size")
    left_out = len(sizes) - len({wall.size for wall in walls})
    notes = notes_of(found, left_out)
    notes += [f"not measured: {text}" for text in pick.not_measured(run, only)]
    rows = [r for _, bars in panels for _, wall, parts in bars for r in (wall, *parts.values())]
    title = f"at {style.bytes_text(sizes[0])}" if len(sizes) == 1 else "over message size"
    return style.finish(fig, run, f"Components of a put {title}",
                        [run.cases[wall.case_id] for wall in walls], rows, key(found), notes)


def draw_panels(panels, width, xlabel):
    """panels: [(title, [(text under the bar, row of wall, {part: row})])]"""
    walls = [wall.p50 for _, bars in panels for _, wall, _ in bars]
    share = max(walls) > 6 * min(walls)
    unit, name = style.unit_of(walls)
    longest = max(len(text) for _, bars in panels for text, *_ in bars)
    columns = min(len(panels), 3 if width > 5 else 1)
    lines = -(-len(panels) // columns)
    fig, axes = style.figure(width, [1.9 + .035 * longest] * lines, columns, sharey=True)
    for ax, (title, bars) in zip(axes.flat, panels):
        panel(ax, bars, 1 / unit if not share else None)
        ax.set_title(title, loc="left")
        ax.set_xlabel(xlabel)
    for ax in axes.flat[len(panels):]:
        ax.set_visible(False)
    axes[0, 0].set_ylim(top=1.5 * max(ax.dataLim.y1 for ax in axes.flat[:len(panels)]))
    if share:
        axes[0, 0].set_yticks(range(0, 101, 25))
    for ax in axes[:, 0]:
        ax.set_ylabel("share of wall (%)" if share else f"time of one put ({name})")
    return fig


def bars_of(run, s, size):
    """[(row of wall, {part: row})], with no bar where no part was measured."""
    bars = []
    for wall in s.rows:
        parts = {p: run.row(wall.case_id, p, wall.size) for p in style.PARTS}
        parts = {p: r for p, r in parts.items() if r}
        if parts and wall.p50 > 0 and size in (None, wall.size):
            bars.append((wall, parts))
    return bars


def thin(bars):
    if len(bars) <= MOST_BARS:
        return bars
    step = (len(bars) - 1) / (MOST_BARS - 1)
    return [bars[round(i * step)] for i in range(MOST_BARS)]


def panel(ax, bars, scale):
    """scale: from ns to the unit of the axis; None: each bar in percent of its wall."""
    for x, (_, wall, parts) in enumerate(bars):
        by = scale or 100 / wall.p50
        up, down = 0.0, 0.0
        for part in (p for p in style.PARTS if p in parts):
            colour, hatch, label = style.PARTS[part]
            high = parts[part].p50 * by
            ax.bar([x], [high], .75, bottom=up if high >= 0 else down, color=colour, hatch=hatch,
                   edgecolor="0.2", linewidth=.5, label=label)
            up, down = (up + high, down) if high >= 0 else (up, down + high)
        ax.hlines(wall.p50 * by, x - .45, x + .45, color="black", linewidth=1.3, zorder=3)
        ax.annotate(style.time_text(wall.p50), (x, max(up, wall.p50 * by)), (0, 3),
                    textcoords="offset points", rotation=90, ha="center", va="bottom",
                    size=style.SMALL)
    ax.set_xticks(range(len(bars)), [text for text, *_ in bars], rotation=40, ha="right",
                  rotation_mode="anchor")
    ax.set_xlim(-.7, max(len(bars), 3) - .3)
    ax.grid(False, axis="x")


def notes_of(found, left_out):
    out = []
    for part in style.PARTS:
        lack = dict.fromkeys(s.label for s, bars in found for _, p in bars if part not in p)
        if lack:
            out.append(f"{style.PARTS[part][2]} not recorded: {'; '.join(lack)}")
    if left_out:
        out.append(f"{left_out} sizes left out for room")
    return out + ["bars: p50 of each part, one sample a batch; medians need not add up to that of "
                  "wall"]


def key(found):
    there = {p for _, bars in found for _, parts in bars for p in parts}
    marks = [Patch(facecolor=c, hatch=h, edgecolor="0.2", linewidth=.5, label=label)
             for p, (c, h, label) in style.PARTS.items() if p in there]
    return marks + [Line2D([], [], color="black", linewidth=1.3, label="wall (number: its p50)")]


if __name__ == "__main__":
    sys.exit(command.draw_all({"components": sys.modules[__name__]}, __doc__))
