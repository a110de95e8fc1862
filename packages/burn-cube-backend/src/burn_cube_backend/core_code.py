"""Kernels of softmax and the norms together with elementwise operations before and behind.

A row is walked as the operation's own kernel walks it, so it has the same bits. What it is computed
from is computed in the first walk and kept where there is memory for it, else in each; what reads
it is computed in the last.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from burn_backend import CORES, Group
from burn_cube import Kernel
from burn_cube_backend.code import Val
from burn_cube_backend.kernels.maps import HALVES, wide
from burn_cube_backend.kernels.row_walks import At as Places
from burn_cube_backend.kernels.rows import At, Layout, Row
from burn_cube_backend.kernels.rowwise import Ends, norm_row, softmax_row
from burn_cube_backend.random_code import What
from burn_cube_backend.row_code import Values, Writer


class CoreForm(NamedTuple):
    """The form of a kernel around one of `CORES`; see `row_code.Form`.

    Attributes:
        how: how rows are laid out.
        rank: dims of the rows.
    """

    how: Layout
    bare: tuple[bool, ...]
    absent: tuple[bool, ...]
    inner: tuple[str, ...]
    rank: int
    cut: bool = False
    join: bool = False
    drawn: What = ()


def core_of(group: Group) -> int:
    """Return the part that the kernel of a group is built around."""
    return next(p for p, part in enumerate(group.parts) if part.name in CORES)


class Rooms:
    """Where values wait from walk to walk: results that are written in the last.

    Attributes:
        source: the result in which the operand waits, None where it is computed again or read.
        powers: that of the powers of a softmax.
    """

    def __init__(self, group: Group) -> None:
        core = group.parts[core_of(group)]
        self.source: int | None = None
        self.powers: int | None = None
        full = [p for p in group.outputs if group.parts[p].form == "full"]
        given = core.inputs[0]
        if given in full:
            self.source = given
        free = [p for p in full if p != self.source]
        if core.name == "softmax":
            alike = [p for p in free if group.parts[p].dtype is wide(core.dtype)]
            self.powers = alike[0] if alike and core.dtype is wide(core.dtype) else None
            free = [p for p in free if p != self.powers]
        if self.source is None and given is not None and given >= 0:
            alike = [p for p in free if group.parts[p].dtype is group.parts[given].dtype]
            self.source = alike[0] if alike else None


def core_kernel(group: Group, form: CoreForm) -> Kernel:
    """Write the kernel of a group around one of `CORES`.

    Parameters are results, arrays, numbers of outside tensors, numbers of parts, the length of a
    row, offsets of the arrays, extents of the rows' dims and strides of each array along them.
    """
    writer = _Cores(group, form)
    writer.body()
    return writer.code.finish()


class _Cores(Writer):
    form: CoreForm

    def __init__(self, group: Group, form: CoreForm) -> None:
        super().__init__(group, "around", form, form.how.units, form.how.places)
        code = self.code
        self.core = core_of(group)
        self.part = group.parts[self.core]
        self.kind = wide(self.part.dtype)
        self.rooms = Rooms(group)
        self.line = Row(code, form.how, code.place("length"))
        offsets = code.places("offset", len(self.arrays))
        extents = code.places("extent", form.rank)
        strides = [code.places(f"stride{k}_", form.rank) for k in self.arrays]
        coords = code.coords(self.line.number, extents)
        self.start = self.line.number * self.line.length
        self.hops = {}
        self.bases = {
            k: code.walk(offset, coords, steps)
            for k, offset, steps in zip(self.arrays, offsets, strides, strict=True)
        }
        for k, mode in zip(self.arrays, form.inner, strict=True):
            if mode == "0":
                self.row[-1 - k] = self.arrays[k][self.bases[k]]

    def present(self) -> AbstractContextManager[None]:
        """Return that every unit has a row."""
        return nullcontext()

    def body(self) -> None:
        """Write everything."""
        part, row, kind = self.part, self.line, self.kind
        self.draws.scratch(self.start, row.length)
        ends = Ends(self._first, self._again, self._write)
        if part.name in ("softmax", "log_softmax"):
            room = None if self.rooms.powers is None else self.outs[self.rooms.powers]
            softmax_row(row, part.name == "log_softmax", kind, ends, room, self.start)
            return
        eps = self.numbers[self.core][0]
        assert eps is not None  # noqa: S101 - a norm has an eps
        params = [self._param(i) for i in (*part.inputs[1:], None)[:2]]
        centred = part.name == "layer_norm"
        mean, root = norm_row(row, centred, kind, eps, ends, (params[0], params[1]))
        stats = [v for v in (mean, root) if v is not None]
        for p, out in self.outs.items():
            beside = self.group.parts[p]
            if beside.name == "output":
                row.store(out, stats[beside.static[0] - 1], beside.dtype)

    def _param(self, ref: int | None) -> Callable[[At], Val] | None:
        if ref is None:
            return None
        buf, base = self.arrays[-1 - ref], self.bases[-1 - ref]
        return lambda at: at.load(buf, base, self.kind)

    def _places(self, at: At) -> Places:
        return Places(self, at.place, at.width, self.form.how.vectors)

    def _one(self, values: list[Val]) -> Val:
        """Return values of neighbours as one."""
        if len(values) == 1:
            return values[0]
        return Val(self.code, self.code.b.vector(*[v.op for v in values]))

    def _each(self, at: At, value: Val) -> list[Val]:
        """Return a value of neighbours as parts are computed: a vector, or one by one."""
        if at.width == 1 or self.form.how.vectors:
            return [value]
        return [Val(self.code, self.code.b.extract(value.op, k)) for k in range(at.width)]

    def _cast(self, value: Val) -> Val:
        """Return an element of the operand as the operation takes it."""
        target = self.part.dtype
        if value.dtype is not target and value.dtype not in HALVES:
            value = value.cast(target)
        return value.cast(self.kind)

    def _first(self, at: At) -> Val:
        ref = self.part.inputs[0]
        places = self._places(at)
        made = Values(self, places, 0, False).of(ref)
        if self.rooms.source is not None:
            places.store(self.outs[self.rooms.source], self.start, made)
        return self._cast(self._one(made))

    def _again(self, at: At) -> Val:
        places = self._places(at)
        return self._cast(self._one(self._operand(places)))

    def _operand(self, places: Places) -> list[Val]:
        if self.rooms.source is not None:
            return places.load(self.outs[self.rooms.source], self.start, None)
        return Values(self, places, 0, False).of(self.part.inputs[0])

    def _write(self, at: At, value: Val) -> None:
        places = self._places(at)
        known = {self.core: self._each(at, value.cast(self.part.dtype))}
        ref, room = self.part.inputs[0], self.rooms.source
        full = [p for p in self.outs if self.group.parts[p].form == "full"]
        if room is not None and ref is not None:
            known[ref] = self._operand(places)
        values = Values(self, places, 0, False, known)
        # All are computed before the first is written: the operand may wait in one of them.
        made = [(p, values.of(p)) for p in full if p != ref or room != ref]
        for p, value_ in made:
            places.store(self.outs[p], self.start, value_)
