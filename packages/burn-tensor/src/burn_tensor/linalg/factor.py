"""Factorisations, as named tuples."""

from __future__ import annotations

from typing import NamedTuple

from burn_std import ArgumentError
from burn_tensor.tensor import Tensor


class LU(NamedTuple):
    """What `lu` returns: A = P L U.

    Attributes:
        P: permutation matrices; empty without pivoting.
        L: lower triangular, ones on the diagonal.
        U: upper triangular.
    """

    P: Tensor
    L: Tensor
    U: Tensor


class QR(NamedTuple):
    """What `qr` returns: A = Q R.

    Attributes:
        Q: orthonormal columns; empty in mode `r`.
        R: upper triangular.
    """

    Q: Tensor
    R: Tensor


class SVD(NamedTuple):
    """What `svd` returns: A = U diag(S) Vh.

    Attributes:
        U: left singular vectors as columns.
        S: singular values, largest first.
        Vh: right singular vectors as rows.
    """

    U: Tensor
    S: Tensor
    Vh: Tensor


def lu(A: Tensor, *, pivot: bool = True) -> LU:
    """Return P, L, U with A = P L U.

    Args:
        A: matrices.
        pivot: exchange rows; without it P is empty and a zero pivot gives inf or NaN.

    Shapes:
        A: [*, M, N], K = min(M, N)
        returns: [*, M, M], [*, M, K], [*, K, N]

    DTypes: floats.

    Raises:
        ShapeError: fewer than 2 dims.

    Gradient: through L and U.

    Example:
        >>> burn.linalg.lu(burn.tensor([[0.0, 2.0], [1.0, 0.0]])).U.tolist()
        [[1.0, 0.0], [0.0, 2.0]]
    """
    return LU(*A.b.lu(A, pivot))


def qr(A: Tensor, mode: str = "reduced") -> QR:
    """Return Q, R with A = Q R.

    Args:
        A: matrices.
        mode: `reduced`, `complete` (Q square), or `r` (Q empty).

    Shapes:
        A: [*, M, N], K = min(M, N), or M in mode complete
        returns: [*, M, K], [*, K, N]

    DTypes: floats.

    Raises:
        ShapeError: fewer than 2 dims.
        ArgumentError: the mode is unknown.

    Gradient: defined for mode reduced, and complete with M <= N.

    Example:
        >>> burn.linalg.qr(burn.tensor([[2.0]])).R.abs().tolist()
        [[2.0]]
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError("qr", "mode is reduced, complete or r", got=repr(mode))
    return QR(*A.b.qr(A, mode))


def svd(A: Tensor, full_matrices: bool = True) -> SVD:
    """Return U, S, Vh with A = U diag(S) Vh.

    Args:
        A: matrices.
        full_matrices: U and Vh are square; else they have K = min(M, N) vectors.

    Shapes:
        A: [*, M, N]
        returns: [*, M, M or K], [*, K], [*, N or K, N]

    DTypes: floats.

    Raises:
        ShapeError: fewer than 2 dims.

    Gradient: where singular values differ; of U and Vh only without full_matrices.

    Example:
        >>> burn.linalg.svd(burn.tensor([[3.0, 0.0], [0.0, 4.0]])).S.tolist()
        [4.0, 3.0]
    """
    return SVD(*A.b.svd(A, full_matrices))


def svdvals(A: Tensor) -> Tensor:
    """Return singular values, largest first.

    Args:
        A: matrices.

    Shapes:
        A: [*, M, N]
        returns: [*, min(M, N)]

    DTypes: floats.

    Raises:
        ShapeError: fewer than 2 dims.

    Gradient: U diag(g) Vh.

    Example:
        >>> burn.linalg.svdvals(burn.tensor([[3.0, 0.0], [0.0, 4.0]])).tolist()
        [4.0, 3.0]
    """
    return A.b.svd(A, False)[1]
