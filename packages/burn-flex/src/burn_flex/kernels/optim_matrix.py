"""Steps that look at a whole tensor: LAMB, Adafactor, Muon."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from burn_flex.kernels.halves import Array
from burn_flex.kernels.multi import advanced, regularised, skipped, update_one, working
from burn_flex.table import kernel

_BF16 = np.dtype(ml_dtypes.bfloat16)


def _norm(x: Array) -> float:
    """Euclidean norm in the dtype of x; a dot product sums in pieces, as pairwise sums do."""
    return float(np.sqrt((x * x).sum()))


@kernel("lamb_step")
def lamb_step(
    params: list[Array], grads: list[Array], exp_avgs: list[Array], exp_avg_sqs: list[Array],
    step: Array, skip: Array | None, maximize: bool,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> tuple[Array, ...]:  # fmt: skip
    """(params, averages, squares, step + 1); p -= lr |p| / |r| r, r Adam's move plus decay p."""
    if skipped(skip):
        return (*params, *exp_avgs, *exp_avg_sqs, step)
    t = int(step) + 1
    scale = 1 / (1 - beta1**t)
    root = (1 - beta2**t) ** 0.5
    done = []
    for p, g, m, v in zip(params, grads, exp_avgs, exp_avg_sqs, strict=True):
        # The move is left in the place of the parameter: its norm is known at the end only.
        def rule(p: Array, g: Array, m: Array, v: Array) -> None:
            g = regularised(p, g, maximize, 0.0)
            m += (1 - beta1) * (g - m)
            v *= beta2
            v += (1 - beta2) * g * g
            below = np.sqrt(v)
            below /= root
            below += eps
            p *= weight_decay
            p += scale * (m / below)

        value = p.astype(working(p.dtype))
        moved, average, square = update_one(rule, value, g, (m, v))
        norms = _norm(value), _norm(moved)
        trust = norms[0] / norms[1] if norms[0] > 0 and norms[1] > 0 else 1.0
        done.append(((value - lr * trust * moved).astype(p.dtype), average, square))
    return (*(new for group in zip(*done, strict=True) for new in group), advanced(step))


@kernel("adafactor_step")
def adafactor_step(
    params: list[Array], grads: list[Array], rows: list[Array], columns: list[Array],
    variances: list[Array], step: Array, skip: Array | None, maximize: bool,
    lr: float, beta2_decay: float, eps1: float, eps2: float, d: float, weight_decay: float,
) -> tuple[Array, ...]:  # fmt: skip
    """(params, row and column means of squares, or squares, step + 1)."""
    if skipped(skip):
        return (*params, *rows, *columns, *variances, step)
    t = int(step) + 1
    share = float(t) ** beta2_decay
    bound = min(lr, 1 / t**0.5)
    states = list(zip(rows, columns, strict=True)) if rows else [(v,) for v in variances]
    done = []
    for param, grad, state in zip(params, grads, states, strict=True):
        work = working(param.dtype)
        p = param.astype(work)
        g = regularised(p, grad.astype(work), maximize, 0.0)
        news = [s.astype(work) for s in state]
        size = max(eps2, _norm(p) / max(p.size, 1) ** 0.5) * bound
        if weight_decay:
            p *= 1 - lr * weight_decay
        square = g * g
        if rows:
            row, column = news
            row += share * (square.mean(-1, keepdims=True) - row)
            column += share * (square.mean(-2, keepdims=True) - column)
            power = row @ column
            power /= np.maximum(row.mean(-2, keepdims=True), eps1)
        else:
            news[0] += share * (square - news[0])
            power = news[0]
        moved = g / np.sqrt(np.maximum(power, eps1 * eps1))
        length = max(1.0, _norm(moved) / (max(moved.size, 1) ** 0.5 * d))
        p -= size / length * moved
        done.append([new.astype(param.dtype, copy=False) for new in (p, *news)])
    return (*(new for group in zip(*done, strict=True) for new in group), advanced(step))


@kernel("muon_step")
def muon_step(
    params: list[Array], grads: list[Array], momenta: list[Array], step: Array, skip: Array | None,
    nesterov: bool, match_rms: bool, steps: int,
    lr: float, momentum: float, weight_decay: float, a: float, b: float, c: float, eps: float,
) -> tuple[Array, ...]:  # fmt: skip
    """(params, momenta, step + 1); the momentum is made nearly orthogonal before it is used."""
    if skipped(skip):
        return (*params, *momenta, step)
    done = []
    for param, grad, buffer in zip(params, grads, momenta, strict=True):
        work = working(param.dtype)
        p, g, m = (x.astype(work) for x in (param, grad, buffer))
        m += (1 - momentum) * (g - m)
        moved = _orthogonal(g + momentum * (m - g) if nesterov else m, steps, a, b, c, eps)
        rows, columns = p.shape
        ratio = 0.2 * max(rows, columns) ** 0.5 if match_rms else max(1, rows / columns) ** 0.5
        p *= 1 - lr * weight_decay
        p -= lr * ratio * moved.astype(work)
        done.append([new.astype(param.dtype, copy=False) for new in (p, m)])
    return (*(new for group in zip(*done, strict=True) for new in group), advanced(step))


def _orthogonal(x: Array, steps: int, a: float, b: float, c: float, eps: float) -> Array:
    """Newton-Schulz iteration towards the orthogonal factor, every result held in bfloat16."""
    tall = x.shape[0] > x.shape[1]
    x = _held(x.T if tall else x)
    x = _held(x / np.maximum(_held(np.sqrt((x * x).sum())), np.float32(eps)))
    for _ in range(steps):
        gram = _held(x @ x.T)
        x = _held(a * x + _held(b * gram + c * (gram @ gram)) @ x)
    return x.T if tall else x


def _held(x: Array) -> Array:
    """Round to bfloat16 and go on in float32."""
    return np.asarray(x).astype(_BF16).astype(np.float32)
