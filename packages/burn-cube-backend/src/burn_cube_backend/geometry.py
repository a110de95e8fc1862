"""Shapes and strides: broadcasting, merging of dims, views without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

Ints = tuple[int, ...]


def size_of(shape: Sequence[int]) -> int:
    """Return the number of elements of a shape.

    Example:
        >>> size_of((2, 3)), size_of(())
        (6, 1)
    """
    count = 1
    for extent in shape:
        count *= extent
    return count


def dense(shape: Sequence[int]) -> Ints:
    """Return row-major strides.

    Example:
        >>> dense((2, 3, 4))
        (12, 4, 1)
    """
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    return tuple(strides)


def is_dense(shape: Ints, strides: Ints) -> bool:
    """Return whether elements lie in row-major order without gaps; dims of size 1 do not count."""
    if 0 in shape:
        return True
    expected = 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1:
            if s != expected:
                return False
            expected *= n
    return True


@lru_cache(4096)
def is_turned_whole(shape: Ints, strides: Ints) -> bool:
    """Return whether elements lie without gaps, though not row by row.

    Example:
        >>> is_turned_whole((2, 3), (1, 2)), is_turned_whole((2, 3), (3, 1))
        (True, False)
    """
    dims = sorted((s, n) for s, n in zip(strides, shape, strict=True) if n != 1)
    room = 1
    for step, n in dims:
        if step != room:
            return False
        room *= n
    return room > 0 and not is_dense(shape, strides)


def channels_last(shape: Sequence[int]) -> Ints:
    """Return the strides of [N, C, *L] whose channels lie side by side, for all places in turn.

    Example:
        >>> channels_last((2, 3, 4, 5))
        (60, 1, 15, 3)
    """
    n, *places, c = dense(dims_last(shape))
    return (n, c, *places)


def lies_last(shape: Ints, strides: Ints) -> bool:
    """Return whether [N, C, *L] lies so, without gaps; dims of size 1 do not count.

    Example:
        >>> lies_last((2, 3, 4, 5), (60, 1, 15, 3)), lies_last((2, 3, 4, 5), (60, 20, 5, 1))
        (True, False)
    """
    if len(shape) < 3:
        return False
    return is_dense(dims_last(shape), dims_last(strides))


def is_last(shape: Ints, strides: Ints) -> bool:
    """Return whether an image or a volume lies with its channels last, and not row by row as well.

    Signals are no images: [N, C, L] is as well the transpose of a matrix.
    """
    return len(shape) > 3 and lies_last(shape, strides) and not is_dense(shape, strides)


def dims_last(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return what belongs to the dims [N, C, *L] for [N, *L, C].

    Example:
        >>> dims_last((2, 3, 4, 5))
        (2, 4, 5, 3)
    """
    return (values[0], *values[2:], values[1])


def broadcast_shape(shapes: Sequence[Ints]) -> Ints:
    """Return the shape that all broadcast to; the entry's rule has checked that there is one.

    Example:
        >>> broadcast_shape([(3, 1), (2,), ()])
        (3, 2)
    """
    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for shape in shapes:
        for d, n in enumerate(shape, rank - len(shape)):
            if n != 1:
                out[d] = n
    return tuple(out)


def broadcast_strides(shape: Ints, strides: Ints, target: Ints) -> Ints:
    """Return the strides with which a shape is read as `target`; new and repeated dims get 0."""
    lead = len(target) - len(shape)
    own = [
        0 if n == 1 and t != 1 else s for n, s, t in zip(shape, strides, target[lead:], strict=True)
    ]
    return (0,) * lead + tuple(own)


def collapse(shape: Sequence[int], operands: Sequence[Sequence[int]]) -> tuple[Ints, list[Ints]]:
    """Drop dims of size 1 and merge neighbours that all operands walk in one stride.

    Returns:
        The merged extents, at least one, and the strides of each operand along them.

    Example:
        >>> collapse((2, 3, 4), [(12, 4, 1), (12, 4, 1)])
        ((24,), [(1,), (1,)])
        >>> collapse((2, 3, 4), [(12, 4, 1), (4, 0, 1)])
        ((2, 3, 4), [(12, 4, 1), (4, 0, 1)])
    """
    extents: list[int] = []
    merged: list[list[int]] = []  # per dim, the strides of the operands
    for d, n in enumerate(shape):
        if n == 1:
            continue
        here = [s[d] for s in operands]
        if extents and all(p == h * n for p, h in zip(merged[-1], here, strict=True)):
            extents[-1] *= n
            merged[-1] = here
        else:
            extents.append(n)
            merged.append(here)
    if not extents:
        extents, merged = [1], [[0] * len(operands)]
    return tuple(extents), [tuple(m[k] for m in merged) for k in range(len(operands))]


def reach(shape: Ints, strides: Ints, offset: int = 0) -> int:
    """Return the largest absolute position that a window touches."""
    high = offset
    for n, s in zip(shape, strides, strict=True):
        if s > 0:
            high += (n - 1) * s
    return high


def reshaped(shape: Ints, strides: Ints, new: Ints) -> Ints | None:
    """Return strides that give the same elements in another shape, or None where none do.

    Example:
        >>> reshaped((4, 6), (6, 1), (2, 2, 6))
        (12, 6, 1)
        >>> reshaped((4, 6), (1, 4), (24,)) is None
        True
    """
    if size_of(shape) == 0:
        return dense(new)
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    want = [d for d, n in enumerate(new) if n != 1]
    out = [0] * len(new)
    first = at = 0
    while at < len(want):
        # The smallest group of new dims whose product is that of a group of old ones.
        group, last = [want[at]], first + 1
        have, need = old[first][0], new[want[at]]
        at += 1
        while have != need:
            if need < have:
                group.append(want[at])
                need *= new[want[at]]
                at += 1
            else:
                have *= old[last][0]
                last += 1
        if any(old[k][1] != old[k + 1][1] * old[k + 1][0] for k in range(first, last - 1)):
            return None
        step = old[last - 1][1]
        for d in reversed(group):
            out[d] = step
            step *= new[d]
        first = last
    return tuple(out)
