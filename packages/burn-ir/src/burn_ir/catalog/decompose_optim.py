"""Optimizer updates written in maps; 16-bit parameters are updated in f32."""

from __future__ import annotations

from collections.abc import Sequence

from burn_ir.catalog.decompose import Ops, Tensor, to_dtype, wide_dtype
from burn_std.dtypes import float64

Tensors = Sequence[Tensor]


def _kept(ops: Ops, skip: Tensor | None, old: Tensor, new: Tensor) -> Tensor:
    """Return the new value in the old one's dtype, or the old one when the step is skipped."""
    new = to_dtype(ops, new, old.dtype)
    return new if skip is None else ops.where(skip, old, new)


def sgd_step(
    ops: Ops,
    params: Tensors,
    grads: Tensors,
    momenta: Tensors,
    step: Tensor,
    skip: Tensor | None,
    nesterov: bool,
    maximize: bool,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
) -> tuple[Tensor, ...]:
    """Return parameters, momenta (none given: no momentum) and the count after one step.

    The first step takes the gradient itself as its momentum, so dampening starts at the second.
    """
    new_params, new_momenta = [], []
    first = ops.eq(step, 0)
    for i, (p, g) in enumerate(zip(params, grads, strict=True)):
        wide = wide_dtype(p.dtype)
        value, d = to_dtype(ops, p, wide), to_dtype(ops, g, wide)
        if maximize:
            d = ops.neg(d)
        if weight_decay:
            d = ops.add(d, ops.mul(value, weight_decay))
        if momenta:
            held = to_dtype(ops, momenta[i], wide)
            grown = ops.add(ops.mul(held, momentum), ops.mul(d, 1 - dampening))
            held = ops.where(first, d, grown)
            new_momenta.append(_kept(ops, skip, momenta[i], held))
            d = ops.add(d, ops.mul(held, momentum)) if nesterov else held
        new_params.append(_kept(ops, skip, p, ops.sub(value, ops.mul(d, lr))))
    return (*new_params, *new_momenta, _kept(ops, skip, step, ops.add(step, 1)))


def adam_step(
    ops: Ops,
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_sqs: Tensors,
    step: Tensor,
    skip: Tensor | None,
    decoupled: bool,
    maximize: bool,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
) -> tuple[Tensor, ...]:
    """Return parameters, both averages, maxima (none given: no AMSGrad) and the count.

    Bias corrections come from the count in f64, so that they stay exact for any run length.
    """
    count = ops.cast(ops.add(step, 1), float64)
    size = ops.div(lr, ops.sub(1.0, ops.pow(beta1, count)))
    root = ops.sqrt(ops.sub(1.0, ops.pow(beta2, count)))
    news: tuple[list[Tensor], ...] = ([], [], [], [])
    for i, (p, g) in enumerate(zip(params, grads, strict=True)):
        wide = wide_dtype(p.dtype)
        value, d = to_dtype(ops, p, wide), to_dtype(ops, g, wide)
        if maximize:
            d = ops.neg(d)
        if weight_decay and decoupled:
            value = ops.mul(value, 1 - lr * weight_decay)
        elif weight_decay:
            d = ops.add(d, ops.mul(value, weight_decay))
        average = to_dtype(ops, exp_avgs[i], wide)
        average = ops.add(average, ops.mul(ops.sub(d, average), 1 - beta1))
        power = ops.mul(to_dtype(ops, exp_avg_sqs[i], wide), beta2)
        power = ops.add(power, ops.mul(ops.square(d), 1 - beta2))
        peak = power
        if max_sqs:
            peak = ops.maximum(to_dtype(ops, max_sqs[i], wide), power)
            news[3].append(_kept(ops, skip, max_sqs[i], peak))
        below = ops.add(ops.div(ops.sqrt(peak), to_dtype(ops, root, wide)), eps)
        moved = ops.mul(ops.div(average, below), to_dtype(ops, size, wide))
        news[0].append(_kept(ops, skip, p, ops.sub(value, moved)))
        news[1].append(_kept(ops, skip, exp_avgs[i], average))
        news[2].append(_kept(ops, skip, exp_avg_sqs[i], power))
    return (
        *(t for group in news for t in group),
        _kept(ops, skip, step, ops.add(step, 1)),
    )
