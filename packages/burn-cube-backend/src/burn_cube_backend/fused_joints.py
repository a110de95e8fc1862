"""Elementwise groups with `cat` and the like inside: a kernel for each window of the results.

The results have one shape. It is cut into boxes in which every joint shows one piece, so that in a
box all is elementwise over windows of the outside tensors: a group of its own, which a kernel
computes and writes into its window. A box in which a result is nothing but a window of an outside
tensor is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from burn_backend import JOINTS, Fused, Group, Part
from burn_cube_backend.engine import FAR, Engine
from burn_cube_backend.fused import FusedMap, Launch
from burn_cube_backend.fused_views import SHORT, SMALL, VIEWS, Walks, shown
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    collapse,
    dense,
    is_last,
    size_of,
)
from burn_cube_backend.kernels.maps import write
from burn_cube_backend.payload import CubeTensor
from burn_std import DType, dtypes as d

# Boxes of one shape, at most: each is a launch.
MOST_BOXES = 8


class Box(NamedTuple):
    """A window of a shape.

    Attributes:
        starts: its first place along each dim.
        shape: its extents.
    """

    starts: Ints
    shape: Ints

    def moved(self, dim: int, by: int) -> Box:
        """Return the box somewhere else along a dim."""
        starts = (*self.starts[:dim], self.starts[dim] + by, *self.starts[dim + 1 :])
        return Box(starts, self.shape)

    def of(self, x: CubeTensor) -> CubeTensor:
        """Return the window of a tensor."""
        at = x.offset + sum(a * s for a, s in zip(self.starts, x.strides, strict=True))
        return x.view(self.shape, x.strides, at)

    def cut(self, dim: int, at: int) -> tuple[Box, Box]:
        """Return the parts before and behind so many places of a dim."""
        before, behind = list(self.shape), list(self.shape)
        before[dim], behind[dim] = at, self.shape[dim] - at
        return Box(self.starts, tuple(before)), self._replace(shape=tuple(behind)).moved(dim, at)


class _Cut(Exception):
    """A joint shows two pieces in a box: `at` places along `dim` are of the first."""

    def __init__(self, dim: int, at: int) -> None:
        self.dim = dim
        self.at = at


class _Apart(Exception):
    """The group runs apart."""


class Written(NamedTuple):
    """A kernel that writes a box of some results.

    Attributes:
        kernel: the kernels of what it computes.
        launch: the kernel.
        sources: the outside tensor of each array; `bare` those that are numbers.
        numbers: where each run-time number is, or itself.
        outputs: the results that it writes.
    """

    kernel: FusedMap
    launch: Launch
    sources: tuple[int, ...]
    bare: tuple[int, ...]
    numbers: tuple[tuple[bool, Any], ...]
    outputs: tuple[int, ...]


class Copied(NamedTuple):
    """A box of a result that is a window of an outside tensor.

    Attributes:
        output: the result.
        box: where.
        source: the outside tensor.
        shape, strides, delta: the window: what is added to the offset.
    """

    output: int
    box: Box
    source: int
    shape: Ints
    strides: Ints
    delta: int


class Plan(NamedTuple):
    """How a group runs on tensors of one layout.

    Attributes:
        shape: of the results.
        work: what is launched.
    """

    shape: Ints
    work: tuple[Written | Copied, ...]


class FusedJoints:
    """The kernels of one group with joints on one device.

    Args:
        engine: the device.
        group: what they compute.
        apart: the same by other kernels.

    Attributes:
        parted: the last call ran apart.
    """

    def __init__(self, engine: Engine, group: Group, apart: Fused) -> None:
        self.engine = engine
        self.group = group
        self.apart = apart
        self.parted = False
        self.inputs = len(group.outside)
        # Places of the run-time values of each part, and of those that are extents.
        self.places: list[range] = []
        self.extents: list[int] = []
        at = 0
        for part in group.parts:
            self.places.append(range(at, at + part.numbers))
            at += part.numbers
            if part.name in (*VIEWS, *JOINTS):
                self.extents += self.places[-1]
            elif part.name == "full" and part.numbers == 2:
                self.extents.append(self.places[-1][0])
        self.shown = frozenset(self.extents)
        self.made: dict[Group, FusedMap] = {}
        self.plans: dict[Any, Plan | None] = {}

    def __call__(self, *args: Any) -> tuple[CubeTensor, ...]:
        """Compute the group: payloads from outside, then run-time values."""
        engine, group = self.engine, self.group
        tensors, given = args[: self.inputs], args[self.inputs :]
        layouts = tuple(
            [None if x.buf is None else x.layout or engine.layout_of(x) for x in tensors]
        )
        absent = tuple([v is None for v in given])
        key = (layouts, absent, tuple([given[k] for k in self.extents]))
        plan = self.plans.get(key, _UNKNOWN)
        if plan is _UNKNOWN:
            if len(self.plans) >= 1024:
                self.plans.clear()
            try:
                plan = _Planning(self, tensors, given).plan()
            except _Apart:
                plan = None
            self.plans[key] = plan
        self.parted = plan is None
        if plan is None:
            return self.apart(*args)
        outs = [engine.empty(plan.shape, group.parts[p].dtype) for p in group.outputs]
        for work in plan.work:
            if isinstance(work, Copied):
                x = tensors[work.source]
                seen = x.view(work.shape, work.strides, x.offset + work.delta)
                write(engine, work.box.of(outs[work.output]), seen)
                continue
            work.kernel.start(
                work.launch,
                [outs[k].buf for k in work.outputs],
                [tensors[k] for k in work.bare],
                [tensors[k] for k in work.sources],
                [given[v] if placed else v for placed, v in work.numbers],
            )
        return tuple(outs)

    def kernel(self, group: Group) -> FusedMap:
        """Return the kernels of what a box has."""
        found = self.made.get(group)
        if found is None:
            found = self.made[group] = FusedMap(self.engine, group)
        return found


_UNKNOWN: Any = object()


class _Planning:
    """Finds the boxes of a group on tensors of one layout, and what is computed in each."""

    def __init__(
        self, fused: FusedJoints, tensors: Sequence[CubeTensor], given: Sequence[Any]
    ) -> None:
        self.fused = fused
        self.engine = fused.engine
        self.group = fused.group
        self.tensors = tensors
        self.values = [tuple([given[k] for k in places]) for places in fused.places]
        self.given = given
        self.shapes: list[Ints] = []
        for k, part in enumerate(self.group.parts):
            self.shapes.append(self._shape(k, part))

    def plan(self) -> Plan:
        """Return how the group runs.

        Raises:
            _Apart: as its parts.
        """
        shape = self.shapes[self.group.outputs[0]]
        if any(self.shapes[p] != shape for p in self.group.outputs) or size_of(shape) > FAR:
            raise _Apart
        # Alone, operations on such images give such images.
        if self.engine.keeps_last and any(is_last(x.shape, x.strides) for x in self.tensors):
            raise _Apart
        done: list[Written | Copied] = []
        waiting = [Box((0,) * len(shape), shape)]
        boxes = 0
        while waiting:
            box = waiting.pop()
            if not size_of(box.shape):
                continue
            try:
                pieces = _Pieces(self, box)
            except _Cut as cut:
                waiting += reversed(box.cut(cut.dim, cut.at))
                continue
            boxes += 1
            if boxes > MOST_BOXES:
                raise _Apart
            done += pieces.work(dense(shape))
        return Plan(shape, tuple(done))

    def _shape(self, k: int, part: Part) -> Ints:
        """Return the shape of a part."""
        values = self.values[k]
        if part.name == "full":
            return tuple(values[0]) if part.numbers == 2 else ()
        inputs = [self.shape_of(i) for i in part.inputs if i is not None]
        if part.name == "cat":
            dim = part.static[0]
            return tuple(
                sum(s[a] for s in inputs) if a == dim else n for a, n in enumerate(inputs[0])
            )
        if part.name == "slice_assign":
            return inputs[0]
        if part.name == "slice_backward":
            return tuple(values[2])
        if part.name in VIEWS:
            seen = self.seen(k, CubeTensor(None, inputs[0], dense(inputs[0]), d.uint8))
            return seen.shape
        return broadcast_shape(inputs)

    def shape_of(self, ref: int) -> Ints:
        """Return the shape of a part or of an outside tensor."""
        return self.tensors[-1 - ref].shape if ref < 0 else self.shapes[ref]

    def seen(self, k: int, x: CubeTensor) -> CubeTensor:
        """Return what a view shows of memory."""
        found = shown(self.engine, self.group.parts[k], self.values[k], x)
        if found is None:
            raise _Apart
        return found


class _Pieces:
    """What is computed in one box: the parts of its group, made from the outputs on.

    Raises:
        _Cut: a joint shows two pieces.
    """

    def __init__(self, planning: _Planning, box: Box) -> None:
        self.planning = planning
        self.box = box
        self.parts: list[Part] = []
        self.numbers: list[tuple[bool, Any]] = []
        self.sources: list[tuple[int, CubeTensor]] = []
        self._placed: dict[Any, int] = {}
        self.results = [self._of(p, box, ()) for p in planning.group.outputs]

    def _of(self, ref: int, box: Box, views: tuple[int, ...]) -> int:
        """Return a part, or an outside tensor as -1 - number, for a value in a box.

        Args:
            ref: the value.
            box: a window of what the views show of it.
            views: the last one first.
        """
        if ref < 0:
            x = self.planning.tensors[-1 - ref]
            return self._outside(-1 - ref, x, box, views)
        part = self.planning.group.parts[ref]
        if part.name == "full":
            return self._number(ref, part)
        if part.name in VIEWS:
            (source,) = part.inputs
            assert source is not None  # noqa: S101 - a view has an input
            return self._of(source, box, (*views, ref))
        if part.name in JOINTS:
            if views:
                raise _Apart
            return self._joined(ref, part, box)
        key = (ref, box, views)
        found = self._placed.get(key)
        if found is None:
            shape = self.planning.shapes[ref]
            inputs = [None if i is None else self._read(i, shape, box, views) for i in part.inputs]
            numbers = [(True, k) for k in self.planning.fused.places[ref]]
            found = self._placed[key] = self._add(part._replace(inputs=tuple(inputs)), numbers)
        return found

    def _read(self, ref: int, shape: Ints, box: Box, views: tuple[int, ...]) -> int:
        """Return what an elementwise part of a shape reads of a value."""
        if ref < 0:
            x = self.planning.tensors[-1 - ref]
            if x.buf is not None:
                x = x.view(shape, broadcast_strides(x.shape, x.strides, shape))
            return self._outside(-1 - ref, x, box, views)
        if self.planning.group.parts[ref].name != "full" and self.planning.shapes[ref] != shape:
            raise _Apart
        return self._of(ref, box, views)

    def _add(self, part: Part, numbers: Sequence[tuple[bool, Any]]) -> int:
        self.parts.append(part)
        self.numbers += numbers
        return len(self.parts) - 1

    def _number(self, ref: int, part: Part) -> int:
        """Return the part that is a number."""
        found = self._placed.get(ref)
        if found is None:
            place = self.planning.fused.places[ref][-1]
            made = Part("full", (), part.static[:1], 1, part.lead, part.dtype)
            found = self._placed[ref] = self._add(made, [(True, place)])
        return found

    def _zero(self, dtype: DType) -> int:
        found = self._placed.get(dtype)
        if found is None:
            part = Part("full", (), (dtype,), 1, dtype, dtype)
            found = self._placed[dtype] = self._add(part, [(False, 0)])
        return found

    def _outside(self, k: int, x: CubeTensor, box: Box, views: tuple[int, ...]) -> int:
        """Return the window of an outside tensor, as -1 - number."""
        if x.buf is not None:
            for view in reversed(views):
                x = self.planning.seen(view, x)
            x = box.of(x)
        key = (k, x.shape, x.strides, x.offset)
        found = self._placed.get(key)
        if found is None:
            self.sources.append((k, x))
            found = self._placed[key] = -len(self.sources)
        return found

    def _joined(self, ref: int, part: Part, box: Box) -> int:
        """Return the piece that a joint shows in a box."""
        inputs = [i for i in part.inputs if i is not None]
        if part.name == "cat":
            dim, at = part.static[0], 0
            first = box.starts[dim]
            for i in inputs:
                behind = at + self.planning.shape_of(i)[dim]
                if first < behind:
                    if first + box.shape[dim] > behind:
                        raise _Cut(dim, behind - first)
                    return self._of(i, box.moved(dim, -at), ())
                at = behind
            raise AssertionError("a box lies in its shape")
        starts, stops = self.planning.values[ref][:2]
        inside, beside = (inputs[1], inputs[0]) if len(inputs) > 1 else (inputs[0], None)
        window = tuple(max(b - a, 0) for a, b in zip(starts, stops, strict=True))
        met = all(
            max(a, s) < min(b, s + n)
            for a, b, s, n in zip(starts, stops, box.starts, box.shape, strict=True)
        )
        if not met:
            return self._zero(part.dtype) if beside is None else self._of(beside, box, ())
        for dim, (a, b) in enumerate(zip(starts, stops, strict=True)):
            for edge in (a, b):
                if box.starts[dim] < edge < box.starts[dim] + box.shape[dim]:
                    raise _Cut(dim, edge - box.starts[dim])
        for dim, a in enumerate(starts):
            box = box.moved(dim, -a)
        return self._read(inside, window, box, ())

    def work(self, strides: Ints) -> list[Written | Copied]:
        """Return what is launched for the box.

        Args:
            strides: of the results.
        """
        planning, box = self.planning, self.box
        group = planning.group
        done: list[Written | Copied] = []
        outputs: list[tuple[int, int]] = []
        plain = all(r < 0 and self.sources[-1 - r][1].buf is not None for r in self.results)
        for k, ref in enumerate(self.results):
            part = group.parts[group.outputs[k]]
            if plain:
                source, x = self.sources[-1 - ref]
                delta = x.offset - planning.tensors[source].offset
                done.append(Copied(k, box, source, x.shape, x.strides, delta))
                continue
            if ref < 0 or any(r == ref for r, _ in outputs):
                same = Part("cast", (ref,), (part.dtype,), 0, part.dtype, part.dtype)
                ref = self._add(same, [])
            outputs.append((ref, k))
        if not outputs:
            return done
        dtypes = tuple(group.outside[k] for k, _ in self.sources)
        kernel = planning.fused.kernel(
            Group(tuple(self.parts), dtypes, tuple(ref for ref, _ in outputs))
        )
        arrays = [(k, x) for k, x in self.sources if x.buf is not None]
        start = sum(a * s for a, s in zip(box.starts, strides, strict=True))
        many = len(outputs)
        walks = Walks(
            box.shape, [x.strides for _, x in arrays],
            tuple(x.offset - planning.tensors[k].offset for k, x in arrays), [strides] * many,
            (start,) * many, (box.shape,) * many, (strides,) * many,
        )  # fmt: skip
        if kernel.reading.costly and self._is_ragged(walks):
            raise _Apart
        bare = tuple([x.buf is None for _, x in self.sources])
        absent = tuple([placed and planning.given[v] is None for placed, v in self.numbers])
        launch = kernel.launch_on(walks, [planning.tensors[k] for k, _ in arrays], bare, absent)
        assert launch is not None  # noqa: S101 - nothing is drawn
        done.append(
            Written(
                kernel, launch, tuple(k for k, _ in arrays),
                tuple(k for k, x in self.sources if x.buf is None), tuple(self.numbers),
                tuple(k for _, k in outputs),
            )
        )  # fmt: skip
        return done

    def _is_ragged(self, walks: Walks) -> bool:
        """Return whether costly functions would fill a processor's vectors badly."""
        if self.planning.engine.client.properties.kind != "cpu" or size_of(walks.shape) < SMALL:
            return False
        extents, _ = collapse(walks.shape, [*walks.outs, *walks.arrays])
        return extents[-1] < SHORT
