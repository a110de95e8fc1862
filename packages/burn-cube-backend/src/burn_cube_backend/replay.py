"""Plans that run again as one native call, or one CUDA graph.

A plan is a Python function over kernels. Its first run on inputs of some layout is plain; the
second is logged; from then on the launches are made by one native call, with the addresses and the
changing numbers of the run written into their words.

A number counts as constant until it differs between two runs. One that differs becomes late (see
`late`); that nothing of it was baked in is checked by a second logged run with another value.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from burn_backend import Free, OverwrittenError
from burn_cube import DeviceArray
from burn_cube.spi import number_word, profiles
from burn_cube_backend.engine import Engine
from burn_cube_backend.late import (
    NEVER_LATE,
    Late,
    NeedsValue,
    Place,
    Run,
    can_be_late,
    late,
    plain,
)
from burn_cube_backend.launch_log import LaunchLog
from burn_cube_backend.launch_order import order_of
from burn_cube_backend.memory_plan import Arrangement, Span, arranged
from burn_cube_backend.packs import Packing, packings_of
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.quant import flattened
from burn_cube_backend.quick import Quick, Results, quick
from burn_cube_backend.rematerialise import rematerialised, without
from burn_std import OF_A_LOCAL, DeviceLostError, ReplayWarning, warn_user

Function = Callable[[Sequence[Any], Run], tuple[Any, ...]]
# Layouts of the inputs of one plan that are remembered.
LAYOUTS = 64
# Logged runs of one layout, at most: numbers that change and are asked for make each one useless.
ATTEMPTS = 6
# Replays after which another log is no attempt that failed: what changes seldom may change often.
PAID = 4
# Memory of results is taken over from results that nobody holds any more, up to so many bytes of
# one replay; what is larger is worth a request to the pool.
KEPT = 1 << 20
# So many results of one output are kept for that.
MOST = 3
# Bytes of results of one replay from which on they take the memory of inputs that die: to find out
# who holds what costs more than smaller ones are worth.
WORTH_OVERWRITING = 1 << 16
# Where launches run side by side, memory rests for so many launches before it serves again, if all
# of it is small or grows by little.
REST, SMALL, ROOM = 4, 16 << 20, 1.05


def exact(value: Any) -> Any:
    """Return what is equal only for numbers with the same bits and class.

    Example:
        >>> exact(0.0) == exact(-0.0), exact(1) == exact(1.0), exact(0.5) == exact(0.5)
        (False, False, True)
    """
    if value.__class__ is float:
        return value if value and value == value else repr(value)
    return value.__class__, value


class Replay:
    """The launches of one plan for inputs of one layout.

    Attributes:
        baked: numbers that are part of the launches, by place; a run with others needs another.
        lates: places of the numbers that are not; `ints` those where that was no float.
        checked: no late number was baked in.
        objects: the numbers that are part of the launches, as the run had them.
        runs: how often it ran since anything else was tried.
        turn: empty while a thread makes the launches.
        branches: the device runs launches side by side that need nothing of each other.
        scratch: bytes for what is made and dies inside.
        live: the most bytes that live at once beside the inputs.
        scales: of quantised inputs, by number: where their scales are among the plain tensors.
        outs: how results are made again; `own` is the memory of those that need some, by size, with
            arrays that may serve again, or None where none is kept.
        quantized: results of several of them: where the scales are, the scheme, and the shape.
        over: which input's memory each result may take, by the result's place in `own`.
        alike: which results are in all but their elements the tensors whose memory they take.
        guard: what is entered around the launches, if anything.
        used: inputs whose address stands in a launch.
        aliases: inputs that share memory, see `_aliases`.
        packings: launches that pack inputs.
        is_twin: those are left out; what they make comes with the inputs.
    """

    def __init__(
        self, engine: Engine, log: LaunchLog, inputs: Sequence[Any], outs: Sequence[Any],
        baked: dict[Place, Any], lates: tuple[Place, ...], ints: frozenset[Place],
        free: Free | None = None, rematerialise: bool = False,
    ) -> None:  # fmt: skip
        self.engine = engine
        self.baked = baked
        self.lates = lates
        self.ints = ints
        self.log = self.noted = log
        self.turn: list[None] = [None]
        self.branches = "graphs" in engine.client.properties.capabilities
        self.runs = 0
        self._whole: dict[int, tuple[int, Results]] = {}
        self.objects: dict[Place, Any] = {}
        self.held: DeviceArray | None = None
        self.checked = not lates
        flat, self.scales = flattened(inputs)
        self.aliases = _aliases(flat)
        made, scales = flattened(outs)
        self.quantized = {k: (at, outs[k].dtype, outs[k].shape) for k, at in scales.items()}
        self.outs = [self._described(x) for x in made]
        own = sorted({o[1] for o in self.outs if o[0] == "block"})
        self.packings: list[Packing] = []
        self.is_twin = False
        if log.broken is None:
            self.packings = packings_of(log, own)
        if rematerialise and log.broken is None:
            self.log = rematerialised(log, own)
            if self.log is not log:
                self.packings = []
            log = self.log
        self.number_of = {b: k for k, b in enumerate(own)}
        self._given, self._heirs = self._spare(inputs, free), self._heirs_of(free)
        self._set_up()
        self.noted.end()

    def _arranged(self) -> Arrangement:
        """Return where memory lies."""
        log = self.log
        given = {k: Span(size, 0, log.last.get(k, -1)) for k, (size, _) in self._given.items()}
        fixed = log.blocks, [*self.number_of], log.wishes
        end = len(log.calls)
        heirs = self._heirs
        plan = arranged(*fixed, given, heirs, end)
        if sum(log.blocks[b].size for b in plan.over) < WORTH_OVERWRITING:
            given, heirs = {}, {}
            plan = arranged(*fixed, given, heirs, end)
        if not self.branches:
            return plan
        # A place that is used again at once makes who writes there wait for who read it.
        rested = [b.rested(REST, end) for b in log.blocks]
        apart = arranged(rested, *fixed[1:], given, heirs, end)
        if apart.over == plan.over and apart.size <= max(plan.size * ROOM, SMALL):
            plan = apart._replace(live=plan.live)
        return plan

    def twin(self) -> Replay:
        """Return the same with packed forms that are kept in the place of launches that pack."""
        made = copy.copy(self)
        made.is_twin = True
        made.log = without(self.log, self.packings)
        made.runs, made.held, made._whole = 0, None, {}
        # Who runs it asked whether this one writes over inputs.
        donors = {*self.over.values()}
        made._given = {k: spare for k, spare in self._given.items() if k in donors}
        made._heirs = {b: k for b, k in self._heirs.items() if k in donors}
        made.turn = [None]
        made._set_up()
        return made

    def _set_up(self) -> None:
        """Make the list of launches, and find out where everything lies."""
        log, number_of = self.log, self.number_of
        plan = self._arranged()
        # Another result may be another window on the same block.
        self.alike = [
            o[0] == "block" and o[1] in plan.over and _alike(self._given[plan.over[o[1]]][1], o)
            for o in self.outs
        ]
        runtime: Any = self.engine.client.runtime
        order = (order_of(log, plan),) if self.branches else ()
        self.calls = runtime.sequence(log.calls, *order)
        # Native code wants it to be entered, or other threads touch the queue.
        guards = [*log.guards, getattr(self.calls, "guard", None)]
        (self.guard,) = [g for g in guards if g is not None] or [None]
        self.scratch, self.live = plan.size, plan.live
        self.over = {number_of[b]: k for b, k in plan.over.items()}
        self.own: list[tuple[int, list[DeviceArray] | None]] = []
        left = KEPT
        for b, k in number_of.items():
            size = log.blocks[b].size
            again = k not in self.over and size <= left
            self.own.append((size, [] if again else None))
            left -= size if again else 0
        self._placed(plan)
        self.numbers = [(n.word * 8, *number_word(n.dtype), n.number.read) for n in log.numbers]

    def _placed(self, plan: Arrangement) -> None:
        """Find out what to write where: the base that each address counts from, and how far."""
        log = self.log
        self.used = sorted({p.base[1] for p in log.pointers if p.base[0] == "input"})
        row = {("input", k): n for n, k in enumerate(self.used)}
        row |= {("block", b): len(self.used) + k for b, k in self.number_of.items()}
        last = len(row)
        if self.is_twin:
            forms = sum(len(p.blocks) for p in self.packings)
            row |= {("packed", k): last + k for k in range(forms)}
            last = len(row)

        def place(base: tuple[str, int]) -> tuple[int, int]:
            if base[0] != "block":
                return row[base], 0
            host, at = plan.places[base[1]]
            return (last if host < 0 else row["block", host]), at

        found = [place(p.base) for p in log.pointers]
        words = [p.word for p in log.pointers]
        rows = [r for r, _ in found]
        deltas = [p.delta + at for p, (_, at) in zip(log.pointers, found, strict=True)]
        self._words, self._rows = np.array(words, np.int64), np.array(rows, np.int64)
        self._deltas = np.array(deltas, np.int64)
        # A runtime without one has its own way to change addresses.
        placed = getattr(self.calls, "placed", None)
        self.builtin = None if placed is None else placed(words, rows, deltas)

    def _spare(self, inputs: Sequence[Any], free: Free | None) -> dict[int, tuple[int, Any]]:
        """Return the inputs whose memory a result may take: how much, and how they look."""
        if free is None:
            return {}
        # What a result succeeds will be free, even where this run is only written down.
        heirs = set(free.heirs.values())
        unread = free(range(len(inputs)))
        shared = {*self.scales, *(k for pair in self.aliases for k in pair[:2])}
        shared.update(o[1] for o in self.outs if o[0] == "input")
        return {
            k: (x.buf.storage.bytes, _look(x))
            for k, x in enumerate(inputs)
            # What was a number got its memory while it was written down; another run's has none.
            if k not in shared and x.buf is not None and x.value is None and x.buf.offset == 0
            if k in heirs or unread[k]
        }

    def _heirs_of(self, free: Free | None) -> dict[int, int]:
        """Return the input that a result succeeds, by the result's block."""
        pairs = () if free is None else free.heirs.items()
        return {self.outs[o][1]: k for o, k in pairs if self.outs[o][0] == "block"}

    def _described(self, x: Any) -> tuple[Any, ...]:
        """Return how an output is made again."""
        if x.__class__ is not CubeTensor:
            self.log.broken = "a result is no plain tensor"
            return ("none",)
        bare = x.on(None)  # what is kept must not keep the memory of this run
        if x.buf is None:
            bare.value = x.value
            return "number", None, None, bare
        base = self.log.base_of(x.buf)
        if base is None:
            return "constant", None, None, x
        array = (x.buf.shape, x.buf.dtype, x.buf.strides, x.buf.offset)
        return base[0], base[1], array, bare

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Return whether inputs that shared memory still do, at the same distances."""
        flat = flattened(inputs)[0] if self.aliases else ()
        for a, b, distance in self.aliases:
            one, other = flat[a].buf, flat[b].buf
            if one is None or other is None or one.storage is not other.storage:
                return False
            if other.pointer - one.pointer != distance:
                return False
        return True

    def write(self, arrays: Sequence[DeviceArray], run: Run) -> None:
        """Write places of memory and numbers of a run into the words."""
        self.calls.locate(self._words, self._rows, self._deltas, arrays)
        words = self.calls.words
        for at, word, converted, read in self.numbers:
            word.pack_into(words, at, converted(read(run)))

    def whole(self) -> dict[int, tuple[int, Results]]:
        """Return the memory, by number, of which one result alone is made, and its results."""
        outs = [o[1] for o in self.outs if o[0] == "block"]
        for at, (kind, block, array, bare) in enumerate(self.outs):
            if kind == "block" and outs.count(block) == 1:
                number = self.number_of[block]
                size, kept = self.own[number]
                most = 0 if kept is None else MOST
                self._whole[number] = at, Results(self.engine, size, array, bare, most)
        return self._whole

    def memory(self, k: int) -> DeviceArray:
        """Return memory for a result: that of an earlier one that is gone, or new."""
        size, kept = self.own[k]
        if kept is None:
            return self.engine.memory(size)
        for array in kept:
            # references: the list and the loop; the array's own, and the argument
            if getrefcount(array) == 1 + OF_A_LOCAL and getrefcount(array.storage) == 2:
                return array
        made = self.engine.memory(size)
        if len(kept) < MOST:
            kept.append(made)
        return made

    def made(
        self, out: tuple[Any, ...], given: DeviceArray | None, memory: DeviceArray | None, run: Run
    ) -> CubeTensor:
        """Return a result, in memory of its own if it needs some, or in that of an input."""
        kind, _, array, bare = out
        if memory is not None:
            given = DeviceArray(memory.client, memory.storage, *array)
        if given is not None:
            return bare.on(given)  # type: ignore[no-any-return]
        if kind == "number":
            made = CubeTensor(None, (), (), bare.dtype)
            value = bare.value
            made.value = value.read(run) if isinstance(value, Late) else value
            return made
        return bare  # type: ignore[no-any-return]

    def agrees(self, other: LaunchLog, run: Run) -> bool:
        """Return whether another logged run made the launches that this one would make."""
        noted = self.noted
        calls = [(c.function, c.parts, c.grain) for c in noted.calls]
        if calls != [(c.function, c.parts, c.grain) for c in other.calls]:
            return False
        if noted.pointers != other.pointers:
            return False
        both: list[Any] = [
            np.frombuffer(bytearray(b"".join(c.words + c.inner for c in log.calls)), np.int64)
            for log in (noted, other)
        ]
        mine, theirs = both
        for n in noted.numbers:
            word, converted = number_word(n.dtype)
            word.pack_into(mine, n.word * 8, converted(n.number.read(run)))
        at = np.array([p.word for p in noted.pointers], np.int64)
        for words in both:
            self.calls.blank(words, at)
        return bool((mine == theirs).all())

    def forget(self) -> None:
        """Let go of memory for results to come."""
        for _, kept in self.own:
            if kept is not None:
                kept.clear()
        for _, results in self._whole.values():
            results.kept.clear()


def overwritten(cause: Exception, inputs: tuple[int, ...]) -> Exception:
    """Return the error of a run that failed when inputs may have been written over."""
    if isinstance(cause, DeviceLostError) or not inputs:
        return cause
    error = OverwrittenError(
        "flush", "the launches of a plan are made", got=f"{type(cause).__name__}: {cause}"
    )
    error.inputs = inputs
    return error


def _look(x: CubeTensor) -> tuple[Any, ...]:
    """Return what a tensor is but for its memory, and how that is seen."""
    buf = x.buf
    assert buf is not None  # noqa: S101 - a number has no memory to give
    window = (x.__class__, x.shape, x.strides, x.offset, x.dtype)
    return window, (buf.shape, buf.dtype, buf.strides, buf.offset)


def _alike(look: tuple[Any, ...], out: tuple[Any, ...]) -> bool:
    """Return whether an input is what a result in its memory would be."""
    array, bare = out[2:]
    window = (CubeTensor, bare.shape, bare.strides, bare.offset, bare.dtype)
    return look == (window, array)


def _aliases(inputs: Sequence[CubeTensor]) -> list[tuple[int, int, int]]:
    """Return pairs of inputs that share memory, and the bytes between them."""
    first: dict[int, int] = {}
    pairs = []
    for k, x in enumerate(inputs):
        if x.buf is not None:
            other = first.setdefault(id(x.buf.storage), k)
            if other != k:
                start = inputs[other].buf
                assert start is not None  # noqa: S101 - it is in `first`
                pairs.append((other, k, x.buf.pointer - start.pointer))
    return pairs


class Layout:
    """What is known of a plan for inputs of one layout.

    Attributes:
        numbers: of the last run.
        shapes: of the inputs.
        attempts: logged runs that were of no use.
        why: what differed.
        replay: the launches; `twin` those that do not pack.
        quick: what is tried first; `whole` makes all launches, `packed` those of the twin.
    """

    __slots__ = (
        "attempts", "numbers", "packed", "quick", "replay", "shapes", "twin", "whole", "why",
    )  # fmt: skip

    def __init__(self, numbers: tuple[Any, ...], shapes: list[Any]) -> None:
        self.numbers = numbers
        self.shapes = shapes
        self.attempts = 0
        self.why = ""
        self.replay: Replay | None = None
        self.quick: Quick = _nothing
        self.whole: Quick = _nothing
        self.packed: Quick = _nothing
        self.twin: Replay | None = None

    def with_packs(
        self, replay: Replay, key: Any, extents: Sequence[tuple[Place, Any]],
        inputs: Sequence[Any], run: Run, free: Free | None,
    ) -> tuple[Any, ...] | None:  # fmt: skip
        """Run with packed forms of inputs that were packed before as they are now.

        Args:
            replay: that of this layout.
            key: the layouts of the inputs; `extents` the run-time values that are no numbers.
            extents: by place.
            inputs: payloads.
            run: run-time values by slot.
            free: says of an input whether nobody will read it any more.
        """
        engine = replay.engine
        twin = self.twin
        if twin is None:
            twin = replay.twin()
            self.packed = quick(twin, key, extents, exact, overwritten)
            self.twin = twin
        flat, _ = flattened(inputs)
        for p in replay.packings:
            x = flat[p.owner]
            shape, strides, dtype, offset = p.window
            engine.packed(x, CubeTensor(x.buf, shape, strides, dtype, offset), p.make, *p.args)
        outs = self.packed(inputs, run, free)
        if outs is not None:
            self.quick = self.packed
        return outs


def _nothing(inputs: Sequence[Any], run: Run, free: Free | None = None) -> None:
    """Do not serve."""


class Replayed:
    """A plan's function that becomes a native call for inputs it has seen.

    Args:
        engine: the device.
        function: `(payloads of the inputs, run-time values by slot) -> payloads`.
        scalars: places of run-time values that are numbers.
        whole: the function is a whole step, whose other run-time values stay as they are.
        rematerialise: compute cheap values again where that makes the peak of memory smaller.

    Attributes:
        overwrites: it may write over inputs that `free` gives it.
        quick: what served the last run and may serve the next, without anything to write over;
            None where it does not.
    """

    overwrites = False

    def __init__(
        self, engine: Engine, function: Function, scalars: Sequence[Place], *,
        whole: bool = False, rematerialise: bool = False,
    ) -> None:  # fmt: skip
        self.engine = engine
        self.function = function
        self.scalars = tuple(scalars)
        self.whole = whole
        self.rematerialise = rematerialise
        self._extents: list[Place] | None = [] if whole else None
        self._layouts: dict[Any, Layout] = {}
        self._late: set[Place] = set()
        self._asked: set[Place] = set()
        self._said = False
        self.quick: Quick | None = None
        self._last: Quick | None = None
        engine.replayed.add(self)

    def __call__(
        self, inputs: Sequence[Any], run: Run, free: Free | None = None
    ) -> tuple[Any, ...]:
        """Run the plan.

        Args:
            inputs: payloads.
            run: run-time values by slot.
            free: says of an input whether nobody will read it any more.
        """
        last = self._last
        if last is not None:
            outs = last(inputs, run, free)  # what served the last run may serve this one
            if outs is not None:
                return outs
        return self._found(inputs, run, free)

    def _found(self, inputs: Sequence[Any], run: Run, free: Free | None) -> tuple[Any, ...]:
        """Run the plan by what is known of inputs of this layout."""
        engine = self.engine
        log = engine.log
        if profiles() or log is not None:
            if log is not None and not self.whole:
                log.within.append(self)
            return self.function(inputs, run)
        key = self._key(inputs, run)
        if key is None:
            return self.function(inputs, run)
        numbers = tuple([exact(run[s][k]) for s, k in self.scalars])
        layout = self._layouts.get(key)
        if layout is None:
            shapes = [x.shape for x in inputs]
            if len(self._layouts) >= LAYOUTS:
                # Other shapes are another matter: a program cannot help them.
                known = list(self._layouts.items())
                if all(
                    k[1] == key[1] and one.replay is None and one.shapes == shapes
                    for k, one in known
                ):
                    self._say("parts")
                del self._layouts[next(iter(self._layouts))]
            layout = self._layouts[key] = Layout(numbers, shapes)
            if not self.whole:
                return self.function(inputs, run)
            # What changes from step to step is known beforehand.
            places = (p for p in self.scalars if p not in self._asked)
            self._late.update(p for p in places if can_be_late(run[p[0]][p[1]]))
        replay = layout.replay
        if replay is None:
            pass
        elif not replay.fits(inputs):
            layout.why = "alias"
        elif not self._same(replay, numbers):
            layout.why = "numbers"
        else:
            if replay.checked or numbers == layout.numbers:
                outs = layout.quick(inputs, run, free)
                if outs is None and layout.quick is not layout.whole:
                    layout.quick = layout.whole
                    outs = layout.quick(inputs, run, free)
                if outs is None and replay.packings and replay.checked:
                    extents = [*zip(self._extents or (), key[1], strict=True)]
                    outs = layout.with_packs(replay, key[0], extents, inputs, run, free)
                if outs is not None:
                    self._last = layout.quick if replay.checked else None
                    self.quick = None if replay.over else self._last
                    return outs
            if replay.checked:  # another thread is in it
                return self.function(inputs, run)
        return self._logged(layout, inputs, run, numbers, key, free)

    def _key(self, inputs: Sequence[Any], run: Run) -> Any:
        """Return the layout of the inputs and all extents; None for inputs that are no tensors."""
        places = self._extents
        if places is None:
            scalars = set(self.scalars)
            found = [(s, k) for s, values in run.items() for k in range(len(values))]
            places = self._extents = [p for p in found if p not in scalars]
        try:
            layouts = [x.layout or self.engine.layout_of(x) for x in inputs]
        except AttributeError:
            return None
        return tuple(layouts), tuple([run[s][k] for s, k in places])

    def _same(self, replay: Replay, numbers: tuple[Any, ...]) -> bool:
        baked, ints = replay.baked, replay.ints
        # Code may ask for the class of a late number; an open bound (None) or a bool is never late.
        return all(
            baked[p] == n if p in baked
            else n.__class__ is tuple and n[0] not in NEVER_LATE if p in ints
            else n.__class__ is not tuple
            for p, n in zip(self.scalars, numbers, strict=True)
        )  # fmt: skip

    def _logged(
        self, layout: Layout, inputs: Sequence[Any], run: Run, numbers: tuple[Any, ...],
        key: tuple[tuple[Any, ...], tuple[Any, ...]], free: Free | None,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Run the plan and note what it does."""
        engine = self.engine
        if any(r is not None and r.runs >= PAID for r in (layout.replay, layout.twin)):
            layout.attempts = 0
        if layout.attempts >= ATTEMPTS:
            self._given_up(layout)
            return self.function(inputs, run)
        if not engine.log_lock.acquire(False):
            return self.function(inputs, run)
        layout.attempts += 1
        try:
            for p, old, new in zip(self.scalars, layout.numbers, numbers, strict=True):
                if old != new and p not in self._asked and can_be_late(run[p[0]][p[1]]):
                    self._late.add(p)
            layout.numbers = numbers
            # In this run it may be an open bound: then that is baked in.
            lates = tuple(
                p for p in self.scalars if p in self._late and can_be_late(run[p[0]][p[1]])
            )
            marked = dict(run)
            for slot, k in lates:
                values = list(marked[slot])
                values[k] = late(values[k], (slot, k))
                marked[slot] = tuple(values)
            log = LaunchLog(flattened(inputs)[0])
            engine.end_scratch()
            engine.client.log = log
            try:
                outs = self.function(inputs, marked)
            finally:
                engine.client.log = None
            # Before another thread notes a run: it goes on where this one ends.
            self._keep(layout, log, inputs, outs, run, numbers, lates, key, free)
        except NeedsValue as asked:
            self._late.discard(asked.place)
            self._asked.add(asked.place)
            return self.function(inputs, run)
        finally:
            engine.log_lock.release()
        return tuple([plain(x) for x in outs])

    def _given_up(self, layout: Layout) -> None:
        """Say once that no run was like the one before; what cannot be logged is no surprise."""
        why, layout.why = layout.why, ""
        if why:
            self._say(why)

    def _say(self, why: str) -> None:
        if self._said:
            return
        self._said = True
        what = {
            "alias": (
                "inputs that share memory in one run and not in the next",
                "Pass tensors of their own memory: x * 1 makes one.",
            ),
            "parts": (
                "parts of tensors that begin elsewhere in every run",
                "Pass tensors of their own memory: x * 1 makes one.",
            ),
            "numbers": (
                "numbers that change and decide about its kernels",
                "Pass them as tensors, or keep them the same.",
            ),
        }[why]
        name = "a captured step" if self.whole else self.function.__code__.co_filename.strip("<>")
        warn_user(ReplayWarning(name, *what))

    def _keep(
        self, layout: Layout, log: LaunchLog, inputs: Sequence[Any], outs: Sequence[Any],
        run: Run, numbers: tuple[Any, ...], lates: tuple[Place, ...],
        key: tuple[tuple[Any, ...], tuple[Any, ...]], free: Free | None,
    ) -> None:  # fmt: skip
        old = layout.replay
        layout.replay = self.quick = self._last = None
        layout.quick = layout.whole = _nothing
        layout.packed, layout.twin = _nothing, None
        if log.broken is None:
            known = dict(zip(self.scalars, numbers, strict=True))
            ints = frozenset(p for p in lates if known[p].__class__ is tuple)
            baked = {p: n for p, n in known.items() if p not in lates}
            made = Replay(
                self.engine, log, inputs, outs, baked, lates, ints, free, self.rematerialise
            )
            if lates and old is not None and (old.lates, old.ints) == (lates, ints):
                made.checked = old.agrees(log, run)
                if not made.checked:
                    self._asked.update(lates)
                    self._late.difference_update(lates)
            if made.log.broken is None:
                assert self._extents is not None  # noqa: S101 - `_key` set it
                extents = list(zip(self._extents, key[1], strict=True))
                made.objects = {(s, k): run[s][k] for s, k in baked}
                layout.quick = layout.whole = quick(made, key[0], extents, exact, overwritten)
                layout.replay = made
                for part in log.within:
                    part.forget()
                if self.whole:
                    # From now on a step needs one piece of memory in place of all those blocks.
                    self.engine.client.memory_cleanup()
                self.overwrites = self.overwrites or bool(made.over)
                return
        layout.attempts = ATTEMPTS

    def forget(self) -> None:
        """Let go of memory that is kept for results to come."""
        for layout in list(self._layouts.values()):  # other threads may add some
            for replay in (layout.replay, layout.twin):
                if replay is not None:
                    replay.forget()
