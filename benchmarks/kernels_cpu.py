"""Kernels of burn-cube on this machine's processor: ours beside numpy and PyTorch, in one run.

    python benchmarks/kernels_cpu.py [--device cpu|opencl] [--only PART] [--json FILE] [--quick]

Prints medians in microseconds and ratios; PyTorch is measured when it is installed. The marks are
those of performance.md, section Kernels: map kernels 0.95 of copy bandwidth into pooled memory
(0.9 on PoCL), exp 2.5 times and tanh and gelu 6 times PyTorch at 1 M, row softmax 1.3 times, own
matrix product 0.85 of the BLAS of numpy, a launch at most 3 microseconds; compile of a map kernel
under 25 ms, from the disk cache under 3 ms. Bandwidths of maps stand beside that of the copy.

The file of results is that of `kernels.py`: the rows of a device with so many threads
(`BURN_NUM_THREADS`) stand under their names there, and those that a run leaves out stay.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import burn_cube as bc
from burn_cube import ABSOLUTE_POS, CUBE_POS_X, CUBE_POS_Y, Array, Float, cube, unroll
from burn_std.dtypes import float32

try:
    import torch
except ImportError:
    torch = None

F = Float
LANES = 16
# Seconds for which a call runs before it is measured: threads of OpenBLAS turn idly for 30 ms after
# a product, and one of two processors is not ours for so long.
WARM = 0.05


def median_us(fn: Callable[[], Any], rounds: int) -> float:
    """Return the median time of one call in microseconds."""
    warm = time.perf_counter() + WARM
    while time.perf_counter() < warm:
        fn()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        fn()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


@cube
def copy(x: Array[F], out: Array[F]):
    if len(out) > ABSOLUTE_POS:
        out[ABSOLUTE_POS] = x[ABSOLUTE_POS]


@cube
def add(x: Array[F], y: Array[F], out: Array[F]):
    if len(out) > ABSOLUTE_POS:
        out[ABSOLUTE_POS] = x[ABSOLUTE_POS] + y[ABSOLUTE_POS]


@cube
def exponential(x: Array[F], out: Array[F]):
    if len(out) > ABSOLUTE_POS:
        out[ABSOLUTE_POS] = bc.exp(x[ABSOLUTE_POS])


@cube
def tangent(x: Array[F], out: Array[F]):
    if len(out) > ABSOLUTE_POS:
        out[ABSOLUTE_POS] = bc.tanh(x[ABSOLUTE_POS])


@cube
def gelu(v):
    return 0.5 * v * (1.0 + bc.erf(v * 0.7071067811865476))


@cube
def gelu_map(x: Array[F], out: Array[F]):
    if len(out) > ABSOLUTE_POS:
        out[ABSOLUTE_POS] = gelu(x[ABSOLUTE_POS])


@cube
def chain(x: Array[F], y: Array[F], z: Array[F], out: Array[F]):
    i = ABSOLUTE_POS
    if i < len(out):
        out[i] = gelu(x[i] * y[i] + z[i]) * bc.tanh(z[i]) + y[i]


def greater(a, b):
    """Return the greater one; what keeps powers small may lose a NaN."""
    return bc.select(a > b, a, b)


def folded(meet, v):
    """Return what the lanes of a vector make together, in four steps that wait for each other."""
    lanes = [v[k] for k in range(LANES)]
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [meet(x, y) for x, y in zip(lanes[:half], lanes[half:], strict=True)]
    return lanes[0]


@cube
def softmax(x: Array[F], out: Array[F], cols: bc.index):
    base = ABSOLUTE_POS * cols
    if base < len(out):
        top = x.load(base, LANES)
        for c in range(LANES, cols, LANES):
            top = greater(top, x.load(base + c, LANES))
        most = folded(greater, top)
        total = bc.splat(F(0), LANES)
        for c in range(0, cols, LANES):
            e = bc.exp(x.load(base + c, LANES) - most)
            out.store(base + c, e)
            total += e
        factor = 1.0 / folded(lambda x, y: x + y, total)
        for c in range(0, cols, LANES):
            out.store(base + c, out.load(base + c, LANES) * factor)


@cube
def packed(a: Array[F], b: Array[F], n: bc.index, to_a, to_b, corner, *, tile, block):
    """Lay a block of A in lines of one column each, a block of B in lines of one row each.

    What a tile reads then follows on what it read before, whatever the rows of the matrices are.
    """
    (rows, width), (high, wide, deep) = tile, block
    row, col, first = corner
    for panel in range(0, wide, width):
        for k in range(deep):
            for v in unroll(range(0, width, LANES)):
                value = b.load((first + k) * n + col + panel + v, LANES)
                to_b.store(panel * deep + k * width + v, value)
    for panel in range(0, high, rows):
        for k in range(0, deep, LANES):
            lines = [a.load((row + panel + r) * n + first + k, LANES) for r in range(rows)]
            for lane in unroll(range(LANES)):
                for r in unroll(range(rows)):
                    to_a[panel * deep + (k + lane) * rows + r] = lines[r][lane]


@cube
def matmul(a: Array[F], b: Array[F], c: Array[F], n: bc.index, *, rows, vectors, block):
    """A cube makes a block of C, in tiles of rows x (16 vectors) that stay in registers.

    Its depth is cut, so that the packed blocks of A and B stay in the second cache and a panel of
    B in the first.
    """
    high, wide, deep = block
    width = LANES * vectors
    left, right = bc.SharedMemory(F, high * deep), bc.SharedMemory(F, wide * deep)
    row, col = CUBE_POS_Y * high, CUBE_POS_X * wide
    for first in range(0, n, deep):
        packed(a, b, n, left, right, (row, col, first), tile=(rows, width), block=block)
        for j in range(0, wide, width):
            for i in range(0, high, rows):
                at = (row + i) * n + col + j
                acc = [[bc.splat(F(0), LANES) for _ in range(vectors)] for _ in range(rows)]
                cells = [[bc.local(v) for v in line] for line in acc]
                if first > 0:
                    for r in unroll(range(rows)):
                        for v in unroll(range(vectors)):
                            cells[r][v] = c.load(at + r * n + LANES * v, LANES)
                for k in range(deep):
                    line = j * deep + k * width
                    near = [right.load(line + LANES * v, LANES) for v in range(vectors)]
                    for r in unroll(range(rows)):
                        value = bc.splat(left[i * deep + k * rows + r], LANES)
                        for v in unroll(range(vectors)):
                            cells[r][v] = bc.fma(value, near[v], cells[r][v])
                for r in unroll(range(rows)):
                    for v in unroll(range(vectors)):
                        c.store(at + r * n + LANES * v, cells[r][v])


class Run:
    """Collects rows and prints them."""

    def __init__(self, device: bc.Client, quick: bool) -> None:
        self.device = device
        self.rounds = 5 if quick else 25
        self.rows: dict[str, dict[str, float]] = {}

    def row(self, name: str, **times: float) -> None:
        """Note and print one row; ratios say how many times faster ours is."""
        self.rows[name] = times
        ours = times["ours"]
        parts = [f"{key} {value:10.1f}" for key, value in times.items()]
        ratios = [
            f"{value / ours:5.2f}x {key}" for key, value in times.items() if key not in ("ours",)
        ]
        print(f"{name:34} {'  '.join(parts)}   {' '.join(ratios)}", flush=True)

    def share(self, name: str, n: int, arrays: int) -> None:
        """Note and print the bandwidth of a map over n elements as a share of the copy's."""
        mine, copied = (self.rows[f"{k} {n}"]["ours"] for k in (name, "copy"))
        rate = 4 * n * arrays / mine / 1e3
        self.rows[f"{name} {n}"] |= {"GB/s": rate, "of copy": arrays / 2 * copied / mine}
        share = self.rows[f"{name} {n}"]["of copy"]
        print(f"{'':34} {rate:.0f} GB/s, {share:.2f} of the copy", flush=True)

    def time(self, program: Any, cubes: int | tuple[int, ...], args: tuple[Any, ...]) -> float:
        """Return the median time of a launch and its completion."""
        grid = (*((cubes,) if isinstance(cubes, int) else cubes), 1, 1)[:3]

        def once() -> None:
            program.launch(grid, args)
            self.device.sync()

        return median_us(once, self.rounds)


def maps(run: Run, n: int) -> None:
    """Maps over n elements, beside numpy with `out=` and PyTorch."""
    device = run.device
    rng = np.random.default_rng(0)
    host = [rng.standard_normal(n).astype(np.float32) for _ in range(3)]
    x, y, z = (device.from_numpy(a) for a in host)
    out, place = device.empty(n, float32), np.empty(n, np.float32)
    peers: dict[str, Callable[[], Any]] = {
        "copy": lambda: np.copyto(place, host[0]),
        "add": lambda: np.add(host[0], host[1], out=place),
        "exponential": lambda: np.exp(host[0], out=place),
        "tangent": lambda: np.tanh(host[0], out=place),
    }
    fast: dict[str, Callable[[], Any]] = {}
    if torch is not None:
        tx, ty, tz = (torch.from_numpy(a) for a in host)
        to = torch.empty(n)
        functional = torch.nn.functional
        fast = {
            "copy": lambda: to.copy_(tx),
            "add": lambda: torch.add(tx, ty, out=to),
            "exponential": lambda: torch.exp(tx),
            "tangent": lambda: torch.tanh(tx),
            "gelu_map": lambda: functional.gelu(tx),
            "chain": lambda: functional.gelu(tx * ty + tz) * torch.tanh(tz) + ty,
        }
    cubes = -(-n // 256)
    for kernel, args in (
        (copy, (x, out)), (add, (x, y, out)), (exponential, (x, out)), (tangent, (x, out)),
        (gelu_map, (x, out)), (chain, (x, y, z, out)),
    ):  # fmt: skip
        name = kernel.__name__
        times = {"ours": run.time(device.load(kernel.ir(*args)), cubes, args)}
        if name in peers:
            times["numpy"] = median_us(peers[name], run.rounds)
        if name in fast:
            times["torch"] = median_us(fast[name], run.rounds)
        run.row(f"{name} {n}", **times)
        if name in ("copy", "add"):
            run.share(name, n, len(args))


def rows_of_softmax(run: Run) -> None:
    """Row softmax written in the language."""
    device = run.device
    rng = np.random.default_rng(0)
    host = rng.standard_normal((4096, 1024)).astype(np.float32)
    x, out = device.from_numpy(host.reshape(-1)), device.empty(host.size, float32)
    args: tuple[Any, ...] = (x, out, 1024)
    program = device.load(softmax.ir(*args, cube_dim=16))
    times = {"ours": run.time(program, 256, args)}
    times["numpy"] = median_us(lambda: _softmax(host), 3)
    if torch is not None:
        peer = torch.from_numpy(host)
        times["torch"] = median_us(lambda: torch.softmax(peer, 1), run.rounds)
    run.row("softmax 4096x1024", **times)


def products(run: Run) -> None:
    """The matrix product written in the language."""
    device = run.device
    rng = np.random.default_rng(0)
    rows, vectors, block = 8, 2, (128, 256, 128)
    for n in (512, 1024):
        a, b = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
        left, right = device.from_numpy(a.reshape(-1)), device.from_numpy(b.reshape(-1))
        c = device.empty(n * n, float32)
        args = (left, right, c, n)
        how: dict[str, Any] = {"rows": rows, "vectors": vectors, "block": block}
        program = device.load(matmul.ir(*args, cube_dim=1, bounds="unchecked", **how))
        ours = run.time(program, (n // block[1], n // block[0]), args)
        if not np.allclose(c.numpy().reshape(n, n), a @ b, atol=1e-2):
            raise SystemExit(f"matmul {n} is wrong")
        run.row(f"matmul {n}", ours=ours, numpy=median_us(lambda a=a, b=b: a @ b, run.rounds))


def _softmax(host: Any) -> Any:
    e = np.exp(host - host.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def latency(run: Run) -> None:
    """A launch of 1024 elements, and the first use of a kernel, cold and from the cache."""
    device = run.device
    x, out = device.zeros(1024, float32), device.empty(1024, float32)
    program = device.load(copy.ir(x, out))
    calls = 2000

    def launches() -> None:
        for _ in range(calls):
            program.launch((4, 1, 1), (x, out))
        device.sync()

    run.row("launch", ours=median_us(launches, run.rounds) / calls)
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "import kernels_cpu as k\n"
        "d = k.bc.client(sys.argv[2]); d.load(k.copy.ir(k.float32, k.float32))\n"
        "s = time.perf_counter(); i = k.gelu_map.ir(k.float32, k.float32)\n"
        "d.load(i); print(time.perf_counter() - s)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        for word in ("cold", "from the disk cache"):
            done = subprocess.run(
                [sys.executable, "-c", code, str(Path(__file__).parent),
                 device.name.partition(":")[0]],
                env={**os.environ, "BURN_CACHE_DIR": folder}, capture_output=True, text=True,
                check=True,
            )  # fmt: skip
            run.row(f"first use of gelu, {word}", ours=float(done.stdout.split()[-1]) * 1e6)


PARTS: dict[str, Callable[[Run], None]] = {
    "launch": latency,
    "maps 65536": lambda run: maps(run, 1 << 16),
    "maps 1M": lambda run: maps(run, 1 << 20),
    "maps 16M": lambda run: maps(run, 1 << 24),
    "softmax": rows_of_softmax,
    "matmul": products,
}


def main() -> None:
    """Run the parts and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="parts with this in their name")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    device = bc.client(options.device)
    threads = device.properties.units
    print(f"{device!r}, {threads} threads, numpy {np.__version__}")
    run = Run(device, options.quick)
    for name, part in PARTS.items():
        if options.only in name:
            part(run)
    if options.json:
        key = f"language on {options.device}, {threads} thread{'s' if threads > 1 else ''}"
        known = json.loads(options.json.read_text()) if options.json.exists() else {}
        date = {"date": time.strftime("%Y-%m-%d")}
        known[key] = known.get(key, {}) | {k: date | v for k, v in run.rows.items()}
        options.json.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
