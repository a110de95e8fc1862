"""Rules of losses."""

from __future__ import annotations

from typing import Any

from burn_ir.entry import Spec
from burn_ir.rules.basic import Shape, broadcast_shapes, check_dtype
from burn_std import ArgumentError, DType, DTypeError, ShapeError


def loss(op: str, accepts: str = "numeric") -> Any:
    """Rule of an elementwise loss: specs broadcast, reduction is the first attribute."""

    def rule(*args: Any) -> Spec:
        specs = [a for a in args if isinstance(a, Spec)]
        reduction = next(a for a in args if isinstance(a, str))
        check_dtype(op, accepts, *specs)
        if reduction == "batchmean" and op != "kl_div":
            raise ArgumentError(op, "reduction is none, mean or sum", got=repr(reduction))
        return reduced(
            op, broadcast_shapes(op, *(s.shape for s in specs)), reduction, specs[0].dtype
        )

    return rule


def reduced(op: str, shape: Shape, reduction: str, dtype: DType) -> Spec:
    """Return the spec of a loss after its reduction."""
    if reduction not in ("none", "mean", "sum", "batchmean"):
        raise ArgumentError(op, "reduction is none, mean or sum", got=repr(reduction))
    return Spec(shape if reduction == "none" else (), dtype)


def _without_classes(shape: Shape) -> Shape:
    """Return [N, *] of [N, C, *], [] of [C]."""
    return () if len(shape) == 1 else (shape[0], *shape[2:])


def nll_loss(x: Spec, target: Spec, weight: Spec | None, reduction: str, ignore_index: int) -> Spec:
    """Rule of nll_loss: x [N, C, *] or [C], target [N, *] or []."""
    check_dtype("nll_loss", "float", x, weight)
    if not target.dtype.is_int:
        raise DTypeError("nll_loss", "class targets are integers", got=target)
    if not x.shape or target.shape != _without_classes(x.shape):
        raise ShapeError(
            "nll_loss", "input [N, C, *] needs target [N, *]", got=f"input {x}, target {target}"
        )
    if weight is not None and weight.shape != (x.shape[min(1, x.rank - 1)],):
        raise ShapeError("nll_loss", "weight is [classes]", got=weight)
    return reduced("nll_loss", target.shape, reduction, x.dtype)


def cross_entropy(
    x: Spec, target: Spec, weight: Spec | None, reduction: str, dtype: DType | None,
    ignore_index: int,
) -> Spec:  # fmt: skip
    """Rule of cross_entropy: class indices as nll_loss, or probabilities of the input's shape."""
    check_dtype("cross_entropy", "float", x, weight)
    if dtype is not None:
        if not dtype.is_float:
            raise DTypeError("cross_entropy", "dtype is a float", got=dtype)
        x = Spec(x.shape, dtype)
    if target.dtype.is_float:
        if target.shape != x.shape:
            raise ShapeError(
                "cross_entropy",
                "probability targets have the input's shape",
                got=f"input {x}, target {target}",
            )
        if not x.shape:
            raise ShapeError("cross_entropy", "input is [N, C, *] or [C]", got=x)
        classes = x.shape[1] if x.rank > 1 else x.shape[0]
        if weight is not None and weight.shape != (classes,):
            raise ShapeError("cross_entropy", "weight is [classes]", got=weight)
        return reduced("cross_entropy", _without_classes(x.shape), reduction, x.dtype)
    try:
        return nll_loss(x, target, weight, reduction, ignore_index)
    except (ShapeError, DTypeError, ArgumentError) as e:
        raise type(e)("cross_entropy", e.rule, got=e.got, remedy=e.remedy) from None


def cross_entropy_backward(
    g: Spec, x: Spec, target: Spec, weight: Spec | None, reduction: str, dtype: DType | None,
    ignore_index: int,
) -> Spec:  # fmt: skip
    """Rule of cross_entropy_backward: x, for class indices and a g of the loss's shape."""
    name = "cross_entropy_backward"
    if not target.dtype.is_int:
        raise DTypeError(name, "class targets are integers", got=target)
    loss = cross_entropy(x, target, weight, reduction, dtype, ignore_index)
    if g.shape != loss.shape or g.dtype is not loss.dtype:
        raise ShapeError(name, "g is like the loss", got=f"{g} for {loss}")
    return x


def ctc_loss(
    log_probs: Spec, targets: Spec, input_lengths: Spec, target_lengths: Spec, blank: int
) -> tuple[Spec, Spec]:
    """Rule of ctc_loss: log_probs [T, N, C], targets [N, S]; (loss [N], gradient [T, N, C])."""
    check_dtype("ctc_loss", "float", log_probs)
    check_dtype("ctc_loss", "int", targets, input_lengths, target_lengths)
    if (
        log_probs.rank != 3
        or targets.rank != 2
        or targets.shape[0] != log_probs.shape[1]
        or input_lengths.shape != (log_probs.shape[1],)
        or target_lengths.shape != (log_probs.shape[1],)
    ):
        raise ShapeError(
            "ctc_loss",
            "log_probs [T, N, C], targets [N, S], lengths [N]",
            got=f"{log_probs}, {targets}, {input_lengths}, {target_lengths}",
        )
    if not 0 <= blank < log_probs.shape[2]:
        raise ArgumentError("ctc_loss", "blank is a class", got=blank)
    return Spec((log_probs.shape[1],), log_probs.dtype), log_probs
