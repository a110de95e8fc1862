"""Convolutions of 3 x 3 kernels by 2 x 2 outputs: who is served, and the launches."""

from __future__ import annotations

from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints
from burn_cube_backend.kernels import winograd_kernels as wk
from burn_cube_backend.kernels.epilogue import Epilogue
from burn_cube_backend.lanes import LANES
from burn_cube_backend.packs import LABEL, Arrays
from burn_cube_backend.payload import CubeTensor
from burn_std import DType, dtypes as d

# Channels from which the transforms are worth their price.
LEAST = 16


def serves(
    engine: Engine, dtype: DType, weight: Ints, stride: Ints, dilation: Ints, groups: int
) -> bool:
    """Return whether a convolution with a weight of such a shape is computed here."""
    return (
        engine.client.runtime.name == "cpu" and dtype is d.float32 and weight[2:] == (3, 3)
        and stride == dilation == (1, 1) and groups == 1 and min(weight[:2]) >= LEAST
    )  # fmt: skip


def transformed(engine: Engine, w: CubeTensor) -> Arrays:
    """Return the transforms of w [O, C, 3, 3], and flags of panels with infinities or NaN."""
    outs, channels = w.shape[:2]
    panels = -(-outs // wk.ROWS)
    u = engine.flat(panels * wk.POINTS * channels * wk.ROWS, w.dtype, LABEL)
    worse = engine.flat(panels, d.int32, LABEL)
    engine.cubes(
        wk.weights_kernel, (w.dtype,), panels,
        [u, worse, w.buf, outs, channels, w.offset, *w.strides],
    )  # fmt: skip
    return u, worse


def forward(
    engine: Engine, x: CubeTensor, weight: CubeTensor, w: CubeTensor, bias: CubeTensor | None,
    out: Ints, padding: Ints, epilogue: Epilogue | None = None,
) -> CubeTensor:  # fmt: skip
    """Return x [N, C, H, W] with w [O, C, 3, 3], which is read as it lies, as [N, O, *out].

    What is transformed, w, is the weight or another window on its memory. What is written may be
    computed further, by an epilogue.
    """
    x = engine.row_major(x)
    n, channels, height, width = x.shape
    outs = w.shape[0]
    made = engine.empty((n, outs, *out), x.dtype)
    if not made.size:
        return made
    down, across = -(-out[0] // 2), -(-out[1] // 2)
    total = n * down * across
    panels = -(-outs // wk.ROWS)
    u, worse = engine.packed(weight, w, transformed)
    steps = w.strides
    threads = engine.client.properties.units
    blocks = -(-total // wk.TILES)
    parts = 1
    while parts * 2 <= panels and blocks * parts < 4 * threads and blocks * parts % threads:
        parts *= 2
    share = -(-panels // parts)
    parts = -(-panels // share)
    jobs = blocks * parts
    tasks = min(jobs, 4 * threads)
    lines = (across - 1 + wk.TILES) // across + 1
    wide = -(-(2 * min(across, max(wk.TILES, across)) + 2 * LANES + 4) // LANES) * LANES
    slot = (
        (channels * wk.TILES + LANES) * wk.POINTS + wk.POINTS * wk.ROWS * wk.TILES + LANES
        + lines * 4 * wide + 2 * wide
    )  # fmt: skip
    slot = -(-slot // LANES) * LANES
    scratch = engine.flat(tasks * slot, x.dtype)
    flags = engine.flat(jobs, d.int32)
    sizes = [height, width, *out, *padding, down, across]
    extra = [] if bias is None else [bias.offset, bias.strides[0]]
    buffers = [made.buf, x.buf, u, *([] if bias is None else [bias.buf]), scratch, flags, worse]
    then, after = (None, ()) if epilogue is None else (epilogue.spec, epilogue.args)
    engine.cubes(
        wk.forward_kernel, (x.dtype, bias is not None, then), tasks,
        [*buffers, *sizes, channels, outs, total, jobs, tasks, parts, share, slot, wide, x.offset,
         *extra, *after],
    )  # fmt: skip
    engine.cubes(
        wk.mend_kernel, (x.dtype, then), jobs,
        [made.buf, x.buf, w.buf, flags, *sizes, channels, outs, total, parts, share,
         x.offset, w.offset, *steps, *after],
    )  # fmt: skip
    return made


def input_grad(
    engine: Engine, g: CubeTensor, weight: CubeTensor, padding: Ints, shape: Ints
) -> CubeTensor:
    """Return the gradient of the input: a convolution of g with the weight turned round."""
    outs, channels, *size = weight.shape
    o, c, *taps = weight.strides
    turned = weight.view(
        (channels, outs, *size), (c, o, *(-s for s in taps)), weight.offset + 2 * sum(taps)
    )
    around = tuple(2 - p for p in padding)
    return forward(engine, g, weight, turned, None, shape[2:], around)
