"""Samples of elementwise operations."""

from __future__ import annotations

from burn_ir import CATALOG
from burn_std import DTypeError, ShapeError
from burn_std.dtypes import bool_, float16, float32, float64, int8, int64, uint8
from burn_testing.samples.sample import (
    FLOAT_NAMES,
    INT_NAMES,
    NUMERIC_NAMES,
    error,
    sample,
    t,
    v,
)

NAN, INF = float("nan"), float("inf")
SPECIAL = v([NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 3.0, 80.0, -80.0, 1e-3])
SHAPES = ((2, 3), (), (0, 3), (1,), (5, 1, 4))

# ---- one tensor ---------------------------------------------------------------------------------

DOMAINS = {
    "log": (0.1, 4), "log2": (0.1, 4), "log10": (0.1, 4), "log1p": (-0.8, 3), "sqrt": (0.1, 4),
    "rsqrt": (0.1, 4), "reciprocal": (0.2, 3), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9),
    "atanh": (-0.9, 0.9), "acosh": (1.1, 5), "tan": (-1.2, 1.2), "lgamma": (0.3, 5),
    "digamma": (0.4, 5), "erfinv": (-0.9, 0.9),
}  # fmt: skip
ATTRS: dict[str, tuple[tuple[object, ...], ...]] = {
    "elu": ((1.0,), (0.7,)), "celu": ((1.0,), (0.6,)), "leaky_relu": ((0.01,), (0.3,)),
    "softplus": ((1.0, 20.0), (2.0, 1.5)), "hardshrink": ((0.5,),), "softshrink": ((0.5,), (0.0,)),
    "gelu": (("none",), ("tanh",)), "hardtanh": ((-1.0, 1.0), (0.0, 6.0)),
    "threshold": ((0.1, 20.0), (0, 3)), "round": ((0,),),
    "nan_to_num": ((0.0, None, None), (1.0, 2.0, -2.0)),
}  # fmt: skip
UNARY = [
    e.name
    for e in CATALOG
    if e.klass == "map" and len(e.inputs) == 1 and e.expr is not None
    and e.name not in ("cast", "tril", "triu")
    and e.inputs[0].name == "x"
]  # fmt: skip

for _name in UNARY:
    _entry = CATALOG[_name]
    _low, _high = DOMAINS.get(_name, (-2.5, 2.5))
    for _attrs in ATTRS.get(_name, ((),)):
        for _shape in SHAPES:
            sample(_name, t(*_shape, low=_low, high=_high), attrs=_attrs)
        if _entry.accepts in ("any", "numeric", "float"):
            sample(_name, SPECIAL, attrs=_attrs, name="special", dtypes=FLOAT_NAMES, grad=False)
    _first = ATTRS.get(_name, ((),))[0]
    error(_name, "not_a_tensor", DTypeError, "text", attrs=_first)
    if _entry.accepts in ("float", "numeric") and not _entry.lift:
        error(_name, "bool", DTypeError, t(2, dtype="bool"), attrs=_first, dtype="bool")
    if _entry.accepts in ("int", "bits"):
        error(_name, "float", DTypeError, t(2), attrs=_first)
sample("round", t(2, 3, low=-20, high=20), attrs=(2,), dtypes=("f32", "f64"), grad=False)
sample("round", t(2, 3, low=-200, high=200), attrs=(-1,), dtypes=("f32", "f64"), grad=False)

for _target in (float64, float32, float16, int64, int8, uint8, bool_):
    sample("cast", t(2, 3, low=-3, high=3), attrs=(_target,), grad=_target is float64)
    sample("cast", t(0, 2), attrs=(_target,), grad=False)
    sample("cast", SPECIAL, attrs=(_target,), name="special", dtypes=FLOAT_NAMES, grad=False)
error("cast", "not_a_tensor", DTypeError, 3.5, attrs=(float32,))

# ---- two tensors --------------------------------------------------------------------------------

PAIRS = (((2, 3), (2, 3)), ((4, 1, 3), (2, 1)), ((), (3,)), ((0, 3), (1, 3)), ((2, 1), (1, 0)))
BINARY = [
    e.name
    for e in CATALOG
    if e.klass == "map" and len(e.inputs) == 2 and all(i.promoted for i in e.inputs)
]
POSITIVE = {"pow": ((0.2, 3), (-2, 2)), "hypot": ((0.2, 3), (0.2, 3)), "div": ((-3, 3), (0.3, 3)),
            "remainder": ((-5, 5), (0.6, 0.9)), "fmod": ((-5, 5), (0.6, 0.9)),
            "floor_divide": ((-5, 5), (0.3, 3)), "div_trunc": ((-5, 5), (0.3, 3)),
            "bitwise_left_shift": ((-5, 5), (0, 4)),
            "bitwise_right_shift": ((-99, 99), (0, 4))}  # fmt: skip
for _name in BINARY:
    _entry = CATALOG[_name]
    _a, _b = POSITIVE.get(_name, ((-2.5, 2.5), (-2.4, 2.6)))
    _kinds = None
    if _name == "sub":
        _kinds = NUMERIC_NAMES
    for _x, _y in PAIRS:
        sample(_name, t(*_x, low=_a[0], high=_a[1]), t(*_y, low=_b[0], high=_b[1]), dtypes=_kinds)
    if all(i.scalar for i in _entry.inputs):
        _kinds = tuple(
            d
            for d in (_kinds or ())
            or (
                NUMERIC_NAMES
                if _entry.accepts in ("any", "numeric")
                else INT_NAMES
                if _entry.accepts in ("int", "bits")
                else FLOAT_NAMES
            )
        )
        sample(_name, t(2, 3, low=_a[0], high=_a[1]), 2, dtypes=_kinds)
        sample(_name, 3, t(2, 3, low=max(_b[0], 0.3), high=_b[1]), dtypes=_kinds)
    if _entry.accepts in ("any", "numeric", "float"):
        sample(_name, v([NAN, INF, 0.0, -1.0, 2.0, -INF, NAN, 0.0]),
               v([1.0, NAN, 0.0, -0.0, 0.0, INF, NAN, -1.0]), name="special",
               dtypes=FLOAT_NAMES, grad=False)  # fmt: skip
    _dtype = "i32" if _entry.accepts in ("int", "bits") else "f32"
    error(_name, "shapes", ShapeError, t(2, 3), t(2, 4), dtype=_dtype)
    error(_name, "text", DTypeError, t(2), "text", dtype=_dtype)
    if _entry.accepts in ("numeric", "float", "int") and not _entry.lift:
        error(_name, "bool", DTypeError, t(2), t(2), dtype="bool")
sample(
    "pow",
    v([-2.0, -3.0, 0.0, 0.0]),
    v([3.0, 2.0, 0.0, 2.0]),
    name="whole",
    dtypes=FLOAT_NAMES,
    grad=False,
)
error("sub", "bool", DTypeError, t(2), t(2), dtype="bool")
error("bitwise_and", "float", DTypeError, t(2), t(2))

# ---- three tensors ------------------------------------------------------------------------------

sample("lerp", t(2, 3), t(3), t(2, 1, low=0.1, high=0.9))
sample("lerp", t(2, 3), t(2, 3), 0.3)
sample("lerp", t(0, 3), t(3), 0.75)
error("lerp", "shapes", ShapeError, t(2), t(3), 0.5)
error("lerp", "ints", DTypeError, t(2), t(2), 1, dtype="i32")
_cond = t(2, 3, dtype="bool")
sample("where", _cond, t(2, 3), t(2, 3))
sample("where", _cond, t(3), t(2, 1))
sample("where", t(dtype="bool"), t(2, 2), t(1))
sample("where", t(0, 3, dtype="bool"), t(3), t(1))
sample("where", _cond, t(2, 3), 2, dtypes=NUMERIC_NAMES)
sample("where", _cond, 1.5, t(2, 3), dtypes=FLOAT_NAMES)
error("where", "cond", DTypeError, t(2), t(2), t(2))
error("where", "shapes", ShapeError, t(2, dtype="bool"), t(3), t(2))
_wide = t(3, 4, low=-3, high=3)
sample("clamp", _wide, -1, 1, dtypes=[d for d in NUMERIC_NAMES if d[0] != "u"])
sample("clamp", _wide, None, 1, dtypes=NUMERIC_NAMES)
sample("clamp", _wide, 1, None, dtypes=NUMERIC_NAMES)
sample("clamp", _wide, t(4, low=-1.2, high=-0.6), t(3, 1, low=0.6, high=1.7), dtypes=FLOAT_NAMES)
sample("clamp", t(0), 0, 1, dtypes=NUMERIC_NAMES)
sample("clamp", SPECIAL, -1.0, 2.0, name="special", dtypes=FLOAT_NAMES, grad=False)
error("clamp", "shapes", ShapeError, t(2), t(3), None)
error("clamp", "text", DTypeError, t(2), "low", None)
