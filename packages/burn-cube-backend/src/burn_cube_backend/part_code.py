"""The value of one elementwise part of a fused kernel, from its catalogue's expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burn_backend import Part
from burn_cube_backend.code import Code, Val
from burn_cube_backend.kernels.create import wrapped
from burn_cube_backend.kernels.maps import plain, wide
from burn_cube_backend.scalar_code import LARGEST, Expression
from burn_ir import CATALOG, Node, bind, parse
from burn_std import DType

_PARSED: dict[str, Node] = {}


def expression(name: str) -> Node:
    """Return the expression of an operation."""
    found = _PARSED.get(name)
    if found is None:
        found = _PARSED[name] = parse(CATALOG[name].expr or "", name)
    return found


def part_numbers(
    code: Code, parts: Sequence[Part], absent: Sequence[bool], name: str = ""
) -> list[list[Val | None]]:
    """Add the parameters for the run-time numbers of parts, and return them by part.

    Args:
        code: the kernel.
        parts: of a group.
        absent: of all their run-time values, which are None or no numbers.
        name: what the names of the parameters begin with.
    """
    missing = iter(absent)
    return [
        [
            None if next(missing) else code.scalar(f"{name}s{p}_{j}", wide(part.lead))
            for j in range(part.numbers)
        ]
        for p, part in enumerate(parts)
    ]


def part_value(
    code: Code, part: Part, given: Sequence[Val | None], numbers: Sequence[Val | None]
) -> Val:
    """Return the value of a part, rounded to its dtype.

    Args:
        code: the kernel.
        part: an elementwise operation, or a number that stands for a tensor.
        given: its inputs, None for those that are absent; all of one width.
        numbers: its run-time numbers, None for those that are None.
    """
    if part.name == "full":
        (number,) = numbers
        assert number is not None  # noqa: S101 - a `full` has a number
        return number.cast(part.dtype)
    entry, node = CATALOG[part.name], expression(part.name)
    known: dict[str, Any] = {"floating": part.lead.is_float, "largest": LARGEST.get(part.lead)}
    env: dict[str, Any] = {}
    for name, x in zip([i.name for i in entry.inputs], given, strict=True):
        if x is None:
            known[name] = None
        else:
            env[name] = x.cast(wide(x.dtype))
    static, late = iter(part.static), iter(numbers)
    for attr in entry.attrs:
        if attr.kind == "static":
            known[attr.name] = next(static)
            continue
        number = next(late)
        if number is None:
            known[attr.name] = None
        else:
            env[attr.name] = number
    return Expression(code, env, wide(part.lead)).value(bind(node, known)).cast(part.dtype)


# Of a run-time number the dtype that it has, and whether it is an element of that dtype first.
NumberKind = tuple[DType, bool]


def number_kind(part: Part) -> NumberKind:
    """Return what the run-time numbers of a part are; those of a `full` stand for a tensor."""
    whole = part.name == "full"
    return (part.static[0] if whole else part.lead), whole


def number_word(value: Any, kind: NumberKind) -> Any:
    """Return a run-time number as the argument of a kernel."""
    dtype, whole = kind
    return plain(wrapped(value, dtype) if whole else value, dtype.kind)
