"""Optimiser steps over many parameters: PyTorch's formulas, inputs untouched.

Everything is computed in the dtype of the parameter (halves in float32, rounded once), scalars in
float64. Large tensors go through in pieces that stay in the cache, so that the dozen passes of
Adam read memory once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from burn_flex.kernels.halves import HALVES, Array
from burn_flex.table import kernel

# Elements per piece; five f32 arrays of this size fit into 1 MiB of cache.
_PIECE = 1 << 15


def _update(
    rule: Callable[..., None], param: Array, grad: Array, states: list[Array]
) -> list[Array]:
    """Return [new param, new states...] from `rule(param, grad, *states)`, which works in place."""
    olds = [param, *states]
    work = np.dtype(np.float32) if param.dtype in HALVES else param.dtype
    news = [np.array(a, work, order="C") for a in olds]
    flat_grad = np.ascontiguousarray(grad, work).reshape(-1)
    flat = [a.reshape(-1) for a in news]
    for piece in _pieces(flat_grad.size):
        rule(flat[0][piece], flat_grad[piece], *(f[piece] for f in flat[1:]))
    return [new.astype(old.dtype, copy=False) for new, old in zip(news, olds, strict=True)]


def _pieces(size: int) -> Iterator[slice]:
    return (slice(i, i + _PIECE) for i in range(0, size, _PIECE))


def _regularised(param: Array, grad: Array, maximize: bool, weight_decay: float) -> Array:
    """Return -grad when maximising, plus weight_decay * param; grad itself when neither."""
    if maximize:
        grad = np.negative(grad)
    return grad + weight_decay * param if weight_decay else grad


@kernel("sgd_step")
def sgd_step(
    params: list[Array], grads: list[Array], momenta: list[Array], step: Array, skip: Array | None,
    nesterov: bool, maximize: bool, lr: float, momentum: float, dampening: float,
    weight_decay: float,
) -> tuple[Array, ...]:  # fmt: skip
    """(params, momenta, step + 1); the first momentum is the gradient itself, undampened."""
    if skip is not None and bool(skip):
        return (*params, *momenta, step)
    first = int(step) == 0

    def rule(p: Array, g: Array, *buffer: Array) -> None:
        g = _regularised(p, g, maximize, weight_decay)
        for b in buffer:
            if first:
                b[...] = g
            else:
                b *= momentum
                b += (1 - dampening) * g
            g = g + momentum * b if nesterov else b
        p -= lr * g

    done = [
        _update(rule, p, g, [momenta[i]] if momenta else [])
        for i, (p, g) in enumerate(zip(params, grads, strict=True))
    ]
    return (*(d[0] for d in done), *(s for d in done for s in d[1:]), _next(step))


@kernel("adam_step")
def adam_step(
    params: list[Array], grads: list[Array], exp_avgs: list[Array], exp_avg_sqs: list[Array],
    max_sqs: list[Array], step: Array, skip: Array | None, decoupled: bool, maximize: bool,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> tuple[Array, ...]:  # fmt: skip
    """(params, averages, squares, maxima, step + 1); decoupled decay is AdamW's.

    p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
    """
    if skip is not None and bool(skip):
        return (*params, *exp_avgs, *exp_avg_sqs, *max_sqs, step)
    t = int(step) + 1
    rate = lr / (1 - beta1**t)
    root = (1 - beta2**t) ** 0.5

    def rule(p: Array, g: Array, m: Array, v: Array, *top: Array) -> None:
        g = _regularised(p, g, maximize, 0.0 if decoupled else weight_decay)
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

    states = [
        list(s) for s in zip(exp_avgs, exp_avg_sqs, *([max_sqs] if max_sqs else []), strict=True)
    ]
    done = [_update(rule, *a) for a in zip(params, grads, states, strict=True)]
    return (*(new for group in zip(*done, strict=True) for new in group), _next(step))


def _next(step: Array) -> Array:
    return np.asarray(step + 1, np.asarray(step).dtype)
