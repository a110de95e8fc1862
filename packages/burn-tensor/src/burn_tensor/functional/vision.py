"""Padding, rearranging and windows of images and other signals."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from burn_std import ArgumentError, ShapeError
from burn_tensor.arguments import stored
from burn_tensor.functional.extents import Extent, Ints, spread
from burn_tensor.tensor import Tensor

# (pad, rank) as written to one (before, after) per dim.
_PADS: dict[Any, tuple[Ints, ...]] = {}
_MODES = ("constant", "reflect", "replicate", "circular")


def _pads(pad: Sequence[int], rank: int) -> tuple[Ints, ...]:
    try:
        return _PADS[pad, rank]
    except (KeyError, TypeError):
        pass
    values = tuple(int(v) for v in pad)
    if len(values) % 2 or len(values) > 2 * rank:
        raise ArgumentError(
            "pad", "pad is a (before, after) per dim, last dim first, for at most every dim",
            got=f"pad {values}, rank {rank}",
        )  # fmt: skip
    pairs = [(values[i], values[i + 1]) for i in range(0, len(values), 2)]
    out = ((0, 0),) * (rank - len(pairs)) + tuple(reversed(pairs))
    if len(_PADS) > 1024:
        _PADS.clear()
    if isinstance(pad, tuple):
        _PADS[pad, rank] = out
    return out


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Return the input with elements added around its last dims, or cut where pad is negative.

    Args:
        input: any tensor.
        pad: (before, after) of the last dim, then of the one before, and so on.
        mode: `constant`, `reflect` (without the edge), `replicate` (the edge), `circular`.
        value: what `constant` adds; None is 0.

    Shapes:
        input: [*, L]
        returns: [*, before + L + after]

    DTypes: any.

    Raises:
        ArgumentError: pad has an odd length or more pairs than dims, or the mode is unknown.
        ShapeError: a padding exceeds what the mode allows, or an extent would be negative.

    Gradient: defined.

    Example:
        >>> burn.functional.pad(burn.tensor([1, 2, 3]), (2, -1), "reflect").tolist()
        [3, 2, 1, 2]
    """
    b = input.b
    dtype = input.dtype
    if mode not in _MODES:
        raise ArgumentError("pad", f"mode is one of {', '.join(_MODES)}", got=repr(mode))
    if value is None:
        value = 0
    elif mode != "constant" and value != 0:
        raise ArgumentError("pad", f"mode {mode} takes no value", got=value)
    if not dtype.is_float:
        value = bool(value) if dtype.is_bool else int(value)
    return b.pad(input, mode, _pads(pad, len(input.shape)), stored("pad", value, input.dtype))


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Return blocks of r^2 channels laid out as r x r pixels.

    Args:
        input: images.
        upscale_factor: r.

    Shapes:
        input: [*, C r^2, H, W]
        returns: [*, C, H r, W r]

    DTypes: any.

    Raises:
        ShapeError: fewer than 3 dims, or channels do not divide by r^2.
        ArgumentError: r is not positive.

    Gradient: defined.

    Example:
        >>> burn.functional.pixel_shuffle(burn.ones(4, 1, 1), 2).shape
        (1, 2, 2)

    Source: Shi et al., Real-Time Single Image and Video Super-Resolution, 2016
    """
    r = upscale_factor
    shape = input.shape
    if r < 1:
        raise ArgumentError("pixel_shuffle", "upscale_factor must be positive", got=r)
    if len(shape) < 3 or shape[-3] % (r * r):
        raise ShapeError(
            "pixel_shuffle", "needs [*, C r^2, H, W]", got=f"input {list(shape)}, r {r}"
        )
    *lead, c, h, w = shape
    b, n = input.b, len(lead)
    blocks = b.reshape(input, (*lead, c // (r * r), r, r, h, w))
    blocks = b.permute(blocks, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return b.reshape(blocks, (*lead, c // (r * r), h * r, w * r))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Return r x r pixels laid out as blocks of r^2 channels; the inverse of `pixel_shuffle`.

    Args:
        input: images.
        downscale_factor: r.

    Shapes:
        input: [*, C, H r, W r]
        returns: [*, C r^2, H, W]

    DTypes: any.

    Raises:
        ShapeError: fewer than 3 dims, or height or width do not divide by r.
        ArgumentError: r is not positive.

    Gradient: defined.

    Example:
        >>> burn.functional.pixel_unshuffle(burn.ones(1, 2, 2), 2).shape
        (4, 1, 1)
    """
    r = downscale_factor
    shape = input.shape
    if r < 1:
        raise ArgumentError("pixel_unshuffle", "downscale_factor must be positive", got=r)
    if len(shape) < 3 or shape[-1] % r or shape[-2] % r:
        raise ShapeError(
            "pixel_unshuffle", "needs [*, C, H r, W r]", got=f"input {list(shape)}, r {r}"
        )
    *lead, c, h, w = shape
    b, n = input.b, len(lead)
    blocks = b.reshape(input, (*lead, c, h // r, r, w // r, r))
    blocks = b.permute(blocks, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return b.reshape(blocks, (*lead, c * r * r, h // r, w // r))


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Return the channels of all groups interleaved.

    Args:
        input: signals.
        groups: number of groups.

    Shapes:
        input: [B, C, *]
        returns: [B, C, *]

    DTypes: any.

    Raises:
        ShapeError: fewer than 3 dims, or channels do not divide by groups.

    Gradient: defined.

    Example:
        >>> burn.functional.channel_shuffle(burn.arange(4).reshape(1, 4, 1), 2).flatten().tolist()
        [0, 2, 1, 3]

    Source: Zhang et al., ShuffleNet, 2017
    """
    shape = input.shape
    if len(shape) < 3 or groups < 1 or shape[1] % groups:
        raise ShapeError(
            "channel_shuffle", "needs [B, C, *] with C divisible by groups",
            got=f"input {list(shape)}, groups {groups}",
        )  # fmt: skip
    b = input.b
    parts = b.reshape(input, (shape[0], groups, shape[1] // groups, prod(shape[2:])))
    return b.reshape(b.permute(parts, (0, 2, 1, 3)), shape)


def unfold(
    input: Tensor,
    kernel_size: Extent,
    dilation: Extent = 1,
    padding: Extent = 0,
    stride: Extent = 1,
) -> Tensor:
    """Return the windows of planes as columns.

    Args:
        input: planes, batched or not.
        kernel_size: extents of a window.
        dilation: step inside a window.
        padding: zeros on both sides.
        stride: step between windows.

    Shapes:
        input: [B, C, H, W] or [C, H, W]
        returns: [B, C K0 K1, windows]

    DTypes: any.

    Raises:
        ShapeError: ranks do not fit, or a window exceeds the padded input.
        ArgumentError: an argument is out of range.

    Gradient: windows add up.

    Example:
        >>> burn.functional.unfold(burn.ones(1, 1, 3, 3), 2).shape
        (1, 4, 4)
    """
    op = "unfold"
    plan = (
        spread(op, "kernel_size", kernel_size, 2), spread(op, "dilation", dilation, 2),
        spread(op, "padding", padding, 2), spread(op, "stride", stride, 2),
    )  # fmt: skip
    b = input.b
    if len(input.shape) == 3:
        return b.squeeze(b.unfold(b.unsqueeze(input, (0,)), *plan), (0,))
    return b.unfold(input, *plan)


def fold(
    input: Tensor,
    output_size: Extent,
    kernel_size: Extent,
    dilation: Extent = 1,
    padding: Extent = 0,
    stride: Extent = 1,
) -> Tensor:
    """Return planes of columns laid back as windows; overlaps add up.

    Args:
        input: columns, batched or not.
        output_size: extents of the planes.
        kernel_size: extents of a window.
        dilation: step inside a window.
        padding: what is cut from both sides.
        stride: step between windows.

    Shapes:
        input: [B, C K0 K1, windows] or [C K0 K1, windows]
        returns: [B, C, *output_size]

    DTypes: ints and floats.

    Raises:
        ShapeError: the number of windows or rows does not fit.
        ArgumentError: an argument is out of range.

    Gradient: defined.

    Example:
        >>> burn.functional.fold(burn.ones(1, 4, 1), 2, 2).tolist()
        [[[[1.0, 1.0], [1.0, 1.0]]]]
    """
    op = "fold"
    plan = (
        spread(op, "kernel_size", kernel_size, 2), spread(op, "dilation", dilation, 2),
        spread(op, "padding", padding, 2), spread(op, "stride", stride, 2),
        spread(op, "output_size", output_size, 2),
    )  # fmt: skip
    b = input.b
    if len(input.shape) == 2:
        return b.squeeze(b.fold(b.unsqueeze(input, (0,)), *plan), (0,))
    return b.fold(input, *plan)
