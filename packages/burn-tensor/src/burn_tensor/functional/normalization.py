"""Normalisation over batches, features, groups, instances and channels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from burn_std import ArgumentError, DType, ShapeError
from burn_std.dtypes import bfloat16, float16, float32, float64
from burn_tensor.arguments import as_int, some_dims
from burn_tensor.functional.extents import Extent, Ints
from burn_tensor.functional.values import constant, in_dtype, is_buffer, rebind
from burn_tensor.tensor import Tensor

# The distance from 1 to the next float, PyTorch's eps of rms_norm where none is given.
_EPSILON: dict[DType, float] = {
    float16: 2.0**-10, bfloat16: 2.0**-7, float32: 2.0**-23, float64: 2.0**-52,
}  # fmt: skip


def _track(running: Tensor | None, seen: Tensor, momentum: float, factor: float = 1.0) -> None:
    """Move a running statistic towards what was seen; only a Buffer is rebound."""
    if running is None or not is_buffer(running):
        return
    seen = constant(seen)
    b = seen.b
    if factor != 1.0:
        seen = b.mul(seen, factor)
    old = in_dtype(constant(running), seen.dtype)
    rebind(running, b.add(b.mul(old, 1.0 - momentum), b.mul(seen, momentum)))


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return the input normalised per channel, scaled and shifted.

    y = (x - mean) / sqrt(var + eps) weight + bias

    In training mean and biased variance are those of the batch, and the running statistics move
    by `momentum` towards its mean and unbiased variance, if they are Buffers; other tensors are
    values and stay.

    Args:
        input: signals.
        running_mean: mean per channel, needed outside training.
        running_var: variance per channel, needed outside training.
        weight: scale per channel.
        bias: shift per channel.
        training: use the statistics of the batch.
        momentum: share of the batch in the new running statistics.
        eps: added to the variance.

    Shapes:
        input: [B, C, *]
        running_mean, running_var, weight, bias: [C]
        returns: [B, C, *]

    DTypes: floats. 16-bit floats compute in float32.

    Raises:
        ShapeError: ranks or channels do not fit, or one value per channel in training.
        ArgumentError: running statistics are missing outside training.

    Gradient: defined for input, weight and bias; in training also through the statistics.

    Example:
        >>> x = burn.tensor([[1.0], [3.0]])
        >>> burn.functional.batch_norm(x, None, None, training=True, eps=0.0).tolist()
        [[-1.0], [1.0]]

    Source: Ioffe and Szegedy, Batch Normalization, 2015
    """
    shape = input.shape
    if len(shape) < 2 and 0 in shape:
        return input
    if not training:
        return input.b.batch_norm(input, weight, bias, running_mean, running_var, False, eps)[0]
    count = prod(shape) // shape[1] if len(shape) > 1 and shape[1] else 0
    if count == 1:
        raise ShapeError(
            "batch_norm", "training needs more than one value per channel",
            got=f"input {list(shape)}",
            remedy="Use a larger batch, or training=False.",
        )  # fmt: skip
    out, mean, var = input.b.batch_norm(input, weight, bias, None, None, True, eps)
    if count:
        _track(running_mean, mean, momentum)
        _track(running_var, var, momentum, count / (count - 1))
    return out


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return every channel of every sample normalised by itself, scaled and shifted.

    Running statistics move as in `batch_norm`, by the mean over the samples, if they are Buffers.

    Args:
        input: signals.
        running_mean: mean per channel, needed without input statistics.
        running_var: variance per channel, needed without input statistics.
        weight: scale per channel.
        bias: shift per channel.
        use_input_stats: normalise by the sample's own statistics, else by the running ones.
        momentum: share of this call in the new running statistics.
        eps: added to the variance.

    Shapes:
        input: [B, C, *L]
        running_mean, running_var, weight, bias: [C]
        returns: [B, C, *L]

    DTypes: floats. 16-bit floats compute in float32.

    Raises:
        ShapeError: ranks or channels do not fit, or one value per channel of a sample.
        ArgumentError: running statistics are missing without input statistics.

    Gradient: defined for input, weight and bias.

    Example:
        >>> burn.functional.instance_norm(burn.tensor([[[1.0, 3.0]]]), eps=0.0).tolist()
        [[[-1.0, 1.0]]]

    Source: Ulyanov et al., Instance Normalization, 2016
    """
    if not use_input_stats:
        return input.b.batch_norm(input, weight, bias, running_mean, running_var, False, eps)[0]
    shape = input.shape
    if len(shape) < 3:
        raise ShapeError("instance_norm", "needs [B, C, *L]", got=f"input {list(shape)}")
    count = prod(shape[2:])
    if count == 1:
        raise ShapeError(
            "instance_norm", "needs more than one value per channel of a sample",
            got=f"input {list(shape)}",
        )  # fmt: skip
    out = input.b.group_norm(input, weight, bias, shape[1], eps)[0]
    # Of nothing there are no statistics.
    if 0 not in shape and (is_buffer(running_mean) or is_buffer(running_var)):
        x = constant(input)
        b, dims = x.b, tuple(range(2, len(shape)))
        mean = b.mean(b.mean(x, dims, False, None), (0,), False, None)
        var = b.mean(b.var(x, dims, False, 1), (0,), False, None)
        _track(running_mean, mean, momentum)
        _track(running_var, var, momentum)
    return out


def _normalized_rank(op: str, input: Tensor, normalized_shape: Sequence[int]) -> int:
    want = tuple(normalized_shape)
    n = len(want)
    shape = input.shape
    if not n or shape[len(shape) - n :] != want or len(shape) < n:
        raise ShapeError(
            op, "the input's last dims must be normalized_shape",
            got=f"input {list(shape)}, normalized_shape {list(want)}",
        )  # fmt: skip
    return n


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return the input normalised over its last dims, scaled and shifted.

    y = (x - mean) / sqrt(var + eps) weight + bias, var biased

    Args:
        input: any tensor.
        normalized_shape: extents of the dims that are normalised.
        weight: scale.
        bias: shift.
        eps: added to the variance.

    Shapes:
        input: [*, *normalized_shape]
        weight, bias: normalized_shape
        returns: the input's

    DTypes: floats. 16-bit floats compute in float32.

    Raises:
        ShapeError: the last dims, weight or bias do not have normalized_shape.

    Gradient: defined for input, weight and bias.

    Example:
        >>> burn.functional.layer_norm(burn.tensor([1.0, 3.0]), (2,), eps=0.0).tolist()
        [-1.0, 1.0]

    Source: Ba et al., Layer Normalization, 2016
    """
    n = _normalized_rank("layer_norm", input, normalized_shape)
    return input.b.layer_norm(input, weight, bias, n, eps)[0]


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Return the input divided by its root mean square over the last dims, scaled.

    y = x / sqrt(mean(x^2) + eps) weight

    Args:
        input: any tensor.
        normalized_shape: extents of the dims that are normalised.
        weight: scale.
        eps: added to the mean square; None is the dtype's distance from 1 to the next float.

    Shapes:
        input: [*, *normalized_shape]
        weight: normalized_shape
        returns: the input's

    DTypes: floats. 16-bit floats compute in float32.

    Raises:
        ShapeError: the last dims or weight do not have normalized_shape.

    Gradient: defined for input and weight.

    Example:
        >>> burn.functional.rms_norm(burn.tensor([2.0, -2.0]), (2,), eps=0.0).tolist()
        [1.0, -1.0]

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019
    """
    n = _normalized_rank("rms_norm", input, normalized_shape)
    if eps is None:
        eps = _EPSILON.get(input.dtype, 0.0)
    return input.b.rms_norm(input, weight, n, eps)[0]


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return the input normalised over groups of channels, scaled and shifted per channel.

    Args:
        input: signals.
        num_groups: number of groups; it divides the channels.
        weight: scale per channel.
        bias: shift per channel.
        eps: added to the variance.

    Shapes:
        input: [B, C, *]
        weight, bias: [C]
        returns: [B, C, *]

    DTypes: floats. 16-bit floats compute in float32.

    Raises:
        ShapeError: channels do not divide by groups, or there is one value per group in all.

    Gradient: defined for input, weight and bias.

    Example:
        >>> burn.functional.group_norm(burn.tensor([[1.0, 3.0]]), 1, eps=0.0).tolist()
        [[-1.0, 1.0]]

    Source: Wu and He, Group Normalization, 2018
    """
    shape = input.shape
    if prod(shape) == num_groups and len(shape) > 1:
        raise ShapeError(
            "group_norm", "needs more than one value per group",
            got=f"input {list(shape)}, num_groups {num_groups}",
        )  # fmt: skip
    return input.b.group_norm(input, weight, bias, num_groups, eps)[0]


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Return x / (k + alpha mean of x^2 over `size` neighbouring channels)^beta.

    Args:
        input: signals.
        size: channels in a window; it reaches size // 2 back and (size - 1) // 2 ahead.
        alpha: factor of the mean square.
        beta: exponent.
        k: added to the mean square.

    Shapes:
        input: [B, C, *L]
        returns: [B, C, *L]

    DTypes: ints and floats; ints give the default float.

    Raises:
        ShapeError: fewer than 3 dims.
        ArgumentError: size is not positive.

    Gradient: defined.

    Example:
        >>> burn.functional.local_response_norm(burn.ones(1, 2, 3), 2, alpha=0.0).tolist()
        [[[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]]

    Source: Krizhevsky et al., ImageNet Classification with Deep Convolutional Networks, 2012
    """
    shape = input.shape
    if len(shape) < 3:
        raise ShapeError("local_response_norm", "needs [B, C, *L]", got=f"input {list(shape)}")
    size = as_int("local_response_norm", "size", size)
    if size < 1:
        raise ArgumentError("local_response_norm", "size must be positive", got=size)
    if 0 in shape:
        return input
    b = input.b
    # Channels are the rows of a plane, so that one pooling window spans `size` of them.
    planes = b.reshape(b.mul(input, input), (shape[0], 1, shape[1], prod(shape[2:])))
    pads: tuple[Ints, ...] = ((0, 0), (0, 0), (size // 2, (size - 1) // 2), (0, 0))
    planes = b.pad(planes, "constant", pads, 0)
    means = b.avg_pool(planes, (size, 1), (1, 1), (0, 0), False, True, None)
    means = b.reshape(means, shape)
    return b.div(input, b.pow(b.add(b.mul(means, alpha), k), beta))


def normalize(input: Tensor, p: float = 2.0, dim: Extent | None = 1, eps: float = 1e-12) -> Tensor:
    """Return x / max(||x||_p, eps), the norm taken along dim.

    Args:
        input: any tensor.
        p: order of the norm.
        dim: the dims of one vector.
        eps: least divisor.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        IndexRangeError: dim is out of range.

    Gradient: defined; through the divisor only where it is at least eps.

    Example:
        >>> burn.functional.normalize(burn.tensor([[3.0, 4.0]]), eps=10.0).tolist()
        [[0.30000001192092896, 0.4000000059604645]]
    """
    b = input.b
    dims = some_dims("normalize", dim, len(input.shape))
    return b.div(input, b.clamp(b.vector_norm(input, dims, True, p), eps, None))
