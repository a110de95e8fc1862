"""Which steps of a program become one kernel: elementwise operations over one shape.

Shapes are not known here, only the class of each axis (0, 1, many). That is enough: where an
elementwise result and its input have many elements along an axis, they have equally many; so
results and inputs of equal rank and classes have one shape, whatever it is, and operations over
one shape go together as long as nothing outside the group stands between them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn_backend import Fuser, Group, Part
from burn_fusion.segment import axis_classes

if TYPE_CHECKING:
    from burn_fusion.plan import Step

# Arrays and operations of one kernel, at most.
MOST_ARRAYS, MOST_PARTS = 24, 160

TensorOf = Callable[[int], Any]


class Fused:
    """Steps that one kernel computes.

    Attributes:
        steps: the steps, in order of the program.
        numbers: `full` steps of rank 0 whose values the kernel takes as numbers.
        inputs: slots from outside, in the order in which the kernel takes them.
        outputs: slots of the results that somebody else reads.
        run_time: slot and position of the numbers that it takes.
        kernel: the backend's function.
    """

    __slots__ = ("inputs", "kernel", "numbers", "outputs", "run_time", "steps")

    def __init__(self, steps: Sequence[Step], numbers: Sequence[Step]) -> None:
        self.steps = steps
        self.numbers = numbers
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.run_time: list[tuple[int, int]] = []
        self.kernel: Any = None

    @property
    def slot(self) -> int:
        """The first slot that it fills."""
        return self.steps[0].slot

    def reads(self) -> list[int]:
        """Return the slots that it reads."""
        return self.inputs

    def writes(self) -> list[int]:
        """Return the slots that it fills for others."""
        return self.outputs


def units_of(
    steps: Sequence[Step], live: Sequence[int], tensor: TensorOf, fuser: Fuser
) -> list[Step | Fused]:
    """Return the steps in an order in which they can run, some of them as one.

    Args:
        steps: a program.
        live: slots whose values are wanted.
        tensor: slot to what has its dtype and shape.
        fuser: the backend's side.
    """
    steps = _wanted(steps, live)
    grouping = _Grouping(steps, tensor, fuser)
    for k in range(len(steps)):
        grouping.place(k)
    return grouping.units(live)


def _wanted(steps: Sequence[Step], live: Sequence[int]) -> list[Step]:
    """Return the steps without those that compute what nobody reads."""
    read = set(live)
    kept = []
    for step in reversed(steps):
        outs = range(step.slot, step.slot + step.outputs)
        if step.can_fail or not read.isdisjoint(outs):
            read.update(step.reads())
            kept.append(step)
    return kept[::-1]


class _Grouping:
    """Groups as they grow; group k begins as step k, `before` and `after` are sets of bits."""

    def __init__(self, steps: Sequence[Step], tensor: TensorOf, fuser: Fuser) -> None:
        self.steps = steps
        self.tensor = tensor
        self.fuser = fuser
        self.maker = {s: k for k, st in enumerate(steps) for s in st.writes()}
        self.group = list(range(len(steps)))
        self.members = [[k] for k in range(len(steps))]
        self.before = [0] * len(steps)
        self.after = [0] * len(steps)
        self.arrays: list[set[int]] = [set() for _ in steps]
        self.shape: list[Any] = [None] * len(steps)
        self.readers: dict[int, set[int]] = {}
        # A tensor of its own shape until an operation shows that two are of one.
        self.one: dict[int, int] = {}

    def root(self, slot: int) -> int:
        """Return the slot that stands for all of one shape."""
        while (up := self.one.get(slot, slot)) != slot:
            slot = up
        return slot

    def is_number(self, slot: int) -> bool:
        """Return whether a slot is a number that kernels take as such."""
        k = self.maker.get(slot)
        return k is not None and self.steps[k].is_number

    def place(self, k: int) -> None:
        """Put step k into a group of those before, if one takes it."""
        step = self.steps[k]
        sources = {self.group[self.maker[s]] for s in step.reads() if s in self.maker}
        for g in sources:
            self.before[k] |= self.before[g] | 1 << g
        for g in _bits(self.before[k]):
            self.after[g] |= 1 << k
        if not self._fits(step):
            return
        classes = axis_classes(self.tensor(step.slot).shape)
        for s in step.reads():
            if axis_classes(self.tensor(s).shape) == classes and not self.is_number(s):
                self.one[self.root(s)] = self.root(step.slot)
        shape = self.shape[k] = self.root(step.slot)
        self.arrays[k] = {s for s in [*step.reads(), step.slot] if not self.is_number(s)}
        near = [g for s in step.reads() for g in self.readers.get(s, ())]
        for g in dict.fromkeys([*sorted(sources), *sorted(near)]):
            other = self.group[g]
            if other != self.group[k] and self._same_shape(other, shape):
                self._merge(other, self.group[k])
        for s in step.reads():
            self.readers.setdefault(s, set()).add(k)

    def _same_shape(self, g: int, shape: int) -> bool:
        return self.shape[g] is not None and self.root(self.shape[g]) == self.root(shape)

    def _fits(self, step: Step) -> bool:
        if step.entry.klass != "map" or step.entry.multi or step.outputs != 1 or step.is_number:
            return False
        if any(isinstance(i, tuple) for i in step.inputs):
            return False
        if any(a.kind not in ("static", "scalar") for a in step.entry.attrs):
            return False
        dtypes = [self.tensor(s).dtype for s in step.reads()]
        if not dtypes or all(self.is_number(s) for s in step.reads()):
            return False
        return self.fuser.takes(step.entry, dtypes, self.tensor(step.slot).dtype)

    def _merge(self, a: int, b: int) -> None:
        """Make one group of two, unless another would have to run between its halves."""
        both = 1 << a | 1 << b
        between = self.after[a] & self.before[b] | self.after[b] & self.before[a]
        arrays = self.arrays[a] | self.arrays[b]
        if between & ~both or len(arrays) > MOST_ARRAYS:
            return
        if len(self.members[a]) + len(self.members[b]) > MOST_PARTS:
            return
        before = (self.before[a] | self.before[b]) & ~both
        after = (self.after[a] | self.after[b]) & ~both
        for g in _bits(before):
            self.after[g] = self.after[g] & ~both | 1 << a | after
        for g in _bits(after):
            self.before[g] = self.before[g] & ~both | 1 << a | before
        self.before[a], self.after[a], self.arrays[a] = before, after, arrays
        self.before[b] = self.after[b] = 0
        for k in self.members[b]:
            self.group[k] = a
        self.members[a] += self.members[b]
        self.members[b] = []

    def units(self, live: Sequence[int]) -> list[Step | Fused]:
        """Return groups and lone steps so that each comes after what it reads."""
        made: list[Step | Fused] = []
        loose: dict[int, Step] = {}
        for g, members in enumerate(self.members):
            if len(members) > 1:
                made.append(self._fused([self.steps[k] for k in sorted(members)]))
            elif members:
                loose[g] = self.steps[members[0]]
        read = {s for unit in made for s in unit.reads()} | set(live)
        for step in loose.values():
            read.update(step.reads())
        # A number that only kernels took is not made as a tensor.
        made += [s for s in loose.values() if not s.is_number or s.slot in read]
        inner = {s.slot for unit in made if isinstance(unit, Fused) for s in unit.steps}
        wanted = (read | set(live)) & inner
        for unit in made:
            if isinstance(unit, Fused):
                unit.outputs = [s.slot for s in unit.steps if s.slot in wanted]
                unit.kernel = self.fuser.fuse(self._described(unit))
        return _ordered(made)

    def _fused(self, steps: list[Step]) -> Fused:
        own = {s.slot for s in steps}
        outside = dict.fromkeys(s for step in steps for s in step.reads() if s not in own)
        numbers = [self.steps[self.maker[s]] for s in outside if self.is_number(s)]
        fused = Fused(steps, numbers)
        fused.inputs = [s for s in outside if not self.is_number(s)]
        return fused

    def _described(self, fused: Fused) -> Group:
        place: dict[int | None, int | None] = {s: -1 - k for k, s in enumerate(fused.inputs)}
        place[None] = None
        parts: list[Part] = []
        for step in [*fused.numbers, *fused.steps]:
            numbers = step.scalars()
            fused.run_time += [(step.slot, k) for k in numbers]
            out = self.tensor(step.slot).dtype
            lead = out
            if step.inputs:
                first = next((k for k, i in enumerate(step.entry.inputs) if i.promoted), 0)
                lead = self.tensor(step.inputs[first]).dtype
            inputs = tuple(place[s] for s in step.inputs)
            place[step.slot] = len(parts)
            parts.append(Part(step.entry.name, inputs, step.static, len(numbers), lead, out))
        outputs = tuple(k for s in fused.outputs if (k := place[s]) is not None)
        dtypes = tuple(self.tensor(s).dtype for s in fused.inputs)
        return Group(tuple(parts), dtypes, outputs)


def _ordered(units: list[Step | Fused]) -> list[Step | Fused]:
    """Return units in an order that keeps to the program's where it can."""
    maker = {s: k for k, unit in enumerate(units) for s in unit.writes()}
    needs = [{maker[s] for s in unit.reads() if s in maker} for unit in units]
    users: list[list[int]] = [[] for _ in units]
    for k, need in enumerate(needs):
        for n in need:
            users[n].append(k)
    left = [len(need) for need in needs]
    ready = [(units[k].slot, k) for k, n in enumerate(left) if not n]
    heapq.heapify(ready)
    out = []
    while ready:
        k = heapq.heappop(ready)[1]
        out.append(units[k])
        for user in users[k]:
            left[user] -= 1
            if not left[user]:
                heapq.heappush(ready, (units[user].slot, user))
    return out


def _bits(mask: int) -> list[int]:
    """Return the numbers of the bits that are set."""
    out = []
    while mask:
        low = mask & -mask
        out.append(low.bit_length() - 1)
        mask ^= low
    return out
