# SPDX-License-Identifier: Apache-2.0
"""load.py: the only reader of a result folder: run.json, summary.csv, samples.csv.

It reads, checks the form, and hands out rows.  It measures nothing anew: medians, intervals and
percentiles are those of summary.csv.  Only where a run was stopped before summary.csv was written are
p50, p90, p99, p99.9 and max taken from the samples, without intervals, and the run says `incomplete`.

Every fault is a PlotError whose text names the file and the line; the scripts turn it into exit 2.
"""
import array
import collections
import csv
import json
import math
import os

class PlotError(Exception):
    """What is wrong, on what, and what to do next: one line for the user."""


class NoData(PlotError):
    """The run is sound but holds nothing for this figure."""


# One row of summary.csv.  Fields that the file leaves empty are None.
Row = collections.namedtuple("Row", "case_id metric size n p50 lo hi p90 p99 p99_9 max")

# One hop of a put, or a sum of hops that cannot be told apart; one experiment predicted from them.
# Times are ns and None where not known; an estimate may be negative.
Hop = collections.namedtuple("Hop", "hop members branch est lo hi nature how assumes group")
Closure = collections.namedtuple("Closure", "experiment branch measured predicted residual held_out "
                                 "predictable group")
BRANCHES = ("flag", "cqe")      # where the path forks behind wire_out; `both`: the trunk before it
NATURES = ("virtual", "hardware")
HOWS = ("stamped", "solved", "assumed", "bound")

SUMMARY = ("case_id", "metric", "size_bytes", "n", "p50_ns", "p50_lo_ns", "p50_hi_ns",
           "p90_ns", "p99_ns", "p99_9_ns", "max_ns")
SAMPLES = ("case_id", "metric", "size_bytes", "batch", "seq", "warmup", "value_ns")

class Run:
    """A result folder.  `says` holds what the reader should know of it, one line each."""

    def __init__(self, folder):
        self.folder = os.path.normpath(folder)
        self.says = []
        if not os.path.isdir(self.folder):
            raise PlotError(f"{folder}: no such folder; give a result folder (results/RUN)")
        self.meta = read_json(self._path("run.json"))
        self.cases = cases_of(self.meta, self._path("run.json"))
        self.hops = hops_of(self.meta, self._path("run.json"))
        self.closure = closure_of(self.meta, self._path("run.json"))
        self.incomplete = says_incomplete(self.meta)
        if self.incomplete:
            self.says.append("run.json says that the run was stopped: what was measured is drawn")
        self._samples = None
        self._warmup = 0
        if os.path.exists(self._path("summary.csv")):
            self.rows = self._read_summary()
        else:
            self.incomplete = True
            self.says.append("no summary.csv: the run was stopped before its end; percentiles are "
                             "taken from the samples, without intervals")
            self.rows = self._rows_from_samples()
        # Bounds (path none, such as flag-rtt) are no put: they stand in the report, not among the paths.
        self.rows = [r for r in self.rows if self.cases[r.case_id]["path"] != "none"]
        self._by_key = {r[:3]: r for r in self.rows}
        if not self.rows:
            raise PlotError(f"{self.folder}: empty, not one sample was recorded; nothing to draw")

    def _path(self, name):
        return os.path.join(self.folder, name)

    def row(self, case_id, metric, size):
        return self._by_key.get((case_id, metric, size))

    def samples(self, case_id, metric, size):
        """The values in order of time, warm-up left out; checked against n of the summary."""
        if self._samples is None:
            self._samples = self._read_samples()
        key = (case_id, metric, size)
        values = self._samples.get(key, array.array("d"))
        row = self.row(*key)
        if row is not None and row.n != len(values):
            text = (f"{self._path('samples.csv')}: holds {len(values)} of the {row.n} samples of "
                    f"{case_id} {metric} {size} B that summary.csv counts")
            if not self.incomplete:
                raise PlotError(text + ": truncated? (`putscope check` tells more)")
            if text not in self.says:
                self.says.append(text)
        return values

    def _read_summary(self):
        path, rows, seen = self._path("summary.csv"), [], set()
        for line, f in read_csv(path, SUMMARY, self.incomplete, self.says):
            where = f"{path}:{line}"
            if f["case_id"] not in self.cases:
                raise PlotError(f"{where}: case '{f['case_id']}' is not in run.json")
            if not f["metric"]:
                raise PlotError(f"{where}: metric is empty")
            key = (f["case_id"], f["metric"], whole(f, "size_bytes", where))
            if key in seen:
                raise PlotError(f"{where}: {key[0]} {key[1]} {key[2]} B stands here twice")
            seen.add(key)
            row = Row(*key, whole(f, "n", where), *(number(f, c, where) for c in SUMMARY[4:]))
            if row.n and row.p50 is None:
                raise PlotError(f"{where}: n is {row.n} but p50_ns is empty")
            if row.n and None not in (row.lo, row.hi) and not row.lo <= row.p50 <= row.hi:
                raise PlotError(f"{where}: p50_ns {row.p50:g} lies outside its interval "
                                f"{row.lo:g} .. {row.hi:g}")
            if row.n:
                rows.append(row)
        return rows

    def _read_samples(self):
        path = self._path("samples.csv")
        out = collections.defaultdict(lambda: array.array("d"))
        for line, f in read_csv(path, SAMPLES, self.incomplete, self.says):
            try:
                size, batch, seq = int(f["size_bytes"] or 0), int(f["batch"]), int(f["seq"])
                value = float(f["value_ns"])
                good = (f["case_id"] in self.cases and f["metric"] and f["warmup"] in "01"
                        and f["warmup"] and math.isfinite(value) and min(size, batch, seq) >= 0)
            except ValueError:
                good = False
            if not good:
                raise PlotError(f"{path}:{line}: bad sample: {bad_sample(f, self.cases)}")
            if f["warmup"] == "0":
                out[f["case_id"], f["metric"], size].append(value)
            else:
                self._warmup += 1
        return out

    def _rows_from_samples(self):
        self._samples = self._read_samples()
        rows = []
        for key, values in self._samples.items():
            v = sorted(values)
            n = len(v)
            rows.append(Row(*key, n, quantile(v, .5), None, None, quantile(v, .9),
                            quantile(v, .99) if n >= 100 else None,
                            quantile(v, .999) if n >= 10000 else None, v[-1]))
        if not rows and self._warmup:
            raise PlotError(f"{self.folder}: only warm-up samples were recorded; nothing to draw")
        return rows

    # What stands under every figure.
    def facts(self):
        """Version, GPU and NIC of rank 0; None where run.json does not say."""
        rank = first(self.meta, "ranks.0") or {}
        sm, nic = first(rank, "sm") or {}, first(rank, "nics.0") or {}
        nature = {True: "virtual", False: "hardware"}.get(nic.get("virtual"))
        return {"git": first(self.meta, "putscope"),
                "gpu": sm.get("name") if sm.get("kind") == "gpu" else None,
                "nic": nic.get("device"), "nic_nature": nature}


def read_json(path):
    try:
        with open(path, encoding="utf-8") as f:
            meta = json.load(f)
    except FileNotFoundError:
        raise PlotError(f"{path}: not there; is this a result folder of `putscope run`?") from None
    except json.JSONDecodeError as e:
        raise PlotError(f"{path}:{e.lineno}: not whole JSON ({e.msg}): truncated?") from None
    except (OSError, UnicodeDecodeError) as e:
        raise PlotError(f"{path}: cannot be read: {e}") from None
    if not isinstance(meta, dict):
        raise PlotError(f"{path}:1: an object was expected, with the facts of a run")
    return meta


def cases_of(meta, path):
    cases = meta.get("cases")
    if not isinstance(cases, list):
        raise PlotError(f"{path}: no list `cases`; is it the run.json of a result folder?")
    out = {}
    for i, c in enumerate(cases):
        if not isinstance(c, dict) or not isinstance(c.get("id"), str) or not c["id"]:
            raise PlotError(f"{path}: cases[{i}] has no id")
        if not isinstance(c.get("path"), str):
            raise PlotError(f"{path}: case {c['id']} has no path")
        if c["id"] in out:
            raise PlotError(f"{path}: case {c['id']} stands there twice")
        out[c["id"]] = c
    return out


def hops_of(meta, path):
    """Every Hop of run.json, in path order; none where the run solved none."""
    out, seen = [], set()
    for where, h in objects(meta, "hops", path):
        text = {k: one_of(h, k, allowed, where) for k, allowed in (
            ("hop", None), ("branch", ("both", *BRANCHES)), ("nature", NATURES), ("how", HOWS),
            ("group", None))}
        members = h.get("members")
        if (not isinstance(members, list) or not members
                or not all(isinstance(m, str) and m for m in members)):
            raise PlotError(f"{where}: members is not a list of hops")
        est, lo, hi = (finite(h, k, where) for k in ("est_ns", "lo_ns", "hi_ns"))
        if None not in (lo, hi) and lo > hi:
            raise PlotError(f"{where}: lo_ns {lo:g} is above hi_ns {hi:g}")
        key = (text["group"], text["branch"], frozenset(members))
        if key in seen:
            raise PlotError(f"{where}: {text['hop']} stands there twice")
        seen.add(key)
        out.append(Hop(text["hop"], tuple(members), text["branch"], est, lo, hi, text["nature"],
                       text["how"], h.get("assumes") or "", text["group"]))
    return out


def closure_of(meta, path):
    """Every Closure row of run.json."""
    out = []
    for where, c in objects(meta, "closure", path):
        held_out, predictable = c.get("held_out"), c.get("predictable")
        if not isinstance(held_out, bool) or not isinstance(predictable, bool):
            raise PlotError(f"{where}: held_out and predictable must be true or false")
        out.append(Closure(one_of(c, "experiment", None, where), one_of(c, "branch", (*BRANCHES, "live"), where),
                           *(finite(c, k, where) for k in ("measured_ns", "predicted_ns", "residual")),
                           held_out, predictable, one_of(c, "group", None, where)))
    return out


def objects(meta, name, path):
    """Yield (where, object) for the objects of the list `name`, which may be absent."""
    found = meta.get(name, [])
    if not isinstance(found, list):
        raise PlotError(f"{path}: `{name}` is not a list")
    for i, o in enumerate(found):
        if not isinstance(o, dict):
            raise PlotError(f"{path}: {name}[{i}] is not an object")
        yield f"{path}: {name}[{i}]", o


def one_of(o, key, allowed, where):
    """Text that is there, and is one of `allowed` where that is given."""
    value = o.get(key)
    if not isinstance(value, str) or not value or (allowed and value not in allowed):
        raise PlotError(f"{where}: {key} is {value!r}" + (f", not {'|'.join(allowed)}" if allowed
                                                          else ", not a name"))
    return value


def finite(o, key, where):
    """A finite number, or None for null; the key must be there."""
    value = o.get(key, math.nan)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise PlotError(f"{where}: {key} is {o.get(key, 'absent')!r}, not a number or null")
    return float(value)


def says_incomplete(meta):
    return meta.get("complete") is not True


def read_csv(path, columns, incomplete, says):
    """Yield (line number, {column: text}).  Further columns are allowed, missing ones are not."""
    try:
        with open(path, "rb") as f:
            f.seek(0, os.SEEK_END)
            whole_end = f.tell() > 0 and (f.seek(-1, os.SEEK_END), f.read(1))[1] == b"\n"
            f.seek(0)
            size_lines = sum(chunk.count(b"\n") for chunk in iter(lambda: f.read(1 << 20), b""))
    except FileNotFoundError:
        raise PlotError(f"{path}: not there: the result folder is not whole") from None
    except OSError as e:
        raise PlotError(f"{path}: cannot be read: {e}") from None
    if not whole_end:
        cut = size_lines + 1
        if not incomplete or size_lines == 0:
            raise PlotError(f"{path}:{cut}: the last line has no end: truncated file"
                            if size_lines or os.path.getsize(path) else f"{path}:1: empty file")
        says.append(f"{os.path.basename(path)}: line {cut} was cut short by the stop; left out")
    with open(path, newline="", encoding="utf-8") as f:
        lines = csv.reader((s for i, s in enumerate(f) if i < size_lines), strict=True)
        try:
            head = next(lines)
            lost = [c for c in columns if c not in head]
            if lost:
                raise PlotError(f"{path}:1: no column {', '.join(lost)}")
            for fields in lines:
                if len(fields) != len(head):
                    raise PlotError(f"{path}:{lines.line_num}: {len(fields)} fields where the head "
                                    f"line has {len(head)}")
                yield lines.line_num, dict(zip(head, fields))
        except (csv.Error, UnicodeDecodeError) as e:
            raise PlotError(f"{path}:{lines.line_num + 1}: {e}") from None


def whole(f, column, where):
    text = f[column]
    if column == "size_bytes" and text == "":
        return 0
    if not text.isdecimal():
        raise PlotError(f"{where}: {column} is '{text}', not a whole number")
    return int(text)


def number(f, column, where):
    """A finite number, or None where the file leaves it empty."""
    if f[column] == "":
        return None
    try:
        value = float(f[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise PlotError(f"{where}: {column} is '{f[column]}', not a number")
    return value


def bad_sample(f, cases):
    if f["case_id"] not in cases:
        return f"case '{f['case_id']}' is not in run.json"
    return ", ".join(f"{c}='{f[c]}'" for c in SAMPLES[1:])


def quantile(v, q):
    """Quantile of sorted values, linear between order statistics (as harness/stats.h)."""
    h = (len(v) - 1) * q
    i = int(h)
    return v[i] + (v[min(i + 1, len(v) - 1)] - v[i]) * (h - i)


def first(tree, *paths):
    """The first of the dotted paths that leads to something not empty."""
    for path in paths:
        at = tree
        for key in path.split("."):
            if isinstance(at, list) and key.isdecimal() and int(key) < len(at):
                at = at[int(key)]
            else:
                at = at.get(key) if isinstance(at, dict) else None
        if at not in (None, "", {}, []):
            return at
    return None
