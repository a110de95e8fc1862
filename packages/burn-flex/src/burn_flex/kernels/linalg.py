"""Products and factorisations; LAPACK through numpy, no scipy."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from burn_flex.kernels.halves import HALVES, Array, wide
from burn_flex.table import maker
from burn_std import ExecutionError

# numpy has no BLAS for integers; below this many multiplications its plain loop is as fast.
_SMALL_PRODUCT = 1 << 15


@maker("matmul", checked=True)
def matmul(dtype: np.dtype[Any]) -> Callable[[Array, Array], Array]:
    """x [..., M, K] @ y [..., K, N]; numpy itself for f32 and f64, f32 inside for halves."""
    if dtype in HALVES:
        return lambda x, y: np.matmul(x.astype(np.float32), y.astype(np.float32)).astype(dtype)
    if dtype.kind in "iu" and dtype.itemsize <= 2:
        return _small_int_matmul
    return np.matmul


def _small_int_matmul(x: Array, y: Array) -> Array:
    """Exact through f64 GEMM: sums of 8 and 16 bit products stay below 2^53, then wrap."""
    k = x.shape[-1] if x.ndim else 0
    if x.size * (y.shape[-1] if y.ndim > 1 else 1) < _SMALL_PRODUCT or k >= 1 << 20:
        plain: Array = np.matmul(x, y)
        return plain
    out: Array = np.matmul(x.astype(np.float64), y.astype(np.float64))
    return out.astype(np.int64).astype(x.dtype)


@wide("linear", checked=True)
def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """x [..., in] @ weight [out, in]^T + bias; one GEMM whatever the rank of x."""
    if weight.ndim > 2:
        raise ValueError("weight has more than two dims")  # the rule of the entry then says so
    if x.ndim > 2 and weight.ndim == 2 and x.size:
        flat = np.matmul(x.reshape(-1, x.shape[-1]), weight.T)
        out: Array = flat.reshape(*x.shape[:-1], weight.shape[0])
    else:
        out = np.matmul(x, weight.T)
    if bias is not None:
        out += bias
    return out


@wide("cross")
def cross(x: Array, y: Array, dim: int) -> Array:
    """Cross product of 3-vectors along dim; other dims broadcast."""
    x, y = np.moveaxis(x, dim, 0), np.moveaxis(y, dim, 0)
    parts = [x[(i + 1) % 3] * y[(i + 2) % 3] - x[(i + 2) % 3] * y[(i + 1) % 3] for i in range(3)]
    return np.stack(parts, axis=dim)


def _singular(op: str) -> ExecutionError:
    return ExecutionError(
        op, "the matrix must be invertible", got="a singular matrix in the batch",
        remedy="Check linalg.det, or add a small multiple of the identity.",
    )  # fmt: skip


@wide("det")
def det(x: Array) -> Array:
    """Determinants of [..., n, n]."""
    return np.linalg.det(x)  # type: ignore[no-any-return]


@wide("inverse")
def inverse(x: Array) -> Array:
    """Inverses of [..., n, n]."""
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        raise _singular("inverse") from None


@wide("solve")
def solve(a: Array, b: Array) -> Array:
    """x with a x = b; a [..., n, n], b [..., n, k]."""
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        raise _singular("solve") from None


@wide("triangular_solve")
def triangular_solve(a: Array, b: Array, upper: bool, transpose: bool, unit: bool) -> Array:
    """Substitution row by row over the whole batch; reads only the named triangle of a.

    A zero on the diagonal gives inf or NaN, as in LAPACK's trtrs without its check.
    """
    if transpose:
        a, upper = np.swapaxes(a, -1, -2), not upper
    n = a.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.array(np.broadcast_to(b, (*batch, *b.shape[-2:])))
    for row in range(n - 1, -1, -1) if upper else range(n):
        known = slice(row + 1, n) if upper else slice(0, row)
        here = out[..., row : row + 1, :]
        here -= np.matmul(a[..., row : row + 1, known], out[..., known, :])
        if not unit:
            here /= a[..., row : row + 1, row : row + 1]
    return out


@wide("lu")
def lu(x: Array, pivot: bool) -> tuple[Array, Array, Array]:
    """x [..., m, n] = P L U by rank-1 updates over the whole batch, partial pivoting."""
    *batch, m, n = x.shape
    k = min(m, n)
    work = np.array(x).reshape(prod(batch), m, n)
    rows = np.tile(np.arange(m), (len(work), 1))
    each = np.arange(len(work))
    for j in range(k if work.size else 0):
        if pivot:
            best = j + np.argmax(np.abs(work[:, j:, j]), axis=1)
            work[each, best], work[:, j] = work[:, j].copy(), work[each, best]
            rows[each, best], rows[:, j] = rows[:, j].copy(), rows[each, best]
        head = work[:, j : j + 1, j]
        if pivot:
            # A pivot of 0 heads a column of zeros: LAPACK leaves them, 0 / 0 would be NaN.
            head = np.where(head == 0, 1, head)
        below = work[:, j + 1 :, j]
        below /= head
        work[:, j + 1 :, j + 1 :] -= below[:, :, None] * work[:, j : j + 1, j + 1 :]
    lower = np.tril(work[:, :, :k], -1)
    diagonal = np.arange(k)
    lower[:, diagonal, diagonal] = 1
    upper = np.triu(work[:, :k])
    if pivot:
        permutation = np.zeros((len(work), m, m), x.dtype)
        permutation[each[:, None], rows, np.arange(m)] = 1
        permutation = permutation.reshape(*batch, m, m)
    else:
        permutation = np.zeros(0, x.dtype)
    return permutation, lower.reshape(*batch, m, k), upper.reshape(*batch, k, n)


@wide("cholesky")
def cholesky(x: Array, upper: bool) -> Array:
    """The factor of [..., n, n] from its triangle; LAPACK reads the lower one."""
    try:
        lower = np.linalg.cholesky(np.swapaxes(x, -1, -2) if upper else x)
    except np.linalg.LinAlgError:
        raise ExecutionError(
            "cholesky", "the matrix must be positive definite",
            got="a matrix in the batch that is not",
            remedy="Add a small multiple of the identity, or factorise with linalg.eigh.",
        ) from None  # fmt: skip
    return np.swapaxes(lower, -1, -2) if upper else lower


@wide("eigh")
def eigh(x: Array, upper: bool) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors as columns of symmetric [..., n, n]."""
    try:
        found: Any = np.linalg.eigh(x, "U" if upper else "L")
    except np.linalg.LinAlgError:
        raise ExecutionError(
            "eigh", "the algorithm must converge", got="a matrix with NaN or inf"
        ) from None
    return found.eigenvalues, found.eigenvectors


@wide("qr")
def qr(x: Array, mode: str) -> tuple[Array, Array]:
    """x = Q R with LAPACK's signs; mode r leaves Q empty."""
    if mode == "r":
        only: Any = np.linalg.qr(x, mode="r")
        return np.zeros(0, x.dtype), only
    parts: Any = np.linalg.qr(x, "complete" if mode == "complete" else "reduced")
    return parts.Q, parts.R


@wide("svd")
def svd(x: Array, full: bool) -> tuple[Array, Array, Array]:
    """x = U diag(S) Vh, singular values descending."""
    try:
        u, s, vh = np.linalg.svd(x, full_matrices=full)
    except np.linalg.LinAlgError:
        raise ExecutionError(
            "svd", "the algorithm must converge", got="a matrix with NaN or inf"
        ) from None
    return u, s, vh
