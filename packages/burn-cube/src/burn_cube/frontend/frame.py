"""The names of one function under expansion, and how it returns."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from burn_cube.errors import KernelError, KernelTypeError, Where
from burn_cube.frontend.source import Source
from burn_cube.frontend.values import Slot, Val, describe, is_number
from burn_cube.language import Generic
from burn_std.dtypes import DType

if TYPE_CHECKING:
    from burn_cube.ir import Op

MISSING = object()


class Return(Exception):
    """Carries the result out of the statements of a function."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class UnrolledBreak(Exception):
    """Ends an unrolled loop at expansion."""


class UnrolledContinue(Exception):
    """Ends one round of an unrolled loop at expansion."""


class Loop:
    """A loop that `break` and `continue` of a frame may mean.

    Attributes:
        op: the run-time loop, or None for an unrolled one.
        depth: run-time depth of the frame where the loop stands.
        breaks: the block that an unrolled loop's run-time `break` leaves.
        continues: the block of the current round.
    """

    __slots__ = ("breaks", "continues", "depth", "op")

    def __init__(self, op: Op | None, depth: int) -> None:
        self.op = op
        self.depth = depth
        self.breaks: Op | None = None
        self.continues: Op | None = None


class Frame:
    """One function under expansion.

    Attributes:
        source: its text.
        env: what its local names hold.
        outer: names of the enclosing functions and of the module.
        types: what its generics stand for.
        depth: run-time regions of this function that are open.
        saved: what the names held where each of those regions began.
        maybe: names that only some path assigns, with the reason.
        loops: open loops.
        block: the block that an early return leaves.
        results: the locals that hold the result of an early return, in its structure.
        left: whether some path left the block.
    """

    def __init__(
        self,
        source: Source,
        env: dict[str, Any],
        outer: list[dict[str, Any]],
        types: dict[Generic, DType],
    ) -> None:
        self.source = source
        self.env = env
        self.outer = outer
        self.types = types
        self.depth = 0
        self.saved: list[dict[str, Any]] = []
        self.maybe: dict[str, str] = {}
        self.loops: list[Loop] = []
        self.block: Op | None = None
        self.results: Any = MISSING
        self.left = False

    def lookup(self, name: str, where: Where) -> Any:
        """Return what a name holds."""
        if name in self.env:
            return self.env[name]
        if name in self.maybe:
            raise KernelError(
                name, f"the name is assigned {self.maybe[name]}, so here it may have no value",
                remedy="Assign it before, too.", where=where,
            )  # fmt: skip
        for names in self.outer:
            if name in names:
                return names[name]
        found = getattr(builtins, name, MISSING)
        if found is MISSING:
            raise KernelError(name, "no such name", remedy="Assign or import it.", where=where)
        return found

    def generic(self, generic: Generic, where: Where | None) -> DType:
        """Return the dtype that a generic stands for."""
        if generic in self.types:
            return self.types[generic]
        raise KernelTypeError(
            generic.name, "no argument of the kernel brought a dtype for this generic",
            remedy=f"Annotate a parameter with it: x: Array[{generic.name}].", where=where,
        )  # fmt: skip

    def unify(self, name: str, generic: Any, dtype: DType, where: Where | None) -> DType:
        """Bind a generic, or check a dtype, against the dtype of an argument."""
        if isinstance(generic, DType):
            if generic is not dtype:
                raise KernelTypeError(
                    name, f"the parameter is {generic.name}", got=dtype.name,
                    remedy="Cast it at the call, or declare it with a Generic.", where=where,
                )  # fmt: skip
            return dtype
        if dtype not in generic.among:
            names = ", ".join(d.name for d in generic.among)
            raise KernelTypeError(
                name, f"{generic.name} is one of {names}", got=dtype.name, where=where
            )
        known = self.types.setdefault(generic, dtype)
        if known is not dtype:
            raise KernelTypeError(
                name, f"{generic.name} is {known.name} already, from another argument",
                got=dtype.name, remedy="Give both one dtype, or use two generics.", where=where,
            )  # fmt: skip
        return dtype

    def store_result(self, value: Any, where: Where) -> None:
        """Write the result of an early return into its locals, made by the first one."""
        if self.results is MISSING:
            self.results = _result_slots(value, where)
            return
        _write_result(self.results, value, where)


def _result_slots(value: Any, where: Where) -> Any:
    if value is None:
        return None
    if isinstance(value, Val) or is_number(value):
        return Slot(value)
    if isinstance(value, tuple):
        return tuple(_result_slots(item, where) for item in value)
    raise KernelError(
        "return", "a return inside a run-time `if` or loop gives numbers or tuples of them",
        got=describe(value), remedy="Return it at the end of the function.", where=where,
    )  # fmt: skip


def _write_result(slots: Any, value: Any, where: Where) -> None:
    if slots is None and value is None:
        return
    if isinstance(slots, Slot) and (isinstance(value, Val) or is_number(value)):
        slots.write(value)
        return
    if isinstance(slots, tuple) and isinstance(value, tuple) and len(slots) == len(value):
        for slot, item in zip(slots, value, strict=True):
            _write_result(slot, item, where)
        return
    raise KernelError(
        "return", "every return of a function gives the same kind of result",
        got=describe(value), where=where,
    )  # fmt: skip


def read_result(slots: Any) -> Any:
    """Return the values that the locals of a result hold."""
    if isinstance(slots, Slot):
        return slots.read()
    if isinstance(slots, tuple):
        return tuple(read_result(slot) for slot in slots)
    return None
