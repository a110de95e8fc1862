"""Losses written in maps, gathers and sums."""

from __future__ import annotations

from typing import Any

from burn_ir.catalog.decompose import Ints, Ops, Tensor, in_f32, placed, to_dtype
from burn_std import DType
from burn_std.dtypes import int64


def _reduced(ops: Ops, loss: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return loss
    total = ops.sum(loss, None, False, loss.dtype)
    if reduction == "sum":
        return total
    count = 1
    for n in loss.shape[:1] if reduction == "batchmean" else loss.shape:
        count *= n
    return ops.div(total, count)


@in_f32()
def mse_loss(ops: Ops, x: Tensor, target: Tensor, reduction: str) -> Tensor:
    """Return (x - target)^2."""
    return _reduced(ops, ops.square(ops.sub(x, target)), reduction)


@in_f32()
def l1_loss(ops: Ops, x: Tensor, target: Tensor, reduction: str) -> Tensor:
    """Return |x - target|."""
    return _reduced(ops, ops.abs(ops.sub(x, target)), reduction)


@in_f32()
def smooth_l1_loss(ops: Ops, x: Tensor, target: Tensor, reduction: str, beta: float) -> Tensor:
    """Return d^2 / (2 beta) where |d| < beta, else |d| - beta / 2."""
    d = ops.abs(ops.sub(x, target))
    if beta:
        near = ops.div(ops.mul(0.5, ops.square(d)), beta)
        d = ops.where(ops.lt(d, beta), near, ops.sub(d, 0.5 * beta))
    return _reduced(ops, d, reduction)


@in_f32()
def huber_loss(ops: Ops, x: Tensor, target: Tensor, reduction: str, delta: float) -> Tensor:
    """Return d^2 / 2 where |d| < delta, else delta (|d| - delta / 2)."""
    d = ops.abs(ops.sub(x, target))
    far = ops.mul(ops.sub(d, 0.5 * delta), delta)
    near = ops.mul(0.5, ops.square(d))
    return _reduced(ops, ops.where(ops.lt(d, delta), near, far), reduction)


def _weighted(ops: Ops, loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    return _reduced(ops, loss if weight is None else ops.mul(loss, weight), reduction)


@in_f32()
def binary_cross_entropy(
    ops: Ops, x: Tensor, target: Tensor, weight: Tensor | None, reduction: str
) -> Tensor:
    """Return -(t log x + (1 - t) log(1 - x)) with logs of at least -100."""
    log_x = ops.maximum(ops.log(x), -100.0)
    log_rest = ops.maximum(ops.log1p(ops.neg(x)), -100.0)
    loss = ops.sub(ops.mul(ops.sub(target, 1), log_rest), ops.mul(target, log_x))
    return _weighted(ops, loss, weight, reduction)


@in_f32()
def binary_cross_entropy_with_logits(
    ops: Ops,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    reduction: str,
) -> Tensor:
    """Return pos_weight t softplus(-x) + (1 - t) softplus(x).

    A target of exactly 0 or 1 drops the other term, so that infinite logits give no NaN.
    """
    own = target if pos_weight is None else ops.mul(target, pos_weight)
    loss = ops.add(
        ops.mul_no_nan(own, ops.neg(ops.logsigmoid(x))),
        ops.mul_no_nan(ops.sub(1, target), ops.neg(ops.logsigmoid(ops.neg(x)))),
    )
    return _weighted(ops, loss, weight, reduction)


@in_f32()
def kl_div(ops: Ops, x: Tensor, target: Tensor, reduction: str, log_target: bool) -> Tensor:
    """Return t (log t - x), 0 where t is 0; with log_target e^t (t - x)."""
    if log_target:
        loss = ops.mul(ops.exp(target), ops.sub(target, x))
    else:
        own = ops.where(ops.eq(target, 0), 0.0, ops.mul(target, ops.log(target)))
        loss = ops.sub(own, ops.mul(target, x))
    return _reduced(ops, loss, reduction)


def _class_dim(x: Tensor) -> int:
    return 1 if len(x.shape) > 1 else 0


def _class_weight(ops: Ops, weight: Tensor, target: Tensor, shape: Ints) -> Tensor:
    """Return the weight of every target's class."""
    count = 1
    for n in shape:
        count *= n
    return ops.reshape(ops.gather(weight, ops.reshape(target, (count,)), 0), shape)


def _targets(
    ops: Ops, x: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the mask of ignored targets, targets with class 0 for those, and their weights."""
    shape = tuple(target.shape)
    target = target if target.dtype is int64 else ops.cast(target, int64)
    ignored = ops.eq(target, ignore_index)
    safe = ops.where(ignored, 0, target)
    if weight is None:
        weights = ops.where(ignored, 0.0, ops.full(x.dtype, shape, 1.0))
    else:
        weights = ops.where(ignored, 0.0, _class_weight(ops, weight, safe, shape))
    return ignored, safe, weights


def _nll(ops: Ops, x: Tensor, ignored: Tensor, safe: Tensor, weights: Tensor) -> Tensor:
    dim, shape = _class_dim(x), tuple(safe.shape)
    at = ops.reshape(safe, (*shape[:dim], 1, *shape[dim:]) if len(x.shape) > 1 else (1,))
    picked = ops.reshape(ops.gather(x, at, dim), shape)
    return ops.where(ignored, 0.0, ops.neg(ops.mul(picked, weights)))


def _weighted_mean(ops: Ops, loss: Tensor, weights: Tensor, reduction: str) -> Tensor:
    """Return a loss reduced, `mean` being over the weights: 0 / 0 when all are ignored."""
    if reduction != "mean":
        return _reduced(ops, loss, reduction)
    total = ops.sum(loss, None, False, loss.dtype)
    return ops.div(total, ops.sum(weights, None, False, weights.dtype))


@in_f32()
def nll_loss(
    ops: Ops, x: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int
) -> Tensor:
    """Return -weight[t] x[t], 0 where ignored; `mean` divides by the sum of the weights."""
    ignored, safe, weights = _targets(ops, x, target, weight, ignore_index)
    return _weighted_mean(ops, _nll(ops, x, ignored, safe, weights), weights, reduction)


def cross_entropy(
    ops: Ops,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    dtype: DType | None,
    ignore_index: int,
    label_smoothing: float,
) -> Tensor:
    """Return nll_loss of log_softmax; smoothing mixes in the mean over all classes."""
    if dtype is not None:
        x = to_dtype(ops, x, dtype)
    return _cross_entropy(ops, x, target, weight, reduction, ignore_index, label_smoothing)


@in_f32()
def _cross_entropy(
    ops: Ops, x: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int,
    label_smoothing: float,
) -> Tensor:  # fmt: skip
    dim = _class_dim(x)
    classes = x.shape[dim]
    log_p = ops.log_softmax(x, dim, None)
    spread: Any = None if weight is None else placed(ops, weight, dim, len(x.shape))
    if target.dtype.is_float:
        if label_smoothing:
            target = ops.add(ops.mul(target, 1 - label_smoothing), label_smoothing / classes)
        loss = ops.mul(log_p, target)
        loss = loss if spread is None else ops.mul(loss, spread)
        return _reduced(ops, ops.neg(ops.sum(loss, (dim,), False, loss.dtype)), reduction)
    ignored, safe, weights = _targets(ops, x, target, weight, ignore_index)
    loss = _nll(ops, log_p, ignored, safe, weights)
    if label_smoothing:
        every = log_p if spread is None else ops.mul(log_p, spread)
        smooth = ops.neg(ops.sum(every, (dim,), False, every.dtype))
        smooth = ops.mul(ops.where(ignored, 0.0, smooth), label_smoothing / classes)
        loss = ops.add(ops.mul(loss, 1 - label_smoothing), smooth)
    return _weighted_mean(ops, loss, weights, reduction)


def cross_entropy_backward(
    ops: Ops,
    g: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    dtype: DType | None,
    ignore_index: int,
    label_smoothing: float,
) -> Tensor:
    """Return p sum(q) - q, times g and the share of the reduction.

    p is softmax(x), q the weighted target of each class: with s the smoothing (1 - s) w[t] at the
    target t, plus s / C w everywhere. An ignored target has no share, whatever the mean is.
    """
    own = x.dtype
    if dtype is not None:
        x = to_dtype(ops, x, dtype)
    made = _slopes(ops, g, x, target, weight, reduction, ignore_index, label_smoothing)
    return to_dtype(ops, made, own)


@in_f32()
def _slopes(
    ops: Ops, g: Tensor, x: Tensor, target: Tensor, weight: Tensor | None, reduction: str,
    ignore_index: int, label_smoothing: float,
) -> Tensor:  # fmt: skip
    dim = _class_dim(x)
    classes = x.shape[dim]
    ignored, safe, weights = _targets(ops, x, target, weight, ignore_index)
    share = g
    if reduction == "mean":
        share = ops.div(g, ops.sum(weights, None, False, weights.dtype))
    hit = ops.where(ignored, 0.0, ops.mul(ops.mul(share, weights), 1.0 - label_smoothing))
    mass, each, row = hit, None, None
    if label_smoothing:
        even = ops.mul(share, label_smoothing / classes)
        each = ops.where(ignored, 0.0, even)
        sum_w: Any = float(classes)
        if weight is not None:
            row = placed(ops, weight, dim, len(x.shape))
            sum_w = ops.sum(weight, None, False, weight.dtype)
        mass = ops.add(hit, ops.mul(each, sum_w))
    shape = tuple(safe.shape)
    column = (*shape[:dim], 1, *shape[dim:]) if len(x.shape) > 1 else (1,)
    grad = ops.mul(ops.softmax(x, dim, None), ops.reshape(mass, column))
    if each is not None:
        each = ops.reshape(each, column)
        grad = ops.sub(grad, each if row is None else ops.mul(each, row))
    part = ops.reshape(ops.neg(hit), column)
    return ops.scatter(grad, ops.reshape(safe, column), part, dim, "add")
