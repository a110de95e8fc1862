"""How losses are reduced: PyTorch's names, its old flags, and the sums and means themselves."""

from __future__ import annotations

import sys
import warnings

from burn_std import ArgumentError, BroadcastWarning, ShapeError
from burn_tensor.tensor import Tensor


def reduction_name(
    op: str, reduction: str, size_average: bool | None = None, reduce: bool | None = None
) -> str:
    """Return the reduction asked for by name or by PyTorch's old flags.

    Raises:
        ArgumentError: the name is unknown.
    """
    if size_average is not None or reduce is not None:
        if reduce is False:
            return "none"
        return "sum" if size_average is False else "mean"
    if reduction not in ("mean", "none", "sum"):
        raise ArgumentError(op, "reduction is none, mean or sum", got=repr(reduction))
    return reduction


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """Return a loss after its reduction."""
    if reduction == "mean":
        return loss.b.mean(loss, None, False, None)
    return loss.b.sum(loss, None, False, None) if reduction == "sum" else loss


def same_shape(op: str, input: Tensor, target: Tensor) -> None:
    """Raise ShapeError unless the target has the input's shape."""
    if input.shape != target.shape:
        raise ShapeError(
            op, "the target must have the input's shape",
            got=f"input {list(input.shape)}, target {list(target.shape)}",
            remedy="Expand or reshape one of them.",
        )  # fmt: skip


def warn_broadcast(op: str, input: Tensor, target: Tensor) -> None:
    """Warn in the caller's line that a loss is about to broadcast; [N] against [N, 1] is [N, N].

    The functions of elementwise losses call it where the shapes differ. Shapes that do not
    broadcast are left to the operation, which raises.
    """
    pairs = zip(reversed(input.shape), reversed(target.shape), strict=False)
    if any(m != n and 1 not in (m, n) for m, n in pairs):
        return
    level, frame = 1, sys._getframe()
    # The guards of functions run without a module name.
    own = "burn_"
    while frame.f_back is not None and frame.f_globals.get("__name__", own).startswith(own):
        level, frame = level + 1, frame.f_back
    warnings.warn(BroadcastWarning(op, input.shape, target.shape), stacklevel=level)
