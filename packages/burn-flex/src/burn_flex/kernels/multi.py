"""What updates of many tensors share: rules that run in pieces which stay in the cache.

Everything is computed in the dtype of the parameter (halves in float32, rounded once), scalars in
float64. Large tensors go through in pieces, so that the dozen passes of Adam read memory once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from burn_flex.kernels.halves import HALVES, Array

# Elements per piece; five f32 arrays of this size fit into 1 MiB of cache.
_PIECE = 1 << 15

Rule = Callable[..., None]


def working(dtype: np.dtype) -> np.dtype:
    """Return the dtype that an update computes in."""
    return np.dtype(np.float32) if dtype in HALVES else dtype


def update_one(rule: Rule, param: Array, grad: Array, states: Sequence[Array]) -> list[Array]:
    """Return [new param, new states...] from `rule(param, grad, *states)`, which works in place."""
    olds = [param, *states]
    work = working(param.dtype)
    news = [np.array(a, work, order="C") for a in olds]
    flat_grad = np.ascontiguousarray(grad, work).reshape(-1)
    flat = [a.reshape(-1) for a in news]
    for piece in pieces(flat_grad.size):
        rule(flat[0][piece], flat_grad[piece], *(f[piece] for f in flat[1:]))
    return [new.astype(old.dtype, copy=False) for new, old in zip(news, olds, strict=True)]


def update_all(
    rule: Rule,
    params: list[Array],
    grads: list[Array],
    columns: Sequence[list[Array]],
    step: Array,
    skip: Array | None,
) -> tuple[Array, ...]:
    """Return (params, columns of states, step + 1) from an elementwise rule.

    An empty column is a state that the settings do not need: the rule does not see it.
    """
    if skipped(skip):
        return (*params, *(s for column in columns for s in column), step)
    used = [c for c in columns if c]
    states = zip(*used, strict=True) if used else ((),) * len(params)
    done = [update_one(rule, *a) for a in zip(params, grads, states, strict=True)]
    return (*(new for group in zip(*done, strict=True) for new in group), advanced(step))


def pieces(size: int) -> Iterator[slice]:
    """Return slices that cover `size` elements, each small enough for the cache."""
    return (slice(i, i + _PIECE) for i in range(0, size, _PIECE))


def skipped(skip: Array | None) -> bool:
    """Return whether the whole update is left out."""
    return skip is not None and bool(skip)


def regularised(param: Array, grad: Array, maximize: bool, weight_decay: float) -> Array:
    """Return -grad when maximising, plus weight_decay * param; grad itself when neither."""
    if maximize:
        grad = np.negative(grad)
    return grad + weight_decay * param if weight_decay else grad


def advanced(step: Array) -> Array:
    """Return the count after this step."""
    return np.asarray(step + 1, np.asarray(step).dtype)
