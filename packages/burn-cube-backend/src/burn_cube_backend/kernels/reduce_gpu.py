"""Reductions on a GPU: rows in vectors, columns in panels, and two stages where results are few.

A row that lies in one piece is read sixteen bytes a unit at a time, by a cube or, if it is short,
by some neighbouring units of a plane. Where the reduced dim is not the contiguous one, a cube owns
a panel of neighbouring columns, and its units divide the rows among themselves. What one round of
the device cannot fill is cut in pieces whose results a second stage takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from burn_cube import Kernel
from burn_cube.spi import Program
from burn_cube_backend.code import UNITS, Buf, Code, Val
from burn_cube_backend.engine import FAR, Engine
from burn_cube_backend.geometry import Ints, dense, size_of
from burn_cube_backend.kernels.reduction import Reducer, State, element
from burn_cube_backend.payload import CubeTensor
from burn_std import DType

PLANE = 32
# Bytes that a unit reads at once, and reads that are under way before the first is used.
BYTES, AHEAD = 16, 4
# Rows up to this length are read by the units of a plane.
SHORT = 1024
# Cubes for each processor of the device that keep its memory busy.
WAVES = 8
# Rows of a panel that each piece has at least.
ROWS = 128
# Reductions of one shape and layout whose plans are kept.
_MOST_PLANS = 4096


class Spec(NamedTuple):
    """What a kernel depends on.

    Attributes:
        r: what the reduction does.
        rank: dims of the results.
        width: elements that are read at once.
        across: units that stand side by side in a row, or columns in a panel.
        places: dtype of places.
        state: values and places are written, for a second stage.
    """

    r: Reducer
    rank: int
    width: int
    across: int
    places: DType
    state: bool = False


def _outputs(code: Code, s: Spec) -> tuple[Buf, Buf | None]:
    """Add the buffer of the result, or those of the state."""
    if s.state:
        return code.buffer("out", s.r.acc), code.buffer("out_places", s.places)
    return code.buffer("out", s.r.out), None


class _Reader:
    """Reads neighbours and takes them into one state per lane."""

    def __init__(self, code: Code, s: Spec, x: Buf) -> None:
        self.code, self.s, self.x = code, s, x
        self.states = [State(code, s.r, s.places) for _ in range(s.width)]

    def load(self, at: Val) -> list[Val]:
        """Return the elements from a place on."""
        width, b = self.s.width, self.code.b
        if width == 1:
            return [self.x[at]]
        made = b.load(self.x.op, at.op, width)
        return [Val(self.code, b.extract(made, k)) for k in range(width)]

    def step(self, values: list[Val], place: Val, along: bool) -> None:
        """Take elements; their places follow each other, or are one."""
        for k, (state, value) in enumerate(zip(self.states, values, strict=True)):
            state.follow(element(value, self.s.r), place + k if along and k else place)

    def joined(self) -> State:
        """Return the first state, which took all others."""
        first, *rest = self.states
        for state in rest:
            first.take(state)
        return first


def _walk_row(reader: _Reader, base: Val, span: tuple[Val, Val], lane: Val, units: int) -> None:
    """Take the elements of a row from start to stop, by units that stand side by side."""
    code, width = reader.code, reader.s.width
    start, stop = span
    block = units * width
    many = start + (stop - start) // (block * AHEAD) * (block * AHEAD)
    whole = start + (stop - start) // width * width
    with code.loop(start, many, code.at(block * AHEAD)) as k:
        places = [k + lane * width + part * block for part in range(AHEAD)]
        for place, values in zip(places, [reader.load(base + p) for p in places], strict=True):
            reader.step(values, place, True)
    with code.loop(many + lane * width, whole, code.at(block)) as k:
        reader.step(reader.load(base + k), k, True)
    if width > 1:
        first = reader.states[0]
        with code.loop(whole + lane, stop, code.at(units)) as k:
            first.follow(element(reader.x[base + k], reader.s.r), k)


def row_kernel(s: Spec) -> Kernel:
    """Write the reduction of one piece of a row by each cube."""
    code = Code(f"{s.r.op}_row", s.places)
    (out, places), x = _outputs(code, s), code.buffer("x", s.r.source)
    pieces, piece, length = code.place("pieces"), code.place("piece"), code.place("length")
    offset = code.place("offset")
    extents, strides = code.places("extent", s.rank), code.places("stride", s.rank)
    cube, unit = code.special("cube_pos"), code.special("unit_pos")
    o = cube // pieces
    start = (cube - o * pieces) * piece
    stop = (start + piece).call("min", length)
    base = code.walk(offset, code.coords(o, extents), strides)
    reader = _Reader(code, s, x)
    _walk_row(reader, base, (start, stop), unit, UNITS)
    state = reader.joined()
    state.over_plane(PLANE)
    state.over_cube(UNITS // PLANE)
    with code.when(unit.eq(0)):
        state.store(out, cube, places)
    return code.finish()


def plane_kernel(s: Spec) -> Kernel:
    """Write the reduction of a row by each `across` neighbouring units."""
    code = Code(f"{s.r.op}_plane", s.places)
    out, x = code.buffer("out", s.r.out), code.buffer("x", s.r.source)
    count, length, offset = code.place("count"), code.place("length"), code.place("offset")
    extents, strides = code.places("extent", s.rank), code.places("stride", s.rank)
    unit = code.special("absolute_pos")
    row, lane = unit // s.across, unit % s.across
    # Units without a row read the last one: all of a plane have to meet.
    base = code.walk(offset, code.coords(row.call("min", count - 1), extents), strides)
    reader = _Reader(code, s, x)
    _walk_row(reader, base, (code.at(0), length), lane, s.across)
    state = reader.joined()
    state.over_plane(s.across)
    with code.when(lane.eq(0) & (row < count)):
        state.store(out, row)
    return code.finish()


def column_kernel(s: Spec) -> Kernel:
    """Write the reduction of a panel of columns over a piece of the rows by each cube.

    Results are [pieces, outer, columns]. Columns are a multiple of the width.
    """
    code = Code(f"{s.r.op}_column", s.places)
    (out, places), x = _outputs(code, s), code.buffer("x", s.r.source)
    panels, columns = code.place("panels"), code.place("columns")
    count, piece = code.place("count"), code.place("piece")
    length, hop, offset = code.place("length"), code.place("hop"), code.place("offset")
    extents, strides = code.places("extent", s.rank), code.places("stride", s.rank)
    cube, unit = code.special("cube_pos"), code.special("unit_pos")
    across, down = s.across, UNITS // s.across
    rest = cube // panels
    number, o = rest // count, rest % count
    tx, ty = unit % across, unit // across
    column = ((cube - rest * panels) * across + tx) * s.width
    inside = column < columns
    start = number * piece
    stop = (start + piece).call("min", length)
    base = code.walk(offset, code.coords(o, extents), strides) + inside.pick(column, 0)
    reader = _Reader(code, s, x)
    step = down * AHEAD
    many = start + (stop - start) // step * step
    with code.loop(start, many, code.at(step)) as k:
        rows = [k + ty + part * down for part in range(AHEAD)]
        for place, values in zip(rows, [reader.load(base + r * hop) for r in rows], strict=True):
            reader.step(values, place, False)
    with code.loop(many + ty, stop, code.at(down)) as k:
        reader.step(reader.load(base + k * hop), k, False)
    meet_below(code, reader.states, across)
    with code.when(inside & ty.eq(0)):
        for lane, state in enumerate(reader.states):
            state.store(out, rest * columns + column + lane, places)
    return code.finish()


def meet_below(code: Code, states: Sequence[State], across: int) -> None:
    """Take the states of all units of a cube that stand below one another into the first's."""
    unit, down = code.special("unit_pos"), UNITS // across
    if down == 1:
        return
    shelves = [state.shelf(UNITS) for state in states]
    for state, shelf in zip(states, shelves, strict=True):
        shelf.put(unit, state)
    code.barrier()
    half = down // 2
    while half:
        with code.when(unit // across < half):
            for state, shelf in zip(states, shelves, strict=True):
                shelf.give(unit + across * half, state)
                shelf.put(unit, state)
        code.barrier()
        half //= 2


def join_kernel(s: Spec) -> Kernel:
    """Write the places of extremes from the states of pieces, a result by each cube."""
    code = Code(f"{s.r.op}_join", s.places)
    out, x = code.buffer("out", s.r.out), code.buffer("x", s.r.acc)
    places = code.buffer("x_places", s.places)
    pieces, step, hop = code.place("pieces"), code.place("step"), code.place("hop")
    cube, unit = code.special("cube_pos"), code.special("unit_pos")
    state = State(code, s.r, s.places)
    with code.loop(unit, pieces, code.at(UNITS)) as k:
        at = cube * step + k * hop
        state.step(x[at], places[at])
    state.over_plane(PLANE)
    state.over_cube(UNITS // PLANE)
    with code.when(unit.eq(0)):
        state.store(out, cube)
    return code.finish()


class Stage(NamedTuple):
    """One launch, all but its memory.

    Attributes:
        program: the compiled kernel.
        cubes: the grid.
        before: arguments before the offset of the operand.
        after: arguments behind it.
        size: elements of its result.
        dtype: of its result.
        places: dtype of the places that it writes besides, if it does.
    """

    program: Program
    cubes: tuple[int, int, int]
    before: Ints
    after: Ints
    size: int
    dtype: DType
    places: DType | None = None


class Plan(NamedTuple):
    """A reduction of one shape and layout: its launches and its result."""

    stages: tuple[Stage, ...]
    shape: Ints
    strides: Ints
    dtype: DType

    def run(self, engine: Engine, x: CubeTensor) -> CubeTensor:
        """Reduce a tensor."""
        buf, offset, places = x.buf, x.offset, None
        for stage in self.stages:
            flat = engine.flat(stage.size, stage.dtype)
            args: tuple[Any, ...] = (buf, *stage.before, offset, *stage.after)
            if stage.places is not None:
                places = engine.flat(stage.size, stage.places)
                args = (places, *args)
            elif places is not None:
                args = (buf, places, *stage.before)
            engine.start(stage.program, stage.cubes, (flat, *args))
            buf, offset = flat, 0
        return CubeTensor(buf, self.shape, self.strides, self.dtype)


def planned(engine: Engine, key: Any, x: CubeTensor) -> CubeTensor | None:
    """Return the reduction of a key seen before, None where there is no plan."""
    plan: Plan | None = engine.providers.get("gpu reductions", {}).get(key)
    return None if plan is None else plan.run(engine, x)


def reduced(
    engine: Engine, r: Reducer, x: CubeTensor, shape: Ints, outer: tuple[Ints, Ints],
    inner: tuple[Ints, Ints], key: Any,
) -> CubeTensor | None:  # fmt: skip
    """Return the reduction, None where these kernels do not fit.

    Args:
        engine: the device.
        r: what the reduction does.
        x: the operand.
        shape: of the result.
        outer: merged extents and strides of the results.
        inner: the same of the reduced dims.
        key: by which `planned` finds it again.
    """
    if engine.client.properties.kind != "gpu" or len(inner[0]) != 1:
        return None
    (extents, steps), length, hop = outer, inner[0][0], inner[1][0]
    index = engine.index_dtype(x, count=max(size_of(shape), length))
    stages: list[Stage] = []
    if hop == 1 or length == 1:
        _rows(engine, r, extents, steps, length, index, stages)
    elif steps[-1] == 1 and extents[-1] > 1:
        _columns(engine, r, extents, steps, length, hop, index, stages)
    else:
        return None
    plan = Plan(tuple(stages), shape, dense(shape), r.out)
    plans = engine.providers.setdefault("gpu reductions", {})
    if len(plans) >= _MOST_PLANS:
        plans.clear()
    plans[key] = plan
    return plan.run(engine, x)


def key_of(r: Reducer, x: CubeTensor, dims: Any, keepdim: bool) -> Any:
    """Return all that a plan depends on."""
    far = x.buf is not None and x.buf.length > FAR
    return (r, x.shape, x.strides, dims, keepdim, far)


def width_of(r: Reducer) -> int:
    """Return how many elements a unit reads at once."""
    return min(8, max(1, BYTES // r.source.itemsize))


def across_of(length: int, width: int) -> int:
    """Return how many units of a plane share a short row."""
    return min(PLANE, 1 << max(-(-length // width) - 1, 0).bit_length())


def pieces_of(engine: Engine, count: int, length: int, width: int) -> tuple[int, int]:
    """Return in how many pieces each of so many long rows is read, and how long they are."""
    block = UNITS * width * AHEAD
    room = engine.client.properties.units * WAVES // count
    pieces = max(1, min(room, length // block))
    piece = -(-length // pieces)
    piece = -(-piece // block) * block if pieces > 1 else length
    return -(-length // piece), piece


def halves(r: Reducer) -> tuple[Reducer, Reducer]:
    """Return the two stages of a reduction."""
    return r._replace(out=r.acc), Reducer(r.op, r.acc, r.acc, r.acc, r.out)


def _rows(
    engine: Engine, r: Reducer, extents: Ints, steps: Ints, length: int, index: DType,
    stages: list[Stage],
) -> None:  # fmt: skip
    width, count = width_of(r), size_of(extents)
    if length <= SHORT:
        across = across_of(length, width)
        if length < width:
            width = 1
        spec = Spec(r, len(extents), width, across, index)
        cubes = (-(-count * across // UNITS), 1, 1)
        program = engine.loaded(plane_kernel, (spec,))
        stages.append(Stage(program, cubes, (count, length), (*extents, *steps), count, r.out))
        return
    pieces, piece = pieces_of(engine, count, length, width)
    split = pieces > 1
    arg = split and r.op.startswith("arg")
    first, last = halves(r) if split and not arg else (r, r)
    spec = Spec(first, len(extents), width, PLANE, index, arg)
    program = engine.loaded(row_kernel, (spec,))
    stages.append(
        Stage(
            program,
            (count * pieces, 1, 1),
            (pieces, piece, length),
            (*extents, *steps),
            count * pieces,
            first.acc if split else r.out,
            index if arg else None,
        )
    )
    if arg:
        _join(engine, r, index, count, (pieces, pieces, 1), stages)
    elif split:
        _rows(engine, last, (count,), (pieces,), pieces, index, stages)


def _join(
    engine: Engine, r: Reducer, index: DType, count: int, where: Ints, stages: list[Stage]
) -> None:
    """Add the stage that takes states: how many a result has, and how they lie."""
    program = engine.loaded(join_kernel, (Spec(r, 1, 1, PLANE, index),))
    stages.append(Stage(program, (count, 1, 1), where, (), count, r.out))


class Panels(NamedTuple):
    """How columns are divided among cubes.

    Attributes:
        width: neighbours that a unit reads at once.
        across: units that stand side by side.
        panels: how many there are.
        pieces: in how many pieces rows are cut, `piece` how long these are.
    """

    width: int
    across: int
    panels: int
    pieces: int
    piece: int


def panels_of(
    engine: Engine, width: int, columns: int, hop: int, count: int, length: int
) -> Panels:
    """Return the panels of columns.

    Args:
        engine: the device.
        width: neighbours that a unit may read at once.
        columns: how many stand side by side.
        hop: how far rows are apart.
        count: how many such blocks there are.
        length: rows of a block.
    """
    while columns % width or hop % width:
        width //= 2
    wanted = engine.client.properties.units * WAVES
    across = min(PLANE, 1 << (-(-columns // width) - 1).bit_length())
    panels = -(-columns // (across * width))
    pieces = max(1, min(wanted // (panels * count), length // ROWS))
    piece = -(-length // pieces)
    return Panels(width, across, panels, -(-length // piece), piece)


def _columns(
    engine: Engine, r: Reducer, extents: Ints, steps: Ints, length: int, hop: int, index: DType,
    stages: list[Stage],
) -> None:  # fmt: skip
    columns, total = extents[-1], size_of(extents)
    count = total // columns
    at = panels_of(engine, width_of(r), columns, hop, count, length)
    width, across, panels, pieces, piece = at
    split = pieces > 1
    arg = split and r.op.startswith("arg")
    first, last = halves(r) if split and not arg else (r, r)
    heads, jumps = (extents[:-1] or (1,)), (steps[:-1] or (0,))
    spec = Spec(first, len(heads), width, across, index, arg)
    before = (panels, columns, count, piece, length, hop)
    stages.append(
        Stage(
            engine.loaded(column_kernel, (spec,)),
            (panels * count * pieces, 1, 1),
            before,
            (*heads, *jumps),
            total * pieces,
            first.acc if split else r.out,
            index if arg else None,
        )
    )
    if arg:
        _join(engine, r, index, total, (pieces, 1, total), stages)
    elif split:
        _columns(engine, last, (total,), (1,), pieces, total, index, stages)
