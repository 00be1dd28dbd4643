#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a two-node run does when things go wrong: packets are lost, rank 1 is killed, the other host loses its power.

The guests are those of two_node.py.  Soft-RoCE sends a request again when its timer, which it does not put back at an
acknowledgement, happens to run out: it counts some retransmissions on a good wire too.  It can also stall for longer than a
put's deadline: that case then fails by name, and the others go on.
"""
import json
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import guests  # noqa: E402
from image import Missing  # noqa: E402
from two_node import LIMIT_S, Wrong, arguments, expect  # noqa: E402

ARGS = "-k bench=quick -k sizes=8 -k paths=proxy,host -k warmup=1 -k ci_target=50 --nic rxe0 --gpu none --out /out/result"
# After a rank's end the launcher sends SIGTERM to the others, and SIGKILL one second later: too soon to close a result.
RUN = f"{guests.MPIRUN} --mca odls_base_sigkill_timeout 3 /opt/putscope run {ARGS}"
LOST = "/bin/tc qdisc add dev eth0 root netem loss 1%"
LOSS = f"""
# node2 first, over a wire that is still good
tell '{LOST}' || say "FAILED node2 loses nothing"
{LOST}
say measuring
{RUN} -k min_samples=500 --time 60 >/out/stdout 2>/out/stderr
say "rc=$?"
"""
# A launcher that has lost a host may wait for it: rank 0's own end counts, then the launcher is ended.
KILLED = f"""
gone() {{ for p in $(pidof putscope); do ! grep -q 'State:.[^Z]' /proc/$p/status || return 1; done; }}
{RUN} -k min_samples=100000 --time 60 >/out/stdout 2>/out/stderr &
launcher=$!
until_true 60 sh -c '[ $(wc -l </out/result/samples.csv) -gt 1000 ]' || say "FAILED nothing is measured"
say "mid-run"
%s
until_true 60 gone && say "rank 0 ended"
until_true 15 sh -c "! kill -0 $launcher" || kill -9 $launcher
"""
PEER_KILLED = KILLED % "tell 'kill -9 $(pidof putscope)'"
PEER_DARK = KILLED % ":"
END_S = 10


def load(work):
    return json.loads((work / "node1/result/run.json").read_text()), (work / "node1/stderr").read_text()


def lossy(work, build):
    both = guests.run(work, build, LOSS, LIMIT_S)
    for g in both:
        g.unpack(work / g.name)
    run, stderr = load(work)
    rc = [words for _, words in both[0].marks() if words.startswith("rc=")]
    failed = [c for c in run["cases"] if c["status"] == "failed"]
    expect(rc == [f"rc={int(bool(failed))}"] and run["complete"], f"the run did not come to its end ({rc}):\n{stderr[-2000:]}")
    expect(any(c["status"] == "ok" for c in run["cases"]) and all(c["reason"] in stderr for c in failed), stderr[-2000:])
    expect(run["evidence"]["payload_errors"] == 0, "payload is wrong")
    lost = [int(re.search(r"dropped (\d+)", (work / g.name / "qdisc").read_text())[1]) for g in both]
    again = [guests.packets(work / g.name) for g in both]
    expect(min(lost) > 0 and again[0]["completer_retry_err"] > 0, f"{lost} packets were lost, and none was sent again")
    told = run["evidence"]["dirty"] + run["evidence"]["peer"]["dirty"]
    expect(any("completer_retry_err" in line for line in told), f"run.json does not say that packets were lost: {told}")
    worst = max(float(line.split(",")[6]) for line in (work / "node1/result/samples.csv").read_text().splitlines()[1:]
                if ",put_completion," in line)
    return (f"{lost[0]} and {lost[1]} packets lost, {again[0]['completer_retry_err']} requests sent again, "
            f"{again[1]['duplicate_request']} came twice, the slowest put took {worst / 1e6:.0f} ms; complete, marked dirty"
            + "".join(f"; {c['id']} failed: {c['reason']}" for c in failed))


def killed(work, build, command, dark):
    """dark: the whole guest goes.  Else its rank alone is killed, and the launcher tells rank 0 by a signal."""
    at = {}

    def look(node1, node2):
        for _, words in node1.marks():
            if words not in at:
                at[words] = time.monotonic()
        if dark and "mid-run" in at:
            node2.power_off()

    both = guests.run(work, build, command, LIMIT_S, look)
    look(*both)
    both[0].unpack(work / "node1")
    run, stderr = load(work)
    expect("rank 0 ended" in at, f"rank 0 did not end:\n{stderr[-2000:]}")
    took = at["rank 0 ended"] - at["mid-run"]
    expect(took <= END_S, f"rank 0 ended {took:.1f} s after its peer")
    why = run["why_incomplete"] or ""
    words = ["lost rank 1 (node2)"] + ["another rank has ended"] * (not dark)   # a signal may come before the silence is seen
    expect(why in stderr and any(w in why for w in words), f"no clear words: {why!r}; {stderr[-2000:]}")
    done = subprocess.run([build / "putscope", "check", work / "node1/result"], capture_output=True, text=True, check=False)
    expect(not run["complete"] and done.returncode == 1 and "what is there is whole" in done.stdout, done.stdout + done.stderr)
    kept = (work / "node1/result/samples.csv").read_text().count("\n") - 1
    expect(kept >= 1000, f"only {kept} samples were kept")
    return f"rank 0 ended after {took:.1f} s, kept {kept} samples: {why}"


def main():
    work, build = arguments(__doc__, "bad_wire")
    wrong = 0
    for name, run in (("1 % loss", lambda w: lossy(w, build)),
                      ("peer killed", lambda w: killed(w, build, PEER_KILLED, False)),
                      ("peer without power", lambda w: killed(w, build, PEER_DARK, True))):
        try:
            print(f"{name}: {run(work / name.replace(' ', '_').replace('%', 'percent'))}", flush=True)
        except (Missing, Wrong) as e:
            print(f"{name}: {e}", file=sys.stderr, flush=True)
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
