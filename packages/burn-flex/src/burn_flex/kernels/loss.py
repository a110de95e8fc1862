"""Losses with PyTorch's formulas; halves compute in float32 and round once.

An `x` and its target broadcast; a reduction is none, mean, sum, or (kl_div) batchmean.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from burn_flex.kernels.halves import Array, up, wide
from burn_flex.kernels.norm import shifted
from burn_flex.table import kernel, native
from burn_std import DType, IndexRangeError


def _reduced(loss: Array, reduction: str, batch: int = 0) -> Array:
    if reduction == "none":
        return loss
    if reduction == "mean":
        return _ratio(loss.sum(), loss.size)
    total: Array = loss.sum()
    return _ratio(total, batch) if reduction == "batchmean" else total


def _ratio(total: Any, count: Any) -> Array:
    """total / count in total's dtype; 0 / 0 is NaN: the mean of nothing."""
    mean: Array = np.divide(total, np.asarray(count, total.dtype))
    return mean


@wide("mse_loss")
def mse_loss(x: Array, target: Array, reduction: str) -> Array:
    """(x - target)^2."""
    return _reduced(np.square(np.subtract(x, target)), reduction)


@wide("l1_loss")
def l1_loss(x: Array, target: Array, reduction: str) -> Array:
    """|x - target|."""
    return _reduced(np.abs(np.subtract(x, target)), reduction)


@wide("smooth_l1_loss")
def smooth_l1_loss(x: Array, target: Array, reduction: str, beta: float) -> Array:
    """d^2 / (2 beta) for |d| < beta, else |d| - beta / 2; beta 0 is l1_loss."""
    d = np.abs(np.subtract(x, target))
    if beta == 0:
        return _reduced(d, reduction)
    return _reduced(np.where(d < beta, 0.5 * np.square(d) / beta, d - 0.5 * beta), reduction)


@wide("huber_loss")
def huber_loss(x: Array, target: Array, reduction: str, delta: float) -> Array:
    """d^2 / 2 for |d| <= delta, else delta (|d| - delta / 2)."""
    d = np.abs(np.subtract(x, target))
    return _reduced(np.where(d <= delta, 0.5 * np.square(d), delta * (d - 0.5 * delta)), reduction)


@wide("binary_cross_entropy")
def binary_cross_entropy(x: Array, target: Array, weight: Array | None, reduction: str) -> Array:
    """-(t log x + (1 - t) log(1 - x)); logs stop at -100, so that 0 * log 0 is 0."""
    inside = np.maximum(np.log1p(-x), -100)
    loss = (target - 1) * inside - target * np.maximum(np.log(x), -100)
    return _reduced(loss if weight is None else loss * weight, reduction)


@wide("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    x: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: str
) -> Array:
    """t p softplus(-x) + (1 - t) softplus(x): both terms stay finite for finite logits.

    Infinite logits are right too: a term whose factor is 0 is 0, not 0 * inf.
    """
    tail = np.log1p(np.exp(-np.abs(x)))
    positive = target if pos_weight is None else target * pos_weight
    loss = _times(positive, np.maximum(-x, 0) + tail) + _times(1 - target, np.maximum(x, 0) + tail)
    return _reduced(loss if weight is None else loss * weight, reduction)


def _times(factor: Array, value: Array) -> Array:
    """factor * value with 0 * inf = 0."""
    return np.where((factor == 0) & np.isposinf(value), 0, factor * value)


@wide("kl_div")
def kl_div(x: Array, target: Array, reduction: str, log_target: bool) -> Array:
    """target (log target - x) with 0 log 0 = 0, or exp(target) (target - x)."""
    if log_target:
        loss = np.exp(target) * (target - x)
    else:
        known = target * np.log(np.where(target == 0, 1, target))
        loss = known - target * x
    return _reduced(loss, reduction, x.shape[0] if x.ndim else 1)


# ---- classes -----------------------------------------------------------------------------------


def _classes(x: Array) -> Array:
    """Return x [N, C, *] or [C] as [rows, C], in the order of the flattened targets."""
    if x.ndim <= 2:
        return x.reshape(prod(x.shape[:-1]), x.shape[-1])
    last = np.moveaxis(x, 1, -1)
    return last.reshape(prod(last.shape[:-1]), x.shape[1])


def _known(op: str, target: Array, ignore_index: int, classes: int) -> tuple[Array, Array]:
    """Return flat targets with ignored ones as 0, and the mask of the others."""
    flat = target.reshape(-1)
    kept = flat != ignore_index
    safe = np.where(kept, flat, 0).astype(np.intp)
    if safe.size and kept.any() and not (safe.min() >= 0 and safe.max() < classes):
        bad = safe[(safe < 0) | (safe >= classes)][0]
        raise IndexRangeError(op, f"targets must be in [0, {classes})", got=f"target {bad}")
    return safe, kept


def _finish(loss: Array, weights: Array, shape: tuple[int, ...], reduction: str) -> Array:
    """Reduce per-sample losses; the mean divides by the sum of their weights."""
    if reduction == "none":
        return loss.reshape(shape)
    total: Array = loss.sum()
    return _ratio(total, weights.sum()) if reduction == "mean" else total


@wide("nll_loss")
def nll_loss(
    x: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int
) -> Array:
    """-weight[t] x[t]; ignored targets count nowhere, and the mean over none is NaN."""
    rows = _classes(x)
    at, kept = _known("nll_loss", target, ignore_index, rows.shape[-1])
    if not rows.size:
        return _finish(
            np.zeros(at.shape, x.dtype), np.zeros(at.shape, x.dtype), target.shape, reduction
        )
    picked = -rows[np.arange(len(at)), at]
    return _weighted(picked, at, kept, weight, target.shape, reduction)


def _weighted(
    loss: Array, at: Array, kept: Array, weight: Array | None, shape: tuple[int, ...],
    reduction: str,
) -> Array:  # fmt: skip
    factor = kept.astype(loss.dtype)
    if weight is not None:
        factor *= weight.astype(loss.dtype, copy=False)[at]
    # where, not a product: an ignored sample may hold inf.
    return _finish(np.where(kept, loss * factor, 0), factor, shape, reduction)


@kernel("cross_entropy")
def cross_entropy(
    x: Array, target: Array, weight: Array | None, reduction: str, dtype: DType | None,
    ignore_index: int, label_smoothing: float,
) -> Array:  # fmt: skip
    """nll_loss(log_softmax(x)) for class indices; -sum(target log_softmax(x)) for probabilities."""
    own = x.dtype if dtype is None else native(dtype)
    x = x.astype(own, copy=False)
    target, weight = up(target), up(weight)
    loss = _cross_entropy(up(x), target, weight, reduction, ignore_index, label_smoothing)
    return loss.astype(own, copy=False)


def _cross_entropy(
    x: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int,
    label_smoothing: float,
) -> Array:  # fmt: skip
    if weight is not None:
        weight = weight.astype(x.dtype, copy=False)
    if target.dtype.kind not in "iu":
        return _soft_cross_entropy(x, target, weight, reduction, label_smoothing)
    rows = _classes(x)
    classes = rows.shape[-1]
    at, kept = _known("cross_entropy", target, ignore_index, classes)
    if not rows.size:
        nothing = np.zeros(at.shape, x.dtype)
        return _finish(nothing, nothing, target.shape, reduction)
    shift = shifted(rows, 1)
    log_sum = np.log(np.exp(shift).sum(axis=1))
    loss = _weighted(
        log_sum - shift[np.arange(len(at)), at], at, kept, weight, target.shape, reduction
    )
    if label_smoothing == 0:
        return loss
    # Smoothing spreads over all classes, each with its own weight; the mean divides by the
    # weights of the true classes, like the main term.
    shift -= log_sum[:, None]
    smooth = -(shift if weight is None else shift * weight).sum(axis=1)
    smooth = np.where(kept, smooth, 0)
    factor = kept.astype(x.dtype) if weight is None else np.where(kept, weight[at], 0)
    spread = _finish(smooth, factor, target.shape, reduction)
    mixed: Array = (1 - label_smoothing) * loss + label_smoothing / classes * spread
    return mixed


@kernel("cross_entropy_backward")
def cross_entropy_backward(
    g: Array, x: Array, target: Array, weight: Array | None, reduction: str, dtype: DType | None,
    ignore_index: int, label_smoothing: float,
) -> Array:  # fmt: skip
    """p sum(q) - q for p = softmax(x) and q the smoothed, weighted target of each class."""
    own = x.dtype
    if dtype is not None:
        x = x.astype(native(dtype), copy=False)
    grad = _slopes(up(g), up(x), target, up(weight), reduction, ignore_index, label_smoothing)
    return grad.astype(own, copy=False)


def _slopes(
    g: Array, x: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int,
    label_smoothing: float,
) -> Array:  # fmt: skip
    rows = _classes(x)
    classes = rows.shape[-1]
    at, kept = _known("cross_entropy", target, ignore_index, classes)
    if not rows.size:
        return np.zeros(x.shape, x.dtype)
    factor = kept.astype(x.dtype)
    if weight is not None:
        factor *= weight.astype(x.dtype, copy=False)[at]
    share = g.reshape(-1)
    if reduction == "mean":
        share = share / factor.sum()
    # where, not a product: the mean over no target at all has an infinite share.
    hit = mass = np.where(kept, share * factor * x.dtype.type(1 - label_smoothing), 0)
    shift = shifted(rows, 1)
    grad: Array = np.exp(shift, out=shift)
    total = grad.sum(axis=1)
    if label_smoothing:
        even = np.where(kept, share * x.dtype.type(label_smoothing / classes), 0)
        mass = hit + even * (classes if weight is None else weight.sum(dtype=x.dtype))
    grad *= (mass / total)[:, None]
    if label_smoothing:
        grad -= even[:, None] if weight is None else even[:, None] * weight
    grad[np.arange(len(at)), at] -= hit
    if x.ndim <= 2:
        return grad.reshape(x.shape)
    moved = grad.reshape(*x.shape[:1], *x.shape[2:], classes)
    return np.ascontiguousarray(np.moveaxis(moved, -1, 1))


def _soft_cross_entropy(
    x: Array, target: Array, weight: Array | None, reduction: str, label_smoothing: float
) -> Array:
    """Probabilities as targets; the mean divides by the number of samples."""
    rows, soft = _classes(x), _classes(target.astype(x.dtype, copy=False))
    classes = rows.shape[-1]
    shape = x.shape[:1] + x.shape[2:] if x.ndim > 1 else ()
    if label_smoothing > 0:
        soft = soft * (1 - label_smoothing) + label_smoothing / classes
    if not rows.size:
        return _reduced(np.zeros(shape, x.dtype), reduction)
    logs = shifted(rows, 1)
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    logs *= soft
    if weight is not None:
        logs *= weight
    return _reduced(-logs.sum(axis=1).reshape(shape), reduction)
