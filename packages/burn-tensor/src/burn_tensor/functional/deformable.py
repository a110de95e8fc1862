"""Deformable convolution: sampling at moved points, then a product."""

from __future__ import annotations

from collections.abc import Iterable

from burn_std import ShapeError
from burn_std.dtypes import float32
from burn_tensor.creation import tensor
from burn_tensor.functional.extents import Extent, spread
from burn_tensor.functional.values import in_dtype, meeting
from burn_tensor.tensor import Tensor


def deform_conv2d(
    input: Tensor,
    offset: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Extent = 1,
    padding: Extent = 0,
    dilation: Extent = 1,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the convolution of images sampled bilinearly at moved points of each window.

    y[n, o, p] = bias[o] + sum over c, k of weight[o, c, k] mask[n, k, p] x[n, c, p + k + offset]

    Points outside the image are 0.

    Args:
        input: images.
        offset: (dy, dx) of every point of a window at every output position, in pixels.
        weight: filters.
        bias: one number per output channel.
        stride: step between windows.
        padding: zeros on both sides.
        dilation: step inside a window.
        mask: factor of every point.

    Shapes:
        input: [B, C, H, W]
        offset: [B, 2 G K, H', W'] with K points in a window and G groups of channels
        weight: [O, C / groups, KH, KW]
        mask: [B, G K, H', W']
        returns: [B, O, H', W'], extents as for conv2d

    DTypes: floats. 16-bit floats compute in float32.

    Raises:
        ShapeError: ranks, channels or extents do not fit.

    Gradient: defined for all tensors.

    Example:
        >>> x, w = burn.ones(1, 1, 3, 3), burn.ones(1, 1, 1, 1)
        >>> burn.functional.deform_conv2d(x, burn.zeros(1, 2, 3, 3), w).shape
        (1, 1, 3, 3)

    Source: Dai et al., Deformable Convolutional Networks, 2017; torchvision.ops.deform_conv2d
    """
    op = "deform_conv2d"
    strides = spread(op, "stride", stride, 2)
    pads = spread(op, "padding", padding, 2)
    steps = spread(op, "dilation", dilation, 2)
    groups, offset_groups, extents = _check(input, offset, weight, mask, strides, pads, steps)
    b = meeting(op, input, offset, weight, bias, mask)
    kind = input.dtype
    if kind.bits == 16:
        input, offset, weight = (in_dtype(t, float32) for t in (input, offset, weight))
        mask = None if mask is None else in_dtype(mask, float32)
    n, c, height, width = input.shape
    out, per_group, kh, kw = weight.shape
    k, (oh, ow) = kh * kw, extents
    moved = b.reshape(offset, (n * offset_groups, k, 2, oh * ow))
    axes = []
    for axis, size in enumerate((height, width)):
        places = [(t // kw, t % kw)[axis] * steps[axis] - pads[axis] for t in range(k)]
        window = _line(places, (1, k, 1), offset)
        starts = _line(range(extents[axis]), (1, oh, 1) if axis == 0 else (1, 1, ow), offset)
        origin = b.reshape(b.expand(b.mul(starts, strides[axis]), (1, oh, ow)), (1, 1, oh * ow))
        at = b.add(b.add(b.select(moved, 2, axis), window), origin)
        # grid_sample's coordinates with align_corners=False: no division by size - 1.
        axes.append(b.sub(b.div(b.add(b.mul(at, 2.0), 1.0), float(size)), 1.0))
    points = b.cat([b.unsqueeze(axes[1], (3,)), b.unsqueeze(axes[0], (3,))], 3)
    images = b.reshape(input, (n * offset_groups, c // offset_groups, height, width))
    seen = b.grid_sample(images, points, "bilinear", "zeros", False)
    if mask is not None:
        seen = b.mul(seen, b.reshape(mask, (n * offset_groups, 1, k, oh * ow)))
    columns = b.reshape(seen, (n, groups, per_group * k, oh * ow))
    rows = b.reshape(weight, (1, groups, out // groups, per_group * k))
    result = b.reshape(b.matmul(rows, columns), (n, out, oh, ow))
    if bias is not None:
        result = b.add(result, b.reshape(in_dtype(bias, result.dtype), (1, out, 1, 1)))
    return in_dtype(result, kind)


def _line(values: Iterable[int], shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Return whole numbers in the dtype of a tensor and on its device."""
    made = tensor(list(values), dtype=like.dtype, device=like.b.device.without_autodiff())
    return made.reshape(shape)


def _check(
    input: Tensor, offset: Tensor, weight: Tensor, mask: Tensor | None,
    strides: tuple[int, ...], pads: tuple[int, ...], steps: tuple[int, ...],
) -> tuple[int, int, tuple[int, int]]:  # fmt: skip
    """Return (groups of channels, groups of offsets, output extents)."""
    op = "deform_conv2d"
    if not len(input.shape) == len(weight.shape) == len(offset.shape) == 4:
        raise ShapeError(
            op, "input, offset and weight have four dims",
            got=f"{input.shape}, {offset.shape}, {weight.shape}",
        )  # fmt: skip
    n, c = input.shape[:2]
    out, per_group, kh, kw = weight.shape
    if not per_group or c % per_group or out % (c // per_group):
        raise ShapeError(op, "channels must divide by groups", got=f"{c}, weight {weight.shape}")
    sizes = zip(input.shape[2:], (kh, kw), strides, pads, steps, strict=True)
    oh, ow = ((size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d in sizes)
    groups = offset.shape[1] // (2 * kh * kw)
    if groups < 1 or c % groups or offset.shape != (n, 2 * groups * kh * kw, oh, ow):
        raise ShapeError(op, f"offset is [{n}, 2 G {kh * kw}, {oh}, {ow}]", got=offset.shape)
    if mask is not None and mask.shape != (n, groups * kh * kw, oh, ow):
        raise ShapeError(op, f"mask is [{n}, {groups * kh * kw}, {oh}, {ow}]", got=mask.shape)
    return c // per_group, groups, (oh, ow)
