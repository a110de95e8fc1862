"""Kernels of groups with columns on a GPU: a cube owns a panel, its units divide the rows.

Sums take the order of `reduce_gpu.column_kernel`. Rows in pieces take two kernels, as those of
`row_code` do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from burn_backend import Group
from burn_cube import Kernel
from burn_cube_backend.code import UNITS
from burn_cube_backend.column_code import ColumnWriter
from burn_cube_backend.kernels.reduce_gpu import meet_below
from burn_cube_backend.kernels.reduction import State, element
from burn_cube_backend.kernels.row_walks import At
from burn_cube_backend.random_code import What
from burn_cube_backend.row_code import Values, folds, joining
from burn_std import DType


class PanelForm(NamedTuple):
    """The form of a kernel with columns on a GPU; see `row_code.Form`.

    Attributes:
        width: neighbours that a unit takes at once.
        across: units that stand side by side.
        places: dtype of places.
    """

    width: int
    across: int
    places: DType
    bare: tuple[bool, ...]
    absent: tuple[bool, ...]
    inner: tuple[str, ...]
    cut: bool = False
    join: bool = False
    drawn: What = ()


def panel_kernel(group: Group, form: PanelForm) -> Kernel:
    """Write the kernel of a group with columns.

    Parameters are those of `column_code.column_kernel`.
    """
    writer = _Panels(group, form)
    writer.body()
    return writer.code.finish()


class _Panels(ColumnWriter):
    form: PanelForm

    def __init__(self, group: Group, form: PanelForm) -> None:
        super().__init__(group, "panels", form, UNITS, form.places)
        across, unit = form.across, self.code.special("unit_pos")
        self.down = unit // across
        column = (self.panel * across + unit % across) * form.width
        self.inside = column < self.columns
        # Units without columns read the first ones: all have to meet.
        self.at = At(self, self.inside.pick(column, 0), form.width)

    @contextmanager
    def present(self) -> Iterator[None]:
        """Run the block in the units that have columns."""
        with self.code.when(self.inside):
            yield

    def body(self) -> None:
        """Write the kernel."""
        code, form, group, at = self.code, self.form, self.group, self.at
        reducers = [(p, joining(r) if form.join else r) for p, r in folds(group)]
        states = [[State(code, r, form.places) for _ in range(form.width)] for _, r in reducers]
        start, stop = self.span
        with code.loop(start + self.down, stop, code.at(UNITS // form.across)) as k:
            self.go(k)
            values = Values(self, at, 0)
            for (p, r), lanes in zip(reducers, states, strict=True):
                if form.join:
                    taken = at.load(self.states[p], self.start, None)
                else:
                    taken = values.of(group.parts[p].inputs[0])
                for lane, value in zip(lanes, taken, strict=True):
                    lane.follow(element(value, r), k)
            if not form.join:
                self.store(values)
        for lanes in states:
            meet_below(code, lanes, form.across)
        with code.when(self.down.eq(0)):
            self.go(self.piece if form.cut else None)
            if form.cut:
                for (p, _), lanes in zip(reducers, states, strict=True):
                    at.store(self.states[p], self.start, [lane.found() for lane in lanes])
                return
            known = {
                p: [lane.found().cast(r.out) for lane in lanes]
                for (p, r), lanes in zip(reducers, states, strict=True)
            }
            values = Values(self, at, 1, known=known)
            for p, out in self.outs.items():
                if group.parts[p].form != "full":
                    at.store(out, self.start, values.of(p))
