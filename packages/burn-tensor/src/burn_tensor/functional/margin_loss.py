"""Losses with a margin, over pairs, triplets and classes, written in maps and reductions.

`size_average` and `reduce` are PyTorch's old flags: they win over `reduction` when given.
"""

from __future__ import annotations

from collections.abc import Callable

from burn_std import ArgumentError, DTypeError, ShapeError
from burn_std.dtypes import int64
from burn_tensor.functional.distance import pairwise_distance
from burn_tensor.functional.extents import Ints
from burn_tensor.functional.reduction import reduced, reduction_name, same_shape, warn_broadcast
from burn_tensor.functional.values import in_dtype, meeting
from burn_tensor.tensor import Tensor


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return max(0, -target (input1 - input2) + margin), reduced.

    Args:
        input1: scores.
        input2: scores.
        target: 1 where input1 should rank higher, -1 where lower.
        margin: by how much.
        size_average: old flag.
        reduce: old flag.
        reduction: `none`, `mean` or `sum`.

    Shapes:
        input1, input2, target: [*], of one rank; they broadcast
        returns: [] or [*]

    DTypes: ints and floats; ints with a float margin give the default float.

    Raises:
        ShapeError: the ranks differ or the shapes do not broadcast.
        ArgumentError: the reduction is unknown.

    Gradient: defined for all three.

    Example:
        >>> one, two = burn.tensor([1.0]), burn.tensor([2.0])
        >>> burn.functional.margin_ranking_loss(one, two, burn.tensor([1.0])).item()
        1.0
    """
    op = "margin_ranking_loss"
    reduction = reduction_name(op, reduction, size_average, reduce)
    if not len(input1.shape) == len(input2.shape) == len(target.shape):
        raise ShapeError(
            op, "the inputs and the target have one rank",
            got=f"{list(input1.shape)}, {list(input2.shape)}, {list(target.shape)}",
        )  # fmt: skip
    b = meeting(op, input1, input2, target)
    gap = b.mul(b.neg(target), b.sub(input1, input2))
    return reduced(b.clamp(b.add(gap, margin), 0, None), reduction)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the input where target is 1, max(0, margin - input) where it is -1, reduced.

    Args:
        input: distances.
        target: 1 for similar pairs, -1 for others.
        margin: distance that others should have.
        size_average: old flag.
        reduce: old flag.
        reduction: `none`, `mean` or `sum`.

    Shapes:
        input, target: [*]; the two broadcast, with a warning
        returns: [] or [*]

    DTypes: ints and floats; ints with a float margin give the default float.

    Raises:
        ShapeError: the shapes do not broadcast.
        ArgumentError: the reduction is unknown.

    Gradient: defined for input.

    Example:
        >>> burn.functional.hinge_embedding_loss(burn.tensor([0.25]), burn.tensor([-1.0])).item()
        0.75
    """
    op = "hinge_embedding_loss"
    reduction = reduction_name(op, reduction, size_average, reduce)
    b = meeting(op, input, target)
    if input.shape != target.shape:
        warn_broadcast(op, input, target)
    far = b.clamp(b.sub(margin, input), 0, None)
    apart = b.where(b.ne(target, 1), far, 0)
    return reduced(b.add(apart, b.where(b.ne(target, -1), input, 0)), reduction)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return log(1 + exp(-target input)), stable for any finite input, reduced.

    Args:
        input: scores.
        target: 1 or -1.
        size_average: old flag.
        reduce: old flag.
        reduction: `none`, `mean` or `sum`.

    Shapes:
        input, target: [*]; the two broadcast, with a warning
        returns: [] or [*]

    DTypes: floats; the target may be ints.

    Raises:
        ShapeError: the shapes do not broadcast.
        ArgumentError: the reduction is unknown.

    Gradient: defined for both.

    Example:
        >>> burn.functional.soft_margin_loss(burn.tensor([-200.0]), burn.tensor([1.0])).item()
        200.0
    """
    op = "soft_margin_loss"
    reduction = reduction_name(op, reduction, size_average, reduce)
    b = meeting(op, input, target)
    if input.shape != target.shape:
        warn_broadcast(op, input, target)
    return reduced(b.softplus(b.neg(b.mul(target, input)), 1.0, 20.0), reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean over classes of -(t log s + (1 - t) log(1 - s)), s = sigmoid(input), reduced.

    Args:
        input: logits of classes.
        target: 1 for each class that holds, else 0.
        weight: factor per class.
        size_average: old flag.
        reduce: old flag.
        reduction: `none`, `mean` or `sum`.

    Shapes:
        input, target: [*, C]
        weight: [C]
        returns: [] or [*]

    DTypes: floats.

    Raises:
        ShapeError: the shapes do not broadcast.
        ArgumentError: the reduction is unknown.

    Gradient: defined for all three.

    Example:
        >>> x = burn.tensor([[100.0, -100.0]])
        >>> burn.functional.multilabel_soft_margin_loss(x, burn.tensor([[0.0, 0.0]])).item()
        50.0
    """
    op = "multilabel_soft_margin_loss"
    reduction = reduction_name(op, reduction, size_average, reduce)
    if not input.shape:
        raise ShapeError(op, "needs [*, C]", got="a rank-0 input")
    b = meeting(op, input, target, weight)
    rest = b.mul(b.sub(1, target), b.logsigmoid(b.neg(input)))
    loss = b.neg(b.add(b.mul(target, b.logsigmoid(input)), rest))
    if weight is not None:
        loss = b.mul(loss, weight)
    return reduced(b.mean(loss, (len(loss.shape) - 1,), False, None), reduction)


def _classes(op: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor, bool]:
    """Return input [B, C] and int64 targets with a batch dim, and whether that was added."""
    if not target.dtype.is_int:
        raise DTypeError(op, "class targets are integers", got=target.dtype)
    target = in_dtype(target, int64)
    single = len(input.shape) < 2
    if single:
        count = input.shape[0] if input.shape else 1
        input = input.b.reshape(input, (1, count))
        target = target.b.unsqueeze(target, (0,))
    return input, target, single


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return sum over true j and other i of max(0, 1 - (input[j] - input[i])) / C, reduced.

    Args:
        input: scores of classes.
        target: true classes, the first -1 ends the list.
        size_average: old flag.
        reduce: old flag.
        reduction: `none`, `mean` or `sum`.

    Shapes:
        input, target: [B, C] or [C]
        returns: [], or [B] with `none`

    DTypes: input floats, target integers.

    Raises:
        ShapeError: the target does not have the input's shape.
        IndexRangeError: a target is no class.
        ArgumentError: the reduction is unknown.

    Gradient: defined for input.

    Example:
        >>> x = burn.tensor([0.0, 0.0])
        >>> burn.functional.multilabel_margin_loss(x, burn.tensor([1, -1])).item()
        0.5
    """
    op = "multilabel_margin_loss"
    reduction = reduction_name(op, reduction, size_average, reduce)
    same_shape(op, input, target)
    if len(input.shape) > 2:
        raise ShapeError(op, "needs [B, C] or [C]", got=f"input {list(input.shape)}")
    rank = len(input.shape)
    b = meeting(op, input, target)
    if not rank:
        target = b.reshape(target, (1,))
    x, labels, single = _classes(op, input, target)
    classes = x.shape[1]
    # 1 up to the first -1 of a row, 0 from there on.
    listed = b.cumprod(in_dtype(b.ge(labels, 0), int64), 1, None)
    safe = b.mul(labels, listed)
    marks = b.mul(b.one_hot(safe, classes), b.unsqueeze(listed, (2,)))  # [B, C, C]
    other = b.eq(b.sum(marks, (1,), True, None), 0)  # [B, 1, C]
    true = b.unsqueeze(b.gather(x, safe, 1), (2,))  # [B, C, 1]
    gap = b.clamp(b.sub(1, b.sub(true, b.unsqueeze(x, (1,)))), 0, None)
    pairs = b.logical_and(b.unsqueeze(b.gt(listed, 0), (2,)), other)
    loss = b.div(b.sum(b.where(pairs, gap, 0.0), (1, 2), False, None), classes)
    return _reduced_rows(loss, reduction, single)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return sum over i != t of weight[t] max(0, margin - input[t] + input[i])^p / C, reduced.

    Args:
        input: scores of classes.
        target: the true class.
        p: 1 or 2.
        margin: by how much the true class should win.
        weight: factor per class.
        size_average: old flag.
        reduce: old flag.
        reduction: `none`, `mean` or `sum`.

    Shapes:
        input: [B, C] or [C]
        target: [B] or []
        weight: [C]
        returns: [], or [B] with `none`

    DTypes: input floats, target integers.

    Raises:
        ShapeError: shapes do not fit.
        IndexRangeError: a target is no class.
        ArgumentError: p is neither 1 nor 2, or the reduction is unknown.

    Gradient: defined for input.

    Example:
        >>> burn.functional.multi_margin_loss(burn.tensor([0.0, 1.0]), burn.tensor(0)).item()
        1.0
    """
    op = "multi_margin_loss"
    reduction = reduction_name(op, reduction, size_average, reduce)
    if p not in (1, 2):
        raise ArgumentError(op, "p is 1 or 2", got=p)
    b = meeting(op, input, target, weight)
    if len(input.shape) < 2 and target.shape == (1,):
        target = b.reshape(target, ())
    x, labels, single = _classes(op, input, target)
    if len(x.shape) != 2 or labels.shape != x.shape[:1]:
        raise ShapeError(
            op, "input [B, C] needs target [B]",
            got=f"input {list(input.shape)}, target {list(target.shape)}",
        )  # fmt: skip
    classes = x.shape[1]
    at = b.unsqueeze(labels, (1,))
    gap = b.clamp(b.sub(margin, b.sub(b.gather(x, at, 1), x)), 0, None)
    if p == 2:
        gap = b.square(gap)
    if weight is not None:
        gap = b.mul(gap, b.unsqueeze(b.gather(weight, labels, 0), (1,)))
    others = b.eq(b.one_hot(labels, classes), 0)
    loss = b.div(b.sum(b.where(others, gap, 0.0), (1,), False, None), classes)
    return _reduced_rows(loss, reduction, single)


def _reduced_rows(loss: Tensor, reduction: str, single: bool) -> Tensor:
    if single:
        return loss.b.reshape(loss, ())
    return reduced(loss, reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return max(0, d(anchor, positive) - d(anchor, negative) + margin), reduced.

    Args:
        anchor: vectors.
        positive: vectors that should be near.
        negative: vectors that should be far.
        margin: by how much.
        p: order of the norm.
        eps: added to every difference.
        swap: use d(positive, negative) where it is smaller.
        size_average: old flag.
        reduce: old flag.
        reduction: `none`, `mean` or `sum`.

    Shapes:
        anchor, positive, negative: [*, N], of one rank
        returns: [] or [*]

    DTypes: ints and floats; ints give the default float.

    Raises:
        ShapeError: the ranks differ or the shapes do not broadcast.
        ArgumentError: the reduction is unknown, or the margin is not positive.

    Gradient: defined for all three.

    Example:
        >>> x, y = burn.zeros(1, 2), burn.ones(1, 2)
        >>> burn.functional.triplet_margin_loss(x, y, y).item()
        1.0

    Source: Balntas et al., Learning Shallow Convolutional Feature Descriptors with Triplet Losses,
    2016
    """
    op = "triplet_margin_loss"
    reduction = reduction_name(op, reduction, size_average, reduce)
    if margin <= 0:
        raise ArgumentError(op, "margin must be positive", got=margin)
    if not len(anchor.shape) == len(positive.shape) == len(negative.shape):
        raise ShapeError(
            op, "anchor, positive and negative have one rank",
            got=f"{list(anchor.shape)}, {list(positive.shape)}, {list(negative.shape)}",
        )  # fmt: skip

    def distance(x: Tensor, y: Tensor) -> Tensor:
        return pairwise_distance(x, y, p, eps)

    return _triplet(op, anchor, positive, negative, distance, margin, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return `triplet_margin_loss` with a distance of the caller's.

    Args:
        anchor: samples.
        positive: samples that should be near.
        negative: samples that should be far.
        distance_function: distance of two batches; None is `pairwise_distance`.
        margin: by how much.
        swap: use the distance of positive and negative where it is smaller.
        reduction: `none`, `mean` or `sum`.

    Shapes:
        anchor, positive, negative: [*, N]
        returns: [] or [*]

    DTypes: what the distance takes.

    Raises:
        ArgumentError: the reduction is unknown, or the margin is not positive.

    Gradient: defined for all three.

    Example:
        >>> x, y = burn.zeros(1, 2), burn.ones(1, 2)
        >>> burn.functional.triplet_margin_with_distance_loss(x, y, y).item()
        1.0
    """
    op = "triplet_margin_with_distance_loss"
    reduction = reduction_name(op, reduction)
    if margin <= 0:
        raise ArgumentError(op, "margin must be positive", got=margin)
    distance = pairwise_distance if distance_function is None else distance_function
    return _triplet(op, anchor, positive, negative, distance, margin, swap, reduction)


def _triplet(
    op: str, anchor: Tensor, positive: Tensor, negative: Tensor,
    distance: Callable[[Tensor, Tensor], Tensor], margin: float, swap: bool, reduction: str,
) -> Tensor:  # fmt: skip
    near, far = distance(anchor, positive), distance(anchor, negative)
    b = meeting(op, near, far)
    if swap:
        far = b.minimum(far, distance(positive, negative))
    return reduced(b.clamp(b.add(b.sub(near, far), margin), 0, None), reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return 1 - cos where target is 1, max(0, cos - margin) where it is -1, reduced.

    Args:
        input1: vectors.
        input2: vectors.
        target: 1 for similar pairs, -1 for others.
        margin: cosine that others may have.
        size_average: old flag.
        reduce: old flag.
        reduction: `none`, `mean` or `sum`.

    Shapes:
        input1, input2: [B, N] or [N]
        target: [B] or []
        returns: [] or the target's

    DTypes: any; ints and bools give the default float.

    Raises:
        ShapeError: shapes do not fit.
        ArgumentError: the reduction is unknown.

    Gradient: defined for both inputs.

    Example:
        >>> x = burn.tensor([1.0, 0.0])
        >>> burn.functional.cosine_embedding_loss(x, x, burn.tensor(-1)).item()
        1.0
    """
    op = "cosine_embedding_loss"
    reduction = reduction_name(op, reduction, size_average, reduce)
    rank = len(input1.shape)
    if rank not in (1, 2) or len(input2.shape) != rank or len(target.shape) != rank - 1:
        raise ShapeError(
            op, "inputs [B, N] need target [B], inputs [N] a rank-0 one",
            got=f"{list(input1.shape)}, {list(input2.shape)}, {list(target.shape)}",
        )  # fmt: skip
    b = meeting(op, input1, input2, target)
    last: Ints = (rank - 1,)

    def dot(x: Tensor, y: Tensor) -> Tensor:
        return b.sum(b.mul(x, y), last, False, None)

    squares = b.mul(b.add(dot(input1, input1), 1e-12), b.add(dot(input2, input2), 1e-12))
    cosine = b.div(dot(input1, input2), b.sqrt(squares))
    alike = b.where(b.eq(target, 1), b.sub(1, cosine), 0)
    apart = b.where(b.eq(target, -1), b.clamp(b.sub(cosine, margin), 0, None), 0)
    return reduced(b.add(alike, apart), reduction)
