"""Scaled dot-product attention and its gradients.

Scores of a few heads at a time are a product, one row kernel that scales, masks and normalises
them where they lie, and a second product; the gradients are four products and one row kernel more.
How many heads go together follows from the memory that their scores take. Heads that share keys
are one tall matrix, so that nothing is repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from burn_cube import Kernel
from burn_cube_backend.code import Buf, Val
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
from burn_cube_backend.kernels.flash import LOG2E
from burn_cube_backend.kernels.flash_calls import first_dense, lifted, split
from burn_cube_backend.kernels.maps import HALVES, computed, converted, copied, wide, write
from burn_cube_backend.kernels.matmul import product
from burn_cube_backend.kernels.reduce import reduce
from burn_cube_backend.kernels.reduction import Reducer
from burn_cube_backend.kernels.rows import (
    LANES,
    STEPS,
    At,
    Layout,
    Row,
    layout,
    row_code,
    run_rows,
)
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
        self.coords = code.coords(row.number, extents)
        self.query = row.number % self.queries
        self.head = code.walk(self.offset, self.coords, strides)

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


def _seen(row: Row, scores: _Scores, bufs: Sequence[Buf], base: Val) -> None:
    """Let a row of a causal mask end with the round of vectors in which its query's keys end.

    What is left out counts nothing in a sum, and is 0 in the results.
    """
    if not scores.mask.causal or not row.how.vectors or row.how.length:
        return
    code, whole, step = row.code, row.length, LANES * STEPS
    row.length = ((scores.query // step + 1) * step).call("min", whole)
    with code.loop(row.length, whole, independent=True) as k:
        for buf in bufs:
            buf[base + k] = code.const(0.0, scores.kind)


def weights_kernel(kind: DType, mask: Mask, how: Layout) -> Kernel:
    """Write the softmax of scaled and masked scores over them, and log2 of the sums of the rows.

    A row of -inf is 0, and its sum inf.
    """
    code = row_code("attention_weights", how)
    x, sums = code.buffer("scores", kind), code.buffer("sums", kind)
    length = code.place("length")
    row = Row(code, how, length)
    scores = _Scores(row, mask, kind)
    base = row.number * row.length
    _seen(row, scores, [x], base)

    def seen(at: At) -> Val:
        value = scores.masked(at, at.load(x, base, kind))
        at.store(x, base, value, kind)
        return value

    (top,) = row.fold(("top", kind), body=seen)
    top = top.eq(float("-inf")).pick(0.0, top)

    def power(at: At) -> Val:
        value = (at.load(x, base, kind) - at.of(top)).call("exp")
        at.store(x, base, value, kind)
        return value

    (total,) = row.fold(("add", kind), body=power)
    none = total.eq(0.0)
    row.store(sums, none.pick(float("inf"), top * LOG2E + total.call("log2")), kind)
    factor = 1.0 / none.pick(1.0, total)
    row.each(lambda at: at.store(x, base, at.load(x, base, kind) * at.of(factor), kind))
    return code.finish()


class Slopes(NamedTuple):
    """What the kernel of gradients by scores depends on.

    Attributes:
        kind: dtype of scores.
        out: dtype of the result of attention.
        width: what rows of values are walked for, as `Layout.length`.
    """

    kind: DType
    out: DType
    width: int


def slopes_kernel(s: Slopes, mask: Mask, how: Layout) -> Kernel:
    """Write p = exp(score - log sum) over scores and ds = p (dp - sum(g out)) over dp, by rows."""
    code, kind = row_code("attention_slopes", how), s.kind
    p, ds, sums = (code.buffer(n, kind) for n in ("scores", "dp", "sums"))
    g, out = code.buffer("g", kind), code.buffer("out", s.out)
    length, width = code.place("length"), code.place("width")
    row = Row(code, how, length)
    values = Row(code, how._replace(length=s.width), width)
    scores = _Scores(row, mask, kind)
    bases = []
    for name in ("g", "out"):
        offset, steps = code.place(f"{name}_offset"), code.places(f"{name}_stride", mask.rank + 1)
        bases.append(code.walk(offset, scores.coords, steps))
    (delta,) = values.fold(
        ("add", kind), body=lambda at: at.load(g, bases[0], kind) * at.load(out, bases[1], kind)
    )
    base = row.number * row.length
    _seen(row, scores, [p, ds], base)
    shift = sums[row.number] * (1 / LOG2E)

    def written(at: At) -> None:
        weight = (scores.masked(at, at.load(p, base, kind)) - at.of(shift)).call("exp")
        at.store(ds, base, (at.load(ds, base, kind) - at.of(delta)) * weight, kind)
        at.store(p, base, weight, kind)

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

    def scores(self) -> CubeTensor:
        """Return q k^T, row-major in the whole batch."""
        engine, shape = self.engine, (*self.batch, self.rows, self.keys)
        scores = product(engine, self.q, _turned(self.k))
        if scores.shape != shape:  # the batch of v is larger
            grown = engine.empty(shape, self.kind)
            scores = write(engine, grown, scores) if grown.size else grown
        return scores

    def weights(self, causal: bool, factor: float) -> tuple[CubeTensor, CubeTensor]:
        """Return softmax(q k^T factor + mask), row-major, and log2 of the sums of its rows."""
        engine, scores = self.engine, self.scores()
        shape = (*self.plain(self.batch), self.rows)
        if not scores.size:
            return scores, filled(engine, self.kind, shape, float("inf"))
        sums = engine.empty(shape, self.kind)
        what, how, args = self._rows(scores, causal, factor)
        run_rows(
            engine, weights_kernel, (self.kind, what, how), scores.size // self.keys,
            self.keys * 4.0, [scores.buf, sums.buf, self.keys, *args],
        )  # fmt: skip
        return scores, sums

    def slopes(
        self, g: CubeTensor, out: CubeTensor, sums: CubeTensor, causal: bool, factor: float
    ) -> tuple[CubeTensor, CubeTensor]:
        """Return weights and the gradient by their scores, row-major."""
        engine, p = self.engine, self.scores()
        ds = product(engine, g, _turned(self.v))
        if ds.shape != p.shape:  # q and k have a larger batch than v and g
            ds = write(engine, engine.empty(p.shape, self.kind), ds)
        if not p.size:
            return p, ds
        what, how, args = self._rows(p, causal, factor)
        width = g.shape[-1]
        g, out = (
            t if t.shape[-1] == 1 or t.strides[-1] == 1 else copied(engine, t) for t in (g, out)
        )
        sums = first_dense(engine, sums)
        spec = Slopes(self.kind, out.dtype, layout(engine, width, how.places).length)
        places = [n for t in (g, out) for n in (t.offset, *t.strides[:-1])]
        run_rows(
            engine, slopes_kernel, (spec, what, how), p.size // self.keys, self.keys * 3.0,
            [p.buf, ds.buf, sums.buf, g.buf, out.buf, self.keys, width, *args, *places],
        )  # fmt: skip
        return p, ds

    def _rows(
        self, scores: CubeTensor, causal: bool, factor: float
    ) -> tuple[Mask, Layout, list[Any]]:
        """Return what a kernel of rows of scores depends on, and its arguments for the mask."""
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
        args: list[Any] = [
            *([] if mask is None else [mask.buf]), self.rows,
            0 if mask is None else mask.offset, *extents, *strides, float(factor),
        ]  # fmt: skip
        return what, how, args


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
) -> tuple[CubeTensor, CubeTensor]:  # fmt: skip
    """q [..., L, E], k [..., S, E], v [..., S, V] to [..., L, V], and log2 of the rows' sums."""
    made = flash_calls.attention(engine, q, k, v, mask, causal, gqa, scale)
    if made is not None:
        return made
    dtype = q.dtype
    factor = flash_calls.factor(q.shape[-1], scale)
    parts = []
    for part in _pieces(engine, q, k, v, mask, gqa):
        heads = _Heads(engine, *part, gqa)
        weights, sums = heads.weights(causal, factor)
        parts.append((_joined(product(engine, weights, heads.v), heads.group), sums))
    if len(parts) == 1:
        out, sums = parts[0]
        return converted(engine, out, dtype), sums
    return _stacked(engine, [p[0] for p in parts], dtype), _stacked(
        engine, [p[1] for p in parts], sums.dtype
    )


def _stacked(engine: Engine, parts: list[CubeTensor], dtype: DType) -> CubeTensor:
    """Return parts one behind the other along the first dim."""
    out = engine.empty((sum(p.shape[0] for p in parts), *parts[0].shape[1:]), dtype)
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
    mask: CubeTensor | None, out: CubeTensor, sums: CubeTensor, causal: bool, gqa: bool,
    scale: float | None,
) -> tuple[CubeTensor, CubeTensor, CubeTensor, CubeTensor]:  # fmt: skip
    """(dq, dk, dv, ds): ds = p (dp - sum(g out)) is the gradient of a float mask too."""
    made = flash_calls.backward(engine, g, q, k, v, mask, out, sums, causal, gqa, scale)
    if made is not None:
        # The slopes of the scores are as large as the scores: only a float mask wants them.
        shape = (*g.shape[:-1], k.shape[-2])

        def late() -> CubeTensor:
            slopes = _gradients(engine, g, q, k, v, mask, out, sums, causal, gqa, scale)[3]
            return engine.row_major(slopes)

        return *made, LateTensor(shape, dense(shape), q.dtype, late)
    return _gradients(engine, g, q, k, v, mask, out, sums, causal, gqa, scale)


def _gradients(
    engine: Engine, g: CubeTensor, q: CubeTensor, k: CubeTensor, v: CubeTensor,
    mask: CubeTensor | None, out: CubeTensor, sums: CubeTensor, causal: bool, gqa: bool,
    scale: float | None,
) -> tuple[CubeTensor, CubeTensor, CubeTensor, CubeTensor]:  # fmt: skip
    """Return the gradients by products of whole scores."""
    dtype = q.dtype
    heads = _Heads(engine, q, k, v, mask, gqa)
    kind, group = heads.kind, heads.group
    g = converted(engine, g, kind)
    if group:
        g, out = split(g, -3, group), split(out, -3, group)
    factor = flash_calls.factor(q.shape[-1], scale)
    p, ds = heads.slopes(g, out, sums, causal, factor)
    dq = _scaled(engine, product(engine, ds, heads.k), factor)
    dk = _scaled(engine, product(engine, _turned(ds), heads.q), factor)
    dv = product(engine, _turned(p), g)
    dq = _joined(dq, group)
    if group:
        dk, dv = (_summed(engine, t, (len(t.shape) - 3,), False) for t in (dk, dv))
    grads = [_sum_to(engine, t, s.shape) for t, s in ((dq, q), (dk, k), (dv, v))]
    ds = _joined(ds, group)
    dq, dk, dv, ds = (converted(engine, t, dtype) if dtype in HALVES else t for t in (*grads, ds))
    return dq, dk, dv, ds


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
