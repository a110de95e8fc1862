"""Legalisation: the edge rules of the language, written out with operations that have none.

Division never traps, shifts by the width give 0, casts saturate, NaN propagates through minimum
and maximum. What comes out holds only operations whose meaning C, CUDA and LLVM share.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from burn_cube.builder import Builder
from burn_cube.frontend.values import Val, swap_builder
from burn_cube.ir import Kernel, Op, walk
from burn_cube.language import bitcast, cast
from burn_cube.lowering.choice import select
from burn_cube.lowering.rewrite import rewrite
from burn_cube.types import like, scalar_of
from burn_std.dtypes import DType, bfloat16, float16, float32, uint16, uint32, uint64


def legalize(kernel: Kernel) -> Kernel:
    """Apply the rules of this module in place; return the kernel."""
    # A rule may write with operations that have rules themselves.
    while any(op.name in _RULES and _pending(op) for op in walk(kernel.body)):
        rewrite(kernel, _rule)
    return rewrite(kernel, _rule)


def _pending(op: Op) -> bool:
    """Return whether a rule applies; floats keep `abs` and `rem`."""
    return not (op.name in ("abs", "rem") and scalar_of(op.type).is_float)


def _rule(op: Op, builder: Builder) -> Op | None:
    if op.name == "cast":
        return _with(builder, lambda: _cast(op))
    rule = _RULES.get(op.name)
    if rule is None:
        return None
    return _with(builder, lambda: rule(*[Val(arg) for arg in op.args]))


def _with(builder: Builder, make: Callable[[], Val | None]) -> Op | None:
    before = swap_builder(builder)
    try:
        made = make()
    finally:
        swap_builder(before)
    return None if made is None else made.op


def raw(name: str, a: Val, b: Any) -> Val:
    """Append an operation that has no edge rules of its own."""
    from burn_cube.frontend.values import binary

    return binary(name, a, b)


def _safe(a: Val, b: Val) -> tuple[Val, Val]:
    """Return whether b is zero, and a divisor that never traps."""
    zero = b == 0
    if a.dtype.kind == "int":
        least = -(1 << (a.dtype.bits - 1))
        trap = zero | ((a == least) & (b == -1))
    else:
        trap = zero
    return zero, select(trap, 1, b)


def _floordiv(a: Val, b: Val) -> Val | None:
    if a.dtype.is_float:
        return _float_floordiv(a, b)
    zero, divisor = _safe(a, b)
    q = raw("raw_div", a, divisor)
    if a.dtype.kind == "int":
        r = a - q * divisor
        q = select((r != 0) & ((r ^ divisor) < 0), q - 1, q)
        # The least integer by -1 was divided by 1 instead: it wraps to itself.
    return select(zero, 0, q)


def _mod(a: Val, b: Val) -> Val | None:
    if a.dtype.is_float:
        r = raw("rem", a, b)
        return select((r != 0) & ((r < 0) ^ (b < 0)), r + b, r)
    zero, divisor = _safe(a, b)
    r = raw("raw_rem", a, divisor)
    if a.dtype.kind == "int":
        r = select((r != 0) & ((r ^ divisor) < 0), r + divisor, r)
    return select(zero, 0, r)


def _truncdiv(a: Val, b: Val) -> Val | None:
    zero, divisor = _safe(a, b)
    return select(zero, 0, raw("raw_div", a, divisor))


def _rem(a: Val, b: Val) -> Val | None:
    if a.dtype.is_float:
        return None
    zero, divisor = _safe(a, b)
    return select(zero, 0, raw("raw_rem", a, divisor))


def _float_floordiv(a: Val, b: Val) -> Val:
    from burn_cube.mathematics import copysign, floor

    r = raw("rem", a, b)
    q = (a - r) / b
    q = select((r != 0) & ((r < 0) ^ (b < 0)), q - 1, q)
    floored = floor(q)
    floored = select(q - floored > 0.5, floored + 1, floored)
    floored = select(q == 0, copysign(q * 0, a / b), floored)
    return select(b == 0, a / b, floored)


def _shift(name: str) -> Callable[[Val, Val], Val]:
    def rule(a: Val, n: Val) -> Val:
        bits = a.dtype.bits
        unsigned = {8: "uint8", 16: "uint16", 32: "uint32", 64: "uint64"}[bits]
        count = n.bitcast(_dtype(unsigned)) if n.dtype.kind == "int" else n
        small = count < bits
        safe = cast(select(small, count, 0), a.dtype)
        made = raw(f"raw_{name}", a, safe)
        if name == "shr" and a.dtype.kind == "int":
            return select(small, made, select(a < 0, -1, a * 0))
        return select(small, made, 0)

    return rule


def _dtype(name: str) -> DType:
    from burn_std.dtypes import parse_dtype

    return parse_dtype(name)


def _sign(a: Val) -> Val:
    zero = a * 0 if a.dtype.is_int else None
    if zero is not None:
        positive = select(a > 0, zero + 1, zero)
        return positive if a.dtype.kind == "uint" else select(a < 0, zero - 1, positive)
    # -0.0 stays; NaN is neither above, below nor equal and gives 0.
    rest = select(a == 0, a, 0.0)
    return select(a > 0, 1.0, select(a < 0, -1.0, rest))


def _abs(a: Val) -> Val | None:
    if a.dtype.is_float:
        return None
    return a if a.dtype.kind == "uint" else select(a < 0, a * -1, a)


def _copysign(a: Val, b: Val) -> Val:
    bits = uint32 if a.dtype.bits == 32 else uint64
    top = 1 << (a.dtype.bits - 1)
    joined = (bitcast(a, bits) & (top - 1)) | (bitcast(b, bits) & top)
    return bitcast(joined, a.dtype)


def _mulhi(a: Val, b: Val) -> Val | None:
    if a.dtype.bits < 64:
        return cast((cast(a, uint64) * cast(b, uint64)) >> a.dtype.bits, a.dtype)
    low = 0xFFFFFFFF
    a0, a1, b0, b1 = a & low, raw("raw_shr", a, 32), b & low, raw("raw_shr", b, 32)
    mid = a1 * b0 + raw("raw_shr", a0 * b0, 32)
    mid2 = a0 * b1 + (mid & low)
    return a1 * b1 + raw("raw_shr", mid, 32) + raw("raw_shr", mid2, 32)


def _popcount(a: Val) -> Val:
    bits = uint64 if a.dtype.bits == 64 else uint32
    unsigned = _dtype(f"uint{a.dtype.bits}")
    v = cast(bitcast(a, unsigned) if a.dtype.kind == "int" else a, bits)
    m1, m2, m4, h = (
        (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x0101010101010101)
        if bits is uint64
        else (0x55555555, 0x33333333, 0x0F0F0F0F, 0x01010101)
    )
    v = v - (raw("raw_shr", v, 1) & m1)
    v = (v & m2) + (raw("raw_shr", v, 2) & m2)
    v = (v + raw("raw_shr", v, 4)) & m4
    return cast(raw("raw_shr", v * h, bits.bits - 8), a.dtype)


def _leading_zeros(a: Val) -> Val:
    unsigned = _dtype(f"uint{a.dtype.bits}")
    v = bitcast(a, unsigned) if a.dtype.kind == "int" else a
    # Every bit below the highest set one becomes set; the others are the zeros.
    step = 1
    while step < a.dtype.bits:
        v = v | raw("raw_shr", v, step)
        step *= 2
    ones = _popcount(v)
    return cast(ones * 0 + a.dtype.bits - ones, a.dtype)


_RULES: dict[str, Callable[..., Val | None]] = {
    "floordiv": _floordiv,
    "mod": _mod,
    "truncdiv": _truncdiv,
    "rem": _rem,
    "shl": _shift("shl"),
    "shr": _shift("shr"),
    "min": lambda a, b: select((a < b) | (a != a), a, b) if a.dtype.is_float else (
        select(a < b, a, b)
    ),
    "max": lambda a, b: select((a > b) | (a != a), a, b) if a.dtype.is_float else (
        select(a > b, a, b)
    ),
    "sign": _sign,
    "abs": _abs,
    "isnan": lambda a: a != a,
    "isinf": lambda a: abs(a) == math.inf,
    "isfinite": lambda a: abs(a) < math.inf,
    "copysign": _copysign,
    "mulhi": _mulhi,
    "popcount": _popcount,
    "leading_zeros": _leading_zeros,
}  # fmt: skip


def _cast(op: Op) -> Val | None:
    old, new = scalar_of(op.args[0].type), scalar_of(op.type)
    value = Val(op.args[0])
    if new.is_bool:
        return value != 0 if old is not bfloat16 else cast(value, float32) != 0
    if old is bfloat16 and new is float32:
        return bitcast(raw("raw_shl", cast(bitcast(value, uint16), uint32), 16), float32)
    if new is bfloat16 and old is float32:
        return _to_bfloat16(value)
    if new.is_int and old.is_float and old is not float16:
        return _saturate(value, new)
    return None


def _to_bfloat16(value: Val) -> Val:
    bits = bitcast(value, uint32)
    top = raw("raw_shr", bits, 16)
    rounded = raw("raw_shr", bits + 0x7FFF + (top & 1), 16)
    nan = (top & 0x8000) | 0x7FC0
    made = select(value != value, nan, rounded)
    return bitcast(cast(made, uint16), bfloat16)


def _saturate(value: Val, new: DType) -> Val:
    low, high = (-(1 << (new.bits - 1)) if new.is_signed else 0), (
        (1 << (new.bits - (1 if new.is_signed else 0))) - 1
    )  # fmt: skip
    # As floats: the upper bound may round up to a power of two, so the test is >=.
    below, above = value <= float(low), value >= float(high)
    inside = ~(below | above | (value != value))
    from burn_cube.frontend.values import builder_of

    builder = builder_of()
    safe = select(inside, value, 0.0)
    made = Val(builder.emit("raw_cast", like(value.type, new), (safe.op,)))
    made = select(above, Val(builder.const(high, made.type)), made)
    made = select(below, Val(builder.const(low, made.type)), made)
    return select(value != value, Val(builder.const(0, made.type)), made)
