"""Optimizer updates written in maps; 16-bit parameters are updated in f32."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from burn_ir.catalog.decompose import Ops, Tensor, to_dtype, wide_dtype
from burn_std import DType
from burn_std.dtypes import float64

Tensors = Sequence[Tensor]
# (value, gradient, states..., dtype they are in) -> (new value, new states...)
Rule = Callable[..., tuple[Tensor, ...]]


def kept(ops: Ops, skip: Tensor | None, old: Tensor, new: Tensor) -> Tensor:
    """Return the new value in the old one's dtype, or the old one when the step is skipped."""
    new = to_dtype(ops, new, old.dtype)
    return new if skip is None else ops.where(skip, old, new)


def each(
    ops: Ops,
    rule: Rule,
    params: Tensors,
    grads: Tensors,
    columns: Sequence[Tensors],
    step: Tensor,
    skip: Tensor | None,
) -> tuple[Tensor, ...]:
    """Return what an update returns, from a rule for one parameter in its wide dtype.

    An empty column is a state that the settings do not need: the rule does not see it.
    """
    used = [c for c in columns if c]
    news: list[list[Tensor]] = [[] for _ in range(1 + len(used))]
    for i, (p, g) in enumerate(zip(params, grads, strict=True)):
        wide = wide_dtype(p.dtype)
        olds = [p, *(c[i] for c in used)]
        value, *states = (to_dtype(ops, t, wide) for t in olds)
        made = rule(value, to_dtype(ops, g, wide), *states, wide)
        for column, old, new in zip(news, olds, made, strict=True):
            column.append(kept(ops, skip, old, new))
    return (*(t for column in news for t in column), kept(ops, skip, step, ops.add(step, 1)))


def count_of(ops: Ops, step: Tensor) -> Tensor:
    """Return the number of this step in f64, so that corrections stay exact for any run length."""
    return ops.cast(ops.add(step, 1), float64)


def debias(ops: Ops, beta: float, count: Tensor) -> Tensor:
    """Return 1 - beta^count."""
    return ops.sub(1.0, ops.pow(beta, count))


def directed(ops: Ops, value: Tensor, grad: Tensor, maximize: bool, weight_decay: float) -> Tensor:
    """Return the gradient, turned round to climb, with an L2 penalty's share."""
    d = ops.neg(grad) if maximize else grad
    return ops.add(d, ops.mul(value, weight_decay)) if weight_decay else d


def rate_of(ops: Ops, lr: float) -> Tensor:
    """Return the rate as a tensor of rank 0.

    What is made of the rate is computed in tensors: a number made of it here would be a constant
    of the step, which no captured step could bring up to date.
    """
    return ops.full(float64, (), lr)


def kept_share(ops: Ops, lr: float, weight_decay: float) -> Tensor | None:
    """Return 1 - lr weight_decay, what decoupled decay leaves of a value; None for all of it."""
    if not weight_decay:
        return None
    return ops.sub(1.0, ops.mul(rate_of(ops, lr), weight_decay))


def decayed(ops: Ops, value: Tensor, share: Tensor | None) -> Tensor:
    """Return the share of a value that `kept_share` names."""
    return value if share is None else ops.mul(value, to_dtype(ops, share, value.dtype))


def moved_to(ops: Ops, average: Tensor, new: Tensor, beta: float) -> Tensor:
    """Return average + (1 - beta) (new - average)."""
    return ops.add(average, ops.mul(ops.sub(new, average), 1 - beta))


def squared_to(ops: Ops, power: Tensor, new: Tensor, beta: float) -> Tensor:
    """Return beta power + (1 - beta) new^2."""
    return ops.add(ops.mul(power, beta), ops.mul(ops.square(new), 1 - beta))


def sgd_step(
    ops: Ops, params: Tensors, grads: Tensors, momenta: Tensors, step: Tensor, skip: Tensor | None,
    nesterov: bool, maximize: bool, lr: float, momentum: float, dampening: float,
    weight_decay: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return parameters, momenta (none given: no momentum) and the count after one step.

    The first step takes the gradient itself as its momentum, so dampening starts at the second.
    """
    first = ops.eq(step, 0)

    def rule(value: Tensor, grad: Tensor, *more: Tensor | DType) -> tuple[Tensor, ...]:
        d = directed(ops, value, grad, maximize, weight_decay)
        if not momenta:
            return (ops.sub(value, ops.mul(d, lr)),)
        grown = ops.add(ops.mul(more[0], momentum), ops.mul(d, 1 - dampening))
        held = ops.where(first, d, grown)
        d = ops.add(d, ops.mul(held, momentum)) if nesterov else held
        return ops.sub(value, ops.mul(d, lr)), held

    return each(ops, rule, params, grads, (momenta,), step, skip)


def adam_step(
    ops: Ops, params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors,
    max_sqs: Tensors, step: Tensor, skip: Tensor | None, decoupled: bool, maximize: bool,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return parameters, both averages, maxima (none given: no AMSGrad) and the count."""
    count = count_of(ops, step)
    size = ops.div(lr, debias(ops, beta1, count))
    root = ops.sqrt(debias(ops, beta2, count))
    share = kept_share(ops, lr, weight_decay) if decoupled else None

    def rule(
        value: Tensor, grad: Tensor, m: Tensor, v: Tensor, *more: Tensor
    ) -> tuple[Tensor, ...]:
        wide = more[-1]
        d = directed(ops, value, grad, maximize, 0.0 if decoupled else weight_decay)
        value = decayed(ops, value, share)
        m, v = moved_to(ops, m, d, beta1), squared_to(ops, v, d, beta2)
        tops = [ops.maximum(top, v) for top in more[:-1]]
        below = ops.sqrt(tops[0] if tops else v)
        below = ops.add(ops.div(below, to_dtype(ops, root, wide)), eps)
        moved = ops.mul(ops.div(m, below), to_dtype(ops, size, wide))
        return ops.sub(value, moved), m, v, *tops

    return each(ops, rule, params, grads, (exp_avgs, exp_avg_sqs, max_sqs), step, skip)


def rmsprop_step(
    ops: Ops, params: Tensors, grads: Tensors, square_avgs: Tensors, grad_avgs: Tensors,
    momenta: Tensors, step: Tensor, skip: Tensor | None, maximize: bool,
    lr: float, alpha: float, eps: float, weight_decay: float, momentum: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return parameters, squares, averages (if centered), momenta (if any) and the count."""

    def rule(value: Tensor, grad: Tensor, v: Tensor, *more: Tensor) -> tuple[Tensor, ...]:
        d = directed(ops, value, grad, maximize, weight_decay)
        v = squared_to(ops, v, d, alpha)
        news = [v]
        power = v
        if grad_avgs:
            average = moved_to(ops, more[0], d, alpha)
            news.append(average)
            power = ops.sub(v, ops.square(average))
        moved = ops.div(d, ops.add(ops.sqrt(power), eps))
        if momenta:
            moved = ops.add(ops.mul(more[-2], momentum), moved)
            news.append(moved)
        return ops.sub(value, ops.mul(moved, lr)), *news

    return each(ops, rule, params, grads, (square_avgs, grad_avgs, momenta), step, skip)


def adagrad_step(
    ops: Ops, params: Tensors, grads: Tensors, sums: Tensors, step: Tensor, skip: Tensor | None,
    maximize: bool, lr: float, lr_decay: float, eps: float, weight_decay: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return parameters, sums of squares and the count."""
    rate = ops.div(lr, ops.add(ops.mul(ops.cast(step, float64), lr_decay), 1.0))

    def rule(value: Tensor, grad: Tensor, total: Tensor, wide: DType) -> tuple[Tensor, ...]:
        d = directed(ops, value, grad, maximize, weight_decay)
        total = ops.add(total, ops.square(d))
        moved = ops.div(d, ops.add(ops.sqrt(total), eps))
        return ops.sub(value, ops.mul(moved, to_dtype(ops, rate, wide))), total

    return each(ops, rule, params, grads, (sums,), step, skip)


def adadelta_step(
    ops: Ops, params: Tensors, grads: Tensors, square_avgs: Tensors, acc_deltas: Tensors,
    step: Tensor, skip: Tensor | None, maximize: bool,
    lr: float, rho: float, eps: float, weight_decay: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return parameters, squares, squared moves and the count."""

    def rule(value: Tensor, grad: Tensor, v: Tensor, a: Tensor, wide: DType) -> tuple[Tensor, ...]:
        d = directed(ops, value, grad, maximize, weight_decay)
        v = squared_to(ops, v, d, rho)
        moved = ops.div(ops.sqrt(ops.add(a, eps)), ops.sqrt(ops.add(v, eps)))
        moved = ops.mul(moved, d)
        return ops.sub(value, ops.mul(moved, lr)), v, squared_to(ops, a, moved, rho)

    return each(ops, rule, params, grads, (square_avgs, acc_deltas), step, skip)


def adamax_step(
    ops: Ops, params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_infs: Tensors,
    step: Tensor, skip: Tensor | None, maximize: bool,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return parameters, averages, decaying maxima and the count."""
    rate = ops.div(lr, debias(ops, beta1, count_of(ops, step)))

    def rule(value: Tensor, grad: Tensor, m: Tensor, u: Tensor, wide: DType) -> tuple[Tensor, ...]:
        d = directed(ops, value, grad, maximize, weight_decay)
        m = moved_to(ops, m, d, beta1)
        u = ops.maximum(ops.mul(u, beta2), ops.add(ops.abs(d), eps))
        return ops.sub(value, ops.mul(ops.div(m, u), to_dtype(ops, rate, wide))), m, u

    return each(ops, rule, params, grads, (exp_avgs, exp_infs), step, skip)


def lion_step(
    ops: Ops, params: Tensors, grads: Tensors, exp_avgs: Tensors, step: Tensor, skip: Tensor | None,
    maximize: bool, lr: float, beta1: float, beta2: float, weight_decay: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return parameters, averages and the count."""
    share = kept_share(ops, lr, weight_decay)

    def rule(value: Tensor, grad: Tensor, m: Tensor, wide: DType) -> tuple[Tensor, ...]:
        d = directed(ops, value, grad, maximize, 0.0)
        value = decayed(ops, value, share)
        mixed = ops.add(ops.mul(m, beta1), ops.mul(d, 1 - beta1))
        m = ops.add(ops.mul(m, beta2), ops.mul(d, 1 - beta2))
        return ops.sub(value, ops.mul(ops.sign(mixed), lr)), m

    return each(ops, rule, params, grads, (exp_avgs,), step, skip)


def asgd_step(
    ops: Ops, params: Tensors, grads: Tensors, averages: Tensors, step: Tensor, skip: Tensor | None,
    maximize: bool, lr: float, lambd: float, alpha: float, t0: float, weight_decay: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return parameters, their averages and the count."""
    t = ops.cast(step, float64)
    rate = ops.div(lr, ops.pow(ops.add(ops.mul(t, ops.mul(rate_of(ops, lr), lambd)), 1.0), alpha))
    shrink = ops.sub(1.0, ops.mul(rate, lambd))
    share = ops.div(1.0, ops.clamp(ops.sub(t, t0), 1.0, None))

    def rule(value: Tensor, grad: Tensor, average: Tensor, wide: DType) -> tuple[Tensor, ...]:
        d = directed(ops, value, grad, maximize, weight_decay)
        value = ops.mul(value, to_dtype(ops, shrink, wide))
        value = ops.sub(value, ops.mul(d, to_dtype(ops, rate, wide)))
        change = ops.mul(ops.sub(value, average), to_dtype(ops, share, wide))
        return value, ops.add(average, change)

    return each(ops, rule, params, grads, (averages,), step, skip)


def rprop_step(
    ops: Ops, params: Tensors, grads: Tensors, prevs: Tensors, step_sizes: Tensors, step: Tensor,
    skip: Tensor | None, maximize: bool, lr: float, etaminus: float, etaplus: float, least: float,
    most: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return parameters, the gradients taken, the step sizes and the count.

    A size of 0 has not begun, and starts from lr. Where the gradient's sign has changed, nothing
    moves, and the next sign counts as new.
    """

    def rule(
        value: Tensor, grad: Tensor, prev: Tensor, size: Tensor, wide: DType
    ) -> tuple[Tensor, ...]:
        d = directed(ops, value, grad, maximize, 0.0)
        turn = ops.sign(ops.mul(d, prev))
        turned = ops.lt(turn, 0)
        size = ops.where(ops.eq(size, 0), lr, size)
        grown = ops.where(ops.gt(turn, 0), ops.mul(size, etaplus), size)
        size = ops.clamp(ops.where(turned, ops.mul(size, etaminus), grown), least, most)
        d = ops.where(turned, 0.0, d)
        return ops.sub(value, ops.mul(ops.sign(d), size)), d, size

    return each(ops, rule, params, grads, (prevs, step_sizes), step, skip)
