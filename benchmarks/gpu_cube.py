"""burn-cube on a GPU: every conformance kernel, the marks of performance.md, faults, first use.

    python benchmarks/gpu_cube.py [--runtime cuda|opencl] [--part cases|tiles|latency|speed|faults]
                                  [--json FILE] [--only TEXT]

Needs numpy and cupy (or pyopencl), and no installed package of this repository: it finds the
sources beside itself. Parts that were measured are kept in the JSON file and skipped when it runs
again, so that a long run can be cut into several. Exit status 1 says that a case was wrong.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
for source in sorted(ROOT.glob("packages/*/src")):
    sys.path.insert(0, str(source))

import numpy as np  # noqa: E402

import burn_cube as bc  # noqa: E402
from burn_cube import ABSOLUTE_POS, Array, SharedMemory, Tensor  # noqa: E402
from burn_cube.language import CUBE_POS, UNIT_POS  # noqa: E402
from burn_std.dtypes import bfloat16, float16, float32, int32  # noqa: E402

F = bc.Float
BIG = 64 << 20  # elements: 256 MiB of float32, five times the L2


# --- kernels -----------------------------------------------------------------------------------


@bc.cube
def copy_vectors(x: Array[F, 4], out: Array[F, 4]):
    if len(out) > ABSOLUTE_POS:
        out[ABSOLUTE_POS] = x[ABSOLUTE_POS]


@bc.cube
def copy_eights(x: Array[F, 8], out: Array[F, 8]):
    if len(out) > ABSOLUTE_POS:
        out[ABSOLUTE_POS] = x[ABSOLUTE_POS]


@bc.cube
def copy_scalars(x: Array[F], out: Array[F]):
    if len(out) > ABSOLUTE_POS:
        out[ABSOLUTE_POS] = x[ABSOLUTE_POS]


@bc.cube
def gelu_chain(x: Array[F, 4], y: Array[F, 4], out: Array[F, 4]):
    if len(out) > ABSOLUTE_POS:
        z = x[ABSOLUTE_POS] * y[ABSOLUTE_POS] + 0.5
        g = z * 0.5 * (bc.erf(z * 0.7071067811865476) + 1.0)
        out[ABSOLUTE_POS] = bc.tanh(g * 1.7 + y[ABSOLUTE_POS])


@bc.cube
def add_scaled(x: Array[F], out: Array[F], factor: float32):
    if len(out) > ABSOLUTE_POS:
        out[ABSOLUTE_POS] = x[ABSOLUTE_POS] * factor + 1.0


@bc.cube
def row_sum(x: Array[float32, 4], out: Array[float32], *, cols, size):
    total = bc.cast(0.0, float32)
    for i in range(UNIT_POS, cols // 4, size):
        v = x[CUBE_POS * (cols // 4) + i]
        total += (v[0] + v[1]) + (v[2] + v[3])
    total = bc.plane_sum(total)
    parts = SharedMemory(float32, 32)
    if bc.UNIT_POS_PLANE == 0:
        parts[bc.PLANE_POS] = total
    bc.sync_cube()
    if UNIT_POS == 0:
        whole = bc.cast(0.0, float32)
        for i in range(size // 32):
            whole += parts[i]
        out[CUBE_POS] = whole


@bc.cube
def strided(x: Tensor[F, 2], out: Tensor[F, 2]):
    row, col = bc.ABSOLUTE_POS_Y, bc.ABSOLUTE_POS_X
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = x[row, col]


@bc.cube
def pick(x: Array[float32], at: Array[int32], out: Array[float32]):
    if len(out) > ABSOLUTE_POS:
        out[ABSOLUTE_POS] = x[at[ABSOLUTE_POS]]


@bc.cube
def tile_product(
    a: Array[F], b: Array[F], c: Array[float32], *, sizes, starts, strides, layouts, shared
):
    left, right = a, b
    if shared:
        left, right = SharedMemory(F, sizes[0]), SharedMemory(F, sizes[1])
        for i in range(UNIT_POS, sizes[0], bc.CUBE_DIM):
            left[i] = a[i]
        for i in range(UNIT_POS, sizes[1], bc.CUBE_DIM):
            right[i] = b[i]
        bc.sync_cube()
    x = bc.tile_load("a", left, starts[0], strides[0], layout=layouts[0])
    y = bc.tile_load("b", right, starts[1], strides[1], layout=layouts[1])
    bc.tile_store(c, 0, 16, bc.tile_mma(x, y, bc.tile_load("acc", c, 0, 16)))


@bc.cube
def tile_matmul(a: Array[F, 8], b: Array[F, 8], c: Array[float32], k: int32, n: int32):
    """C = A @ B, 128x128 a cube of 256 units, eight warps of 32x64, k in steps of 32."""
    left, right = SharedMemory(F, 128 * 40), SharedMemory(F, 32 * 136)
    row0, col0 = bc.CUBE_POS_Y * 128, bc.CUBE_POS_X * 128
    down, along = bc.PLANE_POS // 2 * 32, bc.PLANE_POS % 2 * 64
    sums = [bc.tile_fill(0.0) for _ in range(8)]
    # Each unit brings two vectors of A (4 a row) and two of B (16 a row) in each step.
    rows_a = [(UNIT_POS + 256 * i) // 4 for i in range(2)]
    cols_a = [(UNIT_POS + 256 * i) % 4 for i in range(2)]
    rows_b = [(UNIT_POS + 256 * i) // 16 for i in range(2)]
    cols_b = [(UNIT_POS + 256 * i) % 16 for i in range(2)]
    ahead_a = [a[(row0 + rows_a[i]) * (k // 8) + cols_a[i]] for i in range(2)]
    ahead_b = [b[rows_b[i] * (n // 8) + col0 // 8 + cols_b[i]] for i in range(2)]
    for step in range(k // 32):
        for i in bc.unroll(range(2)):
            left.store(rows_a[i] * 40 + cols_a[i] * 8, ahead_a[i])
            right.store(rows_b[i] * 136 + cols_b[i] * 8, ahead_b[i])
        bc.sync_cube()
        if step + 1 < k // 32:
            for i in bc.unroll(range(2)):
                at = (step + 1) * 32
                ahead_a[i] = a[(row0 + rows_a[i]) * (k // 8) + at // 8 + cols_a[i]]
                ahead_b[i] = b[(at + rows_b[i]) * (n // 8) + col0 // 8 + cols_b[i]]
        for inner in bc.unroll(range(2)):
            xs = [bc.tile_load("a", left, (down + 16 * i) * 40 + inner * 16, 40) for i in range(2)]
            for j in bc.unroll(range(4)):
                y = bc.tile_load("b", right, inner * 16 * 136 + along + 16 * j, 136)
                for i in bc.unroll(range(2)):
                    sums[j * 2 + i] = bc.tile_mma(xs[i], y, sums[j * 2 + i])
        bc.sync_cube()
    for i in bc.unroll(range(2)):
        for j in bc.unroll(range(4)):
            place = (row0 + down + 16 * i) * n + col0 + along + 16 * j
            bc.tile_store(c, place, n, sums[j * 2 + i])


@bc.cube
def bring(left, right, a, b, step, row0, col0, k, n):
    """Start the copies of one step of k into its half of the shared memory."""
    half = step % 2
    for i in bc.unroll(range(2)):
        unit = UNIT_POS + 256 * i
        row, col = unit // 4, unit % 4 * 8
        bc.async_copy(left, half * 5120 + row * 40 + col, a,
                      (row0 + row) * k + step * 32 + col, width=8)  # fmt: skip
        row, col = unit // 16, unit % 16 * 8
        bc.async_copy(right, half * 4352 + row * 136 + col, b,
                      (step * 32 + row) * n + col0 + col, width=8)  # fmt: skip


@bc.cube
def tile_matmul_ahead(a: Array[F], b: Array[F], c: Array[float32], k: int32, n: int32):
    """The same product, with two halves of shared memory and copies that run ahead."""
    left, right = SharedMemory(F, 2 * 5120), SharedMemory(F, 2 * 4352)
    row0, col0 = bc.CUBE_POS_Y * 128, bc.CUBE_POS_X * 128
    down, along = bc.PLANE_POS // 2 * 32, bc.PLANE_POS % 2 * 64
    sums = [bc.tile_fill(0.0) for _ in range(8)]
    bring(left, right, a, b, bc.cast(0, int32), row0, col0, k, n)
    for step in range(k // 32):
        bc.async_wait()
        bc.sync_cube()
        if step + 1 < k // 32:
            bring(left, right, a, b, step + 1, row0, col0, k, n)
        x0 = step % 2 * 5120 + down * 40
        y0 = step % 2 * 4352 + along
        for inner in bc.unroll(range(2)):
            xs = [bc.tile_load("a", left, x0 + 640 * i + inner * 16, 40) for i in range(2)]
            for j in bc.unroll(range(4)):
                y = bc.tile_load("b", right, y0 + inner * 2176 + 16 * j, 136)
                for i in bc.unroll(range(2)):
                    sums[j * 2 + i] = bc.tile_mma(xs[i], y, sums[j * 2 + i])
    for i in bc.unroll(range(2)):
        for j in bc.unroll(range(4)):
            place = (row0 + down + 16 * i) * n + col0 + along + 16 * j
            bc.tile_store(c, place, n, sums[j * 2 + i])


# --- measuring ---------------------------------------------------------------------------------


def open_client(runtime: str) -> Any:
    """Return the client of the first device, without installed entry points."""
    from importlib import import_module

    from burn_cube.runtime.client import Client

    plugin = import_module(f"burn_cube.runtime.{runtime}").plugin
    count = plugin.count()
    if not count:
        raise SystemExit(f"{runtime}: no device")
    return Client(plugin.create(0))


def device_us(client: Any, launch: Callable[[], None], rounds: int = 20, warm: int = 3) -> float:
    """Return the median device time of a launch, in microseconds."""
    for _ in range(warm):
        launch()
    times = []
    for _ in range(rounds):
        start = client.runtime.event()
        launch()
        end = client.runtime.event()
        end.wait()
        times.append(end.seconds_since(start) * 1e6)
    return statistics.median(times)


def host_us(client: Any, call: Callable[[], Any], calls: int = 300, rounds: int = 9) -> float:
    """Return the median time of a call on the host, in microseconds; the queue is kept short."""
    call()
    client.sync()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls * 1e6)
        client.sync()
    return statistics.median(times)


# --- parts -------------------------------------------------------------------------------------


def cases(client: Any, only: str) -> dict[str, Any]:
    """Run every conformance kernel and compare it with the interpreter."""
    from burn_cube.conformance import cases as all_cases, check

    failed: dict[str, str] = {}
    started = time.perf_counter()
    chosen = [case for case in all_cases() if only in case.name]
    for case in chosen:
        try:
            check(case, client)
            client.sync()
        except Exception as error:  # noqa: BLE001 - one wrong case must not hide the others
            failed[case.name] = f"{type(error).__name__}: {error}"[:600]
            print("FAILED", case.name, failed[case.name], flush=True)
    seconds = time.perf_counter() - started
    print(f"{len(chosen) - len(failed)} of {len(chosen)} cases in {seconds:.1f} s")
    return {"cases": len(chosen), "failed": failed, "seconds": seconds}


def speed(client: Any, only: str) -> dict[str, Any]:
    """Measure maps, a reduction and a strided copy against the device's own copy."""
    out: dict[str, Any] = {}

    def note(name: str, micros: float, nbytes: int) -> None:
        out[name] = {"us": micros, "GB/s": nbytes / micros * 1e-3}
        share = out[name]["GB/s"] / out["device copy"]["GB/s"]
        out[name]["of copy"] = share
        print(f"{name:28} {micros:10.1f} us {out[name]['GB/s']:8.0f} GB/s {share:6.2f} of copy")

    rng = np.random.default_rng(0)
    host = rng.standard_normal(BIG, dtype=np.float32)
    x, y, z = (
        client.from_numpy(host),
        client.from_numpy(host[::-1].copy()),
        client.empty(BIG, float32),
    )
    nbytes = 2 * host.nbytes
    note("device copy", device_us(client, lambda: client.copy(z, x)), nbytes)

    def mapped(
        name: str, kernel: Any, args: list[Any], width: int, moved: int, **options: Any
    ) -> None:
        count = args[-1].length // width
        for cube in (128, 256, 512):
            cubes = -(-count // cube)
            compiled = client.load(kernel.ir(*args, cube_dim=cube, index=int32, **options))
            run = partial(client.run, compiled, (cubes, 1, 1), args)
            note(f"{name} cube {cube}", device_us(client, run), moved)

    for bounds in ("checked", "unchecked"):
        mapped(f"copy f32x4 {bounds}", copy_vectors, [x, z], 4, nbytes, bounds=bounds)
    mapped("copy f32x8", copy_eights, [x, z], 8, nbytes, bounds="unchecked")
    mapped("copy f32", copy_scalars, [x, z], 1, nbytes, bounds="unchecked")
    for dtype in (float16, bfloat16):
        halves = [client.empty(BIG, dtype), client.empty(BIG, dtype)]
        mapped(f"copy {dtype.short}x8", copy_eights, halves, 8, nbytes // 2, bounds="unchecked")
        three = [*halves, client.empty(BIG, dtype)]
        mapped(f"gelu chain {dtype.short}", gelu_chain, three, 4, 3 * BIG * 2, bounds="unchecked")
    mapped("gelu chain f32", gelu_chain, [x, y, z], 4, 3 * host.nbytes, bounds="unchecked")
    mapped("gelu chain fast", gelu_chain, [x, y, z], 4, 3 * host.nbytes, bounds="unchecked",
           fast_math=True)  # fmt: skip

    rows, cols = 16384, 4096
    sums = client.empty(rows, float32)
    for size in (128, 256, 512):
        kernel = row_sum.ir(x, sums, cols=cols, size=size, cube_dim=size, index=int32,
                            bounds="unchecked")  # fmt: skip
        compiled = client.load(kernel)
        run = partial(client.run, compiled, (rows, 1, 1), [x, sums])
        note(f"row sum 16384x4096 cube {size}", device_us(client, run), host.nbytes)
    wrong = np.abs(sums.numpy() - host.reshape(rows, cols).sum(1)).max()
    out["row sum error"] = float(wrong)

    side = 8192
    a, b = x.view((side, side)), z.view((side, side))
    for name, source in (("rows", a), ("transposed", x.view((side, side), (1, side)))):
        compiled = client.load(
            strided.ir((float32, 2), (float32, 2), cube_dim=(32, 8), index=int32)
        )
        run = lambda: client.run(compiled, (side // 32, side // 8, 1), [source, b])  # noqa: B023, E731
        note(f"strided copy {name}", device_us(client, run), nbytes)
    return out


def stored(matrix: Any, layout: str, stride: int, start: int) -> Any:
    """Return memory that holds a matrix by rows or by columns, from a place on."""
    rows, cols = matrix.shape
    out = np.zeros(start + 16 * stride + 16, matrix.dtype)
    for row in range(rows):
        for col in range(cols):
            at = row * stride + col if layout == "row" else col * stride + row
            out[start + at] = matrix[row, col]
    return out


def tiles(client: Any, only: str) -> dict[str, Any]:
    """Multiply tiles from every kind of memory and layout; time a product of halves."""
    failed: dict[str, str] = {}
    rng = np.random.default_rng(0)
    number = 0
    for name, inner in (("float16", 16), ("bfloat16", 16), ("float32", 8)):
        for shared in (False, True):
            # Aligned rows go through ldmatrix; odd strides and starts go element by element.
            for stride, start in ((24, 8), (16, 0), (19, 3)):
                for layouts in (("row", "row"), ("row", "col"), ("col", "row"), ("col", "col")):
                    left = rng.integers(-8, 8, (16, inner)).astype(np.float32)
                    right = rng.integers(-8, 8, (inner, 16)).astype(np.float32)
                    before = rng.integers(-8, 8, (16, 16)).astype(np.float32)
                    memory = [
                        stored(part, layout, stride, start)
                        for part, layout in zip((left, right), layouts, strict=True)
                    ]
                    if name == "bfloat16":
                        import ml_dtypes

                        given = [client.from_numpy(m.astype(ml_dtypes.bfloat16)) for m in memory]
                    else:
                        given = [client.from_numpy(m.astype(name)) for m in memory]
                    out = client.from_numpy(before)
                    tile_product.launch(
                        client, 1, *given, out.view((256,)), cube_dim=32,
                        sizes=(given[0].length, given[1].length), starts=(start, start),
                        strides=(stride, stride), layouts=layouts, shared=shared,
                    )  # fmt: skip
                    number += 1
                    if not np.array_equal(out.numpy(), left @ right + before):
                        case = f"{name} shared={shared} stride={stride} {layouts}"
                        failed[case] = "wrong product"
                        print("FAILED", case, flush=True)
    print(f"{number - len(failed)} of {number} tile products are exact")
    out = {"tiles": number, "failed": failed, "TFLOP/s": {}}
    for size in (256, 1024, 4096) if client.properties.kind == "gpu" else (128,):
        a = rng.integers(-4, 4, (size, size)).astype(np.float16)
        b = rng.integers(-4, 4, (size, size)).astype(np.float16)
        x, y = client.from_numpy(a).view((size * size,)), client.from_numpy(b).view((size * size,))
        z = client.zeros(size * size, float32)
        rates = {}
        good = True
        for label, function in (("own", tile_matmul), ("own, copies ahead", tile_matmul_ahead)):
            kernel = function.ir(x, y, z, size, size, cube_dim=256, index=int32, bounds="unchecked")
            run = partial(client.run, client.load(kernel), (size // 128, size // 128, 1),
                          [x, y, z, size, size])  # fmt: skip
            run()
            top = z.numpy().reshape(size, size)[:64]
            if not np.array_equal(top, a[:64].astype("f") @ b.astype("f")):
                failed[f"{label} {size}"] = "wrong product"
                good = False
            rates[label] = 2 * size**3 / device_us(client, run) * 1e-6
            # The next kernel must not pass on this one's result.
            client.runtime.copy(z.storage.handle, z.offset, x.storage.handle, x.offset, 64)
        if client.name.startswith("cuda"):
            import cupy

            p, q = cupy.asarray(a), cupy.asarray(b)
            cupy.matmul(p, q)
            start_event, end_event = cupy.cuda.Event(), cupy.cuda.Event()
            start_event.record()
            for _ in range(20):
                cupy.matmul(p, q)
            end_event.record()
            end_event.synchronize()
            spent = cupy.cuda.get_elapsed_time(start_event, end_event) / 20
            rates["cupy"] = 2 * size**3 / spent * 1e-9
        out["TFLOP/s"][str(size)] = rates
        print(f"matmul f16 {size}: {'right' if good else 'WRONG'} {rates} TFLOP/s", flush=True)
    return out


def latency(client: Any, only: str) -> dict[str, Any]:
    """Measure launches, graphs, allocation, read-back and first use."""
    out: dict[str, Any] = {}
    x, y = client.zeros(64, float32), client.zeros(64, float32)
    kernel = add_scaled.ir(x, y, 2.0, cube_dim=64, index=int32)
    program = client.load(kernel)
    grid, args = (1, 1, 1), [x, y, 2.0]
    out["launch of a program, us"] = host_us(client, lambda: program.launch(grid, args))
    out["launch through the client, us"] = host_us(client, lambda: client.run(program, grid, args))
    out["launch of the function, us"] = host_us(
        client, lambda: add_scaled.launch(client, 1, x, y, 2.0, cube_dim=64)
    )
    out["alloc and free 1 MiB, us"] = host_us(client, lambda: client.empty(1 << 18, float32))
    out["event, us"] = host_us(client, client.runtime.event)
    out["read back one float, us"] = host_us(client, x.numpy, 50)
    graph = client.runtime.graph([(program, grid, args)] * 20)
    if graph is not None:
        out["graph of 20: replay, us"] = host_us(client, graph.replay, 50)
        out["graph of 20: on the device, us"] = device_us(client, graph.replay)
        out["20 launches: on the device, us"] = device_us(
            client, lambda: [program.launch(grid, args) for _ in range(20)]
        )
        out["graph: patch of a node, us"] = host_us(client, lambda: graph.patch(3, grid, args), 50)
        start = time.perf_counter()
        client.runtime.graph([(program, grid, args)] * 20)
        out["graph of 20: made, us"] = (time.perf_counter() - start) * 1e6
    times = []
    for number in range(12):
        fresh = add_scaled.ir(x, y, 2.0, cube_dim=32 * (number + 3), index=int32)
        start = time.perf_counter()
        client.load(fresh)
        times.append((time.perf_counter() - start) * 1e3)
    out["compile of a map kernel, ms"] = statistics.median(times)
    again = type(client)(client.runtime)
    client.runtime._made.clear()
    start = time.perf_counter()
    again.load(kernel)
    out["from the cache on disk, ms"] = (time.perf_counter() - start) * 1e3
    for name, value in out.items():
        print(f"{name:34} {value:10.2f}")
    return out


def faults(client: Any, only: str) -> dict[str, Any]:
    """Break rules and see what comes: each entry says `ok` or what came instead."""
    out: dict[str, Any] = {}

    def expect(name: str, kind: type[BaseException], words: str, action: Callable[[], Any]) -> None:
        try:
            action()
        except kind as error:
            out[name] = "ok" if words in str(error) else f"said: {error}"
        except Exception as error:  # noqa: BLE001 - the report names it
            out[name] = f"{type(error).__name__}: {error}"
        else:
            out[name] = "nothing was raised"
        print(f"{name:40} {out[name][:300]}", flush=True)

    x = client.from_numpy(np.arange(4, dtype=np.float32))
    at = client.from_numpy(np.array([0, 9], np.int32))
    made = client.zeros(2, float32)

    def wild() -> None:
        pick.launch(client, 1, x, at, made, cube_dim=32, bounds="validated")
        client.sync()

    expect("validated bounds", bc.KernelFaultError, "9 in pick", wild)
    pick.launch(client, 1, x, at, made, cube_dim=32)
    out["checked bounds give 0"] = "ok" if made.numpy().tolist() == [0.0, 0.0] else "no"
    expect(
        "too large a cube",
        bc.LaunchError,
        "",
        lambda: pick.launch(client, 1, x, at, made, cube_dim=4096),
    )
    client.pool.limit = client.memory_report().reserved + (64 << 20)
    expect("limit of the pool", bc.OutOfMemoryError, "held by a test",
           lambda: [client.empty(8 << 20, float32, "held by a test") for _ in range(3)],
           )  # fmt: skip
    client.pool.limit = None
    huge = client.properties.memory
    expect(
        "memory of the device", bc.OutOfMemoryError, "in use", lambda: client.empty(huge, float32)
    )
    graph = client.runtime.graph([])
    if client.name.startswith("cuda"):
        source, target = client.zeros(64, float32), client.zeros(64, float32)
        program = client.load(add_scaled.ir(source, target, 2.0, cube_dim=64, index=int32))
        graph = client.runtime.graph([(program, (1, 1, 1), [source, target, 2.0]),
                                      (program, (1, 1, 1), [target, source, 3.0])])  # fmt: skip
        graph.replay()
        first = source.numpy()[0]
        graph.patch(1, (1, 1, 1), [target, source, 5.0])
        graph.replay()
        second = source.numpy()[0]
        good = first == 4.0 and second == 5.0 * (first * 2.0 + 1.0) + 1.0
        out["graph runs and is patched"] = "ok" if good else f"{first}, {second}"
        lost = subprocess.run(
            [sys.executable, __file__, "--part", "wild"],
            capture_output=True,
            text=True,
            timeout=300,
        )
        said = "DeviceLostError" in lost.stdout and "pick" in lost.stdout
        out["a wild access names its kernel"] = "ok" if said else lost.stdout + lost.stderr
    readings = client.read_async([x, at])
    values = [reading.result().tolist() for reading in readings]
    out["asynchronous read-back"] = "ok" if values == [[0, 1, 2, 3], [0, 9]] else str(values)
    for name, value in out.items():
        print(f"{name:40} {value[:300]}")
    return out


def wild(client: Any, only: str) -> dict[str, Any]:
    """Read far outside without checks: the context is lost, so this is its own process."""
    x = client.zeros(4, float32)
    at = client.from_numpy(np.full(2, 2**31 - 1, np.int32))
    try:
        pick.launch(client, 1, x, at, client.zeros(2, float32), cube_dim=32, bounds="unchecked")
        client.sync()
    except Exception as error:  # noqa: BLE001 - the parent reads what came
        print(type(error).__name__, error)
    return {}


PARTS = {"cases": cases, "tiles": tiles, "latency": latency, "speed": speed, "faults": faults}


def main() -> int:
    """Run the parts that are asked for and not yet measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runtime", default="cuda", choices=["cuda", "opencl", "cpu"])
    parser.add_argument("--part", choices=[*PARTS, "wild"], action="append")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    options = parser.parse_args()
    import os

    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("BURN_CACHE_DIR", folder)
        client = open_client(options.runtime)
        print(client, client.properties, flush=True)
        if options.part == ["wild"]:
            wild(client, "")
            return 0
        known: dict[str, Any] = {}
        if options.json and options.json.exists():
            known = json.loads(options.json.read_text())
        wrong = False
        for name in options.part or PARTS:
            if name in known and name not in (options.part or ()):
                continue
            print(f"--- {name}", flush=True)
            known[name] = PARTS[name](client, options.only)
            wrong |= bool(known[name].get("failed"))
            known["device"] = client.properties.name
            known["machine"] = f"Python {platform.python_version()}, numpy {np.__version__}"
            if options.json:
                options.json.parent.mkdir(parents=True, exist_ok=True)
                options.json.write_text(json.dumps(known, indent=1) + "\n")
        missing = [name for name in PARTS if name not in known]
        print("still unmeasured:", ", ".join(missing) or "nothing")
        return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
