"""Reductions on a processor: in vectors along rows, and in panels of columns across them.

A row is read in vectors with accumulators enough to hide the latency of a sum. Where the reduced
dim is not the contiguous one, a unit owns a panel of neighbouring columns and walks down the rows,
so that every line of the cache is read once. Long reductions with few results are cut in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from burn_cube import Kernel, Vector
from burn_cube.spi import width_of
from burn_cube_backend.code import Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints
from burn_cube_backend.lanes import picked
from burn_cube_backend.payload import CubeTensor
from burn_std import DType, dtypes as d

LANES = 16
# Vectors that a row is read with at a time, and the widest panel in vectors.
STEPS, PANEL = 4, 8
# Vectors that are read at a time where what is computed of them is costly.
TURN = 2
# Rows shorter than this go to the plain kernel, one row per unit.
SHORT = LANES
# A piece of a row has at least this many elements, a piece of columns this many rows.
PIECE, ROWS = 1 << 14, 256
# What a step of one vector costs, in the operations that the runtime counts.
VECTOR_WORK = 6.0
# Reductions of one shape and layout whose plans are kept.
_MOST_PLANS = 4096
_OPS = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "argmax": "gt", "argmin": "lt"}
_OPS_OF_BOOLS = {"max": "or", "min": "and", "any": "or", "all": "and"}


class Spec(NamedTuple):
    """What a kernel depends on.

    Attributes:
        op: name of the reduction.
        source: dtype of the elements.
        middle: dtype to which elements convert first.
        acc: dtype of the state.
        out: dtype of the result.
        start: state before the first element.
        rank: dims of the results.
        panel: vectors of a panel of columns, 0 where rows are contiguous.
        place: dtype of places.
    """

    op: str
    source: DType
    middle: DType
    acc: DType
    out: DType
    start: Any
    rank: int
    panel: int
    place: DType

    @property
    def places(self) -> bool:
        """Whether places of extremes are wanted."""
        return self.op.startswith("arg")

    def extreme(self) -> Spec:
        """Return the reduction to the extreme whose place is wanted; others as they are."""
        return self._replace(op=self.op.removeprefix("arg"))

    def lowest(self) -> Spec:
        """Return the reduction of places to the first; what is no place lies behind them all."""
        nowhere = (1 << (self.place.bits - 1)) - 1
        return Spec("min", self.place, self.place, self.place, self.out, nowhere, 1, 0, self.place)


class Lanes:
    """The state of a vector of elements, or of one."""

    def __init__(self, code: Code, s: Spec, width: int) -> None:
        self.code, self.s, self.width = code, s, width
        kind: Any = s.acc if width == 1 else Vector(s.acc, width)
        place: Any = s.place if width == 1 else Vector(s.place, width)
        self.op = _OPS_OF_BOOLS[s.op] if s.acc.is_bool else _OPS[s.op]
        self.value = code.b.slot(kind)
        code.b.set(self.value, code.const(s.start, kind).op)
        self.place = code.b.slot(place) if s.places else None
        if self.place is not None:
            code.b.set(self.place, code.const(-1, place).op)

    def get(self) -> Val:
        """Return the value."""
        return Val(self.code, self.code.b.get(self.value))

    def at(self) -> Val:
        """Return the places."""
        assert self.place is not None  # noqa: S101 - only where places are wanted
        return Val(self.code, self.code.b.get(self.place))

    def step(self, value: Val, place: Val | None = None) -> None:
        """Take elements that stand behind those before."""
        now, b = self.get(), self.code.b
        if self.place is None or place is None:
            b.set(self.value, now.call(self.op, value).op)
            return
        better = value.call(self.op, now)
        if value.dtype.is_float:
            better = (better | value.call("isnan")) & ~now.call("isnan")
        # The state before the first element loses against an equal one.
        better = better | (self.at() < 0)
        b.set(self.value, better.pick(value, now).op)
        b.set(self.place, better.pick(place, self.at()).op)

    def result(self, out: Any, at: Val) -> None:
        """Write value or places, in vectors as they are."""
        made = self.at() if self.place is not None else self.get()
        self.code.b.store(out.op, at.op, made.cast(self.s.out).op)


def _lane(code: Code, value: Val, k: int) -> Val:
    return Val(code, code.b.extract(value.op, k))


def _load(code: Code, s: Spec, x: Any, at: Val, width: int) -> Val:
    return Val(code, code.b.load(x.op, at.op, width)).cast(s.middle).cast(s.acc)


def _lanes(code: Code, width: int) -> Val:
    return Val(code, code.b.vector(*[code.at(i).op for i in range(width)]))


# What is taken at a place: for each state the elements of so many lanes.
Taken = Callable[[Val, int], Sequence[Val]]


def vectors(
    code: Code, span: tuple[Val, Val], length: int, steps: int, body: Callable[[Val, int], None]
) -> None:
    """Run a body for all whole vectors of a stretch, `steps` of them in a round.

    Args:
        code: the kernel.
        span: where the stretch begins and ends.
        length: elements of the stretch if they are known, else 0.
        steps: vectors of a round.
        body: takes the place of a vector and its number in the round.
    """
    start, stop = span
    if length:
        for n in range(length // LANES):
            body(code.at(n * LANES), n % steps)
        return
    block = LANES * steps
    many = start + (stop - start) // block * block
    if steps > 1:
        with code.loop(start, many, code.at(block)) as k:
            for part in range(steps):
                body(k + part * LANES, part)
    whole = start + (stop - start) // LANES * LANES
    with code.loop(many if steps > 1 else start, whole, code.at(LANES)) as k:
        body(k, 0)


def rest(code: Code, span: tuple[Val, Val], length: int, body: Callable[[Val, int], None]) -> None:
    """Run a body for the elements behind the whole vectors: one by one, or all if known."""
    start, stop = span
    if length:
        if length % LANES:
            body(code.at(length // LANES * LANES), length % LANES)
        return
    with code.loop(start + (stop - start) // LANES * LANES, stop) as k:
        body(k, 1)


def _turning(code: Code, states: Sequence[list[Lanes]], span: tuple[Val, Val], take: Taken) -> None:
    """Take the rounds of `vectors` some vectors at a time: states change their places.

    What is costly to compute would need more registers than there are if a round had all.
    """
    start, stop = span
    many = start + (stop - start) // (LANES * STEPS) * (LANES * STEPS)
    with code.loop(start, many, code.at(LANES * TURN)) as k:
        rounds = [take(k + part * LANES, LANES) for part in range(TURN)]
        for n, state in enumerate(states):
            made = [
                one.get().call(one.op, taken[n]) for one, taken in zip(state, rounds, strict=False)
            ]
            values = [other.get() for other in state[TURN:]] + made
            for one, value in zip(state, values, strict=True):
                code.b.set(one.value, value.op)
    whole = start + (stop - start) // LANES * LANES
    with code.loop(many, whole, code.at(LANES)) as k:
        for state, value in zip(states, take(k, LANES), strict=True):
            state[0].step(value)


def folded(
    code: Code, specs: Sequence[Spec], span: tuple[Val, Val], take: Taken, length: int = 0,
    heavy: bool = False,
) -> list[Lanes]:  # fmt: skip
    """Return the states of a stretch of a row: the order in which every row is reduced here.

    Args:
        code: the kernel.
        specs: what each reduction does.
        span: where the stretch begins and ends.
        take: the elements at a place, for each reduction.
        length: elements of the stretch if they are known, else 0.
        heavy: what is taken is costly to compute.
    """
    used = min(STEPS, length // LANES) if length else STEPS
    states = [[Lanes(code, s, LANES) for _ in range(used)] for s in specs]

    def step(at: Val, part: int) -> None:
        for state, value in zip(states, take(at, LANES), strict=True):
            state[part].step(value)

    if heavy and not length:
        _turning(code, states, span, take)
    else:
        vectors(code, span, length, STEPS, step)
    totals = [Lanes(code, s, 1) for s in specs]
    for state, total in zip(states, totals, strict=True) if used else ():
        _joined(code, state, total)

    def last(at: Val, width: int) -> None:
        for total, value in zip(totals, take(at, width), strict=True):
            for n in range(width):
                total.step(value if width == 1 else _lane(code, value, n))

    rest(code, span, length, last)
    return totals


def _joined(code: Code, states: Sequence[Lanes], total: Lanes) -> None:
    """Let a state take the lanes of others."""
    first, *others = states
    for state in others:
        first.step(state.get())
    # Halves meet halves, so that the additions are as even as the lanes.
    lanes, half = first.get(), LANES // 2
    while half > 1:
        lanes = picked((lanes,), range(half)).call(
            total.op, picked((lanes,), range(half, 2 * half))
        )
        half //= 2
    total.step(_lane(code, lanes, 0).call(total.op, _lane(code, lanes, 1)))


def row_kernel(s: Spec) -> Kernel:
    """Write the reduction of one piece of a contiguous row by each unit."""
    code = Code(f"{s.op}_rows", s.place, 1)
    out, x = code.buffer("out", s.out), code.buffer("x", s.source)
    pieces, piece, length = code.place("pieces"), code.place("piece"), code.place("length")
    offset = code.place("offset")
    extents, strides = code.places("extent", s.rank), code.places("stride", s.rank)
    unit = code.special("cube_pos")
    o = unit // pieces
    start = (unit - o * pieces) * piece
    stop = (start + piece).call("min", length)
    base = code.walk(offset, code.coords(o, extents), strides)

    def take(at: Val, width: int) -> list[Val]:
        return [_load(code, s, x, base + at, width)]

    if s.places:
        _found(code, s, (start, stop), take, out, unit)
        return code.finish()
    (total,) = folded(code, [s], (start, stop), take)
    total.result(out, unit)
    return code.finish()


def _found(code: Code, s: Spec, span: tuple[Val, Val], take: Taken, out: Any, at: Val) -> None:
    """Write the first place in a row of its extreme: the row is walked again, near by now."""
    (most,) = folded(code, [s.extreme()], span, take)

    def places(k: Val, width: int) -> list[Val]:
        return [hits(s, take(k, width)[0], most.get(), k)]

    (first,) = folded(code, [s.lowest()], span, places)
    first.result(out, at)


def hits(s: Spec, value: Val, most: Val, k: Val) -> Val:
    """Return the places of elements from k on that hold a row's extreme, nowhere for the others."""
    code, width = value.code, width_of(value.op.type)
    hit = value.eq(most if width == 1 else Val(code, code.b.splat(most.op, width)))
    if value.dtype.is_float:
        # A NaN wins, and the first of them.
        hit = hit | value.call("isnan")
    numbers = k if width == 1 else Val(code, code.b.splat(k.op, width)) + _lanes(code, width)
    return hit.pick(numbers, code.const(s.lowest().start, numbers.op.type))


def column_kernel(s: Spec) -> Kernel:
    """Write the reduction of a panel of columns over a piece of the rows by each unit.

    The last panel ends with the last column and may overlap the one before: both write the same.
    """
    code = Code(f"{s.op}_columns", s.place, 1)
    out, x = code.buffer("out", s.out), code.buffer("x", s.source)
    panels, columns = code.place("panels"), code.place("columns")
    count, piece = code.place("count"), code.place("piece")
    length, hop, offset = code.place("length"), code.place("hop"), code.place("offset")
    extents, strides = code.places("extent", s.rank), code.places("stride", s.rank)
    unit, wide = code.special("cube_pos"), LANES * s.panel
    rest = unit // panels
    column = ((unit - rest * panels) * wide).call("min", columns - wide)
    number, o = rest // count, rest % count
    start = number * piece
    stop = (start + piece).call("min", length)
    base = code.walk(offset, code.coords(o, extents), strides) + column
    states = [Lanes(code, s, LANES) for _ in range(s.panel)]
    with code.loop(start, stop) as k:
        place = Val(code, code.b.splat(k.op, LANES)) if s.places else None
        at = base + k * hop
        for n, state in enumerate(states):
            state.step(_load(code, s, x, at + n * LANES, LANES), place)
    for n, state in enumerate(states):
        state.result(out, rest * columns + column + n * LANES)
    return code.finish()


class Plan(NamedTuple):
    """A reduction in one launch, all but its memory."""

    program: Any
    cubes: int
    work: float
    before: tuple[int, ...]
    after: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: DType


def planned(engine: Engine, key: Any, x: CubeTensor) -> CubeTensor | None:
    """Return the reduction of a key seen before, None where there is no plan."""
    plan: Plan | None = engine.providers.get("reductions", {}).get(key)
    if plan is None:
        return None
    out = engine.empty(plan.shape, plan.dtype)
    args = [out.buf, x.buf, *plan.before, x.offset, *plan.after]
    _launched(engine, plan, args)
    return out


def _launched(engine: Engine, plan: Plan, args: Any) -> None:
    # The runtime cannot see how long the loop of a unit is.
    plan.program.cost = plan.work
    engine.start(plan.program, (plan.cubes, 1, 1), args)


def _keep(engine: Engine, key: Any, plan: Plan) -> None:
    plans = engine.providers.setdefault("reductions", {})
    if len(plans) >= _MOST_PLANS:
        plans.clear()
    plans[key] = plan


def first_dims(engine: Engine, r: Any, x: CubeTensor, gone: Ints) -> Ints:
    """Return dims to reduce in a launch of their own, where two launches beat one.

    Dims that do not merge into one would be walked element by element. The last ones go first if
    they are rows that fill vectors: memory is read as it lies. Else the leading ones do: their
    columns are all that lies behind them.
    """
    if engine.client.name != "cpu" or r.op.startswith("arg") or 0 in x.shape:
        return ()
    many = [k for k in gone if x.shape[k] > 1]
    runs: list[list[int]] = []
    for k in many:
        if not runs or x.strides[runs[-1][-1]] != x.strides[k] * x.shape[k]:
            runs.append([])
        runs[-1].append(k)
    if len(runs) < 2:
        return ()
    first, last = runs[0], runs[-1]
    rows = x.strides[last[-1]] == 1 and prod([x.shape[k] for k in last]) >= SHORT
    return tuple(last if rows else first)


def of_bytes(r: Any, start: Any) -> tuple[Any, Any]:
    """Return a reduction of truth as one of the bytes 0 and 1, which fill vectors; others as is."""
    if not r.acc.is_bool:
        return r, start
    op = {"any": "max", "all": "min"}.get(r.op, r.op)
    return r._replace(op=op, middle=d.bool_, acc=d.uint8), int(start)


def reduced(
    engine: Engine, r: Any, start: Any, x: CubeTensor, out: CubeTensor, outer: Any, inner: Any,
    key: Any = None,
) -> bool:  # fmt: skip
    """Reduce on a processor; False where these kernels do not fit.

    Args:
        engine: the device.
        r: what the reduction does, a `Reducer`.
        start: state before the first element.
        x: the operand.
        out: row-major result.
        outer: extents and strides of the results.
        inner: the same of the reduced dims.
        key: by which `planned` finds what one launch computes.
    """
    client = engine.client
    if client.name != "cpu" or len(inner[0]) != 1:
        return False
    (extents, strides), length, hop = outer, inner[0][0], inner[1][0]
    r, start = of_bytes(r, start)
    index = engine.index_dtype(x, out, count=max(out.size, length))
    args = (r.op, r.source, r.middle, r.acc)
    threads: int = client.runtime.threads  # type: ignore[attr-defined]  # of the cpu runtime
    if hop == 1 and length >= SHORT:
        return _rows(engine, args, start, x, out, (extents, strides), length, index, threads, key)
    columns = extents[-1]
    if strides[-1] != 1 or columns < LANES or length < 2:
        return False
    panel, panels = panels_of(columns)
    count = out.size // columns
    pieces, piece = 1, length
    if not r.op.startswith("arg"):
        pieces, piece = column_pieces_of(threads, panels * count, length)
    kind = r.out if pieces == 1 else r.acc
    target = out if pieces == 1 else engine.empty((pieces, out.size), kind)
    heads, steps = (extents[:-1] or (1,)), (strides[:-1] or (0,))
    spec = Spec(*args, kind, start, len(heads), panel, index)
    before, after = (panels, columns, count, piece, length, hop), (*heads, *steps)
    plan = Plan(
        engine.loaded(column_kernel, (spec,)), panels * count * pieces,
        max(1.0, piece * panel * VECTOR_WORK), before, after, out.shape, out.dtype,
    )  # fmt: skip
    _launched(engine, plan, [target.buf, x.buf, *before, x.offset, *after])
    if pieces == 1 and key is not None:
        _keep(engine, key, plan)
    return pieces == 1 or _again(engine, r, start, target, out)


def pieces_of(threads: int, rows: int, length: int) -> tuple[int, int]:
    """Return in how many pieces each of so many rows is reduced, and how long they are."""
    pieces = max(1, min(8 * threads, length // PIECE)) if rows < 2 * threads else 1
    piece = -(-length // pieces)
    return -(-length // piece), piece


def panels_of(columns: int) -> tuple[int, int]:
    """Return how many vectors a panel of columns has, and how many panels there are."""
    panel = next(p for p in (PANEL, 4, 2, 1) if columns >= p * LANES)
    return panel, -(-columns // (panel * LANES))


def column_pieces_of(threads: int, panels: int, length: int) -> tuple[int, int]:
    """Return in how many pieces so many panels are reduced, and how long they are."""
    pieces = max(1, min(4 * threads, length // ROWS)) if panels < 2 * threads else 1
    piece = -(-length // pieces)
    return -(-length // piece), piece


def _rows(
    engine: Engine, args: tuple[str, DType, DType, DType], start: Any, x: CubeTensor,
    out: CubeTensor, outer: Any,
    length: int, index: DType, threads: int, key: Any,
) -> bool:  # fmt: skip
    extents, strides = outer
    pieces, piece = 1, length
    if not args[0].startswith("arg"):
        pieces, piece = pieces_of(threads, out.size, length)
    kind = out.dtype if pieces == 1 else args[3]
    target = out if pieces == 1 else engine.empty((out.size, pieces), kind)
    spec = Spec(*args, kind, start, len(extents), 0, index)
    before, after = (pieces, piece, length), (*extents, *strides)
    work = max(1.0, piece / LANES * VECTOR_WORK)
    program = engine.loaded(row_kernel, (spec,))
    plan = Plan(program, out.size * pieces, work, before, after, out.shape, out.dtype)
    _launched(engine, plan, [target.buf, x.buf, *before, x.offset, *after])
    if pieces == 1:
        if key is not None:
            _keep(engine, key, plan)
        return True
    last = Spec(args[0], kind, kind, kind, out.dtype, start, 1, 0, index)
    engine.cubes(row_kernel, (last,), out.size, [
        out.buf, target.buf, 1, pieces, pieces, 0, out.size, pieces,
    ])  # fmt: skip
    return True


def _again(engine: Engine, r: Any, start: Any, parts: CubeTensor, out: CubeTensor) -> bool:
    last = r._replace(source=r.acc, middle=r.acc)
    count = parts.shape[0]
    return reduced(engine, last, start, parts, out, ((out.size,), (1,)), ((count,), (out.size,)))
