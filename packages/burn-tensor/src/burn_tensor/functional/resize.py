"""Resampling: interpolation to a size, sampling at a grid, grids of affine maps."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite

from burn_std import ArgumentError, DTypeError, ShapeError
from burn_tensor.functional.extents import Ints
from burn_tensor.functional.filtering import filtered
from burn_tensor.functional.values import in_dtype
from burn_tensor.tensor import Tensor

# Mode to the number of spatial dims it is for; None: any of 1 to 3.
_MODES = {
    "nearest": None, "nearest-exact": None, "area": None,
    "linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3, "lanczos": None,
}  # fmt: skip
_INTERPOLATING = ("linear", "bilinear", "bicubic", "trilinear", "lanczos")
_FILTERED = ("bilinear", "bicubic", "lanczos")


def _size(
    shape: Ints, size: int | Sequence[int] | None, scale: float | Sequence[float] | None
) -> tuple[Ints, tuple[float, ...] | None]:
    """Return the wanted extents, and the scale factors if those were given."""
    n = len(shape) - 2
    if (size is None) == (scale is None):
        raise ArgumentError(
            "interpolate", "one of size and scale_factor is given",
            got=f"size {size}, scale_factor {scale}",
        )  # fmt: skip
    if size is not None:
        sizes = tuple(size) if isinstance(size, Sequence) else (size,) * n
        if len(sizes) != n:
            raise ArgumentError("interpolate", f"size is an int or {n} ints", got=sizes)
        return tuple(int(s) for s in sizes), None
    given = scale if isinstance(scale, Sequence) else (scale,) * n
    factors = tuple([float(f) for f in given if f is not None])
    if not all(isfinite(f) and f > 0 for f in factors):
        raise ArgumentError("interpolate", "scale_factor is positive and finite", got=scale)
    if len(factors) != n:
        raise ArgumentError("interpolate", f"scale_factor is a number or {n} of them", got=scale)
    return tuple([floor(e * f) for e, f in zip(shape[2:], factors, strict=True)]), factors


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Return the input resampled to a size.

    Args:
        input: signals.
        size: wanted extents.
        scale_factor: or what the extents are multiplied by, rounded down.
        mode: `nearest`, `nearest-exact`, `linear` (1-D), `bilinear`, `bicubic` (2-D),
            `trilinear` (3-D), `lanczos` (six elements along each dim), `area`.
        align_corners: the centres of the corner elements coincide; else the outer edges do.
            For the interpolating modes only.
        recompute_scale_factor: use the ratio of the extents instead of the given factor.
        antialias: where the result is smaller, the filter is as wide as what becomes one element,
            as in Pillow; for `bilinear`, `bicubic` and `lanczos`.

    Shapes:
        input: [B, C, *L]
        returns: [B, C, *size]

    DTypes: ints and floats; floats with antialias or lanczos.

    Raises:
        ArgumentError: arguments contradict each other, or the mode is unknown.
        ShapeError: the mode is for another rank, or an extent is not positive.
        DTypeError: ints with antialias or lanczos.

    Gradient: the transpose of the weights.

    Example:
        >>> x = burn.tensor([[[0.0, 10.0]]])
        >>> burn.functional.interpolate(x, 4, mode="linear").tolist()
        [[[0.0, 2.5, 7.5, 10.0]]]

    Source: Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981 (bicubic);
    Duchon, Lanczos Filtering in One and Two Dimensions, 1979
    """
    op = "interpolate"
    shape = input.shape
    if mode not in _MODES:
        raise ArgumentError(op, f"mode is one of {', '.join(_MODES)}", got=repr(mode))
    if antialias and mode not in _FILTERED:
        raise ArgumentError(op, f"antialias goes with {', '.join(_FILTERED)}", got=f"mode {mode}")
    if align_corners is not None and mode not in _INTERPOLATING:
        raise ArgumentError(
            op, f"align_corners goes with {', '.join(_INTERPOLATING)}", got=f"mode {mode}"
        )
    wanted = _MODES[mode]
    n = len(shape) - 2
    if n not in (1, 2, 3) or (wanted is not None and n != wanted):
        dims = "3 to 5" if wanted is None else str(wanted + 2)
        raise ShapeError(op, f"mode {mode} needs {dims} dims", got=f"input {list(shape)}")
    sizes, factors = _size(shape, size, scale_factor)
    if recompute_scale_factor:
        if factors is None:
            raise ArgumentError(op, "recompute_scale_factor goes with scale_factor")
        factors = None
    if antialias or mode == "lanczos":
        if not input.dtype.is_float:
            raise DTypeError(
                op, f"mode {mode} with antialias={antialias} needs floats", got=input.dtype,
                remedy="Convert with .to(burn.float32), then round and clamp.",
            )  # fmt: skip
        if min(*shape[2:], *sizes) < 1:
            raise ShapeError(op, "extents are positive", got=f"{list(shape)} to {list(sizes)}")
        return filtered(input, mode, sizes, factors, bool(align_corners), antialias)
    if mode == "area":
        return input.b.adaptive_avg_pool(input, sizes)
    return input.b.interpolate(input, mode, bool(align_corners), sizes, factors or (None,) * n)


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Return `interpolate` under its older name.

    Args:
        input: signals.
        size: wanted extents.
        scale_factor: or what the extents are multiplied by.
        mode: as in `interpolate`.
        align_corners: as in `interpolate`.

    Shapes:
        input: [B, C, *L]
        returns: [B, C, *size]

    DTypes: ints and floats.

    Raises:
        ArgumentError: arguments contradict each other, or the mode is unknown.

    Gradient: defined.

    Example:
        >>> burn.functional.upsample(burn.ones(1, 1, 2), 4).shape
        (1, 1, 4)
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Return `interpolate` with mode `nearest` under its older name.

    Args:
        input: signals.
        size: wanted extents.
        scale_factor: or what the extents are multiplied by.

    Shapes:
        input: [B, C, *L]
        returns: [B, C, *size]

    DTypes: ints and floats.

    Raises:
        ArgumentError: both or none of size and scale_factor are given.

    Gradient: defined.

    Example:
        >>> burn.functional.upsample_nearest(burn.ones(1, 1, 2), scale_factor=2).shape
        (1, 1, 4)
    """
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Return `interpolate` with mode `bilinear` and aligned corners under its older name.

    Args:
        input: planes.
        size: wanted extents.
        scale_factor: or what the extents are multiplied by.

    Shapes:
        input: [B, C, H, W]
        returns: [B, C, *size]

    DTypes: ints and floats.

    Raises:
        ArgumentError: both or none of size and scale_factor are given.

    Gradient: defined.

    Example:
        >>> burn.functional.upsample_bilinear(burn.ones(1, 1, 2, 2), 3).shape
        (1, 1, 3, 3)
    """
    return interpolate(input, size, scale_factor, "bilinear", True)


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Return the input sampled at the positions of a grid.

    Positions are (x, y) or (x, y, z) with -1 and 1 at the ends of a dim, NaN counts as -1.

    Args:
        input: planes or volumes.
        grid: positions.
        mode: `bilinear` (trilinear in volumes), `nearest`, `bicubic` (planes).
        padding_mode: `zeros`, `border`, `reflection` outside.
        align_corners: -1 and 1 are the centres of the corner elements; else their outer edges.

    Shapes:
        input: [B, C, H, W] or [B, C, D, H, W]
        grid: [B, H', W', 2] or [B, D', H', W', 3]
        returns: [B, C, H', W'] or [B, C, D', H', W']

    DTypes: floats; the two promote.

    Raises:
        ShapeError: shapes do not fit.
        ArgumentError: a mode is unknown, or bicubic in volumes.

    Gradient: defined for both; not differentiable again.

    Example:
        >>> x = burn.tensor([[[[1.0, 3.0]]]])
        >>> burn.functional.grid_sample(x, burn.zeros(1, 1, 1, 2), align_corners=True).item()
        2.0

    Source: Jaderberg et al., Spatial Transformer Networks, 2015
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ArgumentError("grid_sample", "mode is bilinear, nearest or bicubic", got=repr(mode))
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ArgumentError(
            "grid_sample", "padding_mode is zeros, border or reflection", got=repr(padding_mode)
        )
    if mode == "bicubic" and len(input.shape) == 5:
        raise ArgumentError(
            "grid_sample", "bicubic is for planes", got=f"input {list(input.shape)}"
        )
    return input.b.grid_sample(input, grid, mode, padding_mode, bool(align_corners))


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the positions, for `grid_sample`, of an affine map of the output's positions.

    Args:
        theta: one map per sample.
        size: shape of the output.
        align_corners: as in `grid_sample`.

    Shapes:
        theta: [B, 2, 3] with size (B, C, H, W), or [B, 3, 4] with size (B, C, D, H, W)
        returns: [B, H, W, 2] or [B, D, H, W, 3]

    DTypes: floats.

    Raises:
        ShapeError: theta and size do not fit.

    Gradient: defined for theta.

    Example:
        >>> theta = burn.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
        >>> burn.functional.affine_grid(theta, (1, 1, 1, 2), align_corners=True).tolist()
        [[[[-1.0, 0.0], [1.0, 0.0]]]]
    """
    extents = tuple(int(n) for n in size)
    n = len(extents) - 2
    if n not in (2, 3) or theta.shape != (extents[0], n, n + 1) or min(extents) < 1:
        raise ShapeError(
            "affine_grid", "theta [B, n, n + 1] and size (B, C, *n extents) must fit",
            got=f"theta {list(theta.shape)}, size {extents}",
        )  # fmt: skip
    b, dtype = theta.b, theta.dtype
    sites = extents[2:]
    columns = []
    for axis in reversed(range(n)):  # x runs along the last dim
        count = sites[axis]
        if align_corners:
            first, step = (-1.0, 2.0 / (count - 1)) if count > 1 else (0.0, 0.0)
        else:
            first, step = -1.0 + 1.0 / count, 2.0 / count
        line = b.arange(dtype, count, first, step)
        shape = tuple(count if i == axis else 1 for i in range(n))
        columns.append(b.expand(b.reshape(line, (*shape, 1)), (*sites, 1)))
    columns.append(b.full(dtype, (*sites, 1), 1.0))
    flat = 1
    for count in sites:
        flat *= count
    base = b.reshape(b.cat(columns, n), (1, flat, n + 1))
    out = b.matmul(base, b.permute(in_dtype(theta, dtype), (0, 2, 1)))
    return b.reshape(out, (extents[0], *sites, n))
