"""Steps of SGD, Adam, AdamW, and of what else holds plain averages: PyTorch's formulas.

Inputs are untouched. How many tensors are updated at once stands in `multi`.
"""

from __future__ import annotations

import numpy as np

from burn_flex.kernels.halves import Array
from burn_flex.kernels.multi import regularised, update_all
from burn_flex.table import kernel


@kernel("sgd_step")
def sgd_step(
    params: list[Array], grads: list[Array], momenta: list[Array], step: Array, skip: Array | None,
    nesterov: bool, maximize: bool, lr: float, momentum: float, dampening: float,
    weight_decay: float,
) -> tuple[Array, ...]:  # fmt: skip
    """(params, momenta, step + 1); the first momentum is the gradient itself, undampened."""
    first = int(step) == 0

    def rule(p: Array, g: Array, *buffer: Array) -> None:
        g = regularised(p, g, maximize, weight_decay)
        for b in buffer:
            if first:
                b[...] = g
            else:
                b *= momentum
                b += (1 - dampening) * g
            g = g + momentum * b if nesterov else b
        p -= lr * g

    return update_all(rule, params, grads, (momenta,), step, skip)


@kernel("adam_step")
def adam_step(
    params: list[Array], grads: list[Array], exp_avgs: list[Array], exp_avg_sqs: list[Array],
    max_sqs: list[Array], step: Array, skip: Array | None, decoupled: bool, maximize: bool,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> tuple[Array, ...]:  # fmt: skip
    """(params, averages, squares, maxima, step + 1); decoupled decay is AdamW's.

    p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
    """
    t = int(step) + 1
    rate = lr / (1 - beta1**t)
    root = (1 - beta2**t) ** 0.5

    def rule(p: Array, g: Array, m: Array, v: Array, *top: Array) -> None:
        g = regularised(p, g, maximize, 0.0 if decoupled else weight_decay)
        if decoupled and weight_decay:
            p *= 1 - lr * weight_decay
        m += (1 - beta1) * (g - m)
        v *= beta2
        v += (1 - beta2) * g * g
        for largest in top:
            np.maximum(largest, v, out=largest)
            v = largest
        denominator = np.sqrt(v)
        denominator /= root
        denominator += eps
        np.divide(m, denominator, out=denominator)
        denominator *= rate
        p -= denominator

    return update_all(rule, params, grads, (exp_avgs, exp_avg_sqs, max_sqs), step, skip)


@kernel("rmsprop_step")
def rmsprop_step(
    params: list[Array], grads: list[Array], square_avgs: list[Array], grad_avgs: list[Array],
    momenta: list[Array], step: Array, skip: Array | None, maximize: bool,
    lr: float, alpha: float, eps: float, weight_decay: float, momentum: float,
) -> tuple[Array, ...]:  # fmt: skip
    """(params, squares, averages (centered), momenta, step + 1).

    p -= lr * g / (sqrt(v - a^2) + eps), through the momentum where there is one
    """
    centered = bool(grad_avgs)

    def rule(p: Array, g: Array, v: Array, *more: Array) -> None:
        g = regularised(p, g, maximize, weight_decay)
        v *= alpha
        v += (1 - alpha) * g * g
        if centered:
            average = more[0]
            average += (1 - alpha) * (g - average)
            below = np.sqrt(v - average * average)
        else:
            below = np.sqrt(v)
        below += eps
        moved = g / below
        if momenta:
            buffer = more[-1]
            buffer *= momentum
            buffer += moved
            moved = buffer
        p -= lr * moved

    return update_all(rule, params, grads, (square_avgs, grad_avgs, momenta), step, skip)


@kernel("adagrad_step")
def adagrad_step(
    params: list[Array], grads: list[Array], sums: list[Array], step: Array, skip: Array | None,
    maximize: bool, lr: float, lr_decay: float, eps: float, weight_decay: float,
) -> tuple[Array, ...]:  # fmt: skip
    """(params, sums of squares, step + 1); p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)."""
    rate = lr / (1 + int(step) * lr_decay)

    def rule(p: Array, g: Array, total: Array) -> None:
        g = regularised(p, g, maximize, weight_decay)
        total += g * g
        below = np.sqrt(total)
        below += eps
        p -= rate * (g / below)

    return update_all(rule, params, grads, (sums,), step, skip)


@kernel("adadelta_step")
def adadelta_step(
    params: list[Array], grads: list[Array], square_avgs: list[Array], acc_deltas: list[Array],
    step: Array, skip: Array | None, maximize: bool,
    lr: float, rho: float, eps: float, weight_decay: float,
) -> tuple[Array, ...]:  # fmt: skip
    """(params, squares, squared moves, step + 1); a move is sqrt(a + eps) / sqrt(v + eps) g."""

    def rule(p: Array, g: Array, v: Array, a: Array) -> None:
        g = regularised(p, g, maximize, weight_decay)
        v *= rho
        v += (1 - rho) * g * g
        moved = np.sqrt(a + eps)
        moved /= np.sqrt(v + eps)
        moved *= g
        a *= rho
        a += (1 - rho) * moved * moved
        p -= lr * moved

    return update_all(rule, params, grads, (square_avgs, acc_deltas), step, skip)


@kernel("adamax_step")
def adamax_step(
    params: list[Array], grads: list[Array], exp_avgs: list[Array], exp_infs: list[Array],
    step: Array, skip: Array | None, maximize: bool,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> tuple[Array, ...]:  # fmt: skip
    """(params, averages, maxima, step + 1); u = max(beta2 u, |g| + eps); p -= rate m / u."""
    rate = lr / (1 - beta1 ** (int(step) + 1))

    def rule(p: Array, g: Array, m: Array, u: Array) -> None:
        g = regularised(p, g, maximize, weight_decay)
        m += (1 - beta1) * (g - m)
        u *= beta2
        np.maximum(u, np.abs(g) + eps, out=u)
        p -= rate * (m / u)

    return update_all(rule, params, grads, (exp_avgs, exp_infs), step, skip)


@kernel("lion_step")
def lion_step(
    params: list[Array], grads: list[Array], exp_avgs: list[Array], step: Array, skip: Array | None,
    maximize: bool, lr: float, beta1: float, beta2: float, weight_decay: float,
) -> tuple[Array, ...]:  # fmt: skip
    """(params, averages, step + 1); p -= lr (sign(beta1 m + (1 - beta1) g) + decay p)."""

    def rule(p: Array, g: Array, m: Array) -> None:
        g = regularised(p, g, maximize, 0.0)
        if weight_decay:
            p *= 1 - lr * weight_decay
        p -= lr * np.sign(beta1 * m + (1 - beta1) * g)
        m *= beta2
        m += (1 - beta2) * g

    return update_all(rule, params, grads, (exp_avgs,), step, skip)


@kernel("asgd_step")
def asgd_step(
    params: list[Array], grads: list[Array], averages: list[Array], step: Array, skip: Array | None,
    maximize: bool, lr: float, lambd: float, alpha: float, t0: float, weight_decay: float,
) -> tuple[Array, ...]:  # fmt: skip
    """(params, averages of params, step + 1); the rate decays as (1 + lambd lr t)^-alpha."""
    t = int(step)
    rate = lr / (1 + lambd * lr * t) ** alpha
    share = 1 / max(1.0, t - t0)

    def rule(p: Array, g: Array, average: Array) -> None:
        g = regularised(p, g, maximize, weight_decay)
        p *= 1 - lambd * rate
        p -= rate * g
        average += share * (p - average)

    return update_all(rule, params, grads, (averages,), step, skip)
