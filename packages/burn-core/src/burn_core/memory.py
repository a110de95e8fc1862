"""`burn.memory_report`: how much memory devices use, and who holds most of it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from types import FrameType
from typing import Any, NamedTuple

from burn_core.module import Module
from burn_core.parameter import Buffer, Parameter, Pending
from burn_dispatch import Device, Resource, device as named, place_of, resources
from burn_std import ArgumentError, Place
from burn_tensor import Tensor

# Variables of programs whose names are looked at, per frame: no more than a person would write.
_NAMES = 4096


class MemoryHolder(NamedTuple):
    """What keeps memory in use.

    Attributes:
        kind: `parameter`, `buffer`, `optimizer`, `gradient`, `tensor`, `saved` (for a backward) or
            `pool`, where only the operation is known that took it.
        name: path of the parameter, name of the variable, operation, or shape.
        bytes: of memory that no holder named before it has.
        place: line that made it, if it was made inside `burn.profile`.
    """

    kind: str
    name: str
    bytes: int
    place: Place | None


class MemoryUse:
    """The memory of one device; prints as a table.

    Attributes:
        device: its name.
        in_use: bytes in use; where the backend keeps no count, those of the holders.
        peak: the most that ever was, None where the backend keeps no count.
        reserved: what the device gave, caches included; None likewise.
        holders: largest first.
    """

    def __init__(
        self, device: str, in_use: int, peak: int | None, reserved: int | None,
        holders: Sequence[MemoryHolder], top: int,
    ) -> None:  # fmt: skip
        self.device = device
        self.in_use = in_use
        self.peak = peak
        self.reserved = reserved
        self.holders = tuple(holders)
        self._top = top

    def of(self, kind: str) -> int:
        """Return the bytes of the holders of one kind.

        Args:
            kind: see `MemoryHolder`.
        """
        return sum(h.bytes for h in self.holders if h.kind == kind)

    def __str__(self) -> str:
        """Return the table."""
        counts = [("in use", self.in_use), ("peak", self.peak), ("reserved", self.reserved)]
        words = ", ".join(f"{name} {_size(n)}" for name, n in counts if n is not None)
        lines = [f"{self.device}: {words}"]
        for h in self.holders[: self._top]:
            line = f"  {_size(h.bytes):>10}  {h.kind:9}  {h.name}"
            lines.append(line if h.place is None else f"{line}  ({h.place})")
        rest = self.holders[self._top :]
        if rest:
            lines.append(f"  {_size(sum(h.bytes for h in rest)):>10}  in {len(rest)} more")
        return "\n".join(lines)

    __repr__ = __str__


class MemoryReport(tuple[MemoryUse, ...]):
    """The memory of some devices; prints as tables."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return the tables."""
        return "\n".join(map(str, self))

    __repr__ = __str__


def memory_report(device: Device | str | None = None, top: int = 10) -> MemoryReport:
    """Return how much memory is in use, the most there was, and who holds it.

    It looks through all objects of the process, so it takes some milliseconds: for a person who
    asks, not for every step. Recorded operations run first. Memory that several hold is counted
    for the first of: parameters, optimizers, gradients, variables, what a backward will read.

    Args:
        device: the device, or its name; all that were used if None.
        top: holders that are printed.

    Raises:
        ArgumentError: `top` is no count.

    Example:
        >>> device = burn.device("flex:5")
        >>> model = burn.nn.Linear(100, 50, device=device)
        >>> batch = burn.zeros(16, 100, device=device)
        >>> (use,) = burn.memory_report(device)
        >>> [(h.kind, h.bytes) for h in use.holders]
        [('parameter', 20000), ('tensor', 6400), ('parameter', 200)]
    """
    if type(top) is not int or top < 0:
        raise ArgumentError("memory_report", "top is how many holders are printed", got=top)
    asked = resources() if device is None else [named(device).resource]
    for resource in asked:
        resource.backend.flush()
    found = _Objects()
    uses = [_use(resource, found, top) for resource in asked]
    return MemoryReport(u for u in uses if device is not None or u.in_use)


def owners_of(values: Iterable[Any]) -> str | None:
    """Return who holds one of some payloads, in words; None where nobody does."""
    wanted = {id(v) for v in values}
    found = next((row for row in _Objects().rows() if id(row[2]) in wanted), None)
    if found is None:
        return None
    kind, name = found[:2]
    if kind == "optimizer":
        return f"the optimizer {name}" if " " in name else f"an optimizer {name}"
    known = kind in ("parameter", "buffer") or " in " in name or " of " in name
    return f"{kind} {name}" if known else None


def _alive() -> list[Any]:
    """Return the objects of the process that may hold tensors.

    Other threads break where somebody holds a tuple that they are still making. So the list of all
    objects is gone before any Python runs, and what refers to a class is what is of it.
    """
    decorators = [c.decorator for r in resources() for c in r.contexts.values()]
    ours = {type(d).__module__.partition(".")[0] for d in decorators if d is not None}

    def holds(kind: type) -> bool:
        if issubclass(kind, tuple):
            return False
        known = issubclass(kind, (Tensor, Module)) or hasattr(kind, "step_tensors")
        return known or str(kind.__module__).partition(".")[0] in ours

    everything = chain.from_iterable(map(gc.get_objects, (None,)))
    wanted = {kind for kind in set(map(type, everything)) if holds(kind)}
    return [x for x in gc.get_referrers(*wanted) if type(x) in wanted]


class _Objects:
    """What of the process's objects holds tensors, and the names of variables."""

    def __init__(self) -> None:
        objects = _alive()
        self.names = _variables()
        self.modules: list[Module] = []
        self.optimizers: list[Any] = []
        self.tensors: list[Any] = []
        for x in objects:
            kind = type(x)
            if issubclass(kind, Tensor):
                self.tensors.append(x)
            elif issubclass(kind, Module):
                self.modules.append(x)
            elif hasattr(kind, "step_tensors"):
                self.optimizers.append(x)
        decorators = {id(t.b.decorator): t.b.decorator for t in self.tensors}
        self.held = [
            row for d in decorators.values() if d is not None for row in d.holdings(objects)
        ]

    def rows(self) -> Iterator[tuple[str, str, Any, Any]]:
        """Yield kind, name, payload and the object that has a place, in order of their claims."""
        inner = {id(m) for root in self.modules for m in list(root.modules())[1:]}
        roots = [m for m in self.modules if id(m) not in inner]
        # Those that have a name of their own come before copies of them.
        for root in sorted(roots, key=lambda m: id(m) not in self.names):
            name = self.names.get(id(root), type(root).__name__)
            for path, p in root.named_parameters():
                yield "parameter", f"{name.split(' ')[0]}.{path}", p.v, p
            for path, b in root.named_buffers():
                yield "buffer", f"{name.split(' ')[0]}.{path}", b.v, b
        for o in self.optimizers:
            title = self.names.get(id(o), type(o).__name__)
            yield from (("optimizer", title, t.v, t) for t in o.step_tensors())
        yield from (row for row in self.held if row[0] == "gradient")
        named = [t for t in self.tensors if id(t) in self.names]
        yield from (("tensor", self.names[id(t)], t.v, t) for t in named)
        yield from (row for row in self.held if row[0] != "gradient")
        for t in self.tensors:
            kind = {Parameter: "parameter", Buffer: "buffer"}.get(type(t), "tensor")
            if type(t.v) is not Pending:
                yield kind, f"{t.dtype.name}{list(t.shape)}", t.v, t


def _use(resource: Resource, found: _Objects, top: int) -> MemoryUse:
    backend = resource.backend
    report = backend.memory_report()
    here = {id(c.resource) for c in resource.contexts.values()}
    claimed: dict[Any, Any] = {}
    sums: dict[tuple[str, str, Place | None], int] = {}
    for kind, name, payload, owner in found.rows():
        context = getattr(owner, "b", None) or owner.call.context
        if type(payload) is Pending or context is None or id(context.resource) not in here:
            continue
        for memory, size in backend.memory_of(payload):
            if id(memory) not in claimed:
                claimed[id(memory)] = memory  # held, so that no other gets its id
                key = (kind, name, place_of(owner))
                sums[key] = sums.get(key, 0) + size
    for label, size in backend.memory_held(list(claimed.values())):
        key = ("pool", label, None)
        sums[key] = sums.get(key, 0) + size
    holders = [MemoryHolder(*key[:2], size, key[2]) for key, size in sums.items() if size]
    holders.sort(key=lambda h: -h.bytes)
    in_use = report.get("in_use", sum(h.bytes for h in holders))
    name = f"{resource.name}:{resource.index}" if resource.index else resource.name
    return MemoryUse(name, in_use, report.get("peak"), report.get("reserved"), holders, top)


def _variables() -> dict[int, str]:
    """Return the names of the program's variables by the id of what they hold.

    They are those of this thread's functions and their modules: the frames of threads that run are
    not safe to walk.
    """
    names: dict[int, str] = {}
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        module = frame.f_globals.get("__name__", "burn")
        if not module.startswith("burn_"):
            _note(names, frame.f_locals.items(), f" in {frame.f_code.co_name}")
            _note(names, frame.f_globals.items(), f" of {module}")
        frame = frame.f_back
    main = sys.modules.get("__main__")
    if main is not None:
        _note(names, vars(main).items(), " of __main__")
    return names


def _note(names: dict[int, str], variables: Iterable[tuple[Any, Any]], where: str) -> None:
    for name, value in list(variables):
        if isinstance(value, (Tensor, Module)) or hasattr(type(value), "step_tensors"):
            names.setdefault(id(value), f"{name}{where}")
        elif type(value) in (list, tuple, dict) and len(value) <= _NAMES:
            items = value.items() if type(value) is dict else enumerate(value)
            for key, part in list(items):
                if isinstance(part, (Tensor, Module)):
                    names.setdefault(id(part), f"{name}[{key!r}]{where}")


def _size(size: int) -> str:
    value = float(size)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
