"""The steps of "Writing a fast kernel" on this machine's processor, each beside numpy.

    python benchmarks/fast_kernels.py [--device cpu|opencl|cuda]

Prints the least time of each kernel, by `burn_cube.profile()`, and what it moves or computes a
second. Gates nothing; the figures of docs/fast-kernels.md come from it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import burn_cube as bc
from burn_cube import ABSOLUTE_POS, ABSOLUTE_POS_X, ABSOLUTE_POS_Y, Array, Float, cube, unroll

F = Float
LANES = 16
ROUNDS = 15


@cube
def gelu(x: Array[F], out: Array[F]):
    i = ABSOLUTE_POS
    if i < len(out):
        out[i] = 0.5 * x[i] * (1.0 + bc.erf(x[i] * 0.7071067811865476))


@cube
def sum_one_by_one(x: Array[F], out: Array[F], cols: bc.index):
    row = ABSOLUTE_POS
    if row < len(out):
        total = F(0)
        for c in range(cols):
            total += x[row * cols + c]
        out[row] = total


@cube
def sum_in_lanes(x: Array[F], out: Array[F], cols: bc.index, *, ways):
    row = ABSOLUTE_POS
    if row < len(out):
        cells = [bc.local(bc.splat(F(0), LANES)) for _ in range(ways)]
        for c in range(0, cols, LANES * ways):
            for k in unroll(range(ways)):
                cells[k] += x.load(row * cols + c + k * LANES, LANES)
        total = cells[0]
        for k in unroll(range(1, ways)):
            total = total + cells[k]
        out[row] = sum(total)


@cube
def sum_by_planes(x: Array[F], out: Array[F], cols: bc.index):
    row = bc.CUBE_POS
    total = F(0)
    for c in range(bc.UNIT_POS, cols, bc.CUBE_DIM):
        total += x[row * cols + c]
    part = bc.SharedMemory(F, bc.PLANE_COUNT)
    total = bc.plane_sum(total)
    if bc.UNIT_POS_PLANE == 0:
        part[bc.PLANE_POS] = total
    bc.sync_cube()
    if bc.UNIT_POS == 0:
        whole = F(0)
        for k in range(bc.PLANE_COUNT):
            whole += part[k]
        out[row] = whole


@cube
def product_naive(a: Array[F], b: Array[F], c: Array[F], n: bc.index):
    row, col = ABSOLUTE_POS // n, ABSOLUTE_POS % n
    total = F(0)
    for k in range(n):
        total += a[row * n + k] * b[k * n + col]
    c[ABSOLUTE_POS] = total


@cube
def product_in_registers(
    a: Array[F], b: Array[F], c: Array[F], n: bc.index, *, rows, vectors, lanes
):
    row, col = ABSOLUTE_POS_Y * rows, ABSOLUTE_POS_X * (lanes * vectors)
    cells = [[bc.local(bc.splat(F(0), lanes)) for _ in range(vectors)] for _ in range(rows)]
    for k in range(n):
        right = [b.load(k * n + col + lanes * v, lanes) for v in range(vectors)]
        for r in unroll(range(rows)):
            left = bc.splat(a[(row + r) * n + k], lanes)
            for v in unroll(range(vectors)):
                cells[r][v] = bc.fma(left, right[v], cells[r][v])
    for r in unroll(range(rows)):
        for v in unroll(range(vectors)):
            c.store((row + r) * n + col + lanes * v, cells[r][v])


@cube
def product_in_shared(a: Array[F], b: Array[F], c: Array[F], n: bc.index, *, tile):
    left, right = bc.SharedMemory(F, tile * tile), bc.SharedMemory(F, tile * tile)
    ty, tx = bc.UNIT_POS_Y, bc.UNIT_POS_X
    row, col = bc.CUBE_POS_Y * tile + ty, bc.CUBE_POS_X * tile + tx
    total = F(0)
    for k in range(0, n, tile):
        left[ty * tile + tx] = a[row * n + k + tx]
        right[ty * tile + tx] = b[(k + ty) * n + col]
        bc.sync_cube()
        for j in unroll(range(tile)):
            total = bc.fma(left[ty * tile + j], right[j * tile + tx], total)
        bc.sync_cube()
    c[row * n + col] = total


def timed(name: str, device: bc.Client, launch: Callable[[], None]) -> float:
    """Return the least microseconds of a launch."""
    launch()
    device.sync()
    with bc.profile() as table:
        for _ in range(ROUNDS):
            launch()
    return min(row[2] for key, row in table.rows.items() if key[1] == name) * 1e6


def on_host(fn: Callable[[], Any]) -> float:
    """Return the least microseconds of a call of numpy."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        fn()
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def show(what: str, us: float, amount: float, unit: str) -> None:
    """Print one line; `amount` counts bytes or operations."""
    print(f"{what:44} {us:10.0f} us {amount / us * 1e-3:8.1f} {unit}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    device = bc.client(parser.parse_args().device)
    rng = np.random.default_rng(0)

    n = 1 << 22
    x = rng.standard_normal(n).astype(np.float32)
    xd, out = device.from_numpy(x), device.empty(n, bc.client("cpu").from_numpy(x[:1]).dtype)
    show("gelu, 4 M", timed("gelu", device, lambda: gelu.launch(device, n // 256, xd, out)),
         8 * n, "GB/s")  # fmt: skip

    rows, cols = 4096, 1024
    sums = device.empty(rows, xd.dtype)
    cubes, size = rows // 64, rows * cols * 4
    show("sums of rows, one by one", timed("sum_one_by_one", device, lambda: sum_one_by_one.launch(
        device, cubes, xd, sums, cols, cube_dim=64)), size, "GB/s")  # fmt: skip
    for ways in (1, 4):
        show(f"sums of rows, {ways} x 16 lanes", timed("sum_in_lanes", device, lambda w=ways: (
            sum_in_lanes.launch(device, cubes, xd, sums, cols, cube_dim=64, ways=w))),
            size, "GB/s")  # fmt: skip
    show("sums of rows, planes", timed("sum_by_planes", device, lambda: sum_by_planes.launch(
        device, rows, xd, sums, cols, cube_dim=256)), size, "GB/s")  # fmt: skip
    table = x.reshape(rows, cols)
    show("numpy", on_host(lambda: table.sum(1)), size, "GB/s")

    n = 512
    p, q = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    a, b, c = device.from_numpy(p.reshape(-1)), device.from_numpy(q.reshape(-1)), device.empty(
        n * n, xd.dtype)  # fmt: skip
    work = 2.0 * n**3

    def product(what: str, name: str, launch: Callable[[], None]) -> None:
        us = timed(name, device, launch)
        if not np.allclose(c.numpy().reshape(n, n), p @ q, atol=1e-3):
            raise SystemExit(f"{what}: wrong")
        show(f"product 512, {what}", us, work, "GFLOP/s")

    product("one element per unit", "product_naive", lambda: product_naive.launch(
        device, n * n // 256, a, b, c, n, bounds="unchecked"))  # fmt: skip
    for high, wide, lanes in ((1, 1, 16), (4, 2, 8), (4, 2, 16), (8, 2, 16)):
        grid = (n // (lanes * wide), n // high)
        options = {"rows": high, "vectors": wide, "lanes": lanes, "bounds": "unchecked"}
        product(f"tile of {high} x {wide * lanes}", "product_in_registers",
                lambda g=grid, o=options: product_in_registers.launch(
                    device, g, a, b, c, n, cube_dim=1, **o))  # fmt: skip
    product("tiles in shared memory", "product_in_shared", lambda: product_in_shared.launch(
        device, (n // 16, n // 16), a, b, c, n, cube_dim=(16, 16), tile=16,
        bounds="unchecked"))  # fmt: skip
    show("numpy (OpenBLAS)", on_host(lambda: p @ q), work, "GFLOP/s")


if __name__ == "__main__":
    main()
