"""Rules of reductions, scans and orderings."""

from __future__ import annotations

from math import inf, prod as product
from typing import Any

from burn_autodiff.rules.pieces import (
    at,
    drop_where,
    keep_where,
    restore,
    size_of,
    spread,
    zeros,
)  # fmt: skip
from burn_autodiff.rules.table import Call, Grads, Tensor, rule


def _typed(c: Call, t: Tensor) -> Tensor:
    """Return a gradient in x's dtype: `dtype=` of a reduction casts inside the operation."""
    return t if t.dtype is c.dtypes[0] else c.ops.cast(t, c.dtypes[0])


@rule("sum")
def sum_(c: Call, g: Tensor) -> Grads:
    """1 for every element."""
    dims, keepdim, _ = c.attrs
    return spread(c, _typed(c, g), dims, keepdim, c.shapes[0])


@rule("mean")
def mean(c: Call, g: Tensor) -> Grads:
    """1 / n for every element."""
    dims, keepdim, _ = c.attrs
    share = c.ops.div(_typed(c, g), float(max(size_of(c.shapes[0], dims), 1)))
    return spread(c, share, dims, keepdim, c.shapes[0])


# ---- products -----------------------------------------------------------------------------------


def _before(c: Call, running: Tensor, dim: int) -> Tensor:
    """Return the products of all earlier elements, from the running products."""
    n = len(running.shape)
    pads = tuple((1, 0) if d == dim else (0, 0) for d in range(n))
    return c.ops.pad(at(c, running, dim, 0, running.shape[dim] - 1), "constant", pads, 1.0)


@rule("prod", saves="x", wide=True)
def prod(c: Call, g: Tensor, x: Tensor) -> Grads:
    """The product of all the others: of those before times of those behind, so zeros are exact."""
    ops, shape = c.ops, c.shapes[0]
    dims, keepdim, _ = c.attrs
    if x.dtype is not g.dtype:
        x = ops.cast(x, g.dtype)
    if not shape:
        return g
    gone = tuple(range(len(shape))) if dims is None else tuple(sorted(dims))
    kept = tuple(d for d in range(len(shape)) if d not in gone)
    if 0 in shape or not gone:
        return spread(c, g, dims, keepdim, shape)
    order = (*kept, *gone)
    rows = (*(shape[d] for d in kept), product(shape[d] for d in gone))
    last = len(kept)
    flat = ops.reshape(ops.permute(x, order), rows)
    left = _before(c, ops.cumprod(flat, last, None), last)
    right = _before(c, ops.cumprod(ops.flip(flat, (last,)), last, None), last)
    others = ops.mul(left, ops.flip(right, (last,)))
    others = ops.reshape(others, tuple(shape[d] for d in order))
    others = ops.permute(others, tuple(sorted(range(len(order)), key=order.__getitem__)))
    return ops.mul(restore(c, g, dims, keepdim, shape), others)


@rule("cumprod", saves="x out", wide=True)
def cumprod(c: Call, g: Tensor, x: Tensor, out: Tensor) -> Grads:
    """dx_j = (x_0 ... x_{j-1}) r_j with r_j = g_j + x_{j+1} r_{j+1}.

    The recurrence is solved by doubling, log2(n) times; no step divides, so zeros are exact.
    """
    ops, dim = c.ops, c.attrs[0]
    if not c.shapes[0] or 0 in c.shapes[0]:
        return g
    if x.dtype is not out.dtype:
        x = ops.cast(x, out.dtype)
    n, rank = x.shape[dim], len(x.shape)

    def ahead(t: Tensor, step: int) -> Tensor:
        pads = tuple((0, step) if d == dim else (0, 0) for d in range(rank))
        return ops.pad(at(c, t, dim, step, n), "constant", pads, 0.0)

    factor, acc, step = ahead(x, 1), g, 1
    while step < n:
        acc = ops.add(acc, ops.mul(factor, ahead(acc, step)))
        step *= 2
        if step < n:
            factor = ops.mul(factor, ahead(factor, step // 2))
    return ops.mul(acc, _before(c, out, dim))


@rule("cumsum")
def cumsum(c: Call, g: Tensor) -> Grads:
    """dx_j = sum of g_k for k >= j."""
    dim = (c.attrs[0],) if c.shapes[0] else ()
    behind = c.ops.flip(c.ops.cumsum(c.ops.flip(g, dim), c.attrs[0], None), dim)
    return _typed(c, behind)


# ---- extremes -----------------------------------------------------------------------------------


def extreme(c: Call, g: Tensor, x: Tensor, out: Tensor) -> Grads:
    """1 / (number of extremes) for each of them; NaN are the extremes of what has one."""
    ops = c.ops
    dims, keepdim = c.attrs
    top = restore(c, out, dims, keepdim, c.shapes[0])
    hit = ops.logical_or(ops.eq(x, top), ops.isnan(x))
    count = ops.cast(ops.sum(hit, dims, True, None), g.dtype)
    share = ops.div(restore(c, g, dims, keepdim, c.shapes[0]), count)
    return keep_where(c, hit, share)


for _name in ("amax", "amin"):
    rule(_name, saves="x out")(extreme)


def to_index(c: Call, g: Any, indices: Tensor) -> Grads:
    """1 for the element that was chosen: g scattered to the indices."""
    return _scatter(c, g[0], indices, c.attrs[0])


def to_index_of_dim(c: Call, g: Any, indices: Tensor) -> Grads:
    """1 for the element that was chosen, along the reduced dim."""
    dim, keepdim = c.attrs
    dims = (dim,)
    back = restore(c, g[0], dims, keepdim, c.shapes[0])
    return _scatter(c, back, restore(c, indices, dims, keepdim, c.shapes[0]), dim)


def _scatter(c: Call, g: Tensor, indices: Tensor, dim: int) -> Tensor:
    if not c.shapes[0]:
        return c.ops.reshape(g, ())
    return c.ops.scatter(zeros(c, c.shapes[0], g), indices, g, dim, "add")


for _name in ("max_dim", "min_dim", "median_dim"):
    rule(_name, saves="indices")(to_index_of_dim)
for _name in ("cummax", "cummin", "sort", "topk"):
    rule(_name, saves="indices")(to_index)


# ---- statistics ---------------------------------------------------------------------------------


@rule("var", saves="x", wide=True)
def var(c: Call, g: Tensor, x: Tensor) -> Grads:
    """2 (x - mean) / (n - correction)."""
    ops = c.ops
    dims, keepdim, correction = c.attrs
    rest = max(size_of(c.shapes[0], dims) - correction, 0)
    centred = ops.sub(x, ops.mean(x, dims, True, None))
    back = restore(c, g, dims, keepdim, c.shapes[0])
    return ops.mul(ops.mul(back, 2.0 / rest if rest else inf), centred)


@rule("logsumexp", saves="x out", wide=True)
def logsumexp(c: Call, g: Tensor, x: Tensor, out: Tensor) -> Grads:
    """exp(x - logsumexp(x)), 0 where every x is -inf."""
    ops = c.ops
    dims, keepdim = c.attrs
    total = restore(c, out, dims, keepdim, c.shapes[0])
    share = ops.exp(ops.sub(x, drop_where(c, ops.eq(total, -inf), total)))
    return ops.mul(restore(c, g, dims, keepdim, c.shapes[0]), share)


@rule("vector_norm", saves="x out", wide=True)
def vector_norm(c: Call, g: Tensor, x: Tensor, out: Tensor) -> Grads:
    """sign(x) |x|^(p - 1) / norm^(p - 1), 0 for a vector of zeros.

    p = 0 counts and has no gradient. p = 1: sign(x). p = 2: x / norm. p = +-inf: sign(x),
    shared by equal extremes.
    """
    ops = c.ops
    dims, keepdim, p = c.attrs
    if p == 0:
        return None
    g = restore(c, g, dims, keepdim, c.shapes[0])
    if p == 1:
        return ops.mul(g, ops.sign(x))
    norm = restore(c, out, dims, keepdim, c.shapes[0])
    if p in (inf, -inf):
        size = ops.abs(x)
        hit = ops.logical_or(ops.eq(size, norm), ops.isnan(size))
        share = ops.div(g, ops.cast(ops.sum(hit, dims, True, None), g.dtype))
        return keep_where(c, hit, ops.mul(share, ops.sign(x)))
    dead = ops.eq(norm, 0.0)
    # A norm of 1 where it is 0 keeps the derivative of what is masked finite.
    safe = ops.where(dead, ops.scalar(1.0, norm.dtype), norm)
    if p == 2:
        return ops.mul_no_nan(g, drop_where(c, dead, ops.div(x, safe)))
    if p < 2:
        lone = ops.eq(x, 0.0) if p < 1 else dead
        power = ops.pow(ops.where(ops.eq(x, 0.0), ops.scalar(1.0, x.dtype), ops.abs(x)), p - 1.0)
        power = ops.mul(ops.sign(x), power)
        factor = drop_where(c, lone, ops.div(power, ops.pow(safe, p - 1.0)))
    else:
        power = ops.mul(x, ops.pow(ops.abs(x), p - 2.0))
        factor = drop_where(c, dead, ops.div(power, ops.pow(safe, p - 1.0)))
    return ops.mul_no_nan(g, factor)
