"""Determinants, inverses, systems of equations, and what singular values tell of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from burn_std import ArgumentError, ShapeError
from burn_tensor.functional.values import constant, meeting
from burn_tensor.linalg.factor import svd, svdvals
from burn_tensor.linalg.matrix import need_matrices, transposed
from burn_tensor.linalg.norm import Order, matrix_norm
from burn_tensor.tensor import Tensor


class SlogDet(NamedTuple):
    """What `slogdet` returns: det(A) = sign exp(logabsdet).

    Attributes:
        sign: -1, 0 or 1.
        logabsdet: logarithm of the magnitude.
    """

    sign: Tensor
    logabsdet: Tensor


def cond(A: Tensor, p: Order | None = None) -> Tensor:
    """Return the condition number, the norm of A times the norm of its inverse.

    Args:
        A: matrices; square ones unless p is None, 2 or -2.
        p: the norm, as in `matrix_norm`; None is 2.

    Shapes:
        A: [*, M, N]
        returns: [*]

    DTypes: floats.

    Raises:
        ShapeError: fewer than 2 dims, or not square.

    Gradient: defined.

    Example:
        >>> burn.linalg.cond(burn.tensor([[4.0, 0.0], [0.0, 2.0]]), 1).item()
        2.0
    """
    need_matrices("cond", A)
    if p in (None, 2, -2):
        values = svdvals(A)
        b, last = A.b, (len(values.shape) - 1,)
        high, low = b.amax(values, last, False), b.amin(values, last, False)
        return b.div(low, high) if p == -2 else b.div(high, low)
    assert p is not None  # noqa: S101 - handled above
    return A.b.mul(matrix_norm(A, p), matrix_norm(inv(A), p))


def det(A: Tensor) -> Tensor:
    """Return determinants.

    Args:
        A: square matrices.

    Shapes:
        A: [*, N, N]
        returns: [*]

    DTypes: floats.

    Raises:
        ShapeError: the matrices are not square.

    Gradient: det(A) inv(A)^T; where A is singular, from its cofactors.

    Example:
        >>> burn.linalg.det(burn.tensor([[2.0, 0.0], [0.0, 3.0]])).item()
        6.0
    """
    return A.b.det(A)


def slogdet(A: Tensor) -> SlogDet:
    """Return the sign and the logarithm of the magnitude of determinants, which do not overflow.

    Args:
        A: square matrices.

    Shapes:
        A: [*, N, N]
        returns: a pair of [*]

    DTypes: floats.

    Raises:
        ShapeError: the matrices are not square.

    Gradient: of logabsdet, where A is not singular.

    Example:
        >>> burn.linalg.slogdet(burn.tensor([[-1.0]])).sign.item()
        -1.0
    """
    need_matrices("slogdet", A)
    if A.shape[-1] != A.shape[-2]:
        raise ShapeError("slogdet", "needs square matrices", got=f"{list(A.shape)}")
    b = A.b
    swaps, _, upper = b.lu(A, True)
    rank = len(A.shape)
    pivots = b.diagonal(upper, rank - 2, rank - 1, 0)
    last = (len(pivots.shape) - 1,)
    # The determinant of a permutation is 1 or -1; round away what a float product leaves.
    sign = b.mul(
        b.round(b.det(constant(swaps)), 0), b.prod(b.sign(constant(pivots)), last, False, None)
    )
    return SlogDet(sign, b.sum(b.log(b.abs(pivots)), last, False, None))


def inv(A: Tensor) -> Tensor:
    """Return inverses.

    Args:
        A: square matrices.

    Shapes:
        A: [*, N, N]
        returns: [*, N, N]

    DTypes: floats.

    Raises:
        ShapeError: the matrices are not square.
        ArgumentError: a matrix is singular.

    Gradient: -inv(A)^T g inv(A)^T.

    Example:
        >>> burn.linalg.inv(burn.tensor([[2.0]])).tolist()
        [[0.5]]
    """
    return A.b.inverse(A)


def _is_vector(A: Tensor, B: Tensor) -> bool:
    """Return whether B holds vectors, as PyTorch tells: one dim, or one per matrix of A."""
    return len(B.shape) == 1 or (len(A.shape) - 1 == len(B.shape) and B.shape == A.shape[:-1])


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Return X with A X = B, or X A = B.

    Args:
        A: square matrices.
        B: right sides: matrices, or vectors if it has one dim, or A's dims but the last.
        left: A stands on the left.

    Shapes:
        A: [*, N, N]
        B: [*, N, K], [*, K, N] with left=False, or [*, N]
        returns: B's, broadcast

    DTypes: floats; the two promote.

    Raises:
        ShapeError: shapes do not fit.
        ArgumentError: a matrix is singular.

    Gradient: defined for both.

    Example:
        >>> burn.linalg.solve(burn.tensor([[2.0]]), burn.tensor([4.0])).tolist()
        [2.0]
    """
    need_matrices("solve", A)
    b = meeting("solve", A, B)
    if _is_vector(A, B):
        if not left:
            raise ArgumentError("solve", "vectors go with left=True", got=f"B {list(B.shape)}")
        out = b.solve(A, b.unsqueeze(B, (len(B.shape),)))
        return b.squeeze(out, (len(out.shape) - 1,))
    if left:
        return b.solve(A, B)
    need_matrices("solve", B)
    return transposed(b.solve(transposed(A), transposed(B)))


def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Return X with A X = B, or X A = B, for triangular A; its other half is not read.

    Args:
        A: triangular matrices.
        B: right sides.
        upper: A is upper triangular, else lower.
        left: A stands on the left.
        unitriangular: the diagonal is taken as ones.

    Shapes:
        A: [*, N, N]
        B: [*, N, K], or [*, K, N] with left=False
        returns: B's, broadcast

    DTypes: floats; the two promote.

    Raises:
        ShapeError: shapes do not fit.

    Gradient: defined for both.

    Example:
        >>> A = burn.tensor([[2.0, 9.0], [0.0, 4.0]])
        >>> burn.linalg.solve_triangular(A, burn.tensor([[2.0], [4.0]]), upper=False).tolist()
        [[1.0], [1.0]]
    """
    b = meeting("solve_triangular", A, B)
    if left:
        return b.triangular_solve(A, B, upper, False, unitriangular)
    need_matrices("solve_triangular", B)
    return transposed(b.triangular_solve(A, transposed(B), upper, True, unitriangular))


def _cutoff(A: Tensor, values: Tensor, atol: Any, rtol: Any) -> Tensor:
    """Return the size up to which singular values count as zero, [*, 1]."""
    b = A.b
    if rtol is None:
        eps = {"float64": 2.0**-52, "float32": 2.0**-23}.get(A.dtype.name, 2.0**-10)
        rtol = 0.0 if atol is not None else eps * max(A.shape[-2:])
    top = b.amax(values, (len(values.shape) - 1,), True)
    scaled = b.mul(top, rtol)
    return b.maximum(scaled, 0.0 if atol is None else atol)


def pinv(A: Tensor, *, atol: float | None = None, rtol: float | None = None) -> Tensor:
    """Return the Moore-Penrose inverse.

    Args:
        A: matrices.
        atol: singular values up to it count as zero.
        rtol: or up to this share of the largest; None is max(M, N) eps without atol.

    Shapes:
        A: [*, M, N]
        returns: [*, N, M]

    DTypes: floats.

    Raises:
        ShapeError: fewer than 2 dims.

    Gradient: defined where the singular values differ.

    Example:
        >>> burn.linalg.pinv(burn.tensor([[2.0], [0.0]])).tolist()
        [[0.5, 0.0]]
    """
    need_matrices("pinv", A)
    b = A.b
    if 0 in A.shape[-2:]:
        return b.full(A.dtype, (*A.shape[:-2], A.shape[-1], A.shape[-2]), 0.0)
    U, S, Vh = svd(A, False)
    kept = b.gt(S, _cutoff(A, constant(S), atol, rtol))
    inverse = b.where(kept, b.reciprocal(b.where(kept, S, 1.0)), 0.0)
    rows = b.mul(transposed(Vh), b.unsqueeze(inverse, (len(inverse.shape) - 1,)))
    return b.matmul(rows, transposed(U))


def matrix_rank(A: Tensor, *, atol: float | None = None, rtol: float | None = None) -> Tensor:
    """Return how many singular values do not count as zero.

    Args:
        A: matrices.
        atol: singular values up to it count as zero.
        rtol: or up to this share of the largest; None is max(M, N) eps without atol.

    Shapes:
        A: [*, M, N]
        returns: [*], int64

    DTypes: floats.

    Raises:
        ShapeError: fewer than 2 dims.

    Gradient: none.

    Example:
        >>> burn.linalg.matrix_rank(burn.tensor([[1.0, 1.0], [1.0, 1.0]])).item()
        1
    """
    need_matrices("matrix_rank", A)
    A = constant(A)
    values = svdvals(A)
    last = (len(values.shape) - 1,)
    return A.b.sum(A.b.gt(values, _cutoff(A, values, atol, rtol)), last, False, None)
