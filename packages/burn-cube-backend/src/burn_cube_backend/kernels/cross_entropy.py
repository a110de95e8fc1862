"""Cross-entropy and its gradient: one launch over the rows, and one for the reduction.

A row is the scores of one sample. Neither the logarithms of the probabilities nor the
probabilities are ever in memory; halves compute in float32. In a plan that has both, the forward
hands the greatest score and the power sum of each row on, and the weight of all targets, so that
the gradient is one launch with one walk; it is what it finds out by itself otherwise, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from burn_cube import Kernel
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import collapse, dense, size_of
from burn_cube_backend.kernels.create import filled
from burn_cube_backend.kernels.elementwise import LANES
from burn_cube_backend.kernels.epilogue import (
    Chain,
    Epilogue,
    EpilogueCode,
    Spec,
    epilogue_of,
    out_of,
)
from burn_cube_backend.kernels.maps import converted, wide
from burn_cube_backend.kernels.orders import asks_last
from burn_cube_backend.kernels.rows import At, Layout, Row, layout, row_code, run_rows
from burn_cube_backend.kernels.watch import Watch
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d

# Classes from which on rows may have gaps behind them.
_LONG = 1024


class Rows(NamedTuple):
    """What a kernel over the rows depends on.

    Attributes:
        raw: dtype of what is read; `source` that of the scores which are made of it; halves compute
            in float32, and so are weights of classes.
        target: dtype of the targets: class numbers, or probabilities.
        out: dtype of what is written for each row.
        g: dtype of a gradient that is read.
        weighted: classes have weights.
        smooth: some of each target is spread over all classes.
        mean: the loss was divided by the weights of the targets (of a gradient).
        kept: the greatest score and the power sum of each row are written, or read.
        how: the layout.
        before: what makes scores of what is read; `after` what is made of a gradient.
    """

    raw: DType
    source: DType
    target: DType
    out: DType
    g: DType
    weighted: bool
    smooth: bool
    mean: bool
    kept: bool
    how: Layout
    before: Spec | None = None
    after: Spec | None = None


class _Scores:
    """Buffers and numbers that both kernels have, and the greatest score and power sum of a row.

    Attributes:
        row: the row.
        base: where its scores begin.
    """

    def __init__(self, code: Code, s: Rows) -> None:
        self.code = code
        self.kind = wide(s.source)
        self.x, self.target = code.buffer("x", s.raw), code.buffer("target", s.target)
        self.raw = s.raw
        self.weight = code.buffer("weight", self.kind) if s.weighted else None
        # Probabilities name no class that could be out of range.
        self.watch = None if s.target.is_float else Watch(code)
        length, offset, step = code.place("length"), code.place("offset"), code.place("step")
        self.target0, self.weight0 = code.place("target_offset"), code.place("weight_offset")
        self.site, self.ignore = code.scalar("site", d.int32), code.scalar("ignore", d.int64)
        # Of a target: what stays at its class, and what every class gets.
        self.stays, self.spread = code.scalar("stays", self.kind), code.scalar("spread", self.kind)
        self.row = Row(code, s.how, length)
        self.base = self.row.number * step + offset
        self.before = _chain(code, s, s.before, "before_")

    def fold(self, known: Sequence[Buf] = ()) -> None:
        """Find the greatest score and the sum of powers, or read them."""
        if known:
            self.top, self.total = (buf[self.row.number] for buf in known)
            return
        (self.top,) = self.row.fold(("top", self.kind), body=lambda at: self.score(at))
        (self.total,) = self.row.fold(("add", self.kind), body=self.power)

    def score(self, at: At) -> Val:
        """Return scores at a place."""
        if self.before is None:
            return at.load(self.x, self.base, self.kind)
        value = at.load(self.x, self.base, self.raw)
        return self.before(value, at).cast(self.kind)

    def shifted(self, at: At) -> Val:
        """Return scores less the greatest."""
        return self.score(at) - at.of(self.top)

    def power(self, at: At) -> Val:
        """Return powers, at most 1."""
        return self.shifted(at).call("exp")

    def weights(self, at: At) -> Val | None:
        """Return weights of classes at a place, None where they have none."""
        return None if self.weight is None else at.load(self.weight, self.weight0, self.kind)

    def goal(self) -> tuple[Val, Val, Val]:
        """Return whether the target of the row counts, its class, and the weight of that."""
        raw = self.target[self.row.number + self.target0].cast(d.int64)
        valid = raw.ne(self.ignore)
        assert self.watch is not None  # noqa: S101 - class numbers
        place, _ = self.watch.inside(valid.pick(raw, 0), self.row.length, self.site, False)
        if self.weight is None:
            return valid, place, self.code.const(1.0, self.kind)
        return valid, place, self.weight[place + self.weight0].cast(self.kind)


def _chain(
    code: Code, s: Rows, spec: Spec | None, name: str
) -> Callable[[Val, At], Val] | None:  # fmt: skip
    """Return the code of a chain, whose parameters are added."""
    if spec is None:
        return None
    # It reads nothing of a row beside the elements themselves.
    change = EpilogueCode(code, spec, name).channel(code.at(0))

    def changed(value: Val, at: At) -> Val:
        if at.width == 1 or s.how.vectors:
            return change(value, at.place)
        # Units of a GPU compute one by one what they load and store at once.
        lanes = [Val(code, code.b.extract(value.op, k)) for k in range(at.width)]
        return Val(code, code.b.vector(*[change(lane, at.place).op for lane in lanes]))

    return changed


def _kept_buffers(code: Code, s: Rows) -> list[Buf]:
    """Return memory of the greatest score and the power sum of each row, if they are kept."""
    return [code.buffer(n, wide(s.source)) for n in ("tops", "totals")] if s.kept else []


def loss_kernel(s: Rows) -> Kernel:
    """Write the loss of each row, and the weight of its target."""
    code = row_code("cross_entropy", s.how)
    soft = s.target.is_float
    losses = code.buffer("out", s.out)
    shares = None if soft else code.buffer("shares", wide(s.source))
    kept = _kept_buffers(code, s)
    scores = _Scores(code, s)
    row, kind = scores.row, scores.kind
    start = row.number * row.length + scores.target0
    scores.fold()
    for buf, value in zip(kept, (scores.top, scores.total), strict=bool(kept)):
        row.store(buf, value, kind)
    log_sum = scores.total.call("log")

    def surprise(at: At) -> Val:
        made = at.of(log_sum) - scores.shifted(at)
        weights = scores.weights(at)
        return made if weights is None else made * weights

    if soft:

        def expected(at: At) -> Val:
            share = at.load(scores.target, start, kind)
            if s.smooth:
                share = share * at.of(scores.stays) + at.of(scores.spread)
            return surprise(at) * share

        (loss,) = row.fold(("add", kind), body=expected)
        row.store(losses, loss, s.out)
        return code.finish()
    valid, place, weight = scores.goal()
    loss = (log_sum - (scores.score(At(row, place, 1)) - scores.top)) * weight
    if s.smooth:
        (every,) = row.fold(("add", kind), body=surprise)
        loss = loss * scores.stays + every * scores.spread
    row.store(losses, valid.pick(loss, 0.0), s.out)
    assert shares is not None  # noqa: S101 - class numbers
    row.store(shares, valid.pick(weight, 0.0), kind)
    return code.finish()


def gradient_kernel(s: Rows) -> Kernel:
    """Write `p sum(q) - q` of each row, times its share of the gradient."""
    code = row_code("cross_entropy_backward", s.how)
    out, g = code.buffer("out", s.out), code.buffer("g", s.g)
    lead = code.place("lead")
    kept = _kept_buffers(code, s)
    total = code.buffer("weights", wide(s.source)) if s.mean else None
    g0, step = code.place("g_offset"), code.place("g_step")
    scores = _Scores(code, s)
    after = _chain(code, s, s.after, "after_")
    row, kind = scores.row, scores.kind
    scores.fold(kept)
    valid, place, weight = scores.goal()
    share = g[g0 + row.number * step].cast(kind)
    if total is not None:
        share = share / total[code.at(0)]
    hit = valid.pick(share * weight * scores.stays, 0.0)
    mass, even = hit, None
    if s.smooth:
        even = valid.pick(share * scores.spread, 0.0)
        count = row.length.cast(kind)
        if scores.weight is not None:
            (count,) = row.fold(("add", kind), body=lambda at: scores.weights(at))
        mass = hit + even * count
    factor = mass / scores.total
    start = row.number * lead

    def slope(at: At) -> None:
        made = scores.power(at) * at.of(factor)
        if even is not None:
            weights = scores.weights(at)
            made = made - (at.of(even) if weights is None else at.of(even) * weights)
        taken = at.numbers().eq(at.of(place)).pick(at.of(hit), at.of(code.const(0.0, kind)))
        made = made - taken
        if after is not None:
            made = after(made.cast(s.source), at)
        at.store(out, start, made, s.out)

    row.each(slope)
    return code.finish()


def shares_kernel(kind: DType, target: DType, weight: DType | None, index: DType) -> Kernel:
    """Write the weight of every target, 0 for one that is ignored."""
    code = Code("target_weights", index)
    out, targets = code.buffer("out", kind), code.buffer("target", target)
    table = None if weight is None else code.buffer("weight", weight)
    watch = Watch(code)
    count, classes, target0 = code.place("count"), code.place("classes"), code.place("offset")
    weight0 = code.place("weight_offset")
    site, ignore = code.scalar("site", d.int32), code.scalar("ignore", d.int64)
    with code.each(count) as i:
        raw = targets[i + target0].cast(d.int64)
        valid = raw.ne(ignore)
        place, _ = watch.inside(valid.pick(raw, 0), classes, site, False)
        one = code.const(1.0, kind) if table is None else table[place + weight0].cast(kind)
        out[i] = valid.pick(one, 0.0)
    return code.finish()


def total_kernel(kind: DType, out: DType, how: Layout, shared: bool, kept: bool) -> Kernel:
    """Write the sum of a row, over that of another (`shared`; `kept`: with it) or a number."""
    code = row_code("loss_total", how)
    target, losses = code.buffer("out", out), code.buffer("losses", kind)
    weights = code.buffer("weights", kind) if kept else None
    shares = code.buffer("shares", kind) if shared else None
    length, divisor = code.place("length"), code.scalar("divisor", kind)
    row = Row(code, how, length)
    zero = code.at(0)
    if shares is None:
        (total,) = row.fold(("add", kind), body=lambda at: at.load(losses, zero, kind))
        row.store(target, total / divisor, out)
        return code.finish()
    total, whole = row.fold(
        ("add", kind), ("add", kind),
        body=lambda at: (at.load(losses, zero, kind), at.load(shares, zero, kind)),
    )  # fmt: skip
    row.store(target, total / whole, out)
    if weights is not None:
        row.store(weights, whole, kind)
    return code.finish()


class _Call:
    """The operands of one call, with the classes last.

    Attributes:
        x: scores, classes last, without gaps between them.
        shape: of the loss of each sample.
    """

    def __init__(
        self, engine: Engine, x: CubeTensor, target: CubeTensor, weight: CubeTensor | None,
        ignore: int, smoothing: float, before: Epilogue | None = None,
    ) -> None:  # fmt: skip
        self.engine = engine
        rank = len(x.shape)
        self.before = before
        self.source = x.dtype if before is None else out_of(before)
        self.kind = wide(self.source)
        self.dim = min(1, rank - 1)
        self.turned = [k for k in range(rank) if k != self.dim] + [self.dim]
        self.shape = tuple(x.shape[k] for k in self.turned[:-1])
        self.x = engine.solid(self._last(x))
        extents, (steps,) = collapse(self.shape, [self.x.strides[:-1]])
        if self.x.strides[-1] != 1 or len(extents) > 1 or steps[0] < 0:
            self.x = engine.row_major(self.x)
            steps = (self.x.shape[-1],)
        self.classes = self.x.shape[-1]
        self.rows = size_of(self.shape)
        self.soft = target.dtype.is_float
        self.target = engine.row_major(self._last(target) if self.soft else target)
        if self.soft:
            self.target = converted(engine, self.target, self.kind)
        self.weight = (
            None if weight is None else engine.row_major(converted(engine, weight, self.kind))
        )
        places = engine.index_dtype(self.x, count=self.rows * (self.classes + LANES))
        self.how = layout(engine, self.classes, places)
        self.smooth = bool(smoothing)
        self.site = engine.site("cross_entropy", self.dim, self.classes)
        weight0 = 0 if self.weight is None else self.weight.offset
        self.weights = [] if self.weight is None else [self.weight.buf]
        self.ignore = ignore
        self.weight0 = weight0
        watched = [] if self.soft else [engine.record()]
        self.arrays: list[Any] = [self.x.buf, self.target.buf, *self.weights, *watched]
        self.numbers: list[Any] = [
            self.classes, self.x.offset, steps[0], self.target.offset, weight0, self.site, ignore,
            1.0 - smoothing, smoothing / max(self.classes, 1),
            *(() if before is None else before.args),
        ]  # fmt: skip

    def _last(self, x: CubeTensor) -> CubeTensor:
        return x.view(
            tuple(x.shape[k] for k in self.turned), tuple(x.strides[k] for k in self.turned)
        )

    def spec(
        self, out: DType, g: DType, mean: bool, kept: bool, after: Epilogue | None = None
    ) -> Rows:
        """Return what a kernel over the rows depends on."""
        chains = [None if c is None else c.spec for c in (self.before, after)]
        return Rows(
            self.x.dtype, self.source, self.target.dtype, out, g, self.weight is not None,
            self.smooth, mean, kept, self.how, *chains,
        )  # fmt: skip

    def total(
        self, losses: CubeTensor, shares: CubeTensor | None, out: DType, divisor: float,
        weights: CubeTensor | None = None,
    ) -> CubeTensor:  # fmt: skip
        """Return the sum over all rows, over that of the shares or over a number.

        Args:
            losses: of the rows.
            shares: weights of their targets.
            out: dtype of the sum.
            divisor: the number, without shares.
            weights: gets the sum of the shares.
        """
        engine = self.engine
        made = engine.empty((), out)
        how = layout(engine, 1 << 30, engine.index_dtype(losses, count=self.rows))
        also = [] if shares is None else [shares.buf]
        more = [] if weights is None else [weights.buf]
        args = [made.buf, losses.buf, *more, *also, self.rows, divisor]
        spec = (self.kind, out, how, shares is not None, weights is not None)
        run_rows(engine, total_kernel, spec, 1, self.rows * 1.0, args)
        return made

    def shares(self) -> CubeTensor:
        """Return the weights of all targets."""
        engine = self.engine
        made = engine.empty((self.rows,), self.kind)
        args = [
            made.buf, self.target.buf, *self.weights, engine.record(), self.rows, self.classes,
            self.target.offset, self.weight0, self.site, self.ignore,
        ]  # fmt: skip
        weight = None if self.weight is None else self.weight.dtype
        engine.run(
            shares_kernel, (self.kind, self.target.dtype, weight, self.how.places), self.rows, args
        )
        return made


@kernel("cross_entropy")
def cross_entropy(
    engine: Engine, x: CubeTensor, target: CubeTensor, weight: CubeTensor | None, reduction: str,
    dtype: DType | None, ignore_index: int, label_smoothing: float,
) -> CubeTensor:  # fmt: skip
    """-log softmax(x)[t] w[t], or over probabilities; the mean is over the weights of targets."""
    x, last = _in(engine, x, dtype)
    call = _Call(engine, x, target, weight, ignore_index, label_smoothing)
    return _loss(call, reduction, last, False)[0]


class Kept(NamedTuple):
    """What a loss hands on to its gradient.

    Attributes:
        ignore: the class that is left out.
        tops, totals: the greatest score and the power sum of each row.
        weights: the weight of all targets, None where the gradient does not ask for it.
    """

    ignore: int
    tops: CubeTensor
    totals: CubeTensor
    weights: CubeTensor | None


def entropy_kept(
    engine: Engine, before: Chain | None, after: None, x: CubeTensor, target: CubeTensor,
    weight: CubeTensor | None, reduction: str, dtype: DType | None, ignore_index: int,
    label_smoothing: float, *, keep: bool = True,
) -> tuple[CubeTensor, Kept | None]:  # fmt: skip
    """Return `cross_entropy` of what a chain makes of x, and what its gradient asks for if kept."""
    if before is None:
        x, last = _in(engine, x, dtype)
        call = _Call(engine, x, target, weight, ignore_index, label_smoothing)
    else:
        made = epilogue_of(before)
        call = _Call(engine, x, target, weight, ignore_index, label_smoothing, made)
        last = out_of(made)
    return _loss(call, reduction, last, keep)


def _loss(
    call: _Call, reduction: str, last: DType, keep: bool
) -> tuple[CubeTensor, Kept | None]:  # fmt: skip
    engine, kind, ignore_index = call.engine, call.kind, call.ignore
    kept: Kept | None = None
    if not call.x.size:
        losses = filled(engine, kind, (call.rows,), 0.0)
        shares = None if call.soft else filled(engine, kind, (call.rows,), 0.0)
    else:
        out = last if reduction == "none" else kind
        losses = engine.empty((call.rows,), out)
        shares = None if call.soft else engine.empty((call.rows,), kind)
        also = [] if shares is None else [shares]
        if keep:
            tops, totals = (engine.empty((call.rows,), kind) for _ in range(2))
            weights = engine.empty((), kind) if also and reduction == "mean" else None
            kept = Kept(ignore_index, tops, totals, weights)
            also += [tops, totals]
        args = [losses.buf, *[x.buf for x in also], *call.arrays, *call.numbers]
        spec = call.spec(out, kind, False, keep)
        run_rows(engine, loss_kernel, (spec,), call.rows, call.classes * 3.0, args)
    if reduction == "none":
        loss = converted(engine, losses, last)
        return loss.view(call.shape, dense(call.shape)), kept
    if reduction == "sum":
        return call.total(losses, None, last, 1.0), kept
    weights = None if kept is None else kept.weights
    return call.total(losses, shares, last, float(call.rows), weights), kept


def _in(engine: Engine, x: CubeTensor, dtype: DType | None) -> tuple[CubeTensor, DType]:
    """Return the scores as the kernels read them, and the dtype of the loss.

    Halves are computed in float32 anyway, so scores that are asked for in float32 stay as they are.
    """
    last = dtype or x.dtype
    return x if wide(x.dtype) is last else converted(engine, x, last), last


@kernel("cross_entropy_backward")
def cross_entropy_backward(
    engine: Engine, g: CubeTensor, x: CubeTensor, target: CubeTensor, weight: CubeTensor | None,
    reduction: str, dtype: DType | None, ignore_index: int, label_smoothing: float,
) -> CubeTensor:  # fmt: skip
    """p sum(q) - q for p = softmax(x) and q the smoothed, weighted target of each class."""
    return entropy_gradient(
        engine, None, None, None, g, x, target, weight, reduction, dtype, ignore_index,
        label_smoothing,
    )  # fmt: skip


def entropy_gradient(
    engine: Engine, before: Chain | None, after: Chain | None, kept: Kept | None, g: CubeTensor,
    x: CubeTensor, target: CubeTensor, weight: CubeTensor | None, reduction: str,
    dtype: DType | None, ignore_index: int, label_smoothing: float,
) -> CubeTensor:  # fmt: skip
    """Return what a chain makes of `cross_entropy_backward`, given what the loss has handed on."""
    first, then = (None if c is None else epilogue_of(c) for c in (before, after))
    own = x.dtype if first is None else out_of(first)
    own = own if then is None else out_of(then)
    if not x.size:
        return engine.empty(x.shape, own)
    if first is None:
        x, _ = _in(engine, x, dtype)
    call = _Call(engine, x, target, weight, ignore_index, label_smoothing, first)
    g = engine.row_major(g)
    whole: list[Any] = []
    if (
        reduction == "mean"
        and kept is not None
        and kept.weights is not None
        and kept.ignore == ignore_index
    ):
        whole = [kept.weights.buf]
    elif reduction == "mean":
        whole = [call.total(call.shares(), None, call.kind, 1.0).buf]
    # Products read it next: on a GPU long rows begin at 16 bytes.
    lead = call.classes
    if engine.client.properties.kind == "gpu" and lead >= _LONG:
        lead = -(-lead // LANES) * LANES
    wide_shape = (*call.x.shape[:-1], lead)
    out = engine.empty(wide_shape, own).view(call.x.shape, dense(wide_shape))
    step = 1 if reduction == "none" else 0
    known = [] if kept is None else [kept.tops.buf, kept.totals.buf]
    args = [
        out.buf, g.buf, lead, *known, *whole, g.offset, step, *call.arrays, *call.numbers,
        *(() if then is None else then.args),
    ]  # fmt: skip
    spec = call.spec(own, g.dtype, bool(whole), bool(known), then)
    work = call.classes * (1.5 if known else 4.0)
    run_rows(engine, gradient_kernel, (spec,), call.rows, work, args)
    back = sorted(range(len(call.turned)), key=call.turned.__getitem__)
    made = out.view(tuple(out.shape[k] for k in back), tuple(out.strides[k] for k in back))
    if then is None or call.dim == len(x.shape) - 1:
        return made
    # A map by itself would have written rows, and sums go by the order in memory.
    return made if asks_last(engine, made) else engine.row_major(made)
