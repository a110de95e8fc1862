"""Convolutions in one or two dims from windows as they lie: who is served, and the launches."""

from __future__ import annotations

from itertools import product
from math import gcd
from typing import NamedTuple

from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, dense, size_of
from burn_cube_backend.kernels import depthwise, direct_kernels as dk, direct_weight as dw
from burn_cube_backend.kernels.create import filled
from burn_cube_backend.kernels.epilogue import Epilogue
from burn_cube_backend.kernels.maps import write
from burn_cube_backend.lanes import LANES
from burn_cube_backend.packs import LABEL, Arrays
from burn_cube_backend.payload import CubeTensor
from burn_std import DType, dtypes as d

# Taps that are written out, at most.
MOST = 49
# Input channels of a group below which windows that lie apart are added up here, and outputs of a
# row from which on.
FEW, LONG = 16, 12
# Inputs of a band, in bytes: what stays in the second cache of a core beside the kernels.
BAND = 256 << 10
# Outputs of a band whose products are added: eight rows of them stay in the first cache.
STRETCH = 768


def serves(engine: Engine, dtype: DType, weight: Ints, stride: Ints) -> bool:
    """Return whether a convolution with a weight of such a shape is computed here.

    A kernel of one tap that skips nothing is a product of matrices, and one without channels too.
    """
    return (
        engine.client.runtime.name == "cpu" and dtype is d.float32 and len(weight) < 5
        and size_of(weight) > 0
        and size_of(weight[2:]) <= MOST and (size_of(weight[2:]) > 1 or max(stride) > 1)
    )  # fmt: skip


def serves_weight(weight: Ints, stride: Ints, out: Ints) -> bool:
    """Return whether the gradient of the weight is, too, for so many windows along each dim."""
    long = max(stride) == 1 or out[-1] >= LONG
    return size_of(weight[2:]) > 1 and (long or weight[1] < FEW)


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


def geometry(weight: Ints, stride: Ints, padding: Ints, dilation: Ints) -> depthwise.Geometry:
    """Return how windows lie, in two dims."""
    sizes = two(weight[2:], 1), two(stride, 1), two(padding, 0), two(dilation, 1)
    return depthwise.Geometry(*sizes)


def rows_for(outs: int) -> int:
    """Return the output channels of a panel."""
    return 8 if outs > 2 else 1


def rows_of(spec: dk.Windows, channels: int, pitch: int) -> int:
    """Return how many output rows a band may have for its inputs to stay near."""
    one = spec.elements(channels, 1, pitch)
    more = spec.elements(channels, 2, pitch) - one
    return 1 + (BAND // spec.dtype.itemsize - one) // more


def forward(
    engine: Engine, x: CubeTensor, w: CubeTensor, bias: CubeTensor | None, out: Ints,
    stride: Ints, padding: Ints, dilation: Ints, groups: int, epilogue: Epilogue | None = None,
) -> CubeTensor:  # fmt: skip
    """Return x [N, C, *L] with w [O, C / groups, *K], which is read as it lies.

    What is written may be computed further, by an epilogue.
    """
    x, weight, w = flat(engine.row_major(x)), w, flat(w)
    full = (x.shape[0], w.shape[0], *out)
    made = engine.empty(full, x.dtype)
    if not made.size:
        return made
    if groups == w.shape[0] == x.shape[1]:
        lies = geometry(w.shape, stride, padding, dilation)
        if depthwise.forward(engine, x, w, bias, flat(made), lies, epilogue):
            return made
    o, c, *taps = w.strides
    outs = w.shape[0] // groups
    kernels = w.view((groups, outs, *w.shape[1:]), (o * outs, o, c, *taps))
    how = two(out, 1), two(stride, 1), two(padding, 0), two(dilation, 1)
    run(engine, x, weight, kernels, bias, made, *how, epilogue)
    return made


def packed(engine: Engine, w: CubeTensor, height: int) -> Arrays:
    """Return w [groups, O / groups, C / groups, *K] in panels of so many output channels."""
    groups, outs, channels, *size = w.shape
    panels = -(-outs // height)
    u = engine.flat(groups * panels * channels * size_of(size) * height, w.dtype, LABEL)
    engine.cubes(
        dk.pack_kernel, (w.dtype, (size[0], size[1]), height), groups * panels,
        [u, w.buf, outs, channels, panels, w.offset, *w.strides],
    )  # fmt: skip
    return (u,)


def run(
    engine: Engine, x: CubeTensor, weight: CubeTensor, w: CubeTensor, bias: CubeTensor | None,
    made: CubeTensor, out: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int],
    dilation: tuple[int, int], epilogue: Epilogue | None = None,
) -> None:  # fmt: skip
    """Write a convolution of x [N, C, H, W] with w [groups, O / groups, C / groups, *K].

    What is packed, w, is a window on the memory of the weight.
    """
    dtype, threads = x.dtype, engine.client.properties.units
    groups, outs, channels, *size = w.shape
    height = rows_for(outs)
    spec = dk.Windows(dtype, (size[0], size[1]), stride, dilation, height)
    panels = -(-outs // height)
    (u,) = engine.packed(weight, w, packed, height)
    pitch = out[1] + spec.further(1)
    rows = rows_of(spec, channels, pitch)
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
    slot = length * height + spec.elements(channels, rows, pitch) + dk.VECTORS[height] * LANES
    slot = -(-slot // LANES) * LANES
    scratch = engine.flat(tasks * slot, dtype)
    numbers = [
        jobs, tasks, slot, bands, rows, groups, channels, outs, *x.shape[2:], *out, *padding,
        pitch, x.offset, parts, share, length,
    ]  # fmt: skip
    more = [] if bias is None else [bias.buf]
    ends = [] if bias is None else [bias.offset, bias.strides[0]]
    then, after = (None, ()) if epilogue is None else (epilogue.spec, epilogue.args)
    args = [made.buf, x.buf, u, *more, scratch, *numbers, *ends, *after]
    engine.cubes(dk.forward_kernel, (spec, bias is not None, then), tasks, args)


class Share(NamedTuple):
    """The elements of a dim of the input with one remainder, and the taps that reach them.

    Attributes:
        start, step, extent: which elements.
        tap, back, taps: the last tap that reaches them, how far before it the next one stands,
            and how many there are.
        padding, dilation: of the convolution that gives them.
    """

    start: int
    step: int
    extent: int
    tap: int
    back: int
    taps: int
    padding: int
    dilation: int


def shares(n: int, k: int, stride: int, padding: int, dilation: int) -> list[Share]:
    """Return the parts of a dim of n elements, each a convolution with steps of one.

    Example:
        >>> [(s.start, s.taps, s.padding) for s in shares(6, 3, 2, 1, 1)]
        [(0, 1, 0), (1, 2, 0)]
    """
    made = []
    back = stride // gcd(stride, dilation)
    for a in range(min(stride, n)):
        taps = [i for i in range(k) if (a + padding - i * dilation) % stride == 0]
        last = taps[-1] if taps else 0
        first = (last * dilation - a - padding) // stride
        made.append(
            Share(a, stride, -(-(n - a) // stride), last, back, len(taps), first,
                  back * dilation // stride)
        )  # fmt: skip
    return made


def input_grad(
    engine: Engine, g: CubeTensor, weight: CubeTensor, stride: Ints, padding: Ints, dilation: Ints,
    groups: int, shape: Ints,
) -> CubeTensor:  # fmt: skip
    """Return the gradient of the input: convolutions of g with the weight turned round."""
    if not g.size or not size_of(shape):
        return filled(engine, g.dtype, shape, 0)
    g, w = flat(engine.row_major(g)), flat(weight)
    if groups == w.shape[0] == shape[1]:
        made = engine.empty(shape, g.dtype)
        if depthwise.input_grad(
            engine, g, w, flat(made), geometry(w.shape, stride, padding, dilation)
        ):
            return made
    o, c, *steps = w.strides
    outs, channels = w.shape[0] // groups, w.shape[1]
    how = two(stride, 1), two(padding, 0), two(dilation, 1)
    lengths = two(shape[2:], 1)
    dims = [shares(*sizes) for sizes in zip(lengths, w.shape[2:], *how, strict=True)]
    reached = all(share.taps for dim in dims for share in dim)
    full = flat(engine.empty(shape, g.dtype) if reached else filled(engine, g.dtype, shape, 0))
    for down, across in product(*dims):
        both = (down, across)
        out = (down.extent, across.extent)
        part = full.view(
            (*shape[:2], *out),
            (*full.strides[:2], *(p.step * s for p, s in zip(both, full.strides[2:], strict=True))),
            sum(p.start * s for p, s in zip(both, full.strides[2:], strict=True)),
        )  # fmt: skip
        if not down.taps * across.taps:
            continue  # no window reads them: zeros
        turned = w.view(
            (groups, channels, outs, down.taps, across.taps),
            (o * outs, c, o, *(-p.back * s for p, s in zip(both, steps, strict=True))),
            w.offset + sum(p.tap * s for p, s in zip(both, steps, strict=True)),
        )  # fmt: skip
        whole = max(down.step, across.step) == 1
        made = full if whole else engine.empty(part.shape, g.dtype)
        run(
            engine, g, weight, turned, None, made, out, (1, 1), (down.padding, across.padding),
            (down.dilation, across.dilation),
        )  # fmt: skip
        if not whole:
            write(engine, part, made)
    return full.view(shape, dense(shape))


def weight_grad(
    engine: Engine, g: CubeTensor, x: CubeTensor, stride: Ints, padding: Ints, dilation: Ints,
    groups: int, shape: Ints,
) -> CubeTensor:  # fmt: skip
    """Return the gradient of a weight of `shape` from g [N, O, *out] and x [N, C, *L]."""
    if not g.size or not x.size or not size_of(shape):
        return filled(engine, x.dtype, shape, 0)
    g, x = flat(engine.row_major(g)), flat(engine.row_major(x))
    if groups == shape[0] == x.shape[1]:
        lies = geometry(shape, stride, padding, dilation)
        near = depthwise.weight_grad(engine, g, x, lies, shape)
        if near is not None:
            return near
    dtype, threads = x.dtype, engine.client.properties.units
    outs, channels = shape[0] // groups, shape[1]
    height = rows_for(outs)
    pads, out = two(padding, 0), g.shape[2:]
    spec = dk.Windows(dtype, two(shape[2:], 1), two(stride, 1), two(dilation, 1), height)
    panels, taps = -(-outs // height), len(spec.taps)
    pitch = out[1] + spec.further(1)
    rows = min(rows_of(spec, channels, pitch), STRETCH // pitch)
    rows = max(1, min(rows, out[0]))
    bands = -(-out[0] // rows)
    rows = -(-out[0] // bands)
    jobs = x.shape[0] * groups * bands
    tasks = min(jobs, threads)
    run = -(-rows * pitch // LANES) * LANES + LANES
    slot = run * panels * height + spec.elements(channels, rows, pitch) + LANES
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
