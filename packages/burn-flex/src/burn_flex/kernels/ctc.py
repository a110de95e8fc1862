"""CTC loss by forward and backward sums over the blank-extended target, in log space.

Graves et al. 2006, "Connectionist Temporal Classification", equations 6 to 15, vectorised over
samples and target positions; time is the only Python loop.
"""

from __future__ import annotations

import numpy as np

from burn_flex.kernels.halves import Array, wide


def _shift(a: Array, by: int) -> Array:
    """Return a [N, S] with row elements moved `by` to the right (left if negative), -inf in."""
    out = np.full_like(a, -np.inf)
    if by > 0:
        out[:, by:] = a[:, :-by]
    else:
        out[:, :by] = a[:, -by:]
    return out


def _log_add(*terms: Array) -> Array:
    out = terms[0]
    for term in terms[1:]:
        out = np.logaddexp(out, term)
    return out


def _extended(targets: Array, lengths: Array, blank: int) -> tuple[Array, Array, Array]:
    """Return labels [N, 2S + 1] with blanks between, which are real, and which may be skipped to.

    A label may follow the label before it without a blank when the two differ.
    """
    n, width = targets.shape
    labels = np.full((n, 2 * width + 1), blank, np.int64)
    labels[:, 1::2] = targets
    real = np.arange(labels.shape[1]) <= 2 * lengths[:, None]
    labels = np.where(real, labels, blank)
    skip = np.zeros(labels.shape, np.bool_)
    skip[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    return labels, real, skip


@wide("ctc_loss")
def ctc_loss(
    log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, blank: int
) -> tuple[Array, Array]:
    """log_probs [T, N, C], targets [N, S] to (loss [N], gradient [T, N, C]).

    A target that does not fit into its input has loss inf and gradient 0.
    """
    steps, n, classes = log_probs.shape
    input_lengths = np.asarray(input_lengths, np.int64)
    target_lengths = np.asarray(target_lengths, np.int64)
    labels, real, skip = _extended(np.asarray(targets, np.int64), target_lengths, blank)
    states = labels.shape[1]
    emitted = np.take_along_axis(
        log_probs, np.broadcast_to(labels, (steps, n, states)), axis=2
    ).astype(np.float64)
    emitted = np.where(real, emitted, -np.inf)
    no_skip, each = ~skip, np.arange(n)
    alpha = np.full((steps, n, states), -np.inf)
    for t in range(steps):
        if t == 0:
            alpha[0, :, :2] = emitted[0, :, :2]
            continue
        jump = np.where(no_skip, -np.inf, _shift(alpha[t - 1], 2))
        alpha[t] = emitted[t] + _log_add(alpha[t - 1], _shift(alpha[t - 1], 1), jump)
    # Sequences end in the last blank or the last label, at their own last step.
    end = 2 * target_lengths
    start = np.full((n, states), -np.inf)
    start[each, end] = 0
    labelled = target_lengths > 0
    start[each[labelled], end[labelled] - 1] = 0
    # beta holds what follows a state, without the state's own emission.
    beta = np.full((steps, n, states), -np.inf)
    for t in range(steps - 1, -1, -1):
        last = (input_lengths == t + 1)[:, None]
        if t + 1 < steps:
            ahead = beta[t + 1] + emitted[t + 1]
            jump = _shift(np.where(no_skip, -np.inf, ahead), -2)
            beta[t] = _log_add(ahead, _shift(ahead, -1), jump)
        beta[t] = np.where(last, start, beta[t])
    log_likelihood = np.full(n, -np.inf)
    for t in np.unique(input_lengths):
        if t > 0:
            here = input_lengths == t
            paths = alpha[t - 1, here] + start[here]
            log_likelihood[here] = np.logaddexp.reduce(paths, axis=1)
    # An empty input spells only the empty target.
    log_likelihood[(input_lengths == 0) & (target_lengths == 0)] = 0
    occupied = np.exp(alpha + beta - log_likelihood[:, None])
    live = (np.arange(steps)[:, None] < input_lengths) & np.isfinite(log_likelihood)
    occupied = np.where(live[:, :, None], occupied, 0)
    grad = np.zeros((steps * n, classes))
    rows = np.arange(steps * n)[:, None]
    np.add.at(grad, (rows, np.tile(labels, (steps, 1))), -occupied.reshape(-1, states))
    grad = grad.reshape(steps, n, classes).astype(log_probs.dtype)
    return (-log_likelihood).astype(log_probs.dtype), grad
