# ruff: noqa: D101, D102, D103, S101 - the functions here are kernels, named by what they test
# What an annotation means in a kernel, a type checker cannot know.
# mypy: ignore-errors
"""Cases of what is known at expansion: settings, generics, structs, lists; local memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import burn_cube.mathematics as m
from burn_cube.conformance.case import Collection
from burn_cube.kernel import cube
from burn_cube.language import (
    ABSOLUTE_POS,
    Array,
    Float,
    Generic,
    Int,
    LocalArray,
    Numeric,
    Tensor,
    cast,
    comptime,
    index,
    local,
    unroll,
)
from burn_std.dtypes import float32, int32, int64, uint32

F = Float
T, S = Generic("T"), Generic("S")
COMPOSED = Collection()
case = COMPOSED.case


def numbers(n: int = 32, dtype: str = "i4") -> Any:
    return np.arange(n).astype(dtype)


def both(n: int = 32, dtype: str = "i4") -> list[Any]:
    return [numbers(n, dtype), np.zeros(n, dtype)]


# ---- compile time --------------------------------------------------------------------------------


@case(lambda: both(dtype="f"), config={"scale": 2.0, "steps": (1, 5)},
      expect=lambda x, o: {1: x * 2 + 6})  # fmt: skip
@cube
def a_dict_of_settings(x: Array[F], out: Array[F], *, config):
    v = x[ABSOLUTE_POS] * config["scale"]
    for step in config["steps"]:
        v += step
    out[ABSOLUTE_POS] = v


@case(lambda: both(dtype="f"), expect=lambda x, o: {1: x * 6})
@cube
def lists_of_values(x: Array[F], out: Array[F]):
    parts = [x[ABSOLUTE_POS] * float(k) for k in range(4)]
    total = F(0)
    for n, part in enumerate(parts):
        if n != 0:
            total += part
    out[ABSOLUTE_POS] = total


@case(lambda: both(dtype="f"), names=("plus", "times", "plus"), expect=lambda x, o: {
    1: (x + 1) * 2 + 3})  # fmt: skip
@cube
def words_decide(x: Array[F], out: Array[F], *, names):
    v = x[ABSOLUTE_POS]
    for n, name in zip((1.0, 2.0, 3.0), names, strict=True):
        if name == "plus":
            v += n
        elif name == "times":
            v *= n
        else:
            v = cast("never looked at", F)
    out[ABSOLUTE_POS] = v


@case(lambda: both(dtype="f"), expect=lambda x, o: {1: x + 10})
@cube
def defaults(x: Array[F], out: Array[F], *, shift=10.0, flip=False):
    out[ABSOLUTE_POS] = -x[ABSOLUTE_POS] if flip else x[ABSOLUTE_POS] + shift


@case(lambda: both(dtype="f8"), expect=lambda x, o: {1: x * 2})
@cube
def the_dtype_decides(x: Array[F], out: Array[F]):
    if x.dtype is float32:
        out[ABSOLUTE_POS] = x[ABSOLUTE_POS]
    else:
        out[ABSOLUTE_POS] = x[ABSOLUTE_POS] * 2.0


@case(lambda: both(), expect=lambda x, o: {1: x + sum(k * k for k in range(10) if k % 2)})
@cube
def comprehension(x: Array[int32], out: Array[int32]):
    out[ABSOLUTE_POS] = x[ABSOLUTE_POS] + comptime(sum([k * k for k in range(10) if k % 2]))


@case(lambda: [numbers(8), np.zeros(8, "i4")], expect=lambda x, o: {1: x * 28})
@cube
def written_out(x: Array[int32], out: Array[int32]):
    total = int32(0)
    for k in unroll(range(8)):
        total += x[ABSOLUTE_POS] * k
    out[ABSOLUTE_POS] = total


# ---- generics and structs ------------------------------------------------------------------------


@case(lambda: [numbers(16, "u2"), np.zeros(16, "f8")], expect=lambda x, o: {1: x * 0.5})
@cube
def two_generics(x: Array[T], out: Array[S]):
    out[ABSOLUTE_POS] = cast(x[ABSOLUTE_POS], S) * 0.5


@case(lambda: [numbers(16, "u4"), np.zeros(16, "u4")], expect=lambda x, o: {1: x * 3 + 1})
@cube
def any_number(x: Array[Numeric], out: Array[Numeric]):
    out[ABSOLUTE_POS] = x[ABSOLUTE_POS] * 3 + Numeric(1)


@case(lambda: [numbers(16, "i8"), np.zeros(16, "i8"), 5], expect=lambda x, o, k: {1: x % 5})
@cube
def any_integer(x: Array[Int], out: Array[Int], k: Int):
    out[ABSOLUTE_POS] = x[ABSOLUTE_POS] % k


@dataclass
class Line:
    slope: Any
    shift: Any

    @cube
    def at(self, x):
        return self.slope * x + self.shift


@dataclass
class Segment:
    line: Line
    end: Any


@case(lambda: both(dtype="f"), expect=lambda x, o: {1: np.minimum(x, 20) * 2 + 1})
@cube
def structs_inside_structs(x: Array[F], out: Array[F]):
    segment = Segment(Line(F(2), F(1)), F(20))
    out[ABSOLUTE_POS] = segment.line.at(m.minimum(x[ABSOLUTE_POS], segment.end))


@case(lambda: both(dtype="f"), expect=lambda x, o: {1: x + 2 * x + x})
@cube
def fields_change(x: Array[F], out: Array[F]):
    line = Line(F(0), F(0))
    for k in range(3):
        if k % 2 == 0:
            line.slope = line.slope + x[ABSOLUTE_POS]
        else:
            line.shift = line.shift + x[ABSOLUTE_POS] * 2.0
    out[ABSOLUTE_POS] = line.slope + line.shift


@dataclass
class Rows:
    data: Array[float32]
    columns: int32
    twice: bool = False


@case(lambda: [Rows(numbers(12, "f"), 4, True), np.zeros(3, "f")], cube_dim=3,
      expect=lambda r, o: {1: r.data.reshape(3, 4).sum(1) * 2})  # fmt: skip
@cube
def a_struct_as_parameter(rows: Rows, out: Array[float32]):
    total = float32(0)
    for k in range(rows.columns):
        total += rows.data[ABSOLUTE_POS * cast(rows.columns, index) + k]
    if rows.twice:
        total *= 2.0
    out[ABSOLUTE_POS] = total


# ---- local memory, strides -----------------------------------------------------------------------


@case(lambda: [numbers(27, "f") * numbers(27, "f") % 11, np.zeros(3, "f")], cube_dim=3,
      expect=lambda x, o: {1: np.linalg.det(x.reshape(3, 3, 3).astype("f8")).astype("f")},
      ulps=32)  # fmt: skip
@cube
def determinants(x: Array[F], out: Array[F]):
    a = LocalArray(F, 9)
    for k in range(9):
        a[k] = x[ABSOLUTE_POS * 9 + k]
    total = F(0)
    for c in unroll(range(3)):
        d, e = (c + 1) % 3, (c + 2) % 3
        total += a[c] * (a[3 + d] * a[6 + e] - a[3 + e] * a[6 + d])
    out[ABSOLUTE_POS] = total


@case(lambda: [numbers(32, "u4") * 40503, np.zeros(32, "u4")], expect=lambda x, o: {1: np.array(
    [int(f"{v:032b}"[::-1], 2) for v in x], "u4")})  # fmt: skip
@cube
def bits_reversed(x: Array[uint32], out: Array[uint32]):
    left, made = x[ABSOLUTE_POS], uint32(0)
    for _ in range(32):
        made = made << 1 | left & 1
        left >>= 1
    out[ABSOLUTE_POS] = made


@case(lambda: [numbers(64, "i4") * 7 % 10, np.zeros(40, "i4")], cube_dim=4,
      expect=lambda x, o: {1: np.stack([np.bincount(r, minlength=10) for r in
                                        x.reshape(4, 16)]).reshape(-1).astype("i4")})  # fmt: skip
@cube
def own_counts(x: Array[int32], out: Array[int32]):
    counts = LocalArray(int32, 10)
    for k in range(10):
        counts[k] = 0
    for k in range(16):
        counts[x[ABSOLUTE_POS * 16 + k]] += 1
    for k in range(10):
        out[ABSOLUTE_POS * 10 + k] = counts[k]


@case(lambda: [numbers(12, "f").reshape(3, 4), np.zeros((4, 3), "f")], cube_dim=12,
      expect=lambda x, o: {1: x.T * 2})  # fmt: skip
@cube
def two_indices(x: Tensor[F, 2], out: Tensor[F, 2]):
    row, column = ABSOLUTE_POS // x.shape[1], ABSOLUTE_POS % x.shape[1]
    out[column, row] = x[row, column] * 2.0


@case(lambda: [numbers(24, "f").reshape(2, 3, 4), np.zeros(5, "i8")], cube_dim=1,
      expect=lambda x, o: {1: np.array([3, 2, 12, 4, 24])})  # fmt: skip
@cube
def facts_of_a_tensor(x: Tensor[F, 3], out: Array[int64]):
    out[0] = x.rank
    out[1] = cast(x.shape[0], int64)
    out[2] = cast(x.strides[0], int64)
    out[3] = cast(x.strides[1], int64)
    out[4] = cast(len(x.flat), int64)


@case(lambda: [numbers(32, "f"), np.zeros(8, "f")], cube_dim=8,
      expect=lambda x, o: {1: x.reshape(4, 8).sum(0)})  # fmt: skip
@cube
def cells_in_a_list(x: Array[F], out: Array[F]):
    cells = [local(F(0)), local(F(0))]
    for k in range(2):
        for n in unroll(range(2)):
            cells[n] += x[(k * 2 + n) * 8 + ABSOLUTE_POS]
    out[ABSOLUTE_POS] = cells[0] + cells[1]


@case(lambda: both(dtype="f"), expect=lambda x, o: {1: x})
@cube
def assertions_that_hold(x: Array[F], out: Array[F]):
    assert x[ABSOLUTE_POS] >= 0.0, "not negative"
    out[ABSOLUTE_POS] = x[ABSOLUTE_POS]
    assert len(x) == 32
