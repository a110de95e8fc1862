"""Which steps of a program become one kernel: elementwise operations, and rows of reductions.

Operations over one shape go together as long as nothing outside the group stands between them, and
over views of one shape too (`bridges`).
What is reduced over the last dims joins with what it is computed from and with what reads it, along
the same rows: softmax by hand is one kernel. An operation that has a kernel over rows of its own, a
norm, takes elementwise ones in. Convolutions and random numbers go with what reads them (`heads`),
what is put together of pieces with what stands around it (`joints`).
Shapes are not known here, only which are equal (`extents`); whether one kernel pays for the extents
of a run is for the backend to say.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn_backend import CORES, JOINTS, LEAVES, Form, Fuser, Group, Part
from burn_fusion.bridges import bridge, is_view
from burn_fusion.extents import (
    MOST_ARRAYS,
    MOST_PARTS,
    Extents,
    Node,
    TensorOf,
    added,
    core_dims,
    is_elementwise,
    reduced_dims,
)
from burn_fusion.heads import attach, draw
from burn_fusion.joints import is_constant, is_joint, join
from burn_fusion.sinking import sink

if TYPE_CHECKING:
    from burn_fusion.plan import Step

_ROW_VIEWS = ("expand", "squeeze", "unsqueeze", "reshape")


class Fused:
    """Steps that one kernel computes.

    Attributes:
        steps: the steps, in order of the program.
        numbers: `full` steps of rank 0 whose values the kernel takes as numbers.
        inputs: slots from outside, in the order in which the kernel takes them.
        outputs: slots of the results that somebody else reads.
        run_time: slot and position of the run-time values that it takes.
        rows: dims of a row, negative for columns, 0 where all steps are elementwise.
        kernel: the backend's function.
        parts: makes the units that run where the backend lets a unit with rows run apart.
    """

    __slots__ = ("inputs", "kernel", "numbers", "outputs", "parts", "rows", "run_time", "steps")

    def __init__(self, steps: Sequence[Step], numbers: Sequence[Step], rows: int = 0) -> None:
        self.steps = steps
        self.numbers = numbers
        self.rows = rows
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.run_time: list[tuple[int, int]] = []
        self.kernel: Any = None
        self.parts: Callable[[], list[Step | Fused]] = list

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


# Returns what computes the same as a unit with rows left to the operations' own kernels.
Apart = Callable[[Fused], Callable[..., tuple[Any, ...]]]


def units_of(
    steps: Sequence[Step],
    live: Sequence[int],
    tensor: TensorOf,
    fuser: Fuser,
    apart: Apart | None = None,
    draws: bool = True,
) -> list[Step | Fused]:
    """Return the steps in an order in which they can run, some of them as one.

    Args:
        steps: a program.
        live: slots whose values are wanted.
        tensor: slot to what has its dtype and shape.
        fuser: the backend's side.
        apart: makes the other way to compute a unit with rows; without it there are none.
        draws: random numbers and joints go into kernels.
    """
    steps = _wanted(steps, live)
    grouping = Grouping(steps, tensor, fuser, apart, live)
    for k in range(len(steps)):
        grouping.place(k)
    grouping.join()
    if apart is not None:
        sink(grouping)
        attach(grouping, live)
        bridge(grouping, live)
        if draws:
            join(grouping, live)
            draw(grouping)
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


class _Rows:
    """The values that a group of rows works on, by their shapes.

    Args:
        extents: of the program.
        full: the shape of what is reduced.
        dims: how many last dims a row has, negative for columns.
        rank: dims of `full`.
        core: number of the step with a kernel of its own that the group is built around.
    """

    def __init__(
        self, extents: Extents, full: Node, dims: int, rank: int, core: int | None = None
    ) -> None:
        # Each core walks rows in its own way.
        self.key = (full, dims, core)
        self.dims = dims
        self.core = core
        # A scalar is read along whatever there is.
        self.single = dims == rank
        # Rows have more to gain than columns, and than what is one row.
        self.late = self.single or dims < 0
        self.forms: dict[Node, Form] = {full: "full"}
        kept, cut = extents.kept(full, dims), extents.cut(full, dims)
        if kept is not None:
            self.forms[kept] = "kept"
        if cut is not None:
            self.forms[cut] = "cut"


class Grouping:
    """Groups as they grow; group k begins as step k, `before` and `after` are sets of bits."""

    def __init__(
        self, steps: Sequence[Step], tensor: TensorOf, fuser: Fuser, apart: Apart | None,
        live: Sequence[int],
    ) -> None:  # fmt: skip
        self.steps = steps
        self.live = frozenset(live)
        self.users: dict[int, list[int]] = {}
        for k, step in enumerate(steps):
            for s in step.reads():
                self.users.setdefault(s, []).append(k)
        self.tensor = tensor
        self.fuser = fuser
        self.apart = apart
        self.extents = Extents(steps, tensor)
        self.maker = {s: k for k, st in enumerate(steps) for s in st.writes()}
        self.group = list(range(len(steps)))
        self.members = [[k] for k in range(len(steps))]
        self.before = [0] * len(steps)
        self.after = [0] * len(steps)
        self.arrays: list[set[int]] = [set() for _ in steps]
        # What a group is: elementwise over one shape, rows, or (while it is one step) neither.
        self.shape: list[Node] = [None] * len(steps)
        self.rows: list[_Rows | None] = [None] * len(steps)
        self.joins: list[bool] = [False] * len(steps)
        self.readers: dict[int, list[int]] = {}
        # Of steps in groups with views: the views by which they are read in the end.
        self.through: dict[int, tuple[int, ...]] = {}

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
        self._describe(k, step)
        if not self.joins[k]:
            return
        self.arrays[k] = {s for s in [*step.reads(), *step.writes()] if not self.is_number(s)}
        self._meet(k, False)
        for s in step.reads():
            self.readers.setdefault(s, []).append(k)

    def join(self) -> None:
        """Merge what was not known to fit when it was placed.

        Reductions of columns and of everything come last: rows have more to gain.
        """
        for late in (False, True):
            for k in range(len(self.steps)):
                if self.joins[k]:
                    self._meet(k, late)

    def _late(self, g: int) -> bool:
        rows = self.rows[g]
        return rows is not None and rows.late

    def _meet(self, k: int, late: bool) -> None:
        """Merge the group of a step with those that it reads from, or that read the same.

        Args:
            k: the step.
            late: also with columns, and where everything is one row.
        """
        step = self.steps[k]
        sources = sorted(self.maker[s] for s in step.reads() if s in self.maker)
        near: list[int] = []
        if not is_view(step):
            near = sorted(j for s in step.reads() for j in self.readers.get(s, ()))
        for j in dict.fromkeys([*sources, *near]):
            a, b = sorted((self.group[j], self.group[k]))
            if a == b or not (self.joins[a] and self.joins[b]):
                continue
            if late or not (self._late(a) or self._late(b)):
                self._merge(a, b)

    def _describe(self, k: int, step: Step) -> None:
        """Note what a step could be part of."""
        if is_elementwise(step):
            if step.is_number or all(self.is_number(s) for s in step.reads()):
                return
            self.joins[k] = self.is_taken(step)
            self.shape[k] = self.extents.root(step.slot)
        elif self.apart is None:
            return
        elif step.entry.name in CORES:
            dims = core_dims(step, self.tensor)
            classes = self.extents.classes(step.slot)
            if dims and 0 not in classes and 2 in classes[-dims:] and self.is_taken(step):
                self.joins[k] = True
                full = self.extents.root(step.slot)
                self.rows[k] = _Rows(self.extents, full, dims, len(classes), k)
        elif step.outputs != 1:
            return
        elif step.entry.klass == "reduce":
            dims = reduced_dims(step, self.tensor)
            classes = self.extents.classes(step.inputs[0])
            gone = classes[len(classes) - dims :] if dims > 0 else classes[:-dims]
            # Places of extremes are found along rows alone.
            along = dims > 0 or (dims < 0 and step.entry.attrs[0].name == "dims")
            if along and 0 not in classes and 2 in gone and self.is_taken(step):
                self.joins[k] = True
                full = self.extents.root(step.inputs[0])
                self.rows[k] = _Rows(self.extents, full, dims, len(classes))
        elif step.entry.name in _ROW_VIEWS:
            self.joins[k] = True
        elif step.entry.name == "gather":
            behind = step.static[0] == len(self.extents.classes(step.slot)) - 1
            self.joins[k] = behind and self.is_taken(step)

    def is_taken(self, step: Step) -> bool:
        """Return whether the backend has a step as a part, for its dtypes."""
        dtypes = [self.tensor(s).dtype for s in step.reads()]
        return self.fuser.takes(step.entry, dtypes, self.tensor(step.slot).dtype)

    def _common(self, a: int, b: int) -> tuple[bool, _Rows | None]:
        """Return whether what two groups compute can be one kernel, and its rows."""
        rows = self.rows[a] or self.rows[b]
        if rows is None:
            shape = self.shape[a]
            return shape is not None and shape == self.shape[b], None
        for g in (a, b):
            own = self.rows[g]
            if own is not None and own.key != rows.key:
                return False, None
        return self.fit([*self.members[a], *self.members[b]], rows), rows

    def fit(self, members: Sequence[int], rows: _Rows) -> bool:
        """Return whether steps can be one kernel along rows."""
        steps = [self.steps[k] for k in members]
        made = {s for step in steps for s in step.writes()}
        fits = self._fits if rows.core is None else self._fits_core
        return all(fits(step, rows, made) for step in steps)

    def _form(self, slot: int, rows: _Rows) -> Form | None:
        return rows.forms.get(self.extents.root(slot))

    def _fits_core(self, step: Step, rows: _Rows, made: set[int]) -> bool:
        """Return whether a step can be a part around a step with a kernel of its own."""
        here = [s for s in step.reads() if s in made]
        alike = all(self._form(s, rows) == "full" for s in (*here, step.slot))
        if step.entry.name in CORES:
            return alike and self._form(step.inputs[0], rows) == "full" and here in (
                [], [step.inputs[0]]
            )  # fmt: skip
        return alike and is_elementwise(step)

    def _fits(self, step: Step, rows: _Rows, made: set[int]) -> bool:
        """Return whether a step can be a part of rows, `made` being the slots of all parts."""
        form = self._form(step.slot, rows)
        given = [self._form(s, rows) for s in step.reads()]
        name = step.entry.name
        if form is None:
            return False
        if is_elementwise(step):
            allowed: tuple[Form | None, ...] = (form,)
            if form != "cut" and rows.dims > 0:
                allowed = ("full", "kept", "cut") if rows.single else ("full", "kept")
            return all(f in allowed for s, f in zip(step.reads(), given, strict=True) if s in made)
        if step.entry.klass == "reduce":
            return given == ["full"] and form != "full"
        if name == "gather":
            return given == ["full", "kept"] and form == "kept" and rows.dims == 1
        if step.inputs[0] not in made:
            return False
        if name == "expand":
            return given == ["kept"] and form == "full" and rows.dims > 0
        return {form, given[0]} == {"kept", "cut"} and added(step, self.tensor)[0] == rows.dims

    def _merge(self, a: int, b: int) -> None:
        """Make one group of two, unless another would have to run between its halves."""
        if not self.can_unite((a, b)):
            return
        fits, rows = self._common(a, b)
        if fits:
            self.unite((a, b))
            self.rows[a] = rows

    def can_unite(self, groups: Sequence[int]) -> bool:
        """Return whether groups are small enough to be one, and no other runs between them."""
        own = sum(1 << g for g in groups)
        before = after = 0
        arrays: set[int] = set()
        for g in groups:
            before |= self.before[g]
            after |= self.after[g]
            arrays |= self.arrays[g]
        parts = sum(len(self.members[g]) for g in groups)
        if before & after & ~own or parts > MOST_PARTS:
            return False
        return len(arrays) <= MOST_ARRAYS or len(self.crossing(arrays, groups)) <= MOST_ARRAYS

    def crossing(self, arrays: set[int], groups: Sequence[int]) -> set[int]:
        """Return the slots that groups as one read from outside, or make for others."""
        return {
            s for s in arrays
            if s in self.live or s not in self.maker or self.group[self.maker[s]] not in groups
            or any(self.group[k] not in groups for k in self.users.get(s, ()))
        }  # fmt: skip

    def unite(self, groups: Sequence[int]) -> None:
        """Make one group of several, under the number of the first."""
        first, *others = groups
        own = sum(1 << g for g in groups)
        before = after = 0
        for g in groups:
            before |= self.before[g]
            after |= self.after[g]
        before, after = before & ~own, after & ~own
        for g in _bits(before):
            self.after[g] = self.after[g] & ~own | 1 << first | after
        for g in _bits(after):
            self.before[g] = self.before[g] & ~own | 1 << first | before
        for g in others:
            self.arrays[first] |= self.arrays[g]
            self.before[g] = self.after[g] = 0
            for k in self.members[g]:
                self.group[k] = first
            self.members[first] += self.members[g]
            self.members[g] = []
        self.before[first], self.after[first] = before, after
        self.arrays[first] = self.crossing(self.arrays[first], (first,))

    def units(self, live: Sequence[int]) -> list[Step | Fused]:
        """Return groups and lone steps so that each comes after what it reads."""
        made: list[Step | Fused] = []
        loose: list[Step] = []
        for members in self.members:
            steps = [self.steps[k] for k in sorted(members)]
            inside, outside = self._parted(steps, live) if len(steps) > 1 else ([], steps)
            loose += outside
            if inside:
                made.append(self._fused(inside))
        read = {s for unit in made for s in unit.reads()} | set(live)
        for step in loose:
            read.update(step.reads())
        # A number that only kernels took is not made as a tensor.
        made += [s for s in loose if not s.is_number or s.slot in read]
        for unit in made:
            if isinstance(unit, Fused):
                made_here = [w for s in unit.steps if not is_view(s) for w in s.writes()]
                unit.outputs = [slot for slot in made_here if slot in read]
                group = self._described(unit)
                more = not all(map(is_elementwise, unit.steps))
                way = self.apart(unit) if more and self.apart is not None else _nothing
                unit.kernel = self.fuser.fuse(group, way)
        return ordered(made)

    def _parted(self, steps: list[Step], live: Sequence[int]) -> tuple[list[Step], list[Step]]:
        """Return the steps of a group that its kernel computes, and those that run beside it.

        A view that others read runs for them: it costs nothing, and its elements need no memory.
        """
        own = {s.slot for s in steps}
        others = set(live)
        for k, step in enumerate(self.steps):
            if self.group[k] != self.group[self.maker[steps[0].slot]]:
                others.update(s for s in step.reads() if s in own)
        outside: list[Step] = []
        for step in reversed(steps):
            if is_view(step) and step.slot in others:
                outside.append(step)
                others.update(step.reads())
        inside: list[Step] = []
        wanted: set[int] = set()
        for step in reversed(steps):
            if not is_view(step) or step.slot in wanted:
                inside.insert(0, step)
                wanted.update(step.reads())
        if sum(not is_view(s) for s in inside) < 2:
            return [], steps
        return inside, outside

    def _fused(self, steps: list[Step]) -> Fused:
        own = {s for step in steps for s in step.writes()}
        outside = dict.fromkeys(s for step in steps for s in step.reads() if s not in own)
        numbers = [self.steps[self.maker[s]] for s in outside if self.is_number(s)]
        rows = self.rows[self.group[self.maker[steps[0].slot]]]
        fused = Fused(steps, numbers, rows.dims if rows is not None else 0)
        fused.inputs = [s for s in outside if not self.is_number(s)]
        return fused

    def _described(self, fused: Fused) -> Group:
        rows = self.rows[self.group[self.maker[fused.slot]]]
        place: dict[int | None, int | None] = {None: None}
        outside: dict[tuple[int, bool], int] = {}
        own = {s for step in (*fused.numbers, *fused.steps) for s in step.writes()}

        def placed(slot: int | None, cut: bool) -> int | None:
            if slot is None or slot in own:
                return place[slot]
            return -1 - outside.setdefault((slot, cut), len(outside))

        parts: list[Part] = []
        for step in [*fused.numbers, *fused.steps]:
            all_of_them = (
                step.entry.name in (*LEAVES, *JOINTS) or is_view(step) or is_constant(step)
            )
            numbers = step.run_time() if all_of_them else step.scalars()
            fused.run_time += [(step.slot, k) for k in numbers]
            out = self.tensor(step.slot).dtype
            lead = out
            if step.inputs:
                first = next((k for k, i in enumerate(step.entry.inputs) if i.promoted), 0)
                leader = step.inputs[first]
                lead = self.tensor(leader[0] if isinstance(leader, tuple) else leader).dtype
            form: Form = "full"
            cut = False
            if rows is not None and not step.is_number:
                form = self._form(step.slot, rows) or form
                # The columns' dims are the last ones anyway.
                cut = form == "cut" and rows.dims > 0 and is_elementwise(step)
            given = step.reads() if is_joint(step) else step.inputs
            inputs = tuple(placed(s, cut) for s in given)
            place[step.slot] = core = len(parts)
            parts.append(Part(step.entry.name, inputs, step.static, len(numbers), lead, out, form))
            for number, slot in enumerate(step.writes()[1:], 1):
                place[slot] = len(parts)
                kind = self.tensor(slot).dtype
                parts.append(Part("output", (core,), (number,), 0, lead, kind, "kept"))
        outputs = tuple(k for s in fused.outputs if (k := place[s]) is not None)
        fused.inputs = [s for s, _ in outside]
        dtypes = tuple(self.tensor(s).dtype for s in fused.inputs)
        aligned = tuple(cut for _, cut in outside) if rows is not None else ()
        through: tuple[tuple[int, ...], ...] = ()
        joint = any(map(is_joint, fused.steps))
        if not fused.rows and not joint and any(map(is_view, fused.steps)):
            ways = [self.through[self.maker[s]] for s in fused.outputs]
            slots = [[self.steps[v].slot for v in way] for way in ways]
            through = tuple(tuple(k for s in way if (k := place[s]) is not None) for way in slots)
        return Group(tuple(parts), dtypes, outputs, fused.rows, aligned, through)


def _nothing(*args: Any) -> tuple[Any, ...]:
    raise AssertionError("an elementwise group has one kernel")


def ordered(units: list[Step | Fused]) -> list[Step | Fused]:
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
