# ruff: noqa: D103 - the functions here are kernels, named by what they test
# What an annotation means in a kernel, a type checker cannot know.
# mypy: ignore-errors
"""Cases of memory and of units that work together: shared memory, planes, atomics, vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from burn_cube import language as lang
from burn_cube.conformance.case import Case, ramp
from burn_cube.kernel import cube
from burn_cube.language import (
    ABSOLUTE_POS,
    ABSOLUTE_POS_X,
    ABSOLUTE_POS_Y,
    CUBE_COUNT,
    CUBE_DIM,
    CUBE_DIM_X,
    CUBE_POS,
    CUBE_POS_X,
    CUBE_POS_Y,
    PLANE_DIM,
    PLANE_POS,
    UNIT_POS,
    UNIT_POS_PLANE,
    UNIT_POS_X,
    UNIT_POS_Y,
    Array,
    Generic,
    SharedMemory,
    Tensor,
    cast,
    comptime,
    index,
    splat,
    sync_cube,
    unroll,
    vector,
)
from burn_std.dtypes import int32

F = Generic("F")


@cube
def reverse_in_cube(x: Array[F], out: Array[F]):
    tile = SharedMemory(F, CUBE_DIM)
    tile[UNIT_POS] = x[ABSOLUTE_POS]
    sync_cube()
    out[ABSOLUTE_POS] = tile[CUBE_DIM - 1 - UNIT_POS]


@cube
def tree_sum(x: Array[F], out: Array[F]):
    tile = SharedMemory(F, CUBE_DIM)
    tile[UNIT_POS] = x[ABSOLUTE_POS] if len(x) > ABSOLUTE_POS else F(0)
    sync_cube()
    step = comptime(CUBE_DIM // 2)
    steps = [step >> k for k in range(step.bit_length())]
    for half in steps:
        if half > UNIT_POS:
            tile[UNIT_POS] = tile[UNIT_POS] + tile[UNIT_POS + half]
        sync_cube()
    if UNIT_POS == 0:
        out[CUBE_POS] = tile[0]


@cube
def loop_with_barrier(x: Array[F], out: Array[F], rounds: int32):
    tile = SharedMemory(F, CUBE_DIM)
    value = x[ABSOLUTE_POS]
    for r in range(rounds):
        tile[UNIT_POS] = value
        sync_cube()
        neighbour = tile[(UNIT_POS + 1) % CUBE_DIM]
        sync_cube()
        value = value + neighbour * F(2) + cast(r, F)
    out[ABSOLUTE_POS] = value


@cube
def while_with_barrier(out: Array[F], limit: int32):
    tile = SharedMemory(int32, 1)
    count = int32(0)
    while count < limit:
        if UNIT_POS == 0:
            tile[0] = count * 2
        sync_cube()
        count = count + 1
        got = tile[0]
        sync_cube()
        if UNIT_POS == CUBE_DIM - 1:
            out[CUBE_POS] = out[CUBE_POS] + cast(got, F)


@cube
def matmul_tiled(a: Tensor[F, 2], b: Tensor[F, 2], c: Tensor[F, 2], *, size):
    row, col = CUBE_POS_Y * size + UNIT_POS_Y, CUBE_POS_X * size + UNIT_POS_X
    left, right = SharedMemory(F, size * size), SharedMemory(F, size * size)
    place = UNIT_POS_Y * size + UNIT_POS_X
    inner = a.shape[1]
    acc = F(0)
    for t in range((inner + size - 1) // size):
        k = t * size + UNIT_POS_X
        left[place] = a[row, k] if row < a.shape[0] and k < inner else F(0)
        k = t * size + UNIT_POS_Y
        right[place] = b[k, col] if k < inner and col < b.shape[1] else F(0)
        sync_cube()
        for j in range(size):
            acc += left[UNIT_POS_Y * size + j] * right[j * size + UNIT_POS_X]
        sync_cube()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc


@cube
def transpose(x: Tensor[F, 2], out: Tensor[F, 2]):
    row, col = ABSOLUTE_POS_Y, ABSOLUTE_POS_X
    if row < x.shape[0] and col < x.shape[1]:
        out[col, row] = x[row, col]


@cube
def strided_copy(x: Tensor[F], out: Array[F]):
    i = ABSOLUTE_POS
    if i < len(out):
        rest = i
        place = index(0)
        for d in unroll(range(x.rank - 1, -1, -1)):
            place += rest % x.shape[d] * x.strides[d]
            rest = rest // x.shape[d]
        out[i] = x.flat[place]


@cube
def positions(out: Array[int32]):
    i = ABSOLUTE_POS
    places = [ABSOLUTE_POS, UNIT_POS, CUBE_POS, CUBE_COUNT, PLANE_POS, UNIT_POS_PLANE,
              CUBE_POS_Y, UNIT_POS_Y, ABSOLUTE_POS_Y, CUBE_DIM_X]  # fmt: skip
    for k in unroll(range(len(places))):
        out[i * 10 + k] = cast(places[k], int32)


@cube
def plane_op(x: Array[F], out: Array[F], *, fn):
    value = x[ABSOLUTE_POS]
    out[ABSOLUTE_POS] = cast(fn(value), F)


@cube
def histogram(x: Array[int32], out: Array[F]):
    i = ABSOLUTE_POS
    if i < len(x):
        lang.atomic_add(out, cast(x[i], index), 1)


@cube
def shared_histogram(x: Array[int32], out: Array[int32], *, bins):
    counts = SharedMemory(int32, bins)
    for b in range(UNIT_POS, bins, CUBE_DIM):
        counts[b] = 0
    sync_cube()
    if len(x) > ABSOLUTE_POS:
        lang.atomic_add(counts, cast(x[ABSOLUTE_POS], index), 1)
    sync_cube()
    for b in range(UNIT_POS, bins, CUBE_DIM):
        lang.atomic_add(out, b, counts[b])


@cube
def atomic_fold(x: Array[int32], out: Array[int32]):
    i = ABSOLUTE_POS
    if i < len(x):
        lang.atomic_min(out, 0, x[i])
        lang.atomic_max(out, 1, x[i])
        lang.atomic_or(out, 2, x[i])
        lang.atomic_and(out, 3, x[i])
        lang.atomic_xor(out, 4, x[i])
        lang.atomic_sub(out, 5, x[i])


@cube
def atomic_loop(x: Array[int32], out: Array[int32]):
    i = ABSOLUTE_POS
    if i < len(x):
        old = out[0]
        while True:
            seen = lang.atomic_cas(out, 0, old, old + x[i])
            if seen == old:
                break
            old = seen


@cube
def vector_axpy(x: Array[F], y: Array[F], a: F, *, width):
    i = ABSOLUTE_POS * width
    if i + width <= len(x):
        y.store(i, x.load(i, width) * a + y.load(i, width))


@cube
def vector_elements(x: Array[F, 4], out: Array[F]):
    i = ABSOLUTE_POS
    if i < len(x):
        v = x[i] * vector(F(1), F(2), F(3), F(4)) + splat(F(1), 4)
        big = v > F(3)
        total = F(0)
        for lane in v:
            total += lane
        out[i] = total + lang.select(big[0], F(100), F(0))


@cube
def vector_store(x: Array[F], out: Array[F, 2]):
    i = ABSOLUTE_POS
    if i < len(out):
        out[i] = vector(x[2 * i + 1], x[2 * i])


@cube
def slices(x: Array[F], out: Array[F], cols: int32):
    row = ABSOLUTE_POS
    n = cast(cols, index)
    if row < len(out):
        line = x[row * n : (row + 1) * n]
        total = F(0)
        for k in range(len(line)):
            total += line[k]
        tail = line[1:]
        out[row] = total * tail[0]


@cube
def guarded_by_bounds(x: Array[F], out: Array[F]):
    out[ABSOLUTE_POS] = x[ABSOLUTE_POS + 3]


@cube
def plane_tile_sum(x: Array[F], out: Array[F]):
    value = x[ABSOLUTE_POS]
    for k in unroll([16, 8, 4, 2, 1]):
        value = value + lang.plane_shuffle_xor(value, k)
    out[ABSOLUTE_POS] = value + cast(PLANE_DIM, F)


def _case(
    name: str, kernel: Any, cubes: Any, args: Any, expect: Any = None, **options: Any
) -> Case:
    ulps = options.pop("ulps", 0)
    return Case(name, kernel, cubes, args, expect, options, ulps)


PLANES: dict[str, tuple[Any, str]] = {
    "sum": (lang.plane_sum, "float32"), "prod": (lang.plane_prod, "float32"),
    "min": (lang.plane_min, "float32"), "max": (lang.plane_max, "int32"),
    "inclusive_sum": (lang.plane_inclusive_sum, "int32"),
    "exclusive_sum": (lang.plane_exclusive_sum, "int64"),
    "inclusive_prod": (lang.plane_inclusive_prod, "int32"),
    "exclusive_prod": (lang.plane_exclusive_prod, "float64"),
    "shuffle": (lambda v: lang.plane_shuffle(v, 5), "float32"),
    "shuffle_xor": (lambda v: lang.plane_shuffle_xor(v, 3), "int64"),
    "shuffle_up": (lambda v: lang.plane_shuffle_up(v, 2), "float32"),
    "shuffle_down": (lambda v: lang.plane_shuffle_down(v, 3), "float64"),
    "broadcast": (lambda v: lang.plane_broadcast(v, 7), "uint32"),
    "all": (lambda v: lang.plane_all(v > 2), "int32"),
    "any": (lambda v: lang.plane_any(v > 90), "int32"),
    "ballot": (lambda v: lang.plane_ballot(v % 3 == 1), "uint32"),
    "count": (lambda v: lang.ballot_count(lang.plane_ballot(v % 3 == 1)), "uint32"),
}  # fmt: skip


def together_cases() -> Iterator[Case]:
    """Yield the cases of this module."""
    for dtype in ("float32", "int64", "float16"):
        yield _case(
            f"reverse_in_cube_{dtype}", reverse_in_cube, 3,
            lambda d=dtype: [ramp(192, d), np.zeros(192, d)],
            lambda x, o: {1: x.reshape(3, 64)[:, ::-1].reshape(-1)}, cube_dim=64,
        )  # fmt: skip
        yield _case(
            f"tree_sum_{dtype}", tree_sum, 3, lambda d=dtype: [ramp(180, d), np.zeros(3, d)],
            cube_dim=64,
        )  # fmt: skip
    yield _case(
        "loop_with_barrier", loop_with_barrier, 2, lambda: [ramp(64), np.zeros(64, "f"), 4],
        cube_dim=32,
    )  # fmt: skip
    yield _case(
        "while_with_barrier", while_with_barrier, 3, lambda: [np.zeros(3, "f"), 5],
        lambda o, n: {0: np.full(3, 20, "f")}, cube_dim=16,
    )  # fmt: skip
    yield _case(
        "matmul_tiled", matmul_tiled, (3, 2),
        lambda: [ramp(13 * 10).reshape(13, 10), ramp(10 * 20).reshape(10, 20),
                 np.zeros((13, 20), "f")],
        cube_dim=(8, 8), size=8,
    )  # fmt: skip
    yield _case(
        "transpose", transpose, (2, 3), lambda: [ramp(7 * 9).reshape(7, 9), np.zeros((9, 7), "f")],
        lambda x, o: {1: x.T.copy()}, cube_dim=(8, 4),
    )  # fmt: skip
    yield _case(
        "strided_copy", strided_copy, 1,
        lambda: [ramp(24).reshape(2, 3, 4), np.zeros(24, "f")],
        lambda x, o: {1: x.reshape(-1)}, cube_dim=32,
    )  # fmt: skip
    yield _case("positions", positions, (2, 2), lambda: [np.zeros(2 * 2 * 48 * 10, "i4")],
                cube_dim=(16, 3))  # fmt: skip
    for name, (fn, dtype) in PLANES.items():
        small = "prod" in name
        yield _case(
            f"plane_{name}", plane_op, 2,
            lambda d=dtype, s=small: [
                (np.arange(128) % 3 + 1).astype(d) if s else np.arange(128).astype(d),
                np.zeros(128, d)],
            fn=fn, cube_dim=64,
        )  # fmt: skip
    yield _case("plane_tile_sum", plane_tile_sum, 1, lambda: [ramp(64), np.zeros(64, "f")],
                cube_dim=64)  # fmt: skip
    yield from _atomics_and_vectors()
    yield from _tiles()
    yield from _copies()


def _atomics_and_vectors() -> Iterator[Case]:
    def data() -> Any:
        return (np.arange(200) * 7 % 13).astype(np.int32)

    for dtype in ("int32", "uint32", "int64", "float32"):
        yield _case(
            f"histogram_{dtype}", histogram, 4, lambda d=dtype: [data(), np.zeros(13, d)],
            lambda x, o: {1: np.bincount(x, minlength=13).astype(o.dtype)}, cube_dim=64,
        )  # fmt: skip
    yield _case("shared_histogram", shared_histogram, 4, lambda: [data(), np.zeros(13, "i4")],
                lambda x, o: {1: np.bincount(x, minlength=13).astype("i4")}, cube_dim=64,
                bins=13)  # fmt: skip
    yield _case("atomic_fold", atomic_fold, 4, lambda: [data() + 3, np.array(
        [99, -99, 0, 255, 0, 0], "i4")], cube_dim=64)  # fmt: skip
    yield _case("atomic_loop", atomic_loop, 4, lambda: [data(), np.zeros(1, "i4")],
                lambda x, o: {1: np.array([x.sum()], "i4")}, cube_dim=64,
                bounds="unchecked")  # fmt: skip
    for width in (2, 4, 8, 16):
        yield _case(
            f"vector_axpy_{width}", vector_axpy, 2, lambda: [ramp(320), ramp(320), 3.0],
            lambda x, y, a: {1: x * 3 + y}, cube_dim=160 // width, width=width,
        )  # fmt: skip
    yield _case("vector_elements", vector_elements, 2, lambda: [ramp(256), np.zeros(64, "f")],
                cube_dim=32)  # fmt: skip
    yield _case("vector_store", vector_store, 2, lambda: [ramp(128), np.zeros(128, "f")],
                cube_dim=32)  # fmt: skip
    yield _case("slices", slices, 1, lambda: [ramp(50), np.zeros(10, "f"), 5], cube_dim=16)
    yield _case("guarded_by_bounds", guarded_by_bounds, 2, lambda: [ramp(50), np.zeros(45, "f")],
                lambda x, o: {1: x[3:48]}, cube_dim=32, bounds="checked")  # fmt: skip


@cube
def tile_matmul(a: Array[F], b: Array[F], c: Array[lang.float32], k: int32, *, inner):
    acc = lang.tile_fill(0.0)
    for step in range(k // inner):
        at = cast(step * inner, index)
        left = lang.tile_load("a", a, at, k)
        right = lang.tile_load("b", b, at * 16, 16)
        acc = lang.tile_mma(left, right, acc)
    lang.tile_store(c, CUBE_POS * 256 + PLANE_POS * 256, 16, acc)


@cube
def tile_elements(a: Array[F], b: Array[F], c: Array[lang.float32]):
    left = lang.tile_load("a", a, 0, 16)
    right = lang.tile_load("b", b, 0, 16, layout="col")
    acc = lang.tile_mma(left, right, lang.tile_fill(1.0))
    row = [lang.UNIT_POS_PLANE // 4 + n // 2 % 2 * 8 for n in range(8)]
    col = [lang.UNIT_POS_PLANE % 4 * 2 + n % 2 + n // 4 * 8 for n in range(8)]
    held = [lang.tile_element(acc, n) + cast(row[n] * 2 + col[n], lang.float32) for n in range(8)]
    again = lang.tile_operand(lang.tile_of(held), F)
    lang.tile_store(c, 0, 16, lang.tile_mma(again, right, lang.tile_of(held)))


@cube
def group_product(a: Array[F], b: Array[F], c: Array[lang.float32], *, turned, held):
    """Twice a product of 64 x 32 and 32 x 80, from lines along either side."""
    left, right = SharedMemory(F, 64 * 64), SharedMemory(F, 2 * 40 * 64)
    for at in range(UNIT_POS, 64 * 32, CUBE_DIM):
        row, k = at // 32, at % 32
        line, column = (k, row) if turned[0] else (row, k)
        left[lang.group_place(line, column)] = a[at]
    for at in range(UNIT_POS, 32 * 80, CUBE_DIM):
        k, col = at // 80, at % 80
        line, column = (col // 64 * 32 + k, col % 64) if turned[1] else (col, k)
        right[lang.group_place(line, column)] = b[at]
    sync_cube()
    sums = [lang.local(lang.tile_fill(7.0)) for _ in range(5)]
    places = [[0, 16 * 64 if turns else 16] for turns in turned]
    given = (left, places[0])
    if held:
        given = [lang.tile_load("a", a, PLANE_POS * 16 * 32 + 16 * n, 32) for n in range(2)]
    for fresh in unroll((True, False)):
        lang.group_mma(sums, given, right, places[1], turned=turned, span=(64, 32), fresh=fresh)
    lang.group_wait(sums)
    for n in unroll(range(5)):
        lang.tile_store(c, PLANE_POS * 16 * 80 + 16 * n, 80, sums[n])


@cube
def grouped_copies(x: Array[F], out: Array[F]):
    near = SharedMemory(F, 4 * CUBE_DIM * 4)
    for part in lang.unroll(range(3)):
        place = (part * CUBE_DIM + UNIT_POS) * 4
        lang.async_copy(near, place, x, place, 4, aligned=True, inside=place < 380)
        lang.async_commit()
    total = F(0)
    for part in lang.unroll(range(3)):
        lang.async_wait(2 - part)
        sync_cube()
        total += near[part * CUBE_DIM * 4 + UNIT_POS * 4 + 1] * F(part + 1)
        total += near[part * CUBE_DIM * 4 + (CUBE_DIM - 1 - UNIT_POS) * 4]
    out[UNIT_POS] = total


@cube
def copied_ahead(x: Array[F], out: Array[F], *, width):
    near = SharedMemory(F, 2 * CUBE_DIM * width)
    half = CUBE_DIM * width
    place = UNIT_POS * width
    lang.async_copy(near, place, x, place, width)
    total = F(0)
    for step in range(3):
        lang.async_wait()
        sync_cube()
        here = step % 2 * half
        if step < 2:
            lang.async_copy(near, half - here + place, x, (step + 1) * half + place, width)
        for k in range(width):
            total += near[here + k * CUBE_DIM + UNIT_POS] * cast(step + 1, F)
        sync_cube()
    out[UNIT_POS] = total


def _copies() -> Iterator[Case]:
    for width in (1, 4):
        yield _case(
            f"copied_ahead_{width}", copied_ahead, 1,
            lambda w=width: [ramp(3 * 32 * w), np.zeros(32, "f")],
            lambda x, o: {1: (x.reshape(3, -1, 32).sum(1) * [[1], [2], [3]]).sum(0).astype("f")},
            cube_dim=32, width=width,
        )  # fmt: skip
    yield _case("grouped_copies", grouped_copies, 1, lambda: [ramp(384), np.zeros(32, "f")],
                _grouped, cube_dim=32)  # fmt: skip


def _grouped(x: Any, o: Any) -> dict[int, Any]:
    parts = np.where(np.arange(384) < 380, x, 0).astype("f").reshape(3, 32, 4)
    total = np.zeros(32, "f")
    for n, part in enumerate(parts):
        total += part[:, 1] * np.float32(n + 1)
        total += part[::-1, 0]
    return {1: total}


def _tiles() -> Iterator[Case]:
    for dtype, inner in (("float16", 16), ("float32", 8)):
        yield Case(
            f"tile_matmul_{dtype}", tile_matmul, 1,
            lambda d=dtype: [(np.arange(16 * 48) % 7 - 3).astype(d),
                             (np.arange(48 * 16) % 5 - 2).astype(d), np.zeros(256, "f"), 48],
            lambda a, b, c, k: {2: (a.reshape(16, 48).astype("f")
                                    @ b.reshape(48, 16).astype("f")).reshape(-1)},
            {"cube_dim": 32, "inner": inner}, 0, ("tiles",),
        )  # fmt: skip
    yield Case(
        "tile_elements", tile_elements, 1,
        lambda: [(np.arange(256) % 7 - 3).astype("float16"),
                 (np.arange(256) % 5 - 2).astype("float16"), np.zeros(256, "f")],
        _held, {"cube_dim": 32}, 0, ("tiles",),
    )  # fmt: skip

    for name, turned, held in (
        ("", (False, False), False), ("_left", (True, False), False),
        ("_right", (False, True), False), ("_both", (True, True), False),
        ("_held", (False, False), True), ("_held_right", (False, True), True),
    ):  # fmt: skip
        yield Case(
            f"group_product{name}", group_product, 1,
            lambda: [(np.arange(64 * 32) % 7 - 3).astype("float16"),
                     (np.arange(32 * 80) % 9 - 4).astype("float16"), np.zeros(64 * 80, "f")],
            lambda a, b, c: {2: 2 * (a.reshape(64, 32).astype("f")
                                     @ b.reshape(32, 80).astype("f")).reshape(-1)},
            {"cube_dim": 128, "turned": turned, "held": held}, 0, ("tiles",),
        )  # fmt: skip


def _held(a: Any, b: Any, c: Any) -> dict[int, Any]:
    left, right = a.reshape(16, 16).astype("f"), b.reshape(16, 16).astype("f").T
    held = left @ right + 1 + np.arange(16)[:, None] * 2 + np.arange(16)
    return {2: (held.astype(a.dtype).astype("f") @ right + held).astype("f").reshape(-1)}
