"""Writing kernels: the builder of burn-cube with Python's operators on its values.

Kernels of this package are made for a rank, dtypes and a layout that are known only at run time,
so they are put together by functions rather than written out as `@cube` functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from burn_cube import Builder, Kernel
from burn_cube.spi import Op, scalar_of, simplify, verify
from burn_std import DType, dtypes as d

UNITS = 256


class Val:
    """A value of a kernel; numbers that meet it take its type."""

    __slots__ = ("code", "op")

    def __init__(self, code: Code, op: Op) -> None:
        self.code = code
        self.op = op

    @property
    def dtype(self) -> DType:
        """Type of one lane."""
        return scalar_of(self.op.type)

    def _two(self, name: str, other: Any, swap: bool = False) -> Val:
        right = other if isinstance(other, Val) else self.code.const(other, self.op.type)
        a, b = (right, self) if swap else (self, right)
        return Val(self.code, self.code.b.op(name, a.op, b.op))

    def call(self, name: str, *others: Any) -> Val:
        """Return a pure operation of the IR by its name, this value first."""
        ops = [o.op if isinstance(o, Val) else self.code.const(o, self.op.type).op for o in others]
        return Val(self.code, self.code.b.op(name, self.op, *ops))

    def cast(self, dtype: DType) -> Val:
        """Return the value in another dtype."""
        return Val(self.code, self.code.b.cast(self.op, dtype))

    def bits(self, dtype: DType) -> Val:
        """Return the bits read as another dtype of the same width."""
        if self.dtype is dtype:
            return self
        return Val(self.code, self.code.b.bitcast(self.op, dtype))

    def pick(self, then: Any, other: Any) -> Val:
        """Return `then` where this condition holds, else `other`."""
        kind = (then if isinstance(then, Val) else other).op.type
        a = then if isinstance(then, Val) else self.code.const(then, kind)
        b = other if isinstance(other, Val) else self.code.const(other, kind)
        return Val(self.code, self.code.b.select(self.op, a.op, b.op))

    def __add__(self, other: Any) -> Val:
        return self._two("add", other)

    def __radd__(self, other: Any) -> Val:
        return self._two("add", other, True)

    def __sub__(self, other: Any) -> Val:
        return self._two("sub", other)

    def __rsub__(self, other: Any) -> Val:
        return self._two("sub", other, True)

    def __mul__(self, other: Any) -> Val:
        return self._two("mul", other)

    def __rmul__(self, other: Any) -> Val:
        return self._two("mul", other, True)

    def __truediv__(self, other: Any) -> Val:
        return self._two("div", other)

    def __rtruediv__(self, other: Any) -> Val:
        return self._two("div", other, True)

    def __floordiv__(self, other: Any) -> Val:
        # Places and extents are never negative: the quotient towards zero is the cheaper one.
        return self._two("truncdiv", other)

    def __mod__(self, other: Any) -> Val:
        return self._two("rem", other)

    def __and__(self, other: Any) -> Val:
        return self._two("and", other)

    def __or__(self, other: Any) -> Val:
        return self._two("or", other)

    def __xor__(self, other: Any) -> Val:
        return self._two("xor", other)

    def __lshift__(self, other: Any) -> Val:
        return self._two("shl", other)

    def __rshift__(self, other: Any) -> Val:
        return self._two("shr", other)

    def __lt__(self, other: Any) -> Val:
        return self._two("lt", other)

    def __le__(self, other: Any) -> Val:
        return self._two("le", other)

    def __gt__(self, other: Any) -> Val:
        return self._two("gt", other)

    def __ge__(self, other: Any) -> Val:
        return self._two("ge", other)

    def eq(self, other: Any) -> Val:
        """Return whether both are equal."""
        return self._two("eq", other)

    def ne(self, other: Any) -> Val:
        """Return whether they differ."""
        return self._two("ne", other)

    def __neg__(self) -> Val:
        return self.call("neg")

    def __invert__(self) -> Val:
        return self.call("not")


class Local:
    """A mutable local of a kernel."""

    __slots__ = ("code", "slot")

    def __init__(self, code: Code, dtype: DType, start: Any) -> None:
        self.code = code
        self.slot = code.b.slot(dtype)
        self.set(start)

    def get(self) -> Val:
        """Return the value it has now."""
        return Val(self.code, self.code.b.get(self.slot))

    def set(self, value: Any) -> None:
        """Give it a value."""
        made = value if isinstance(value, Val) else self.code.const(value, self.slot.type)
        self.code.b.set(self.slot, made.op)


class Buf:
    """A buffer parameter, or shared memory."""

    __slots__ = ("code", "op")

    def __init__(self, code: Code, op: Op) -> None:
        self.code = code
        self.op = op

    def __getitem__(self, index: Val) -> Val:
        return Val(self.code, self.code.b.load(self.op, index.op))

    def __setitem__(self, index: Val, value: Val) -> None:
        self.code.b.store(self.op, index.op, value.op)


class Code:
    """A kernel under construction.

    Args:
        name: its name.
        index: dtype of places.
        units: units of a cube.
        fast_math: give up the last bits of transcendental functions.
    """

    def __init__(
        self,
        name: str,
        index: DType = d.int64,
        units: int | tuple[int, ...] = UNITS,
        fast_math: bool = False,
    ) -> None:
        # Every access is guarded here, so that no second check is paid for.
        self.b = Builder(name, units, index=index, bounds="unchecked", fast_math=fast_math)
        self.index = index

    def buffer(self, name: str, dtype: DType) -> Buf:
        """Add a buffer parameter."""
        return Buf(self, self.b.buffer(name, dtype))

    def scalar(self, name: str, dtype: DType) -> Val:
        """Add a number parameter."""
        return Val(self, self.b.scalar(name, dtype))

    def place(self, name: str) -> Val:
        """Add a number parameter of the index dtype."""
        return self.scalar(name, self.index)

    def places(self, name: str, count: int) -> list[Val]:
        """Add several of them."""
        return [self.place(f"{name}{k}") for k in range(count)]

    def const(self, value: Any, dtype: Any) -> Val:
        """Add a constant."""
        return Val(self, self.b.const(value, dtype))

    def at(self, value: int) -> Val:
        """Add a constant of the index dtype."""
        return self.const(value, self.index)

    def special(self, name: str) -> Val:
        """Add a position."""
        return Val(self, self.b.special(name))

    def local(self, dtype: DType, start: Any = 0) -> Local:
        """Add a mutable local."""
        return Local(self, dtype, start)

    def shared(self, dtype: DType, size: int) -> Buf:
        """Add memory that a cube shares."""
        return Buf(self, self.b.shared(dtype, size))

    @contextmanager
    def loop(
        self, start: Any, stop: Val, step: Any = 1, independent: bool = False
    ) -> Iterator[Val]:
        """Add a loop over places or integers of the type of `stop`; see `Builder.for_`."""
        first = start if isinstance(start, Val) else self.const(start, stop.op.type)
        by = step if isinstance(step, Val) else self.const(step, stop.op.type)
        with self.b.for_(first.op, stop.op, by.op, independent) as index:
            yield Val(self, index)

    @contextmanager
    def when(self, cond: Val) -> Iterator[Op]:
        """Add an `if`."""
        with self.b.if_(cond.op) as branch:
            yield branch

    @contextmanager
    def otherwise(self, branch: Op) -> Iterator[None]:
        """Add the `else` of an `if`."""
        with self.b.else_(branch):
            yield

    @contextmanager
    def each(self, count: Val) -> Iterator[Val]:
        """Run the block in one unit for each of `count` elements."""
        i = self.special("absolute_pos")
        with self.when(i < count):
            yield i

    def coords(self, linear: Val, extents: Sequence[Val]) -> list[Val]:
        """Return the coordinates of a row-major number; the first extent is never read."""
        out: list[Val] = []
        for extent in reversed(extents[1:]):
            rest = linear // extent
            out.append(linear - rest * extent)
            linear = rest
        return [linear, *reversed(out)]

    def walk(self, offset: Val, coords: Sequence[Val], strides: Sequence[Val]) -> Val:
        """Return the place of coordinates."""
        for c, s in zip(coords, strides, strict=True):
            offset = offset + c * s
        return offset

    def barrier(self) -> None:
        """Wait for all units of the cube."""
        self.b.barrier()

    def finish(self) -> Kernel:
        """Return the kernel."""
        kernel = self.b.finish()
        verify(kernel)
        return simplify(kernel)
