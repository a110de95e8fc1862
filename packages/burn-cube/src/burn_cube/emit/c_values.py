"""Arithmetic in the C family: what each pure operation is, lane by lane.

C leaves signed overflow, division by zero and wide shifts undefined. Integers are computed
unsigned and cast back; what C would leave open is a helper that spells the rule out.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from burn_cube.runtime.arguments import bfloat_bits
from burn_std.dtypes import DType, bfloat16, bool_, float16, float32, float64

if TYPE_CHECKING:
    from burn_cube.emit.c_memory import MemoryWriter
    from burn_cube.emit.dialect import Dialect

COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
PLAIN = {"add": "+", "sub": "-", "mul": "*"}
BITWISE = {"and": "&", "or": "|", "xor": "^"}
LOGIC = {"and": "&&", "or": "||", "xor": "!="}
# 2 ** 31 and the like, exact as floats of either width.
LIMITS = {
    ("int", 8): 7, ("int", 16): 15, ("int", 32): 31, ("int", 64): 63,
    ("uint", 8): 8, ("uint", 16): 16, ("uint", 32): 32, ("uint", 64): 64,
}  # fmt: skip


def unsigned(dtype: DType) -> str:
    """Return the unsigned type in which integers are computed: never narrower than 32 bits.

    Example:
        >>> from burn_std.dtypes import int8, int64
        >>> unsigned(int8), unsigned(int64)
        ('u32', 'u64')
    """
    return "u64" if dtype.bits == 64 else "u32"


def float_bits(value: float, dtype: DType) -> int:
    """Return the bits of a float of any width."""
    if dtype is bfloat16:
        return bfloat_bits(value)
    code, word = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}[dtype.bits]
    try:
        packed = struct.pack(code, value)
    except OverflowError:
        packed = struct.pack(code, float("inf") if value > 0 else float("-inf"))
    bits: int = struct.unpack(word, packed)[0]
    return bits


def literal(value: Any, dtype: DType, dialect: Dialect) -> str:
    """Return a constant."""
    if dtype is bool_:
        return "true" if value else "false"
    if dtype.is_int:
        return dialect.integer(int(value), dtype)
    if dtype in (float16, bfloat16):
        return f"(u16){float_bits(float(value), dtype)}"
    number = struct.unpack("<f", struct.pack("<I", float_bits(float(value), float32)))[0]
    exact = number if dtype is float32 else float(value)
    if exact != exact or exact in (float("inf"), float("-inf")):
        return dialect.literal(float_bits(exact, dtype), dtype)
    text = exact.hex() if abs(exact) not in (0.0, 1.0, 2.0, 0.5) else repr(exact)
    text += "f" if dtype is float32 else ""
    return f"({text})" if text.startswith("-") else text


def value_of(name: str, dtype: DType, args: tuple[str, ...], writer: MemoryWriter) -> str:
    """Return a pure operation of one lane."""
    if name in COMPARE:
        return f"{args[0]} {COMPARE[name]} {args[1]}"
    if dtype is bool_:
        return f"!{args[0]}" if name == "not" else f"{args[0]} {LOGIC[name]} {args[1]}"
    if dtype.is_int:
        return _integer(name, dtype, args, writer)
    return _float(name, dtype, args, writer)


def _integer(name: str, dtype: DType, args: tuple[str, ...], writer: MemoryWriter) -> str:
    t, u = dtype.short, unsigned(dtype)
    a, b = (*args, "")[:2]
    if name in PLAIN:
        return f"({t})(({u}){a} {PLAIN[name]} ({u}){b})"
    if name in BITWISE:
        return f"({t})({a} {BITWISE[name]} {b})"
    if name in ("min", "max"):
        return f"{a} {'<' if name == 'min' else '>'} {b} ? {a} : {b}"
    if name == "neg":
        return f"({t})(0 - ({u}){a})"
    if name == "abs":
        return f"({t})({a} < 0 ? 0 - ({u}){a} : ({u}){a})" if dtype.is_signed else a
    if name == "sign":
        return f"({t})(({a} > 0) - ({a} < 0))" if dtype.is_signed else f"({t})({a} > 0)"
    if name == "not":
        return f"({t})(~{a})"
    if name == "mulhi" and dtype.bits < 64:
        return f"({t})(((u64){a} * (u64){b}) >> {dtype.bits})"
    if name in ("popcount", "leading_zeros", "mulhi"):
        return writer.dialect.intrinsic(name, dtype, args)
    if name.startswith("raw_"):
        sign = {"raw_div": "/", "raw_rem": "%", "raw_shl": "<<", "raw_shr": ">>"}[name]
        left = f"({u}){a}" if name == "raw_shl" else a
        return f"({t})({left} {sign} {b})"
    made = writer.need(f"{name}_{t}", INTEGER[name](dtype))
    return f"{made}({a}, {b})"


def _shift_left(dtype: DType) -> str:
    t, u = dtype.short, unsigned(dtype)
    return (
        f"FN {t} shl_{t}({t} a, {t} n) {{\n"
        f"  return ({u})n < {dtype.bits} ? ({t})(({u})a << ({u})n) : ({t})0;\n}}"
    )


def _shift_right(dtype: DType) -> str:
    t, u = dtype.short, unsigned(dtype)
    fill = f"({t})(a < 0 ? -1 : 0)" if dtype.is_signed else f"({t})0"
    return (
        f"FN {t} shr_{t}({t} a, {t} n) {{\n"
        f"  return ({u})n < {dtype.bits} ? ({t})(a >> n) : {fill};\n}}"
    )


def _division(name: str, result: str) -> Any:
    def text(dtype: DType) -> str:
        t, u = dtype.short, unsigned(dtype)
        lines = [f"FN {t} {name}_{t}({t} a, {t} b) {{", "  if (b == 0) return 0;"]
        quotient = result in ("floor", "trunc")
        if dtype.is_signed:
            # The least integer by -1 traps on some processors.
            lines.append(f"  if (b == -1) return {f'({t})(0 - ({u})a)' if quotient else '0'};")
        lines.append(f"  {t} q = ({t})(a / b), r = ({t})(a % b);")
        if dtype.is_signed and result in ("floor", "mod"):
            lines.append("  if (r != 0 && (r < 0) != (b < 0)) { q -= 1; r += b; }")
        lines.append(f"  return {'q' if quotient else 'r'};\n}}")
        return "\n".join(lines)

    return text


INTEGER = {
    "shl": _shift_left,
    "shr": _shift_right,
    "floordiv": _division("floordiv", "floor"),
    "mod": _division("mod", "mod"),
    "truncdiv": _division("truncdiv", "trunc"),
    "rem": _division("rem", "rem"),
}


def _float(name: str, dtype: DType, args: tuple[str, ...], writer: MemoryWriter) -> str:
    a, b = (*args, "")[:2]
    if name in PLAIN or name == "div":
        return f"{a} {PLAIN.get(name, '/')} {b}"
    if name == "neg":
        return f"-{a}"
    if name == "sign":
        return f"({dtype.short})(({a} > 0) - ({a} < 0))"
    if name == "isnan":
        return f"{a} != {a}"
    infinity = literal(float("inf"), dtype, writer.dialect)
    if name in ("isinf", "isfinite"):
        sign = "==" if name == "isinf" else "<"
        return f"{writer.dialect.math('abs', dtype, (a,), writer)} {sign} {infinity}"
    return writer.dialect.math(name, dtype, args, writer)


def conversion(lane: str, old: DType, new: DType, writer: MemoryWriter) -> str:
    """Return a lane converted between dtypes; halves meet only float32."""
    if old is new:
        return lane
    if new is bool_:
        return f"{lane} != 0"
    if old in (float16, bfloat16) or new in (float16, bfloat16):
        name = f"{new.short}_from_{old.short}"
        return f"{writer.need(name, writer.dialect.half(old, new))}({lane})"
    if old.is_float and new.is_int:
        name = f"{new.short}_from_{old.short}"
        return f"{writer.need(name, _saturating(old, new, writer.dialect))}({lane})"
    return f"({new.short}){lane}"


def _saturating(old: DType, new: DType, dialect: Dialect) -> str:
    bits = LIMITS[new.kind, new.bits]
    high = literal(2.0**bits, old, dialect)
    low = literal(-(2.0**bits) if new.is_signed else 0.0, old, dialect)
    top = dialect.integer(2**bits - 1, new)
    bottom = dialect.integer(-(2**bits) if new.is_signed else 0, new)
    t = new.short
    return (
        f"FN {t} {t}_from_{old.short}({old.short} x) {{\n"
        f"  if (!(x > {low})) return x == x ? {bottom} : ({t})0;\n"
        f"  return x >= {high} ? {top} : ({t})x;\n}}"
    )


BFLOAT = {
    "f32_from_bf16": "FN f32 f32_from_bf16(u16 h) { return f32_of_bits((u32)h << 16); }",
    # Halves to even; NaN keeps its sign and becomes quiet.
    "bf16_from_f32": (
        "FN u16 bf16_from_f32(f32 x) {\n"
        "  const u32 b = bits_of_f32(x);\n"
        "  if (x != x) return (u16)(0x7fc0u | ((b >> 16) & 0x8000u));\n"
        "  return (u16)((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);\n}"
    ),
}
HALF_OF = {float64: "f64", float32: "f32"}
