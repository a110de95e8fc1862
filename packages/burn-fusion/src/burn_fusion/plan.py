"""Plans: a program turned into one straight-line function over the inner backend's kernels.

A plan is symbolic in extents and scalars. Temporaries are dropped at their last use, and a map may
write its result over an operand that dies there.
"""

from __future__ import annotations

import itertools
import linecache
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

from burn_backend import CORES, JOINTS, LEAVES, Backend
from burn_fusion.extents import TensorOf
from burn_fusion.groups import Fused, units_of
from burn_fusion.losses import paired
from burn_fusion.mode import compared, mode
from burn_fusion.segment import Value, axis_classes
from burn_fusion.stages import FIRST, Described, in_stages
from burn_fusion.tails import with_tails
from burn_ir import CATALOG, Entry


class Step:
    """One operation of a program with what its execution needs.

    Attributes:
        entry: the operation.
        slot: slot of its first output; `outputs` how many follow from there.
        inputs: slot, None or tuple of slots per input.
        static: static attributes.
        is_number: it makes a tensor of rank 0 from a number, which kernels can take as such.
        kernel: the inner backend's function.
    """

    __slots__ = ("entry", "inputs", "is_number", "kernel", "outputs", "slot", "static")

    def __init__(
        self, entry: Entry, slot: int, inputs: list[Any], static: tuple[Any, ...],
        is_number: bool = False,
    ) -> None:  # fmt: skip
        self.entry = entry
        self.is_number = is_number
        self.slot = slot
        self.inputs = inputs
        self.static = static
        self.outputs = 1
        self.kernel: Any = None

    @property
    def can_fail(self) -> bool:
        """Whether it may refuse its data at run time, so that it runs though nobody reads it."""
        return can_fail(self.entry)

    def writes(self) -> list[int]:
        """Return the slots that it fills."""
        return list(range(self.slot, self.slot + self.outputs))

    def run_time(self) -> list[int]:
        """Return the positions of its run-time values."""
        return list(range(sum(a.kind != "static" for a in self.entry.attrs)))

    def scalars(self) -> list[int]:
        """Return which of its run-time values are numbers, not extents."""
        kinds = [a.kind for a in self.entry.attrs if a.kind != "static"]
        return [k for k, kind in enumerate(kinds) if kind == "scalar"]

    def reads(self) -> list[int]:
        """Return the slots that it reads."""
        out: list[int] = []
        for i in self.inputs:
            out += [] if i is None else i if isinstance(i, tuple) else [i]
        return out


def decode(codes: list[Any]) -> list[Step]:
    """Return the steps of a program's codes."""
    steps: list[Step] = []
    for slot, code in enumerate(codes):
        if code[0] == -1:
            steps[-1].outputs += 1
            continue
        entry = CATALOG.by_code[code[0]]
        n = len(entry.inputs)
        static = sum(a.kind == "static" for a in entry.attrs)
        attrs = tuple(code[1 + n : 1 + n + static])
        # The classes of its axes end the code of a `full`.
        number = entry.name == "full" and code[-1] == () and not attrs[0].is_quantized
        steps.append(Step(entry, slot, list(code[1 : 1 + n]), attrs, number))
    return steps


def bind_kernels(steps: list[Step], inner: Backend, dtype_of: Callable[[int], Any]) -> None:
    """Look up each step's kernel for the dtype of its promoted (or first) input."""
    for step in steps:
        lead = next((k for k, i in enumerate(step.entry.inputs) if i.promoted), 0)
        key = None
        if step.inputs:
            slot = step.inputs[lead]
            key = inner.native[dtype_of(slot[0] if isinstance(slot, tuple) else slot)]
        if step.entry.name == "full" and not step.static[0].is_quantized:
            step.kernel = _full(inner, step.static[0])
        elif step.slot >= FIRST:
            step.kernel = None if inner.fuser is None else inner.fuser.first_stage
        else:
            step.kernel = inner.kernels(step.entry)[key]


def _full(inner: Backend, dtype: Any) -> Callable[..., Any]:
    general = inner.kernels(CATALOG["full"])[None]
    scalar = inner.scalar

    def full(dt: Any, shape: tuple[int, ...], value: Any) -> Any:
        return general(dt, shape, value) if shape else scalar(value, dtype)

    return full


class Plan:
    """A program ready to run.

    Attributes:
        live: slots that are returned; `held` says it of each slot.
        donate: external slots whose memory may be overwritten.
        function: `(external payloads, run-time tuples by slot) -> payloads of live`.
        run: the same as the inner backend runs it; `replays` says that it has a `quick`.
        source: its generated text, in `linecache` under `filename`.
        steps: the operations, for whoever walks them one by one.
        units: what the text calls, operations or fused ones.
        lines: the first line of each step in the text, where no operation is fused.
        runs: how often it ran.
    """

    __slots__ = (
        "donate",
        "filename",
        "function",
        "held",
        "lines",
        "live",
        "replays",
        "run",
        "runs",
        "source",
        "steps",
        "units",
    )

    def __init__(
        self,
        vals: list[Value],
        ext: list[Value],
        live: tuple[int, ...],
        donate: frozenset[int],
        inner: Backend,
    ) -> None:
        wanted = mode()
        self.live = live
        held = set(live)
        self.held = tuple([slot in held for slot in range(len(vals))])
        # Who compares runs twice, so nothing is overwritten.
        self.donate = donate = frozenset() if wanted == "check" else donate
        self.steps = decode([v.op for v in vals])

        def described(slot: int) -> Value:
            return vals[slot] if slot >= 0 else ext[-1 - slot]

        tensor: TensorOf = described
        self.units: Sequence[Step | Fused] = self.steps
        if inner.fuser is not None and wanted != "off":
            fuser = inner.fuser

            def made(steps: Sequence[Step], seen: TensorOf) -> list[Step | Fused]:
                return units_of(steps, live, seen, fuser, partial(_apart, tensor=seen, inner=inner))

            units, tensor = in_stages(self.steps, tensor, fuser, made)
            units = with_tails(units, live, tensor, fuser)
            self.units = paired(units, live, tensor, fuser)
        alone = [u for u in self.units if isinstance(u, Step)]
        bind_kernels(alone, inner, lambda s: tensor(s).dtype)
        self.runs = 0
        self._written(vals, ext, inner)
        self.run: Any = self.function
        if wanted != "off":
            scalars = [(s.slot, k) for s in self.steps for k in s.scalars()]
            self.run = inner.bound(self.function, scalars)
        if wanted == "check":
            self.run = compared(self, self._one_by_one(vals, ext, inner), inner)
        self.replays = hasattr(self.run, "quick")

    def _written(self, vals: list[Value], ext: list[Value], inner: Backend) -> None:
        """Write the text and make its function."""
        self.lines: list[int] = []
        self.source, constants = _source(self, vals, ext, inner)
        self.filename = name = f"<burn plan of {len(self.steps)} operations #{next(_serial)}>"
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(True), name)
        exec(compile(self.source, name, "exec"), constants)
        self.function: FunctionType = constants["plan"]

    def _one_by_one(self, vals: list[Value], ext: list[Value], inner: Backend) -> FunctionType:
        """Return the function that calls a kernel for each operation, in their order."""
        plain = object.__new__(Plan)
        plain.live, plain.donate = self.live, self.donate
        plain.steps = decode([v.op for v in vals])
        plain.units = plain.steps
        bind_kernels(plain.steps, inner, lambda s: (vals[s] if s >= 0 else ext[-1 - s]).dtype)
        plain._written(vals, ext, inner)
        return plain.function

    def step_at(self, line: int) -> int:
        """Return which step a line of the text belongs to."""
        return max(bisect_right(self.lines, line) - 1, 0)

    def forget(self) -> None:
        """Take the text out of `linecache`, when the plan leaves its cache."""
        linecache.cache.pop(self.filename, None)


_serial = itertools.count()


def _apart(fused: Fused, tensor: Callable[[int], Any], inner: Backend) -> Callable[..., Any]:
    """Return what computes a unit with rows left to the operations' own kernels.

    It takes the arguments of the unit's kernel and is written when it is first called.
    """
    steps = [*fused.numbers, *fused.steps]
    slots = dict.fromkeys(slot for s in steps for slot in (*s.reads(), *s.writes()))
    # The values themselves would keep their memory.
    described = {slot: Described(tensor(slot).dtype, tensor(slot).shape) for slot in slots}
    fuser, made = inner.fuser, None
    assert fuser is not None  # noqa: S101 - it takes what is fused

    def parts() -> list[Step | Fused]:
        way = None
        if any(step.entry.name in (*LEAVES, *JOINTS) for step in steps):
            # What takes no random numbers or joints may still be one kernel.
            way = partial(_apart, tensor=described.__getitem__, inner=inner)
        return units_of(steps, fused.outputs, described.__getitem__, fuser, way, draws=False)

    def apart(*args: Any) -> Any:
        nonlocal made
        if made is None:
            made = _written_apart(fused, parts(), lambda slot: described[slot].dtype, inner)
        return made(*args)

    fused.parts = parts
    return apart


def _written_apart(
    fused: Fused, units: Sequence[Step | Fused], dtype_of: Callable[[int], Any], inner: Backend
) -> Callable[..., Any]:
    """Write the function of `_apart` from what it calls."""
    bind_kernels([u for u in units if isinstance(u, Step)], inner, dtype_of)
    names = {place: f"r{k}" for k, place in enumerate(fused.run_time)}

    def number(slot: int, place: int) -> str:
        # Of a number the kernel takes the value alone: its shape is ().
        return names.get((slot, place), "()")

    takes = [f"p{k}" for k in range(len(fused.inputs))]
    lines = [f"def apart({', '.join([*takes, *names.values()])}):"]
    lines += [f"    {_name(s)} = {p}" for s, p in zip(fused.inputs, takes, strict=True)]
    constants: dict[str, Any] = {}
    last = {slot: k for k, unit in enumerate(units) for slot in unit.reads()}
    for k, unit in enumerate(units):
        constants[f"k{k}"] = unit.kernel
        if isinstance(unit, Fused):
            lines.append(_group_call(k, unit, number))
        else:
            lines.append(_call_of(k, unit, None, constants, number))
        dead = [s for s in last if last[s] == k and s >= 0 and s not in fused.outputs]
        if dead:
            lines.append(f"    del {', '.join(map(_name, dead))}")
    lines.append(f"    return ({''.join(_name(s) + ', ' for s in fused.outputs)})")
    exec(compile("\n".join(lines), "<parts of a fused group>", "exec"), constants)
    return constants["apart"]  # type: ignore[no-any-return]


def _name(slot: int | None) -> str:
    if slot is None:
        return "None"
    return f"v{slot}" if slot >= 0 else f"e{-1 - slot}"


def can_fail(entry: Entry) -> bool:
    """Return whether the operation may refuse its data at run time."""
    return (
        entry.klass not in ("map", "view", "reduce", "contract", "random")
        and entry.name not in CORES
        and entry.name != "cat"
        and "step" not in entry.name
    )


def is_into(kernel: Any) -> bool:
    """Return whether a kernel takes its output array as `out=` (a numpy ufunc does)."""
    return getattr(kernel, "nout", 0) == 1 and kernel.signature is None


def over_layout(x: Any, *others: Any) -> Any:
    """Return x, an array that may be written over, or None where that would decide on a layout.

    A sum of the result adds in the order in which it lies in memory, and its bits must not depend
    on what else is alive: so the result has to lie as numpy would lay a fresh one.

    Args:
        x: the array; dense, in some order of its dims.
        others: further operands, which broadcast to it.
    """
    for y in others:
        alike = y.strides == x.strides or (y.flags.c_contiguous and x.flags.c_contiguous)
        if y.ndim > 1 and not alike:
            return None
    return x


class _Donor:
    """Decides which operand a step may write over."""

    def __init__(self, plan: Plan, vals: list[Value], ext: list[Value]) -> None:
        self.vals = vals
        self.ext = ext
        self.last: dict[int, int] = {}
        self.fresh: set[int] = set(plan.donate)
        for k, unit in enumerate(plan.units):
            for slot in unit.reads():
                self.last[slot] = k
        live = set(plan.live)
        alone = [u for u in plan.units if isinstance(u, Step)]
        for step in alone:
            if is_into(step.kernel):
                if step.slot not in live:
                    self.fresh.add(step.slot)
            else:
                # It may hand on or alias what it reads, so nothing it reads is overwritten.
                self.fresh.difference_update(step.reads())
        self.blocked = {s for step in alone if not is_into(step.kernel) for s in step.reads()}
        self.blocked.update(s for u in plan.units if isinstance(u, Fused) for s in u.reads())

    def rank(self, slot: int) -> int:
        """Return how many dims a value has."""
        return len((self.vals[slot] if slot >= 0 else self.ext[-1 - slot]).shape)

    def pick(self, k: int, step: Step) -> int | None:
        out = self.vals[step.slot]
        reads = step.reads()
        if not is_into(step.kernel) or step.kernel.nin != len(reads):
            return None
        for slot in reads:
            value = self.vals[slot] if slot >= 0 else self.ext[-1 - slot]
            if (
                slot in self.fresh
                and slot not in self.blocked
                and self.last[slot] == k
                and value.dtype is out.dtype
                and axis_classes(value.shape) == axis_classes(out.shape)
            ):
                return slot
        return None


def _source(
    plan: Plan, vals: list[Value], ext: list[Value], inner: Backend
) -> tuple[str, dict[str, Any]]:
    constants: dict[str, Any] = {"READY": inner.ready, "WRAP": inner.wrap}
    donor = _Donor(plan, vals, ext)
    live = set(plan.live)
    lines = ["def plan(E, R):"]
    if ext:
        lines.append(f"    {', '.join(f'e{k}' for k in range(len(ext)))}, = E")
    for k, unit in enumerate(plan.units):
        constants[f"k{k}"] = unit.kernel
        plan.lines.append(len(lines) + 1)
        if isinstance(unit, Fused):
            lines.append(_group_call(k, unit, _number))
        else:
            lines.append(_call_of(k, unit, donor.pick(k, unit), constants, _number, donor.rank))
            if inner.ready is not None:
                for slot in unit.writes():
                    if not vals[slot].shape:
                        o = _name(slot)
                        lines.append(f"    if {o}.__class__ is not READY: {o} = WRAP({o})")
        dead = [s for s in dict.fromkeys(unit.reads()) if donor.last[s] == k and s not in live]
        dead += [s for s in unit.writes() if s not in donor.last and s not in live]
        if dead:
            lines.append(f"    del {', '.join(map(_name, dead))}")
    lines.append(f"    return ({''.join(_name(s) + ', ' for s in plan.live)})")
    return "\n".join(lines) + "\n", constants


def _number(slot: int, place: int) -> str:
    """Return how a plan reads a run-time value."""
    return f"R[{slot}][{place}]"


def _group_call(k: int, unit: Fused, number: Callable[[int, int], str]) -> str:
    """Return the call of a fused kernel."""
    args = [*map(_name, unit.inputs), *(number(s, j) for s, j in unit.run_time)]
    # Who only checks its indices has no result that anybody reads.
    outs = "".join(f"{_name(slot)}, " for slot in unit.outputs)
    return f"    {outs and f'{outs}= '}k{k}({', '.join(args)})"


def _call_of(
    k: int, step: Step, over: int | None, constants: dict[str, Any],
    number: Callable[[int, int], str], rank: Callable[[int], int] | None = None,
) -> str:  # fmt: skip
    """Return the call of one operation.

    Args:
        k: number of the step.
        step: the operation.
        over: the slot that it may write its result into, with `rank` of every slot.
        constants: what the source names.
        number: how a run-time value is read.
        rank: how many dims a value has.
    """
    args = [
        f"[{', '.join(map(_name, i))}]" if isinstance(i, tuple) else _name(i) for i in step.inputs
    ]
    for j, a in enumerate(step.static):
        constants[f"a{k}_{j}"] = a
        args.append(f"a{k}_{j}")
    args += [number(step.slot, j) for j in step.run_time()]
    if over is not None and rank is not None:
        others = [_name(s) for s in dict.fromkeys(step.reads()) if s != over and rank(s)]
        into = _name(over)
        if others and rank(over) > 1:  # in one dim there is one order
            constants["OVER"] = over_layout
            same = " and ".join(f"{into}.strides == {y}.strides" for y in others)
            into = f"{into} if {same} else OVER({', '.join([into, *others])})"
        args.append(f"out={into}")
    outs = ", ".join(map(_name, step.writes()))
    return f"    {outs}{',' if step.entry.multi else ''} = k{k}({', '.join(args)})"
