"""What a reduction does, and the running state of one unit, for the kernels of all devices."""

from __future__ import annotations

from typing import Any, NamedTuple

from burn_cube_backend.code import UNITS, Buf, Code, Local, Val
from burn_std import DType, dtypes as d


class Reducer(NamedTuple):
    """What a reduction does.

    Attributes:
        op: `sum`, `prod`, `max`, `min`, `any`, `all`, `argmax` or `argmin`.
        source: dtype of the elements.
        middle: dtype to which elements convert first.
        acc: dtype of the state.
        out: dtype of the result.
    """

    op: str
    source: DType
    middle: DType
    acc: DType
    out: DType


def first_value(op: str, dtype: DType) -> Any:
    """Return the state before the first element."""
    if op in ("sum", "any"):
        return 0
    if op in ("prod", "all"):
        return 1
    largest = op in ("max", "argmax")
    if dtype.is_float:
        return -float("inf") if largest else float("inf")
    if dtype.is_bool:
        return not largest
    low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    high = (1 << (dtype.bits - (1 if dtype.is_signed else 0))) - 1
    return low if largest else high


class State:
    """The running state of one unit: a value and, for places, an index (-1: none yet)."""

    def __init__(self, code: Code, r: Reducer, index: DType) -> None:
        self.r = r
        self.code = code
        self.value = code.local(r.acc, first_value(r.op, r.acc))
        self.place: Local | None = code.local(index, -1) if r.op.startswith("arg") else None

    def step(self, value: Val, place: Val) -> None:
        """Take one element, or the state of another unit."""
        now = self.value.get()
        if self.place is None:
            self.value.set(merged(self.r.op, now, value))
            return
        at = self.place.get()
        better = value > now if self.r.op == "argmax" else value < now
        same = value.eq(now)
        if value.dtype.is_float:
            nan, was = value.call("isnan"), now.call("isnan")
            better = (better | nan) & ~was
            same = same | (nan & was)
        take = (place >= 0) & ((at < 0) | better | (same & (place < at)))
        self.value.set(take.pick(value, now))
        self.place.set(take.pick(place, at))

    def follow(self, value: Val, place: Val) -> None:
        """Take an element that stands behind all before: of equal ones the first wins."""
        now = self.value.get()
        if self.place is None:
            self.value.set(merged(self.r.op, now, value))
            return
        at = self.place.get()
        if value.dtype.is_float:
            # Greater or NaN, unless it was NaN before.
            kept = value <= now if self.r.op == "argmax" else value >= now
            better = ~kept & now.eq(now)
        else:
            better = value > now if self.r.op == "argmax" else value < now
        take = better | (at < 0)
        self.value.set(take.pick(value, now))
        self.place.set(take.pick(place, at))

    def take(self, other: State) -> None:
        """Take another state of this unit."""
        value = other.value.get()
        self.step(value, other.place.get() if other.place is not None else value)

    def over_plane(self, units: int) -> None:
        """Take the states of neighbouring units, a power of two of a plane; all get the same."""
        b, code = self.code.b, self.code
        value = self.value.get()
        if value.dtype.is_bool:
            if units == 1:
                return
            # A ballot of the plane, and of it the bits of the neighbours.
            kind = "any" if self.r.op in ("any", "max") else "all"
            bits = Val(code, b.plane("ballot", value.op))
            full = (1 << units) - 1
            lane = code.special("unit_pos_plane").cast(d.uint32)
            own = (bits >> (lane - lane % units)) & full
            self.value.set(own.ne(0) if kind == "any" else own.eq(full))
            return
        step = 1
        while step < units:
            by = code.const(step, d.int32).op
            value = Val(code, b.plane("shuffle_xor", self.value.get().op, by))
            place = value
            if self.place is not None:
                place = Val(code, b.plane("shuffle_xor", self.place.get().op, by))
            self.step(value, place)
            step *= 2

    def over_cube(self, planes: int) -> None:
        """Take the states of all planes of the cube; the first unit gets the result."""
        code = self.code
        unit, lane = code.special("unit_pos"), code.special("unit_pos_plane")
        shelf = self.shelf(planes)
        with code.when(lane.eq(0)):
            shelf.put(code.special("plane_pos"), self)
        code.barrier()
        with code.when(unit.eq(0)):
            for k in range(1, planes):
                shelf.give(code.at(k), self)

    def shelf(self, size: int) -> Shelf:
        """Return shared memory for states like this one."""
        return Shelf(self, size)

    def found(self) -> Val:
        """Return the value, or where it is if that is what is asked for."""
        return self.value.get() if self.place is None else self.place.get()

    def store(self, out: Buf, at: Val, places: Buf | None = None) -> None:
        """Write the result, or the state if there is memory for places."""
        if places is not None and self.place is not None:
            out[at] = self.value.get()
            places[at] = self.place.get()
            return
        out[at] = self.found().cast(self.r.out)


class Shelf:
    """Shared memory that holds states."""

    def __init__(self, state: State, size: int) -> None:
        code = state.code
        self.values = code.shared(state.r.acc, size)
        self.places = None
        if state.place is not None:
            self.places = code.shared(state.place.slot.type, size)

    def put(self, at: Val, state: State) -> None:
        """Write a state."""
        self.values[at] = state.value.get()
        if self.places is not None and state.place is not None:
            self.places[at] = state.place.get()

    def give(self, at: Val, state: State) -> None:
        """Let a state take the one at a place."""
        value = self.values[at]
        state.step(value, value if self.places is None else self.places[at])

    def halve(self, unit: Val, state: State) -> None:
        """Fold the states of a cube's units into that of unit 0, which all find at place 0."""
        code, half = state.code, UNITS // 2
        self.put(unit, state)
        code.barrier()
        while half:
            with code.when(unit < half):
                self.give(unit + half, state)
                self.put(unit, state)
            code.barrier()
            half //= 2


def merged(op: str, a: Val, b: Val) -> Val:
    """Return two states of a plain reduction as one."""
    if op == "sum":
        return a + b
    if op == "prod":
        return a * b
    if a.dtype.is_bool:
        return a | b if op in ("max", "any") else a & b
    return a.call(op, b)


def element(x: Val, r: Reducer) -> Val:
    """Return an element as the reduction takes it."""
    if r.op in ("any", "all"):
        return x.cast(d.bool_)
    return x.cast(r.middle).cast(r.acc)
