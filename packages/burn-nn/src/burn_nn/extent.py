"""Extents of windows: one int for all dims, or one per dim; how many layers there may be."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from burn_std import ArgumentError

Extent = int | tuple[int, ...]
Pads = tuple[tuple[int, int], ...]

# Each is made by itself, so that an absurd number would run until the memory ends.
_MOST_LAYERS = 1 << 16


def layers_of(name: str, value: int, least: int) -> int:
    """Return how many layers are to be made.

    Args:
        name: what an error names.
        value: the number.
        least: of them.

    Raises:
        ArgumentError: there are fewer, or more than 65536.
    """
    count = index(value)
    if not least <= count <= _MOST_LAYERS:
        raise ArgumentError(
            name, f"num_layers is at least {least}, and {_MOST_LAYERS} at most", got=count
        )
    return count


def spatial(name: str, value: int | Sequence[int], n: int) -> tuple[int, ...]:
    """Return one int per spatial dim.

    Args:
        name: what an error names.
        value: one int, or n.
        n: how many dims there are.

    Raises:
        ArgumentError: another number of ints.
    """
    given: tuple[Any, ...] = (value,) * n
    if isinstance(value, (tuple, list)):
        given = tuple(value)
    try:
        out = tuple(index(v) for v in given)
    except TypeError:
        out = ()
    if len(out) != n:
        raise ArgumentError(name, f"needs one int or {n}", got=value)
    return out


def pads_of(name: str, value: Any, n: int) -> tuple[int, ...] | Pads:
    """Return the padding per dim: ints for both sides, or pairs (before, after).

    Args:
        name: what an error names.
        value: one int, n ints, n pairs, or for one dim a pair.
        n: how many dims there are.

    Raises:
        ArgumentError: none of these.
    """
    if n == 1 and isinstance(value, (tuple, list)) and len(value) == 2:
        value = (value,)
    if isinstance(value, (tuple, list)) and any(isinstance(p, (tuple, list)) for p in value):
        pairs = [(p, p) if isinstance(p, int) else tuple(p) for p in value]
        if len(pairs) != n or any(len(p) != 2 for p in pairs):
            raise ArgumentError(name, f"needs {n} pairs (before, after)", got=value)
        return tuple((int(p[0]), int(p[1])) for p in pairs)
    return spatial(name, value, n)
