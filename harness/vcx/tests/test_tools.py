# SPDX-License-Identifier: Apache-2.0
"""Unmodified programs of rdma-core and perftest on vcx, in two processes on one fabric.

REPEAT=10 runs each pair ten times.
"""
import os
import re
import time

import pytest

from vcx_run import SLOW, need, pair, run

REPEAT = pytest.mark.parametrize("turn", range(int(os.environ.get("REPEAT", "1"))))
GID = "3"


def test_ibv_devices():
    need("ibv_devices")
    rc, out, err = run(["ibv_devices"])
    guids = dict(re.findall(r"^\s+(mlx5_\d)\s+([0-9a-f]{16})$", out, re.M))
    assert rc == 0 and not err and sorted(guids) == ["mlx5_0", "mlx5_1"] and len(set(guids.values())) == 2


def test_ibv_devinfo():
    need("ibv_devinfo")
    rc, out, err = run(["ibv_devinfo", "-v"])
    assert rc == 0 and not err
    assert re.findall(r"^hca_id:\s+(\w+)", out, re.M) == ["mlx5_0", "mlx5_1"]
    for row, value in (("vendor_id", "0x15b3"), ("link_layer", "Ethernet"), ("state", r"PORT_ACTIVE \(4\)"),
                       ("active_mtu", r"4096 \(5\)"), ("hca_core_clock", "1000000kHZ"), ("phys_port_cnt", "1")):
        assert len(re.findall(rf"^\s*{row}:\s+{value}$", out, re.M)) == 2, row
    gids = re.findall(r"GID\[\s*3\]:\s+(\S+), RoCE v2", out)
    assert len(set(gids)) == 2 and all(g.startswith("::ffff:") for g in gids), gids


# ---- ibv_rc_pingpong ----
def sides(tool, *args):
    """Server on mlx5_0, client on mlx5_1."""
    return [tool, "-d", "mlx5_0", *args], [tool, "-d", "mlx5_1", *args]


def pingpong(tmp_path, *args, n=1000, **kw):
    need("ibv_rc_pingpong")
    p = pair(tmp_path, *sides("ibv_rc_pingpong", "-g", GID, "-n", str(n), *args), **kw).passed()
    for out in p.outs:
        assert f"{n} iters in" in out and f"{4096 * n * 2} bytes in" in out, out
        assert "invalid data" not in out
    assert p.server["bytes_in"] == p.client["bytes_in"] == 4096 * n
    return p


@REPEAT
@pytest.mark.parametrize("how", [(), ("-c",), ("-e",), ("-e", "-c")], ids=["polling", "polling-checked", "events", "events-checked"])
def test_pingpong(tmp_path, how, turn):
    p = pingpong(tmp_path, *how)
    assert bool(p.server["events"]) == ("-e" in how)


def test_pingpong_on_one_cpu(tmp_path):
    """Four threads that spin share one CPU."""
    need("taskset")
    pingpong(tmp_path, "-c", prefix=("taskset", "-c", "0"))


def test_pingpong_both_on_one_device(tmp_path):
    need("ibv_rc_pingpong")
    pair(tmp_path, ["ibv_rc_pingpong", "-d", "mlx5_0", "-g", GID, "-n", "500", "-c"]).passed()


# ---- perftest ----
def perftest(tmp_path, tool, *args, **kw):
    """The client's result row: size, iterations, then the tool's columns."""
    need(tool)
    p = pair(tmp_path, *sides(tool, "-x", GID, *args), **kw).passed()
    row = re.search(r"^ #bytes +#iterations.*\n +([\d. \t]+)$", p.outs[1], re.M)
    assert row, p.outs[1]
    size, iterations, *p.row = (float(x) for x in row[1].split())
    p.size, p.iterations = int(size), int(iterations)
    return p


def latency_makes_sense(p):
    least, most, typical, mean, deviation, p99, p999 = p.row
    assert 0 < least <= typical <= most and least <= mean <= most and least <= p99 <= p999 <= most, p.row
    assert mean < 10_000 * SLOW


@REPEAT
def test_write_lat(tmp_path, turn):
    p = perftest(tmp_path, "ib_write_lat")
    latency_makes_sense(p)
    assert p.iterations == 1000
    assert p.server["bytes_in"] == p.client["bytes_in"] == p.iterations * p.size
    assert p.server["opcodes"] == p.client["opcodes"] == {"0x08": 1000}


@REPEAT
@pytest.mark.parametrize("size", [1, 220, 221, 4096, 65536])
def test_write_lat_of_size(tmp_path, size, turn):
    p = perftest(tmp_path, "ib_write_lat", "-s", str(size), "-n", "200")
    assert (p.size, p.iterations) == (size, 200)
    assert p.server["bytes_in"] == p.client["bytes_in"] == 200 * size


@REPEAT
def test_write_bw(tmp_path, turn):
    # Without -N perftest itself computes for about 20 s on the CPU: it looks for the peak over all pairs of iterations.
    p = perftest(tmp_path, "ib_write_bw", "-q", "16", "-N", "-n", "500")
    assert p.iterations == 16 * 500 and p.size == 65536
    assert p.server["bytes_in"] == p.client["bytes_out"] == p.iterations * p.size
    assert p.server["qps_max"] == p.client["qps_max"] == 16
    assert p.client["wqes"] == p.iterations and not p.server["wqes"]
    mean, rate = p.row[1:3]
    assert mean > 0 and mean == pytest.approx(rate * p.size / 1.048576, rel=0.01)  # MiB/s of millions a second


@REPEAT
def test_read_lat(tmp_path, turn):
    p = perftest(tmp_path, "ib_read_lat")
    latency_makes_sense(p)
    assert p.client["bytes_read"] == p.iterations * p.size
    assert p.client["opcodes"] == {"0x10": p.iterations} and not p.server["wqes"]


@REPEAT
def test_send_lat(tmp_path, turn):
    p = perftest(tmp_path, "ib_send_lat")
    latency_makes_sense(p)
    assert p.server["bytes_in"] == p.client["bytes_in"] == p.iterations * p.size
    assert p.client["opcodes"] == {"0x0a": p.iterations}


@REPEAT
def test_atomic_bw(tmp_path, turn):
    p = perftest(tmp_path, "ib_atomic_bw", "-N")
    assert p.size == 8 and p.server["bytes_in"] == p.iterations * 8
    assert p.client["opcodes"] == {"0x12": p.iterations}


# ---- what must not pass ----
def fails(p, within, *says):
    """One side fails, and says why; the other, which hears of it from nobody, fails or waits on.  Neither passes."""
    assert any(p.rcs) and 0 not in p.rcs, (p.rcs, p.outs)
    assert p.took <= within * SLOW
    assert any(rc and all(s in out for s in says) for rc, out in zip(p.rcs, p.outs)), p.outs


def test_pingpong_on_two_fabrics(tmp_path):
    need("ibv_rc_pingpong")
    p = pair(tmp_path, *sides("ibv_rc_pingpong", "-g", GID, "-n", "100"), timeout=15, grace=1,
             fabrics=(tmp_path / "one", tmp_path / "two"))
    fails(p, 15, "transport retry counter exceeded")


def test_write_lat_on_two_fabrics(tmp_path):
    need("ib_write_lat")
    p = pair(tmp_path, *sides("ib_write_lat", "-x", GID), timeout=15, grace=1, fabrics=(tmp_path / "one", tmp_path / "two"))
    fails(p, 15, "Failed status 12")  # IBV_WC_RETRY_EXC_ERR


@pytest.mark.parametrize("kind, says", [("error-cqe", "remote operation error"),
                                        ("retry-exceeded", "transport retry counter exceeded"),
                                        ("rnr", "RNR retry counter exceeded")])
def test_a_fault_fails_pingpong(tmp_path, kind, says):
    need("ibv_rc_pingpong")
    p = pair(tmp_path, *sides("ibv_rc_pingpong", "-g", GID, "-n", "100"), grace=1, opts=(f"fault.{kind}=50",))
    fails(p, 10, says)


def test_a_lost_completion_stops_pingpong(tmp_path):
    need("ibv_rc_pingpong")
    p = pair(tmp_path, *sides("ibv_rc_pingpong", "-g", GID, "-n", "100"), timeout=3, opts=("fault.lost-cqe=50",))
    assert p.rcs == [None, None], (p.rcs, p.outs)


def test_a_killed_server_is_lost_to_its_client(tmp_path):
    need("ib_write_bw")

    def kill_server(procs):
        time.sleep(2.5 * SLOW)  # perftest first measures its clock for a second
        procs[0].kill()

    p = pair(tmp_path, *sides("ib_write_bw", "-x", GID, "-N", "-s", "8", "-D", str(int(8 * SLOW))), during=kill_server)
    assert p.rcs[0] == -9 and p.rcs[1] not in (0, None), (p.rcs, p.outs)
    assert "Failed status 12" in p.outs[1], p.outs[1]
