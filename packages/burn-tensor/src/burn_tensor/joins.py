"""Functions of several tensors: joins, grids, choices, products over chosen dims."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, prod
from typing import TYPE_CHECKING, Any

from burn_backend import TensorBase
from burn_ir import broadcast_shapes as _joined
from burn_std import ArgumentError, DType, DTypeError, ShapeError, promote_dtypes
from burn_std.dtypes import float64
from burn_tensor.arguments import (
    Number,
    as_int,
    as_ints,
    as_number,
    need_rank,
    need_tensor,
    one_dim,
    stored,
    tensor_list,
)

if TYPE_CHECKING:
    from burn_tensor.tensor import Tensor

# Of rows that are made one by one on the host.
_MOST_CHOICES = 1 << 28


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Return tensors joined along a dim.

    Args:
        tensors: of one rank; extents may differ along the dim only. Empty rank-1 tensors are
            left out, as in PyTorch.
        dim: the dim.

    Raises:
        ShapeError: other extents differ; ArgumentError: there are none.

    Gradient: every part of g to its tensor.

    Example:
        >>> burn.cat([burn.tensor([1]), burn.tensor([2, 3])])
        tensor([1, 2, 3])
    """
    xs = tensor_list("cat", tensors)
    if not xs:
        raise ArgumentError("cat", "needs at least one tensor", got="an empty list")
    ranks = {len(x.shape) for x in xs}
    if len(ranks) > 1 and any(x.shape == (0,) for x in xs):
        # PyTorch lets empty vectors stand beside anything.
        d = one_dim("cat", dim, max(ranks))
        full = next(x.shape for x in xs if x.shape != (0,))
        hole = tuple(0 if i == d else n for i, n in enumerate(full))
        xs = [x.reshape(hole) if x.shape == (0,) else x for x in xs]
    return xs[0].b.cat(xs, one_dim("cat", dim, len(xs[0].shape)))


concat = cat
concatenate = cat


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Return tensors of one shape joined along a new dim.

    Args:
        tensors: of one shape.
        dim: position of the new dim in the result.

    Raises:
        ShapeError: shapes differ; ArgumentError: there are none.

    Gradient: every slice of g to its tensor.

    Example:
        >>> burn.stack([burn.tensor([1, 2]), burn.tensor([3, 4])])
        tensor([[1, 2],
                [3, 4]])
    """
    xs = tensor_list("stack", tensors)
    if not xs:
        raise ArgumentError("stack", "needs at least one tensor", got="an empty list")
    shape = xs[0].shape
    for i, x in enumerate(xs):
        if x.shape != shape:
            raise ShapeError(
                "stack",
                "all tensors need one shape",
                got=f"{list(shape)} at 0, {list(x.shape)} at {i}",
            )
    d = one_dim("stack", dim, len(shape) + 1)
    return xs[0].b.cat([x.b.unsqueeze(x, (d,)) for x in xs], d)


def _at_least(x: Tensor, rank: int) -> Tensor:
    n = len(x.shape)
    if n >= rank:
        return x
    if rank == 3 and n == 2:
        return x.unsqueeze(-1)
    if rank == 3 and n == 1:
        return x.reshape(1, -1, 1) if prod(x.shape) else x.reshape(1, x.shape[0], 1)
    return x.reshape((1,) * (rank - n) + x.shape)


def _each(op: str, rank: int, tensors: tuple[Any, ...]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], TensorBase):
        return _at_least(tensors[0], rank)  # type: ignore[arg-type]
    many = tensors[0] if len(tensors) == 1 else tensors
    return tuple(_at_least(t, rank) for t in tensor_list(op, many))


def atleast_1d(*tensors: Any) -> Any:
    """Return tensors with one dim at least.

    Example:
        >>> burn.atleast_1d(burn.tensor(1)).shape
        (1,)
    """
    return _each("atleast_1d", 1, tensors)


def atleast_2d(*tensors: Any) -> Any:
    """Return tensors with two dims at least; new ones come first.

    Example:
        >>> burn.atleast_2d(burn.tensor([1])).shape
        (1, 1)
    """
    return _each("atleast_2d", 2, tensors)


def atleast_3d(*tensors: Any) -> Any:
    """Return tensors with three dims at least.

    Example:
        >>> burn.atleast_3d(burn.tensor([1])).shape
        (1, 1, 1)
    """
    return _each("atleast_3d", 3, tensors)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Return tensors joined side by side: along dim 1, or dim 0 for vectors.

    Gradient: every part of g to its tensor.

    Example:
        >>> burn.hstack([burn.tensor([1]), burn.tensor([2])])
        tensor([1, 2])
    """
    xs = [_at_least(x, 1) for x in tensor_list("hstack", tensors)]
    return cat(xs, 0 if xs and len(xs[0].shape) == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Return tensors joined as rows: along dim 0, vectors counting as one row each.

    Gradient: every part of g to its tensor.

    Example:
        >>> burn.vstack([burn.tensor([1, 2]), burn.tensor([3, 4])]).shape
        (2, 2)
    """
    return cat([_at_least(x, 2) for x in tensor_list("vstack", tensors)], 0)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Return tensors joined along dim 2.

    Gradient: every part of g to its tensor.

    Example:
        >>> burn.dstack([burn.tensor([1]), burn.tensor([2])]).shape
        (1, 1, 2)
    """
    return cat([_at_least(x, 3) for x in tensor_list("dstack", tensors)], 2)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Return tensors joined as columns.

    Gradient: every part of g to its tensor.

    Example:
        >>> burn.column_stack([burn.tensor([1, 2]), burn.tensor([3, 4])])
        tensor([[1, 3],
                [2, 4]])
    """
    xs = tensor_list("column_stack", tensors)
    return cat([x if len(x.shape) > 1 else x.reshape(x.numel(), 1) for x in xs], 1)


def block_diag(*tensors: Tensor) -> Tensor:
    """Return a matrix with the given ones along its diagonal, zeros elsewhere.

    Gradient: every block of g to its tensor.

    Example:
        >>> burn.block_diag(burn.tensor([[1]]), burn.tensor([[2, 3]]))
        tensor([[1, 0, 0],
                [0, 2, 3]])
    """
    xs = [_at_least(x, 2) for x in tensor_list("block_diag", tensors)]
    width = sum(x.shape[1] for x in xs)
    rows, left = [], 0
    for x in xs:
        fill: Any = False if x.dtype.is_bool else 0
        rows.append(x.b.pad(x, "constant", ((0, 0), (left, width - left - x.shape[1])), fill))
        left += x.shape[1]
    return cat(rows, 0)


# ---- broadcasting and grids --------------------------------------------------------------------


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape to which shapes broadcast.

    Raises:
        ShapeError: they do not.

    Example:
        >>> burn.broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    return _joined("broadcast_shapes", *(as_ints("broadcast_shapes", "shapes", s) for s in shapes))


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Return tensors expanded to one shape.

    Gradient: g summed over the repeated dims.

    Example:
        >>> [x.shape for x in burn.broadcast_tensors(burn.zeros(2, 1), burn.zeros(3))]
        [(2, 3), (2, 3)]
    """
    many = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    xs = tensor_list("broadcast_tensors", many)
    shape = _joined("broadcast_tensors", *(x.shape for x in xs))
    return tuple(x.b.expand(x, shape) for x in xs)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return the coordinates of a grid, one tensor per axis.

    Args:
        tensors: rank-1 (or rank-0) coordinates of each axis.
        indexing: `ij` puts the axes in order; `xy` swaps the first two.

    Raises:
        ArgumentError: another indexing.

    Gradient: g summed over the other axes.

    Example:
        >>> burn.meshgrid(burn.tensor([1, 2]), burn.tensor([3, 4]))[0]
        tensor([[1, 1],
                [2, 2]])
    """
    many = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    xs = tensor_list("meshgrid", many)
    if indexing not in ("ij", "xy"):
        raise ArgumentError("meshgrid", "indexing is 'ij' or 'xy'", got=repr(indexing))
    for x in xs:
        if len(x.shape) > 1:
            raise ShapeError("meshgrid", "every axis has at most one dim", got=list(x.shape))
    swap = indexing == "xy" and len(xs) > 1
    if swap:
        xs[0], xs[1] = xs[1], xs[0]
    shape = tuple(prod(x.shape) for x in xs)
    out = [
        x.b.expand(x.b.reshape(x, tuple(n if i == d else 1 for i, n in enumerate(shape))), shape)
        for d, x in enumerate(xs)
    ]
    if swap:
        out[0], out[1] = out[1], out[0]
    return tuple(out)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return every combination of the elements of rank-1 tensors, one row each.

    Gradient: g summed over the combinations of an element.

    Example:
        >>> burn.cartesian_prod(burn.tensor([1, 2]), burn.tensor([3, 4]))
        tensor([[1, 3],
                [1, 4],
                [2, 3],
                [2, 4]])
    """
    xs = tensor_list("cartesian_prod", tensors)
    if len(xs) == 1:
        return xs[0].clone()
    return stack([t.reshape((t.numel(),)) for t in meshgrid(*xs)], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return every choice of r elements of a vector, in order, one row each.

    Gradient: g summed over the choices of an element.

    Example:
        >>> burn.combinations(burn.tensor([1, 2, 3]))
        tensor([[1, 2],
                [1, 3],
                [2, 3]])
    """
    import itertools

    import numpy as np

    need_tensor("combinations", "input", input)
    need_rank("combinations", input, 1)
    if as_int("combinations", "r", r) < 0:
        raise ArgumentError("combinations", "r is not negative", got=r)
    n = input.shape[0]
    count = comb(n + r - 1 if with_replacement and r else n, r)
    if count * r > _MOST_CHOICES:
        raise ArgumentError(
            "combinations", f"gives {_MOST_CHOICES} elements at most", got=f"{count} rows of {r}"
        )
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(input.shape[0]), r)), np.int64).reshape(count, r)
    return input[rows]


# ---- choices -----------------------------------------------------------------------------------


def where(
    condition: Tensor, input: Tensor | Number | None = None, other: Tensor | Number | None = None
) -> Any:
    """Return `input` where `condition`, else `other`; with a condition alone, where it is true.

    Args:
        condition: bool.
        input: a tensor or a number.
        other: a tensor or a number; all three broadcast.

    Gradient: g where the condition for input, g elsewhere for other.

    Example:
        >>> burn.where(burn.tensor([True, False]), 1, 0)
        tensor([1, 0])
    """
    need_tensor("where", "condition", condition)
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if input is None or other is None:
        raise ArgumentError("where", "takes both values or none", got="one")
    for one, two in ((input, other), (other, input)):
        if isinstance(two, TensorBase):
            stored("where", one, two.dtype)
    return condition.b.where(condition, input, other)


def pow(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """Return input to the power exponent; one of them may be a number.

    Gradient: as `Tensor.pow`.

    Example:
        >>> burn.pow(2, burn.tensor([1, 2, 3]))
        tensor([2, 4, 8])
    """
    for x in (input, exponent):
        if isinstance(x, TensorBase):
            out: Tensor = x.b.pow(input, exponent)
            return out
    raise DTypeError("pow", "one of both must be a tensor", got="numbers only")


def isin(elements: Tensor, test_elements: Tensor) -> Tensor:
    """Return whether each element is among others.

    Example:
        >>> burn.isin(burn.tensor([1, 2, 3]), burn.tensor([3, 1]))
        tensor([ True, False,  True])
    """
    need_tensor("isin", "elements", elements)
    b = elements.b
    line = test_elements.reshape((test_elements.numel(),))
    pairs = b.eq(b.unsqueeze(elements, (len(elements.shape),)), line)
    return b.any(pairs, (len(elements.shape),), False)


def searchsorted(
    sorted_sequence: Tensor, input: Tensor | Number, *, right: bool = False, side: str | None = None
) -> Tensor:
    """Return where values would enter sorted sequences so that they stay sorted.

    Args:
        sorted_sequence: ascending along the last dim, [N] or [..., N].
        input: values, [..., M], or any shape for one sequence.
        right: after equal elements instead of before them.
        side: `left` or `right`, another way to say it.

    Example:
        >>> burn.searchsorted(burn.tensor([1, 3, 5]), burn.tensor([3, 4]))
        tensor([1, 2])
    """
    need_tensor("searchsorted", "sorted_sequence", sorted_sequence)
    b = sorted_sequence.b
    if side not in (None, "left", "right"):
        raise ArgumentError("searchsorted", "side is 'left' or 'right'", got=repr(side))
    after = bool(right) or side == "right"
    if isinstance(input, TensorBase):
        return b.searchsorted(sorted_sequence, input, after)
    number = as_number("searchsorted", "input", input)
    if isinstance(number, float) and not sorted_sequence.dtype.is_float:
        # 2.5 lies between 2 and 3: it is compared as it is, not cut to an integer.
        exact = b.resource.backend.supports_dtype(float64)
        wide = sorted_sequence.to(float64 if exact else b.default_float)
        return b.searchsorted(wide, b.scalar(number, wide.dtype), after)
    value = b.scalar(stored("searchsorted", number, sorted_sequence.dtype), sorted_sequence.dtype)
    return b.searchsorted(sorted_sequence, value, after)


def bucketize(input: Tensor | Number, boundaries: Tensor, *, right: bool = False) -> Tensor:
    """Return the bucket of each value between sorted boundaries.

    Args:
        input: values.
        boundaries: ascending, [N].
        right: a value equal to a boundary goes above it.

    Example:
        >>> burn.bucketize(burn.tensor([0.5, 2.0]), burn.tensor([1.0, 2.0]))
        tensor([0, 1])
    """
    return searchsorted(boundaries, input, right=right)


# ---- products over chosen dims -----------------------------------------------------------------


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Return sums of products over chosen dims.

    Args:
        a: left operand.
        b: right operand.
        dims: how many, the last of a with the first of b; or a pair of lists of dims.

    Raises:
        ShapeError: extents differ.

    Gradient: as `matmul`.

    Example:
        >>> burn.tensordot(burn.ones(2, 3), burn.ones(3, 4), dims=1).shape
        (2, 4)
    """
    need_tensor("tensordot", "a", a)
    need_tensor("tensordot", "b", b)
    ra, rb = len(a.shape), len(b.shape)
    if isinstance(dims, int):
        if not 0 <= dims <= min(ra, rb):
            raise ArgumentError(
                "tensordot",
                "sums over as many dims as both have at most",
                got=f"{dims} of {ra} and {rb}",
            )
        left, right = tuple(range(ra - dims, ra)), tuple(range(dims))
    elif not isinstance(dims, (tuple, list)) or len(dims) != 2:
        raise DTypeError(
            "tensordot", "dims is an integer or a pair of lists of dims", got=type(dims).__name__
        )
    else:
        left = tuple(one_dim("tensordot", d, ra) for d in as_ints("tensordot", "dims", dims[0]))
        right = tuple(one_dim("tensordot", d, rb) for d in as_ints("tensordot", "dims", dims[1]))
    if [a.shape[d] for d in left] != [b.shape[d] for d in right]:
        raise ShapeError(
            "tensordot", "summed extents must match",
            got=f"{[a.shape[d] for d in left]} and {[b.shape[d] for d in right]}",
        )  # fmt: skip
    rows = tuple(d for d in range(ra) if d not in left)
    columns = tuple(d for d in range(rb) if d not in right)
    k = prod(a.shape[d] for d in left)
    m = a.permute(rows + left).reshape((prod(a.shape[d] for d in rows), k))
    n = b.permute(right + columns).reshape((k, prod(b.shape[d] for d in columns)))
    shape = tuple(a.shape[d] for d in rows) + tuple(b.shape[d] for d in columns)
    return (m @ n).reshape(shape)


def kron(input: Tensor, other: Tensor) -> Tensor:
    """Return the Kronecker product: every element of input times all of other.

    Gradient: defined for both.

    Example:
        >>> burn.kron(burn.tensor([1, 10]), burn.tensor([1, 2]))
        tensor([ 1,  2, 10, 20])
    """
    need_tensor("kron", "input", input)
    need_tensor("kron", "other", other)
    rank = max(len(input.shape), len(other.shape))
    left, right = _at_rank(input, rank), _at_rank(other, rank)
    wide = left.reshape(tuple(e for n in left.shape for e in (n, 1)))
    deep = right.reshape(tuple(e for n in right.shape for e in (1, n)))
    shape = tuple(n * m for n, m in zip(left.shape, right.shape, strict=True))
    return (wide * deep).reshape(shape)


def _at_rank(x: Tensor, rank: int) -> Tensor:
    return x.reshape((1,) * (rank - len(x.shape)) + x.shape)


# ---- facts -------------------------------------------------------------------------------------


def is_tensor(obj: Any) -> bool:
    """Return whether an object is a tensor.

    Example:
        >>> burn.is_tensor(burn.zeros(1))
        True
    """
    return isinstance(obj, TensorBase)


def promote_types(type1: DType, type2: DType) -> DType:
    """Return the dtype in which tensors of two dtypes meet.

    Raises:
        DTypeError: there is none.

    Example:
        >>> burn.promote_types(burn.int64, burn.float32)
        burn.float32
    """
    out = promote_dtypes(type1, type2)
    if out is None:
        raise DTypeError(
            "promote_types", "these dtypes have no common one", got=f"{type1} and {type2}"
        )
    return out
