"""Rules of views and of operations that move elements."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from burn_ir.entry import Spec
from burn_ir.rules.basic import Shape, broadcast_shapes, check_dtype, dim_index
from burn_std import ArgumentError, IndexRangeError, ShapeError
from burn_std.dtypes import int64


def reshape(x: Spec, shape: Shape) -> Spec:
    """Rule of reshape; -1 was resolved before."""
    if any(n < 0 for n in shape):
        raise ShapeError("reshape", "extents are not negative", got=list(shape))
    if prod(shape) != prod(x.shape):
        raise ShapeError(
            "reshape", "the number of elements must stay",
            got=f"{x} ({prod(x.shape)}) to {list(shape)}",
        )  # fmt: skip
    return Spec(shape, x.dtype)


def permute(x: Spec, dims: Shape) -> Spec:
    """Rule of permute: dims is a permutation of range(rank)."""
    if len(dims) != x.rank:
        raise ShapeError("permute", "dims must name every dim once", got=f"{x}, dims {dims}")
    if len({dim_index("permute", d, x.rank) for d in dims}) != x.rank:
        raise ArgumentError("permute", "a dim appears twice", got=f"{x}, dims {dims}")
    return Spec(tuple(x.shape[d] for d in dims), x.dtype)


def expand(x: Spec, shape: Shape) -> Spec:
    """Rule of expand; -1 was resolved before."""
    if any(n < 0 for n in shape):
        raise ShapeError("expand", "extents are not negative", got=list(shape))
    tail = shape[max(len(shape) - x.rank, 0) :]
    if len(tail) < x.rank or any(n not in (1, m) for n, m in zip(x.shape, tail, strict=True)):
        raise ShapeError("expand", "only dims of size 1 expand", got=f"{x} to {list(shape)}")
    return Spec(shape, x.dtype)


def squeeze(x: Spec, dims: Shape) -> Spec:
    """Rule of squeeze: every named dim has extent 1."""
    if len({dim_index("squeeze", d, x.rank) for d in dims}) != len(dims):
        raise ArgumentError("squeeze", "a dim appears twice", got=f"dims {dims}")
    for d in dims:
        if x.shape and x.shape[d] != 1:
            raise ShapeError("squeeze", "named dims must have extent 1", got=f"{x}, dims {dims}")
    return Spec(tuple(n for i, n in enumerate(x.shape) if i not in dims), x.dtype)


def unsqueeze(x: Spec, dims: Shape) -> Spec:
    """Rule of unsqueeze: dims are positions in the result, ascending."""
    shape = list(x.shape)
    for d in dims:
        if not 0 <= d <= len(shape):
            raise IndexRangeError("unsqueeze", f"dim must be in [0, {len(shape)}]", got=f"dim {d}")
        shape.insert(d, 1)
    return Spec(tuple(shape), x.dtype)


def slice_extents(op: str, shape: Shape, steps: Shape, starts: Shape, stops: Shape) -> Shape:
    """Return the extents of a slice.

    Bounds are Python's own, already made non-negative; stop -1 with a negative step means
    "through element 0".
    """
    if not len(starts) == len(stops) == len(steps) == len(shape):
        raise ShapeError(op, "one start, stop and step per dim", got=f"rank {len(shape)}")
    out = []
    for n, a, b, s in zip(shape, starts, stops, steps, strict=True):
        if s == 0:
            raise ArgumentError(op, "step must not be 0", got=f"steps {steps}")
        count = len(range(a, b, s))
        if count and not (0 <= a < n and 0 <= a + (count - 1) * s < n):
            raise IndexRangeError(op, "bounds must lie inside the dim", got=f"{a}:{b}:{s} in {n}")
        out.append(count)
    return tuple(out)


def slice_(x: Spec, steps: Shape, starts: Shape, stops: Shape) -> Spec:
    """Rule of slice."""
    return Spec(slice_extents("slice", x.shape, steps, starts, stops), x.dtype)


def select(x: Spec, dim: int, index: int) -> Spec:
    """Rule of select."""
    if not x.shape:
        raise IndexRangeError("select", "needs a dim", got=x)
    dim_index("select", dim, x.rank)
    if not 0 <= index < x.shape[dim]:
        raise IndexRangeError(
            "select", "the index must lie inside the dim",
            got=f"index {index}, dim {dim} of size {x.shape[dim]}",
        )  # fmt: skip
    return Spec((*x.shape[:dim], *x.shape[dim + 1 :]), x.dtype)


def slice_assign(x: Spec, value: Spec, steps: Shape, starts: Shape, stops: Shape) -> Spec:
    """Rule of slice_assign: value broadcasts to the window."""
    window = slice_extents("slice_assign", x.shape, steps, starts, stops)
    if broadcast_shapes("slice_assign", window, value.shape) != window:
        raise ShapeError(
            "slice_assign",
            "value must broadcast to the window",
            got=f"value {value}, window {list(window)}",
        )
    return x


def flip(x: Spec, dims: Shape) -> Spec:
    """Rule of flip."""
    if len({dim_index("flip", d, x.rank) for d in dims}) != len(dims):
        raise ArgumentError("flip", "a dim appears twice", got=f"dims {dims}")
    return x


def diagonal(x: Spec, dim1: int, dim2: int, offset: int) -> Spec:
    """Rule of diagonal: the two dims go, the diagonal comes last."""
    same = dim_index("diagonal", dim1, x.rank) == dim_index("diagonal", dim2, x.rank)
    if x.rank < 2 or same:
        raise ShapeError("diagonal", "needs two different dims", got=f"{x}, dims {dim1} and {dim2}")
    n, m = x.shape[dim1], x.shape[dim2]
    length = max(0, min(n, m - offset) if offset >= 0 else min(n + offset, m))
    rest = tuple(e for i, e in enumerate(x.shape) if i not in (dim1, dim2))
    return Spec((*rest, length), x.dtype)


def diagonal_backward(g: Spec, dim1: int, dim2: int, shape: Shape, offset: int) -> Spec:
    """Rule of diagonal_backward: zeros of `shape` with g on the diagonal."""
    want = diagonal(Spec(shape, g.dtype), dim1, dim2, offset)
    if want.shape != g.shape:
        raise ShapeError(
            "diagonal_backward", "g must have the diagonal's shape", got=f"{g}, want {want}"
        )
    return Spec(shape, g.dtype)


def unfold_dim(x: Spec, dim: int, size: int, step: int) -> Spec:
    """Rule of unfold_dim: windows along a dim, the window is the new last dim."""
    dim_index("unfold", dim, x.rank)
    n = x.shape[dim] if x.shape else 1
    if size > n or size < 0 or step < 1:
        raise ShapeError(
            "unfold",
            "0 <= size <= extent and step >= 1",
            got=f"{x}, dim {dim}, size {size}, step {step}",
        )
    shape = list(x.shape) if x.shape else [1]
    shape[dim] = (n - size) // step + 1
    if not x.shape:
        return Spec((size,), x.dtype)
    return Spec((*shape, size), x.dtype)


def unfold_dim_backward(g: Spec, dim: int, size: int, step: int, shape: Shape) -> Spec:
    """Rule of unfold_dim_backward: overlapping windows add up."""
    want = unfold_dim(Spec(shape, g.dtype), dim, size, step)
    if want.shape != g.shape:
        raise ShapeError(
            "unfold_dim_backward", "g must have the windows' shape", got=f"{g}, want {want}"
        )
    return Spec(shape, g.dtype)


def cat(xs: tuple[Spec, ...], dim: int) -> Spec:
    """Rule of cat."""
    if not xs:
        raise ArgumentError("cat", "needs at least one tensor", got="an empty list")
    first = xs[0]
    dim_index("cat", dim, first.rank)
    for s in xs:
        if s.rank != first.rank or s.rank == 0:
            raise ShapeError(
                "cat", "all tensors need the same rank, at least 1", got=", ".join(map(repr, xs))
            )
        for i, (n, m) in enumerate(zip(s.shape, first.shape, strict=True)):
            if i != dim and n != m:
                raise ShapeError(
                    "cat", f"extents must match except along dim {dim}",
                    got=", ".join(map(repr, xs)),
                )  # fmt: skip
    shape = list(first.shape)
    shape[dim] = sum(s.shape[dim] for s in xs)
    return Spec(tuple(shape), first.dtype)


_PAD_MODES = ("constant", "reflect", "replicate", "circular")


def pad(x: Spec, mode: str, pads: tuple[tuple[int, int], ...]) -> Spec:
    """Rule of pad: one (before, after) per dim; negative crops."""
    if mode not in _PAD_MODES:
        raise ArgumentError("pad", f"mode is one of {', '.join(_PAD_MODES)}", got=repr(mode))
    if len(pads) != x.rank:
        raise ShapeError("pad", "one (before, after) pair per dim", got=f"{x}, pads {pads}")
    out = []
    for n, (a, b) in zip(x.shape, pads, strict=True):
        if mode == "reflect" and max(a, b) >= max(n, 1) and (a > 0 or b > 0):
            raise ShapeError(
                "pad", "reflect padding must be less than the extent", got=f"{x}, pads {pads}"
            )
        if mode == "circular" and max(a, b) > (n if n + min(a, 0) + min(b, 0) > 0 else 0):
            raise ShapeError(
                "pad", "circular padding must not exceed the extent", got=f"{x}, pads {pads}"
            )
        if mode == "replicate" and n == 0 and (a > 0 or b > 0):
            raise ShapeError(
                "pad", "replicate padding needs a non-empty dim", got=f"{x}, pads {pads}"
            )
        if n + a + b < 0:
            raise ShapeError(
                "pad", "the padded extent must not be negative", got=f"{x}, pads {pads}"
            )
        out.append(n + a + b)
    return Spec(tuple(out), x.dtype)


def pad_backward(g: Spec, mode: str, pads: tuple[tuple[int, int], ...]) -> Spec:
    """Rule of pad_backward: the adjoint of pad."""
    if len(pads) != g.rank or any(n - a - b < 0 for n, (a, b) in zip(g.shape, pads, strict=True)):
        raise ShapeError("pad_backward", "g must have a padded shape", got=f"{g}, pads {pads}")
    return Spec(tuple(n - a - b for n, (a, b) in zip(g.shape, pads, strict=True)), g.dtype)


def roll(x: Spec, dims: Shape, shifts: Shape) -> Spec:
    """Rule of roll."""
    if len(dims) != len(shifts):
        raise ArgumentError("roll", "one shift per dim", got=f"shifts {shifts}, dims {dims}")
    for d in dims:
        dim_index("roll", d, x.rank)
    return x


def repeat(x: Spec, repeats: Shape) -> Spec:
    """Rule of repeat: repeats covers at least the rank."""
    if len(repeats) < x.rank or any(r < 0 for r in repeats):
        raise ShapeError(
            "repeat",
            "one non-negative count per dim, at least the rank",
            got=f"{x}, repeats {repeats}",
        )
    shape = (1,) * (len(repeats) - x.rank) + x.shape
    return Spec(tuple(n * r for n, r in zip(shape, repeats, strict=True)), x.dtype)


def triangle(op: str) -> Callable[[Spec, int], Spec]:
    """Rule of tril and triu."""

    def rule(x: Spec, diagonal: int) -> Spec:
        if x.rank < 2:
            raise ShapeError(op, "needs at least two dims", got=x)
        return x

    return rule


def sort(x: Spec, dim: int, descending: bool) -> tuple[Spec, Spec]:
    """Rule of sort: (values, indices)."""
    check_dtype("sort", "any", x)
    dim_index("sort", dim, x.rank)
    return x, Spec(x.shape, int64)


def topk(x: Spec, dim: int, largest: bool, ordered: bool, k: int) -> tuple[Spec, Spec]:
    """Rule of topk: (values, indices)."""
    check_dtype("topk", "numeric", x)
    n = x.shape[dim_index("topk", dim, x.rank)] if x.shape else 1
    if not 0 <= k <= n:
        raise ShapeError("topk", "0 <= k <= extent", got=f"k {k}, {x}, dim {dim}")
    shape = tuple(k if i == dim else e for i, e in enumerate(x.shape))
    return Spec(shape, x.dtype), Spec(shape, int64)


def slice_backward(g: Spec, steps: Shape, starts: Shape, stops: Shape, shape: Shape) -> Spec:
    """Rule of slice_backward: zeros of `shape` with g in the window."""
    window = slice_extents("slice_backward", shape, steps, starts, stops)
    if window != g.shape:
        raise ShapeError("slice_backward", "g has the window's shape", got=f"{g}, {list(window)}")
    return Spec(shape, g.dtype)
