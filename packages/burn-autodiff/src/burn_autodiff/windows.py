"""Gradients of parts of one tensor, put together once: of `chunk`, `split` and `x[:, k]`.

Each part alone would be zeros of the whole shape with the part's gradient in its place, and those
would be added up. Parts that lie beside one another are joined instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from burn_backend import TensorBase

Shape = tuple[int, ...]


class Window(NamedTuple):
    """The gradient of a part.

    Attributes:
        start: where it begins along its dim; `stop` where it ends.
        dim: the only dim along which it is not the whole.
        g: the gradient of the part.
        selected: the part has no such dim.
        alone: returns the gradient of the whole as the operation's own rule makes it.
    """

    start: int
    stop: int
    dim: int
    g: TensorBase
    selected: bool
    alone: Callable[[], TensorBase]


def place_of(name: str, attrs: tuple[Any, ...], shape: Shape) -> tuple[int, int, int] | None:
    """Return start, stop and dim of what an operation takes out of a tensor.

    None where it is no `slice` or `select`, or takes a part of more dims than one, or with a step.

    Example:
        >>> place_of("slice", ((1, 1), (0, 2), (4, 9)), (4, 6))
        (2, 6, 1)
        >>> place_of("select", (0, 3), (4, 6))
        (3, 4, 0)
    """
    if 0 in shape:
        return None
    if name == "select":
        dim, index = attrs
        return index, index + 1, dim
    if name != "slice":
        return None
    steps, starts, stops = attrs
    if any(step != 1 for step in steps):
        return None
    found = None
    for dim, (first, last, n) in enumerate(zip(starts, stops, shape, strict=True)):
        start, stop, _ = slice(first, last).indices(n)
        if (start, stop) == (0, n):
            continue
        if found is not None or stop <= start:
            return None
        found = start, stop, dim
    return found


class Windows:
    """What is known of one tensor's gradient.

    Attributes:
        parts: gradients of parts of it.
        whole: what else was added up, None if nothing.
    """

    __slots__ = ("ops", "parts", "shape", "whole")

    def __init__(self, ops: Any, shape: Shape, part: Window) -> None:
        self.ops = ops
        self.shape = shape
        self.parts = [part]
        self.whole: TensorBase | None = None

    def add(self, g: TensorBase) -> None:
        """Add a gradient of the whole."""
        self.whole = g if self.whole is None else g.b.add(self.whole, g)

    def total(self) -> TensorBase:
        """Return the gradient of the whole."""
        beside = len(self.parts) > 1 and self._beside()
        for g in [self._joined()] if beside else [part.alone() for part in self.parts]:
            self.add(g)
        assert self.whole is not None  # noqa: S101 - there is a part
        return self.whole

    def _beside(self) -> bool:
        """Return whether the parts can be joined, and bring them into order."""
        first = self.parts[0]
        if any(p.dim != first.dim or p.g.dtype is not first.g.dtype for p in self.parts):
            return False
        self.parts.sort(key=lambda p: p.start)
        stops = [p.stop for p in self.parts]
        return all(p.start >= stop for p, stop in zip(self.parts[1:], stops, strict=False))

    def _joined(self) -> TensorBase:
        ops, shape = self.ops, self.shape
        dim, dtype = self.parts[0].dim, self.parts[0].g.dtype
        pieces, at = [], 0

        def gap(stop: int) -> None:
            if stop > at:
                zero = ops.full(dtype, (1,) * len(shape), 0)
                extent = tuple(stop - at if k == dim else n for k, n in enumerate(shape))
                pieces.append(ops.expand(zero, extent))

        for part in self.parts:
            gap(part.start)
            pieces.append(ops.unsqueeze(part.g, (dim,)) if part.selected else part.g)
            at = part.stop
        gap(shape[dim])
        made: TensorBase = ops.cat(pieces, dim)
        return made
