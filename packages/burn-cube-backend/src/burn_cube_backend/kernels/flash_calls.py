"""Operands and launches of attention on tensor cores."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, NamedTuple

from burn_cube.spi import Program
from burn_cube_backend.engine import FAR, Engine
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    collapse,
    dense,
    size_of,
)
from burn_cube_backend.kernels import flash, flash_backward
from burn_cube_backend.kernels.maps import HALVES, copied
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.tiles import CHUNK, PLANE, SIDE
from burn_std import DType, dtypes as d

# The widest row, and the most heads: what a cube can share, and the grid along y.
WIDEST, MOST_HEADS = 128, 65535
# Planes of a cube, sixteen rows each, and rows of a step.
PLANES, BLOCK = 4, 64
# Attention of one shape and layout whose plans are kept.
_MOST_PLANS = 4096


class Operands(NamedTuple):
    """Attention as the kernels see it: one batch, matrices read as they lie.

    Attributes:
        q: queries, [*batch, L, E].
        k: keys, [*batch, S, E].
        v: values, [*batch, S, V].
        mask: [*batch, L, S], or None.
        batch: broadcast dims, groups of heads apart.
        extents: of the batch, merged.
        strides: of q, k, v and the mask along them.
        group: query heads that share keys, 0 where each has its own.
        shape: of the result.
    """

    q: CubeTensor
    k: CubeTensor
    v: CubeTensor
    mask: CubeTensor | None
    batch: Ints
    extents: Ints
    strides: list[Ints]
    group: int
    shape: Ints

    @property
    def heads(self) -> int:
        """Matrices in all."""
        return size_of(self.batch)


def fits(engine: Engine, q: CubeTensor, k: CubeTensor, v: CubeTensor, scale: float | None) -> bool:
    """Return whether the kernels here compute this attention."""
    depth, width = q.shape[-1], v.shape[-1]
    return (
        "tensor_cores" in engine.client.properties.capabilities
        and q.dtype in HALVES
        and k.dtype is q.dtype
        and v.dtype is q.dtype
        and 0 < depth <= WIDEST
        and 0 < width <= WIDEST
        and depth % SIDE == 0
        and width % SIDE == 0
        and (scale is None or scale > 0)
        and 0 not in (q.shape[-2], k.shape[-2])
    )


def aligned(engine: Engine, x: CubeTensor) -> CubeTensor:
    """Return a tensor whose rows begin at multiples of 16 bytes, a copy where they do not."""
    steps = [s for n, s in zip(x.shape[:-1], x.strides[:-1], strict=True) if n > 1]
    assert x.buf is not None  # noqa: S101 - solid
    even = all(s % CHUNK == 0 for s in (*steps, x.offset)) and x.buf.pointer % 16 == 0
    return x if even and (x.strides[-1] == 1 or x.shape[-1] == 1) else copied(engine, x)


def first_dense(engine: Engine, x: CubeTensor) -> CubeTensor:
    """Return a tensor that lies row by row from the first element of its memory on."""
    x = engine.row_major(x)
    return x if x.offset == 0 else copied(engine, x)


def split(x: CubeTensor, dim: int, inner: int) -> CubeTensor:
    """Return x with a dim cut in two, the second of extent `inner`."""
    at = len(x.shape) + dim
    n, s = x.shape[at], x.strides[at]
    return x.view(
        (*x.shape[:at], n // inner, inner, *x.shape[at + 1 :]),
        (*x.strides[:at], s * inner, s, *x.strides[at + 1 :]),
    )


def lifted(x: CubeTensor) -> CubeTensor:
    """Return keys or values with a dim of 1 for the query heads that share them."""
    return x.view((*x.shape[:-2], 1, *x.shape[-2:]), (*x.strides[:-2], 0, *x.strides[-2:]))


def operands(
    engine: Engine, q: CubeTensor, k: CubeTensor, v: CubeTensor, mask: CubeTensor | None, gqa: bool
) -> Operands:
    """Return the operands with one batch."""
    q, k, v = (aligned(engine, t) for t in (q, k, v))
    group = q.shape[-3] // k.shape[-3] if gqa and q.shape[-3] != k.shape[-3] else 0
    plain = q.shape[:-2] if gqa else broadcast_shape([t.shape[:-2] for t in (q, k, v)])
    rows, keys = q.shape[-2], k.shape[-2]
    if mask is not None:
        shape = (*plain, rows, keys)
        mask = mask.view(shape, broadcast_strides(mask.shape, mask.strides, shape))
    if group:
        q, k, v = split(q, -3, group), lifted(k), lifted(v)
        mask = None if mask is None else split(mask, -3, group)
    batch = broadcast_shape([t.shape[:-2] for t in (q, k, v)])
    given = [q, k, v, *([] if mask is None else [mask])]
    walks = [broadcast_strides(t.shape[:-2], t.strides[:-2], batch) for t in given]
    extents, strides = collapse(batch, walks)
    return Operands(
        q, k, v, mask, batch, extents, strides, group, (*plain, rows, v.shape[-1])
    )  # fmt: skip


def numbers(o: Operands, tensors: list[CubeTensor], strides: list[Ints]) -> list[int]:
    """Return the arguments that say where the matrices of a head begin."""
    made = list(o.extents)
    for tensor, steps in zip(tensors, strides, strict=True):
        made += [tensor.offset, tensor.strides[-2], *steps]
    return made


class Forward(NamedTuple):
    """Attention of one shape and layout, all but its memory.

    Attributes:
        program: the compiled kernel.
        cubes: the grid.
        numbers: arguments behind the buffers.
        shape: of the result.
        strides: of the result.
        counts: elements of the result and of the sums.
    """

    program: Program
    cubes: tuple[int, int, int]
    numbers: tuple[float, ...]
    shape: Ints
    strides: Ints
    counts: tuple[int, int]

    def run(self, engine: Engine, dtype: DType, buffers: Sequence[Any]) -> tuple[Any, Any]:
        """Return memory of attention, and of log2 of the sums of its rows, [heads, L]."""
        out = engine.flat(self.counts[0], dtype)
        sums = engine.flat(self.counts[1], d.float32)
        engine.start(self.program, self.cubes, (out, sums, *buffers, *self.numbers))
        return out, sums


def forward_plan(engine: Engine, o: Operands, causal: bool, scale: float | None) -> Forward:
    """Return how attention is computed."""
    q, k, v, mask = o.q, o.k, o.v, o.mask
    rows, keys, depth, width = q.shape[-2], k.shape[-2], q.shape[-1], v.shape[-1]
    tensors = [q, k, v, *([] if mask is None else [mask])]
    count = size_of(o.shape)
    index = engine.index_dtype(*tensors, count=count)
    kind = None if mask is None else mask.dtype
    grouped = "groups" in engine.client.properties.capabilities
    shape = flash.Shape(
        q.dtype, depth, width, len(o.extents), causal, kind, PLANES, BLOCK, index, grouped
    )  # fmt: skip
    places = (
        rows, keys, factor(depth, scale) * flash.LOG2E, *numbers(o, tensors, o.strides),
        *([] if mask is None else [mask.strides[-1]]),
    )  # fmt: skip
    return Forward(
        engine.loaded(flash.forward_kernel, (shape,)),
        (-(-rows // (PLANES * SIDE)), o.heads, 1), places, o.shape, dense(o.shape),
        (count, o.heads * rows),
    )  # fmt: skip


def factor(depth: int, scale: float | None) -> float:
    """Return what scores are multiplied by."""
    return scale if scale is not None else 1 / sqrt(depth)


def attention(
    engine: Engine, q: CubeTensor, k: CubeTensor, v: CubeTensor, mask: CubeTensor | None,
    causal: bool, gqa: bool, scale: float | None,
) -> tuple[CubeTensor, CubeTensor] | None:  # fmt: skip
    """Return attention on tensor cores and log2 of the sums of its rows, None where it is not."""
    tensors = (q, k, v) if mask is None else (q, k, v, mask)
    lies = tuple((t.dtype, t.shape, t.strides, t.offset) for t in tensors)
    key = (lies, causal, gqa, scale)
    plans = engine.providers.setdefault("attention", {})
    plan: Forward | None = plans.get(key)
    buffers = [t.buf for t in tensors]
    if plan is None or any(b is None or b.pointer % 16 or b.length > FAR for b in buffers):
        if not fits(engine, q, k, v, scale):
            return None
        o = operands(engine, q, k, v, mask, gqa)
        if not o.heads:
            return engine.empty(o.shape, q.dtype), engine.empty(o.shape[:-1], d.float32)
        if o.heads > MOST_HEADS:
            return None
        plan = forward_plan(engine, o, causal, scale)
        if all(t.buf is b for t, b in zip((o.q, o.k, o.v), buffers, strict=False)):
            if len(plans) >= _MOST_PLANS:
                plans.clear()
            plans[key] = plan
        buffers[:3] = [o.q.buf, o.k.buf, o.v.buf]
    out, sums = plan.run(engine, q.dtype, buffers)
    rows = plan.shape[:-1]
    return (
        CubeTensor(out, plan.shape, plan.strides, q.dtype),
        CubeTensor(sums, rows, dense(rows), d.float32),
    )


def backward(
    engine: Engine, g: CubeTensor, q: CubeTensor, k: CubeTensor, v: CubeTensor,
    mask: CubeTensor | None, out: CubeTensor, sums: CubeTensor, causal: bool, gqa: bool,
    scale: float | None,
) -> tuple[CubeTensor, CubeTensor, CubeTensor] | None:  # fmt: skip
    """Return the gradients of q, k and v, None where these kernels do not fit."""
    same = q.shape[:-3] == k.shape[:-3] == v.shape[:-3] and k.shape[:-2] == v.shape[:-2]
    if not (same and (gqa or q.shape[:-2] == k.shape[:-2])) or not fits(engine, q, k, v, scale):
        return None
    o = operands(engine, q, k, v, mask, gqa)
    if not 0 < o.heads <= MOST_HEADS:
        return None
    g = aligned(engine, g)
    out, sums = first_dense(engine, out), first_dense(engine, sums)
    rows, keys, depth, width = q.shape[-2], k.shape[-2], q.shape[-1], v.shape[-1]
    g = split(g, -3, o.group) if o.group else g
    delta = engine.empty((o.heads, rows), d.float32)
    given = [o.q, o.k, o.v, g, *([] if o.mask is None else [o.mask])]
    walks = [broadcast_strides(t.shape[:-2], t.strides[:-2], o.batch) for t in given]
    # Merging what only some operands walk evenly would lose the group: it stays the last dim.
    extents, strides = collapse(o.batch, walks)
    index = engine.index_dtype(out, *given)
    places = [p for t, w in zip(given, strides, strict=True)
              for p in (t.offset, t.strides[-2], *w)]  # fmt: skip
    made = flash_backward.Delta(q.dtype, width, len(extents), index)
    g_places = [g.offset, g.strides[-2], *strides[3]]
    chunks = width // CHUNK
    across = min(PLANE, 1 << (chunks - 1).bit_length())
    count = o.heads * rows
    args = [delta.buf, out.buf, g.buf, count, rows, *extents, *g_places]
    engine.run(flash_backward.delta_kernel, (made,), count * across, args)
    kind = None if o.mask is None else o.mask.dtype
    grouped = "groups" in engine.client.properties.capabilities
    block = BLOCK if grouped or max(depth, width) <= flash_backward.KEPT else BLOCK // 2
    shape = flash.Shape(
        q.dtype, depth, width, len(extents), causal, kind, PLANES, block, index, grouped
    )  # fmt: skip
    own = factor(depth, scale)
    group = o.group or 1
    tail = [
        o.q.buf, o.k.buf, o.v.buf, g.buf, sums.buf, delta.buf,
        *([] if o.mask is None else [o.mask.buf]), rows, keys, own * flash.LOG2E, own, group,
        *extents, *places, *([] if o.mask is None else [o.mask.strides[-1]]),
    ]  # fmt: skip
    dq, dk, dv = (engine.empty(t.shape, t.dtype) for t in (q, k, v))
    side = PLANES * SIDE
    program = engine.loaded(flash_backward.keys_kernel, (shape,))
    engine.start(program, (-(-keys // side), o.heads // group, 1), [dk.buf, dv.buf, *tail])
    program = engine.loaded(flash_backward.queries_kernel, (shape,))
    engine.start(program, (-(-rows // side), o.heads, 1), [dq.buf, *tail])
    return dq, dk, dv
