# SPDX-License-Identifier: Apache-2.0
"""pick.py: which rows of a run belong on one line, at which size, and what they are called."""
import collections

# What a case says of itself beside path and size, the most telling first: the order in which labels
# name what differs.
SEMANTICS = ("state", "protocol", "ordering", "method", "inline", "doorbell", "completion", "queue", "cq", "dbrec", "data",
             "endpoints", "workers", "rings", "qps", "batch", "signalled", "sm", "nature", "oversubscribed", "bench")
MOST_LINES = 8      # more in one panel cannot be told apart
PATHS = ("gpu", "gpu-cpu-db", "gpu-p2p", "proxy", "host", "none")


def path_rank(path):
    return PATHS.index(path) if path in PATHS else len(PATHS)


def semantics(case, without=()):
    return tuple((k, case.get(k)) for k in SEMANTICS if k not in without)


def word(key, value):
    """How a label says key=value."""
    if value in (None, "", 0, False):
        return "not oversubscribed" if key == "oversubscribed" else ""
    return {"queue": f"queue {value}", "cq": f"CQ {value}", "dbrec": f"record {value}",
            "data": f"data {value}", "qps": f"{value} QP" + ("s" if value != 1 else ""),
            "workers": f"{value} worker" + ("s" if value != 1 else ""),
            "rings": f"{value} ring" + ("s" if value != 1 else ""), "batch": f"batch {value}", "signalled": f"signalled 1/{value}",
            "oversubscribed": "oversubscribed", "sm": "host SM" if value == "host-thread" else value,
            }.get(key, str(value))


def labels(cases):
    """A label for each case: its path and no more than what sets it apart from the others."""
    out = {}
    for path in {c["path"] for c in cases}:
        mine = [c for c in cases if c["path"] == path]
        keys, groups = [], 1
        for k in SEMANTICS:
            split = len({tuple(str(c.get(j)) for j in keys + [k]) for c in mine})
            if split > groups:
                keys, groups = keys + [k], split
        for c in mine:
            words = [path] + [w for w in (word(k, c.get(k)) for k in keys) if w]
            out[c["id"]] = ", ".join(words)
        texts = collections.Counter(out[c["id"]] for c in mine)
        for c in mine:
            if texts[out[c["id"]]] > 1:
                out[c["id"]] = c["id"]
    return out


Series = collections.namedtuple("Series", "label path cases rows")


def series(run, metric, only=()):
    """Lines over size: cases that differ in nothing but size, rows in order of size.

    Where small sizes go inline and the others by pointer, with no size in both, it is one line.
    """
    rows = [r for r in run.rows if r.metric == metric and r.size > 0 and wanted(r.case_id, only)]

    def group(without):
        out = collections.defaultdict(list)
        for r in rows:
            case = run.cases[r.case_id]
            out[(case["path"],) + semantics(case, without)].append(r)
        return out

    groups, sizes = {}, lambda g: [r.size for r in g]
    fine = group(())
    for key, coarse in group(("inline",)).items():
        if len(set(sizes(coarse))) == len(coarse):
            groups[key] = coarse
            continue
        for k, g in fine.items():
            if (k[0],) + tuple(s for s in k[1:] if s[0] != "inline") == key:
                groups[k] = g
    lines = []
    for g in groups.values():
        parts = collections.defaultdict(list)       # two cases alike in all: kept apart by id
        for r in g:
            parts[r.case_id if len(set(sizes(g))) < len(g) else ""].append(r)
        lines += [sorted(p, key=lambda r: r.size) for p in parts.values()]
    heads = [head_of(run, g) for g in lines]
    names = labels(heads)
    found = [Series(names[h["id"]], h["path"], [run.cases[r.case_id] for r in g], g)
             for h, g in zip(heads, lines)]
    return in_order(run, found, lambda s: s.cases[0])


def head_of(run, rows):
    """The case that stands for a line; `inline` is left open where the line holds both kinds."""
    head = dict(run.cases[rows[0].case_id])
    if len({run.cases[r.case_id].get("inline") for r in rows}) > 1:
        head["inline"] = None
    return head


def wanted(case_id, only):
    return not only or any(o in case_id for o in only)


def at_size(run, metric, size, only=()):
    """[(label, case, row)] of one metric at one size, paths in their order."""
    rows = [r for r in run.rows
            if r.metric == metric and r.size == size and wanted(r.case_id, only)]
    names = labels([run.cases[r.case_id] for r in rows])
    found = [(names[r.case_id], run.cases[r.case_id], r) for r in rows]
    return in_order(run, found, lambda f: f[1])


def in_order(run, found, case_of):
    """Paths in their order, and within a path as run.json lists the cases."""
    place = {case_id: i for i, case_id in enumerate(run.cases)}
    return sorted(found, key=lambda f: (path_rank(case_of(f)["path"]), place[case_of(f)["id"]]))


def few(panels, path_of, label_of):
    """(panels, note): at most MOST_LINES labels, each path keeping its first ones."""
    paths = collections.defaultdict(dict)
    for found in panels.values():
        for f in found:
            paths[path_of(f)][label_of(f)] = None
    turns = sorted((i, path_rank(p), label) for p, mine in paths.items()
                   for i, label in enumerate(mine))
    keep = {label for *_, label in turns[:MOST_LINES]}
    if len(turns) <= MOST_LINES:
        return panels, []
    panels = {m: [f for f in found if label_of(f) in keep] for m, found in panels.items()}
    return ({m: found for m, found in panels.items() if found},
            [f"{MOST_LINES} of {len(turns)} lines drawn; choose others with --case TEXT"])


def best_size(run, metrics, only=()):
    """Where the most paths and metrics were measured; of equals 8 B, else the smallest."""
    seen = collections.defaultdict(set)
    for r in run.rows:
        if r.metric in metrics and wanted(r.case_id, only):
            seen[r.size].add((run.cases[r.case_id]["path"], r.metric))
    return min(seen, key=lambda s: (-len(seen[s]), s != 8, s)) if seen else None


def not_measured(run, only=()):
    """One line per path and reason for the cases that gave no number."""
    have = {r.case_id for r in run.rows}
    why = collections.Counter()
    for c in run.cases.values():
        if c["id"] not in have and c.get("status") not in (None, "ok") and wanted(c["id"], only):
            why[c["path"], c["status"], c.get("reason") or "no reason given"] += 1
    return [f"{path} {status}" + (f" ({n} cases)" if n > 1 else "") + f": {reason}"
            for (path, status, reason), n in sorted(why.items())]
