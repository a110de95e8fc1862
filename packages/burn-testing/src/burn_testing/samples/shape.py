"""Samples of views, joins, padding and creation."""

from __future__ import annotations

from typing import Any

from burn_std import ArgumentError, DTypeError, IndexRangeError, ShapeError
from burn_std.dtypes import bool_, float16, float32, float64, int32, int64, uint8
from burn_testing.samples.sample import FLOAT_NAMES, NUMERIC_NAMES, error, sample, t

# The loops below reuse these names for tuples of many kinds.
_shape: Any
_to: Any
_got: Any
_pads: Any
_value: Any
_start: Any
_step: Any

for _from, _to in (
    ((2, 6), (3, 4)),
    ((), (1, 1)),
    ((1,), ()),
    ((0, 3), (3, 0, 2)),
    ((4,), (2, 1, 2)),
):
    sample("reshape", t(*_from), attrs=(_to,))
error("reshape", "count", ShapeError, t(2, 3), attrs=((4,),))
error("reshape", "negative", ShapeError, t(4), attrs=((-2, -2),))

for _shape, _dims in (((2, 3, 4), (2, 0, 1)), ((), ()), ((3, 2), (1, 0)), ((0, 2), (1, 0))):
    sample("permute", t(*_shape), attrs=(_dims,))
error("permute", "rank", ShapeError, t(2, 3), attrs=((0,),))
error("permute", "twice", ArgumentError, t(2, 3), attrs=((0, 0),))

for _from, _to in (((3, 1), (3, 4)), ((), (2, 2)), ((1, 3), (2, 1, 3)), ((1,), (0,)), ((2,), (2,))):
    sample("expand", t(*_from), attrs=(_to,), length=4)
error("expand", "extent", ShapeError, t(3), attrs=((4,),))
error("expand", "rank", ShapeError, t(2, 3), attrs=((3,),))

sample("squeeze", t(1, 3, 1), attrs=((0, 2),))
sample("squeeze", t(1, 3, 1), attrs=((2,),))
sample("squeeze", t(1, 0), attrs=((0,),))
sample("squeeze", t(2), attrs=((),))
error("squeeze", "extent", ShapeError, t(2, 3), attrs=((0,),))
error("squeeze", "dim", IndexRangeError, t(1), attrs=((4,),))
sample("unsqueeze", t(2, 3), attrs=((0,),))
sample("unsqueeze", t(2, 3), attrs=((1, 3),))
sample("unsqueeze", t(), attrs=((0,),))
sample("unsqueeze", t(0), attrs=((1,),))
error("unsqueeze", "dim", IndexRangeError, t(2), attrs=((4,),))

sample("select", t(2, 3), attrs=(1, 2))
sample("select", t(2, 3), attrs=(0, 0))
sample("select", t(3), attrs=(0, 1))
sample("select", t(2, 0), attrs=(0, 1))
error("select", "rank", IndexRangeError, t(), attrs=(0, 0))
error("select", "index", IndexRangeError, t(2), attrs=(0, 2))

WINDOWS = (
    ((6,), (2,), (1,), (6,)), ((6,), (-1,), (5,), (-1,)), ((6,), (-2,), (4,), (0,)),
    ((4, 5), (1, 2), (1, 0), (3, 5)), ((4, 5), (1, 1), (2, 0), (2, 5)), ((), (), (), ()),
    ((0, 3), (1, 1), (0, 1), (0, 3)),
)  # fmt: skip
WINDOW_SHAPES = ((3,), (6,), (2,), (2, 3), (0, 5), (), (0, 2))
for (_shape, _steps, _starts, _stops), _got in zip(WINDOWS, WINDOW_SHAPES, strict=True):
    sample("slice", t(*_shape), attrs=(_steps, _starts, _stops))
    sample("slice_assign", t(*_shape), t(*_got, low=5, high=9), attrs=(_steps, _starts, _stops))
    sample("slice_assign", t(*_shape), t(low=5, high=9), attrs=(_steps, _starts, _stops))
    sample("slice_backward", t(*_got), attrs=(_steps, _starts, _stops, _shape))
error("slice", "bounds", IndexRangeError, t(3), attrs=((1,), (0,), (9,)))
error("slice", "step", ArgumentError, t(3), attrs=((0,), (0,), (3,)))
error("slice", "rank", ShapeError, t(3, 2), attrs=((1,), (0,), (3,)))
error("slice_assign", "value", ShapeError, t(4), t(3), attrs=((1,), (0,), (2,)))
error("slice_backward", "not_a_tensor", DTypeError, None, attrs=((1,), (0,), (2,), (4,)))

sample("flip", t(2, 3), attrs=((0,),))
sample("flip", t(2, 3), attrs=((0, 1),))
sample("flip", t(0, 2), attrs=((1,),))
sample("flip", t(2), attrs=((),))
error("flip", "twice", ArgumentError, t(2, 3), attrs=((0, 0),))
error("flip", "dim", IndexRangeError, t(2), attrs=((2,),))

for _shape, _a, _b, _offset, _got in (
    ((3, 4), 0, 1, 0, (3,)), ((3, 4), 1, 0, 2, (1,)), ((2, 3, 3), 1, 2, -1, (2, 2)),
    ((3, 3), 0, 1, 5, (0,)), ((0, 3), 0, 1, 0, (0,)),
):  # fmt: skip
    sample("diagonal", t(*_shape), attrs=(_a, _b, _offset))
    sample("diagonal_backward", t(*_got), attrs=(_a, _b, _shape, _offset))
error("diagonal", "rank", IndexRangeError, t(3), attrs=(0, 1, 0))
error("diagonal_backward", "shape", ShapeError, t(4), attrs=(0, 1, (3, 3), 0))

for _shape, _dim, _size, _step, _got in (
    ((7,), 0, 3, 2, (3, 3)), ((2, 5), 1, 2, 1, (2, 4, 2)), ((4, 3), 0, 2, 1, (3, 3, 2)),
    ((4,), 0, 1, 3, (2, 1)),
):  # fmt: skip
    sample("unfold_dim", t(*_shape), attrs=(_dim, _size, _step))
    sample(
        "unfold_dim_backward",
        t(*_got),
        attrs=(_dim, _size, _step, _shape),
        dtypes=NUMERIC_NAMES,
        length=4,
    )
error("unfold_dim", "size", ShapeError, t(3), attrs=(0, 4, 1), ops=("unfold",))
error("unfold_dim_backward", "not_a_tensor", DTypeError, None, attrs=(0, 1, 1, (1,)))

sample("cat", [t(2, 3), t(2, 3)], attrs=(0,))
sample("cat", [t(2, 1), t(2, 0), t(2, 4)], attrs=(1,))
sample("cat", [t(2, 0), t(2, 0)], attrs=(1,))
sample("cat", [t(3)], attrs=(0,))
error("cat", "extent", ShapeError, [t(2, 3), t(3, 3)], attrs=(1,))
error("cat", "rank", ShapeError, [t(2, 3), t(3)], attrs=(0,))
error("cat", "scalar", ShapeError, [t(), t()], attrs=(0,))
error("cat", "not_a_list", DTypeError, t(2), attrs=(0,))

for _mode in ("constant", "reflect", "replicate", "circular"):
    for _pads in (((0, 0), (1, 2)), ((1, 1), (2, 0))):
        sample("pad", t(3, 4), attrs=(_mode, _pads, 0))
        _got = tuple(n + a + b for n, (a, b) in zip((3, 4), _pads, strict=True))
        sample("pad_backward", t(*_got), attrs=(_mode, _pads), dtypes=NUMERIC_NAMES, length=4)
sample("pad", t(3, 4), attrs=("constant", ((-1, 0), (2, -1)), 3))
sample("pad", t(0, 2), attrs=("constant", ((1, 0), (0, 0)), 1))
sample("pad", t(), attrs=("constant", (), 1))
sample("pad", t(3, 4), attrs=("constant", ((1, 1), (0, 0)), 1.5), dtypes=FLOAT_NAMES)
error("pad", "pairs", ShapeError, t(2, 2), attrs=("constant", ((1, 1),), 0))
error("pad", "reflect", ShapeError, t(2, 2), attrs=("reflect", ((0, 0), (2, 0)), 0))
error("pad", "crop", ShapeError, t(2), attrs=("constant", ((-2, -1),), 0))
error("pad_backward", "not_a_tensor", DTypeError, None, attrs=("constant", ((0, 0),)))

sample("roll", t(2, 3), attrs=((1,), (2,)))
sample("roll", t(2, 3), attrs=((0, 1), (-1, 4)))
sample("roll", t(0, 3), attrs=((0,), (1,)))
sample("roll", t(4), attrs=((), ()))
error("roll", "pairs", ArgumentError, t(2, 3), attrs=((0, 1), (1,)))
sample("repeat", t(2, 3), attrs=((1, 2),), length=6)
sample("repeat", t(3), attrs=((2, 2),), length=6)
sample("repeat", t(), attrs=((3,),), length=6)
sample("repeat", t(2), attrs=((0,),))
error("repeat", "rank", ShapeError, t(2, 3), attrs=((2,),))
for _name in ("tril", "triu"):
    for _diagonal in (-1, 0, 2):
        sample(_name, t(3, 4), attrs=(_diagonal,))
    sample(_name, t(2, 3, 3), attrs=(0,))
    sample(_name, t(0, 3), attrs=(0,))
    error(_name, "rank", ShapeError, t(3), attrs=(0,), ops=("tril/triu",))

for _dtype, _value in ((float32, 1.5), (int64, 3), (bool_, True), (uint8, 255), (float16, -2.0)):
    for _shape in ((2, 3), (), (0, 2)):
        sample("full", attrs=(_dtype, _shape, _value), dtypes=("f32",))
error("full", "negative", ShapeError, attrs=(float32, (-1,), 0))
for _dtype, _count, _start, _step in (
    (int64, 5, 0, 1), (int64, 4, 10, -3), (float32, 6, 0.5, 0.25), (float64, 0, 0, 1),
    (int32, 20, 16777210, 1), (float64, 1, 16777217, 1),
):  # fmt: skip
    sample("arange", attrs=(_dtype, _count, _start, _step), dtypes=("f32",))
error("arange", "negative", ShapeError, attrs=(int64, -1, 0, 1))
for _shape in ((2, 3), (), (0, 2)):
    sample("contiguous", t(*_shape))
error("contiguous", "not_a_tensor", DTypeError, None)
