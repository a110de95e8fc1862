"""Steps of the kin of Adam with a schedule of their own inside: NAdam, RAdam, Adan."""

from __future__ import annotations

import numpy as np

from burn_flex.kernels.halves import Array
from burn_flex.kernels.multi import regularised, skipped, update_all
from burn_flex.table import kernel


@kernel("nadam_step")
def nadam_step(
    params: list[Array], grads: list[Array], exp_avgs: list[Array], exp_avg_sqs: list[Array],
    step: Array, mu_product: Array, skip: Array | None, decoupled: bool, maximize: bool,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, momentum_decay: float,
) -> tuple[Array, ...]:  # fmt: skip
    """(params, averages, squares, step + 1, product of the momenta so far)."""
    t = int(step) + 1
    mu, after = (beta1 * (1 - 0.5 * 0.96 ** (k * momentum_decay)) for k in (t, t + 1))
    product = float(mu_product) * mu
    of_gradient = lr * (1 - mu) / (1 - product)
    of_average = lr * after / (1 - product * after)
    root = (1 - beta2**t) ** 0.5

    def rule(p: Array, g: Array, m: Array, v: Array) -> None:
        g = regularised(p, g, maximize, 0.0 if decoupled else weight_decay)
        if decoupled and weight_decay:
            p *= 1 - lr * weight_decay
        m += (1 - beta1) * (g - m)
        v *= beta2
        v += (1 - beta2) * g * g
        below = np.sqrt(v)
        below /= root
        below += eps
        p -= of_gradient * (g / below)
        p -= of_average * (m / below)

    out = update_all(rule, params, grads, (exp_avgs, exp_avg_sqs), step, skip)
    return (*out, mu_product if skipped(skip) else np.asarray(product, mu_product.dtype))


@kernel("radam_step")
def radam_step(
    params: list[Array], grads: list[Array], exp_avgs: list[Array], exp_avg_sqs: list[Array],
    step: Array, skip: Array | None, decoupled: bool, maximize: bool,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> tuple[Array, ...]:  # fmt: skip
    """(params, averages, squares, step + 1); squares are used once their variance is known."""
    t = int(step) + 1
    rate = lr / (1 - beta1**t)
    left = 1 - beta2**t
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * t * beta2**t / left
    factor = 0.0
    if length > 5:
        above = (length - 4) * (length - 2) * longest
        factor = (above / ((longest - 4) * (longest - 2) * length)) ** 0.5 * left**0.5

    def rule(p: Array, g: Array, m: Array, v: Array) -> None:
        g = regularised(p, g, maximize, 0.0 if decoupled else weight_decay)
        if decoupled and weight_decay:
            p *= 1 - lr * weight_decay
        m += (1 - beta1) * (g - m)
        v *= beta2
        v += (1 - beta2) * g * g
        moved = rate * m
        if length > 5:
            below = np.sqrt(v)
            below += eps
            moved *= factor
            moved /= below
        p -= moved

    return update_all(rule, params, grads, (exp_avgs, exp_avg_sqs), step, skip)


@kernel("adan_step")
def adan_step(
    params: list[Array], grads: list[Array], exp_avgs: list[Array], exp_avg_diffs: list[Array],
    exp_avg_sqs: list[Array], previous: list[Array], step: Array, skip: Array | None,
    no_prox: bool, lr: float, beta1: float, beta2: float, beta3: float, eps: float,
    weight_decay: float,
) -> tuple[Array, ...]:  # fmt: skip
    """(params, averages, averages of differences, squares, last gradients, step + 1)."""
    t = int(step) + 1
    of_average = lr / (1 - beta1**t)
    of_difference = lr * beta2 / (1 - beta2**t)
    root = (1 - beta3**t) ** 0.5

    def rule(p: Array, g: Array, m: Array, d: Array, v: Array, last: Array) -> None:
        difference = np.zeros_like(g) if t == 1 else g - last
        ahead = g + beta2 * difference
        m += (1 - beta1) * (g - m)
        d += (1 - beta2) * (difference - d)
        v *= beta3
        v += (1 - beta3) * ahead * ahead
        below = np.sqrt(v)
        below /= root
        below += eps
        if no_prox and weight_decay:
            p *= 1 - lr * weight_decay
        p -= (of_average * m + of_difference * d) / below
        if not no_prox and weight_decay:
            p /= 1 + lr * weight_decay
        last[...] = g

    columns = (exp_avgs, exp_avg_diffs, exp_avg_sqs, previous)
    return update_all(rule, params, grads, columns, step, skip)
