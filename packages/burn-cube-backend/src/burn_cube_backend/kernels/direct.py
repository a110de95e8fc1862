"""Convolutions in one or two dims from windows as they lie: who is served, and the launches."""

from __future__ import annotations

from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, size_of
from burn_cube_backend.kernels import direct_kernels as dk, direct_weight as dw
from burn_cube_backend.kernels.create import filled
from burn_cube_backend.lanes import LANES
from burn_cube_backend.payload import CubeTensor
from burn_std import DType, dtypes as d

# Taps that are written out, at most.
MOST = 49
# Input channels of a group below which windows that lie apart are added up here.
FEW = 16
# Inputs of a band, in bytes: what stays in the second cache of a core beside the kernels.
BAND = 256 << 10
# Outputs of a band whose products are added: eight rows of them stay in the first cache.
STRETCH = 768


def serves(engine: Engine, dtype: DType, weight: Ints) -> bool:
    """Return whether a convolution with a weight of such a shape is computed here.

    A kernel of one tap is a product of matrices: there is nothing to gather.
    """
    return (
        engine.client.runtime.name == "cpu" and dtype is d.float32 and len(weight) < 5
        and 1 < size_of(weight[2:]) <= MOST
    )  # fmt: skip


def serves_weight(weight: Ints, stride: Ints) -> bool:
    """Return whether the gradient of the weight is, too: long steps make short rows."""
    return max(stride) == 1 or weight[1] < FEW


def flat(x: CubeTensor) -> CubeTensor:
    """Return [.., .., L] as [.., .., 1, L]."""
    if len(x.shape) == 4:
        return x
    a, b, n = x.shape
    i, j, k = x.strides
    return x.view((a, b, 1, n), (i, j, 0, k))


def two(sizes: Ints, fill: int) -> tuple[int, int]:
    """Return sizes of two dims."""
    return (sizes[0], sizes[1]) if len(sizes) == 2 else (fill, sizes[0])


def rows_for(outs: int) -> int:
    """Return the output channels of a panel."""
    return 8 if outs > 2 else 1


def forward(
    engine: Engine, x: CubeTensor, w: CubeTensor, bias: CubeTensor | None, out: Ints,
    stride: Ints, padding: Ints, dilation: Ints, groups: int,
) -> CubeTensor:  # fmt: skip
    """Return x [N, C, *L] with w [O, C / groups, *K], which is read as it lies."""
    x, w = flat(engine.row_major(x)), flat(w)
    full = (x.shape[0], w.shape[0], *out)
    made = engine.empty(full, x.dtype)
    if not made.size:
        return made
    o, c, *taps = w.strides
    outs = w.shape[0] // groups
    kernels = w.view((groups, outs, *w.shape[1:]), (o * outs, o, c, *taps))
    how = two(out, 1), two(stride, 1), two(padding, 0), two(dilation, 1)
    run(engine, x, kernels, bias, made, *how)
    return made


def run(
    engine: Engine, x: CubeTensor, w: CubeTensor, bias: CubeTensor | None, made: CubeTensor,
    out: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int],
    dilation: tuple[int, int],
) -> None:  # fmt: skip
    """Write a convolution of x [N, C, H, W] with w [groups, O / groups, C / groups, *K]."""
    dtype, threads = x.dtype, engine.client.properties.units
    groups, outs, channels, *size = w.shape
    height = rows_for(outs)
    spec = dk.Windows(dtype, (size[0], size[1]), stride, dilation, height)
    panels = -(-outs // height)
    u = engine.flat(groups * panels * channels * size_of(size) * height, dtype)
    engine.cubes(
        dk.pack_kernel, (dtype, spec.size, height), groups * panels,
        [u, w.buf, outs, channels, panels, w.offset, *w.strides],
    )  # fmt: skip
    pitch = out[1] + spec.further(1)
    phases = len(spec.phases(0)) * len(spec.phases(1))
    line = channels * phases * pitch
    rows = BAND // (line * dtype.itemsize) - spec.further(0)
    planes = x.shape[0] * groups
    most = -(-out[0] * planes // (4 * threads))
    rows = max(1, min(rows, out[0], most))
    bands = -(-out[0] // rows)
    rows = -(-out[0] // bands)
    jobs, parts = planes * bands, 1
    while parts * 2 <= panels and jobs * parts < 2 * threads:
        parts *= 2
    share = -(-panels // parts)
    parts = -(-panels // share)
    jobs *= parts
    tasks = min(jobs, 4 * threads)
    length = -(-rows * pitch // LANES) * LANES + dk.VECTORS[height] * LANES
    slot = length * height + line * (rows + spec.further(0)) + dk.VECTORS[height] * LANES
    slot = -(-slot // LANES) * LANES
    scratch = engine.flat(tasks * slot, dtype)
    numbers = [
        jobs, tasks, slot, bands, rows, groups, channels, outs, *x.shape[2:], *out, *padding,
        pitch, x.offset, parts, share, length,
    ]  # fmt: skip
    more = [] if bias is None else [bias.buf]
    ends = [] if bias is None else [bias.offset, bias.strides[0]]
    args = [made.buf, x.buf, u, *more, scratch, *numbers, *ends]
    engine.cubes(dk.forward_kernel, (spec, bias is not None), tasks, args)


def input_grad(
    engine: Engine, g: CubeTensor, weight: CubeTensor, padding: Ints, dilation: Ints, groups: int,
    shape: Ints,
) -> CubeTensor:  # fmt: skip
    """Return the gradient of the input for steps of one: a convolution with the weight turned."""
    made = engine.empty(shape, g.dtype)
    w, size = flat(weight), two(weight.shape[2:], 1)
    o, c, *taps = w.strides
    outs, channels = w.shape[0] // groups, w.shape[1]
    turned = w.view(
        (groups, channels, outs, *size), (o * outs, c, o, *(-s for s in taps)),
        w.offset + sum((k - 1) * s for k, s in zip(size, taps, strict=True)),
    )  # fmt: skip
    holes = two(dilation, 1)
    around = [h * (k - 1) - p for h, k, p in zip(holes, size, two(padding, 0), strict=True)]
    run(
        engine, flat(engine.row_major(g)), turned, None, made, two(shape[2:], 1), (1, 1),
        (around[0], around[1]), holes,
    )  # fmt: skip
    return made


def weight_grad(
    engine: Engine, g: CubeTensor, x: CubeTensor, stride: Ints, padding: Ints, dilation: Ints,
    groups: int, shape: Ints,
) -> CubeTensor:  # fmt: skip
    """Return the gradient of a weight of `shape` from g [N, O, *out] and x [N, C, *L]."""
    if not g.size or not x.size or not size_of(shape):
        return filled(engine, x.dtype, shape, 0)
    g, x = flat(engine.row_major(g)), flat(engine.row_major(x))
    dtype, threads = x.dtype, engine.client.properties.units
    outs, channels = shape[0] // groups, shape[1]
    height = rows_for(outs)
    pads, out = two(padding, 0), g.shape[2:]
    spec = dk.Windows(dtype, two(shape[2:], 1), two(stride, 1), two(dilation, 1), height)
    panels, taps = -(-outs // height), len(spec.taps)
    pitch = out[1] + spec.further(1)
    line = channels * len(spec.phases(0)) * len(spec.phases(1)) * pitch
    rows = min(BAND // (line * dtype.itemsize) - spec.further(0), STRETCH // pitch)
    rows = max(1, min(rows, out[0]))
    bands = -(-out[0] // rows)
    rows = -(-out[0] // bands)
    jobs = x.shape[0] * groups * bands
    tasks = min(jobs, threads)
    run = -(-rows * pitch // LANES) * LANES + LANES
    slot = run * panels * height + line * (rows + spec.further(0)) + LANES
    slot = -(-slot // LANES) * LANES
    size = groups * panels * channels * taps * height
    parts, scratch = engine.flat(tasks * size, dtype), engine.flat(tasks * slot, dtype)
    flags = filled(engine, d.int32, (groups * channels,), 0)
    engine.cubes(
        dw.products_kernel, (spec,), tasks,
        [parts, g.buf, x.buf, scratch, flags.buf, jobs, tasks, slot, bands, rows, groups, channels,
         outs, *x.shape[2:], *out, *pads, pitch, x.offset, g.offset, run, size],
    )  # fmt: skip
    made = engine.empty(shape, dtype)
    engine.cubes(
        dw.gather_kernel, (dtype, height, taps), groups * panels,
        [made.buf, parts, tasks, size, panels, outs, channels],
    )  # fmt: skip
    engine.cubes(
        dw.mend_kernel, (spec,), shape[0],
        [made.buf, g.buf, x.buf, flags.buf, channels, outs, x.shape[0], groups, *x.shape[2:], *out,
         *pads, x.offset, g.offset],
    )  # fmt: skip
    return made
