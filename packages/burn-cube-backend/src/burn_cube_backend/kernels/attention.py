"""Scaled dot-product attention and its gradients.

Scores of a few heads at a time are a product, one row kernel that scales, masks and normalises
them where they lie, and a second product; the gradients are four products and one row kernel more.
How many heads go together follows from the memory that their scores take. Heads that share keys
are one tall matrix, so that nothing is repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import NamedTuple

from burn_cube import Kernel
from burn_cube_backend.code import Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    dense,
    size_of,
)
from burn_cube_backend.kernels import flash_calls
from burn_cube_backend.kernels.create import filled
from burn_cube_backend.kernels.flash_calls import lifted, split
from burn_cube_backend.kernels.maps import HALVES, computed, converted, copied, wide, write
from burn_cube_backend.kernels.matmul import product
from burn_cube_backend.kernels.reduce import reduce
from burn_cube_backend.kernels.reduction import Reducer
from burn_cube_backend.kernels.rows import At, Layout, Row, layout, row_code, run_rows
from burn_cube_backend.payload import CubeTensor, LateTensor
from burn_cube_backend.table import kernel
from burn_std import DType

# Scores of heads that are computed together, in bytes: they stay in the caches of a processor.
TOGETHER = 8 << 20


class Mask(NamedTuple):
    """What is taken off the scores.

    Attributes:
        dtype: of the mask in memory, None without one.
        along: the mask has a column for every key; else one for all.
        causal: a query sees keys up to its own number.
        rank: dims of the batch.
    """

    dtype: DType | None
    along: bool
    causal: bool
    rank: int


class _Scores:
    """A row of scores in a kernel: where its mask begins, and its query's number."""

    def __init__(self, row: Row, mask: Mask, kind: DType) -> None:
        code = row.code
        self.row, self.mask, self.kind = row, mask, kind
        self.buf = code.buffer("mask", mask.dtype) if mask.dtype is not None else None
        self.queries, self.offset = code.place("queries"), code.place("mask_offset")
        extents = code.places("extent", mask.rank + 1)
        strides = code.places("mask_stride", mask.rank + 1)
        self.factor = code.scalar("factor", kind)
        coords = code.coords(row.number, extents)
        self.query = row.number % self.queries
        self.head = code.walk(self.offset, coords, strides)

    def masked(self, at: At, score: Val) -> Val:
        """Return a score times the factor, and what the masks leave of it."""
        score = score * at.of(self.factor)
        if self.buf is not None:
            if self.mask.along:
                seen = at.load(self.buf, self.head, self.buf.op.type.elem)
            else:
                seen = at.of(self.buf[self.head])
            if seen.dtype.is_bool:
                score = seen.pick(score, float("-inf"))
            else:
                score = score + seen.cast(self.kind)
        if self.mask.causal:
            score = (at.numbers() <= at.of(self.query)).pick(score, float("-inf"))
        return score


def weights_kernel(kind: DType, mask: Mask, how: Layout) -> Kernel:
    """Write the softmax of scaled and masked scores over them; a row of -inf is 0."""
    code = row_code("attention_weights", how)
    x, length = code.buffer("scores", kind), code.place("length")
    row = Row(code, how, length)
    scores = _Scores(row, mask, kind)
    base = row.number * row.length

    def seen(at: At) -> Val:
        value = scores.masked(at, at.load(x, base, kind))
        at.store(x, base, value, kind)
        return value

    (top,) = row.fold(("max", kind), body=seen)
    top = top.eq(float("-inf")).pick(0.0, top)

    def power(at: At) -> Val:
        value = (at.load(x, base, kind) - at.of(top)).call("exp")
        at.store(x, base, value, kind)
        return value

    (total,) = row.fold(("add", kind), body=power)
    factor = 1.0 / total.eq(0.0).pick(1.0, total)
    row.each(lambda at: at.store(x, base, at.load(x, base, kind) * at.of(factor), kind))
    return code.finish()


def slopes_kernel(kind: DType, how: Layout) -> Kernel:
    """Write ds = p (dp - sum(dp p)) over dp, a row of scores at a time."""
    code = row_code("attention_slopes", how)
    ds, p, length = code.buffer("dp", kind), code.buffer("p", kind), code.place("length")
    row = Row(code, how, length)
    base = row.number * row.length
    (total,) = row.fold(
        ("add", kind), body=lambda at: at.load(ds, base, kind) * at.load(p, base, kind)
    )

    def written(at: At) -> None:
        value = (at.load(ds, base, kind) - at.of(total)) * at.load(p, base, kind)
        at.store(ds, base, value, kind)

    row.each(written)
    return code.finish()


class _Heads:
    """The operands with one batch dim for samples and heads, read as they lie.

    Query heads that share keys are dims of their own: q [*B, G, L, E], k [*B, 1, S, E].
    """

    def __init__(
        self, engine: Engine, q: CubeTensor, k: CubeTensor, v: CubeTensor,
        mask: CubeTensor | None, gqa: bool,
    ) -> None:  # fmt: skip
        kind = wide(q.dtype)
        self.engine, self.kind = engine, kind
        q, k, v = (converted(engine, t, kind) for t in (q, k, v))
        self.group = q.shape[-3] // k.shape[-3] if gqa and q.shape[-3] != k.shape[-3] else 0
        if self.group:
            q = split(q, -3, self.group)
            k, v = lifted(k), lifted(v)
        self.q, self.k, self.v = q, k, v
        self.batch = broadcast_shape([t.shape[:-2] for t in (q, k, v)])
        # The scores have the batch of q and k alone until they meet v: as broadcast they are equal.
        self.rows, self.keys = q.shape[-2], k.shape[-2]
        self.mask = mask
        if mask is not None:
            shape = (*self.plain(self.batch), self.rows, self.keys)
            steps = broadcast_strides(mask.shape, mask.strides, shape)
            self.mask = (
                split(mask.view(shape, steps), -3, self.group)
                if self.group
                else (mask.view(shape, steps))
            )

    def plain(self, batch: Ints) -> Ints:
        """Return a batch as the user sees it: groups and shared heads are one dim."""
        if not self.group:
            return batch
        return (*batch[:-2], batch[-2] * batch[-1])

    def weights(self, causal: bool, scale: float | None) -> CubeTensor:
        """Return softmax(q k^T scale + mask), row-major in the whole batch."""
        engine, shape = self.engine, (*self.batch, self.rows, self.keys)
        factor = scale if scale is not None else 1 / sqrt(self.q.shape[-1])
        scores = product(engine, self.q, _turned(self.k))
        if scores.shape != shape:  # the batch of v is larger
            grown = engine.empty(shape, self.kind)
            scores = write(engine, grown, scores) if grown.size else grown
        if scores.size:
            self._normalise(scores, causal, factor)
        return scores

    def _normalise(self, scores: CubeTensor, causal: bool, factor: float) -> None:
        engine, mask = self.engine, self.mask
        extents = (*self.batch, self.rows)
        strides, along = (0,) * len(extents), False
        if mask is not None:
            strides, along = mask.strides[:-1], mask.strides[-1] != 0
            if along and mask.strides[-1] != 1:
                mask = copied(engine, mask)
                strides = mask.strides[:-1]
        what = Mask(None if mask is None else mask.dtype, along, causal, len(self.batch))
        index = engine.index_dtype(scores, count=scores.size)
        how = layout(engine, self.keys, index)
        args = [
            scores.buf, self.keys, *([] if mask is None else [mask.buf]), self.rows,
            0 if mask is None else mask.offset, *extents, *strides, float(factor),
        ]  # fmt: skip
        rows = scores.size // self.keys
        run_rows(engine, weights_kernel, (self.kind, what, how), rows, self.keys * 4.0, args)


def _turned(x: CubeTensor) -> CubeTensor:
    shape, strides = x.shape, x.strides
    return x.view(
        (*shape[:-2], shape[-1], shape[-2]), (*strides[:-2], strides[-1], strides[-2])
    )  # fmt: skip


def _joined(x: CubeTensor, group: int) -> CubeTensor:
    """Return dense [*B, H, G, ...] as [*B, H * G, ...]."""
    if not group:
        return x
    *batch, h, g, rows, columns = x.shape
    shape = (*batch, h * g, rows, columns)
    return x.view(shape, dense(shape))


@kernel("attention")
def attention(
    engine: Engine, q: CubeTensor, k: CubeTensor, v: CubeTensor, mask: CubeTensor | None,
    causal: bool, gqa: bool, scale: float | None,
) -> CubeTensor:  # fmt: skip
    """q [..., L, E], k [..., S, E], v [..., S, V] to [..., L, V]."""
    made = flash_calls.attention(engine, q, k, v, mask, causal, gqa, scale)
    if made is not None:
        return made
    dtype = q.dtype
    parts = []
    for part in _pieces(engine, q, k, v, mask, gqa):
        heads = _Heads(engine, *part, gqa)
        made = product(engine, heads.weights(causal, scale), heads.v)
        parts.append(_joined(made, heads.group))
    if len(parts) == 1:
        return converted(engine, parts[0], dtype)
    first = parts[0].shape
    out = engine.empty((sum(p.shape[0] for p in parts), *first[1:]), dtype)
    at = 0
    for p in parts:
        write(engine, out.view(p.shape, out.strides, at * out.strides[0]), p)
        at += p.shape[0]
    return out


def _pieces(
    engine: Engine, q: CubeTensor, k: CubeTensor, v: CubeTensor, mask: CubeTensor | None,
    gqa: bool,
) -> Iterator[tuple[CubeTensor, CubeTensor, CubeTensor, CubeTensor | None]]:  # fmt: skip
    """Cut the operands along their first dim so that the scores of a piece stay small."""
    heads = q.shape[:-2]
    each = size_of(heads[1:]) * q.shape[-2] * k.shape[-2] * wide(q.dtype).itemsize
    count = heads[0] if len(heads) >= (3 if gqa else 1) else 1
    same = all(t.shape[:-2] == heads for t in (k, v)) or (gqa and k.shape[0] == count == v.shape[0])
    step = max(1, TOGETHER // max(each, 1))
    if count <= step or not same or engine.client.properties.kind != "cpu":
        yield q, k, v, mask
        return
    rank = len(q.shape)
    for at in range(0, count, step):
        many = min(step, count - at)
        cut = [t.view((many, *t.shape[1:]), t.strides, t.offset + at * t.strides[0])
               for t in (q, k, v)]  # fmt: skip
        piece = mask
        if mask is not None and len(mask.shape) == rank and mask.shape[0] != 1:
            piece = mask.view(
                (many, *mask.shape[1:]), mask.strides, mask.offset + at * mask.strides[0]
            )
        yield cut[0], cut[1], cut[2], piece


@kernel("attention_backward")
def attention_backward(
    engine: Engine, g: CubeTensor, q: CubeTensor, k: CubeTensor, v: CubeTensor,
    mask: CubeTensor | None, causal: bool, gqa: bool, scale: float | None,
) -> tuple[CubeTensor, CubeTensor, CubeTensor, CubeTensor]:  # fmt: skip
    """(dq, dk, dv, ds): ds = p (dp - sum(dp p)) is the gradient of a float mask too."""
    made = flash_calls.backward(engine, g, q, k, v, mask, causal, gqa, scale)
    if made is not None:
        # The slopes of the scores are as large as the scores: only a float mask wants them.
        shape = (*g.shape[:-1], k.shape[-2])

        def late() -> CubeTensor:
            slopes = _gradients(engine, g, q, k, v, mask, causal, gqa, scale)[3]
            return engine.row_major(slopes)

        return *made, LateTensor(shape, dense(shape), q.dtype, late)
    return _gradients(engine, g, q, k, v, mask, causal, gqa, scale)


def _gradients(
    engine: Engine, g: CubeTensor, q: CubeTensor, k: CubeTensor, v: CubeTensor,
    mask: CubeTensor | None, causal: bool, gqa: bool, scale: float | None,
) -> tuple[CubeTensor, CubeTensor, CubeTensor, CubeTensor]:  # fmt: skip
    """Return the gradients by products of whole scores."""
    dtype = q.dtype
    heads = _Heads(engine, q, k, v, mask, gqa)
    kind, group = heads.kind, heads.group
    g = converted(engine, g, kind)
    if group:
        g = split(g, -3, group)
    p = heads.weights(causal, scale)
    ds = product(engine, g, _turned(heads.v))
    if ds.shape != p.shape:  # q and k have a larger batch than v and g
        ds = write(engine, engine.empty(p.shape, kind), ds)
    if ds.size:
        index = engine.index_dtype(ds, count=ds.size)
        how = layout(engine, heads.keys, index)
        args = [ds.buf, p.buf, heads.keys]
        rows = ds.size // heads.keys
        run_rows(engine, slopes_kernel, (kind, how), rows, heads.keys * 1.5, args)
    factor = scale if scale is not None else 1 / sqrt(q.shape[-1])
    dq = _scaled(engine, product(engine, ds, heads.k), factor)
    dk = _scaled(engine, product(engine, _turned(ds), heads.q), factor)
    dv = product(engine, _turned(p), g)
    dq = _joined(dq, group)
    if group:
        dk, dv = (_summed(engine, t, (len(t.shape) - 3,), False) for t in (dk, dv))
    grads = [_sum_to(engine, t, s.shape) for t, s in ((dq, q), (dk, k), (dv, v))]
    ds = _joined(ds, group)
    out = [converted(engine, t, dtype) if dtype in HALVES else t for t in (*grads, ds)]
    return out[0], out[1], out[2], out[3]


def _scaled(engine: Engine, x: CubeTensor, factor: float) -> CubeTensor:
    return computed(engine, "x * y", x.dtype, x=x, y=filled(engine, x.dtype, (), factor))


def _summed(engine: Engine, x: CubeTensor, dims: Ints, keepdim: bool) -> CubeTensor:
    t = x.dtype
    return reduce(engine, Reducer("sum", t, t, t, t), x, dims, keepdim)


def _sum_to(engine: Engine, x: CubeTensor, shape: Ints) -> CubeTensor:
    """Return x summed to a shape that broadcasts to its own."""
    extra = len(x.shape) - len(shape)
    if extra:
        x = _summed(engine, x, tuple(range(extra)), False)
    grown = tuple(k for k, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m)
    return _summed(engine, x, grown, True) if grown else x
