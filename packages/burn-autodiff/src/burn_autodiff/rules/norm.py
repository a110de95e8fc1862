"""Rules of softmax and of normalisations.

The saved statistics are outputs of the same call, so a second order sends cotangents to them; the
rules add what arrives there, which closes them without computing a statistic again.
"""

from __future__ import annotations

from typing import Any

from burn_autodiff.rules.pieces import add_some, kernel_or_parts, sum_to, total, zeros
from burn_autodiff.rules.table import Call, Grads, Tensor, rule
from burn_std.dtypes import float32


@rule("softmax", saves="out", wide=True)
def softmax(c: Call, g: Tensor, out: Tensor) -> Grads:
    """P (g - sum(g p))."""
    ops = c.ops
    dims = (c.attrs[0],) if c.shapes[0] else ()
    inner = total(c, ops.mul(g, out), dims)
    return ops.mul(out, ops.sub(g, inner))


@rule("log_softmax", saves="out", wide=True)
def log_softmax(c: Call, g: Tensor, out: Tensor) -> Grads:
    """G - softmax(x) sum(g)."""
    ops = c.ops
    dims = (c.attrs[0],) if c.shapes[0] else ()
    return ops.sub(g, ops.mul(ops.exp(out), total(c, g, dims)))


def _centred(
    c: Call, gh: Tensor, xhat: Tensor, rstd: Tensor, dims: tuple[int, ...], less_mean: bool
) -> Tensor:
    """Return rstd (gh - mean(gh) - xhat mean(gh xhat)), the gradient through a standardisation."""
    ops = c.ops
    rest = ops.mul(xhat, ops.mean(ops.mul(gh, xhat), dims, True, None))
    inner = ops.sub(gh, ops.mean(gh, dims, True, None)) if less_mean else gh
    return ops.mul(rstd, ops.sub(inner, rest))


def _count(shape: tuple[int, ...], dims: tuple[int, ...]) -> float:
    n = 1
    for d in dims:
        n *= shape[d]
    return float(max(n, 1))


def _of_stats(
    c: Call, gmean: Tensor, grstd: Tensor, xhat: Tensor, rstd: Tensor, n: float
) -> Tensor:
    """Return what arrives through mean and rstd: gmean / n and -grstd rstd^2 xhat / n."""
    ops = c.ops
    through_mean = None if gmean is None else ops.div(gmean, n)
    through_rstd = None
    if grstd is not None:
        slope = ops.div(ops.mul(grstd, ops.square(rstd)), -n)
        through_rstd = ops.mul(slope, xhat)
    return add_some(c, through_mean, through_rstd)


@rule("layer_norm", saves="x weight mean rstd", wide=True)
def layer_norm(c: Call, g: Any, x: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor) -> Grads:
    """With xhat = (x - mean) rstd and h = g weight: dx = rstd (h - mean(h) - xhat mean(h xhat)),

    dweight = sum(g xhat), dbias = sum(g).
    """
    ops = c.ops
    shape = x.shape
    dims = tuple(range(len(shape) - c.attrs[0], len(shape)))
    xhat = ops.mul(ops.sub(x, mean), rstd)
    return _normalised(c, g, xhat, weight, rstd, dims, True)


@rule("rms_norm", saves="x weight rstd", wide=True)
def rms_norm(c: Call, g: Any, x: Tensor, weight: Tensor, rstd: Tensor) -> Grads:
    """With xhat = x rstd and h = g weight: dx = rstd (h - xhat mean(h xhat)),

    dweight = sum(g xhat).
    """
    dims = tuple(range(len(x.shape) - c.attrs[0], len(x.shape)))
    xhat = c.ops.mul(x, rstd)
    gx, gw, _ = _normalised(c, (g[0], None, g[1]), xhat, weight, rstd, dims, False)
    return gx, gw


def _normalised(
    c: Call, g: Any, xhat: Tensor, weight: Tensor, rstd: Tensor, dims: tuple[int, ...],
    less_mean: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    ops, gx, gw, gb = c.ops, None, None, None
    out, gmean, grstd = g
    if c.need[0]:
        if out is not None:
            gh = out if weight is None else ops.mul(out, weight)
            gx = _centred(c, gh, xhat, rstd, dims, less_mean)
        stats = _of_stats(c, gmean, grstd, xhat, rstd, _count(xhat.shape, dims))
        if stats is not None:
            gx = add_some(c, gx, ops.expand(stats, xhat.shape))
    if out is not None and c.need[1]:
        gw = sum_to(c, ops.mul(out, xhat), c.shapes[1])
    if out is not None and len(c.need) > 2 and c.need[2]:
        gb = sum_to(c, out, c.shapes[2])
    return gx, gw, gb


@rule("group_norm", saves="x weight mean rstd", wide=True)
def group_norm(c: Call, g: Any, x: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor) -> Grads:
    """layer_norm over each group of channels, with weight and bias per channel."""
    ops, gx, gw, gb = c.ops, None, None, None
    groups = c.attrs[0]
    shape = x.shape
    if 0 in shape:
        return tuple(zeros(c, s, x) if n else None for s, n in zip(c.shapes, c.need, strict=True))
    size = _count(shape, tuple(range(1, len(shape)))) / groups
    rows, stat = (shape[0], groups, int(size)), (shape[0], groups, 1)
    mean, rstd = ops.reshape(mean, stat), ops.reshape(rstd, stat)
    xhat = ops.mul(ops.sub(ops.reshape(x, rows), mean), rstd)
    per_channel = (shape[1], *(1,) * (len(shape) - 2))
    over = (0, *range(2, len(shape)))
    out = g[0]
    if c.need[0]:
        if out is not None:
            gh = out if weight is None else ops.mul(out, ops.reshape(weight, per_channel))
            gx = _centred(c, ops.reshape(gh, rows), xhat, rstd, (2,), True)
        gmean, grstd = (None if s is None else ops.reshape(s, stat) for s in g[1:])
        stats = _of_stats(c, gmean, grstd, xhat, rstd, size)
        if stats is not None:
            gx = add_some(c, gx, ops.expand(stats, rows))
        gx = ops.reshape(gx, shape)
    if out is not None and c.need[1]:
        gw = ops.sum(ops.mul(out, ops.reshape(xhat, shape)), over, False, None)
    if out is not None and c.need[2]:
        gb = ops.sum(out, over, False, None)
    return gx, gw, gb


@rule("batch_norm", saves="x weight used_mean used_var")
def batch_norm(c: Call, g: Any, x: Tensor, weight: Tensor, mean: Tensor, var: Tensor) -> Grads:
    """With xhat = (x - mean) r, r = 1 / sqrt(var + eps), h = g weight:

    training: dx = r (h - mean(h) - xhat mean(h xhat)); else dx = r h, and for the statistics given
    dmean = -r sum(h), dvar = -r^2 sum(h xhat) / 2. dweight = sum(g xhat), dbias = sum(g).
    """
    ops = c.ops
    training, eps = c.attrs
    if 0 in x.shape:
        return tuple(zeros(c, s, x) if n else None for s, n in zip(c.shapes, c.need, strict=True))
    half = x.dtype.bits == 16
    dtype = x.dtype
    own = () if training else c.need[3:]
    if g[0] is not None and g[1] is None and g[2] is None and not any(own):
        backward = kernel_or_parts(c, "batch_norm_backward")
        gx, gw, gb = backward(g[0], x, weight, mean, var, training, eps)
        kind = dtype if weight is None else weight.dtype
        gw, gb = (t if t.dtype is kind else ops.cast(t, kind) for t in (gw, gb))
        return tuple(
            t if n else None for t, n in zip((gx, gw, gb, None, None), c.need, strict=True)
        )

    def up(t: Tensor) -> Tensor:
        return ops.cast(t, float32) if half and t is not None else t

    def down(t: Tensor, like: Any) -> Tensor:
        return t if t is None or t.dtype is like else ops.cast(t, like)

    kept = dtype if weight is None else weight.dtype
    x, weight, mean, var = up(x), up(weight), up(mean), up(var)
    out, gmean, gvar = (up(t) for t in g)
    channel = (x.shape[1], *(1,) * (len(x.shape) - 2))
    over = (0, *range(2, len(x.shape)))
    rstd = ops.rsqrt(ops.add(ops.reshape(var, channel), eps))
    centred = ops.sub(x, ops.reshape(mean, channel))
    xhat = ops.mul(centred, rstd)
    gx = gw = gb = gm = gv = None
    gh = None
    if out is not None:
        gh = out if weight is None else ops.mul(out, ops.reshape(weight, channel))
        gw = ops.sum(ops.mul(out, xhat), over, False, None) if c.need[1] else None
        gb = ops.sum(out, over, False, None) if c.need[2] else None
    if training:
        if c.need[0]:
            gx = None if gh is None else _centred(c, gh, xhat, rstd, over, True)
            gx = add_some(c, gx, _of_batch(c, gmean, gvar, centred, channel, over))
    else:
        if gh is not None:
            gx = ops.mul(gh, rstd) if c.need[0] else None
            if c.need[3]:
                gm = ops.neg(ops.sum(ops.mul(gh, rstd), over, False, None))
            if c.need[4]:
                turn = ops.mul(ops.mul(gh, xhat), ops.square(rstd))
                gv = ops.mul(ops.sum(turn, over, False, None), -0.5)
        gm, gv = add_some(c, gm, gmean), add_some(c, gv, gvar)
    return down(gx, dtype), down(gw, kept), down(gb, kept), gm, gv


def _of_batch(
    c: Call, gmean: Tensor, gvar: Tensor, centred: Tensor, channel: tuple[int, ...],
    over: tuple[int, ...],
) -> Tensor:  # fmt: skip
    """Return what arrives through the statistics of a batch: gmean / n + 2 gvar (x - mean) / n."""
    ops = c.ops
    n = _count(centred.shape, over)
    part = None
    if gmean is not None:
        part = ops.expand(ops.div(ops.reshape(gmean, channel), n), centred.shape)
    if gvar is not None:
        part = add_some(c, part, ops.mul(ops.mul(ops.reshape(gvar, channel), 2.0 / n), centred))
    return part
