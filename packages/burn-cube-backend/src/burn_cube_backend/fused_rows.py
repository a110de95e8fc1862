"""Groups with rows as one kernel, or apart where that is faster or keeps the bits.

A sum has the bits that its own kernel gives, so rows are walked in that kernel's order. Where it
would take another way (a row cut in pieces, columns, dims that do not merge), and where there are
too few rows for the device, the group runs apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from burn_backend import Fused, Group
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    collapse,
    dense,
)
from burn_cube_backend.kernels import reduce, reduce_cpu, reduce_gpu
from burn_cube_backend.kernels.create import wrapped
from burn_cube_backend.kernels.maps import plain
from burn_cube_backend.kernels.reduction import Reducer
from burn_cube_backend.kernels.row_walks import Walk
from burn_cube_backend.part_code import expression
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.row_code import (
    VIEWS,
    Order,
    RowForm,
    is_costly,
    reducer_of,
    row_kernel,
)
from burn_std import DType

# Rows up to this length get a kernel of their own on a processor.
KNOWN = 64
# Elements up to which one thread does what it would take several to share.
ALONE = 1 << 13
# What the runtime counts for an element: to read or write it, to compute it, if that is costly.
TOUCHED, COMPUTED, COSTLY = 0.3, 0.15, 1.0


class Launch(NamedTuple):
    """A kernel for tensors of one layout, but for their addresses.

    Attributes:
        program: the compiled kernel.
        cubes: the grid.
        cost: work of a cube.
        results: elements, shape and strides of each.
        sites: places of faults.
        head: arguments before the offsets of the arrays, `tail` those behind.
    """

    program: Any
    cubes: tuple[int, int, int]
    cost: float
    results: tuple[tuple[int, Ints, Ints], ...]
    sites: Ints
    head: Ints
    tail: Ints


class FusedRows:
    """The kernels of one group with rows on one device.

    Args:
        engine: the device.
        group: what they compute.
        apart: the same by several kernels.
    """

    def __init__(self, engine: Engine, group: Group, apart: Fused) -> None:
        self.engine = engine
        self.group = group
        self.apart = apart
        self.inputs = len(group.outside)
        self.order = Order(group)
        # How a number is given: as an element of a dtype first, if it stands for a tensor.
        self.numbers: list[tuple[DType, bool] | None] = []
        self.targets: list[int] = []
        for part in group.parts:
            for _ in range(part.numbers):
                if part.name == "expand":
                    self.targets.append(len(self.numbers))
                number = (part.static[0] if part.name == "full" else part.lead, part.name == "full")
                self.numbers.append(None if part.name in VIEWS else number)
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
        self.launches: dict[Any, Launch | None] = {}

    def __call__(self, *args: Any) -> tuple[CubeTensor, ...]:
        """Compute the group: payloads from outside, then run-time values."""
        engine, group = self.engine, self.group
        tensors, given = args[: self.inputs], args[self.inputs :]
        layouts = tuple(
            [None if x.buf is None else x.layout or engine.layout_of(x) for x in tensors]
        )
        absent = tuple([v is None or n is None for v, n in zip(given, self.numbers, strict=True)])
        targets = tuple([given[k] for k in self.targets])
        key = (layouts, absent, targets)
        if key in self.launches:
            launch = self.launches[key]
        else:
            if len(self.launches) >= 1024:
                self.launches.clear()
            launch = self.launches[key] = self._planned(tensors, absent, targets)
        if launch is None:
            return self.apart(*args)  # type: ignore[no-any-return]
        outs = [
            engine.flat(n, group.parts[p].dtype)
            for (n, _, _), p in zip(launch.results, group.outputs, strict=True)
        ]
        arrays = [x for x in tensors if x.buf is not None]
        words: list[Any] = [*outs, *[x.buf for x in arrays]]
        words += [
            plain(x.value, t.kind)
            for x, t in zip(tensors, group.outside, strict=True)
            if x.buf is None
        ]
        for value, number in zip(given, self.numbers, strict=True):
            if value is not None and number is not None:
                dtype, whole = number
                words.append(plain(wrapped(value, dtype) if whole else value, dtype.kind))
        if launch.sites:
            words += [engine.record(), *launch.sites]
        words += launch.head
        words += [x.offset for x in arrays]
        words += launch.tail
        if hasattr(launch.program, "cost"):
            launch.program.cost = launch.cost
        engine.start(launch.program, launch.cubes, words)
        return tuple(
            [
                CubeTensor(flat, shape, strides, group.parts[p].dtype)
                for flat, p, (_, shape, strides) in zip(
                    outs, group.outputs, launch.results, strict=True
                )
            ]
        )

    def _planned(
        self, tensors: Sequence[CubeTensor], absent: tuple[bool, ...], targets: Sequence[Ints]
    ) -> Launch | None:
        """Return how one kernel computes the group, None where it runs apart."""
        engine, group, dims = self.engine, self.group, self.group.rows
        ones = (1,) * dims
        shapes = [
            x.shape + ones if cut else x.shape for x, cut in zip(tensors, group.cut, strict=True)
        ]
        shape = broadcast_shape([*shapes, *targets])
        outer, inner = shape[:-dims], shape[-dims:]
        rows, length = prod(outer), prod(inner)
        if not rows or length < 2 or not self._agrees(tensors, shape):
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
        index = engine.index_dtype(*[tensors[k] for k in arrays], count=rows * length)
        walk = self._walk(rows, length, index)
        if walk is None:
            return None
        modes = tuple("01"[hop[k]] if hop[k] in (0, 1) else "n" for k in arrays)
        bare = tuple([x.buf is None for x in tensors])
        form = RowForm(walk, bare, absent, modes, len(extents))
        program = engine.loaded(row_kernel, (group, form))
        tail = extents + tuple(s for w in steps for s in w)
        tail += tuple(hop[k] for k, mode in zip(arrays, modes, strict=True) if mode == "n")
        results = {
            "full": (rows * length, shape, dense(shape)),
            "kept": (rows, outer + ones, dense(outer + ones)),
            "cut": (rows, outer, dense(outer)),
        }
        last = len(shape) - 1
        sites = tuple(engine.site("gather", last, length) for _ in self.picks)
        return Launch(
            program, (walk.cubes(rows), 1, 1), self._cost(length),
            tuple(results[group.parts[p].form] for p in group.outputs),
            sites, (rows, length), tail,
        )  # fmt: skip

    def _agrees(self, tensors: Sequence[CubeTensor], shape: Ints) -> bool:
        """Return whether tensors that are read whole have the group's shape."""
        for part in self.group.parts:
            if reducer_of(part) is None and part.name != "gather":
                continue
            for i, wanted in zip(part.inputs, (shape, (*shape[:-1], 1)), strict=False):
                if i is not None and i < 0 and tensors[-1 - i].shape != wanted:
                    return False
        return True

    def _cost(self, length: int) -> float:
        """Return the work of a row as the runtime counts it."""
        work = 0.0
        for walk in range(self.order.walks()):
            parts = self.order.computed(walk)
            costly = sum(is_costly(expression(self.group.parts[p].name)) for p in parts)
            touched = len(self.order.wanted(walk)) + 1
            work += TOUCHED * touched + COMPUTED * len(parts) + COSTLY * costly
        return max(1.0, work * length)

    def _walk(self, rows: int, length: int, index: DType) -> Walk | None:
        """Return how the rows are walked, None where each reduction alone takes another way."""
        engine = self.engine
        client = engine.client
        if client.properties.kind == "gpu":
            return self._gpu_walk(rows, length, index)
        if client.name == "cpu":
            threads: int = client.runtime.threads  # type: ignore[attr-defined]  # of this runtime
            few = rows < 2 * threads
            if few and length // reduce_cpu.PIECE > 1:
                return None
            if rows < threads and rows * length > ALONE:
                return None
            return Walk("lanes", index, length if length <= KNOWN else 0)
        if length < reduce.LONG or rows > reduce.MANY:
            return Walk("unit", index)
        pieces = -(-length // reduce.PIECE)
        if pieces == 1 or rows * pieces > reduce.MANY:
            return Walk("cube", index)
        return None

    def _gpu_walk(self, rows: int, length: int, index: DType) -> Walk | None:
        widths = {reduce_gpu.width_of(r) for r in self.reducers if not _is_exact(r)}
        widths = widths or {reduce_gpu.width_of(r) for r in self.reducers} or {4}
        if len(widths) > 1 and any(not _is_exact(r) for r in self.reducers):
            return None
        width = min(widths)
        if length <= reduce_gpu.SHORT:
            across = reduce_gpu.across_of(length, width)
            return Walk("plane", index, 0, width if length >= width else 1, across)
        if reduce_gpu.pieces_of(self.engine, rows, length, width) > 1:
            return None
        return Walk("block", index, 0, width)


def _is_exact(r: Reducer) -> bool:
    """Return whether a reduction has the same bits in every order."""
    return not r.acc.is_float
