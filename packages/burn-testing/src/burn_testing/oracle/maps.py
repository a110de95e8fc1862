"""References of maps, made from the scalar expression of their entries."""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

from burn_ir import Entry
from burn_std import DType
from burn_testing.oracle.table import Array

_LARGEST = {"f16": 65504.0, "bf16": (2 - 2**-7) * 2.0**127, "f32": (2 - 2**-23) * 2.0**127,
            "f64": (2 - 2**-52) * 2.0**1023}  # fmt: skip
_erf = np.vectorize(math.erf, otypes=[np.float64])


def _power(x: Array, y: Array) -> Array:
    """Integers wrap, and a negative exponent truncates 1 / x**-y."""
    x, y = np.broadcast_arrays(x, y)
    if x.dtype.kind not in "iu":
        return np.asarray(np.power(x, y))
    mask = (1 << (8 * x.dtype.itemsize)) - 1
    out = []
    for a, b in zip(x.reshape(-1).tolist(), y.reshape(-1).tolist(), strict=True):
        if b >= 0:
            value = pow(a, b, mask + 1)
        else:
            value = 1 if a == 1 else (-1 if b % 2 else 1) if a == -1 else 0
        out.append(value & mask)
    return np.array(out, f"u{x.dtype.itemsize}").view(x.dtype).reshape(x.shape)


def _guarded(function: Any, x: Array, y: Array) -> Array:
    """Dividing integers by zero gives 0."""
    found = function(x, y)
    if _whole(x):
        found = np.where(np.equal(y, 0), np.zeros((), np.asarray(x).dtype), found)
    return np.asarray(found)


def _whole(x: Array) -> bool:
    return np.asarray(x).dtype.kind in "iub"


def _shift(x: Array, y: Array, left: bool) -> Array:
    """Counts outside the width give 0; a right shift of a negative number gives the sign."""
    x, y = np.broadcast_arrays(x, y)
    bits = 8 * x.dtype.itemsize
    mask = (1 << bits) - 1
    out = []
    for a, b in zip(x.reshape(-1).tolist(), y.reshape(-1).tolist(), strict=True):
        if 0 <= b < bits:
            value = a << b if left else a >> b
        else:
            value = 0 if left or a >= 0 else -1
        out.append(value & mask)
    return np.array(out, f"u{x.dtype.itemsize}").view(x.dtype).reshape(x.shape)


def saturate(x: Array, dtype: DType) -> Array:
    """Return floats as integers or bools by the contract: NaN to 0, ends hold, else truncate."""
    if dtype.is_bool:
        return np.asarray(x != 0)
    if _whole(x):
        kind = np.dtype(dtype.name) if dtype.name != "bfloat16" else np.dtype("f4")
        return x.astype(kind)
    if dtype.is_float:
        return x.astype(np.float64)
    info = np.iinfo(dtype.name)
    flat = [
        0
        if math.isnan(a)
        else max(
            info.min,
            min(info.max, int(a) if math.isfinite(a) else (info.max if a > 0 else info.min)),
        )
        for a in x.reshape(-1).tolist()
    ]
    return np.array(flat, dtype.name).reshape(x.shape)


class _Operators(ast.NodeTransformer):
    """Turns the operators whose contract differs from numpy's into calls."""

    names: dict[type[ast.AST], str] = {
        ast.Pow: "power",
        ast.FloorDiv: "floor_divide",
        ast.LShift: "left",
        ast.RShift: "right",
        ast.Mod: "modulo",
    }

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = self.names.get(type(node.op))
        if name is None:
            return node
        return ast.Call(ast.Name(name, ast.Load()), [node.left, node.right], [])


def map_oracle(entry: Entry, inputs: list[Any], attrs: tuple[Any, ...], dtype: DType) -> Array:
    """Return the result of a map from its expression.

    Args:
        entry: the map.
        inputs: arrays (floats in float64), numbers or None.
        attrs: all attributes.
        dtype: the dtype in which the map computes, after promotion and lifting.
    """
    tree = ast.parse(entry.expr or "", mode="eval")
    code = compile(ast.fix_missing_locations(_Operators().visit(tree)), f"<{entry.name}>", "eval")
    kind: Any = np.float64 if dtype.is_float or dtype.is_quantized else np.dtype(dtype.name)

    def where(condition: Any, a: Any, b: Any) -> Array:
        # Numbers take the dtype of the map: numpy would make int64 of two of them.
        if isinstance(a, (int, float)) and isinstance(b, (int, float)):
            a, b = np.asarray(a).astype(kind), np.asarray(b).astype(kind)
        return np.asarray(np.where(condition, a, b))

    whole: dict[str, Any] = {
        "where": where, "maximum": np.maximum, "minimum": np.minimum, "abs": np.abs,
        "erf": _erf, "power": _power,
        "floor_divide": lambda x, y: _guarded(np.floor_divide, x, y),
        "left": lambda x, y: _shift(x, y, True), "right": lambda x, y: _shift(x, y, False),
        "modulo": lambda x, y: _guarded(np.remainder, x, y),
        "cast": saturate, "floating": dtype.is_float, "inf": np.inf, "nan": np.nan,
        "largest": _LARGEST.get(dtype.short), "atan2": np.arctan2, "asin": np.arcsin,
        "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
        "atanh": np.arctanh, "round": np.round,
        "fmod": lambda x, y: _guarded(np.fmod, x, y),
    }  # fmt: skip
    for name in ("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan",
                 "sinh", "cosh", "tanh", "floor", "ceil", "trunc", "hypot"):  # fmt: skip
        whole[name] = getattr(np, name)
    names: dict[str, Any] = dict(zip([i.name for i in entry.inputs], inputs, strict=True))
    names |= dict(zip([a.name for a in entry.attrs], attrs, strict=True))
    arrays = [x for x in inputs if isinstance(x, np.ndarray)]
    shape = np.broadcast_shapes(*(x.shape for x in arrays)) if arrays else ()
    if len(shape) > 1:
        whole["_row"], whole["_column"] = np.arange(shape[-2])[:, None], np.arange(shape[-1])
    with np.errstate(all="ignore"):
        return np.asarray(eval(code, {**whole, **names}))
