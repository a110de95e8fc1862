"""Groups with rows as one kernel, or apart where that is faster or keeps the bits.

A sum has the bits that its own kernel gives, so rows are walked in that kernel's order. Where it
would take another way (a row cut in pieces, columns, dims that do not merge), and where there are
too few rows for the device, the group runs apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from burn_backend import STAGED, Fused, Group
from burn_cube_backend.engine import Engine
from burn_cube_backend.fused_calls import GroupKernels
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    collapse,
    dense,
    is_last,
)
from burn_cube_backend.kernels import reduce, reduce_cpu, reduce_gpu
from burn_cube_backend.kernels.elementwise import COMPUTED, COSTLY, PIECE, TOUCHED
from burn_cube_backend.kernels.reduction import Reducer
from burn_cube_backend.kernels.row_walks import Walk
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.random_code import What
from burn_cube_backend.row_code import (
    Order,
    RowForm,
    functions,
    is_fold,
    is_map,
    joining,
    reducer_of,
    row_kernel,
    stored,
)
from burn_std import DType

# Rows up to this length get a kernel of their own on a processor, if there are several: a single
# one gains nothing, and is often as long as a batch, of which every size would compile again.
KNOWN = 64
# Work, as the runtime of the processor counts it, that is worth more than one thread.
ALONE = 120_000.0
# In costly functions of one element, in vectors: the same for those behind the last whole vector of
# a row, alone or in a vector that is put together; what another kernel costs for a row, for an
# element, and for a launch.
SCALAR, PADDED, PER_ROW, PER_ELEMENT, PER_LAUNCH = 6, 24, 7.0, 0.4, 6000.0


class Stage(NamedTuple):
    """One kernel for tensors of one layout, but for their addresses.

    Attributes:
        program: the compiled kernel.
        cubes: the grid.
        cost: work of a cube.
        head: arguments before the offsets of the arrays.
        stored: results that it writes, by their number.
    """

    program: Any
    cubes: tuple[int, int, int]
    cost: float
    head: Ints
    stored: Ints


class Launch(NamedTuple):
    """How a group runs for tensors of one layout.

    Attributes:
        stages: one kernel, or two where rows are in pieces.
        results: elements, shape and strides of each.
        states: pieces of all rows, if there are any.
        sites: places of faults.
        tail: arguments behind the offsets of the arrays.
    """

    stages: tuple[Stage, ...]
    results: tuple[tuple[int, Ints, Ints], ...]
    states: int
    sites: Ints
    tail: Ints


# Views whose extents no other tensor of the group shows.
_SIZED = frozenset(("expand",))


class Way(NamedTuple):
    """How rows are walked: at once, or in pieces and then along their states."""

    walk: Walk
    pieces: int = 1
    piece: int = 0
    join: Walk | None = None


class Lines(NamedTuple):
    """How the tensors of a group lie along rows.

    Attributes:
        shape: of what is full; `rows` and `length` what it comes to.
        arrays: numbers of the tensors that are no numbers.
        hops: stride of each along a row, by number.
        extents: of the rows' dims, merged.
        steps: strides of each array along them.
    """

    shape: Ints
    rows: int
    length: int
    arrays: list[int]
    hops: dict[int, int]
    extents: Ints
    steps: list[Ints]

    def results(self, dims: int) -> dict[str, tuple[int, Ints, Ints]]:
        """Return elements, shape and strides of a result by its form."""
        outer, ones = self.shape[:-dims], (1,) * dims
        return {
            "full": (self.rows * self.length, self.shape, dense(self.shape)),
            "kept": (self.rows, outer + ones, dense(outer + ones)),
            "cut": (self.rows, outer, dense(outer)),
        }


class RowKernels(GroupKernels):
    """The kernels of one group with rows on one device.

    Args:
        engine: the device.
        group: what they compute.
        apart: the same by several kernels.
    """

    def __init__(self, engine: Engine, group: Group, apart: Fused) -> None:
        super().__init__(engine, group, apart, _SIZED)
        self.reducers = [r for p in group.parts if (r := reducer_of(p)) is not None]
        # Outside tensors that are reduced as they lie, or read at an index.
        self.direct = {
            -1 - i
            for p in group.parts
            if reducer_of(p) is not None
            for i in p.inputs
            if i is not None and i < 0
        }
        self.picks = [p for p in group.parts if p.name == "gather"]

    def _started(
        self, launch: Launch, tensors: Sequence[CubeTensor], given: Sequence[Any],
        drawn: Sequence[Any],
    ) -> tuple[CubeTensor, ...]:  # fmt: skip
        engine, group = self.engine, self.group
        outs = [
            engine.flat(n, group.parts[p].dtype)
            for (n, _, _), p in zip(launch.results, group.outputs, strict=True)
        ]
        arrays = [x for x in tensors if x.buf is not None]
        states = [engine.flat(launch.states, r.acc) for r in self.reducers if launch.states]
        words: list[Any] = [*states, *[x.buf for x in arrays]]
        words += self.outside_numbers(tensors)
        words += self.part_numbers(given)
        words += drawn
        if launch.sites:
            words += [engine.record(), *launch.sites]
        last = [*[x.offset for x in arrays], *launch.tail]
        for stage in launch.stages:
            if hasattr(stage.program, "cost"):
                stage.program.cost = stage.cost
            stored = [outs[k] for k in stage.stored]
            engine.start(stage.program, stage.cubes, [*stored, *words, *stage.head, *last])
        return tuple(
            [
                CubeTensor(flat, shape, strides, group.parts[p].dtype)
                for flat, p, (_, shape, strides) in zip(
                    outs, group.outputs, launch.results, strict=True
                )
            ]
        )

    def _planned(
        self, tensors: Sequence[CubeTensor], absent: tuple[bool, ...], targets: Sequence[Ints],
        drawn: What,
    ) -> Launch | None:  # fmt: skip
        if drawn and self.engine.client.name != "cpu":
            return None
        return self._way_of(tensors, absent, targets, drawn)

    def _way_of(
        self, tensors: Sequence[CubeTensor], absent: tuple[bool, ...], targets: Sequence[Ints],
        drawn: What,
    ) -> Launch | None:  # fmt: skip
        """Return what `_planned` does, where random numbers can be drawn."""
        raise NotImplementedError

    def _lines(self, tensors: Sequence[CubeTensor], targets: Sequence[Ints]) -> Lines | None:
        """Return how tensors lie along rows, None where these are no lines."""
        group, dims = self.group, self.group.rows
        ones = (1,) * dims
        shapes = [
            x.shape + ones if cut else x.shape for x, cut in zip(tensors, group.cut, strict=True)
        ]
        shape = broadcast_shape([*shapes, *targets])
        outer, inner = shape[:-dims], shape[-dims:]
        rows, length = prod(outer), prod(inner)
        if not rows or length < 2 or not self._agrees(tensors, shape):
            return None
        # Alone, operations on such images give such images, and reduce them in that order.
        if self.engine.keeps_last and any(is_last(x.shape, x.strides) for x in tensors):
            return None
        arrays = [k for k, x in enumerate(tensors) if x.buf is not None]
        walks = []
        for k in arrays:
            strides = tensors[k].strides + ((0,) * dims if group.cut[k] else ())
            walks.append(broadcast_strides(shapes[k], strides, shape))
        merged, hops = collapse(inner, [w[-dims:] for w in walks])
        if len(merged) != 1:
            return None
        hop = {k: h[0] for k, h in zip(arrays, hops, strict=True)}
        if any(hop[k] != 1 for k in self.direct):
            return None
        extents, steps = collapse(outer, [w[:-dims] for w in walks])
        return Lines(shape, rows, length, arrays, hop, extents, steps)

    def _agrees(self, tensors: Sequence[CubeTensor], shape: Ints) -> bool:
        """Return whether tensors that are read whole have the group's shape."""
        for part in self.group.parts:
            if reducer_of(part) is None and part.name != "gather":
                continue
            for i, wanted in zip(part.inputs, (shape, (*shape[:-1], 1)), strict=False):
                if i is not None and i < 0 and tensors[-1 - i].shape != wanted:
                    return False
        return True


class FusedRows(RowKernels):
    """The kernels of one group with reductions of rows on one device."""

    def __init__(self, engine: Engine, group: Group, apart: Fused) -> None:
        super().__init__(engine, group, apart)
        self.order = Order(group)
        # Short rows go last where the first dim is reduced too.
        self.staged = any(part.static[-1:] == (STAGED,) for part in group.parts)
        # Costly functions of an element, and kernels, in one kernel and apart.
        count = [functions(p) for p in group.parts]
        order = self.order
        self.functions = sum(count[p] for w in range(order.walks()) for p in order.computed(w))
        self.functions_apart = sum(n for n, p in zip(count, group.parts, strict=True)
                                   if p.form == "full")  # fmt: skip
        maps = {(order.levels[k], p.form) for k, p in enumerate(group.parts) if is_map(p)}
        self.kernels = len(maps) + sum(is_fold(p) or p.name == "gather" for p in group.parts)

    def _way_of(
        self, tensors: Sequence[CubeTensor], absent: tuple[bool, ...], targets: Sequence[Ints],
        drawn: What,
    ) -> Launch | None:  # fmt: skip
        """Return how one kernel computes the group, None where it runs apart."""
        engine, group = self.engine, self.group
        lines = self._lines(tensors, targets)
        if lines is None:
            return None
        rows, length, arrays, hop = lines.rows, lines.length, lines.arrays, lines.hops
        extents, steps = lines.extents, lines.steps
        index = engine.index_dtype(*[tensors[k] for k in arrays], count=rows * length)
        way = self._way(rows, length, index)
        if self.staged and length < reduce_cpu.SHORT:
            return None
        if way is None or (drawn and (way.join is not None or length > PIECE)):
            return None
        modes = tuple("01"[hop[k]] if hop[k] in (0, 1) else "n" for k in arrays)
        bare = tuple([x.buf is None for x in tensors])
        form = RowForm(way.walk, bare, absent, modes, len(extents), drawn=drawn)
        stages = [self._stage(form, rows, length, (way.pieces, way.piece) if way.join else ())]
        if way.join is not None:
            form = form._replace(walk=way.join, join=True)
            stages.append(self._stage(form, rows, way.pieces, ()))
        tail = extents + tuple(s for w in steps for s in w)
        tail += tuple(hop[k] for k, mode in zip(arrays, modes, strict=True) if mode == "n")
        results = lines.results(group.rows)
        last = len(lines.shape) - 1
        return Launch(
            tuple(stages),
            tuple(results[group.parts[p].form] for p in group.outputs),
            rows * way.pieces if way.join else 0,
            tuple(engine.site("gather", last, length) for _ in self.picks),
            tail,
        )

    def _stage(self, form: RowForm, rows: int, length: int, cut: Ints) -> Stage:
        """Return the kernel of a form; `cut` is how many pieces a row has, and how long."""
        group = self.group
        program = self.engine.loaded(row_kernel, (group, form))
        count, extent = (rows * cut[0], cut[1]) if cut else (rows, length)
        cost = self._cost(extent) if not form.join else max(1.0, TOUCHED * extent)
        stores = tuple(group.outputs.index(p) for p in stored(group, form))
        return Stage(program, (form.walk.cubes(count), 1, 1), cost, (rows, length, *cut), stores)

    def _cost(self, length: int) -> float:
        """Return the work of a row as the runtime counts it."""
        work = COSTLY * self.functions
        for walk in range(self.order.walks()):
            touched = len(self.order.wanted(walk)) + 1
            work += TOUCHED * touched + COMPUTED * len(self.order.computed(walk))
        return max(1.0, work * length)

    def _way(self, rows: int, length: int, index: DType) -> Way | None:
        """Return how rows are walked, None where each reduction alone takes another way."""
        walk, pieces, piece = self._walk(rows, length, index, self.reducers)
        if walk is None or pieces == 1:
            return None if walk is None or self._slower(rows, length) else Way(walk)
        if not self.order.splits:
            return None
        again = [joining(r) for r in self.reducers]
        join, parts, _ = self._walk(rows, pieces, index, again)
        if join is None or parts > 1:
            return None
        return Way(walk._replace(cut=True), pieces, piece, join)

    def _slower(self, rows: int, length: int) -> bool:
        """Return whether several kernels are faster on a processor.

        They are where rows are too few for all threads, and where costly functions fill their
        vectors less than along a whole tensor, or are computed again.
        """
        client = self.engine.client
        if client.name != "cpu":
            return False
        threads: int = client.runtime.threads  # type: ignore[attr-defined]  # of this runtime
        if rows < threads and rows * self._cost(length) > ALONE:
            return True
        whole, rest = divmod(length, reduce_cpu.LANES)
        if rest:
            rest = PADDED if _known(rows, length) else SCALAR * rest
        here = self.functions * (whole * reduce_cpu.LANES + rest)
        more = self.kernels - 1
        apart = self.functions_apart * length + more * (PER_ROW + PER_ELEMENT * length)
        return rows * (here - apart) > more * PER_LAUNCH

    def _walk(
        self, rows: int, length: int, index: DType, reducers: Sequence[Reducer]
    ) -> tuple[Walk | None, int, int]:
        """Return how the kernels of reductions walk such rows, in how many pieces of what length.

        It is None where they differ.
        """
        engine = self.engine
        client = engine.client
        if client.properties.kind == "gpu":
            return self._gpu_walk(rows, length, index, reducers)
        if client.name == "cpu":
            threads: int = client.runtime.threads  # type: ignore[attr-defined]  # of this runtime
            pieces, piece = reduce_cpu.pieces_of(threads, rows, length)
            return Walk("lanes", index, _known(rows, length)), pieces, piece
        if length < reduce.LONG or rows > reduce.MANY:
            return Walk("unit", index), 1, length
        pieces = -(-length // reduce.PIECE)
        if pieces == 1 or rows * pieces > reduce.MANY:
            return Walk("cube", index), 1, length
        return Walk("cube", index), pieces, reduce.PIECE

    def _gpu_walk(
        self, rows: int, length: int, index: DType, reducers: Sequence[Reducer]
    ) -> tuple[Walk | None, int, int]:
        # What has the same bits in every order follows the others.
        widths = {
            reduce_gpu.width_of(r)
            for r in reducers
            if r.acc.is_float and not r.op.startswith("arg")
        }
        if len(widths) > 1:
            return None, 1, length
        width = min(widths or {reduce_gpu.width_of(r) for r in reducers})
        if length <= reduce_gpu.SHORT:
            across = reduce_gpu.across_of(length, width)
            return Walk("plane", index, 0, width if length >= width else 1, across), 1, length
        pieces, piece = reduce_gpu.pieces_of(self.engine, rows, length, width)
        return Walk("block", index, 0, width), pieces, piece


def _known(rows: int, length: int) -> int:
    """Return the length that a kernel on a processor is made for; 0 for any."""
    return length if length <= KNOWN and rows > 1 else 0
