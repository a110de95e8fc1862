"""Rules of products and factorisations; X' is the transpose of a matrix, g the cotangent."""

from __future__ import annotations

from math import prod
from typing import Any

from burn_autodiff.rules.pieces import (
    add_some,
    at,
    fit,
    sum_to,
    transpose,
    zeros,
)  # fmt: skip
from burn_autodiff.rules.table import Call, Grads, Tensor, rule
from burn_std import AutodiffError
from burn_std.dtypes import int64

# Up to this order a determinant's cofactors come from minors: exact where the matrix is singular,
# at every order of differentiation.
_MINORS = 4


@rule("matmul", saves="x:y y:x")
def matmul(c: Call, g: Tensor, x: Tensor, y: Tensor) -> Grads:
    """dx = g y', dy = x' g; a vector is a row on the left, a column on the right."""
    ops = c.ops
    gx: Any = None
    gy: Any = None
    rank_x = len(c.shapes[0])
    rank_y = len(c.shapes[1])
    if rank_x == 1 and rank_y == 1:
        return (
            ops.mul(g, y) if c.need[0] else None,
            ops.mul(g, x) if c.need[1] else None,
        )
    if rank_x == 1:
        row = ops.unsqueeze(g, (len(g.shape) - 1,))
        if c.need[0]:
            gx = ops.squeeze(ops.matmul(row, transpose(c, y)), (len(g.shape) - 1,))
        if c.need[1]:
            gy = ops.mul(ops.unsqueeze(x, (1,)), row)
        return gx, gy
    if rank_y == 1:
        column = ops.unsqueeze(g, (len(g.shape),))
        if c.need[0]:
            gx = ops.mul(column, y)
        if c.need[1]:
            gy = _rows_product(c, column, x)
            gy = ops.reshape(gy, c.shapes[1])
        return gx, gy
    if c.need[0]:
        gx = ops.matmul(g, transpose(c, y))
    if c.need[1]:
        if rank_y == 2 and rank_x > 2:
            gy = _rows_product(c, x, g)
        else:
            gy = ops.matmul(transpose(c, x), g)
    return gx, gy


def _rows_product(c: Call, x: Tensor, y: Tensor) -> Tensor:
    """Return x' y of [..., a] and [..., b] summed over all leading dims, as [a, b]."""
    ops = c.ops
    if len(x.shape) == 2 and len(y.shape) == 2:  # each operation less is time of the host
        return ops.matmul(ops.permute(x, (1, 0)), y)
    rows = prod(x.shape[:-1])
    left = ops.reshape(x, (rows, x.shape[-1]))
    right = ops.reshape(y, (rows, y.shape[-1]))
    return ops.matmul(ops.permute(left, (1, 0)), right)


@rule("linear", saves="x:weight weight:x")
def linear(c: Call, g: Tensor, x: Tensor, weight: Tensor) -> Grads:
    """dx = g W, dW = g' x, dbias = g summed."""
    ops, gx, gw = c.ops, None, None
    vector = len(c.shapes[1]) == 1
    column = ops.unsqueeze(g, (len(g.shape),)) if vector else g
    if c.need[0]:
        gx = ops.mul(column, weight) if vector else ops.matmul(g, weight)
    if c.need[1]:
        gw = _rows_product(c, column, x)
        if vector:
            gw = ops.reshape(gw, c.shapes[1])
    return gx, gw, sum_to(c, g, c.shapes[2]) if c.need[2] else None


@rule("quantized_matmul", saves="x:weight weight:x")
def quantized_matmul(c: Call, g: Tensor, x: Tensor, weight: Tensor) -> Grads:
    """dx = g W' for the floats W, dW = x' g straight through to them, dbias = g summed."""
    gx, gw, transpose = None, None, c.attrs[0]
    if c.need[0]:
        gx = c.ops.quantized_matmul(g, weight, None, not transpose)
    if c.need[1]:
        gw = _rows_product(c, g, x) if transpose else _rows_product(c, x, g)
    return gx, gw, sum_to(c, g, c.shapes[2]) if c.need[2] else None


@rule("cross", saves="x y")
def cross(c: Call, g: Tensor, x: Tensor, y: Tensor) -> Grads:
    """dx = y x g, dy = g x x (x: the cross product)."""
    dim = c.attrs[0]
    return (
        c.ops.cross(y, g, dim) if c.need[0] else None,
        c.ops.cross(g, x, dim) if c.need[1] else None,
    )


# ---- determinant and inverse --------------------------------------------------------------------


@rule("det", saves="x out")
def det(c: Call, g: Tensor, x: Tensor, out: Tensor) -> Grads:
    """dx = g adj(x)', the matrix of cofactors, = g det(x) x^-T where x is regular."""
    ops, n = c.ops, x.shape[-1]
    scale = ops.unsqueeze(g, (len(g.shape), len(g.shape) + 1))
    if n == 0 or 0 in x.shape:
        return zeros(c, x.shape, g)
    if n == 1:
        return ops.reshape(g, x.shape)
    if n <= _MINORS:
        return ops.mul(scale, _cofactors(c, x))
    if c.create_graph:
        value = ops.unsqueeze(out, (len(g.shape), len(g.shape) + 1))
        return ops.mul(ops.mul(scale, value), transpose(c, ops.inverse(x)))
    # cof(U S V) = det(U) det(V) U cof(S) V, and cof(S) needs no division: zeros are exact.
    u, s, v = ops.svd(x, False)
    last = len(s.shape) - 1
    flat = ops.reshape(s, (*s.shape[:-1], 1, n))
    eye = _eye(c, n)
    others = ops.where(eye, ops.scalar(1.0, s.dtype), flat)
    others = ops.prod(others, (last + 1,), False, None)
    sign = ops.mul(ops.det(u), ops.det(v))
    scale = ops.mul(scale, ops.unsqueeze(sign, (len(g.shape), len(g.shape) + 1)))
    return ops.mul(scale, ops.matmul(ops.mul(u, ops.unsqueeze(others, (last,))), v))


def _eye(c: Call, n: int) -> Tensor:
    line = c.ops.arange(int64, n, 0, 1)
    return c.ops.eq(c.ops.unsqueeze(line, (1,)), line)


def _cofactors(c: Call, x: Tensor) -> Tensor:
    """Return (-1)^(i + j) det of x without row i and column j, for every i and j."""
    ops, n, lead = c.ops, x.shape[-1], len(x.shape) - 2
    m = n - 1
    line = ops.arange(int64, n, 0, 1)
    short = ops.reshape(ops.arange(int64, m, 0, 1), (1, m))
    # rest[i] lists the numbers below n without i.
    skip = ops.cast(ops.ge(short, ops.unsqueeze(line, (1,))), int64)
    rest = ops.add(short, skip)
    rows = ops.reshape(rest, (n, 1, m, 1))
    columns = ops.reshape(rest, (1, n, 1, m))
    minors = ops.det(ops.index(x, [rows, columns], (lead, lead + 1)))
    odd = ops.remainder(ops.add(ops.unsqueeze(line, (1,)), line), 2)
    return ops.where(ops.eq(odd, 0), minors, ops.neg(minors))


@rule("inverse", saves="out")
def inverse(c: Call, g: Tensor, out: Tensor) -> Grads:
    """dx = -x^-T g x^-T."""
    back = transpose(c, out)
    return c.ops.neg(c.ops.matmul(c.ops.matmul(back, g), back))


@rule("solve", saves="a out")
def solve(c: Call, g: Tensor, a: Tensor, out: Tensor) -> Grads:
    """db = a^-T g, da = -db x'."""
    gb = c.ops.solve(transpose(c, a), g)
    ga = c.ops.neg(c.ops.matmul(gb, transpose(c, out))) if c.need[0] else None
    return ga, gb if c.need[1] else None


@rule("triangular_solve", saves="a out")
def triangular_solve(c: Call, g: Tensor, a: Tensor, out: Tensor) -> Grads:
    """db = op(a)^-T g; da = -db x' in the triangle, transposed if op is (the unit diagonal 0)."""
    ops = c.ops
    upper, flipped, unit = c.attrs
    gb = ops.triangular_solve(a, g, upper, not flipped, unit)
    ga = None
    if c.need[0]:
        left, right = (out, gb) if flipped else (gb, out)
        ga = ops.neg(ops.matmul(left, transpose(c, right)))
        ga = ops.triu(ga, int(unit)) if upper else ops.tril(ga, -int(unit))
    return ga, gb if c.need[1] else None


# ---- factorisations -----------------------------------------------------------------------------


def _over(c: Call, t: Tensor, triangle: Tensor, upper: bool) -> Tensor:
    """Return t T^-T for a triangular T."""
    solved = c.ops.triangular_solve(triangle, transpose(c, t), upper, False, False)
    return transpose(c, solved)


def _under(c: Call, unit_lower: Tensor, t: Tensor) -> Tensor:
    """Return L^-T t for a lower triangular L of unit diagonal."""
    return c.ops.triangular_solve(unit_lower, t, False, True, True)


@rule("lu", saves="P L U")
def lu(c: Call, g: Any, p: Tensor, l: Tensor, u: Tensor) -> Grads:  # noqa: E741 - its name
    """With tril of diagonal -1 and triu of diagonal 0, k = min(m, n), X1 the leading [k, k]:

    m = n: P L^-T (tril(L' dL) + triu(dU U')) U^-T
    m < n: P L^-T [triu(dU1) + tril(L' dL - dU U') U1^-T, dU2]
    m > n: P [tril(dL1) + L1^-T triu(dU U' - L' dL); dL2] U^-T
    """
    ops = c.ops
    _, gl, gu = g
    rows, k, columns = l.shape[-2], l.shape[-1], u.shape[-1]
    last = len(c.shapes[0]) - 1
    # Only the parts of L and U that vary have a cotangent.
    gl = None if gl is None else ops.tril(gl, -1)
    gu = None if gu is None else ops.triu(gu, 0)
    ll = None if gl is None else ops.matmul(transpose(c, l), gl)
    uu = None if gu is None else ops.matmul(gu, transpose(c, u))
    if rows <= columns:
        u1 = at(c, u, last, 0, k)
        part = add_some(c, ll, None if uu is None else ops.neg(uu))
        out = _over(c, ops.tril(part, -1), u1, True)
        if gu is not None:
            out = ops.add(out, at(c, gu, last, 0, k))
            if columns > k:
                out = ops.cat([out, at(c, gu, last, k, columns)], last)
        out = _under(c, l, fit(c, out, (*out.shape[:-1], columns)))
    else:
        l1 = at(c, l, last - 1, 0, k)
        part = add_some(c, uu, None if ll is None else ops.neg(ll))
        out = _under(c, l1, ops.triu(part, 0))
        if gl is not None:
            out = ops.add(out, at(c, gl, last - 1, 0, k))
            out = ops.cat([out, at(c, gl, last - 1, k, rows)], last - 1)
        out = _over(c, fit(c, out, (*out.shape[:-2], rows, k)), u, True)
    return ops.matmul(p, out) if c.attrs[0] else out


@rule("qr", saves="x Q R")
def qr(c: Call, g: Any, x: Tensor, q: Tensor, r: Tensor) -> Grads:
    """X = Q R square or tall: (dQ + Q sym(triu(dR R' - Q' dQ))) R^-T, sym copying the upper half.

    Wide, x = [X, Y] and R = [U, Q' Y]: the same for X with dQ + Y dV' and dU, and Q dV for Y.
    """
    ops = c.ops
    gq, gr = g
    rows, columns = x.shape[-2:]
    last = len(x.shape) - 1
    if c.attrs[0] == "r" or (c.attrs[0] == "complete" and rows > columns):
        raise AutodiffError(
            "qr", "the gradient needs Q of the reduced form", got=f"mode {c.attrs[0]!r}, {x.shape}",
            remedy="Use mode='reduced'.",
        )  # fmt: skip
    if rows >= columns:
        return _qr_tall(c, gq, gr, q, r)
    gy = None
    if gr is not None:
        gv = at(c, gr, last, rows, columns)
        tail = at(c, x, last, rows, columns)
        gq = add_some(c, gq, ops.matmul(tail, transpose(c, gv)))
        gy = ops.matmul(q, gv)
        gr = at(c, gr, last, 0, rows)
    gx = _qr_tall(c, gq, gr, q, at(c, r, last, 0, rows))
    return fit(c, gx, x.shape) if gy is None else ops.cat([gx, gy], last)


def _qr_tall(c: Call, gq: Tensor, gr: Tensor, q: Tensor, r: Tensor) -> Tensor:
    ops = c.ops
    parts = (
        None if gr is None else ops.matmul(gr, transpose(c, r)),
        None if gq is None else ops.neg(ops.matmul(transpose(c, q), gq)),
    )
    m = add_some(c, *parts)
    mirrored = ops.add(ops.triu(m, 0), transpose(c, ops.triu(m, 1)))
    return _over(c, add_some(c, gq, ops.matmul(q, mirrored)), r, True)


@rule("cholesky", saves="out")
def cholesky(c: Call, g: Tensor, out: Tensor) -> Grads:
    """X = L L': (L^-T (P + P') L^-1) / 2, P = tril(L' dL) with half its diagonal.

    Symmetric, as if every change of x were; a factor U is L'.
    """
    ops, upper = c.ops, c.attrs[0]
    if upper:
        out, g = transpose(c, out), transpose(c, g)
    p = ops.tril(ops.matmul(transpose(c, out), g), 0)
    p = ops.sub(p, ops.mul(ops.mul(p, ops.cast(_eye(c, p.shape[-1]), p.dtype)), 0.5))
    both = ops.mul(ops.add(p, transpose(c, p)), 0.5)
    half = ops.triangular_solve(out, both, False, True, False)
    return transpose(c, ops.triangular_solve(out, transpose(c, half), False, True, False))


@rule("eigh", saves="eigenvalues eigenvectors")
def eigh(c: Call, g: Any, values: Tensor, vectors: Tensor) -> Grads:
    """V ((V' dV) / E + diag(dw)) V', E_ij = w_j - w_i off the diagonal.

    Needs distinct eigenvalues where dV arrives. Symmetric, as if every change of x were.
    """
    ops = c.ops
    n, last = values.shape[-1], len(c.shapes[0]) - 1
    eye = _eye(c, n)
    across, down = ops.unsqueeze(values, (last - 1,)), ops.unsqueeze(values, (last,))
    core = None
    if g[1] is not None:
        # Only the skew part counts: turning vectors and changing their length is no change of x.
        turn = ops.mul(_skew(c, ops.matmul(transpose(c, vectors), g[1])), 0.5)
        gap = ops.where(eye, ops.scalar(1.0, values.dtype), ops.sub(across, down))
        core = ops.div(turn, gap)
    if g[0] is not None:
        straight = ops.mul(ops.cast(eye, values.dtype), ops.unsqueeze(g[0], (last - 1,)))
        core = add_some(c, core, straight)
    return ops.matmul(ops.matmul(vectors, core), transpose(c, vectors))


@rule("svd", saves="U S Vh")
def svd(c: Call, g: Any, u: Tensor, s: Tensor, vh: Tensor) -> Grads:
    """U ((skew(U' dU) / E) S + S (skew(V' dV) / E) + diag(dS)) V', skew(X) = X - X',

    E_ij = s_j^2 - s_i^2 off the diagonal, plus (1 - U U') dU S^-1 V' and U S^-1 dV' (1 - V V').
    Needs distinct singular values where dU or dV arrive, and nonzero ones outside a square.
    """
    ops = c.ops
    rows, columns = c.shapes[0][-2:]
    k, last = s.shape[-1], len(c.shapes[0]) - 1
    # The complement of a full basis is not determined by x, so it has no part in the gradient.
    gu = None if g[0] is None else at(c, g[0], last, 0, k)
    gv = None if g[2] is None else at(c, g[2], last - 1, 0, k)
    u, vh = at(c, u, last, 0, k), at(c, vh, last - 1, 0, k)
    across, down = ops.unsqueeze(s, (last - 1,)), ops.unsqueeze(s, (last,))
    eye = _eye(c, k)
    core = None
    if gu is not None or gv is not None:
        gap = ops.sub(ops.square(across), ops.square(down))
        gap = ops.where(eye, ops.scalar(1.0, s.dtype), gap)
        if gu is not None:
            core = ops.mul(ops.div(_skew(c, ops.matmul(transpose(c, u), gu)), gap), across)
        if gv is not None:
            turn = ops.div(_skew(c, ops.matmul(vh, transpose(c, gv))), gap)
            core = add_some(c, core, ops.mul(down, turn))
    if g[1] is not None:
        core = add_some(c, core, ops.mul(ops.cast(eye, s.dtype), ops.unsqueeze(g[1], (last - 1,))))
    out = ops.matmul(u, core)
    if gu is not None and rows > k:
        out = ops.add(out, ops.div(_outside(c, gu, u), across))
    out = ops.matmul(out, vh)
    if gv is not None and columns > k:
        rest = transpose(c, _outside(c, transpose(c, gv), transpose(c, vh)))
        out = ops.add(out, ops.matmul(u, ops.div(rest, down)))
    return out


def _skew(c: Call, t: Tensor) -> Tensor:
    return c.ops.sub(t, transpose(c, t))


def _outside(c: Call, t: Tensor, basis: Tensor) -> Tensor:
    """Return (1 - B B') t."""
    return c.ops.sub(t, c.ops.matmul(basis, c.ops.matmul(transpose(c, basis), t)))
