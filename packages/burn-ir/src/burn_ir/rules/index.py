"""Rules of indexing, gathering and scattering, and of operations with data-dependent sizes."""

from __future__ import annotations

from math import prod
from typing import Any

from burn_ir.entry import Spec
from burn_ir.rules.basic import Shape, broadcast_shapes, check_dtype, dim_index
from burn_std import ArgumentError, DTypeError, IndexRangeError, ShapeError
from burn_std.dtypes import int64


def _check_index(op: str, index: Spec) -> None:
    if not index.dtype.is_int:
        raise DTypeError(
            op,
            "the index must be an integer tensor",
            got=index,
            remedy="Convert with .to(burn.int64).",
        )


def gather(x: Spec, index: Spec, dim: int) -> Spec:
    """Rule of gather: index is empty, or has x's rank and, off dim, at most its extents."""
    _check_index("gather", index)
    dim_index("gather", dim, x.rank)
    if 0 in index.shape:
        return Spec(index.shape, x.dtype)
    if max(x.rank, 1) != max(index.rank, 1) or any(
        i > n for d, (n, i) in enumerate(zip(x.shape, index.shape, strict=False)) if d != dim
    ):
        raise ShapeError(
            "gather", "index needs the input's rank and, off dim, no larger extents",
            got=f"input {x}, index {index}, dim {dim}",
        )  # fmt: skip
    return Spec(index.shape, x.dtype)


def scatter(x: Spec, index: Spec, src: Spec, dim: int, mode: str) -> Spec:
    """Rule of scatter: index fits inside src and, off dim, inside x."""
    _check_index("scatter", index)
    dim_index("scatter", dim, x.rank)
    if mode not in ("assign", "add", "multiply", "amin", "amax"):
        raise ArgumentError("scatter", "mode is assign, add, multiply, amin or amax", got=mode)
    ranks = {max(s.rank, 1) for s in (x, index, src)}
    fits: bool = (
        len(ranks) == 1
        and all(i <= s for i, s in zip(index.shape, src.shape, strict=False))
        and all(
            i <= n for d, (n, i) in enumerate(zip(x.shape, index.shape, strict=False)) if d != dim
        )
    )
    if not fits and 0 not in index.shape:
        raise ShapeError(
            "scatter", "index must fit inside src and, off dim, inside the input",
            got=f"input {x}, index {index}, src {src}, dim {dim}",
        )  # fmt: skip
    return x


def _selected(op: str, x: Spec, index: Spec, dim: int) -> Spec:
    _check_index(op, index)
    dim_index(op, dim, x.rank)
    if index.rank > 1:
        raise ShapeError(op, "the index has at most one dim", got=index)
    if not x.shape:
        return x
    n = prod(index.shape)
    if n and not x.shape[dim]:
        # No index is inside: known without reading one, and nothing may run that would tell.
        raise IndexRangeError(op, f"dim {dim} has no element to take", got=f"{n} indices")
    return Spec(tuple(n if i == dim else e for i, e in enumerate(x.shape)), x.dtype)


def index_select(x: Spec, index: Spec, dim: int) -> Spec:
    """Rule of index_select: index is rank 1 (or 0), of one element for an input of rank 0."""
    if not x.shape and prod(index.shape) != 1:
        raise ShapeError("index_select", "an input of rank 0 takes one index", got=index)
    return _selected("index_select", x, index, dim)


def index_add(x: Spec, index: Spec, src: Spec, dim: int) -> Spec:
    """Rule of index_add: src has x's shape with len(index) along dim."""
    want = _selected("index_add", x, index, dim).shape
    if src.shape != want and not (prod(src.shape) == prod(want) == 1):
        raise ShapeError(
            "index_add",
            "src must have the input's shape with len(index) along dim",
            got=f"input {x}, index {index}, src {src}, dim {dim}",
        )
    return x


def index_shape(op: str, x: Spec, indices: tuple[Spec, ...], dims: Shape) -> Shape:
    """Return the shape of x[indices] with indices on `dims`.

    numpy's placement rule: adjacent dims are replaced in place, separated ones move to the front.
    """
    if len(indices) != len(dims) or not dims or list(dims) != sorted(set(dims)):
        raise ArgumentError(
            op, "one index per dim, dims ascending", got=f"{len(indices)} indices, dims {dims}"
        )
    for i, d in zip(indices, dims, strict=True):
        _check_index(op, i)
        if not 0 <= d < x.rank:
            raise IndexRangeError(op, f"dim must be in [0, {x.rank - 1}]", got=f"{x}, dim {d}")
    window = broadcast_shapes(op, *(i.shape for i in indices))
    rest = [n for d, n in enumerate(x.shape) if d not in dims]
    at = dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0
    return (*rest[:at], *window, *rest[at:])


def index(x: Spec, indices: tuple[Spec, ...], dims: Shape) -> Spec:
    """Rule of index (integer-array indexing)."""
    return Spec(index_shape("index", x, indices, dims), x.dtype)


def index_put(
    x: Spec, value: Spec, indices: tuple[Spec, ...], dims: Shape, accumulate: bool
) -> Spec:
    """Rule of index_put: value broadcasts to x[indices]."""
    shape = index_shape("index_put", x, indices, dims)
    if broadcast_shapes("index_put", shape, value.shape) != shape:
        raise ShapeError(
            "index_put",
            "value must broadcast to the indexed window",
            got=f"value {value}, window {list(shape)}",
        )
    return x


def embedding(weight: Spec, index: Spec, padding_idx: int | None) -> Spec:
    """Rule of embedding: rows of weight [V, D] at index [...]."""
    _check_index("embedding", index)
    if weight.rank != 2:
        raise ShapeError("embedding", "weight is [rows, features]", got=weight)
    if padding_idx is not None and not 0 <= padding_idx < weight.shape[0]:
        raise IndexRangeError(
            "embedding", "padding_idx is a row of weight", got=f"{padding_idx}, weight {weight}"
        )
    return Spec((*index.shape, weight.shape[1]), weight.dtype)


def embedding_backward(g: Spec, index: Spec, padding_idx: int | None, rows: int) -> Spec:
    """Rule of embedding_backward: sums of g rows per index, [rows, D]."""
    _check_index("embedding_backward", index)
    if not g.shape or g.shape[:-1] != index.shape or rows < 0:
        raise ShapeError(
            "embedding_backward", "g is the index's shape and features", got=f"{g}, index {index}"
        )
    return Spec((rows, g.shape[-1]), g.dtype)


def unknown(op: str) -> Any:
    """Rule of a dynamic operation: its size depends on data, so a recorder must flush first."""

    def rule(*args: Any) -> Spec:
        raise ArgumentError(
            op,
            "the size of the result depends on data and cannot be recorded",
            remedy="Use the static form, see the docs of the operation.",
        )

    return rule


def one_hot(index: Spec, num_classes: int) -> Spec:
    """Rule of one_hot."""
    _check_index("one_hot", index)
    if num_classes < 1:
        raise ArgumentError("one_hot", "num_classes must be positive", got=num_classes)
    return Spec((*index.shape, num_classes), int64)


def searchsorted(sorted_: Spec, values: Spec, right: bool) -> Spec:
    """Rule of searchsorted: sorted [..., n], values [..., m]."""
    check_dtype("searchsorted", "numeric", sorted_, values)
    batched = sorted_.rank != 1
    if not sorted_.shape or (batched and sorted_.shape[:-1] != values.shape[:-1]):
        raise ShapeError("searchsorted", "leading dims must match", got=f"{sorted_} and {values}")
    return Spec(values.shape, int64)


def bincount(x: Spec, weights: Spec | None, length: int) -> Spec:
    """Rule of bincount with a known number of bins."""
    _check_index("bincount", x)
    from burn_std.dtypes import float64

    if x.rank != 1:
        raise ShapeError("bincount", "needs one dim", got=x)
    if weights is not None and weights.shape != x.shape:
        raise ShapeError("bincount", "one weight per value", got=f"{x} and {weights}")
    if weights is None:
        return Spec((length,), int64)
    return Spec((length,), weights.dtype if weights.dtype.name == "float32" else float64)
