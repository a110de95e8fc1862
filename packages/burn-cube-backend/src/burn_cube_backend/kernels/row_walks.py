"""How a fused kernel walks rows: for each device the order in which a reduction alone walks them.

So a sum has the same bits in a kernel of its own and behind other operations. A walk hands places
to a function that says what each reduction takes there; every unit of a row gets the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple, Protocol

from burn_cube.spi import width_of
from burn_cube_backend.code import UNITS, Buf, Code, Val
from burn_cube_backend.kernels import reduce_cpu
from burn_cube_backend.kernels.reduce_gpu import PLANE
from burn_cube_backend.kernels.reduction import Reducer, Shelf, State, element, first_value
from burn_std import DType


class Walk(NamedTuple):
    """How rows are walked.

    Attributes:
        kind: `lanes` (a processor: a unit per row, in vectors), `unit` and `cube` (a unit or a
            cube per row, element by element), `plane` and `block` (a GPU: neighbouring units or a
            cube per row, several elements at a time).
        places: dtype of places.
        length: for `lanes`, extent of the rows if the kernel is made for one, else 0.
        width: elements that a unit takes at a time, for `plane` and `block`.
        across: units of a row, for `plane`.
        cut: a row is walked in pieces, each by a unit or a cube of its own.
    """

    kind: str
    places: DType
    length: int = 0
    width: int = 1
    across: int = 1
    cut: bool = False

    @property
    def units(self) -> int:
        """Units of a cube."""
        return 1 if self.kind == "lanes" else UNITS

    def cubes(self, rows: int) -> int:
        """Return how many cubes so many rows take."""
        each = {"unit": UNITS, "plane": UNITS // self.across}.get(self.kind, 1)
        return -(-rows // each)


class Present(Protocol):
    """Where places are: rows or columns of a kernel."""

    @property
    def code(self) -> Code:
        """The kernel."""

    def present(self) -> AbstractContextManager[None]:
        """Run the block, which stores, in the units that have a row."""


class At:
    """Some neighbouring places of a row: one vector, or values one by one.

    Attributes:
        place: the first of them.
        width: how many there are.
        count: values that stand for them, one if they are a vector.
    """

    def __init__(self, rows: Present, place: Val, width: int, vector: bool = False) -> None:
        self.rows = rows
        self.code = rows.code
        self.place = place
        self.width = width
        self.vector = vector and width > 1
        self.count = 1 if self.vector else width
        # The elements behind the last whole vector stand in one that is wide enough.
        self.lanes = 1 << (width - 1).bit_length()

    def of(self, value: Val) -> list[Val]:
        """Return a number of the row at every place."""
        if self.vector:
            return [Val(self.code, self.code.b.splat(value.op, self.lanes))]
        return [value] * self.count

    def even(self, values: list[Val]) -> list[Val]:
        """Return values of which a number stands for itself at every place."""
        if self.vector and width_of(values[0].op.type) == 1:
            return self.of(values[0])
        return values

    def load(self, buf: Buf, base: Val, hop: Val | None) -> list[Val]:
        """Return elements of a line that begins at `base`; they are neighbours without a hop."""
        b = self.code.b
        near = hop is None
        first = base + (self.place if hop is None else self.place * hop)
        if self.width == 1:
            return [buf[first]]
        if near and self.lanes == self.width:
            made = b.load(buf.op, first.op, self.width)
            if self.vector:
                return [Val(self.code, made)]
            return [Val(self.code, b.extract(made, k)) for k in range(self.width)]
        each = [buf[first + (k if hop is None else hop * k)] for k in range(self.width)]
        if not self.vector:
            return each
        return [self._vector(each + each[-1:] * (self.lanes - self.width))]

    def store(self, buf: Buf, base: Val, values: Sequence[Val]) -> None:
        """Write elements of a line that begins at `base`, neighbours."""
        b, first = self.code.b, base + self.place
        with self.rows.present():
            if self.vector and self.lanes == self.width:
                b.store(buf.op, first.op, values[0].op)
            elif self.vector:
                for k in range(self.width):
                    b.store(buf.op, (first + k).op, b.extract(values[0].op, k))
            elif self.width == 1:
                buf[first] = values[0]
            else:
                b.store(buf.op, first.op, b.vector(*[v.op for v in values]))

    def _vector(self, lanes: Sequence[Val]) -> Val:
        return Val(self.code, self.code.b.vector(*[v.op for v in lanes]))


# What each reduction takes at some places; it may store what it computes on the way.
Body = Callable[[At], Sequence[Sequence[Val]]]


class Rows:
    """The rows of a kernel: one for each unit or for several.

    Takes the number of rows and their length as parameters, and of rows in pieces how many a row
    has and how long they are.

    Attributes:
        code: the kernel.
        walk: how they are walked.
        number: the row of this unit; `length` its extent.
        span: where the walk begins and ends.
        piece: number of the piece among all.
    """

    def __init__(self, code: Code, walk: Walk) -> None:
        self.code = code
        self.walk = walk
        self.count, length = code.place("rows"), code.place("length")
        self.length = code.at(walk.length) if walk.length else length
        self.span = (code.at(0), self.length)
        unit = code.special("absolute_pos" if walk.kind in ("unit", "plane") else "cube_pos")
        self.lane: Val | None = None
        self.row = unit
        if walk.kind == "plane":
            self.row, self.lane = unit // walk.across, unit % walk.across
        elif walk.kind in ("cube", "block"):
            self.lane = code.special("unit_pos")
        # Units without a row read the last one: all of a plane have to meet.
        self.number = self.row.call("min", self.count - 1) if walk.kind == "plane" else self.row
        self.piece = self.row
        if walk.cut:
            pieces, piece = code.place("pieces"), code.place("piece")
            self.number = self.row = unit // pieces
            start = (unit - self.row * pieces) * piece
            self.span = (start, (start + piece).call("min", length))
        self._shelves: dict[tuple[DType, bool], Shelf] = {}

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Run the block in the units that have a row, as far as they need not meet others."""
        if self.walk.kind == "unit":
            with self.code.when(self.row < self.count):
                yield
        else:
            yield

    @contextmanager
    def present(self) -> Iterator[None]:
        """Run the block, which stores, in the units that have a row."""
        if self.walk.kind == "plane":
            with self.code.when(self.row < self.count):
                yield
        else:
            yield

    @contextmanager
    def first(self) -> Iterator[None]:
        """Run the block in one unit of the row."""
        if self.lane is None:
            yield
            return
        first = self.lane.eq(0)
        if self.walk.kind == "plane":
            first = first & (self.row < self.count)
        with self.code.when(first):
            yield

    def each(self, body: Callable[[At], None]) -> None:
        """Run a body at every place of the row."""
        if self.walk.kind == "lanes":
            span, length = self.span, self.walk.length
            reduce_cpu.vectors(self.code, span, length, 1, lambda k, _: body(self._lanes(k)))
            reduce_cpu.rest(self.code, span, length, lambda k, n: body(self._lanes(k, n)))
        else:
            self._walk(body)

    def _lanes(self, place: Val, width: int = reduce_cpu.LANES) -> At:
        return At(self, place, width, True)

    def _walk(self, body: Callable[[At], None]) -> None:
        code, (start, stop), width = self.code, self.span, self.walk.width
        lane = self.lane if self.lane is not None else code.at(0)
        units = {"unit": 1, "plane": self.walk.across}.get(self.walk.kind, UNITS)
        whole = start + (stop - start) // width * width if width > 1 else stop
        with code.loop(start + lane * width, whole, code.at(units * width)) as k:
            body(At(self, k, width))
        if width > 1:
            with code.loop(whole + lane, stop, code.at(units)) as k:
                body(At(self, k, 1))

    def fold(self, reducers: Sequence[Reducer], body: Body, heavy: bool = False) -> list[Val]:
        """Return reductions of the row, all in one walk; `heavy` where the body is costly."""
        if self.walk.kind == "lanes":
            return self._folded(reducers, body, heavy)
        code, walk = self.code, self.walk
        states = [[State(code, r, walk.places) for _ in range(walk.width)] for r in reducers]

        def take(at: At) -> None:
            for r, lanes, values in zip(reducers, states, body(at), strict=True):
                for k, (state, value) in enumerate(zip(lanes, values, strict=False)):
                    state.follow(element(value, r), at.place + k if k else at.place)

        self._walk(take)
        return [self._met(r, lanes) for r, lanes in zip(reducers, states, strict=True)]

    def _folded(self, reducers: Sequence[Reducer], body: Body, heavy: bool) -> list[Val]:
        specs = [
            reduce_cpu.Spec(*r, first_value(r.op, r.acc), 1, 0, self.walk.places) for r in reducers
        ]

        def take(place: Val, width: int) -> list[Val]:
            taken = body(self._lanes(place, width))
            return [element(v[0], r) for r, v in zip(reducers, taken, strict=True)]

        def folded(specs: Sequence[reduce_cpu.Spec], take: reduce_cpu.Taken) -> list[Val]:
            made = reduce_cpu.folded(self.code, specs, self.span, take, self.walk.length, heavy)
            return [one.get() for one in made]

        made = folded([s.extreme() for s in specs], take)
        args = [n for n, s in enumerate(specs) if s.places]
        if not args:
            return made

        def places(k: Val, width: int) -> list[Val]:
            values = take(k, width)
            return [reduce_cpu.hits(specs[n], values[n], made[n], k) for n in args]

        # The row is walked again, near by now.
        found = folded([specs[n].lowest() for n in args], places)
        for n, place in zip(args, found, strict=True):
            made[n] = place
        return made

    def _met(self, r: Reducer, lanes: Sequence[State]) -> Val:
        """Return the states of all units as one, which every unit gets."""
        state, *others = lanes
        for other in others:
            state.take(other)
        kind = self.walk.kind
        if kind == "plane":
            state.over_plane(self.walk.across)
        elif kind == "block":
            state.over_plane(PLANE)
            state.over_cube(UNITS // PLANE)
            return self._told(state)
        elif kind == "cube":
            return self._halved(r, state)
        return state.found()

    def _told(self, state: State) -> Val:
        """Return the state of the first unit to all."""
        code = self.code
        found = state.found()
        cell = code.shared(found.dtype, 1)
        with self.first():
            cell[code.at(0)] = found
        code.barrier()
        return _held(code, cell[code.at(0)])

    def _halved(self, r: Reducer, state: State) -> Val:
        code, unit = self.code, self.lane
        assert unit is not None  # noqa: S101 - a cube has units
        kind = (r.acc, state.place is not None)
        shelf = self._shelves.get(kind)
        if shelf is None:
            shelf = self._shelves[kind] = state.shelf(UNITS)
        shelf.halve(unit, state)
        made = _held(code, (shelf.places or shelf.values)[code.at(0)])
        # The memory serves the next reduction: nobody may still be reading.
        code.barrier()
        return made


def _held(code: Code, value: Val) -> Val:
    """Return a value that was read once."""
    local = code.local(value.dtype, value)
    return local.get()
