# ruff: noqa: D103 - the functions here are kernels, named by what they test
# What an annotation means in a kernel, a type checker cannot know.
# mypy: ignore-errors
"""Cases of units that work together: shared memory, planes, atomics, tiles, grids, bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

import burn_cube.language as lang
import burn_cube.mathematics as m
from burn_cube.conformance.case import Collection
from burn_cube.kernel import cube
from burn_cube.language import (
    ABSOLUTE_POS,
    CUBE_COUNT,
    CUBE_DIM,
    CUBE_POS,
    PLANE_COUNT,
    PLANE_DIM,
    PLANE_POS,
    UNIT_POS,
    UNIT_POS_PLANE,
    Array,
    Float,
    LocalArray,
    SharedMemory,
    bitcast,
    cast,
    sync_cube,
)
from burn_std.dtypes import float32, int32, int64, uint32

F = Float
COOPERATION = Collection()
case = COOPERATION.case


def ramp(n: int, dtype: str = "f") -> Any:
    return (np.arange(n) * 7 % 31).astype(dtype)


# ---- shared memory -------------------------------------------------------------------------------


@case(lambda: [ramp(64), np.zeros(64, "f")], cube_dim=64,
      expect=lambda x, o: {1: np.cumsum(x).astype("f")})  # fmt: skip
@cube
def running_sum(x: Array[F], out: Array[F]):
    part = SharedMemory(F, CUBE_DIM)
    part[UNIT_POS] = x[UNIT_POS]
    sync_cube()
    for step in [1, 2, 4, 8, 16, 32]:
        held = part[UNIT_POS]
        if step <= UNIT_POS:
            held += part[UNIT_POS - step]
        sync_cube()
        part[UNIT_POS] = held
        sync_cube()
    out[UNIT_POS] = part[UNIT_POS]


@case(lambda: [ramp(66), np.zeros(64, "f")], cube_dim=32, cubes=2,
      expect=lambda x, o: {1: x[:-2] + x[1:-1] * 2 + x[2:]})  # fmt: skip
@cube
def stencil_with_a_border(x: Array[F], out: Array[F]):
    near = SharedMemory(F, CUBE_DIM + 2)
    near[UNIT_POS] = x[ABSOLUTE_POS]
    if UNIT_POS < 2:
        near[CUBE_DIM + UNIT_POS] = x[ABSOLUTE_POS + CUBE_DIM]
    sync_cube()
    out[ABSOLUTE_POS] = near[UNIT_POS] + near[UNIT_POS + 1] * 2.0 + near[UNIT_POS + 2]


@case(lambda: [ramp(32, "i4"), np.zeros(32, "i4")], expect=lambda x, o: {1: np.sort(x)})
@cube
def odd_even_sort(x: Array[int32], out: Array[int32]):
    near = SharedMemory(int32, CUBE_DIM)
    near[UNIT_POS] = x[UNIT_POS]
    sync_cube()
    for turn in range(CUBE_DIM):
        if cast(turn, lang.index) % 2 == UNIT_POS % 2 and UNIT_POS + 1 < CUBE_DIM:
            a, b = near[UNIT_POS], near[UNIT_POS + 1]
            if a > b:
                near[UNIT_POS] = b
                near[UNIT_POS + 1] = a
        sync_cube()
    out[UNIT_POS] = near[UNIT_POS]


@case(lambda: [(np.arange(64) == 32).astype("u4"), np.zeros(64, "u4"), 20], cube_dim=64)
@cube
def rule_thirty(x: Array[uint32], out: Array[uint32], turns: int32):
    line = SharedMemory(uint32, 2 * CUBE_DIM)
    line[UNIT_POS] = x[UNIT_POS]
    sync_cube()
    for turn in range(turns):
        here = cast(turn % 2, lang.index) * CUBE_DIM
        left = line[here + (UNIT_POS + CUBE_DIM - 1) % CUBE_DIM]
        own = line[here + UNIT_POS]
        right = line[here + (UNIT_POS + 1) % CUBE_DIM]
        line[CUBE_DIM - here + UNIT_POS] = left ^ (own | right)
        sync_cube()
    out[UNIT_POS] = line[cast(turns % 2, lang.index) * CUBE_DIM + UNIT_POS]


@case(lambda: [ramp(48), np.zeros(48, "f"), np.zeros(48, "i4")], cube_dim=16, cubes=3,
      expect=lambda x, a, b: {1: x.reshape(3, 16)[:, ::-1].reshape(-1),
                              2: np.tile(np.arange(15, -1, -1), 3).astype("i4")})  # fmt: skip
@cube
def two_kinds_of_shared(x: Array[F], a: Array[F], b: Array[int32]):
    values, places = SharedMemory(F, CUBE_DIM), SharedMemory(int32, CUBE_DIM)
    other = CUBE_DIM - 1 - UNIT_POS
    values[other] = x[ABSOLUTE_POS]
    places[other] = cast(UNIT_POS, int32)
    sync_cube()
    a[ABSOLUTE_POS] = values[UNIT_POS]
    b[ABSOLUTE_POS] = places[UNIT_POS]


@case(lambda: [ramp(40), np.zeros(40, "f")], cube_dim=8, cubes=5,
      expect=lambda x, o: {1: x - np.repeat(x.reshape(5, 8).max(1), 8)})  # fmt: skip
@cube
def told_by_one_unit(x: Array[F], out: Array[F]):
    top = SharedMemory(F, 1)
    if UNIT_POS == 0:
        best = x[ABSOLUTE_POS]
        for k in range(1, CUBE_DIM):
            best = m.maximum(best, x[ABSOLUTE_POS + k])
        top[0] = best
    sync_cube()
    out[ABSOLUTE_POS] = x[ABSOLUTE_POS] - top[0]


@case(lambda: [ramp(50), np.zeros(2, "f")], cube_dim=32, cubes=2,
      expect=lambda x, o: {1: np.array([x[:32].max(), x[32:].max()])})  # fmt: skip
@cube
def idle_units_still_wait(x: Array[F], out: Array[F]):
    part = SharedMemory(F, CUBE_DIM)
    part[UNIT_POS] = x[ABSOLUTE_POS] if len(x) > ABSOLUTE_POS else F(float("-inf"))
    sync_cube()
    for step in [16, 8, 4, 2, 1]:
        if step > UNIT_POS:
            part[UNIT_POS] = m.maximum(part[UNIT_POS], part[UNIT_POS + step])
        sync_cube()
    if UNIT_POS == 0:
        out[CUBE_POS] = part[0]


@case(lambda: [ramp(32), np.zeros(32, "f")], expect=lambda x, o: {
    1: np.array([x[k * 5 % 32] * 2 for k in range(32)])})  # fmt: skip
@cube
def own_memory_across_a_barrier(x: Array[F], out: Array[F]):
    own, near = LocalArray(F, 2), SharedMemory(F, CUBE_DIM)
    own[0] = x[UNIT_POS]
    own[1] = own[0] * 2.0
    sync_cube()
    near[UNIT_POS] = own[1]
    sync_cube()
    out[UNIT_POS] = near[UNIT_POS * 5 % CUBE_DIM]


# ---- planes --------------------------------------------------------------------------------------


@case(lambda: [ramp(256), np.zeros(2, "f")], cube_dim=128, cubes=2,
      expect=lambda x, o: {1: x.reshape(2, 128).sum(1)})  # fmt: skip
@cube
def two_level_sum(x: Array[F], out: Array[F]):
    part = SharedMemory(F, PLANE_COUNT)
    total = lang.plane_sum(x[ABSOLUTE_POS])
    if UNIT_POS_PLANE == 0:
        part[PLANE_POS] = total
    sync_cube()
    if UNIT_POS == 0:
        whole = F(0)
        for k in range(PLANE_COUNT):
            whole += part[k]
        out[CUBE_POS] = whole


@case(lambda: [ramp(64), np.zeros(64, "f")], cube_dim=64,
      expect=lambda x, o: {1: np.repeat(x.reshape(2, 32).sum(1), 32)})  # fmt: skip
@cube
def butterfly(x: Array[F], out: Array[F]):
    total = x[UNIT_POS]
    for mask in [1, 2, 4, 8, 16]:
        total += lang.plane_shuffle_xor(total, mask)
    out[UNIT_POS] = total


@case(lambda: [ramp(32, "i4"), np.full(32, -1, "i4"), np.zeros(1, "i4")],
      expect=lambda x, o, n: {1: np.concatenate([x[x > 15], np.full((x <= 15).sum(), -1)]).astype(
          "i4"), 2: np.array([(x > 15).sum()], "i4")})  # fmt: skip
@cube
def compaction(x: Array[int32], out: Array[int32], count: Array[int32]):
    v = x[UNIT_POS]
    votes = lang.plane_ballot(v > 15)
    before = lang.plane_exclusive_sum(int32(1) if v > 15 else 0)
    if v > 15:
        out[before] = v
    if UNIT_POS == 0:
        count[0] = cast(lang.ballot_count(votes), int32)


@case(lambda: [np.zeros(1, "i4"), np.zeros(128, "i4")], cube_dim=128,
      expect=lambda n, o: {0: np.array([4], "i4"),
                           1: (np.arange(128) // 32).astype("i4")})  # fmt: skip
@cube
def one_of_each_plane(count: Array[int32], out: Array[int32]):
    if lang.plane_elect():
        lang.atomic_add(count, 0, 1)
    out[UNIT_POS] = cast(PLANE_POS, int32)


@case(lambda: [ramp(64), np.zeros(64, "f")], cube_dim=64, expect=lambda x, o: {
    1: x - np.repeat(x.reshape(2, 32)[:, 0], 32) + np.repeat(x.reshape(2, 32).min(1), 32)
    })  # fmt: skip
@cube
def first_and_least(x: Array[F], out: Array[F]):
    v = x[UNIT_POS]
    out[UNIT_POS] = v - lang.plane_broadcast(v, 0) + lang.plane_min(v)


@case(lambda: [ramp(32, "i4"), np.zeros(32, "i4")], expect=lambda x, o: {
    1: np.where(np.arange(32) == 0, 0, x - np.roll(x, 1)).astype("i4")})  # fmt: skip
@cube
def differences_in_a_plane(x: Array[int32], out: Array[int32]):
    v = x[UNIT_POS]
    before = lang.plane_shuffle_up(v, 1)
    out[UNIT_POS] = v - before if UNIT_POS_PLANE > 0 else 0


@case(lambda: [ramp(96), np.zeros(3, "f")], cube_dim=96, expect=lambda x, o: {
    1: np.array([x[:32].sum(), x[32:64].max(), x[64:].sum()])})  # fmt: skip
@cube
def planes_in_a_loop(x: Array[F], out: Array[F]):
    value = x[UNIT_POS]
    for turn in range(2):
        total, top = lang.plane_sum(value), lang.plane_max(value)
        if turn == 1 and UNIT_POS_PLANE == 0:
            out[PLANE_POS] = top if PLANE_POS == 1 else total
    lang.sync_plane()


@case(lambda: [ramp(64, "i4") % 3, np.zeros(4, "i4")], cube_dim=64, expect=lambda x, o: {
    1: np.array([0, 1, 0, 1], "i4")})  # fmt: skip
@cube
def votes(x: Array[int32], out: Array[int32]):
    every = lang.plane_all(x[UNIT_POS] < 2)
    some = lang.plane_any(x[UNIT_POS] == 2)
    if UNIT_POS_PLANE == 0:
        out[PLANE_POS * 2] = int32(1) if every else 0
        out[PLANE_POS * 2 + 1] = int32(1) if some else 0


# ---- atomics -------------------------------------------------------------------------------------


@case(lambda: [ramp(128, "i8") - 9, np.array([2**62, -(2**62)])], cube_dim=32, cubes=4,
      expect=lambda x, o: {1: np.array([x.min(), x.max()])})  # fmt: skip
@cube
def extremes(x: Array[int64], out: Array[int64]):
    lang.atomic_min(out, 0, x[ABSOLUTE_POS])
    lang.atomic_max(out, 1, x[ABSOLUTE_POS])


@case(lambda: [ramp(64, "u4") % 32, np.array([0, 2**32 - 1, 0], "u4")], cube_dim=32, cubes=2,
      expect=lambda x, o: {1: np.array([
          np.bitwise_or.reduce(1 << x), ~np.bitwise_or.reduce(1 << x),
          np.bitwise_xor.reduce(1 << x)], "u4")})  # fmt: skip
@cube
def sets_of_bits(x: Array[uint32], out: Array[uint32]):
    bit = uint32(1) << x[ABSOLUTE_POS]
    lang.atomic_or(out, 0, bit)
    lang.atomic_and(out, 1, ~bit)
    lang.atomic_xor(out, 2, bit)


@case(lambda: [ramp(64) / 4, np.zeros(1, "f")], cube_dim=64,
      expect=lambda x, o: {1: np.array([x.max()])})  # fmt: skip
@cube
def largest_float_by_its_bits(x: Array[float32], out: Array[float32]):
    best = SharedMemory(int32, 1)
    if UNIT_POS == 0:
        best[0] = 0
    sync_cube()
    lang.atomic_max(best, 0, bitcast(x[UNIT_POS], int32))
    sync_cube()
    if UNIT_POS == 0:
        out[0] = bitcast(best[0], float32)


@case(lambda: [ramp(128), np.zeros(1, "i4")], cube_dim=32, cubes=4,
      expect=lambda x, o: {1: (x.max() * 2).reshape(1).view("i4")})  # fmt: skip
@cube
def largest_by_compare_and_swap(x: Array[float32], out: Array[int32]):
    mine = x[ABSOLUTE_POS] * 2.0
    seen = lang.atomic_cas(out, 0, 0, 0)
    while bitcast(seen, float32) < mine:
        held = lang.atomic_cas(out, 0, seen, bitcast(mine, int32))
        if held == seen:
            break
        seen = held


@case(lambda: [np.array([100], "i4"), np.zeros(64, "i4")], cube_dim=64)
@cube
def tickets(left: Array[int32], seen: Array[int32]):
    ticket = lang.atomic_sub(left, 0, 1)
    lang.atomic_add(seen, cast(100 - ticket, lang.index), 1)


@case(lambda: [np.array([5, 5], "i4"), np.zeros(4, "i4")], cube_dim=1, expect=lambda x, o: {
    0: np.array([8, 9], "i4"), 1: np.array([5, 5, 5, 8], "i4")})  # fmt: skip
@cube
def exchanges(x: Array[int32], out: Array[int32]):
    out[0] = lang.atomic_cas(x, 0, 5, 8)
    out[1] = lang.atomic_cas(x, 1, 7, 1)
    out[2] = lang.atomic_exchange(x, 1, 9)
    out[3] = lang.atomic_cas(x, 0, 5, 1)


@case(lambda: [ramp(256), np.zeros(4, "f")], cube_dim=64, cubes=4,
      expect=lambda x, o: {1: x.reshape(4, 64).sum(1)})  # fmt: skip
@cube
def floats_added_in_shared(x: Array[float32], out: Array[float32]):
    total = SharedMemory(float32, 1)
    if UNIT_POS == 0:
        total[0] = 0.0
    sync_cube()
    lang.atomic_add(total, 0, x[ABSOLUTE_POS])
    sync_cube()
    if UNIT_POS == 0:
        out[CUBE_POS] = total[0]


# ---- grids, bounds, tiles ------------------------------------------------------------------------


@case(lambda: [ramp(1000), np.zeros(1000, "f")], cube_dim=32, cubes=3,
      expect=lambda x, o: {1: x * x})  # fmt: skip
@cube
def strides_over_the_grid(x: Array[F], out: Array[F]):
    for i in range(ABSOLUTE_POS, len(x), CUBE_COUNT * CUBE_DIM):
        out[i] = x[i] * x[i]


@case(lambda: [np.zeros(2 * 3 * 4 * 8, "i4")], cube_dim=(2, 2, 2), cubes=(2, 3, 4))
@cube
def three_dims(out: Array[int32]):
    x, y, z = lang.ABSOLUTE_POS_X, lang.ABSOLUTE_POS_Y, lang.ABSOLUTE_POS_Z
    at = (z * 6 + y) * 4 + x
    out[at] = cast(ABSOLUTE_POS * 1000 + x * 100 + y * 10 + z, int32)


@case(
    lambda: [ramp(8) + 1, np.zeros(16, "f")],
    cube_dim=16,
    bounds="checked",
    expect=lambda x, o: {1: np.concatenate([np.zeros(4), x, np.zeros(4)]).astype("f")},
)
@cube
def reads_outside_are_zero(x: Array[F], out: Array[F]):
    out[ABSOLUTE_POS] = x[ABSOLUTE_POS - 4]


@case(lambda: [ramp(16) + 1, np.zeros(8, "f")], cube_dim=16, bounds="checked",
      expect=lambda x, o: {1: np.concatenate([x[4:12]])})  # fmt: skip
@cube
def writes_outside_are_dropped(x: Array[F], out: Array[F]):
    out[ABSOLUTE_POS - 4] = x[ABSOLUTE_POS]


@case(lambda: [ramp(10) + 1, np.zeros(16, "f")], cube_dim=4, bounds="checked",
      expect=lambda x, o: {1: np.concatenate([x[:8], np.zeros(8, "f")])})  # fmt: skip
@cube
def vectors_across_the_end(x: Array[F], out: Array[F]):
    out.store(ABSOLUTE_POS * 4, x.load(ABSOLUTE_POS * 4, 4))


@case(lambda: [ramp(16), np.zeros(16, "f")], cube_dim=16, bounds="validated",
      expect=lambda x, o: {1: x + 1})  # fmt: skip
@cube
def nothing_to_report(x: Array[F], out: Array[F]):
    if len(x) > ABSOLUTE_POS:
        out[ABSOLUTE_POS] = x[ABSOLUTE_POS] + 1.0


@case(lambda: [np.eye(16, dtype="f2").reshape(-1) * 2, (np.arange(256) % 9).astype("f2"),
               np.zeros(256, "f")], cube_dim=32, needs=("tiles",),
      expect=lambda a, b, c: {2: b.astype("f") * 4 + 3})  # fmt: skip
@cube
def tiles_in_a_chain(a: Array[F], b: Array[F], c: Array[float32]):
    left, right = lang.tile_load("a", a, 0, 16), lang.tile_load("b", b, 0, 16)
    total = lang.tile_fill(3.0)
    for _ in range(2):
        total = lang.tile_mma(left, right, total)
    lang.tile_store(c, 0, 16, total)


@case(lambda: [ramp(512, "f2") % 5, (np.arange(256) % 3).astype("f2"), np.zeros(512, "f")],
      cube_dim=64, needs=("tiles",), expect=lambda a, b, c: {2: (
          a.reshape(32, 16).astype("f") @ b.reshape(16, 16).astype("f")).reshape(-1)})  # fmt: skip
@cube
def a_tile_for_each_plane(a: Array[F], b: Array[F], c: Array[float32]):
    near = SharedMemory(F, 2 * 256)
    for k in range(UNIT_POS, 512, CUBE_DIM):
        near[k] = a[k]
    sync_cube()
    left = lang.tile_load("a", near, PLANE_POS * 256, 16)
    total = lang.tile_mma(left, lang.tile_load("b", b, 0, 16), lang.tile_fill(0.0))
    lang.tile_store(c, PLANE_POS * 256, 16, total)


@case(lambda: [np.zeros(4, "i8")], cube_dim=64, cubes=3, expect=lambda o: {
    0: np.array([64, 32, 2, 3])})  # fmt: skip
@cube
def numbers_of_the_launch(out: Array[int64]):
    if ABSOLUTE_POS == 0:
        out[0] = CUBE_DIM
        out[1] = PLANE_DIM
        out[2] = PLANE_COUNT
        out[3] = cast(CUBE_COUNT, int64)
