# SPDX-License-Identifier: Apache-2.0
"""maker.py: writes a result folder of invented numbers, drawn from a seeded generator.

They stand for no machine; the run calls itself `synthetic`.  `python3 maker.py DIR` writes one to look at.
"""
import csv
import json
import random
import sys

BASE = {"gpu": 1900, "proxy": 3100, "host": 21000}      # invented ns
SIZES = (1, 3, 8, 28, 64, 256, 1024, 4096, 65536, 262144, 1048577, 4194304)
METRICS = ("issue", "put_completion", "rtt")
PARTS = ("kernel", "exposed_comm", "cpu_wait", "unaccounted")


# Hops in path order: branch, invented ns, how they are known, what that assumes.
HOPS = {"wqe_build": ("both", 41, "stamped", ""), "order": ("both", 588, "stamped", ""),
        "doorbell_store": ("both", 18, "stamped", ""), "doorbell_flight": ("both", 330, "bound", ""),
        "nic_exec": ("both", 145, "solved", ""),
        "wqe_fetch": ("both", 712, "solved", "BlueFlame adds nothing"),
        "payload_fetch": ("both", 655, "solved", ""), "wire_out": ("both", 240, "solved", ""),
        "remote_write": ("flag", 410, "solved", ""), "poll": ("flag", 62, "stamped", ""),
        "wire_back": ("cqe", 236, "assumed", "wire_back = wire_out"),
        "cqe_write": ("cqe", 377, "solved", ""), "poll ": ("cqe", 62, "stamped", ""),
        "completion": ("cqe", 95, "stamped", "")}


def hop(name, est=None, branch=None, **more):
    """A row of `hops`; a name a+b is a sum.  The two polls are told apart by branch."""
    members = name.split("+")
    known = HOPS.get(name, ("both", 100, "solved", ""))
    est = known[1] if est is None else est
    h = {"hop": name.strip(), "members": [m.strip() for m in members], "branch": branch or known[0],
         "est_ns": est, "lo_ns": est - max(3, abs(est) * .03), "hi_ns": est + max(3, abs(est) * .03),
         "nature": "virtual", "how": known[2], "assumes": known[3], "group": "base"}
    h.update(more)
    return h


def hops(**changed):
    """Every hop in path order; hops(wire_out={"est_ns": None}) changes a row, wire_out=None drops it."""
    found = [(n, hop(n)) for n in HOPS]
    return [dict(h, **changed.get(n, {})) for n, h in found if changed.get(n, {}) is not None]


def closure(experiment="write/across/pointer/db/cqe/8", measured=2100.0, residual=.01, **more):
    c = {"experiment": experiment, "branch": "flag" if "/flag/" in experiment else "cqe",
         "measured_ns": measured, "predicted_ns": measured * (1 + residual), "residual": residual,
         "held_out": False, "predictable": True, "group": "base"}
    c.update(more)
    return c


def closures(seed=1):
    """Experiments of the hops above: all fitted, all held out; two cannot be predicted without themselves."""
    rng, out = random.Random(seed), []
    for op in ("write", "imm"):
        for way, far in (("across", 240), ("loop", 0)):
            for inline, fetch in (("pointer", 655), ("inline", 0)):
                for ring, wqe in (("db", 712), ("bf", 0)):
                    for to, rest in (("cqe", 770), ("flag", 472)):
                        name = f"{op}/{way}/{inline}/{ring}/{to}/8"
                        ns = (1122 + far + fetch + wqe + rest) * (1.04 if op == "imm" else 1)
                        out.append(closure(name, ns, rng.gauss(0, .015)))
                        if name in ("imm/across/inline/bf/flag/8", "imm/loop/inline/bf/cqe/8"):
                            out.append(closure(name, ns, held_out=True, predictable=False,
                                               predicted_ns=None))
                            out[-1]["residual"] = None
                        else:
                            out.append(closure(name, ns, rng.gauss(0, .025), held_out=True))
    return out


def case(path, size, **more):
    gpu = path == "gpu"
    c = {"id": f"put/{path}/{size}", "bench": "put", "path": path, "size_bytes": size,
         "ordering": "sys-fence" if gpu else "", "inline": "pointer", "queue": "host", "cq": "host",
         "dbrec": "host", "data": "host", "doorbell": "db", "completion": "cqe",
         "endpoints": "across", "sm": "host-thread", "nature": "virtual", "qps": 1, "batch": 1,
         "signalled": 1, "oversubscribed": path == "proxy", "status": "ok", "reason": ""}
    c.update(more)
    return c


def values(rng, path, metric, size, n):
    mid = BASE[path] * {"issue": .1, "put_completion": 1, "rtt": 2.1}[metric]
    mid += 0 if metric == "issue" else size / 12
    return [mid * rng.lognormvariate(0, .05) * (rng.uniform(2, 12) if rng.random() < .015 else 1)
            for _ in range(n)]


def parts_of(rng, path, size):
    wall = (BASE[path] + size / 12) * 100 * rng.lognormvariate(0, .02)
    kernel = wall * (.15 if path == "host" else .3)
    wait = wall * {"gpu": 0, "proxy": .02, "host": .5}[path]
    rest = wall * rng.uniform(.005, .02)
    exposed = wall - kernel - wait - rest
    return {"wall": wall, "kernel": kernel, "exposed_comm": exposed, "comm": exposed * 1.1,
            "cpu_wait": wait, "unaccounted": rest}


def quantile(v, q):
    h = (len(v) - 1) * q
    i = int(h)
    return v[i] + (v[min(i + 1, len(v) - 1)] - v[i]) * (h - i)


def summary_row(key, v):
    v = sorted(v)
    n, half = len(v), .98 * len(v) ** .5
    lo, hi = v[max(0, int(n / 2 - half))], v[min(n - 1, int(n / 2 + half))]
    return [*key, n, quantile(v, .5), lo, hi, quantile(v, .9),
            quantile(v, .99) if n >= 100 else "", quantile(v, .999) if n >= 10000 else "", v[-1]]


def rank(gpu=None, nic="mlx5_0", virtual=True):
    sm = {"kind": "gpu", "name": gpu} if gpu else {"kind": "host-thread"}
    return {"rank": 0, "sm": sm, "nics": [{"device": nic, "virtual": virtual}]}


def meta(cases, **more):
    m = {"schema": "putscope-run", "version": 1, "putscope": "synthetic", "seed": 1, "complete": True,
         "ranks": [rank()], "cases": cases}
    m.update(more)
    return m


def write(folder, cases=None, n=200, batches=10, warm=2, metrics=METRICS, parts=PARTS, seed=1, **more):
    """A result folder; `more` goes into run.json."""
    folder.mkdir(parents=True, exist_ok=True)
    if cases is None:
        cases = [case(p, s) for p in BASE for s in SIZES]
    rng, samples, sums = random.Random(seed), [], []
    for c in cases:
        if c["status"] == "waived":
            continue
        series = {m: [values(rng, c["path"], m, c["size_bytes"], max(1, n // batches))
                      for _ in range(batches + warm)] for m in metrics}
        walls = [parts_of(rng, c["path"], c["size_bytes"]) for _ in range(batches + warm)]
        for p in ("wall", "comm", *parts) if parts else ():
            series[p] = [[w[p]] for w in walls]
        for metric, per_batch in series.items():
            key = (c["id"], metric, c["size_bytes"])
            for b, vs in enumerate(per_batch):
                # warm-up is ten times slower here, so that a reader who lets it in is found out
                samples += [[*key, b, i, int(b < warm), repr(v * (10 if b < warm else 1))]
                            for i, v in enumerate(vs)]
            sums.append(summary_row(key, [v for vs in per_batch[warm:] for v in vs]))
    head = "case_id metric size_bytes"
    table(folder / "samples.csv", f"{head} batch seq warmup value_ns", samples)
    table(folder / "summary.csv", f"{head} n p50_ns p50_lo_ns p50_hi_ns p90_ns p99_ns p99_9_ns max_ns",
          sums)
    (folder / "run.json").write_text(json.dumps(meta(cases, **more), indent=1) + "\n")
    return folder


def table(path, head, rows):
    with open(path, "w", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(head.split())
        w.writerows(rows)


if __name__ == "__main__":
    import pathlib
    write(pathlib.Path(sys.argv[1]), n=2000, hops=hops(), closure=closures())
