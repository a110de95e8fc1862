"""Numbers that change from run to run, followed through a kernel's code to the launch.

A late number computes like the number that it is, and notes how it came about; so a launch knows
which of its arguments to compute again from the numbers of the next run. Where code asks what the
number is (a comparison, a look-up), the answer would be baked in: that raises `NeedsValue`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.quant import QuantTensor

# The numbers of one run, by the slot of the operation that has them.
Run = dict[int, tuple[Any, ...]]
Place = tuple[int, int]
# An open bound, and what decides more than a value.
NEVER_LATE = (type(None), bool)


class NeedsValue(Exception):
    """Code depends on what a late number is.

    Attributes:
        place: slot and position of the number.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(f"the code depends on the value of a number that changes: {place}")
        self.place = place


class Late:
    """What late numbers have beside their value.

    Attributes:
        plain: the number.
        place: where it comes from, or one of the places.
        read: how it is found in the numbers of another run.
    """

    plain: Any
    place: Place
    read: Callable[[Run], Any]

    def through(self, fn: Callable[[Any], Any]) -> Any:
        """Return a function of the number, late itself."""
        read = self.read
        return _late(fn(self.plain), self.place, lambda run: fn(read(run)))


class LateFloat(Late, float):
    """A late float."""


class LateInt(Late, int):
    """A late integer."""


def _late(value: Any, place: Place, read: Callable[[Run], Any]) -> Any:
    made: Any = (LateFloat if isinstance(value, float) else LateInt)(value)
    made.plain = value
    made.place = place
    made.read = read
    return made


def late(value: Any, place: Place) -> Any:
    """Return a number, or a tuple of numbers, as one that changes from run to run.

    Args:
        value: what it is in this run.
        place: slot of its operation, position among the operation's run-time values.
    """
    slot, at = place
    if isinstance(value, tuple):
        return tuple(_late(v, place, _part(slot, at, k)) for k, v in enumerate(value))
    return _late(value, place, lambda run: run[slot][at])


def _part(slot: int, at: int, k: int) -> Callable[[Run], Any]:
    return lambda run: run[slot][at][k]


def can_be_late(value: Any) -> bool:
    """Return whether a run-time value is a number that may change without another program."""
    if isinstance(value, tuple):
        return all(v.__class__ in (int, float) for v in value)
    return value.__class__ in (int, float)


def real(value: Any) -> float:
    """Return a number as a float, late if it is."""
    return value.through(float) if isinstance(value, Late) else float(value)


def whole(value: Any) -> int:
    """Return a number as an integer, late if it is."""
    return value.through(int) if isinstance(value, Late) else int(value)


def _refuse(self: Late, *args: Any) -> Any:
    raise NeedsValue(self.place)


def _forward(op: Callable[[Any, Any], Any]) -> Callable[[Late, Any], Any]:
    def computed(self: Late, other: Any) -> Any:
        if not isinstance(other, Late):
            return self.through(lambda v: op(v, other))
        a, b = self.read, other.read
        return _late(op(self.plain, other.plain), self.place, lambda run: op(a(run), b(run)))

    return computed


def _backward(op: Callable[[Any, Any], Any]) -> Callable[[Late, Any], Any]:
    return lambda self, other: self.through(lambda v: op(other, v))


_BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift",
    "rshift",
)  # fmt: skip
_UNARY = {"neg": operator.neg, "pos": operator.pos, "abs": abs, "invert": operator.invert}
_ASKING = (
    "eq", "ne", "lt", "le", "gt", "ge", "bool", "hash", "int", "float", "index", "trunc", "round",
    "floor", "ceil", "divmod", "rdivmod",
)  # fmt: skip

for _class in (LateFloat, LateInt):
    for _name in _BINARY:
        _op: Any = getattr(operator, f"{_name}_" if _name in ("and", "or") else _name)
        setattr(_class, f"__{_name}__", _forward(_op))
        setattr(_class, f"__r{_name}__", _backward(_op))
    for _name, _unary in _UNARY.items():
        setattr(_class, f"__{_name}__", lambda self, op=_unary: self.through(op))
    for _name in _ASKING:
        setattr(_class, f"__{_name}__", _refuse)


def plain(x: Any) -> Any:
    """Return a payload without late numbers."""
    if x.__class__ is CubeTensor and isinstance(x.value, Late):
        made = CubeTensor(x.buf, x.shape, x.strides, x.dtype, x.offset)
        made.value = x.value.plain
        return made
    if x.__class__ is QuantTensor:
        return QuantTensor(plain(x.values), plain(x.scale), plain(x.zero), x.dtype, x.shape)
    return x
