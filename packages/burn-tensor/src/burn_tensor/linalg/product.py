"""Products of vectors and matrices, and their diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from burn_std import ArgumentError, ShapeError
from burn_tensor.arguments import one_dim, some_dims
from burn_tensor.functional.values import meeting
from burn_tensor.linalg.matrix import need_matrices
from burn_tensor.linalg.solve import inv
from burn_tensor.tensor import Tensor

if TYPE_CHECKING:
    from burn_tensor.methods import Operations


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Return the cross product of 3-vectors along dim.

    Args:
        input: vectors.
        other: vectors; the other dims broadcast.
        dim: the dim of extent 3.

    Shapes:
        input, other: [*, 3, *], of one rank
        returns: the broadcast shape

    DTypes: ints and floats; the two promote.

    Raises:
        ShapeError: the extent along dim is not 3, or ranks differ.

    Gradient: defined for both.

    Example:
        >>> x, y = burn.tensor([1, 0, 0]), burn.tensor([0, 1, 0])
        >>> burn.linalg.cross(x, y).tolist()
        [0, 0, 1]
    """
    return input.b.cross(input, other, one_dim("cross", dim, len(input.shape)))


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return the diagonals of matrices as a last dim.

    Args:
        A: matrices.
        offset: 0 the main diagonal, positive above it, negative below.
        dim1: the rows' dim.
        dim2: the columns' dim.

    Shapes:
        A: [*, M, N]
        returns: [*, length]

    DTypes: any.

    Raises:
        ShapeError: fewer than 2 dims, or dim1 = dim2.
        IndexRangeError: a dim is out of range.

    Gradient: g on the diagonal.

    Example:
        >>> burn.linalg.diagonal(burn.tensor([[1, 2], [3, 4]])).tolist()
        [1, 4]
    """
    rank = len(A.shape)
    one, two = one_dim("diagonal", dim1, rank), one_dim("diagonal", dim2, rank)
    return A.b.diagonal(A, one, two, offset)


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Return the matrix product, as `Tensor.matmul`.

    Args:
        input: matrices or a vector.
        other: matrices or a vector.

    Shapes:
        input: [*, M, K] or [K]
        other: [*, K, N] or [K]
        returns: [*, M, N], without M or N for a vector

    DTypes: ints and floats; the two promote.

    Raises:
        ShapeError: inner sizes differ.

    Gradient: defined for both.

    Example:
        >>> burn.linalg.matmul(burn.tensor([1, 2]), burn.tensor([3, 4])).item()
        11
    """
    return input.b.matmul(input, other)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Return the dot products of vectors along dim.

    Args:
        x: vectors.
        y: vectors; the two broadcast.
        dim: the dim of a vector.

    Shapes:
        x, y: [*, N, *]
        returns: [*, *]

    DTypes: ints and floats; the two promote.

    Raises:
        ShapeError: the shapes do not broadcast.

    Gradient: defined for both.

    Example:
        >>> burn.linalg.vecdot(burn.tensor([1.0, 2.0]), burn.tensor([3.0, 4.0])).item()
        11.0
    """
    b = meeting("vecdot", x, y)
    product = b.mul(x, y)
    dims = some_dims("vecdot", dim, len(product.shape))
    return b.sum(product, dims, False, product.dtype)


def matrix_power(A: Tensor, n: int) -> Tensor:
    """Return A multiplied n times, by repeated squaring; inverses for negative n.

    Args:
        A: square matrices.
        n: the power.

    Shapes:
        A: [*, N, N]
        returns: [*, N, N]

    DTypes: floats; ints for n >= 0.

    Raises:
        ShapeError: the matrices are not square.

    Gradient: defined.

    Example:
        >>> burn.linalg.matrix_power(burn.tensor([[2.0]]), 5).tolist()
        [[32.0]]
    """
    need_matrices("matrix_power", A)
    if A.shape[-1] != A.shape[-2]:
        raise ShapeError("matrix_power", "needs square matrices", got=f"{list(A.shape)}")
    b = A.b
    if n < 0:
        A, n = inv(A), -n
    if n == 0:
        side, rank = A.shape[-1], len(A.shape)
        ones = b.full(A.dtype, (side,), 1)
        eye = b.diagonal_backward(ones, 0, 1, (side, side), 0)
        return b.expand(eye, A.shape) if rank > 2 else eye
    out: Tensor | None = None
    while n:
        if n & 1:
            out = A if out is None else b.matmul(out, A)
        n >>= 1
        if n:
            A = b.matmul(A, A)
    assert out is not None  # noqa: S101 - n was positive
    return out


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Return the product of matrices, in the order of products that takes the fewest steps.

    Args:
        tensors: at least two matrices; the first may be a row vector, the last a column vector.

    Shapes:
        tensors: [M, K0], [K0, K1], ..., [Kn, N], the first and last also [K]
        returns: [M, N], without M or N for a vector

    DTypes: ints and floats.

    Raises:
        ArgumentError: fewer than two tensors.
        ShapeError: ranks or inner sizes do not fit.

    Gradient: defined for all.

    Example:
        >>> x = burn.ones(2, 2)
        >>> burn.linalg.multi_dot([x, x, x]).tolist()
        [[4.0, 4.0], [4.0, 4.0]]

    Source: Cormen et al., Introduction to Algorithms, matrix-chain multiplication
    """
    xs = list(tensors)
    if len(xs) < 2:
        raise ArgumentError("multi_dot", "needs at least two tensors", got=len(xs))
    row, column = len(xs[0].shape) == 1, len(xs[-1].shape) == 1
    if row:
        xs[0] = xs[0].b.unsqueeze(xs[0], (0,))
    if column:
        xs[-1] = xs[-1].b.unsqueeze(xs[-1], (1,))
    shapes = [x.shape for x in xs]
    if any(len(s) != 2 for s in shapes) or any(a[1] != c[0] for a, c in pairwise(shapes)):
        raise ShapeError("multi_dot", "needs matrices whose sizes chain", got=shapes)
    b = meeting("multi_dot", *xs)
    sizes = [shapes[0][0], *[s[1] for s in shapes]]
    out = _chain(b, xs, _splits(sizes), 0, len(xs) - 1)
    gone = tuple([d for d, vector in enumerate((row, column)) if vector])
    return b.squeeze(out, gone) if gone else out


def _splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return where every sub-chain is best cut; `sizes` are the extents between matrices."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    cut = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            steps = {
                k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            }
            cut[i, j] = min(steps, key=steps.__getitem__)
            cost[i, j] = steps[cut[i, j]]
    return cut


def _chain(
    b: Operations, xs: list[Tensor], cut: dict[tuple[int, int], int], i: int, j: int
) -> Tensor:
    if i == j:
        return xs[i]
    k = cut[i, j]
    out: Tensor = b.matmul(_chain(b, xs, cut, i, k), _chain(b, xs, cut, k + 1, j))
    return out
