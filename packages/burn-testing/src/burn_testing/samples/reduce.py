"""Samples of reductions, scans and sorts."""

from __future__ import annotations

from burn_ir import CATALOG
from burn_std import ArgumentError, DTypeError, IndexRangeError, ShapeError
from burn_std.dtypes import float32, float64, int32
from burn_testing.samples.sample import ALL_NAMES, FLOAT_NAMES, INT_NAMES, error, sample, t, v

NAN, INF = float("nan"), float("inf")
SPECIAL = v([[1.0, NAN, 3.0], [INF, 2.0, -INF], [0.0, -0.0, -1.0]])
DIMS = ((None, False), (None, True), ((0,), False), ((1,), True), ((0, 2), False), ((), False))

# name -> attributes after dims and keepdim.
OVER_DIMS: dict[str, tuple[tuple[object, ...], ...]] = {
    "sum": ((None,),), "prod": ((None,),), "mean": ((None,),), "amax": ((),), "amin": ((),),
    "any": ((),), "all": ((),), "var": ((1,), (0,)), "logsumexp": ((),), "count_nonzero": ((),),
    "vector_norm": ((2.0,), (1.0,), (3.0,), (INF,), (-INF,), (0.0,)),
}  # fmt: skip
for _name, _variants in OVER_DIMS.items():
    _entry = CATALOG[_name]
    for _more in _variants:
        _smooth = _more != (0.0,)
        for _dims, _keep in DIMS:
            if _dims == () and _name in ("var",):
                continue
            sample(_name, t(2, 3, 4), attrs=(_dims, _keep, *_more), length=24, grad=_smooth)
        sample(_name, t(), attrs=(None, False, *_more), grad=_smooth and _name != "var")
        sample(_name, t(3, 0), attrs=((0,), False, *_more), grad=False)
        if "empty_raises" not in _entry.edges and not (_more and _more[0] in (INF, -INF)):
            sample(_name, t(0, 3), attrs=((0,), False, *_more), name="empty_axis", grad=False)
            sample(_name, t(0), attrs=(None, True, *_more), name="empty_all", grad=False)
        sample(
            _name,
            SPECIAL,
            attrs=((1,), False, *_more),
            name="special",
            dtypes=FLOAT_NAMES,
            grad=False,
            length=3,
        )
    _first = _variants[0]
    error(_name, "dim", IndexRangeError, t(2, 3), attrs=((5,), False, *_first))
    error(_name, "twice", ArgumentError, t(2, 3), attrs=((0, 0), False, *_first))
    error(_name, "not_a_tensor", DTypeError, [1.0], attrs=(None, False, *_first))
    if "empty_raises" in _entry.edges:
        error(_name, "empty", ShapeError, t(0, 3), attrs=((0,), False, *_first))
for _name in ("sum", "prod", "mean"):
    sample(_name, t(2, 3), attrs=((1,), False, float64), length=3, dtypes=FLOAT_NAMES)
sample("sum", t(2, 3), attrs=(None, False, float32), length=6, dtypes=INT_NAMES)
sample(
    "sum",
    t(1000, low=90, high=110),
    attrs=(None, False, None),
    length=1000,
    name="long",
    grad=False,
    dtypes=("u8", "f32", "f64"),
)
sample(
    "mean",
    t(1000, low=90, high=110),
    attrs=(None, False, None),
    length=1000,
    name="half_overflow",
    dtypes=FLOAT_NAMES,
)
sample("sum", t(3, 4), attrs=((0,), False, int32), length=3, dtypes=INT_NAMES)
error("mean", "ints", DTypeError, t(2), attrs=(None, False, None), dtype="i32")
error("var", "ints", DTypeError, t(2), attrs=(None, False, 1), dtype="i32")
error("vector_norm", "ints", DTypeError, t(2), attrs=(None, False, 2.0), dtype="i32")

for _name in ("argmax", "argmin", "max_dim", "min_dim", "median_dim"):
    _pair = _name.endswith("_dim")
    for _dim, _keep in ((0, False), (1, True), (2, False)):
        sample(_name, t(3, 5, 2, low=-9, high=9), attrs=(_dim, _keep))
    sample(_name, t(), attrs=(0, False))
    sample(_name, t(2, 0), attrs=(0, False), grad=False)
    sample(_name, SPECIAL, attrs=(1, False), name="special", dtypes=FLOAT_NAMES, grad=False)
    sample(_name, v([[1, 3, 3, 2, 3], [2, 2, 2, 2, 2]]), attrs=(1, False), name="ties", grad=False)
    error(_name, "dim", IndexRangeError, t(2, 3), attrs=(4, False))
    error(_name, "empty", ShapeError, t(2, 0), attrs=(1, False))
    if not _pair:
        sample(_name, t(2, 3), attrs=(None, False))
        sample(_name, t(2, 3), attrs=(None, True))
        error(_name, "bool", DTypeError, t(2), attrs=(0, False), dtype="bool")

for _name in ("cumsum", "cumprod"):
    for _dim in (0, 1):
        sample(_name, t(4, 3), attrs=(_dim, None), length=4)
    sample(_name, t(), attrs=(0, None))
    sample(_name, t(0, 3), attrs=(0, None))
    sample(_name, t(4, 3), attrs=(1, float64), dtypes=FLOAT_NAMES, length=3)
    sample(
        _name, v([1.0, NAN, 2.0]), attrs=(0, None), name="special", dtypes=FLOAT_NAMES, grad=False
    )
    error(_name, "dim", IndexRangeError, t(2), attrs=(3, None))
sample("cumsum", v([200, 100, 50]), attrs=(0, None), name="wide", dtypes=("u8", "i16"), length=3)
for _name in ("cummax", "cummin"):
    for _dim in (0, 1):
        sample(_name, t(4, 3, low=-9, high=9), attrs=(_dim,), dtypes=ALL_NAMES)
    sample(_name, t(), attrs=(0,))
    sample(_name, t(0, 2), attrs=(1,))
    sample(_name, v([1, 3, 3, 2, 3]), attrs=(0,), name="ties", grad=False)
    sample(_name, v([1.0, NAN, 5.0]), attrs=(0,), name="special", dtypes=FLOAT_NAMES, grad=False)
    error(_name, "dim", IndexRangeError, t(2), attrs=(3,))

for _down in (False, True):
    for _dim in (0, 1):
        sample("sort", t(5, 4, low=-9, high=9), attrs=(_dim, _down))
    sample("sort", t(), attrs=(0, _down))
    sample("sort", t(0, 2), attrs=(0, _down))
    sample("sort", v([2, 1, 2, 1, 3, 2]), attrs=(0, _down), name="ties", grad=False)
    sample("sort", SPECIAL, attrs=(1, _down), name="special", dtypes=FLOAT_NAMES, grad=False)
    for _k in (0, 1, 3):
        sample("topk", t(4, 5, low=-9, high=9), attrs=(1, _down, True, _k))
    sample(
        "topk", SPECIAL, attrs=(0, _down, True, 2), name="special", dtypes=FLOAT_NAMES, grad=False
    )
    sample("topk", v([2, 1, 2, 1, 3, 2]), attrs=(0, _down, True, 4), name="ties", grad=False)
error("sort", "dim", IndexRangeError, t(2), attrs=(2, False))
error("topk", "k", ShapeError, t(2, 3), attrs=(1, True, True, 4))
error("topk", "bool", DTypeError, t(3), attrs=(0, True, True, 1), dtype="bool")
