"""Losses over sequences of unknown alignment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from burn_std import DTypeError, ShapeError
from burn_std.dtypes import int64
from burn_tensor.functional.reduction import reduction_name
from burn_tensor.functional.values import in_dtype, meeting
from burn_tensor.tensor import Tensor

Lengths = Tensor | Sequence[int] | int


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return -log of the probability of the targets, summed over all alignments.

    Args:
        log_probs: log-probabilities of classes per step.
        targets: classes without blanks; one row per sample, or all joined.
        input_lengths: steps of every sample.
        target_lengths: targets of every sample.
        blank: the class that stands between targets.
        reduction: `none`, `sum`, or `mean`, which divides by the target lengths first.
        zero_infinity: samples that cannot be aligned count 0, with gradient 0.

    Shapes:
        log_probs: [T, B, C] or [T, C]
        targets: [B, S], [sum of target_lengths] or, for one sample, [S]
        input_lengths, target_lengths: [B] or []
        returns: [], or [B] with `none`

    DTypes: log_probs floats, the rest integers.

    Raises:
        ShapeError: shapes do not fit.
        ArgumentError: blank is no class, or the reduction is unknown.

    Gradient: defined for log_probs; not differentiable again.

    Example:
        >>> p = burn.zeros(2, 1, 2)
        >>> burn.functional.ctc_loss(p, burn.tensor([[1]]), (2,), (1,)).shape
        ()

    Source: Graves et al., Connectionist Temporal Classification, 2006
    """
    op = "ctc_loss"
    reduction = reduction_name(op, reduction)
    if not targets.dtype.is_int:
        raise DTypeError(op, "targets are integers", got=targets.dtype)
    single = len(log_probs.shape) == 2
    b = meeting(op, log_probs, targets)
    if single:
        log_probs = b.unsqueeze(log_probs, (1,))
        if len(targets.shape) == 1:
            targets = b.unsqueeze(targets, (0,))
    if len(log_probs.shape) != 3:
        raise ShapeError(op, "log_probs are [T, B, C]", got=f"{list(log_probs.shape)}")
    batch = log_probs.shape[1]
    steps = _lengths(op, log_probs, input_lengths, batch)
    counts = _lengths(op, log_probs, target_lengths, batch)
    if len(targets.shape) == 1:
        targets = _rows(targets, counts)
    loss = b.ctc_loss(log_probs, in_dtype(targets, int64), steps, counts, blank)[0]
    if zero_infinity:
        loss = b.where(b.isinf(loss), 0.0, loss)
    if reduction == "mean":
        share = b.div(loss, in_dtype(b.clamp(counts, 1, None), loss.dtype))
        return b.mean(share, None, False, None)
    if reduction == "sum":
        return b.sum(loss, None, False, None)
    return b.reshape(loss, ()) if single else loss


def _lengths(op: str, like: Tensor, lengths: Lengths, batch: int) -> Tensor:
    """Return lengths as an int64 tensor [B]."""
    if isinstance(lengths, Tensor):
        out = in_dtype(lengths, int64)
    else:
        values = (lengths,) if isinstance(lengths, int) else tuple(lengths)
        out = like.b.tensor_from_numpy(np.asarray(values, np.int64))
    if not out.shape:
        out = out.b.reshape(out, (1,))
    if out.shape != (batch,):
        raise ShapeError(op, "one length per sample", got=f"{list(out.shape)} for {batch} samples")
    return out


def _rows(targets: Tensor, counts: Tensor) -> Tensor:
    """Return joined targets as one row per sample, the ends repeating some target."""
    b = targets.b
    numbers = np.asarray(counts.b.to_numpy(counts))
    total = targets.shape[0]
    if numbers.sum() != total:
        raise ShapeError(
            "ctc_loss", "joined targets are as many as the target lengths say",
            got=f"{total} targets, lengths {numbers.tolist()}",
        )  # fmt: skip
    width = int(numbers.max(initial=0))
    if not total:
        return b.full(targets.dtype, (len(numbers), 0), 0)
    starts = np.cumsum(numbers) - numbers
    places = np.minimum(starts[:, None] + np.arange(width), total - 1)
    index = b.tensor_from_numpy(np.ascontiguousarray(places.reshape(-1).astype(np.int64)))
    return b.reshape(b.gather(targets, index, 0), (len(numbers), width))
