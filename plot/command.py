# SPDX-License-Identifier: Apache-2.0
"""command.py: the command line that all figure scripts share.

Exit: 0 drawn; 2 usage, no matplotlib, or a result folder that cannot be drawn, with the reason.
"""
import argparse
import os
import sys

import load
import style

FORMATS = ("svg", "pdf", "png")


def formats(text):
    chosen = [f.strip() for f in text.split(",") if f.strip()]
    bad = [f for f in chosen if f not in FORMATS]
    if bad or not chosen:
        raise argparse.ArgumentTypeError(f"'{text}': choose from {','.join(FORMATS)}")
    return list(dict.fromkeys(chosen))


def arguments(about, argv):
    p = argparse.ArgumentParser(description=about.strip().splitlines()[0],
                                epilog="Widths: column = 3.3 in, page = 7 in.")
    p.add_argument("run", metavar="RUN", help="result folder (results/RUN)")
    p.add_argument("--out", metavar="DIR", help="where to write; default RUN/figures")
    p.add_argument("--format", type=formats, default=list(FORMATS), metavar="LIST",
                   help="svg,pdf,png (default: all three)")
    p.add_argument("--width", choices=("column", "page"), help="default: each figure's own")
    p.add_argument("--size", type=int, metavar="BYTES",
                   help="size for figures of one size; default: where most paths were measured")
    p.add_argument("--case", action="append", default=[], metavar="TEXT",
                   help="only cases whose id contains TEXT (may be repeated)")
    p.add_argument("--group", metavar="NAME", help="which group of hops; default: base")
    return p.parse_args(argv)


def draw_all(figures, about, argv=None):
    """figures: {name: module}.  Draw each, say what is written and what is skipped and why."""
    args = arguments(about, argv)
    try:
        run = load.Run(args.run)
        out = args.out or os.path.join(run.folder, "figures")
        written = sum(draw(name, figure, run, args, out) for name, figure in figures.items())
    except load.PlotError as e:
        print(f"plot: {e}", file=sys.stderr)
        return 2
    for line in run.says:
        print(f"note: {line}")
    if not written:
        print(f"plot: {run.folder}: no figure could be drawn", file=sys.stderr)
    return 0 if written else 2


def draw(name, figure, run, args, out):
    """1 when the figure was written, 0 when the run holds nothing for it."""
    width = {"column": style.COLUMN, "page": style.PAGE}.get(args.width)
    with style.plt.style.context(["default", style.RC]):
        try:
            more = {"group": args.group} if args.group and hasattr(figure, "GROUP") else {}
            fig = figure.draw(run, width=width, size=args.size, only=args.case, **more)
        except load.NoData as e:
            print(f"skipped {name}: {e}")
            return 0
        try:
            os.makedirs(out, exist_ok=True)
        except OSError as e:
            raise load.PlotError(f"{out}: cannot be made: {e.strerror}") from None
        for fmt in args.format:
            path = os.path.join(out, f"{name}.{fmt}")
            style.save(fig, path, fmt)
            print(f"wrote {path}")
        style.plt.close(fig)
    return 1
