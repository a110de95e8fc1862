"""Convolutions of which each channel has a window of its own: who is served, and the launches."""

from __future__ import annotations

from typing import NamedTuple

from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints
from burn_cube_backend.kernels.depthwise_kernels import (
    Across,
    Down,
    Plan,
    products_kernel,
    sums_kernel,
)
from burn_cube_backend.kernels.epilogue import Epilogue
from burn_cube_backend.kernels.reduce import reduce
from burn_cube_backend.kernels.reduction import Reducer
from burn_cube_backend.lanes import LANES
from burn_cube_backend.payload import CubeTensor

# Outputs of a row below which too little of a vector is used.
SHORT = 4
# Elements of a band: what stays in the first cache.
BAND = 8192
# Rows of outputs that are computed together where columns lie side by side.
BLOCK = 4

Two = tuple[int, int]


class Geometry(NamedTuple):
    """How windows lie: extents of them, and steps, padding and dilation down and across."""

    size: Two
    stride: Two
    padding: Two
    dilation: Two


def lanes_for(count: int) -> int:
    """Return the lanes of a vector for so many neighbours."""
    return next((n for n in (LANES, 8, 4) if n <= count), 2)


def forward_plan(x: CubeTensor, how: Geometry, out: Two, block: int = BLOCK) -> Plan | None:
    """Return what the kernel of a convolution is made for; None where it would not be fast."""
    step = how.stride[1]
    width = x.shape[3] // step
    if step > 2 or out[1] < SHORT or width < 2:
        return None
    holes = how.dilation
    return Plan(
        x.dtype, how.size, (tuple(Down(i, i * holes[0]) for i in range(how.size[0])),),
        (tuple(Across(j, j * holes[1] % step, j * holes[1] // step) for j in range(how.size[1])),),
        how.stride[0], step, how.padding, lanes_for(out[1]), block, lanes_for(width),
    )  # fmt: skip


def input_plan(g: CubeTensor, how: Geometry, shape: Two) -> Plan | None:
    """Return the same for the gradient of the input, whose last dims have this shape.

    An element is the sum of those taps that leave no remainder of the step: outputs are as many
    side by side as a step has remainders, and g is read as it lies.
    """
    if how.stride[1] > 2 or shape[1] // how.stride[1] < SHORT or g.shape[3] < 2:
        return None
    reached = []
    for k, step, pad, hole in zip(*how, strict=True):
        places = [
            [(i, (a + pad - i * hole) // step) for i in range(k) if not (a + pad - i * hole) % step]
            for a in range(step)
        ]
        reached.append(places)
    before = [-min(shift for taps in places for _, shift in taps) for places in reached]
    if min(before) < 0:
        return None
    down = tuple(tuple(Down(i, n + before[0]) for i, n in taps) for taps in reached[0])
    across = tuple(tuple(Across(j, 0, n + before[1]) for j, n in taps) for taps in reached[1])
    block = 1 if max(how.stride) > 1 else BLOCK
    return Plan(
        g.dtype, how.size, down, across, 1, 1, (before[0], before[1]),
        lanes_for(shape[1] // how.stride[1]), block, lanes_for(g.shape[3]),
    )  # fmt: skip


class Bands(NamedTuple):
    """How the planes of a tensor are shared out."""

    jobs: int
    tasks: int
    slot: int
    bands: int
    rows: int
    pitch: int


def bands_of(engine: Engine, plan: Plan, x: CubeTensor, out: Two) -> Bands:
    """Return how planes of x become so many rows and columns, in bands that stay near."""
    threads = engine.client.properties.units
    planes, width = x.shape[0] * x.shape[1], x.shape[3]
    furthest = max(tap.shift for taps in plan.across for tap in taps)
    pitch = max(out[1] + furthest, (width + plan.pad[1]) // plan.phases + 1)
    pitch = -(-pitch // LANES) * LANES
    line = pitch * plan.phases
    rows = (BAND // line - plan.reach - 1) // plan.step + 1
    rows = min(rows, -(-out[0] * planes // (4 * threads)), out[0])
    bands = -(-out[0] // max(rows, 1))
    rows = -(-out[0] // bands)
    bands = -(-out[0] // rows)
    jobs = planes * bands
    slot = ((rows - 1) * plan.step + plan.reach + 1) * line
    return Bands(jobs, min(jobs, 8 * threads), slot, bands, rows, pitch)


def _numbers(bands: Bands, x: CubeTensor, out: Two) -> list[int]:
    return [
        bands.jobs, bands.tasks, bands.slot, bands.bands, bands.rows, x.shape[1], x.shape[2],
        x.shape[3], *out, bands.pitch, x.offset,
    ]  # fmt: skip


def _summed(
    engine: Engine, plan: Plan, wide: Two, x: CubeTensor, w: CubeTensor, bias: CubeTensor | None,
    made: CubeTensor, epilogue: Epilogue | None,
) -> None:  # fmt: skip
    height, width = made.shape[2:]
    groups = (-(-height // wide[0]), -(-width // wide[1]))
    bands = bands_of(engine, plan, x, groups)
    scratch = engine.flat(bands.tasks * bands.slot, x.dtype)
    more = [] if bias is None else [bias.buf]
    ends = [] if bias is None else [bias.offset, bias.strides[0]]
    then, after = (None, ()) if epilogue is None else (epilogue.spec, epilogue.args)
    channel, _, *steps = w.strides
    engine.cubes(
        sums_kernel, (plan, wide, bias is not None, then), bands.tasks,
        [made.buf, x.buf, w.buf, *more, scratch, *_numbers(bands, x, groups), height, width,
         w.offset, channel, *steps, *ends, *after],
    )  # fmt: skip


def forward(
    engine: Engine, x: CubeTensor, w: CubeTensor, bias: CubeTensor | None, made: CubeTensor,
    how: Geometry, epilogue: Epilogue | None,
) -> bool:  # fmt: skip
    """Write a convolution of x [N, C, H, W] with w [C, 1, *K]; False where it would not be fast."""
    plan = forward_plan(x, how, (made.shape[2], made.shape[3]))
    if plan is None:
        return False
    _summed(engine, plan, (1, 1), x, w, bias, made, epilogue)
    return True


def input_grad(
    engine: Engine, g: CubeTensor, w: CubeTensor, made: CubeTensor, how: Geometry
) -> bool:
    """Write the gradient of the input; False where it would not be fast."""
    plan = input_plan(g, how, (made.shape[2], made.shape[3]))
    if plan is None:
        return False
    _summed(engine, plan, how.stride, g, w, None, made, None)
    return True


def weight_grad(
    engine: Engine, g: CubeTensor, x: CubeTensor, how: Geometry, shape: Ints
) -> CubeTensor | None:
    """Return the gradient of the weight of a shape; None where it would not be fast."""
    out = (g.shape[2], g.shape[3])
    plan = forward_plan(x, how, out, 1)
    if plan is None:
        return None
    bands = bands_of(engine, plan, x, out)
    scratch = engine.flat(bands.tasks * bands.slot, x.dtype)
    pieces = x.shape[0] * bands.bands
    parts = engine.empty((pieces, *shape), x.dtype)
    engine.cubes(
        products_kernel, (plan,), bands.tasks,
        [parts.buf, g.buf, x.buf, scratch, *_numbers(bands, x, out), g.offset],
    )  # fmt: skip
    return reduce(engine, Reducer("sum", *(x.dtype,) * 4), parts, (0,), False)
