#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Distribution at one size: the CDF, and beside it the tail on a log scale down to one sample.

Left: fraction of samples at or below a time.  Right: fraction at or above it; the last point is the
maximum, at 1/n.  All samples but warm-up count; where a line would hold thousands of points, those
between are thinned out evenly and the outermost 200 on each end are kept.
"""
import sys

import command
import load
import pick
import style
from matplotlib.lines import Line2D

METRICS = ("issue", "put_completion", "rtt")
MOST_POINTS, ENDS = 2000, 200


def draw(run, width=None, size=None, only=()):
    size = pick.best_size(run, METRICS, only) if size is None else size
    panels = {m: pick.at_size(run, m, size, only) for m in METRICS}
    panels = {m: found for m, found in panels.items() if found}
    if not panels:
        raise load.NoData(f"no {', '.join(METRICS)} was measured"
                          + ("" if size is None else f" at {size} B"))
    panels, cut = pick.few(panels, lambda f: f[1]["path"], lambda f: f[0])
    looks = style.looks((label, case["path"]) for f in panels.values() for label, case, _ in f)
    fig, axes = style.figure(width or style.PAGE, [1.7] * len(panels), 2)
    for pair, (metric, found) in zip(axes, panels.items()):
        panel(run, pair, metric, found, looks, narrow=fig.get_figwidth() < 5)
    cases = [case for found in panels.values() for _, case, _ in found]
    rows = [row for found in panels.values() for *_, row in found]
    notes = cut + [f"not measured: {text}" for text in pick.not_measured(run, only)]
    return style.finish(fig, run, f"Distribution of latency, {style.bytes_text(size)}", cases, rows,
                        [Line2D([], [], label=label, **ink) for label, ink in looks.items()], notes)


def panel(run, pair, metric, found, looks, narrow):
    times = []
    for i, (label, _, r) in enumerate(found):
        v = sorted(run.samples(r.case_id, metric, r.size))
        if not v:
            continue
        n, at = len(v), ranks(len(v))
        x = [v[k] for k in at]
        ink = dict(looks[label], markersize=3.5, markevery=(i / 40, .12), label=label)
        pair[0].plot(x, [(k + 1) / n for k in at], drawstyle="steps-post", **ink)
        pair[1].plot(x, [(n - k) / n for k in at], drawstyle="steps-pre", **ink)
        times += [v[0], v[-1]]
    for ax in pair:
        ax.set_xscale("log")
        unit = style.time_axis(ax.xaxis, times, narrow)
        ax.set_xlabel(f"{style.METRICS[metric]} ({unit}{'' if narrow else ', log'})")
    pair[0].set_ylim(0, 1.02)
    pair[0].set_ylabel("fraction ≤ x")
    pair[1].set_yscale("log")
    pair[1].yaxis.set_major_formatter("{x:g}")
    pair[1].set_ylabel("fraction ≥ x (log)")


def ranks(n):
    """Which of n sorted samples are drawn: all, or both ends and an even choice between."""
    if n <= MOST_POINTS:
        return range(n)
    step = (n - 2 * ENDS) / (MOST_POINTS - 2 * ENDS)
    middle = (ENDS + int(i * step) for i in range(MOST_POINTS - 2 * ENDS))
    return [*range(ENDS), *middle, *range(n - ENDS, n)]


if __name__ == "__main__":
    sys.exit(command.draw_all({"cdf": sys.modules[__name__]}, __doc__))
