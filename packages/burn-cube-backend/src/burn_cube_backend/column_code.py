"""Kernels of groups with columns: a unit of a processor walks down a panel of neighbouring ones.

Sums take the order of `reduce_cpu.column_kernel`. Rows in pieces take two kernels, as those of
`row_code` do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from burn_backend import Group
from burn_cube import Kernel
from burn_cube_backend.code import Val
from burn_cube_backend.kernels.reduce_cpu import LANES, Lanes, Spec
from burn_cube_backend.kernels.reduction import element, first_value
from burn_cube_backend.kernels.row_walks import At
from burn_cube_backend.random_code import What
from burn_cube_backend.row_code import Form, Values, Writer, folds, joining
from burn_std import DType


class ColumnForm(NamedTuple):
    """The form of a kernel with columns; see `row_code.Form`.

    Attributes:
        panel: vectors of a panel.
        places: dtype of places.
    """

    panel: int
    places: DType
    bare: tuple[bool, ...]
    absent: tuple[bool, ...]
    inner: tuple[str, ...]
    cut: bool = False
    join: bool = False
    drawn: What = ()


def column_kernel(group: Group, form: ColumnForm) -> Kernel:
    """Write the kernel of a group with columns.

    Parameters are results, states of pieces, arrays, numbers of outside tensors, numbers of parts,
    the number of panels and of columns, length and piece; offsets of the arrays, and how far their
    rows are apart.
    """
    writer = _Columns(group, form)
    writer.body()
    return writer.code.finish()


class ColumnWriter(Writer):
    """What kernels with columns have in common: parameters, and going from row to row.

    Attributes:
        columns: of a row.
        piece, panel: which of each a cube has.
        span: rows of the piece.
    """

    def __init__(self, group: Group, name: str, form: Form, units: int, places: DType) -> None:
        super().__init__(group, name, form, units, places)
        code = self.code
        panels, self.columns = code.place("panels"), code.place("columns")
        length, piece = code.place("length"), code.place("piece")
        self.offsets = dict(zip(self.arrays, code.places("offset", len(self.arrays)), strict=True))
        self.steps = dict(zip(self.arrays, code.places("step", len(self.arrays)), strict=True))
        self.hops, self.bases = {}, {}
        cube = code.special("cube_pos")
        self.piece = cube // panels
        self.panel = cube - self.piece * panels
        start = self.piece * piece
        self.span = (start, (start + piece).call("min", length))

    def go(self, number: Val | None) -> None:
        """Go to a row, or to where no array has more than one."""
        for k, mode in zip(self.arrays, self.form.inner, strict=True):
            base = self.offsets[k]
            self.bases[k] = base if number is None else base + number * self.steps[k]
            if mode == "0":
                self.row[-1 - k] = self.arrays[k][self.bases[k]]
        self.start = self.code.at(0) if number is None else number * self.columns


class _Columns(ColumnWriter):
    form: ColumnForm

    def __init__(self, group: Group, form: ColumnForm) -> None:
        super().__init__(group, "columns", form, 1, form.places)
        # The last panel may overlap the one before: both write the same.
        wide = LANES * form.panel
        self.column = (self.panel * wide).call("min", self.columns - wide)

    @contextmanager
    def present(self) -> Iterator[None]:
        """Every unit has columns."""
        yield

    def _at(self, n: int) -> At:
        return At(self, self.column + n * LANES, LANES, True)

    def body(self) -> None:
        """Write the kernel."""
        code, form, group = self.code, self.form, self.group
        reducers = [(p, joining(r) if form.join else r) for p, r in folds(group)]
        specs = [Spec(*r, first_value(r.op, r.acc), 1, 0, form.places) for _, r in reducers]
        states = [[Lanes(code, s, LANES) for s in specs] for _ in range(form.panel)]
        with code.loop(*self.span) as k:
            self.go(k)
            if not form.join:
                self.draws.scratch(self.start + self.column, code.at(LANES * form.panel))
            for n, lanes in enumerate(states):
                at = self._at(n)
                values = Values(self, at, 0)
                for (p, r), lane in zip(reducers, lanes, strict=True):
                    if form.join:
                        (value,) = at.load(self.states[p], self.start, None)
                    else:
                        (value,) = values.of(group.parts[p].inputs[0])
                    lane.step(element(value, r), None)
                if not form.join:
                    self.store(values)
        self.go(self.piece if form.cut else None)
        for n, lanes in enumerate(states):
            at = self._at(n)
            if form.cut:
                for (p, _), lane in zip(reducers, lanes, strict=True):
                    at.store(self.states[p], self.start, [lane.get()])
                continue
            known = {
                p: [lane.get().cast(r.out)] for (p, r), lane in zip(reducers, lanes, strict=True)
            }
            values = Values(self, at, 1, known=known)
            for p, out in self.outs.items():
                if group.parts[p].form != "full":
                    at.store(out, self.start, values.of(p))
