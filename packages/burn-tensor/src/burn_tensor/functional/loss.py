"""Losses between an input and a target: one operation of the catalogue each, or a few maps.

`size_average` and `reduce` are PyTorch's old flags: they win over `reduction` when given.
"""

from __future__ import annotations

from math import log, pi

from burn_std import ArgumentError, ShapeError
from burn_tensor.functional.reduction import reduced, reduction_name, same_shape, warn_broadcast
from burn_tensor.functional.values import meeting, straight_through
from burn_tensor.tensor import Tensor


def _weighted(op: str, loss: Tensor, weight: Tensor, reduction: str, over_weights: bool) -> Tensor:
    """Return a loss per element times its weight, reduced; the mean may be over the weights."""
    if weight.shape != loss.shape:
        raise ShapeError(
            op, "weight must have the loss's shape",
            got=f"weight {list(weight.shape)}, loss {list(loss.shape)}",
        )  # fmt: skip
    b = meeting(op, loss, weight)
    scaled = b.mul(loss, weight)
    if reduction == "mean" and over_weights:
        return b.div(b.sum(scaled, None, False, None), b.sum(weight, None, False, None))
    return reduced(scaled, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return (input - target)^2, reduced.

    Args:
        input: predictions.
        target: what they should be; the two broadcast, with a warning.
        size_average: old flag.
        reduce: old flag.
        reduction: `none`, `mean` or `sum`.
        weight: factor per element; `mean` is then over the weights.

    Shapes:
        input, target, weight: [*]
        returns: [] or [*]

    DTypes: floats; the two promote. 16-bit floats compute in float32.

    Raises:
        ShapeError: the shapes do not broadcast.
        ArgumentError: the reduction is unknown.

    Gradient: defined for input, target and weight.

    Example:
        >>> burn.functional.mse_loss(burn.tensor([1.0, 3.0]), burn.tensor([0.0, 0.0])).item()
        5.0
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_name("mse_loss", reduction, size_average, reduce)
    if input.shape != target.shape:
        warn_broadcast("mse_loss", input, target)
    if weight is None:
        return input.b.mse_loss(input, target, reduction)
    return _weighted("mse_loss", input.b.mse_loss(input, target, "none"), weight, reduction, True)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return |input - target|, reduced.

    Args:
        input: predictions.
        target: what they should be; the two broadcast, with a warning.
        size_average: old flag.
        reduce: old flag.
        reduction: `none`, `mean` or `sum`.
        weight: factor per element; `mean` is then over the weights.

    Shapes:
        input, target, weight: [*]
        returns: [] or [*]

    DTypes: floats; the two promote. 16-bit floats compute in float32.

    Raises:
        ShapeError: the shapes do not broadcast.
        ArgumentError: the reduction is unknown.

    Gradient: the sign of the difference, 0 where there is none.

    Example:
        >>> burn.functional.l1_loss(burn.tensor([1.0, 3.0]), burn.tensor([0.0, 0.0])).item()
        2.0
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_name("l1_loss", reduction, size_average, reduce)
    if input.shape != target.shape:
        warn_broadcast("l1_loss", input, target)
    if weight is None:
        return input.b.l1_loss(input, target, reduction)
    return _weighted("l1_loss", input.b.l1_loss(input, target, "none"), weight, reduction, True)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Return d^2 / (2 beta) where d = |input - target| < beta, else d - beta / 2, reduced.

    Args:
        input: predictions.
        target: what they should be; the two broadcast, with a warning.
        size_average: old flag.
        reduce: old flag.
        reduction: `none`, `mean` or `sum`.
        beta: where the line takes over; 0 is `l1_loss`.

    Shapes:
        input, target: [*]
        returns: [] or [*]

    DTypes: floats; the two promote. 16-bit floats compute in float32.

    Raises:
        ShapeError: the shapes do not broadcast.
        ArgumentError: beta is negative, or the reduction is unknown.

    Gradient: defined for both.

    Example:
        >>> burn.functional.smooth_l1_loss(burn.tensor([3.0]), burn.tensor([0.0])).item()
        2.5

    Source: Girshick, Fast R-CNN, 2015
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_name("smooth_l1_loss", reduction, size_average, reduce)
    if beta < 0:
        raise ArgumentError("smooth_l1_loss", "beta must not be negative", got=beta)
    if input.shape != target.shape:
        warn_broadcast("smooth_l1_loss", input, target)
    return input.b.smooth_l1_loss(input, target, reduction, beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Return d^2 / 2 where d = |input - target| < delta, else delta (d - delta / 2), reduced.

    Args:
        input: predictions.
        target: what they should be; the two broadcast, with a warning.
        reduction: `none`, `mean` or `sum`.
        delta: where the line takes over, positive.
        weight: factor per element; `mean` stays over the elements.

    Shapes:
        input, target, weight: [*]
        returns: [] or [*]

    DTypes: floats; the two promote. 16-bit floats compute in float32.

    Raises:
        ShapeError: the shapes do not broadcast.
        ArgumentError: delta is not positive, or the reduction is unknown.

    Gradient: defined for input, target and weight.

    Example:
        >>> burn.functional.huber_loss(burn.tensor([3.0]), burn.tensor([0.0]), delta=2.0).item()
        4.0

    Source: Huber, Robust Estimation of a Location Parameter, 1964
    """
    if delta <= 0:
        raise ArgumentError("huber_loss", "delta must be positive", got=delta)
    if input.shape != target.shape:
        warn_broadcast("huber_loss", input, target)
    if weight is None:
        return input.b.huber_loss(input, target, reduction, delta)
    loss = input.b.huber_loss(input, target, "none", delta)
    return _weighted("huber_loss", loss, weight, reduction, False)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return -(t log x + (1 - t) log(1 - x)), the logs capped at -100, reduced.

    Probabilities of 0 and 1 lose their gradient; `binary_cross_entropy_with_logits` does not.

    Args:
        input: probabilities.
        target: probabilities.
        weight: factor, broadcast to the input.
        size_average: old flag.
        reduce: old flag.
        reduction: `none`, `mean` or `sum`.

    Shapes:
        input, target: [*]
        returns: [] or [*]

    DTypes: floats. 16-bit floats compute in float32.

    Raises:
        ShapeError: the target does not have the input's shape.
        ArgumentError: the reduction is unknown.

    Gradient: defined for input and target.

    Example:
        >>> burn.functional.binary_cross_entropy(burn.tensor([0.0]), burn.tensor([1.0])).item()
        100.0
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_name("binary_cross_entropy", reduction, size_average, reduce)
    same_shape("binary_cross_entropy", input, target)
    return input.b.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the binary cross-entropy of sigmoid(input), stable for any finite input, reduced.

    (1 - t) x - (1 + (pos_weight - 1) t) log sigmoid(x)

    Args:
        input: logits.
        target: probabilities.
        weight: factor, broadcast to the input.
        size_average: old flag.
        reduce: old flag.
        reduction: `none`, `mean` or `sum`.
        pos_weight: factor of the positive part, broadcast to the input.

    Shapes:
        input, target: [*]
        returns: [] or [*]

    DTypes: floats. 16-bit floats compute in float32.

    Raises:
        ShapeError: the target does not have the input's shape.
        ArgumentError: the reduction is unknown.

    Gradient: defined for input and target.

    Example:
        >>> x = burn.tensor([100.0])
        >>> burn.functional.binary_cross_entropy_with_logits(x, burn.tensor([0.0])).item()
        100.0
    """
    op = "binary_cross_entropy_with_logits"
    if size_average is not None or reduce is not None:
        reduction = reduction_name(op, reduction, size_average, reduce)
    same_shape(op, input, target)
    return input.b.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Return target (log target - input), 0 where the target is 0, reduced.

    The Kullback-Leibler divergence of a distribution `input`, given as logarithms, from `target`.

    Args:
        input: log-probabilities.
        target: probabilities, or their logarithms.
        size_average: old flag.
        reduce: old flag.
        reduction: `none`, `mean`, `sum`, or `batchmean` (the sum over the first extent), which is
            the divergence.
        log_target: the target is logarithms.

    Shapes:
        input, target: [*]
        returns: [] or [*]

    DTypes: floats; the two promote. 16-bit floats compute in float32.

    Raises:
        ShapeError: the shapes do not broadcast.
        ArgumentError: the reduction is unknown.

    Gradient: defined for both.

    Example:
        >>> p = burn.tensor([[0.0, 1.0]])
        >>> burn.functional.kl_div(burn.tensor([[-1.0, -2.0]]), p, reduction="batchmean").item()
        2.0
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_name("kl_div", reduction, size_average, reduce)
    if input.shape != target.shape:
        warn_broadcast("kl_div", input, target)
    return input.b.kl_div(input, target, reduction, log_target)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return -weight[t] input[t], 0 where ignored, reduced; `mean` is over the weights.

    Args:
        input: log-probabilities of classes.
        target: classes.
        weight: factor per class.
        size_average: old flag.
        ignore_index: target that counts nothing.
        reduce: old flag.
        reduction: `none`, `mean` or `sum`; `mean` with every target ignored is NaN.

    Shapes:
        input: [B, C, *] or [C]
        target: [B, *] or []
        weight: [C]
        returns: [] or the target's

    DTypes: input floats, target integers. 16-bit floats compute in float32.

    Raises:
        ShapeError: shapes do not fit.
        IndexRangeError: a target is no class.
        ArgumentError: the reduction is unknown.

    Gradient: defined for input.

    Example:
        >>> burn.functional.nll_loss(burn.tensor([[-1.0, -2.0]]), burn.tensor([1])).item()
        2.0
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_name("nll_loss", reduction, size_average, reduce)
    return input.b.nll_loss(input, target, weight, reduction, ignore_index)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return `nll_loss` of `log_softmax` over classes, or -sum(t log_softmax) for soft targets.

    Args:
        input: logits of classes.
        target: classes, or probabilities of them.
        weight: factor per class.
        size_average: old flag.
        ignore_index: class target that counts nothing.
        reduce: old flag.
        reduction: `none`, `mean` or `sum`; `mean` with every target ignored is NaN.
        label_smoothing: share of the target spread evenly over the classes.

    Shapes:
        input: [B, C, *] or [C]
        target: [B, *] or []; probabilities have the input's shape
        weight: [C]
        returns: [] or [B, *]

    DTypes: input floats, target integers or floats. 16-bit floats compute in float32.

    Raises:
        ShapeError: shapes do not fit.
        IndexRangeError: a target is no class.
        ArgumentError: the reduction is unknown, or label_smoothing is outside [0, 1].

    Gradient: defined for input, and for a target of probabilities.

    Example:
        >>> burn.functional.cross_entropy(burn.tensor([[0.0, 100.0]]), burn.tensor([0])).item()
        100.0
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_name("cross_entropy", reduction, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(
            "cross_entropy", "label_smoothing must be in [0, 1]", got=label_smoothing
        )
    return input.b.cross_entropy(
        input, target, weight, reduction, None, ignore_index, label_smoothing
    )


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Return (log v + (input - target)^2 / v) / 2 with v = max(var, eps), reduced.

    Args:
        input: expected values.
        target: samples.
        var: variances, of the input's shape, without its last dim, or broadcast to it.
        full: add the constant log(2 pi) / 2.
        eps: least variance; the gradient for var does not see it.
        reduction: `none`, `mean` or `sum`.

    Shapes:
        input, target: [*, N]
        var: [*, N], [*, 1] or [*]
        returns: [] or [*, N]

    DTypes: floats; the three promote.

    Raises:
        ShapeError: shapes do not fit.
        ArgumentError: the reduction is unknown, or a variance given as a number is negative.

    Gradient: defined for input, target and var.

    Example:
        >>> x, t = burn.tensor([3.0]), burn.tensor([1.0])
        >>> burn.functional.gaussian_nll_loss(x, t, t).item()
        2.0

    Source: Nix and Weigend, Estimating the Mean and Variance of the Target Distribution, 1994
    """
    op = "gaussian_nll_loss"
    reduction = reduction_name(op, reduction)
    if isinstance(var, (int, float)):
        if var < 0:
            raise ArgumentError(op, "a variance is not negative", got=var)
        spread = input.b.full(input.dtype, (), float(var))
    else:
        spread = var
    b = meeting(op, input, target, spread)
    shape, own = input.shape, spread.shape
    if own != shape:
        if shape and own == shape[:-1]:
            spread = b.unsqueeze(spread, (len(own),))
        elif len(own) > len(shape) or any(
            v not in (1, n) for v, n in zip(reversed(own), reversed(shape), strict=False)
        ):
            raise ShapeError(
                op, "var must have the input's shape, lack its last dim, or broadcast to it",
                got=f"input {list(shape)}, var {list(own)}",
            )  # fmt: skip
    v = straight_through(spread, b.clamp(spread, eps, None))
    loss = b.mul(b.add(b.log(v), b.div(b.square(b.sub(input, target)), v)), 0.5)
    if full:
        loss = b.add(loss, 0.5 * log(2 * pi))
    return reduced(loss, reduction)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return exp(input) - target input, or input - target log(input + eps), reduced.

    Args:
        input: logarithms of expected counts, or the counts.
        target: counts seen.
        log_input: the input is logarithms.
        full: add Stirling's t log t - t + log(2 pi t) / 2 where t > 1.
        size_average: old flag.
        eps: keeps the logarithm finite.
        reduce: old flag.
        reduction: `none`, `mean` or `sum`.

    Shapes:
        input, target: [*]; the two broadcast, with a warning
        returns: [] or [*]

    DTypes: ints and floats; ints give the default float.

    Raises:
        ShapeError: the shapes do not broadcast.
        ArgumentError: the reduction is unknown.

    Gradient: defined for both.

    Example:
        >>> burn.functional.poisson_nll_loss(burn.tensor([0.0]), burn.tensor([2.0])).item()
        1.0
    """
    op = "poisson_nll_loss"
    reduction = reduction_name(op, reduction, size_average, reduce)
    b = meeting(op, input, target)
    if input.shape != target.shape:
        warn_broadcast(op, input, target)
    if log_input:
        loss = b.sub(b.exp(input), b.mul(target, input))
    else:
        loss = b.sub(input, b.mul(target, b.log(b.add(input, float(eps)))))
    if full:
        few = b.le(target, 1)
        # Small counts are replaced before the logarithm, so that no NaN reaches their gradient.
        t = b.where(few, 1, target)
        half = b.mul(b.log(b.mul(t, 2 * pi)), 0.5)
        stirling = b.add(b.sub(b.mul(t, b.log(t)), t), half)
        loss = b.add(loss, b.where(few, 0, stirling))
    return reduced(loss, reduction)
