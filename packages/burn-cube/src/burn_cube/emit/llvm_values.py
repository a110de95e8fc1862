"""Types, constants and pure operations as LLVM IR."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from burn_cube.interpreter.numeric import to_bfloat16
from burn_cube.ir import Op
from burn_cube.types import Type, Vector, scalar_of
from burn_std.dtypes import DType, bfloat16, float16

_FLOATS = {16: "half", 32: "float", 64: "double"}


def scalar_type(dtype: DType) -> str:
    """Return the LLVM type of a scalar; bfloat16 is held as its bits.

    Example:
        >>> from burn_std.dtypes import float32, bool_
        >>> scalar_type(float32), scalar_type(bool_)
        ('float', 'i1')
    """
    if dtype.is_bool:
        return "i1"
    if dtype.is_float and dtype is not bfloat16:
        return _FLOATS[dtype.bits]
    return f"i{dtype.bits}"


def type_name(type_: Type) -> str:
    """Return the LLVM type of a value."""
    name = scalar_type(scalar_of(type_))
    return f"<{type_.width} x {name}>" if isinstance(type_, Vector) else name


def memory_type(type_: Type) -> str:
    """Return the LLVM type of an element in memory: a bool takes a byte."""
    return type_name(type_).replace("i1>", "i8>") if isinstance(type_, Vector) else (
        "i8" if type_.is_bool else type_name(type_)
    )  # fmt: skip


def constant(value: Any, dtype: DType) -> str:
    """Return a constant in LLVM's spelling."""
    if dtype.is_bool:
        return "true" if value else "false"
    if not dtype.is_float:
        return str(value)
    if dtype is bfloat16:
        return str(int(to_bfloat16(np.array([value], np.float32))[0]))
    with np.errstate(over="ignore"):
        if dtype is float16:
            return f"0xH{int(np.float16(value).view(np.uint16)):04X}"
        rounded = float(np.float32(value)) if dtype.bits == 32 else float(value)
    return "0x" + struct.pack(">d", rounded).hex().upper()


_INT = {
    "add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor",
    "raw_shl": "shl",
}  # fmt: skip
_SIGNED = {"raw_div": "sdiv", "raw_rem": "srem", "raw_shr": "ashr"}
_UNSIGNED = {"raw_div": "udiv", "raw_rem": "urem", "raw_shr": "lshr"}
_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "rem": "frem"}
_COMPARE = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
_INTRINSIC = {
    "abs": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint",
    "sqrt": "sqrt", "fma": "fma",
}  # fmt: skip


def suffix(type_: Type) -> str:
    """Return how the name of an intrinsic ends for a type, `.v4f32`."""
    dtype = scalar_of(type_)
    lanes = f"v{type_.width}" if isinstance(type_, Vector) else ""
    return f".{lanes}{'f' if dtype.is_float else 'i'}{dtype.bits}"


def pure(op: Op, args: list[str], fast: bool, declare: set[str]) -> str:
    """Return the right side of the instruction for an operation of the table.

    Args:
        op: the operation.
        args: its operands, without types.
        fast: whether float instructions carry `fast`.
        declare: takes the declarations of intrinsics that are called.
    """
    type_: Type = op.args[0].type
    dtype, name = scalar_of(type_), type_name(type_)
    flag = " fast" if fast and dtype.is_float else ""
    if op.name in _COMPARE:
        word = _COMPARE[op.name]
        if dtype.is_float:
            return f"fcmp{flag} {'une' if word == 'ne' else 'o' + word} {name} {', '.join(args)}"
        sign = "" if word in ("eq", "ne") else "s" if dtype.kind == "int" else "u"
        return f"icmp {sign}{word} {name} {', '.join(args)}"
    if op.name in _INTRINSIC and dtype.is_float:
        callee = f"@llvm.{_INTRINSIC[op.name]}{suffix(type_)}"
        declare.add(f"declare {name} {callee}({', '.join([name] * len(args))})")
        return f"call{flag} {name} {callee}({', '.join(f'{name} {a}' for a in args)})"
    if op.name == "neg":
        if dtype.is_float:
            return f"fneg{flag} {name} {args[0]}"
        return f"sub {name} zeroinitializer, {args[0]}" if isinstance(type_, Vector) else (
            f"sub {name} 0, {args[0]}"
        )  # fmt: skip
    if op.name == "not":
        ones = "true" if dtype.is_bool else "-1"
        other = f"splat ({scalar_type(dtype)} {ones})" if isinstance(type_, Vector) else ones
        return f"xor {name} {args[0]}, {other}"
    table = _FLOAT if dtype.is_float else _INT
    word = table.get(op.name) or (_SIGNED if dtype.kind == "int" else _UNSIGNED)[op.name]
    return f"{word}{flag} {name} {', '.join(args)}"


def conversion(op: Op, arg: str) -> str:
    """Return the right side of the instruction for a `cast` or `raw_cast`."""
    old, new = scalar_of(op.args[0].type), scalar_of(op.type)
    source, target = type_name(op.args[0].type), type_name(op.type)
    if op.name == "raw_cast":
        word = "fptosi" if new.kind == "int" else "fptoui"
    elif old.is_float:
        word = "fpext" if new.bits > old.bits else "fptrunc"
    elif new.is_float:
        word = "sitofp" if old.kind == "int" else "uitofp"
    elif old.is_bool or new.bits > old.bits:
        word = "sext" if old.kind == "int" else "zext"
    elif new.bits < old.bits:
        word = "trunc"
    else:
        word = "bitcast"
    return f"{word} {source} {arg} to {target}"
