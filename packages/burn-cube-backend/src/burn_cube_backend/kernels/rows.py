"""Kernels that work on rows: written once, laid out for a processor or for a GPU.

A row kernel is a sequence of phases: folds of a row to one number, and passes that store. On a
processor a row belongs to one unit, which walks it in vectors; elsewhere to one cube, whose units
take turns. Units of a GPU take some neighbours at a time, and fold by exchange within a plane and
then in shared memory; a short row has a cube of one plane.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from burn_cube import Vector
from burn_cube_backend.code import UNITS, Buf, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.lanes import picked
from burn_cube_backend.tiles import PLANE
from burn_std import DType, dtypes as d

# Lanes of a step on a processor, and steps in a round: enough to hide the latency of a sum.
LANES, STEPS = 16, 2
# Elements that a unit of a GPU takes at once, and rows up to which one plane is enough.
NEAR, SHORT = 4, 1024
_START = {"top": float("-inf"), "add": 0.0}


class Layout(NamedTuple):
    """How rows are laid out.

    Attributes:
        vectors: one unit per row, in vectors; else one cube per row.
        length: extent of the rows if the kernel is made for one, else 0.
        places: dtype of places.
        units: of a cube.
        width: elements that are taken at once.
        planes: units exchange values within planes.
    """

    vectors: bool
    length: int
    places: DType
    units: int = UNITS
    width: int = 1
    planes: bool = False


def layout(engine: Engine, length: int, index: DType) -> Layout:
    """Return how rows of a length are laid out on a device; short ones get their own kernel."""
    facts = engine.client.properties
    if facts.kind == "cpu" and engine.client.name != "interp":
        return Layout(True, length if length <= 4 * LANES else 0, index, 1, LANES)
    if facts.kind != "gpu" or "planes" not in facts.capabilities:
        return Layout(False, 0, index)
    units = PLANE if length <= SHORT else UNITS
    return Layout(False, 0, index, units, NEAR if length >= PLANE * NEAR else 1, True)


class At:
    """A place in a row: one element, or several neighbours."""

    def __init__(self, row: Row, place: Val, width: int) -> None:
        self.row = row
        self.place = place
        self.width = width

    def load(self, buf: Buf, base: Val, dtype: DType) -> Val:
        """Return the elements at the place in a line that begins at `base`, as a dtype."""
        code = self.row.code
        made = code.b.load(buf.op, (base + self.place).op, self.width)
        return Val(code, made).cast(dtype)

    def store(self, buf: Buf, base: Val, value: Val, dtype: DType) -> None:
        """Write elements."""
        self.row.code.b.store(buf.op, (base + self.place).op, value.cast(dtype).op)

    def of(self, value: Val) -> Val:
        """Return a number of the row in every lane."""
        if self.width == 1:
            return value
        return Val(value.code, value.code.b.splat(value.op, self.width))

    def numbers(self) -> Val:
        """Return the numbers of the elements in the row."""
        if self.width == 1:
            return self.place
        code = self.row.code
        lanes = [code.const(k, code.index).op for k in range(self.width)]
        return self.of(self.place) + Val(code, code.b.vector(*lanes))


class Row:
    """One row of a kernel.

    Attributes:
        code: the kernel.
        number: which row it is.
        length: its extent.
    """

    def __init__(self, code: Code, how: Layout, length: Val) -> None:
        self.code = code
        self.how = how
        self.number = code.special("cube_pos")
        self.length = code.at(how.length) if how.length else length
        self.unit = None if how.vectors else code.special("unit_pos")
        self._shared: dict[DType, Buf] = {}

    def each(self, body: Callable[[At], None]) -> None:
        """Run the body at every place of the row."""
        self._walk(lambda at, part: body(at), 1)

    def _walk(self, body: Callable[[At, int], None], steps: int) -> None:
        code, n, width = self.code, self.length, self.how.width
        if self.how.length:
            full = self.how.length // width
            for at in range(full):
                body(At(self, code.at(at * width), width), at % steps)
            for at in range(full * width, self.how.length):
                body(At(self, code.at(at), 1), 0)
            return
        # All units side by side take a step; a unit of a processor is alone.
        unit = code.at(0) if self.unit is None else self.unit
        step = self.how.units * width
        block = step * steps
        many, whole = n // block * block, n // width * width
        if width > 1:
            if steps > 1:
                with code.loop(0, many, code.at(block)) as k:
                    places = [k + unit * width + part * step for part in range(steps)]
                    for part, place in enumerate(places):
                        body(At(self, place, width), part)
            begin = (many if steps > 1 else code.at(0)) + unit * width
            with code.loop(begin, whole, code.at(step)) as k:
                body(At(self, k, width), 0)
        with code.loop(
            (whole if width > 1 else code.at(0)) + unit, n, code.at(self.how.units)
        ) as k:
            body(At(self, k, 1), 0)

    def fold(self, *parts: tuple[str, DType], body: Callable[[At], Any]) -> list[Val]:
        """Return folds of what the body gives at every place, in one walk.

        Args:
            parts: operation and dtype of each fold: `add`, or `top`, the greatest, which may lose
                a NaN: what is computed from it with all elements has the NaN again.
            body: returns one value for each of them.
        """
        code, width = self.code, self.how.width
        single = [code.local(t, _START[op]) for op, t in parts]
        many = []
        for op, t in parts if width > 1 else ():
            start = code.const(_START[op], Vector(t, width))
            slots = [code.b.slot(Vector(t, width)) for _ in range(STEPS)]
            for slot in slots:
                code.b.set(slot, start.op)
            many.append(slots)

        def step(at: At, part: int) -> None:
            made = body(at)
            values = made if isinstance(made, tuple) else (made,)
            for k, ((op, _), value) in enumerate(zip(parts, values, strict=True)):
                if at.width == 1:
                    single[k].set(self._met(op, single[k].get(), value))
                else:
                    slot = many[k][part]
                    code.b.set(slot, self._met(op, Val(code, code.b.get(slot)), value).op)

        self._walk(step, STEPS)
        out = [s.get() for s in single]
        for number, slots in enumerate(many):
            op = parts[number][0]
            total = Val(code, code.b.get(slots[0]))
            for slot in slots[1:]:
                total = self._met(op, total, Val(code, code.b.get(slot)))
            # Halves meet halves, in vectors: lane by lane there would be fifteen steps for four.
            half = width // 2
            while half > 1:
                high = picked((total,), range(half, 2 * half))
                total = self._met(op, picked((total,), range(half)), high)
                half //= 2
            low, high = (Val(code, code.b.extract(total.op, k)) for k in range(2))
            out[number] = self._met(op, self._met(op, low, high), out[number])
        if self.unit is None:
            return out
        return [self._together(op, t, value) for (op, t), value in zip(parts, out, strict=True)]

    def _met(self, op: str, a: Val, b: Val) -> Val:
        """Return what a fold makes of two values."""
        if op != "top":
            return a.call(op, b)
        # One instruction of a processor, where a maximum that keeps a NaN is four.
        return (a > b).pick(a, b) if self.how.vectors else a.call("max", b)

    def _together(self, op: str, dtype: DType, value: Val) -> Val:
        """Fold the values of all units of the cube; every unit gets the result."""
        code, unit = self.code, self.unit
        assert unit is not None  # noqa: S101 - cubes alone come here
        if self.how.planes:
            return self._exchanged(op, dtype, value)
        shared = self._shared.get(dtype)
        if shared is None:
            shared = self._shared[dtype] = code.shared(dtype, UNITS)
        shared[unit] = value
        code.barrier()
        half = UNITS // 2
        while half:
            with code.when(unit < half):
                shared[unit] = self._met(op, shared[unit], shared[unit + half])
            code.barrier()
            half //= 2
        made = code.local(dtype)
        made.set(shared[code.at(0)])
        # The memory serves the next fold: nobody may still be reading.
        code.barrier()
        return made.get()

    def _exchanged(self, op: str, dtype: DType, value: Val) -> Val:
        """Do what `_together` does where units of a plane can exchange values."""
        code, planes = self.code, self.how.units // PLANE
        value = self._over(op, dtype, value, PLANE)
        if planes == 1:
            return value
        shared = self._shared.get(dtype)
        if shared is None:
            shared = self._shared[dtype] = code.shared(dtype, planes)
        lane = code.special("unit_pos_plane")
        with code.when(lane.eq(0)):
            shared[code.special("plane_pos")] = value
        code.barrier()
        made = self._over(op, dtype, shared[lane % planes], planes)
        # The memory serves the next fold: nobody may still be reading.
        code.barrier()
        return made

    def _over(self, op: str, dtype: DType, value: Val, units: int) -> Val:
        """Fold the values of so many neighbouring units; all get the result."""
        code = self.code
        found = code.local(dtype)
        found.set(value)
        step = 1
        while step < units:
            by = code.const(step, d.int32).op
            other = Val(code, code.b.plane("shuffle_xor", found.get().op, by))
            found.set(self._met(op, found.get(), other))
            step *= 2
        return found.get()

    def store(self, buf: Buf, value: Val, dtype: DType) -> None:
        """Write a number of the row at its place among rows."""
        if self.unit is None:
            buf[self.number] = value.cast(dtype)
        else:
            with self.code.when(self.unit.eq(0)):
                buf[self.number] = value.cast(dtype)


def row_code(name: str, how: Layout) -> Code:
    """Return the kernel of a layout, to which parameters are added."""
    return Code(name, how.places, how.units)


def run_rows(
    engine: Engine, make: Any, spec: tuple[Any, ...], rows: int, work: float, args: list[Any]
) -> None:
    """Launch a row kernel with one cube per row; `work` on one decides if threads share them."""
    program = engine.loaded(make, spec)
    if hasattr(program, "cost"):
        # The runtime guesses eight rounds of a loop, of which a row knows better.
        program.cost = max(1.0, work)
    if rows > 0:
        engine.start(program, (rows, 1, 1), args)
