"""Rules of losses: the derivative of one element's loss, times g and the share of its reduction."""

from __future__ import annotations

from math import prod

from burn_autodiff.rules.pieces import (
    drop_where,
    keep_where,
    kernel_or_parts,
    one_minus,
    refuse,
    zeros,
)  # fmt: skip
from burn_autodiff.rules.table import Call, Grads, Tensor, rule, widened


def _share(c: Call, g: Tensor, shape: tuple[int, ...], reduction: str) -> Tensor:
    """Return what reaches each element's loss: g, g / count for mean, g / batch for batchmean."""
    if reduction == "mean":
        return c.ops.div(g, float(prod(shape))) if prod(shape) else g
    if reduction == "batchmean":
        return c.ops.div(g, float(max(shape[0], 1))) if shape else g
    return g


def _broadcast(*shapes: tuple[int, ...] | None) -> tuple[int, ...]:
    there = [s for s in shapes if s is not None]
    rank = max(map(len, there))
    full = [(1,) * (rank - len(s)) + s for s in there]
    return tuple(next((n for n in column if n != 1), 1) for column in zip(*full, strict=True))


# ---- regression ---------------------------------------------------------------------------------


def _of_difference(c: Call, g: Tensor, slope: Tensor) -> Grads:
    """Return the gradients of a loss of d = x - target, whose derivative is `slope`."""
    part = c.ops.mul(_share(c, g, slope.shape, c.attrs[0]), slope)
    return part if c.need[0] else None, c.ops.neg(part) if c.need[1] else None


@rule("mse_loss", saves="x target", wide=True)
def mse_loss(c: Call, g: Tensor, x: Tensor, target: Tensor) -> Grads:
    """(d^2)' = 2 d, d = x - target."""
    return _of_difference(c, g, c.ops.mul(c.ops.sub(x, target), 2.0))


@rule("l1_loss", saves="x target")
def l1_loss(c: Call, g: Tensor, x: Tensor, target: Tensor) -> Grads:
    """|d|' = sign(d)."""
    return _of_difference(c, g, c.ops.sign(c.ops.sub(x, target)))


@rule("smooth_l1_loss", saves="x target", wide=True)
def smooth_l1_loss(c: Call, g: Tensor, x: Tensor, target: Tensor) -> Grads:
    """d / beta, clamped to -1..1."""
    d, beta = c.ops.sub(x, target), c.attrs[1]
    slope = c.ops.clamp(c.ops.div(d, beta), -1.0, 1.0) if beta else c.ops.sign(d)
    return _of_difference(c, g, slope)


@rule("huber_loss", saves="x target", wide=True)
def huber_loss(c: Call, g: Tensor, x: Tensor, target: Tensor) -> Grads:
    """d, clamped to -delta..delta."""
    delta = c.attrs[1]
    return _of_difference(c, g, c.ops.clamp(c.ops.sub(x, target), -delta, delta))


@rule("kl_div", saves="x target", wide=True)
def kl_div(c: Call, g: Tensor, x: Tensor, target: Tensor) -> Grads:
    """(t (log t - x))' = -t dx + (log t + 1 - x) dt, and -x dt at t = 0; of log targets

    (e^t (t - x))' = -e^t dx + e^t (t - x + 1) dt.
    """
    ops, gx, gt = c.ops, None, None
    reduction, log_target = c.attrs
    part = _share(c, g, _broadcast(*c.shapes), reduction)
    mass = ops.exp(target) if log_target else target
    if c.need[0]:
        gx = ops.neg(ops.mul(part, mass))
    if c.need[1] and log_target:
        gt = ops.mul(part, ops.mul(mass, ops.add(ops.sub(target, x), 1.0)))
    elif c.need[1]:
        nothing = ops.eq(target, 0.0)
        safe = ops.where(nothing, ops.scalar(1.0, target.dtype), target)
        slope = drop_where(c, nothing, ops.add(ops.log(safe), 1.0))
        gt = ops.mul(part, ops.sub(slope, x))
    return gx, gt


# ---- binary cross-entropy -----------------------------------------------------------------------


@rule("binary_cross_entropy", saves="x target weight", wide=True)
def binary_cross_entropy(c: Call, g: Tensor, x: Tensor, target: Tensor, weight: Tensor) -> Grads:
    """dx = w (x - t) / (x (1 - x)), dt = w (log(1 - x) - log x), logs capped at -100,

    dw = the loss without weight. The denominator is at least 1e-12.
    """
    ops, gx, gt, gw = c.ops, None, None, None
    part = _share(c, g, _broadcast(*c.shapes), c.attrs[0])
    if len(c.need) > 2 and c.need[2]:
        gw = ops.mul(part, ops.binary_cross_entropy(x, target, None, "none"))
    if weight is not None:
        part = ops.mul(part, weight)
    rest = one_minus(c, x)
    if c.need[0]:
        spread = ops.clamp(ops.mul(x, rest), 1e-12, None)
        gx = ops.mul(part, ops.div(ops.sub(x, target), spread))
    if c.need[1]:
        logs = [ops.clamp(ops.log(t), -100.0, None) for t in (rest, x)]
        gt = ops.mul(part, ops.sub(*logs))
    return gx, gt, gw


@rule("binary_cross_entropy_with_logits", saves="x target weight pos_weight", wide=True)
def binary_cross_entropy_with_logits(
    c: Call, g: Tensor, x: Tensor, target: Tensor, weight: Tensor, pos_weight: Tensor
) -> Grads:
    """With s = sigmoid(x), p the weight of positives: dx = w ((p t + 1 - t) s - p t),

    dt = w (log(1 - s) - p log s), dw = the loss without weight, dp = -w t log s.
    """
    ops, gx, gt, gw, gp = c.ops, None, None, None, None
    part = _share(c, g, _broadcast(*c.shapes), c.attrs[0])
    if c.need[2]:
        plain = ops.binary_cross_entropy_with_logits(x, target, None, pos_weight, "none")
        gw = ops.mul(part, plain)
    if weight is not None:
        part = ops.mul(part, weight)
    if c.need[0]:
        s = ops.sigmoid(x)
        if pos_weight is None:
            slope = ops.sub(s, target)
        else:
            positive = ops.mul(target, pos_weight)
            slope = ops.sub(ops.mul(ops.add(positive, one_minus(c, target)), s), positive)
        gx = ops.mul(part, slope)
    if c.need[1]:
        if pos_weight is None:
            gt = ops.neg(ops.mul(part, x))
        else:
            yes, no = ops.logsigmoid(x), ops.logsigmoid(ops.neg(x))
            gt = ops.mul(part, ops.sub(no, ops.mul(yes, pos_weight)))
    if c.need[3]:
        gp = ops.neg(ops.mul(part, ops.mul(target, ops.logsigmoid(x))))
    return gx, gt, gw, gp


# ---- classification -----------------------------------------------------------------------------


def _hard(
    c: Call, g: Tensor, target: Tensor, weight: Tensor, reduction: str, ignore: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return which targets count, targets with the others at 0, g's share of each, its weight.

    A mean over no target at all is NaN as a value; its share is masked, so its gradient is 0.
    """
    ops = c.ops
    valid = ops.ne(target, ignore)
    index = ops.where(valid, target, ops.scalar(0, target.dtype))
    w = ops.cast(valid, g.dtype)
    if weight is not None:
        picked = ops.index_select(weight, ops.reshape(index, (prod(index.shape),)), 0)
        w = ops.mul(ops.reshape(picked, index.shape), w)
    if reduction == "mean":
        g = ops.div(g, ops.sum(w, None, False, None))
    return valid, index, g, w


@rule("nll_loss", saves="x target weight", wide=True)
def nll_loss(c: Call, g: Tensor, x: Tensor, target: Tensor, weight: Tensor) -> Grads:
    """dx[n, t_n] = -w[t_n], over the sum of the weights for mean; 0 where the target is ignored."""
    refuse(c, "nll_loss", 2, "weight")
    reduction, ignore = c.attrs
    valid, index, share, w = _hard(c, g, target, weight, reduction, ignore)
    part = keep_where(c, valid, c.ops.neg(c.ops.mul(share, w)))
    return _at_classes(c, zeros(c, x.shape, g), index, part), None, None


def _at_classes(c: Call, base: Tensor, index: Tensor, part: Tensor) -> Tensor:
    """Return base [N, C, ...] (or [C]) with part [N, ...] added at the target classes."""
    dim = min(1, len(base.shape) - 1)
    lifted = c.ops.unsqueeze(index, (dim,)), c.ops.unsqueeze(part, (dim,))
    return c.ops.scatter(base, *lifted, dim, "add")


@rule("cross_entropy", saves="x target weight")
def cross_entropy(c: Call, g: Tensor, x: Tensor, target: Tensor, weight: Tensor) -> Grads:
    """-sum(q log p)' = p sum(q) - q, for p = softmax(x) and q the weighted target of each class.

    With s the smoothing: q = (1 - s) w[t] at the target t, plus s / C w everywhere; for targets t
    given as probabilities q = w ((1 - s) t + s / C), and dt = -(1 - s) w log p.
    """
    refuse(c, "cross_entropy", 2, "weight")
    if not target.dtype.is_float:
        # It takes halves as they lie, computes in float32 and rounds once.
        gx = kernel_or_parts(c, "cross_entropy_backward")(g, x, target, weight, *c.attrs)
        return gx, None, None
    return _of_probabilities(c, g, x, target, weight)


def _soft_rule(c: Call, g: Tensor, x: Tensor, target: Tensor, weight: Tensor) -> Grads:
    ops, own, dtype = c.ops, x.dtype, c.attrs[1]
    if dtype is not None and x.dtype is not dtype:
        x = ops.cast(x, dtype)
    dim = min(1, len(x.shape) - 1)
    per_class = (x.shape[dim], *(1,) * (len(x.shape) - 1 - dim))
    row = None if weight is None else ops.reshape(weight, per_class)
    gx, gt, none = _soft(c, g, x, target, row, ops.softmax(x, dim, None), dim)
    return gx if gx is None or gx.dtype is own else ops.cast(gx, own), gt, none


_of_probabilities = widened("cross_entropy", _soft_rule, ("x", "target", "weight"))


def _soft(c: Call, g: Tensor, x: Tensor, target: Tensor, row: Tensor, p: Tensor, dim: int) -> Grads:
    ops, gx, gt = c.ops, None, None
    reduction, _, _, smoothing = c.attrs
    classes = x.shape[dim]
    if reduction == "mean":
        g = ops.div(g, float(max(prod(x.shape) // max(classes, 1), 1)))
    share = ops.unsqueeze(g, (dim,)) if reduction == "none" else g
    if c.need[0]:
        q = target
        if smoothing:
            q = ops.add(ops.mul(target, 1.0 - smoothing), smoothing / classes)
        if row is not None:
            q = ops.mul(q, row)
        slope = ops.sub(ops.mul(p, ops.sum(q, (dim,), True, None)), q)
        gx = ops.mul(slope, share)
    if c.need[1]:
        logs = ops.mul(ops.log_softmax(x, dim, None), smoothing - 1.0)
        gt = ops.mul(logs if row is None else ops.mul(logs, row), share)
    return gx, gt, None
