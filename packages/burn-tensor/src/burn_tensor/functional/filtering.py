"""Resampling with a filter that is as wide as what becomes one element: without aliases.

Along one dim a resampling is a product with a matrix of weights, computed on the device from
positions; planes take one along each of their dims.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi

from burn_std.dtypes import float32
from burn_tensor.creation import arange
from burn_tensor.joins import where
from burn_tensor.tensor import Tensor


def _triangle(x: Tensor) -> Tensor:
    return (1.0 - x.abs()).clamp(min=0.0)


def _cubic(x: Tensor) -> Tensor:
    # Keys' cubic with a = -1/2.
    x = x.abs()
    near = (1.5 * x - 2.5) * x * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    weight: Tensor = where(x < 1.0, near, where(x < 2.0, far, 0.0))
    return weight


def _lanczos(x: Tensor) -> Tensor:
    # sinc(x) sinc(x / 3) within 3.
    inside = x.abs() < 3.0
    safe = where(inside & (x.abs() > 1e-6), x, 1.0) * pi
    wave = 3.0 * safe.sin() * (safe / 3.0).sin() / (safe * safe)
    weight: Tensor = where(inside, where(x.abs() > 1e-6, wave, 1.0), 0.0)
    return weight


FILTERS: dict[str, Callable[[Tensor], Tensor]] = {
    "bilinear": _triangle, "bicubic": _cubic, "lanczos": _lanczos,
}  # fmt: skip


def filtered(
    x: Tensor, mode: str, sizes: tuple[int, ...], factors: tuple[float, ...] | None,
    align_corners: bool, antialias: bool,
) -> Tensor:  # fmt: skip
    """Return [B, C, *L] resampled to sizes by the filter of a mode.

    Args:
        x: floats.
        mode: a key of `FILTERS`.
        sizes: wanted extents.
        factors: that were given in their place, or None.
        align_corners: the centres of the corner elements coincide.
        antialias: the filter widens with the step where the result is smaller.
    """
    given = x.dtype
    if given.bits == 16:  # too few digits for positions
        x = x.to(float32)
    for k, size in enumerate(sizes):
        dim = 2 + k
        extent = x.shape[dim]
        if align_corners:
            step = (extent - 1) / (size - 1) if size > 1 else 0.0
        else:
            step = extent / size if factors is None else 1.0 / factors[k]
        weights = _weights(x, mode, extent, size, step, align_corners, antialias)
        x = (x.transpose(dim, -1) @ weights).transpose(dim, -1)
    return x.to(given)


def _weights(
    x: Tensor, mode: str, extent: int, size: int, step: float, align_corners: bool, antialias: bool
) -> Tensor:
    """Return the weights [extent, size] of the elements along a dim."""
    device, dtype = x.device.without_autodiff(), x.dtype
    out = arange(size, dtype=dtype, device=device)
    # Centres of the results, in elements of the input whose own are at 0.5, 1.5, ...
    centres = out * step + 0.5 if align_corners and not antialias else (out + 0.5) * step
    places = arange(extent, dtype=dtype, device=device).unsqueeze(1) + 0.5
    width = max(step, 1.0) if antialias else 1.0
    weights = FILTERS[mode]((places - centres) / width)
    # What lies outside has no weight, so the rest is made to add up to one.
    return weights / weights.sum(0, keepdim=True)
