"""Groups with columns as one kernel on a processor, or apart where a reduction goes another way."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from burn_cube_backend.column_code import ColumnForm, column_kernel
from burn_cube_backend.fused_rows import FusedRows, Launch, Stage
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    collapse,
    dense,
)
from burn_cube_backend.kernels import reduce_cpu
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.random_code import What
from burn_cube_backend.row_code import stored


class FusedColumns(FusedRows):
    """The kernels of one group with columns on one device."""

    def _planned(
        self, tensors: Sequence[CubeTensor], absent: tuple[bool, ...], targets: Sequence[Ints],
        drawn: What,
    ) -> Launch | None:  # fmt: skip
        engine, group, dims = self.engine, self.group, -self.group.rows
        client = engine.client
        shape = broadcast_shape([*[x.shape for x in tensors], *targets])
        outer, inner = shape[:dims], shape[dims:]
        length, columns = prod(outer), prod(inner)
        if client.name != "cpu" or length < 2 or columns < reduce_cpu.LANES:
            return None
        if not self._agrees(tensors, shape) or not self.order.splits:
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
        index = engine.index_dtype(*[tensors[k] for k in arrays], count=length * columns)
        threads: int = client.runtime.threads  # type: ignore[attr-defined]  # of this runtime
        panel, panels = reduce_cpu.panels_of(columns)
        pieces, piece = reduce_cpu.column_pieces_of(threads, panels, length)
        bare = tuple([x.buf is None for x in tensors])
        modes = tuple("01"[h[0]] for h in hops)
        form = ColumnForm(panel, index, bare, absent, modes, pieces > 1, drawn=drawn)
        stages = [self._column_stage(form, panels, (columns, length, piece), pieces)]
        if pieces > 1:
            form = form._replace(cut=False, join=True)
            stages.append(self._column_stage(form, panels, (columns, pieces, pieces), 1))
        ones = (1,) * dims
        results = {
            "full": (length * columns, shape, dense(shape)),
            "kept": (columns, ones + inner, dense(ones + inner)),
            "cut": (columns, inner, dense(inner)),
        }
        return Launch(
            tuple(stages),
            tuple(results[group.parts[p].form] for p in group.outputs),
            columns * pieces if pieces > 1 else 0,
            (),
            tuple(s[0] for s in steps),
        )

    def _column_stage(self, form: ColumnForm, panels: int, sizes: Ints, pieces: int) -> Stage:
        program = self.engine.loaded(column_kernel, (self.group, form))
        cost = self._cost(sizes[2] * form.panel * reduce_cpu.LANES)
        stores = tuple(self.group.outputs.index(p) for p in stored(self.group, form))
        return Stage(program, (panels * pieces, 1, 1), cost, (panels, *sizes), stores)
