"""Rules of products, factorisations and transforms."""

from __future__ import annotations

from typing import Any

from burn_ir.entry import Spec
from burn_ir.rules.basic import broadcast_shapes, check_dtype, dim_index
from burn_std import ArgumentError, ShapeError


def square_matrix(op: str, out: str) -> Any:
    """Rule of det (batch), inverse and cholesky (same) of square matrices."""

    def rule(x: Spec, *flags: bool) -> Spec:
        check_dtype(op, "float", x)
        if x.rank < 2 or x.shape[-1] != x.shape[-2]:
            raise ShapeError(op, "needs square matrices", got=x)
        return Spec(x.shape[:-2] if out == "batch" else x.shape, x.dtype)

    return rule


def eigh(x: Spec, upper: bool) -> tuple[Spec, Spec]:
    """Rule of eigh: x [..., n, n] to values [..., n] and vectors [..., n, n]."""
    check_dtype("eigh", "float", x)
    if x.rank < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError("eigh", "needs square matrices", got=x)
    return Spec(x.shape[:-1], x.dtype), x


def solve(a: Spec, b: Spec, *flags: bool) -> Spec:
    """Rule of solve and triangular_solve: a [..., n, n], b [..., n, k]."""
    op = "triangular_solve" if flags else "solve"
    check_dtype(op, "float", a, b)
    if a.rank < 2 or b.rank < 2 or a.shape[-1] != a.shape[-2] or a.shape[-1] != b.shape[-2]:
        raise ShapeError(op, "a [..., n, n] and b [..., n, k]", got=f"{a} and {b}")
    return Spec((*broadcast_shapes(op, a.shape[:-2], b.shape[:-2]), *b.shape[-2:]), a.dtype)


def lu(x: Spec, pivot: bool) -> tuple[Spec, Spec, Spec]:
    """Rule of lu: x [..., m, n] to P [..., m, m], L [..., m, k], U [..., k, n]."""
    check_dtype("lu", "float", x)
    if x.rank < 2:
        raise ShapeError("lu", "needs matrices", got=x)
    *batch, m, n = x.shape
    k = min(m, n)
    p = (*batch, m, m) if pivot else (0,)
    return Spec(p, x.dtype), Spec((*batch, m, k), x.dtype), Spec((*batch, k, n), x.dtype)


def qr(x: Spec, mode: str) -> tuple[Spec, Spec]:
    """Rule of qr: mode is reduced, complete or r."""
    check_dtype("qr", "float", x)
    if x.rank < 2:
        raise ShapeError("qr", "needs matrices", got=x)
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError("qr", "mode is reduced, complete or r", got=repr(mode))
    *batch, m, n = x.shape
    k = m if mode == "complete" else min(m, n)
    q = (0,) if mode == "r" else (*batch, m, k)
    return Spec(q, x.dtype), Spec((*batch, k, n), x.dtype)


def svd(x: Spec, full: bool) -> tuple[Spec, Spec, Spec]:
    """Rule of svd: (U, S, Vh)."""
    check_dtype("svd", "float", x)
    if x.rank < 2:
        raise ShapeError("svd", "needs matrices", got=x)
    *batch, m, n = x.shape
    k = min(m, n)
    return (
        Spec((*batch, m, m if full else k), x.dtype),
        Spec((*batch, k), x.dtype),
        Spec((*batch, n if full else k, n), x.dtype),
    )


def cross(x: Spec, y: Spec, dim: int) -> Spec:
    """Rule of cross: both have 3 elements along dim, other dims broadcast."""
    shape = broadcast_shapes("cross", x.shape, y.shape)
    dim_index("cross", dim, len(shape))
    if not shape or x.rank != y.rank or x.shape[dim] != 3 or y.shape[dim] != 3:
        raise ShapeError(
            "cross", "both operands need 3 elements along dim", got=f"{x} and {y}, dim {dim}"
        )
    return Spec(shape, x.dtype)


def _transformed(op: str, x: Spec, dim: int, norm: str) -> None:
    if not x.shape:
        raise ShapeError(op, "needs at least one dim", got=x)
    dim_index(op, dim, x.rank)
    if norm not in ("backward", "ortho", "forward"):
        raise ArgumentError(op, "norm is backward, ortho or forward", got=repr(norm))


def rfft(x: Spec, dim: int, norm: str, n: int) -> tuple[Spec, Spec]:
    """Rule of rfft over n samples along dim: (real, imag) with n // 2 + 1 bins."""
    check_dtype("rfft", "float", x)
    _transformed("rfft", x, dim, norm)
    if n < 1:
        raise ShapeError("rfft", "n is at least 1", got=f"{x}, n {n}")
    s = Spec(tuple(n // 2 + 1 if i == dim else e for i, e in enumerate(x.shape)), x.dtype)
    return s, s


def irfft(real: Spec, imag: Spec | None, dim: int, norm: str, n: int) -> Spec:
    """Rule of irfft: n samples along dim."""
    check_dtype("irfft", "float", real, imag)
    _transformed("irfft", real, dim, norm)
    if imag is not None and imag.shape != real.shape:
        raise ShapeError("irfft", "real and imag have one shape", got=f"{real} and {imag}")
    if n < 1:
        raise ShapeError("irfft", "n is at least 1", got=f"{real}, n {n}")
    return Spec(tuple(n if i == dim else e for i, e in enumerate(real.shape)), real.dtype)


def irfft_backward(g: Spec, dim: int, norm: str, bins: int) -> tuple[Spec, Spec]:
    """Rule of irfft_backward: (real, imag) with `bins` along dim."""
    _transformed("irfft_backward", g, dim, norm)
    s = Spec(tuple(bins if i == dim else e for i, e in enumerate(g.shape)), g.dtype)
    return s, s
