"""Samples of pooling and its adjoints."""

from __future__ import annotations

from typing import Any

from burn_std import ArgumentError, DTypeError, ShapeError
from burn_testing.samples.sample import FLOAT_NAMES, error, ints, sample, t, v

# The loops below reuse these names for tuples of many kinds.
_attrs: Any

POOLS = (
    ((2, 3, 8), (2,), (2,), (0,), (1,), False, (4,)),
    ((1, 2, 7), (3,), (2,), (1,), (1,), True, (4,)),
    ((1, 2, 6, 5), (2, 3), (2, 1), (1, 0), (1, 1), False, (4, 3)),
    ((1, 1, 6, 6), (2, 2), (2, 2), (0, 0), (2, 1), False, (2, 3)),
    ((1, 1, 4, 4, 4), (2, 2, 2), (2, 2, 2), (0, 0, 0), (1, 1, 1), False, (2, 2, 2)),
    ((0, 2, 4), (2,), (2,), (0,), (1,), False, (2,)),
)
for _x, _k, _s, _p, _d, _ceil, _out in POOLS:
    sample("max_pool", t(*_x, low=-9, high=9), attrs=(_k, _s, _p, _d, _ceil))
    _y = (*_x[:2], *_out)
    if _x[0]:
        sample(
            "max_pool_backward",
            t(*_y),
            t(*_y, low=0, high=3, dtype="i64"),
            attrs=((), (), (), (), _x),
            dtypes=FLOAT_NAMES,
            length=8,
        )
        sample("pool_gather", t(*_x), t(*_y, low=0, high=3, dtype="i64"), dtypes=FLOAT_NAMES)
    if set(_d) == {1}:
        for _include, _divisor in ((True, None), (False, None), (True, 3)):
            _attrs = (_k, _s, _p, _ceil, _include, _divisor)
            sample("avg_pool", t(*_x), attrs=_attrs, dtypes=FLOAT_NAMES, length=8)
            sample("avg_pool_backward", t(*_y), attrs=(*_attrs, _x), dtypes=FLOAT_NAMES, length=8)
sample(
    "max_pool",
    v([[[-1.0, -2.0]]]),
    attrs=((3,), (1,), (1,), (1,), False),
    name="negative",
    grad=False,
    dtypes=("f32", "f64", "i32", "i8"),
)
sample(
    "max_pool",
    v([[[2, 2, 1, 2, 2]]]),
    attrs=((3,), (1,), (0,), (1,), False),
    name="ties",
    grad=False,
)
sample(
    "max_pool",
    v([[[1.0, float("nan"), 2.0, 0.0]]]),
    attrs=((2,), (1,), (0,), (1,), False),
    name="special",
    grad=False,
    dtypes=FLOAT_NAMES,
)
_attrs = ((2,), (2,), (0,), (1,), False)
error("max_pool", "padding", ArgumentError, t(1, 1, 4), attrs=((2,), (2,), (2,), (1,), False))
error("max_pool", "window", ShapeError, t(1, 1, 2), attrs=((3,), (1,), (0,), (1,), False))
error("max_pool", "rank", ShapeError, t(4), attrs=_attrs)
error("max_pool", "empty", ShapeError, t(1, 0, 4), attrs=_attrs)
error("avg_pool", "padding", ArgumentError, t(1, 1, 4), attrs=((2,), (2,), (2,), False, True, None))
error("avg_pool", "divisor", ArgumentError, t(1, 1, 4), attrs=((2,), (2,), (0,), False, True, 0))
error(
    "max_pool_backward",
    "not_a_tensor",
    DTypeError,
    None,
    ints([[[0]]]),
    attrs=((), (), (), (), (1, 1, 4)),
)
error("pool_gather", "not_a_tensor", DTypeError, None, ints([[[0]]]))
error(
    "avg_pool_backward",
    "not_a_tensor",
    DTypeError,
    None,
    attrs=((2,), (2,), (0,), False, True, None, (1, 1, 4)),
)
for _x, _size in (
    ((2, 3, 7), (3,)),
    ((1, 2, 5, 6), (2, 4)),
    ((1, 1, 3, 4, 5), (2, 2, 2)),
    ((1, 1, 2), (4,)),
    ((0, 1, 4), (2,)),
):
    sample("adaptive_avg_pool", t(*_x), attrs=(_size,), dtypes=FLOAT_NAMES, length=8)
    sample(
        "adaptive_avg_pool_backward", t(*_x[:2], *_size), attrs=(_x,), dtypes=FLOAT_NAMES, length=8
    )
    sample("adaptive_max_pool", t(*_x, low=-9, high=9), attrs=(_size,), dtypes=FLOAT_NAMES)
for _name in ("adaptive_avg_pool", "adaptive_max_pool"):
    error(_name, "rank", ShapeError, t(4), attrs=((2,),))
    error(_name, "empty", ShapeError, t(1, 0, 4), attrs=((2,),))
error("adaptive_avg_pool_backward", "not_a_tensor", DTypeError, None, attrs=((1, 1, 4),))
