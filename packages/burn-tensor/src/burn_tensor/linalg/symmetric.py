"""Factorisations of symmetric matrices and what follows from them."""

from __future__ import annotations

from typing import Literal, NamedTuple

from burn_std import ArgumentError, ShapeError
from burn_tensor.functional.values import meeting
from burn_tensor.linalg.matrix import need_matrices
from burn_tensor.tensor import Tensor


class Eigh(NamedTuple):
    """What `eigh` returns: A = V diag(w) V^T.

    Attributes:
        eigenvalues: w, ascending.
        eigenvectors: V, orthonormal columns.
    """

    eigenvalues: Tensor
    eigenvectors: Tensor


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """Return L with A = L L^T, lower triangular of positive diagonal.

    Args:
        A: symmetric positive definite matrices; one triangle alone is read.
        upper: read the upper triangle, and return U with A = U^T U.

    Shapes:
        A: [*, N, N]
        returns: [*, N, N]

    DTypes: floats.

    Raises:
        ShapeError: the matrices are not square.
        ExecutionError: one is not positive definite.

    Gradient: symmetric, as if every change of A were.

    Example:
        >>> burn.linalg.cholesky(burn.tensor([[4.0, 2.0], [2.0, 2.0]])).tolist()
        [[2.0, 0.0], [1.0, 1.0]]

    Source: Murray 2016, Differentiation of the Cholesky decomposition
    """
    return A.b.cholesky(A, bool(upper))


def eigh(A: Tensor, UPLO: Literal["L", "U"] = "L") -> Eigh:
    """Return the eigenvalues, ascending, and eigenvectors of symmetric matrices.

    Args:
        A: symmetric matrices; one triangle alone is read.
        UPLO: which triangle.

    Shapes:
        A: [*, N, N]
        returns: [*, N] and [*, N, N]

    DTypes: floats.

    Raises:
        ShapeError: the matrices are not square.
        ArgumentError: UPLO is neither L nor U.

    Gradient: symmetric, as if every change of A were; that of eigenvectors needs distinct
        eigenvalues, and a loss that their signs do not change.

    Example:
        >>> burn.linalg.eigh(burn.tensor([[3.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
        [1.0, 3.0]
    """
    return Eigh(*A.b.eigh(A, _upper("eigh", UPLO)))


def _upper(op: str, side: object) -> bool:
    if not isinstance(side, str) or side not in ("L", "U"):
        raise ArgumentError(op, "UPLO is 'L' or 'U'", got=repr(side))
    return side == "U"


def eigvalsh(A: Tensor, UPLO: Literal["L", "U"] = "L") -> Tensor:
    """Return the eigenvalues, ascending, of symmetric matrices.

    Args:
        A: symmetric matrices; one triangle alone is read.
        UPLO: which triangle.

    Shapes:
        A: [*, N, N]
        returns: [*, N]

    DTypes: floats.

    Raises:
        ShapeError: the matrices are not square.
        ArgumentError: UPLO is neither L nor U.

    Gradient: V diag(g) V^T.

    Example:
        >>> burn.linalg.eigvalsh(burn.tensor([[3.0, 0.0], [0.0, 1.0]])).tolist()
        [1.0, 3.0]
    """
    return A.b.eigh(A, _upper("eigvalsh", UPLO))[0]


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """Return X with A X = B, from the Cholesky factor of A.

    Args:
        B: right sides.
        L: the factor, as `cholesky` returns it.
        upper: it is the upper one.

    Shapes:
        B: [*, N, K]
        L: [*, N, N]
        returns: [*, N, K]

    DTypes: floats; the two promote.

    Raises:
        ShapeError: shapes do not fit.

    Gradient: defined for both.

    Example:
        >>> L = burn.linalg.cholesky(burn.tensor([[4.0]]))
        >>> burn.linalg.cholesky_solve(burn.tensor([[2.0]]), L).tolist()
        [[0.5]]
    """
    b = meeting("cholesky_solve", B, L)
    need_matrices("cholesky_solve", B)
    upper = bool(upper)
    half = b.triangular_solve(L, B, upper, upper, False)
    return b.triangular_solve(L, half, upper, not upper, False)


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """Return the inverse of A, from its Cholesky factor.

    Args:
        L: the factor, as `cholesky` returns it.
        upper: it is the upper one.

    Shapes:
        L: [*, N, N]
        returns: [*, N, N]

    DTypes: floats.

    Raises:
        ShapeError: the matrices are not square.

    Gradient: defined.

    Example:
        >>> burn.linalg.cholesky_inverse(burn.tensor([[2.0]])).tolist()
        [[0.25]]
    """
    need_matrices("cholesky_inverse", L)
    if L.shape[-1] != L.shape[-2]:
        raise ShapeError("cholesky_inverse", "needs square matrices", got=f"{list(L.shape)}")
    return cholesky_solve(identity(L), L, upper)


def identity(A: Tensor) -> Tensor:
    """Return the identity matrix of A's order, dtype and device."""
    b, n = A.b, A.shape[-1]
    return b.diagonal_backward(b.full(A.dtype, (n,), 1), 0, 1, (n, n), 0)
