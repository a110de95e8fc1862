"""What each pure operation means, in numpy: the plain definition that every target must meet.

Transcendentals of float32 are computed in float64 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from burn_std.dtypes import DType, bfloat16

Array = Any

BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def native(dtype: DType) -> np.dtype[Any]:
    """Return the numpy dtype that holds a dtype; bfloat16 is held as its bits.

    Example:
        >>> from burn_std.dtypes import bfloat16, bool_
        >>> native(bfloat16).name, native(bool_).name
        ('uint16', 'bool')
    """
    return np.dtype("uint16" if dtype is bfloat16 else dtype.name)


def cast(value: Array, old: DType, new: DType) -> Array:
    """Convert values between dtypes by the rules of the language."""
    if old is bfloat16:
        value = (value.astype(np.uint32) << np.uint32(16)).view(np.float32)
        old = float_dtype("float32")
    if new is bfloat16:
        return to_bfloat16(value.astype(np.float32))
    if new.is_bool:
        return value != 0
    target = native(new)
    if new.is_int and old.is_float:
        return _saturate(value, target)
    if new.name == "float16":
        value = value.astype(np.float32)
    return value.astype(target)


def float_dtype(name: str) -> DType:
    """Return a dtype by its name."""
    from burn_std.dtypes import parse_dtype

    return parse_dtype(name)


def to_bfloat16(value: Array) -> Array:
    """Return the bits of float32 values rounded to bfloat16, halves to even."""
    bits = np.ascontiguousarray(value).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    nan = np.uint32(0x7FC0) | ((bits >> np.uint32(16)) & np.uint32(0x8000))
    return np.where(np.isnan(value), nan, rounded >> np.uint32(16)).astype(np.uint16)


def _saturate(value: Array, target: np.dtype[Any]) -> Array:
    info = np.iinfo(target)
    # The bounds as floats: the upper one may round up, so the test is >=.
    low, high = float(info.min), float(info.max)
    wide = value.astype(np.float64)
    inside = (wide > low) & (wide < high)
    made = np.where(inside, wide, 0.0).astype(target)
    made = np.where(wide >= high, target.type(info.max), made)
    made = np.where(wide <= low, target.type(info.min), made)
    return np.where(np.isnan(wide), target.type(0), made)


def _wide(fn: Callable[..., Array]) -> Callable[..., Array]:
    def run(*args: Array) -> Array:
        return fn(*[a.astype(np.float64) for a in args]).astype(args[0].dtype)

    return run


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _fma(a: Array, b: Array, c: Array) -> Array:
    if a.dtype == np.float32:
        return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(a.dtype)
    # The product and the sum with what they round away (Dekker, Knuth), rounded once at the end.
    product = a * b
    a_hi, b_hi = _upper(a), _upper(b)
    a_lo, b_lo = a - a_hi, b - b_hi
    lost = ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo
    total = product + c
    back = total - product
    lost = lost + ((product - (total - back)) + (c - back))
    return np.where(np.isfinite(lost), total + lost, total)


def _upper(a: Array) -> Array:
    """Return the upper half of the mantissa of float64 values."""
    return (np.ascontiguousarray(a).view(np.uint64) & np.uint64(0xFFFFFFFFF8000000)).view(
        np.float64
    )


def _float_mod(a: Array, b: Array) -> Array:
    r = np.fmod(a, b)
    return np.where((r != 0) & ((r < 0) != (b < 0)), r + b, r).astype(a.dtype)


def _float_floordiv(a: Array, b: Array) -> Array:
    r = np.fmod(a, b)
    q = (a - r) / b
    q = np.where((r != 0) & ((r < 0) != (b < 0)), q - 1, q)
    floored = np.floor(q)
    floored = np.where(q - floored > 0.5, floored + 1, floored)
    floored = np.where(q == 0, np.copysign(np.zeros_like(q), a / b), floored)
    return np.where(b == 0, a / b, floored).astype(a.dtype)


def _is_float(a: Array) -> bool:
    return bool(a.dtype.kind == "f")


def _floordiv(a: Array, b: Array) -> Array:
    return _float_floordiv(a, b) if _is_float(a) else np.floor_divide(a, b)


def _mod(a: Array, b: Array) -> Array:
    return _float_mod(a, b) if _is_float(a) else np.remainder(a, b)


def _truncdiv(a: Array, b: Array) -> Array:
    q, r = np.floor_divide(a, b), np.remainder(a, b)
    return np.where((b != 0) & (r != 0) & ((a < 0) != (b < 0)), q + a.dtype.type(1), q)


def _shift(a: Array, n: Array, left: bool) -> Array:
    bits = a.dtype.itemsize * 8
    fits = (n >= 0) & (n < bits)
    count = np.where(fits, n, 0).astype(a.dtype)
    if left:
        return np.where(fits, a << count, a.dtype.type(0))
    fill = np.where(a < 0, a.dtype.type(-1), a.dtype.type(0)) if a.dtype.kind == "i" else 0
    return np.where(fits, a >> count, fill).astype(a.dtype)


def _mulhi(a: Array, b: Array) -> Array:
    bits = a.dtype.itemsize * 8
    if bits < 64:
        product = a.astype(np.uint64) * b.astype(np.uint64)
        return (product >> np.uint64(bits)).astype(a.dtype)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    mid = a1 * b0 + (a0 * b0 >> half)
    mid2 = a0 * b1 + (mid & low)
    return a1 * b1 + (mid >> half) + (mid2 >> half)


def _popcount(a: Array) -> Array:
    # Of a negative number numpy counts the bits of its magnitude.
    unsigned = np.ascontiguousarray(a).view(BITS[a.dtype.itemsize])
    return np.bitwise_count(unsigned).astype(a.dtype)


def _leading_zeros(a: Array) -> Array:
    bits = a.dtype.itemsize * 8
    unsigned = np.ascontiguousarray(a).view(BITS[a.dtype.itemsize])
    length = np.vectorize(lambda v: int(v).bit_length(), otypes=[np.int64])(unsigned)
    return (bits - length).astype(a.dtype)


def _sign(a: Array) -> Array:
    made = np.sign(a)
    return np.where(np.isnan(a), a.dtype.type(0), made) if _is_float(a) else made


def _not(a: Array) -> Array:
    return ~a


NUMERIC: dict[str, Callable[..., Array]] = {
    **{
        name: _wide(getattr(np, name))
        for name in (
            "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan",
            "sinh", "cosh", "tanh",
        )
    },
    "rsqrt": _wide(lambda a: 1.0 / np.sqrt(a)),
    "asin": _wide(np.arcsin), "acos": _wide(np.arccos), "atan": _wide(np.arctan),
    "asinh": _wide(np.arcsinh), "acosh": _wide(np.arccosh), "atanh": _wide(np.arctanh),
    "erf": _wide(_erf),
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint,
    "neg": np.negative, "abs": np.abs, "sign": _sign, "not": _not,
    "popcount": _popcount, "leading_zeros": _leading_zeros,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "mulhi": _mulhi, "div": np.divide,
    "floordiv": _floordiv, "mod": _mod, "truncdiv": _truncdiv, "rem": np.fmod,
    "min": np.minimum, "max": np.maximum,
    "pow": _wide(np.power), "atan2": _wide(np.arctan2), "hypot": _wide(np.hypot),
    "copysign": np.copysign,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "shl": lambda a, n: _shift(a, n, True), "shr": lambda a, n: _shift(a, n, False),
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
    "fma": _fma,
    # What legalisation leaves; lowered kernels run here as well, which tests the lowering.
    "raw_div": _truncdiv, "raw_rem": np.fmod, "raw_shl": np.left_shift,
    "raw_shr": np.right_shift,
}  # fmt: skip
