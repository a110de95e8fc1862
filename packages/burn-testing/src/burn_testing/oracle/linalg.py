"""References of products, factorisations and transforms."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from burn_testing.oracle.table import Array, oracle


@oracle("matmul")
def matmul(x: Array, y: Array) -> Array:
    """Multiply and sum, spelt out; integers wrap."""
    a = x if x.ndim > 1 else x[None]
    b = y if y.ndim > 1 else y[:, None]
    with np.errstate(all="ignore"):
        out: Array = (a[..., :, :, None] * b[..., None, :, :]).sum(-2, dtype=a.dtype)
    if x.ndim == 1:
        out = out[..., 0, :]
    return out[..., 0] if y.ndim == 1 else out


@oracle("det")
def det(x: Array) -> Array:
    """Cofactors along the first row."""
    n = x.shape[-1]
    if n == 0:
        return np.ones(x.shape[:-2])
    if n == 1:
        return x[..., 0, 0]
    out: Array = np.zeros(x.shape[:-2])
    for j in range(n):
        minor = np.delete(x[..., 1:, :], j, -1)
        out = out + (-1) ** j * x[..., 0, j] * det(minor)
    return out


@oracle("inverse")
def inverse(x: Array) -> Array:
    """Through LAPACK in float64."""
    return np.linalg.inv(x)


@oracle("solve")
def solve(a: Array, b: Array) -> Array:
    """The inverse times b: the samples are well conditioned."""
    return np.linalg.inv(a) @ b


@oracle("triangular_solve")
def triangular_solve(a: Array, b: Array, upper: bool, transpose: bool, unit: bool) -> Array:
    """The other triangle is not read."""
    t = np.triu(a) if upper else np.tril(a)
    if unit:
        t = t - t * np.eye(t.shape[-1]) + np.eye(t.shape[-1])
    return np.linalg.inv(np.swapaxes(t, -1, -2) if transpose else t) @ b


@oracle("cholesky")
def cholesky(x: Array, upper: bool) -> Array:
    """Column by column; the other triangle is not read."""
    a = np.swapaxes(x, -1, -2) if upper else x
    out = np.zeros(a.shape)
    for j in range(a.shape[-1]):
        row = out[..., j, :j]
        out[..., j, j] = np.sqrt(a[..., j, j] - (row * row).sum(-1))
        for i in range(j + 1, a.shape[-1]):
            rest = a[..., i, j] - (out[..., i, :j] * row).sum(-1)
            out[..., i, j] = rest / out[..., j, j]
    return np.swapaxes(out, -1, -2) if upper else out


@oracle("eigh")
def eigh(x: Array, upper: bool) -> list[Array | None]:
    """Eigenvalues only: vectors have no unique sign."""
    half = np.triu(x) if upper else np.tril(x)
    whole = half + np.swapaxes(half, -1, -2) - half * np.eye(x.shape[-1])
    return [np.sort(np.linalg.eigvals(whole).real, -1), None]


@oracle("lu")
def lu(x: Array, pivot: bool) -> list[Array]:
    """Elimination with the largest pivot of each column."""
    *batch, m, n = x.shape
    k = min(m, n)
    out = [np.zeros((*batch, m, m)), np.zeros((*batch, m, k)), np.zeros((*batch, k, n))]
    for at in np.ndindex(*batch):
        u, lower, order = x[at].copy(), np.eye(m, k), list(range(m))
        for c in range(k):
            best = c + int(np.abs(u[c:, c]).argmax())
            u[[c, best]] = u[[best, c]]
            lower[[c, best], :c] = lower[[best, c], :c]
            order[c], order[best] = order[best], order[c]
            for r in range(c + 1, m):
                lower[r, c] = u[r, c] / u[c, c]
                u[r] -= lower[r, c] * u[c]
        out[0][at][order, range(m)] = 1
        out[1][at] = lower
        out[2][at] = np.triu(u[:k])
    return out


@oracle("qr")
def qr(x: Array, mode: str) -> list[Array | None]:
    """LAPACK's signs, which PyTorch has as well."""
    factor: Any = np.linalg.qr
    return [None, factor(x, "r")] if mode == "r" else list(factor(x, mode))


@oracle("svd")
def svd(x: Array, full: bool) -> list[Array | None]:
    """Singular values only: vectors have no unique sign."""
    return [None, np.linalg.svd(x, compute_uv=False), None]


def _factor(norm: str, n: int, forward: bool) -> float:
    if norm == "ortho":
        return 1 / sqrt(n)
    return 1 / n if (norm == "forward") == forward else 1.0


def _resized(x: Array, n: int) -> Array:
    out = np.zeros((*x.shape[:-1], n), x.dtype)
    k = min(n, x.shape[-1])
    out[..., :k] = x[..., :k]
    return out


@oracle("rfft")
def rfft(x: Array, dim: int, norm: str, n: int) -> list[Array]:
    """The sum of the definition."""
    x = _resized(np.moveaxis(x, dim, -1), n)
    waves = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n // 2 + 1)) / n)
    out = np.moveaxis(x @ waves, -1, dim) * _factor(norm, n, True)
    return [out.real, out.imag]


@oracle("irfft")
def irfft(real: Array, imag: Array | None, dim: int, norm: str, n: int) -> Array:
    """The spectrum completed by symmetry, then the sum of the definition."""
    spectrum: Any = real + 1j * (0 if imag is None else imag)
    half = _resized(np.moveaxis(spectrum, dim, -1), n // 2 + 1)
    half[..., 0] = half[..., 0].real
    if n % 2 == 0:
        half[..., -1] = half[..., -1].real
    tail = half[..., 1 : (n + 1) // 2][..., ::-1].conj()
    whole = np.concatenate([half, tail], -1)
    waves = np.exp(2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    return np.asarray(np.moveaxis((whole @ waves).real, -1, dim) * _factor(norm, n, False))
