"""Groups around softmax or a norm as one kernel, or apart where that is faster."""

from __future__ import annotations

from collections.abc import Sequence

from burn_backend import LEAVES, Fused, Group
from burn_cube_backend.core_code import CoreForm, Rooms, core_kernel, core_of
from burn_cube_backend.engine import Engine
from burn_cube_backend.fused_rows import ALONE, Launch, RowKernels, Stage
from burn_cube_backend.geometry import Ints
from burn_cube_backend.kernels.elementwise import COMPUTED, COSTLY, PIECE, TOUCHED
from burn_cube_backend.kernels.rows import layout
from burn_cube_backend.part_code import expression
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.random_code import What
from burn_cube_backend.scalar_code import costly


class FusedCores(RowKernels):
    """The kernels of one group around softmax or a norm on one device."""

    def __init__(self, engine: Engine, group: Group, apart: Fused) -> None:
        super().__init__(engine, group, apart)
        self.core = core_of(group)
        part = group.parts[self.core]
        # What its own kernel reads as it lies.
        self.direct = {-1 - i for i in part.inputs if i is not None and i < 0}
        maps = [p for k, p in enumerate(group.parts)
                if k != self.core and p.name not in ("full", "output", *LEAVES)]  # fmt: skip
        again = 1 if Rooms(group).source is not None else 3
        functions = 1 + again * sum(costly(expression(p.name)) for p in maps)
        self.work = COSTLY * functions + COMPUTED * again * len(maps)
        self.work += TOUCHED * (3 + len(group.outside) + len(group.outputs))

    def _agrees(self, tensors: Sequence[CubeTensor], shape: Ints) -> bool:
        part, dims = self.group.parts[self.core], self.group.rows
        wanted = (shape, shape[-dims:], shape[-dims:])
        return all(
            i is None or i >= 0 or (tensors[-1 - i].shape == s and tensors[-1 - i].buf is not None)
            for i, s in zip(part.inputs, wanted, strict=False)
        )

    def _way_of(
        self, tensors: Sequence[CubeTensor], absent: tuple[bool, ...], targets: Sequence[Ints],
        drawn: What,
    ) -> Launch | None:  # fmt: skip
        engine, group = self.engine, self.group
        lines = self._lines(tensors, targets)
        if drawn and lines is not None and lines.length > PIECE:
            return None
        if lines is None or any(hop not in (0, 1) for hop in lines.hops.values()):
            return None
        rows, length = lines.rows, lines.length
        work = self.work * length
        if engine.client.name == "cpu":
            threads: int = engine.client.runtime.threads  # type: ignore[attr-defined]
            # What stands around has more threads alone.
            if rows < threads and rows * work > ALONE:
                return None
        count = rows * length
        index = engine.index_dtype(*[tensors[k] for k in lines.arrays], count=count)
        how = layout(engine, length, index)
        bare = tuple([x.buf is None for x in tensors])
        modes = tuple(str(lines.hops[k]) for k in lines.arrays)
        form = CoreForm(how, bare, absent, modes, len(lines.extents), drawn=drawn)
        program = engine.loaded(core_kernel, (group, form))
        results = lines.results(group.rows)
        stage = Stage(program, (rows, 1, 1), work, (length,), tuple(range(len(group.outputs))))
        return Launch(
            (stage,),
            tuple(results[group.parts[p].form] for p in group.outputs),
            0,
            (),
            lines.extents + tuple(s for w in lines.steps for s in w),
        )
