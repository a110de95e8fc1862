"""NAdam, RAdam and Adan written in maps."""

from __future__ import annotations

from burn_ir.catalog.decompose import Ops, Tensor, to_dtype
from burn_ir.catalog.decompose_optim import (
    Tensors,
    count_of,
    debias,
    decayed,
    directed,
    each,
    kept,
    kept_share,
    moved_to,
    rate_of,
    squared_to,
)
from burn_std import DType
from burn_std.dtypes import float64


def nadam_step(
    ops: Ops, params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors,
    step: Tensor, mu_product: Tensor, skip: Tensor | None, decoupled: bool, maximize: bool,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, momentum_decay: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return parameters, both averages, the count and the product of the momenta so far."""
    count = count_of(ops, step)

    def momentum(t: Tensor) -> Tensor:
        falling = ops.pow(0.96, ops.mul(t, momentum_decay))
        return ops.mul(ops.sub(1.0, ops.mul(falling, 0.5)), beta1)

    mu, after = momentum(count), momentum(ops.add(count, 1.0))
    product = ops.mul(to_dtype(ops, mu_product, float64), mu)
    of_gradient = ops.div(ops.mul(ops.sub(1.0, mu), lr), ops.sub(1.0, product))
    of_average = ops.div(ops.mul(after, lr), ops.sub(1.0, ops.mul(product, after)))
    root = ops.sqrt(debias(ops, beta2, count))
    share = kept_share(ops, lr, weight_decay) if decoupled else None

    def rule(value: Tensor, grad: Tensor, m: Tensor, v: Tensor, wide: DType) -> tuple[Tensor, ...]:
        d = directed(ops, value, grad, maximize, 0.0 if decoupled else weight_decay)
        value = decayed(ops, value, share)
        m, v = moved_to(ops, m, d, beta1), squared_to(ops, v, d, beta2)
        below = ops.add(ops.div(ops.sqrt(v), to_dtype(ops, root, wide)), eps)
        value = ops.sub(value, ops.mul(ops.div(d, below), to_dtype(ops, of_gradient, wide)))
        value = ops.sub(value, ops.mul(ops.div(m, below), to_dtype(ops, of_average, wide)))
        return value, m, v

    out = each(ops, rule, params, grads, (exp_avgs, exp_avg_sqs), step, skip)
    return *out, kept(ops, skip, mu_product, product)


def radam_step(
    ops: Ops, params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors,
    step: Tensor, skip: Tensor | None, decoupled: bool, maximize: bool,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return parameters, both averages and the count.

    While the variance of the squares is unknown (a length of at most 5) the average moves alone.
    """
    count = count_of(ops, step)
    rate = ops.div(lr, debias(ops, beta1, count))
    left = debias(ops, beta2, count)
    longest = 2 / (1 - beta2) - 1
    power = ops.pow(beta2, count)
    length = ops.sub(longest, ops.div(ops.mul(ops.mul(count, 2.0), power), left))
    known = ops.gt(length, 5.0)
    # Below 5 the root would be of a negative number; what it gives there is not used.
    safe = ops.clamp(length, 5.0, None)
    above = ops.mul(ops.mul(ops.sub(safe, 4.0), ops.sub(safe, 2.0)), longest)
    rectified = ops.sqrt(ops.div(above, ops.mul(safe, (longest - 4) * (longest - 2))))
    factor = ops.mul(rectified, ops.sqrt(left))
    share = kept_share(ops, lr, weight_decay) if decoupled else None

    def rule(value: Tensor, grad: Tensor, m: Tensor, v: Tensor, wide: DType) -> tuple[Tensor, ...]:
        d = directed(ops, value, grad, maximize, 0.0 if decoupled else weight_decay)
        value = decayed(ops, value, share)
        m, v = moved_to(ops, m, d, beta1), squared_to(ops, v, d, beta2)
        moved = ops.mul(m, to_dtype(ops, rate, wide))
        scaled = ops.mul(moved, to_dtype(ops, factor, wide))
        scaled = ops.div(scaled, ops.add(ops.sqrt(v), eps))
        return ops.sub(value, ops.where(known, scaled, moved)), m, v

    return each(ops, rule, params, grads, (exp_avgs, exp_avg_sqs), step, skip)


def adan_step(
    ops: Ops, params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_diffs: Tensors,
    exp_avg_sqs: Tensors, previous: Tensors, step: Tensor, skip: Tensor | None,
    no_prox: bool, lr: float, beta1: float, beta2: float, beta3: float, eps: float,
    weight_decay: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return parameters, the three averages, this gradient as the last one, and the count."""
    count = count_of(ops, step)
    first = ops.eq(step, 0)
    of_average = ops.div(lr, debias(ops, beta1, count))
    of_difference = ops.div(ops.mul(rate_of(ops, lr), beta2), debias(ops, beta2, count))
    root = ops.sqrt(debias(ops, beta3, count))
    share = kept_share(ops, lr, weight_decay) if no_prox else None
    grown: Tensor | None = None
    if weight_decay and not no_prox:
        grown = ops.add(ops.mul(rate_of(ops, lr), weight_decay), 1.0)

    def rule(
        value: Tensor, grad: Tensor, m: Tensor, d: Tensor, v: Tensor, last: Tensor, wide: DType
    ) -> tuple[Tensor, ...]:
        difference = ops.sub(grad, ops.where(first, grad, last))
        ahead = ops.add(grad, ops.mul(difference, beta2))
        m, d = moved_to(ops, m, grad, beta1), moved_to(ops, d, difference, beta2)
        v = squared_to(ops, v, ahead, beta3)
        below = ops.add(ops.div(ops.sqrt(v), to_dtype(ops, root, wide)), eps)
        moved = ops.mul(m, to_dtype(ops, of_average, wide))
        moved = ops.add(moved, ops.mul(d, to_dtype(ops, of_difference, wide)))
        value = decayed(ops, value, share)
        value = ops.sub(value, ops.div(moved, below))
        if grown is not None:
            value = ops.div(value, to_dtype(ops, grown, wide))
        return value, m, d, v, grad

    columns = (exp_avgs, exp_avg_diffs, exp_avg_sqs, previous)
    return each(ops, rule, params, grads, columns, step, skip)
