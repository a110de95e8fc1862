"""LAMB, Adafactor and Muon: updates that look at a whole tensor."""

from __future__ import annotations

from math import prod

from burn_ir.catalog.decompose import Ops, Tensor, to_dtype
from burn_ir.catalog.decompose_optim import (
    Tensors,
    count_of,
    debias,
    decayed,
    directed,
    each,
    kept_share,
    moved_to,
    rate_of,
    squared_to,
)
from burn_std import DType
from burn_std.dtypes import bfloat16, float32


def _norm(ops: Ops, x: Tensor) -> Tensor:
    return ops.sqrt(ops.sum(ops.square(x), None, False, None))


def lamb_step(
    ops: Ops, params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors,
    step: Tensor, skip: Tensor | None, maximize: bool,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return parameters, both averages and the count; a zero norm trusts the move as it is."""
    count = count_of(ops, step)
    scale = ops.div(1.0, debias(ops, beta1, count))
    root = ops.sqrt(debias(ops, beta2, count))

    def rule(value: Tensor, grad: Tensor, m: Tensor, v: Tensor, wide: DType) -> tuple[Tensor, ...]:
        d = directed(ops, value, grad, maximize, 0.0)
        m, v = moved_to(ops, m, d, beta1), squared_to(ops, v, d, beta2)
        below = ops.add(ops.div(ops.sqrt(v), to_dtype(ops, root, wide)), eps)
        moved = ops.mul(ops.div(m, below), to_dtype(ops, scale, wide))
        moved = ops.add(ops.mul(value, weight_decay), moved)
        of_value, of_move = _norm(ops, value), _norm(ops, moved)
        known = ops.logical_and(ops.gt(of_value, 0.0), ops.gt(of_move, 0.0))
        trust = ops.where(known, ops.div(of_value, of_move), 1.0)
        return ops.sub(value, ops.mul(moved, ops.mul(trust, lr))), m, v

    return each(ops, rule, params, grads, (exp_avgs, exp_avg_sqs), step, skip)


def adafactor_step(
    ops: Ops, params: Tensors, grads: Tensors, rows: Tensors, columns: Tensors,
    variances: Tensors, step: Tensor, skip: Tensor | None, maximize: bool,
    lr: float, beta2_decay: float, eps1: float, eps2: float, d: float, weight_decay: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return parameters, means of rows and columns (or whole squares) and the count."""
    count = count_of(ops, step)
    share = ops.pow(count, beta2_decay)
    bound = ops.minimum(ops.div(1.0, ops.sqrt(count)), lr)
    left = kept_share(ops, lr, weight_decay)

    def mixed(old: Tensor, new: Tensor, wide: DType) -> Tensor:
        return ops.add(old, ops.mul(ops.sub(new, old), to_dtype(ops, share, wide)))

    def rule(value: Tensor, grad: Tensor, *more: Tensor) -> tuple[Tensor, ...]:
        *states, wide = more
        size = max(prod(value.shape), 1) ** 0.5
        grad = directed(ops, value, grad, maximize, 0.0)
        width = ops.clamp(ops.div(_norm(ops, value), size), eps2, None)
        width = ops.mul(width, to_dtype(ops, bound, wide))
        value = decayed(ops, value, left)
        square = ops.square(grad)
        if rows:
            rank = len(value.shape)
            row = mixed(states[0], ops.mean(square, (rank - 1,), True, None), wide)
            column = mixed(states[1], ops.mean(square, (rank - 2,), True, None), wide)
            mean = ops.clamp(ops.mean(row, (rank - 2,), True, None), eps1, None)
            power = ops.div(ops.mul(row, column), mean)
            news = [row, column]
        else:
            power = mixed(states[0], square, wide)
            news = [power]
        moved = ops.div(grad, ops.sqrt(ops.clamp(power, eps1 * eps1, None)))
        length = ops.clamp(ops.div(_norm(ops, moved), size * d), 1.0, None)
        return ops.sub(value, ops.mul(moved, ops.div(width, length))), *news

    return each(ops, rule, params, grads, (rows, columns, variances), step, skip)


def muon_step(
    ops: Ops, params: Tensors, grads: Tensors, momenta: Tensors, step: Tensor, skip: Tensor | None,
    nesterov: bool, match_rms: bool, steps: int,
    lr: float, momentum: float, weight_decay: float, a: float, b: float, c: float, eps: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return parameters, momenta and the count; the move is made nearly orthogonal."""
    rate, share = rate_of(ops, lr), kept_share(ops, lr, weight_decay)

    def rule(value: Tensor, grad: Tensor, m: Tensor, wide: DType) -> tuple[Tensor, ...]:
        m = moved_to(ops, m, grad, momentum)
        moved = ops.add(grad, ops.mul(ops.sub(m, grad), momentum)) if nesterov else m
        moved = to_dtype(ops, _orthogonal(ops, moved, steps, a, b, c, eps), wide)
        rows, columns = value.shape
        ratio = 0.2 * max(rows, columns) ** 0.5 if match_rms else max(1, rows / columns) ** 0.5
        value = decayed(ops, value, share)
        length = to_dtype(ops, ops.mul(rate, ratio), wide)
        return ops.sub(value, ops.mul(moved, length)), m

    return each(ops, rule, params, grads, (momenta,), step, skip)


def _orthogonal(
    ops: Ops, x: Tensor, steps: int, a: float, b: float, c: float, eps: float
) -> Tensor:
    """Newton-Schulz iteration, every result held in bfloat16 as in the source."""

    def held(t: Tensor) -> Tensor:
        return ops.cast(ops.cast(t, bfloat16), float32)

    tall = x.shape[0] > x.shape[1]
    x = held(ops.permute(x, (1, 0)) if tall else x)
    x = held(ops.div(x, ops.clamp(held(_norm(ops, x)), eps, None)))
    for _ in range(steps):
        gram = held(ops.matmul(x, ops.permute(x, (1, 0))))
        inner = held(ops.add(ops.mul(gram, b), ops.mul(ops.matmul(gram, gram), c)))
        x = held(ops.add(ops.mul(x, a), ops.matmul(inner, x)))
    return ops.permute(x, (1, 0)) if tall else x
