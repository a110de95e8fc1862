"""Max pooling over windows whose places are drawn at random, to a size that need not divide."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from burn_std import ArgumentError, DTypeError, ShapeError
from burn_std.dtypes import int64
from burn_tensor.functional.extents import Extent, Ints, spread
from burn_tensor.functional.values import constant, in_dtype, meeting, widened
from burn_tensor.tensor import Tensor

Ratio = float | Sequence[float]


def output_extents(op: str, n: int, last: Ints, size: Extent | None, ratio: Ratio | None) -> Ints:
    """Return the extents asked for, as numbers or as shares of the input's.

    Raises:
        ArgumentError: both or none are given, or a share is not between 0 and 1.
    """
    if (size is None) == (ratio is None):
        raise ArgumentError(
            op, "either output_size or output_ratio is given",
            got=f"output_size {size}, output_ratio {ratio}",
        )  # fmt: skip
    if size is not None:
        return spread(op, "output_size", size, n)
    ratios = (ratio,) * n if isinstance(ratio, (int, float)) else tuple(ratio or ())
    if len(ratios) != n or not all(0 < r < 1 for r in ratios):
        raise ArgumentError(op, f"output_ratio is a number or {n}, all between 0 and 1", got=ratio)
    return tuple(int(e * r) for e, r in zip(last, ratios, strict=True))


def _starts(sample: Tensor, extent: int, kernel: int, out: int) -> Tensor:
    """Return where the windows of one dim begin, [B, C, out], for samples [B, C]."""
    b, last = sample.b, extent - kernel
    places = b.arange(int64, out, 0, 1)
    if out < 2:
        return b.full(int64, (*sample.shape, out), last)
    step = last / (out - 1)
    sample = b.unsqueeze(sample, (2,))
    shifted = b.add(in_dtype(places, sample.dtype), sample)
    begin = b.sub(b.trunc(b.mul(shifted, step)), b.trunc(b.mul(sample, step)))
    # The last window ends where the input ends.
    return b.where(b.lt(places, out - 1), in_dtype(begin, int64), last)


def _fractional(
    op: str, n: int, input: Tensor, kernel_size: Extent, output_size: Extent | None,
    output_ratio: Ratio | None, return_indices: bool, samples: Tensor | None,
) -> Any:  # fmt: skip
    shape = input.shape
    if len(shape) not in (n + 1, n + 2):
        raise ShapeError(op, f"needs {n + 1} or {n + 2} dims", got=f"input {list(shape)}")
    if not input.dtype.is_float:
        raise DTypeError(op, "needs floats", got=input.dtype)
    lead, last = shape[:-n], shape[-n:]
    rows = lead if len(lead) == 2 else (1, *lead)
    kernel = spread(op, "kernel_size", kernel_size, n)
    out = output_extents(op, n, last, output_size, output_ratio)
    if not all(
        k > 0 and o > 0 and k + o - 1 <= e for k, o, e in zip(kernel, out, last, strict=True)
    ):
        raise ShapeError(
            op, "kernel_size and output_size are positive, and kernel + output - 1 fits the input",
            got=f"input {list(shape)}, kernel {list(kernel)}, output {list(out)}",
        )  # fmt: skip
    b = meeting(op, input, samples)
    if samples is None:
        samples = b.uniform(widened(input).dtype, (*rows, n), 0.0, 1.0, b.next_key())
    elif samples.shape != (*rows, n):
        raise ShapeError(op, f"_random_samples has the shape {[*rows, n]}", got=list(samples.shape))
    samples = constant(widened(samples))
    flat: Tensor | int = 0
    # PyTorch takes the samples of 2 dims from the last dim on, those of 3 from the first.
    columns = range(n) if n == 3 else range(n - 1, -1, -1)
    for d, column in enumerate(columns):
        begin = _starts(b.select(samples, 2, column), last[d], kernel[d], out[d])
        inside = b.add(b.unsqueeze(begin, (3,)), b.arange(int64, kernel[d], 0, 1))
        window = [1] * (2 * n)
        window[d], window[n + d] = out[d], kernel[d]
        place = b.mul(b.reshape(inside, (*rows, *window)), prod(last[d + 1 :]))
        flat = b.add(place, flat)
    count = prod(out)
    flat = b.reshape(flat, (*rows, count, prod(kernel)))
    x = b.reshape(input, (*rows, prod(last)))
    seen = b.gather(constant(x), b.reshape(flat, (*rows, count * prod(kernel))), 2)
    best = b.argmax(b.reshape(seen, flat.shape), 3, True)
    index = b.reshape(b.gather(flat, best, 3), (*rows, count))
    values = b.reshape(b.gather(x, index, 2), (*lead, *out))
    return (values, b.reshape(index, (*lead, *out))) if return_indices else values


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Extent,
    output_size: Extent | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the maxima of windows over the last 2 dims at places drawn at random.

    Window i of an extent L with windows of K begins at trunc((i + u) a) - trunc(u a) with
    a = (L - K) / (S - 1) and one u in [0, 1) per plane and dim; the last one ends at L.

    Args:
        input: planes, batched or not.
        kernel_size: extents of a window.
        output_size: extents of the result.
        output_ratio: extents of the result as shares of the input's.
        return_indices: also return the flat index of each maximum in its plane.
        _random_samples: the numbers u, for width and height; drawn if None.

    Shapes:
        input: [B, C, H, W] or [C, H, W]
        _random_samples: [B, C, 2], B = 1 if not batched
        returns: [B, C, H', W'], with return_indices a pair of them, the second int64

    DTypes: floats.

    Raises:
        ShapeError: ranks do not fit, or kernel + output - 1 exceeds the input.
        ArgumentError: output_size and output_ratio are both given or both missing.
        DTypeError: ints and bools.

    Gradient: to the lowest index of each maximum.

    Example:
        >>> burn.functional.fractional_max_pool2d(burn.ones(1, 1, 7, 7), 2, output_size=3).shape
        (1, 1, 3, 3)

    Source: Graham, Fractional Max-Pooling, 2014
    """
    return _fractional(
        "fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio, return_indices,
        _random_samples,
    )  # fmt: skip


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Extent,
    output_size: Extent | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the maxima of windows over the last 3 dims at places drawn at random.

    As `fractional_max_pool2d`, for volumes.

    Args:
        input: volumes, batched or not.
        kernel_size: extents of a window.
        output_size: extents of the result.
        output_ratio: extents of the result as shares of the input's.
        return_indices: also return the flat index of each maximum in its volume.
        _random_samples: the numbers u, for depth, height and width; drawn if None.

    Shapes:
        input: [B, C, D, H, W] or [C, D, H, W]
        _random_samples: [B, C, 3], B = 1 if not batched
        returns: [B, C, D', H', W'], with return_indices a pair of them, the second int64

    DTypes: floats.

    Raises:
        ShapeError: ranks do not fit, or kernel + output - 1 exceeds the input.
        ArgumentError: output_size and output_ratio are both given or both missing.
        DTypeError: ints and bools.

    Gradient: to the lowest index of each maximum.

    Example:
        >>> x = burn.ones(1, 1, 7, 7, 7)
        >>> burn.functional.fractional_max_pool3d(x, 2, output_ratio=0.5).shape
        (1, 1, 3, 3, 3)

    Source: Graham, Fractional Max-Pooling, 2014
    """
    return _fractional(
        "fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio, return_indices,
        _random_samples,
    )  # fmt: skip
