"""Groups with columns as one kernel, or apart where a reduction goes another way."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from burn_cube_backend.code import UNITS
from burn_cube_backend.column_code import ColumnForm, column_kernel
from burn_cube_backend.fused_rows import FusedRows, Launch, Stage
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    collapse,
    dense,
)
from burn_cube_backend.kernels import reduce_cpu, reduce_gpu
from burn_cube_backend.kernels.reduce_gpu import Panels
from burn_cube_backend.panel_code import PanelForm, panel_kernel
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.random_code import What
from burn_cube_backend.row_code import folds, stored
from burn_std import DType

# Shared memory that the states of a cube may take.
ROOM = 32 << 10


class _Columns(NamedTuple):
    """How the tensors of a group lie: columns side by side, rows below one another.

    Attributes:
        shape: of what is full.
        length, columns: what it comes to.
        hops: how far the rows of each outside tensor are apart, by its number.
        modes: stride of each along a row, 0 or 1.
        places: dtype of places.
        bare: which outside tensors are numbers.
        absent: which run-time values are None, or no numbers.
        drawn: random numbers among the parts.
    """

    shape: Ints
    length: int
    columns: int
    hops: dict[int, int]
    modes: tuple[str, ...]
    places: DType
    bare: tuple[bool, ...]
    absent: tuple[bool, ...]
    drawn: What


class FusedColumns(FusedRows):
    """The kernels of one group with columns on one device."""

    def _way_of(
        self, tensors: Sequence[CubeTensor], absent: tuple[bool, ...], targets: Sequence[Ints],
        drawn: What,
    ) -> Launch | None:  # fmt: skip
        client = self.engine.client
        lying = self._lying(tensors, absent, targets, drawn)
        if lying is None or not self.order.splits:
            return None
        if client.name == "cpu" and client.properties.kind == "cpu":
            return self._down(lying)
        return self._panels(lying) if client.properties.kind == "gpu" else None

    def _lying(
        self, tensors: Sequence[CubeTensor], absent: tuple[bool, ...], targets: Sequence[Ints],
        drawn: What,
    ) -> _Columns | None:  # fmt: skip
        """Return how tensors lie, None where rows or columns have gaps."""
        dims = -self.group.rows
        shape = broadcast_shape([*[x.shape for x in tensors], *targets])
        outer, inner = shape[:dims], shape[dims:]
        length, columns = prod(outer), prod(inner)
        if length < 2 or columns < 2 or not self._agrees(tensors, shape):
            return None
        arrays = [k for k, x in enumerate(tensors) if x.buf is not None]
        walks = [broadcast_strides(tensors[k].shape, tensors[k].strides, shape) for k in arrays]
        rows, steps = collapse(outer, [w[:dims] for w in walks])
        line, hops = collapse(inner, [w[dims:] for w in walks])
        if len(rows) != 1 or len(line) != 1 or any(h[0] not in (0, 1) for h in hops):
            return None
        for k, (hop,), (step,) in zip(arrays, hops, steps, strict=True):
            if k in self.direct and (hop != 1 or step == 1):
                return None
        places = self.engine.index_dtype(*[tensors[k] for k in arrays], count=length * columns)
        return _Columns(
            shape, length, columns, {k: s[0] for k, s in zip(arrays, steps, strict=True)},
            tuple("01"[h[0]] for h in hops), places, tuple([x.buf is None for x in tensors]),
            absent, drawn,
        )  # fmt: skip

    def _launch(self, c: _Columns, stages: list[Stage], states: int) -> Launch:
        dims = -self.group.rows
        inner, ones = c.shape[dims:], (1,) * dims
        results = {
            "full": (c.length * c.columns, c.shape, dense(c.shape)),
            "kept": (c.columns, ones + inner, dense(ones + inner)),
            "cut": (c.columns, inner, dense(inner)),
        }
        outs = tuple(results[self.group.parts[p].form] for p in self.group.outputs)
        return Launch(tuple(stages), outs, states, (), tuple(c.hops.values()))

    def _down(self, c: _Columns) -> Launch | None:
        """Return how units of a processor walk down."""
        if c.columns < reduce_cpu.LANES:
            return None
        threads: int = self.engine.client.runtime.threads  # type: ignore[attr-defined]  # of this
        panel, panels = reduce_cpu.panels_of(c.columns)
        pieces, piece = reduce_cpu.column_pieces_of(threads, panels, c.length)
        form = ColumnForm(panel, c.places, c.bare, c.absent, c.modes, pieces > 1, drawn=c.drawn)
        stages = [self._column_stage(form, panels, (c.columns, c.length, piece), pieces)]
        if pieces > 1:
            form = form._replace(cut=False, join=True)
            stages.append(self._column_stage(form, panels, (c.columns, pieces, pieces), 1))
        return self._launch(c, stages, c.columns * pieces if pieces > 1 else 0)

    def _column_stage(self, form: ColumnForm, panels: int, sizes: Ints, pieces: int) -> Stage:
        program = self.engine.loaded(column_kernel, (self.group, form))
        cost = self._cost(sizes[2] * form.panel * reduce_cpu.LANES)
        stores = tuple(self.group.outputs.index(p) for p in stored(self.group, form))
        return Stage(program, (panels * pieces, 1, 1), cost, (panels, *sizes), stores)

    def _panels(self, c: _Columns) -> Launch | None:
        """Return how cubes of a GPU take panels, None where reductions alone take several ways."""
        how = self._panels_of(c, c.length, False)
        if how is None or c.drawn:
            return None
        form = PanelForm(how.width, how.across, c.places, c.bare, c.absent, c.modes, how.pieces > 1)
        stages = [self._panel_stage(form, how, (c.columns, c.length, how.piece))]
        if how.pieces > 1:
            join = self._panels_of(c, how.pieces, True)
            if join is None or join.pieces > 1:
                return None
            form = form._replace(width=join.width, across=join.across, cut=False, join=True)
            stages.append(self._panel_stage(form, join, (c.columns, how.pieces, how.pieces)))
        return self._launch(c, stages, c.columns * how.pieces if how.pieces > 1 else 0)

    def _panels_of(self, c: _Columns, length: int, states: bool) -> Panels | None:
        """Return the panels of all reductions, None where they differ or have no room."""
        engine, group = self.engine, self.group
        found: set[Panels] = set()
        room = 0
        for p, r in folds(group):
            (source,) = group.parts[p].inputs
            hop = c.columns
            # A tensor from outside is reduced as it lies, what is computed lies row by row.
            if source is not None and source < 0 and not states:
                hop = c.hops[-1 - source]
            width = reduce_gpu.width_of(reduce_gpu.halves(r)[1] if states else r)
            found.add(reduce_gpu.panels_of(engine, width, c.columns, hop, 1, length))
            room += r.acc.itemsize
        if len(found) != 1:
            return None
        (how,) = found
        # With one unit below another these meet in shared memory.
        return how if room * how.width * UNITS <= ROOM else None

    def _panel_stage(self, form: PanelForm, how: Panels, sizes: Ints) -> Stage:
        program = self.engine.loaded(panel_kernel, (self.group, form))
        stores = tuple(self.group.outputs.index(p) for p in stored(self.group, form))
        return Stage(program, (how.panels * how.pieces, 1, 1), 1.0, (how.panels, *sizes), stores)
