"""Norms of vectors and matrices."""

from __future__ import annotations

from collections.abc import Sequence

from burn_std import ArgumentError, DType, DTypeError
from burn_tensor.arguments import some_dims
from burn_tensor.functional.values import in_dtype
from burn_tensor.linalg.factor import svdvals
from burn_tensor.linalg.matrix import need_matrices
from burn_tensor.tensor import Tensor

Dims = int | Sequence[int]
Order = int | float | str


def vector_norm(
    x: Tensor,
    ord: int | float = 2,
    dim: Dims | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Return (sum |x|^ord)^(1 / ord); the largest for inf, the least for -inf, the count for 0.

    Args:
        x: any tensor.
        ord: order of the norm.
        dim: the dims of one vector; None is all of them.
        keepdim: keep those dims with extent 1.
        dtype: float that x is cast to first.

    Shapes:
        x: [*]
        returns: x's without dim

    DTypes: floats. 16-bit floats compute in float32.

    Raises:
        DTypeError: ints and bools.
        IndexRangeError: dim is out of range.

    Gradient: PyTorch's subgradient, 0 at 0.

    Example:
        >>> burn.linalg.vector_norm(burn.tensor([3.0, 4.0])).item()
        5.0
    """
    if dtype is not None:
        x = in_dtype(x, dtype)
    if not isinstance(ord, (int, float)):
        raise DTypeError("vector_norm", "ord is a number", got=repr(ord))
    return x.b.vector_norm(x, some_dims("vector_norm", dim, len(x.shape)), keepdim, ord)


def matrix_norm(
    A: Tensor,
    ord: Order = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Return a norm of matrices.

    `fro` sqrt(sum x^2), `nuc` the sum of singular values, 2 and -2 the largest and least of them,
    1 and -1 the largest and least sum of a column's magnitudes, inf and -inf of a row's.

    Args:
        A: matrices.
        ord: which norm.
        dim: the rows' and the columns' dim.
        keepdim: keep the two dims with extent 1.
        dtype: float that A is cast to first.

    Shapes:
        A: [*, M, N]
        returns: [*]

    DTypes: floats.

    Raises:
        ArgumentError: the norm is unknown, or dim are not two.
        ShapeError: fewer than 2 dims.

    Gradient: defined; for 2, -2 and nuc where singular values differ.

    Example:
        >>> burn.linalg.matrix_norm(burn.tensor([[3.0, 0.0], [0.0, 4.0]]), 1).item()
        4.0
    """
    op = "matrix_norm"
    need_matrices(op, A)
    if dtype is not None:
        A = in_dtype(A, dtype)
    dims = some_dims(op, tuple(dim), len(A.shape))
    if dims is None or len(dims) != 2:
        raise ArgumentError(op, "dim are two dims", got=f"dim {tuple(dim)}")
    b = A.b
    if ord == "fro":
        return b.vector_norm(A, dims, keepdim, 2)
    if ord in ("nuc", 2, -2):
        rank = len(A.shape)
        order = (*[d for d in range(rank) if d not in dims], *dims)
        values = svdvals(b.permute(A, order))
        last = (len(values.shape) - 1,)
        if ord == "nuc":
            out = b.sum(values, last, False, None)
        else:
            out = b.amax(values, last, False) if ord == 2 else b.amin(values, last, False)
        return b.unsqueeze(out, tuple(sorted(dims))) if keepdim else out
    if ord not in (1, -1, float("inf"), float("-inf")):
        raise ArgumentError(op, "ord is fro, nuc, 1, -1, 2, -2, inf or -inf", got=repr(ord))
    summed, kept = dims if ord in (1, -1) else dims[::-1]
    sums = b.sum(b.abs(A), (summed,), True, None)
    out = b.amax(sums, (kept,), True) if ord > 0 else b.amin(sums, (kept,), True)
    return out if keepdim else b.squeeze(out, tuple(sorted(dims)))


def norm(
    A: Tensor,
    ord: Order | None = None,
    dim: Dims | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Return `vector_norm` or `matrix_norm`, as the arguments say.

    With one dim, or neither ord nor dim, or no ord, a vector norm (2 by default); with two dims,
    or an ord and a matrix, a matrix norm.

    Args:
        A: vectors or matrices.
        ord: order of the norm.
        dim: one dim for vectors, two for matrices.
        keepdim: keep those dims with extent 1.
        dtype: float that A is cast to first.

    Shapes:
        A: [*]
        returns: A's without dim

    DTypes: floats.

    Raises:
        ArgumentError: ord is given without dim and A has neither 1 nor 2 dims.

    Gradient: defined.

    Example:
        >>> burn.linalg.norm(burn.tensor([[3.0, 4.0]])).item()
        5.0
    """
    if dim is None and ord is not None:
        if len(A.shape) not in (1, 2):
            raise ArgumentError(
                "norm", "ord without dim needs a vector or a matrix", got=f"{list(A.shape)}"
            )
        if len(A.shape) == 2:
            return matrix_norm(A, ord, keepdim=keepdim, dtype=dtype)
    pair = None if dim is None or isinstance(dim, int) or len(dim) != 2 else dim
    if isinstance(ord, str) or (ord is not None and pair is not None):
        return matrix_norm(A, ord, (-2, -1) if pair is None else pair, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
