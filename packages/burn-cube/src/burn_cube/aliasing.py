"""Where a kernel may write over what it reads: said from its IR, for whoever plans memory.

A unit that stores an element of `out` at the place at which it loaded `x` before, and loads `x`
nowhere else, works as well when both are the same memory: what is stored by one unit alone is then
loaded by it alone. Places are compared as sums of terms; what they have apart from each other
becomes a condition on the numbers of a launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from burn_cube.ir import Kernel, Op, Region
from burn_cube.types import Memory

# What touches memory, and the operand that is the memory.
_TOUCHES = {
    "load": 0, "store": 0, "atomic": 0, "atomic_cas": 0, "tile_load": 0, "tile_store": 0,
    "async_copy": 2,
}  # fmt: skip


class Over(NamedTuple):
    """A buffer that may lie over another one.

    Attributes:
        out: number of the parameter that is written.
        x: number of the parameter that is read.
        zeros: numbers of parameters that must be zero in a launch.
        equals: pairs of parameters that must be equal.
        ones: axes of the grid that must be one cube long.
    """

    out: int
    x: int
    zeros: tuple[int, ...]
    equals: tuple[tuple[int, int], ...]
    ones: tuple[int, ...]

    def holds(self, args: Sequence[Any], cubes: Sequence[int]) -> bool:
        """Return whether a launch fulfils the conditions.

        Args:
            args: the arguments of the launch, arrays and numbers.
            cubes: its grid.
        """
        return (
            all(args[k] == 0 for k in self.zeros)
            and all(args[a] == args[b] for a, b in self.equals)
            and all(cubes[axis] == 1 for axis in self.ones)
        )


def overlays(kernel: Kernel) -> list[Over]:
    """Return which buffers of a kernel may be written over which others.

    Example:
        >>> from burn_cube import Builder
        >>> from burn_std.dtypes import float32
        >>> b = Builder("twice", bounds="unchecked")
        >>> x, out = b.buffer("x", float32), b.buffer("out", float32)
        >>> i = b.special("absolute_pos")
        >>> b.store(out, i, b.op("mul", b.load(x, i), b.const(2.0, float32)))
        >>> [(over.out, over.x) for over in overlays(b.finish())]
        [(1, 0)]
    """
    touches: dict[Op, list[tuple[Op, Region, int]]] = {}
    for op, region, at, plain in _touched(kernel.body, True):
        # What stands in a loop may come again: then nothing is said.
        touches.setdefault(op.args[_TOUCHES[op.name]], []).append((op, region, at if plain else -1))
    numbers = {p: k for k, p in enumerate(kernel.params)}
    found = []
    for out in kernel.buffers:
        stores = touches.get(out, [])
        if len(stores) != 1 or stores[0][0].name != "store" or stores[0][2] < 0:
            continue
        for x in kernel.buffers:
            loads = touches.get(x, [])
            if x is out or not loads or not _same_elements(out, x):
                continue
            over = _over(numbers, out, x, stores[0], loads)
            if over is not None:
                found.append(over)
    return found


def _same_elements(a: Op, b: Op) -> bool:
    return isinstance(a.type, Memory) and a.type.elem is b.type.elem


def _touched(region: Region, plain: bool) -> Iterator[tuple[Op, Region, int, bool]]:
    for at, op in enumerate(region.ops):
        if op.name in _TOUCHES:
            yield op, region, at, plain
        for inner in op.regions:
            yield from _touched(inner, plain and op.name == "if")


def _over(
    numbers: dict[Op, int], out: Op, x: Op, store: tuple[Op, Region, int],
    loads: Sequence[tuple[Op, Region, int]],
) -> Over | None:  # fmt: skip
    place = store[0].args[1]
    zeros: set[int] = set()
    equals: set[tuple[int, int]] = set()
    for load, region, at in loads:
        if load.name != "load" or region is not store[1] or not 0 <= at < store[2]:
            return None
        if not _equal(load.args[1], place, numbers, zeros, equals):
            return None
    ones = _alone(place)
    if ones is None:
        return None
    return Over(numbers[out], numbers[x], tuple(sorted(zeros)), tuple(sorted(equals)), ones)


def _alone(place: Op) -> tuple[int, ...] | None:
    """Return the axes of the grid that must be one cube long for units to have places apart.

    None where two units of a cube might store at one place.
    """
    named = {op.attrs["name"] for op in _inside(place) if op.name == "special"}
    direct = set(_summed(place))
    if "absolute_pos" in direct:
        return ()
    if "unit_pos_x" not in direct:
        return None
    return tuple(k for k, axis in enumerate("xyz") if f"cube_pos_{axis}" not in named)


def _summed(op: Op) -> Iterator[str]:
    """Yield the positions that are terms of a sum."""
    if op.name == "special":
        yield op.attrs["name"]
    elif op.name in ("add", "sub"):
        yield from _summed(op.args[0])
        if op.name == "add":
            yield from _summed(op.args[1])


def _inside(op: Op) -> Iterator[Op]:
    yield op
    for arg in op.args:
        yield from _inside(arg)


def _zero(op: Op, numbers: dict[Op, int]) -> set[int] | None:
    """Return the parameters that must be zero for a value to be; None where it cannot be said."""
    if op in numbers and not isinstance(op.type, Memory):
        return {numbers[op]}
    if op.name == "const":
        return set() if op.attrs["value"] == 0 else None
    if op.name in ("cast", "floordiv", "div"):
        return _zero(op.args[0], numbers)
    return None


def _terms(op: Op, numbers: dict[Op, int], zeros: set[int]) -> list[Op]:
    """Return the terms of a sum without those that are zero; notes which numbers must be."""
    if op.name == "add":
        return [t for arg in op.args for t in _terms(arg, numbers, zeros)]
    nothing = _zero(op, numbers)
    if nothing is None:
        return [op]
    zeros.update(nothing)
    return []


def _equal(
    a: Op, b: Op, numbers: dict[Op, int], zeros: set[int], equals: set[tuple[int, int]]
) -> bool:
    """Return whether two values are equal, under conditions that are noted."""
    if a is b:
        return True
    if a.name == "add" or b.name == "add":
        one, other = _terms(a, numbers, zeros), _terms(b, numbers, zeros)
        return len(one) == len(other) and all(
            _equal(p, q, numbers, zeros, equals) for p, q in zip(one, other, strict=True)
        )
    if a in numbers and b in numbers and not isinstance(a.type, Memory):
        equals.add((numbers[a], numbers[b]))
        return a.type is b.type
    if a.name != b.name or a.type is not b.type or a.attrs != b.attrs or a.regions or b.regions:
        return False
    if len(a.args) != len(b.args) or a.name in _TOUCHES or a.name in ("param", "get"):
        return False
    return all(_equal(p, q, numbers, zeros, equals) for p, q in zip(a.args, b.args, strict=True))
