"""Vectors in kernels of the processor: loads, lanes put in another order, copies of short rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from burn_cube import Vector
from burn_cube_backend.code import Buf, Code, Val
from burn_std import DType, dtypes as d

# Lanes of a float32 vector that kernels of the processor are written for.
LANES = 16


def load(x: Buf, at: Val, width: int = LANES) -> Val:
    """Return `width` neighbouring elements."""
    return Val(x.code, x.code.b.load(x.op, at.op, width))


def store(x: Buf, at: Val, value: Val) -> None:
    """Write neighbouring elements."""
    x.code.b.store(x.op, at.op, value.op)


def splat(value: Val, width: int = LANES) -> Val:
    """Return a vector that repeats a number."""
    return Val(value.code, value.code.b.splat(value.op, width))


def fma(a: Val, b: Val, c: Val) -> Val:
    """Return a * b + c, rounded once."""
    return a.call("fma", b, c)


def picked(sources: Sequence[Val], lanes: Sequence[int]) -> Val:
    """Return lanes of vectors that stand behind one another, by number."""
    b = sources[0].code.b
    width = sources[0].op.type.width
    made = [b.extract(sources[k // width].op, k % width) for k in lanes]
    return Val(sources[0].code, b.vector(*made))


def apart(a: Val, b: Val) -> tuple[Val, Val]:
    """Return the lanes with even and those with odd numbers of two vectors."""
    width = 2 * a.op.type.width
    return picked((a, b), range(0, width, 2)), picked((a, b), range(1, width, 2))


def together(even: Val, odd: Val) -> tuple[Val, Val]:
    """Return lanes of two vectors in turn, as two vectors: the opposite of `apart`."""
    n: int = even.op.type.width
    order = [k // 2 + (n if k % 2 else 0) for k in range(2 * n)]
    return picked((even, odd), order[:n]), picked((even, odd), order[n:])


def sums(vectors: Sequence[Val]) -> Val:
    """Return the sum of the lanes of each of eight vectors, as one vector of eight."""
    narrow = [picked((v,), range(8)) + picked((v,), range(8, LANES)) for v in vectors]
    while len(narrow) > 1:
        pairs = (apart(narrow[k], narrow[k + 1]) for k in range(0, len(narrow), 2))
        narrow = [even + odd for even, odd in pairs]
    return narrow[0]


@contextmanager
def narrow_loop(code: Code, start: Val, stop: Val, step: int = 1) -> Iterator[Val]:
    """Add a loop over places below 2**31 whose body has many addresses.

    Its counter has 32 bits, so that LLVM takes addresses as they are: to find sums for them that
    grow by a step (loop strength reduction) took half of the time to compile a kernel.
    """
    first, last = start.cast(d.int32), stop.cast(d.int32)
    with code.loop(first, last, code.const(step, d.int32)) as k:
        yield k.cast(code.index)


class Cell:
    """A mutable vector."""

    def __init__(self, code: Code, dtype: DType, width: int = LANES) -> None:
        self.code = code
        self.kind = Vector(dtype, width)
        self.slot = code.b.slot(self.kind)
        self.clear()

    def clear(self) -> None:
        """Make all lanes zero."""
        self.code.b.set(self.slot, self.code.const(0, self.kind).op)

    def get(self) -> Val:
        """Return the lanes it has now."""
        return Val(self.code, self.code.b.get(self.slot))

    def set(self, value: Val) -> None:
        """Give it lanes."""
        self.code.b.set(self.slot, value.op)


def same(v: Val) -> Val:
    """Return the value."""
    return v


def copy_row(
    out: Buf, to: Val, x: Buf, at: Val, count: Val, change: Callable[[Val], Val] = same
) -> None:
    """Copy so many elements and no more, in vectors; the last one overlaps the one before."""
    write_row(out, to, x, at, count, lambda value, place: change(value))


def write_row(
    out: Buf, to: Val, x: Buf, at: Val, count: Val, change: Callable[[Val, Val], Val]
) -> None:
    """Write what becomes of so many elements and no more, in vectors, the last one overlapping.

    Args:
        out: where to; from the place `to` on.
        to: a place.
        x: where from; from the place `at` on.
        at: a place.
        count: how many.
        change: of an element or a vector and its place in `out`.
    """
    code = out.code

    def move(k: Val, width: int) -> None:
        if width == 1:
            out[to + k] = change(x[at + k], to + k)
        else:
            store(out, to + k, change(load(x, at + k, width), to + k))

    def short(width: int) -> None:
        if width == 1:
            with code.loop(code.at(0), count) as k:
                move(k, 1)
            return
        with code.when(count >= width) as branch:
            move(code.at(0), width)
            move(count - width, width)
        with code.otherwise(branch):
            short(width // 2 if width > 4 else 1)

    with code.when(count >= LANES) as branch:
        with code.loop(code.at(0), count - (LANES - 1), code.at(LANES)) as k:
            move(k, LANES)
        move(count - LANES, LANES)
    with code.otherwise(branch):
        short(LANES // 2)
