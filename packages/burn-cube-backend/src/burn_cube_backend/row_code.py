"""Kernels of groups with rows: walks over a row, and what is stored on the way.

A group is cut into walks by its reductions: those whose operands need no other reduction come
first, all in one walk, and so on; what is left is a walk that only stores. An element that is
needed in two walks is computed twice, unless it is expensive and there is memory for it: its own
result, or that of the group's which is written last.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from burn_backend import LEAVES, Group, Part
from burn_cube import Kernel
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.kernels.maps import wide
from burn_cube_backend.kernels.reduce import reducer
from burn_cube_backend.kernels.reduction import Reducer
from burn_cube_backend.kernels.row_walks import At, Rows, Walk
from burn_cube_backend.kernels.watch import Watch
from burn_cube_backend.part_code import expression, part_numbers, part_value
from burn_cube_backend.random_code import Draws, What
from burn_cube_backend.scalar_code import costly
from burn_std import DType, dtypes as d

VIEWS = ("expand", "squeeze", "unsqueeze", "reshape")


class Form(Protocol):
    """What a kernel depends on beside the group.

    Attributes:
        bare: which outside tensors are numbers.
        absent: which run-time values are None, or no numbers.
        inner: of each other outside tensor, the stride along a row: 0, 1 or any (`n`).
        cut: rows are in pieces, whose states are written.
        join: what is reduced are the states of pieces.
        drawn: random numbers among the parts.
    """

    @property
    def bare(self) -> tuple[bool, ...]:
        """Of each outside tensor."""

    @property
    def absent(self) -> tuple[bool, ...]:
        """Of each run-time value."""

    @property
    def inner(self) -> tuple[str, ...]:
        """Of each array."""

    @property
    def cut(self) -> bool:
        """Of all rows."""

    @property
    def join(self) -> bool:
        """Of all rows."""

    @property
    def drawn(self) -> What:
        """Of all rows."""


class RowForm(NamedTuple):
    """The form of a kernel with rows; see `Form`.

    Attributes:
        walk: how rows are walked.
        rank: dims of the rows.
    """

    walk: Walk
    bare: tuple[bool, ...]
    absent: tuple[bool, ...]
    inner: tuple[str, ...]
    rank: int
    join: bool = False
    drawn: What = ()

    @property
    def cut(self) -> bool:
        """Whether rows are in pieces."""
        return self.walk.cut


def is_map(part: Part) -> bool:
    """Return whether a part is elementwise."""
    return part.name not in (*VIEWS, *LEAVES, "full", "gather") and not is_fold(part)


def is_fold(part: Part) -> bool:
    """Return whether a part is a reduction."""
    return reducer_of(part) is not None


def reducer_of(part: Part) -> Reducer | None:
    """Return what a part reduces, None if it does not."""
    dtype = part.static[2] if len(part.static) > 2 else None
    return reducer(part.name, part.lead, dtype) if part.static else None


def folds(group: Group) -> list[tuple[int, Reducer]]:
    """Return the reductions of a group."""
    return [(p, r) for p, part in enumerate(group.parts) if (r := reducer_of(part)) is not None]


def joining(r: Reducer) -> Reducer:
    """Return the reduction of the states of a row's pieces."""
    return r._replace(source=r.acc, middle=r.acc)


def stored(group: Group, form: Form) -> list[int]:
    """Return the results that a kernel stores."""
    full = [p for p in group.outputs if group.parts[p].form == "full"]
    if form.cut:
        return full
    return [p for p in group.outputs if not form.join or p not in full]


def functions(part: Part) -> int:
    """Return how many of those a part has."""
    return costly(expression(part.name)) if is_map(part) else 0


class Order:
    """In which walk of a row the parts of a group are computed.

    Attributes:
        levels: how many walks have to be over before a part can be computed.
        folds: reductions by the number of their walk, from 0.
        writes: full results by the number of the walk that stores them.
        kept: parts that are stored at their first walk: where that is, and the output.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.levels: list[int] = []
        for part in group.parts:
            deep = max((self.levels[i] for i in part.inputs if i is not None and i >= 0), default=0)
            self.levels.append(deep + 1 if is_fold(part) else deep)
        last = max(self.levels)
        self.folds: list[list[int]] = [[] for _ in range(last)]
        for p, part in enumerate(group.parts):
            if is_fold(part):
                self.folds[self.levels[p] - 1].append(p)
        self.writes: list[list[int]] = [[] for _ in range(last + 1)]
        for p in group.outputs:
            if group.parts[p].form == "full":
                self.writes[self.levels[p]].append(p)
        if last and not self.writes[-1]:
            self.writes.pop()
        self.kept: dict[int, tuple[int, int]] = {}
        self._keep()

    @property
    def splits(self) -> bool:
        """Whether rows can be walked in pieces: no element needs what a reduction gives."""
        # Of a place a piece would have to keep the element too.
        picks = any(part.name in ("gather", "argmax", "argmin") for part in self.group.parts)
        return len(self.folds) == 1 and len(self.writes) == 1 and not picks

    def walks(self) -> int:
        """Return how often a row is walked."""
        return len(self.writes)

    def wanted(self, walk: int) -> list[int]:
        """Return the full parts whose values a walk asks for."""
        folds = self.folds[walk] if walk < len(self.folds) else []
        roots = [self.group.parts[p].inputs[0] for p in folds]
        return [p for p in (*roots, *self.writes[walk]) if p is not None and p >= 0]

    def computed(self, walk: int) -> list[int]:
        """Return the full parts that a walk computes."""
        found: set[int] = set()
        left = self.wanted(walk)
        while left:
            p = left.pop()
            part = self.group.parts[p]
            if p in found or part.form != "full" or part.name in ("full", "expand"):
                continue
            if p in self.kept and self.kept[p][0] < walk:
                continue
            found.add(p)
            left += [i for i in part.inputs if i is not None and i >= 0]
        return sorted(found)

    def _keep(self) -> None:
        taken: set[int] = set()
        while True:
            used: dict[int, list[int]] = {}
            for walk in range(self.walks()):
                for p in self.computed(walk):
                    used.setdefault(p, []).append(walk)
            for p in sorted(used, reverse=True):
                walks = used[p]
                part = self.group.parts[p]
                if len(walks) < 2 or not functions(part):
                    continue
                room = self._room(p, walks[-1], taken)
                if room is not None:
                    taken.add(room)
                    self.kept[p] = (walks[0], room)
                    break
            else:
                return

    def _doubles(self, walk: int) -> bool:
        here = self.folds[walk] if walk < len(self.folds) else []
        return any(self.group.parts[p].name in ("argmax", "argmin") for p in here)

    def _room(self, p: int, last: int, taken: set[int]) -> int | None:
        """Return the result in whose memory a part can wait until its last walk."""
        if p in self.writes[self.levels[p]]:
            return p
        # A walk for a place goes over the row twice, and must not find what it wrote itself.
        first = last + 1 if self._doubles(last) else last
        for walk in range(self.walks() - 1, first - 1, -1):
            for other in self.writes[walk]:
                same = self.group.parts[other].dtype is self.group.parts[p].dtype
                # What is written is read again itself if it is kept too.
                if same and other not in taken and other not in self.kept:
                    return other
        return None


def row_kernel(group: Group, form: RowForm) -> Kernel:
    """Write the kernel of a group with rows.

    Parameters are results, states of pieces, arrays, numbers of outside tensors, numbers of parts,
    those of random numbers; the record of faults and the sites of `gather`s if there are any; those
    of `Rows`; offsets of the arrays, extents of the rows' dims, strides of each array along them,
    and along the row where that is neither 0 nor 1.

    Rows in pieces take two kernels: one gives full results and the states of all reductions, the
    other joins these and gives what a row has one of.
    """
    writer = _Rows(group, form)
    writer.body()
    return writer.code.finish()


class Writer:
    """What kernels of groups with rows or columns have in common: parameters.

    Attributes:
        code: the kernel.
        order: what is computed when.
        outs: memory of results by part, `states` of what pieces give; `arrays` by their number.
        row: values that a row has one of, by part, or by -1 - number of an outside tensor.
        numbers: run-time numbers by part.
        bases: where the line of each array begins, `start` that of the results.
        hops: strides along a row that are neither 0 nor 1.
    """

    bases: dict[int, Val]
    hops: dict[int, Val]
    start: Val

    def __init__(self, group: Group, name: str, form: Form, units: int, places: DType) -> None:
        names = [p.name for p in group.parts if p.name != "full"]
        code = self.code = Code("_".join([name, *names[:6]]), places, units)
        self.group, self.form, self.order = group, form, Order(group)
        self.outs = {p: code.buffer(f"out{p}", group.parts[p].dtype)
                     for p in stored(group, form)}  # fmt: skip
        self.states: dict[int, Buf] = {}
        if form.cut or form.join:
            self.states = {p: code.buffer(f"state{p}", r.acc) for p, r in folds(group)}
        outside = list(enumerate(group.outside))
        self.arrays = {k: code.buffer(f"x{k}", t) for k, t in outside if not form.bare[k]}
        self.row = {-1 - k: code.scalar(f"n{k}", wide(t)).cast(t)
                    for k, t in outside if form.bare[k]}  # fmt: skip
        self.numbers = part_numbers(code, group.parts, form.absent)
        for p, part in enumerate(group.parts):
            if part.name == "full":
                self.row[p] = part_value(code, part, (), self.numbers[p])
        self.draws = Draws(code, form.drawn)

    def store(self, values: Values) -> None:
        """Write the results of a walk, and what waits for later ones."""
        order, walk = self.order, values.walk
        kept = [(p, room) for p, (at, room) in order.kept.items() if at == walk and room != p]
        written = order.writes[walk] if walk < len(order.writes) else ()
        # All are computed before the first is written: one may wait in the memory of another.
        made = [(room, values.of(p)) for p, room in (*kept, *((p, p) for p in written))]
        for room, value in made:
            values.at.store(self.outs[room], self.start, value)


class _Rows(Writer):
    form: RowForm

    def __init__(self, group: Group, form: RowForm) -> None:
        super().__init__(group, "rows", form, form.walk.units, form.walk.places)
        code = self.code
        picks = [p for p, part in enumerate(group.parts) if part.name == "gather"]
        self.watch = Watch(code) if picks else None
        self.sites = {p: code.scalar(f"site{p}", d.int32) for p in picks}
        self.rows = Rows(code, form.walk)
        offsets = code.places("offset", len(self.arrays))
        extents = code.places("extent", form.rank)
        strides = [code.places(f"stride{k}_", form.rank) for k in self.arrays]
        self.modes = dict(zip(self.arrays, form.inner, strict=True))
        self.hops = {k: code.place(f"hop{k}") for k, mode in self.modes.items() if mode == "n"}
        self.start = self.rows.number * self.rows.length
        coords = code.coords(self.rows.number, extents)
        self.bases = {
            k: code.walk(offset, coords, steps)
            for k, offset, steps in zip(self.arrays, offsets, strides, strict=True)
        }

    def body(self) -> None:
        if self.form.cut:
            self._cut()
        else:
            self._whole()

    def _cut(self) -> None:
        """Write what a piece of a row gives."""
        self._outer()
        self._fold(0)
        with self.rows.first():
            for p, out in self.states.items():
                out[self.rows.piece] = self.row[p]

    def _outer(self) -> None:
        """Compute what needs no walk."""
        self.draws.scratch(self.start, self.rows.length)
        for k, mode in self.modes.items():
            if mode == "0":
                self.row[-1 - k] = self.arrays[k][self.bases[k]]
        self._narrow(0)

    def _whole(self) -> None:
        order = self.order
        with self.rows.whole():
            self._outer()
            for walk in range(order.walks()):
                if walk < len(order.folds):
                    self._fold(walk)
                    self._narrow(walk + 1)
                else:
                    self._each(walk)
            with self.rows.first():
                for p, out in self.outs.items():
                    if self.group.parts[p].form != "full":
                        out[self.rows.number] = self.row[p]

    def _each(self, walk: int) -> None:
        self.rows.each(lambda at: self.store(Values(self, at, walk)))

    def _fold(self, walk: int) -> None:
        here = self.order.folds[walk]
        reducers = [r for p, r in folds(self.group) if p in here]

        def body(at: At) -> list[list[Val]]:
            values = Values(self, at, walk)
            taken = [values.of(self.group.parts[p].inputs[0]) for p in here]
            self.store(values)
            return taken

        def joined(at: At) -> list[list[Val]]:
            return [at.load(state, self.start, None) for state in self.states.values()]

        if self.form.join:
            reducers = [joining(r) for r in reducers]
        heavy = any(functions(self.group.parts[p]) for p in self.order.computed(walk))
        made = self.rows.fold(reducers, joined if self.form.join else body, heavy)
        for p, r, value in zip(here, reducers, made, strict=True):
            self.row[p] = value if self.form.cut else value.cast(r.out)

    def _narrow(self, level: int) -> None:
        """Compute the values of rows that need so many walks."""
        for p, part in enumerate(self.group.parts):
            if part.form == "full" or is_fold(part) or self.order.levels[p] != level:
                continue
            if part.name == "gather":
                self.row[p] = self._picked(p, part)
            elif part.name in VIEWS:
                self.row[p] = self._narrow_input(part.inputs[0])
            else:
                given = [None if i is None else self.row[i] for i in part.inputs]
                self.row[p] = part_value(self.code, part, given, self.numbers[p])

    def _narrow_input(self, ref: int | None) -> Val:
        assert ref is not None  # noqa: S101 - the input of a view is there
        return self.row[ref]

    def _picked(self, p: int, part: Part) -> Val:
        """Return the element of a row at the row's index."""
        x, index = part.inputs
        assert self.watch is not None  # noqa: S101 - there is a gather
        size = self.rows.length
        place, _ = self.watch.inside(self._narrow_input(index), size, self.sites[p], False)
        # Elements that wait somewhere were written by other units.
        (value,) = Values(self, At(self.rows, place, 1), 0, False).of(x)
        return value


class Values:
    """Values of full parts at some places.

    Attributes:
        at: the places.
        walk: which walk it is.
    """

    def __init__(
        self, writer: Writer, at: At, walk: int, kept: bool = True,
        known: dict[int, list[Val]] | None = None,
    ) -> None:  # fmt: skip
        self.writer = writer
        self.at = at
        self.walk = walk
        self._kept = writer.order.kept if kept else {}
        self._done = dict(known or {})

    def of(self, ref: int | None) -> list[Val]:
        """Return the values of a part, or of an outside tensor."""
        assert ref is not None  # noqa: S101 - absent inputs are not asked for
        found = self._done.get(ref)
        if found is None:
            found = self._done[ref] = self._made(ref)
        return found

    def _made(self, ref: int) -> list[Val]:
        w = self.writer
        if ref in w.row:
            return self.at.of(w.row[ref])
        if ref < 0:
            k = -1 - ref
            return self.at.load(w.arrays[k], w.bases[k], w.hops.get(k))
        part = w.group.parts[ref]
        walk, room = self._kept.get(ref, (self.walk, ref))
        if walk < self.walk:
            return self.at.load(w.outs[room], w.start, None)
        if part.name in VIEWS:
            return self.of(part.inputs[0])
        if part.name in LEAVES:
            return w.draws.values(ref, self.at, w.start)
        given = [None if i is None else self.of(i) for i in part.inputs]
        numbers = [None if n is None else self.at.of(n) for n in w.numbers[ref]]
        made = []
        for k in range(self.at.count):
            here = [None if g is None else g[k] for g in given]
            value = part_value(w.code, part, here, [None if n is None else n[k] for n in numbers])
            made.append(value)
        return self.at.even(made)
