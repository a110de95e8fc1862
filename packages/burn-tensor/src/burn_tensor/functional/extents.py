"""Extents as the user writes them, one int for all dims or one per dim, remembered as tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burn_std import ArgumentError, DTypeError

Ints = tuple[int, ...]
# An int for every spatial dim, or one int per dim.
Extent = int | Sequence[int]

_SPREAD: dict[Any, Ints] = {}


def spread(op: str, name: str, value: Extent, n: int) -> Ints:
    """Return an int-or-sequence argument as a tuple of n ints.

    Raises:
        ArgumentError: a sequence of another length.
        DTypeError: something else than ints.
    """
    try:
        return _SPREAD[value, n]
    except (KeyError, TypeError):
        pass
    try:
        if isinstance(value, Sequence):
            out = tuple([v.__index__() for v in value])
            out = out * n if len(out) == 1 else out
        else:
            out = (value.__index__(),) * n
    except (AttributeError, TypeError):
        raise DTypeError(op, f"{name} must be an int or {n} ints", got=f"{value!r}") from None
    if len(out) != n:
        raise ArgumentError(op, f"{name} must be an int or {n} ints", got=f"{value!r}")
    if len(_SPREAD) > 4096:
        _SPREAD.clear()
    if isinstance(value, (int, tuple)):
        _SPREAD[value, n] = out
    return out
