#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A two-node run without hardware: two QEMU guests, Soft-RoCE over one virtual wire, `mpirun -np 2` with a rank in each.

Two kernels, two hosts, real RDMA packets; the wire is UDP on 127.0.0.1.  All is emulated in software, so what counts is
that the run completes, that the data is right and that packets passed: its times mean nothing.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import guests  # noqa: E402
from image import Missing  # noqa: E402

LIMIT_S = 150       # of the guests, from power-on to power-off
PUTS = 1000         # of each path at least
ARGS = f"-k bench=quick -k sizes=8,4096 -k min_samples={PUTS} -k warmup=1 -k ci_target=50 --time 100 --nic rxe0 --gpu none"
COMMAND = f"""
say measuring
{guests.MPIRUN} /opt/putscope run {ARGS} --out /out/result >/out/stdout 2>/out/stderr
say "rc=$?"
"""


class Wrong(Exception):
    """The run is not what it should be."""


def expect(true, what):
    if not true:
        raise Wrong(what)


def check_ranks(run):
    hosts = [r["host"] for r in run["ranks"]]
    expect(len(hosts) == 2 and hosts[0] != hosts[1], f"run.json should name two hosts, and names {hosts}")
    for r in run["ranks"]:
        expect([n["device"] for n in r["nics"]] == ["rxe0"] and not r["nics"][0]["virtual"], f"NICs of {r['host']}: {r['nics']}")
        expect(r["clocks"] and r["kernel"], f"{r['host']} left no clocks or no kernel")


def check_cases(run, summary):
    """The paths that plain verbs can take measured what was asked; the other one says why not.  Returns the puts."""
    n = {(r["case_id"], r["metric"]): int(r["n"]) for r in summary}
    cases = [c for c in run["cases"] if c["main_metric"] == "put_completion"]
    for c in cases:
        if c["path"] == "gpu":
            expect(c["status"] == "waived" and "mlx5" in c["reason"], f"{c['id']}: {c['status']}: {c['reason']}")
            continue
        expect(c["status"] == "ok", f"{c['id']}: {c['status']}: {c['reason']}")
        expect(c["endpoints"] == "nodes" and c["payload_errors"] == 0, f"{c['id']}: {c['payload_errors']} payload errors")
        expect(PUTS <= n.get((c["id"], "put_completion"), 0) <= c["puts"], f"{c['id']}: {n} of {c['puts']} puts")
    expect({c["path"] for c in cases} == {"gpu", "proxy", "host"}, "a path is missing")
    return {p: sum(c["puts"] for c in cases if c["path"] == p) for p in ("proxy", "host")}


def check_packets(run, puts, node1, node2):
    """Each put is a packet at least, out of one node and into the other, and is acknowledged by packets that come back."""
    total = sum(puts.values())
    expect(run["evidence"]["posts_by_cpu"] >= total, f"{run['evidence']['posts_by_cpu']} posts for {total} puts")
    for name, counted in (("node1 sent", node1["sent_pkts"]), ("node2 received", node2["rcvd_pkts"])):
        expect(counted >= total, f"{name} {counted} packets for {total} puts")
    for name, counted in (("node2 sent", node2["sent_pkts"]), ("node1 received", node1["rcvd_pkts"])):
        expect(counted > 0, f"{name} no packet at all")


def check(work, build):
    result = work / "node1/result"
    run = json.loads((result / "run.json").read_text())
    with open(result / "summary.csv", newline="", encoding="utf-8") as f:
        puts = check_cases(run, list(csv.DictReader(f)))
    expect(run["complete"] and run["evidence"]["payload_errors"] == 0, "incomplete, or payload that is wrong")
    check_ranks(run)
    counted = [guests.packets(work / name) for name in ("node1", "node2")]
    check_packets(run, puts, *counted)
    done = subprocess.run([build / "putscope", "check", result], capture_output=True, text=True, check=False)
    expect(done.returncode == 0, "putscope check: " + done.stdout + done.stderr)
    a, b = counted
    return (f"{' -> '.join(r['host'] for r in run['ranks'])}: {puts['proxy']} puts by proxy, {puts['host']} by host, 0 payload "
            f"errors; packets sent/received {a['sent_pkts']}/{a['rcvd_pkts']} and {b['sent_pkts']}/{b['rcvd_pkts']}")


def arguments(doc, name):
    p = argparse.ArgumentParser(description=doc.splitlines()[0])
    p.add_argument("--build", type=pathlib.Path, default=guests.ROOT / "build", help="folder of putscope (default: build)")
    p.add_argument("--out", type=pathlib.Path, default=guests.CACHE / name,
                   help=f"folder for logs and results (default: build/two_node/{name})")
    a = p.parse_args()
    return a.out.resolve(), a.build.resolve()


def main():
    work, build = arguments(__doc__, "run")
    start = time.monotonic()
    try:
        both = guests.run(work, build, COMMAND, LIMIT_S)
        for g in both:
            g.unpack(work / g.name)
        said = (work / "node1/stderr").read_text() + (work / "node1/stdout").read_text()
        rc = [words for _, words in both[0].marks() if words.startswith("rc=")]
        expect(rc == ["rc=0"], f"mpirun ended with {rc}:\n{said[-3000:]}")
        line = check(work, build)
    except (Missing, Wrong) as e:
        print(f"two nodes: {e}", file=sys.stderr)
        return 2 if isinstance(e, Missing) else 1
    print(f"two nodes: {line}; {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
