"""Plans that run again as one native call, or one CUDA graph.

A plan is a Python function over kernels. Its first run on inputs of some layout is plain; the
second is logged; from then on the launches are made by one native call, with the addresses and the
changing numbers of the run written into their words.

A number counts as constant until it differs between two runs. One that differs becomes late (see
`late`); that nothing of it was baked in is checked by a second logged run with another value.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from burn_cube import DeviceArray
from burn_cube.spi import number_word, profiles
from burn_cube_backend.engine import Engine
from burn_cube_backend.late import Late, NeedsValue, Place, Run, can_be_late, late
from burn_cube_backend.launch_log import LaunchLog, packed_blocks
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.quick import KEPT, MOST, Quick, Results, quick
from burn_std import ReplayWarning, warn_user

Function = Callable[[Sequence[Any], Run], tuple[Any, ...]]
# Layouts of the inputs of one plan that are remembered.
LAYOUTS = 64
# Logged runs of one layout, at most: numbers that change and are asked for make each one useless.
ATTEMPTS = 6
# Replays after which another log is no attempt that failed: what changes seldom may change often.
PAID = 4
ALIGN = 64


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
        runs: how often it ran since anything else was tried.
        outs: how results are made again; `own` is the memory of those that need some, by size.
        used: inputs whose address stands in a launch.
        aliases: inputs that share memory, see `_aliases`.
    """

    def __init__(
        self, engine: Engine, log: LaunchLog, inputs: Sequence[CubeTensor], outs: Sequence[Any],
        baked: dict[Place, Any], lates: tuple[Place, ...], ints: frozenset[Place],
    ) -> None:  # fmt: skip
        self.engine = engine
        self.baked = baked
        self.lates = lates
        self.ints = ints
        self.log = log
        self.lock = threading.Lock()
        self.runs = 0
        self.checked = not lates
        runtime: Any = engine.client.runtime
        self.calls = runtime.sequence(log.calls)
        self._bases: Sequence[int] = ()
        self.aliases = _aliases(inputs)
        self.outs = [self._described(x) for x in outs]
        blocks = sorted({o[1] for o in self.outs if o[0] == "block"})
        self.own: list[tuple[int, list[DeviceArray]]] = [(log.blocks[b].size, []) for b in blocks]
        self.number_of = {b: k for k, b in enumerate(blocks)}
        self._whole: dict[int, tuple[int, Results]] = {}
        self.held: DeviceArray | None = None
        inside = [k not in self.number_of and b.first >= 0 for k, b in enumerate(log.blocks)]
        places, self.scratch = packed_blocks(log.blocks, inside, ALIGN)
        self.used = sorted({p.base[1] for p in log.pointers if p.base[0] == "input"})
        row = {("input", k): n for n, k in enumerate(self.used)}
        row |= {("block", b): len(self.used) + k for b, k in self.number_of.items()}
        last = len(self.used) + len(blocks)
        words = [p.word for p in log.pointers]
        rows = [row.get(p.base, last) for p in log.pointers]
        deltas = [
            p.delta + (0 if p.base in row else places[p.base[1]]) for p in log.pointers
        ]  # fmt: skip
        self._words, self._rows = np.array(words, np.int64), np.array(rows, np.int64)
        self._deltas = np.array(deltas, np.int64)
        # A runtime without one has its own way to change addresses.
        placed = getattr(self.calls, "placed", None)
        self.builtin = None if placed is None else placed(words, rows, deltas)
        log.end()
        self.numbers = [(n.word * 8, *number_word(n.dtype), n.number.read) for n in log.numbers]

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

    def fits(self, inputs: Sequence[CubeTensor]) -> bool:
        """Return whether inputs that shared memory still do, at the same distances."""
        for a, b, distance in self.aliases:
            one, other = inputs[a].buf, inputs[b].buf
            if one is None or other is None or one.storage is not other.storage:
                return False
            if other.pointer - one.pointer != distance:
                return False
        return True

    def write(self, bases: Sequence[int], run: Run) -> None:
        """Write addresses and numbers of a run into the words."""
        words = self.calls.words
        if bases != self._bases:
            words[self._words] = np.array(bases, np.int64)[self._rows] + self._deltas
            self._bases = bases
        for at, word, converted, read in self.numbers:
            word.pack_into(words, at, converted(read(run)))

    def whole(self) -> dict[int, tuple[int, Results]]:
        """Return the memory, by number, of which one result alone is made, and its results."""
        outs = [o[1] for o in self.outs if o[0] == "block"]
        for at, (kind, block, array, bare) in enumerate(self.outs):
            if kind == "block" and outs.count(block) == 1:
                number = self.number_of[block]
                results = Results(self, self.own[number][0], array, bare)
                self._whole[number] = at, results
        return self._whole

    def memory(self, k: int) -> DeviceArray:
        """Return memory for results: that of earlier ones that are gone, or new."""
        size, kept = self.own[k]
        for array in kept:
            # references: the list, the loop, the argument of getrefcount; the array's own
            if getrefcount(array) == 3 and getrefcount(array.storage) == 2:
                return array
        made = self.engine.memory(size)
        if size <= KEPT and len(kept) < MOST:
            kept.append(made)
        return made

    def made(
        self, out: tuple[Any, ...], inputs: Sequence[CubeTensor], memory: DeviceArray | None,
        run: Run,
    ) -> CubeTensor:  # fmt: skip
        """Return a result, in memory of its own if it needs some."""
        kind, number, array, bare = out
        if memory is not None:
            buf = DeviceArray(memory.client, memory.storage, *array)
        elif kind == "input":
            buf = inputs[number].buf
        elif kind == "number":
            made = CubeTensor(None, (), (), bare.dtype)
            value = bare.value
            made.value = value.read(run) if isinstance(value, Late) else value
            return made
        else:
            return bare  # type: ignore[no-any-return]
        return bare.on(buf)  # type: ignore[no-any-return]

    def agrees(self, other: LaunchLog, bases: Sequence[int], run: Run) -> bool:
        """Return whether another logged run made the launches that this one would make."""
        calls = [(c.function, c.parts, c.grain) for c in self.log.calls]
        if calls != [(c.function, c.parts, c.grain) for c in other.calls]:
            return False
        if self.log.pointers != other.pointers:
            return False
        self.write(bases, run)
        mine = self.calls.words.copy()
        theirs = np.frombuffer(b"".join(c.words + c.inner for c in other.calls), np.int64).copy()
        for words in (mine, theirs):
            words[self._words] = 0
            words[self.calls.inner_words] = 0
        return bool((mine == theirs).all())

    def forget(self) -> None:
        """Let go of memory for results to come."""
        for _, kept in self.own:
            kept.clear()
        for _, results in self._whole.values():
            results.kept.clear()


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
    """What is known of a plan for inputs of one layout: numbers of the last run, replay.

    The function that runs the replay stands here, not on what it refers to.
    """

    __slots__ = ("attempts", "numbers", "quick", "replay", "why")

    def __init__(self, numbers: tuple[Any, ...]) -> None:
        self.numbers = numbers
        self.attempts = 0
        self.why = ""
        self.replay: Replay | None = None
        self.quick: Quick = _nothing


def _nothing(inputs: Sequence[Any], run: Run) -> None:
    """Do not serve."""


class Replayed:
    """A plan's function that becomes a native call for inputs it has seen.

    Args:
        engine: the device.
        function: `(payloads of the inputs, run-time values by slot) -> payloads`.
        scalars: places of run-time values that are numbers.
    """

    def __init__(self, engine: Engine, function: Function, scalars: Sequence[Place]) -> None:
        self.engine = engine
        self.function = function
        self.scalars = tuple(scalars)
        self._extents: list[Place] | None = None
        self._layouts: dict[Any, Layout] = {}
        self._late: set[Place] = set()
        self._asked: set[Place] = set()
        self._said = False
        self._quick: Quick | None = None
        engine.replayed.add(self)

    def __call__(self, inputs: Sequence[Any], run: Run) -> tuple[Any, ...]:
        """Run the plan."""
        quick = self._quick
        if quick is not None:
            outs = quick(inputs, run)  # what served the last run may serve this one
            if outs is not None:
                return outs
        return self._found(inputs, run)

    def _found(self, inputs: Sequence[Any], run: Run) -> tuple[Any, ...]:
        """Run the plan by what is known of inputs of this layout."""
        engine = self.engine
        if profiles() or engine.log is not None:
            return self.function(inputs, run)
        key = self._key(inputs, run)
        if key is None:
            return self.function(inputs, run)
        numbers = tuple([exact(run[s][k]) for s, k in self.scalars])
        layout = self._layouts.get(key)
        if layout is None:
            if len(self._layouts) >= LAYOUTS:
                del self._layouts[next(iter(self._layouts))]
            self._layouts[key] = Layout(numbers)
            return self.function(inputs, run)
        replay = layout.replay
        if replay is None:
            pass
        elif not replay.fits(inputs):
            layout.why = "alias"
        elif not self._same(replay, numbers):
            layout.why = "numbers"
        else:
            if replay.checked or numbers == layout.numbers:
                outs = layout.quick(inputs, run)
                if outs is not None:
                    self._quick = layout.quick if replay.checked else None
                    return outs
            if replay.checked:  # another thread is in it
                return self.function(inputs, run)
        return self._logged(layout, inputs, run, numbers, key)

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
        # Code may ask for the class of a late number.
        return all(
            baked[p] == n if p in baked else (n.__class__ is tuple) is (p in ints)
            for p, n in zip(self.scalars, numbers, strict=True)
        )

    def _logged(
        self, layout: Layout, inputs: Sequence[CubeTensor], run: Run, numbers: tuple[Any, ...],
        key: tuple[tuple[Any, ...], tuple[Any, ...]],
    ) -> tuple[Any, ...]:  # fmt: skip
        """Run the plan and note what it does."""
        engine = self.engine
        if layout.replay is not None and layout.replay.runs >= PAID:
            layout.attempts = layout.replay.runs = 0
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
            lates = tuple(p for p in self.scalars if p in self._late)
            marked = dict(run)
            for slot, k in lates:
                values = list(marked[slot])
                values[k] = late(values[k], (slot, k))
                marked[slot] = tuple(values)
            log = LaunchLog(inputs)
            engine.client.log = log
            try:
                outs = self.function(inputs, marked)
            finally:
                engine.client.log = None
        except NeedsValue as asked:
            self._late.discard(asked.place)
            self._asked.add(asked.place)
            return self.function(inputs, run)
        finally:
            engine.log_lock.release()
        self._keep(layout, log, inputs, outs, run, numbers, lates, key)
        return tuple([_plain(x) for x in outs])

    def _given_up(self, layout: Layout) -> None:
        """Say once that no run was like the one before; what cannot be logged is no surprise."""
        why, layout.why = layout.why, ""
        if self._said or not why:
            return
        self._said = True
        what = {
            "alias": (
                "inputs that share memory in one run and not in the next",
                "Pass tensors of their own memory: x * 1 makes one.",
            ),
            "numbers": (
                "numbers that change and decide about its kernels",
                "Pass them as tensors, or keep them the same.",
            ),
        }[why]
        warn_user(ReplayWarning(self.function.__code__.co_filename.strip("<>"), *what))

    def _keep(
        self, layout: Layout, log: LaunchLog, inputs: Sequence[CubeTensor], outs: Sequence[Any],
        run: Run, numbers: tuple[Any, ...], lates: tuple[Place, ...],
        key: tuple[tuple[Any, ...], tuple[Any, ...]],
    ) -> None:  # fmt: skip
        old = layout.replay
        layout.replay = None
        if log.broken is None:
            known = dict(zip(self.scalars, numbers, strict=True))
            ints = frozenset(p for p in lates if known[p].__class__ is tuple)
            baked = {p: n for p, n in known.items() if p not in lates}
            made = Replay(self.engine, log, inputs, outs, baked, lates, ints)
            if lates and old is not None and (old.lates, old.ints) == (lates, ints):
                zeros = [0] * (len(old.used) + len(old.own) + 1)
                made.checked = old.agrees(log, zeros, run)
                if not made.checked:
                    self._asked.update(lates)
                    self._late.difference_update(lates)
            if made.log.broken is None:
                assert self._extents is not None  # noqa: S101 - `_key` set it
                extents = list(zip(self._extents, key[1], strict=True))
                layout.quick = quick(made, key[0], extents, exact)
                layout.replay = made
                return
        layout.attempts = ATTEMPTS

    def forget(self) -> None:
        """Let go of memory that is kept for results to come."""
        for layout in list(self._layouts.values()):  # other threads may add some
            if layout.replay is not None:
                layout.replay.forget()


def _plain(x: Any) -> Any:
    """Return a payload without late numbers."""
    if x.__class__ is CubeTensor and isinstance(x.value, Late):
        made = CubeTensor(x.buf, x.shape, x.strides, x.dtype, x.offset)
        made.value = x.value.plain
        return made
    return x
