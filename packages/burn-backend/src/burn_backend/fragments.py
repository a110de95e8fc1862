"""What a layer contributes to the generated function of an operation.

The generator in burn-dispatch owns one frame:

    load      per input: the tensor's payload is in `<name>_v`; a layer may read more
    produce   sets `r_`, the payload of the result (a sequence for several outputs)
    finish    `t_` (or the list `ts_`) holds the result tensors; a layer attaches what it keeps

A backend fills `produce`; a decorator gets the fragments of what it wraps and returns its own.
`d_` is the payload dtype of the promoted (or first) input. Capitalised names are constants, and
`constants` says what they are. Locals of a layer end in an underscore, since inputs and attributes
of an entry may have any other name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from burn_ir import Entry


class Fragments:
    """Source lines for the holes of the frame, and the constants they name.

    Attributes:
        load: maps an input's name to lines run once its payload is known; `else_load` to lines
            for an input that is absent or was a Python scalar.
        produce: lines that set `r_`.
        finish: lines that run last.
        constants: values of the capitalised names.
        shapes: a local that `produce` leaves, None when every input has the result's shape, else
            the tuple of the inputs' shapes; no name when there is no such local.
    """

    __slots__ = ("constants", "else_load", "finish", "load", "produce", "shapes")

    def __init__(
        self,
        produce: Sequence[str],
        constants: dict[str, Any],
        load: dict[str, list[str]] | None = None,
        else_load: dict[str, list[str]] | None = None,
        finish: Sequence[str] = (),
        shapes: str | None = None,
    ) -> None:
        self.produce = list(produce)
        self.constants = constants
        self.load = load or {}
        self.else_load = else_load or {}
        self.finish = list(finish)
        self.shapes = shapes


class Again(Exception):
    """Raised by a kernel look-up: the call must go through promotion first."""


class Memo(dict[Any, Any]):
    """A bounded dict that computes missing values; cleared when full, so it stays small."""

    __slots__ = ("_limit", "_make")

    def __init__(self, make: Callable[[Any], Any], limit: int = 4096) -> None:
        super().__init__()
        self._make = make
        self._limit = limit

    def __missing__(self, key: Any) -> Any:
        value = self._make(key)
        if len(self) >= self._limit:
            self.clear()
        self[key] = value
        return value


def argument_names(entry: Entry) -> list[str]:
    """Return the parameter names of the operation's generated function."""
    return [i.name for i in entry.inputs] + [a.name for a in entry.attrs]


def payload_names(entry: Entry) -> list[str]:
    """Return the names under which `produce` finds the payloads of the inputs."""
    return [f"{i.name}_v" for i in entry.inputs]


def infer_lines(entry: Entry, target: str) -> list[str]:
    """Return the lines that take from `INFER` what a shape rule says, remembered by key.

    Promoted inputs have one dtype by then, which stands in front of their shapes: a key that is
    hashed at every call of an operation is as flat as can be. Lists become a part of it by loops,
    which frames can be compiled with.

    Args:
        entry: the operation.
        target: what the answer is assigned to; nothing if empty.
    """
    lines = []
    parts = ["d_"] if any(i.promoted for i in entry.inputs) else []
    for i in entry.inputs:
        v = f"{i.name}_v"
        look = "{}.shape" if i.promoted else "({}.shape, {}.dtype)"
        if i.many:
            lines.append(f"{i.name}_s = []")
            lines.append(f"for e_ in {v}: {i.name}_s.append({look.replace('{}', 'e_')})")
            parts.append(f"TUPLE({i.name}_s)")
        elif i.optional:
            parts.append(f"(None if {v} is None else {look.replace('{}', v)})")
        else:
            parts.append(look.replace("{}", v))
    parts += [a.name for a in entry.attrs if a.kind != "scalar"]
    key = f"INFER[({', '.join(parts)},)]"
    return [*lines, f"{target} = {key}" if target else key]
