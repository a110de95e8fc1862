"""Operations over the units of a plane, on lanes of numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def plane(kind: str, value: Array, lane: Array | None, cube: int, size: int) -> Array:
    """Return the result of a plane operation for every lane.

    Args:
        kind: one of `burn_cube.operations.PLANE`.
        value: one element a lane, cubes behind each other.
        lane: the second operand, or None.
        cube: units of a cube.
        size: units of a plane; the last plane of a cube may be short.

    Example:
        >>> plane("sum", np.arange(4.0), None, 4, 2)
        array([1., 1., 5., 5.])
    """
    out = np.empty(value.shape, np.uint32 if kind == "ballot" else value.dtype)
    for start in range(0, len(value), cube):
        for first in range(start, start + cube, size):
            stop = min(first + size, start + cube)
            part = value[first:stop]
            other = None if lane is None else lane[first:stop]
            out[first:stop] = _one(kind, part, other)
    return out


def _one(kind: str, part: Array, other: Array | None) -> Array:
    if kind in ("sum", "prod", "min", "max"):
        return _tree(kind, part)
    if kind in ("all", "any"):
        return getattr(part, kind)()
    if kind == "ballot":
        return np.uint32(sum(1 << at for at, bit in enumerate(part) if bit))
    if kind.endswith(("_sum", "_prod")):
        return _scan(kind, part)
    return _move(kind, part, other)


def _tree(kind: str, part: Array) -> Array:
    """Combine in the order of a butterfly, which is what the devices do."""
    fn = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}[kind]
    size = 1
    while size < len(part):
        size *= 2
    lanes = list(part)
    step = 1
    while step < size:
        lanes = [
            fn(v, lanes[at ^ step]) if (at ^ step) < len(lanes) else v
            for at, v in enumerate(lanes)
        ]  # fmt: skip
        step *= 2
    # A short plane has holes in the butterfly: its first unit is the one that met all others.
    return np.asarray(lanes, part.dtype) if size == len(part) else lanes[0]


def _scan(kind: str, part: Array) -> Array:
    fn = np.add if kind.endswith("sum") else np.multiply
    inclusive = fn.accumulate(part, dtype=part.dtype)
    if kind.startswith("inclusive"):
        return inclusive
    first = part.dtype.type(0 if kind.endswith("sum") else 1)
    return np.concatenate([[first], inclusive[:-1]]).astype(part.dtype)


def _move(kind: str, part: Array, other: Array | None) -> Array:
    at = np.arange(len(part))
    lane = np.zeros(len(part), np.int64) if other is None else other.astype(np.int64)
    source = {
        "shuffle": lane, "broadcast": lane, "shuffle_xor": at ^ lane,
        "shuffle_up": at - lane, "shuffle_down": at + lane,
    }[kind]  # fmt: skip
    inside = (source >= 0) & (source < len(part))
    return part[np.where(inside, source, at)]
