"""Passes over a kernel that every target shares: fold constants, merge equals, drop the unused.

All walk the regions once, in order, and keep the meaning bit for bit: floats are folded only where
one correctly rounded operation does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burn_cube.builder import wrap
from burn_cube.ir import Kernel, Op, Region, walk
from burn_cube.operations import is_pure
from burn_cube.types import Vector
from burn_std.dtypes import DType


def simplify(kernel: Kernel) -> Kernel:
    """Fold, merge and drop in place; return the kernel."""
    _Merge().region(kernel.body, [{}])
    drop_unused(kernel)
    return kernel


def drop_unused(kernel: Kernel) -> None:
    """Remove pure operations and reads of locals whose result nobody uses."""
    while True:
        used: set[Op] = set()
        read: set[Op] = set()
        for op in walk(kernel.body):
            used.update(op.args)
            if op.name == "get":
                read.add(op.args[0])
        if not _drop(kernel.body, used, read):
            return


def _drop(region: Region, used: set[Op], read: set[Op]) -> bool:
    kept = []
    for op in region.ops:
        idle = is_pure(op.name) or op.name in ("get", "load", "alloc", "slot")
        unused = op not in used and (idle or op.name == "slot")
        if unused or (op.name == "set" and op.args[0] not in read):
            continue
        if op.name == "if" and not op.regions[0].ops and not op.regions[1].ops:
            continue
        kept.append(op)
    changed = len(kept) != len(region.ops)
    region.ops = kept
    for op in kept:
        for inner in op.regions:
            changed |= _drop(inner, used, read)
    return changed


class _Merge:
    """Gives equal pure operations one name, within the regions where the first is known."""

    def __init__(self) -> None:
        self.same: dict[Op, Op] = {}

    def region(self, region: Region, scopes: list[dict[Any, Op]]) -> None:
        kept = []
        for op in region.ops:
            if any(arg in self.same for arg in op.args):
                op.args = tuple(self.same.get(arg, arg) for arg in op.args)
            if is_pure(op.name):
                folded = fold(op)
                if folded is not None:
                    if isinstance(folded, Op):
                        self.same[op] = folded
                        continue
                    op.name, op.args, op.attrs = "const", (), {"value": folded}
                key = (op.name, op.type, op.args, _attrs(op))
                known = next((scope[key] for scope in scopes if key in scope), None)
                if known is not None:
                    self.same[op] = known
                    continue
                scopes[-1][key] = op
            kept.append(op)
            inherited = [*scopes, {}]
            for number, inner in enumerate(op.regions):
                # The body of a `while` knows what its condition computed.
                if op.name == "while" and number == 1:
                    self.region(inner, [*inherited, {}])
                else:
                    if number and op.name == "if":
                        inherited = [*scopes, {}]
                    self.region(inner, inherited)
            if op.name == "if":
                chosen = _known_branch(op)
                if chosen is not None:
                    kept.pop()
                    kept.extend(chosen.ops)
        region.ops = kept


def _attrs(op: Op) -> tuple[Any, ...]:
    # repr tells 0.0 from -0.0 and 1 from True; NaN equals itself.
    return tuple((key, repr(value)) for key, value in sorted(op.attrs.items()))


def _known_branch(op: Op) -> Region | None:
    cond = op.args[0]
    return None if cond.name != "const" else op.regions[0 if cond.attrs["value"] else 1]


_FOLD_INT: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "min": min,
    "max": max,
}
_FOLD_TRUTH: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def fold(op: Op) -> Any:
    """Return the constant an operation comes to, the operand it equals, or None."""
    args = op.args
    if isinstance(op.type, Vector) or not args or isinstance(args[0].type, Vector):
        return None
    values = [a.attrs["value"] if a.name == "const" else None for a in args]
    if op.name == "select" and values[0] is not None:
        return args[1] if values[0] else args[2]
    if op.name == "cast" and values[0] is not None:
        return _fold_cast(values[0], args[0].type, op.type)
    if len(args) != 2 or not isinstance(args[0].type, DType):
        return None
    dtype: DType = args[0].type
    if dtype.is_float:
        return None
    a, b = values
    if a is not None and b is not None:
        if op.name in _FOLD_TRUTH:
            return _FOLD_TRUTH[op.name](a, b)
        if op.name in _FOLD_INT:
            result = _FOLD_INT[op.name](a, b)
            return bool(result) if dtype.is_bool else wrap(int(result), dtype)
        return None
    if dtype.is_int:
        if b == 0 and op.name in ("add", "sub", "or", "xor", "shl", "shr"):
            return args[0]
        if a == 0 and op.name in ("add", "or", "xor"):
            return args[1]
        if b == 1 and op.name in ("mul", "floordiv", "truncdiv"):
            return args[0]
        if a == 1 and op.name == "mul":
            return args[1]
    return None


def _fold_cast(value: Any, old: DType, new: DType) -> Any:
    if new.is_int and (old.is_int or old.is_bool):
        return wrap(int(value), new)
    if new.is_bool:
        return bool(value)
    if new.bits == 64 and new.is_float and not old.is_float and abs(int(value)) < 2**53:
        return float(value)
    return None
