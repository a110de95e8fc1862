"""Elementwise groups with views inside: which elements are read where, and over what is walked.

A view changes the strides with which memory is read, so an outside tensor is one array of the
kernel for each way through views by which it is asked for, and a result that stands before views is
written through them. The kernel may run over any space from which the others are seen whole: the
one is taken in which most memory is walked in ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from burn_backend import LEAVES, Group, Part
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    collapse,
    dense,
    is_last,
    reshaped,
    size_of,
)
from burn_cube_backend.kernels.maps import result_strides
from burn_cube_backend.part_code import expression
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.scalar_code import costly
from burn_std import dtypes as d

# Views by their number, the last one first: from where a kernel is to where something lies.
Path = tuple[int, ...]
VIEWS = frozenset(
    ("permute", "reshape", "squeeze", "unsqueeze", "flip", "slice", "select", "expand")
)
# Views from whose result the input is not seen whole, or not once.
_ONE_WAY = ("slice", "select", "expand")
# Elements below which no walk is too slow to save a launch.
SMALL = 1 << 14
# Elements that a processor needs in a row to compute in whole vectors.
SHORT = 32


class Read(NamedTuple):
    """An array of a kernel: an outside tensor, the views it is read through, a part that reads."""

    outside: int
    path: Path
    reader: int


class Reading:
    """What a kernel computes where.

    Attributes:
        reads: its arrays, and numbers among them.
        outputs: the results with the views by which they are seen.
        costly: it computes exponentials or the like.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.views = frozenset(k for k, p in enumerate(group.parts) if p.name in VIEWS)
        maps = [p.name for p in group.parts if p.name not in (*VIEWS, *LEAVES, "full")]
        self.costly = any(costly(expression(name)) for name in maps)
        through = group.through or ((),) * len(group.outputs)
        self.outputs = tuple(zip(group.outputs, through, strict=True))
        self.reads: list[Read] = []
        if not self.views:
            self.reads = [Read(k, (), 0) for k in range(len(group.outside))]
            return
        self._seen: set[tuple[int, Path]] = set()
        for p, path in self.outputs:
            self._visit(p, path, p)

    def _visit(self, ref: int | None, path: Path, reader: int) -> None:
        if ref is None or (ref, path) in self._seen:
            return
        self._seen.add((ref, path))
        if ref < 0:
            self.reads.append(Read(-1 - ref, path, reader))
        elif ref in self.views:
            self._visit(self.group.parts[ref].inputs[0], (*path, ref), ref)
        else:
            for i in self.group.parts[ref].inputs:
                self._visit(i, path, ref)

    @property
    def spaces(self) -> list[Path]:
        """The ways to where a kernel could run: to every place from which all is seen whole."""
        found: dict[Path, None] = {(): None}
        for read in self.reads:
            ways = {other.path for other in self.reads if other.outside == read.outside}
            for n in range(1, len(read.path) + 1 if len(ways) == 1 else 0):
                if self.group.parts[read.path[n - 1]].name in _ONE_WAY:
                    break
                found[read.path[:n]] = None
        return list(found)


class Walks(NamedTuple):
    """Where arrays and results lie, seen from the space over which a kernel runs.

    Attributes:
        shape: of that space.
        arrays: strides of each read that is no number, `deltas` what is added to its offset.
        outs: strides of each result, `starts` its first place, `shapes` its own shape, `lies` its
            own strides.
    """

    shape: Ints
    arrays: list[Ints]
    deltas: Ints
    outs: list[Ints]
    starts: Ints
    shapes: tuple[Ints, ...]
    lies: tuple[Ints, ...]

    def in_order(self) -> Walks:
        """Return the same over the dims in the order in which the first result lies in memory."""
        order = sorted(range(len(self.shape)), key=lambda k: -self.outs[0][k])

        def sort(values: Ints) -> Ints:
            return tuple(values[k] for k in order)

        return self._replace(
            shape=sort(self.shape), arrays=[sort(x) for x in self.arrays],
            outs=[sort(x) for x in self.outs],
        )  # fmt: skip


class Geometry:
    """The shapes and strides of a group on tensors of one layout.

    Args:
        engine: the device.
        reading: the group.
        tensors: from outside.
        given: run-time values of each part that is a view.
    """

    def __init__(
        self, engine: Engine, reading: Reading, tensors: Sequence[CubeTensor],
        given: dict[int, tuple[Any, ...]],
    ) -> None:  # fmt: skip
        self.engine = engine
        self.reading = reading
        self.tensors = tensors
        self.given = given
        self.shapes: list[Ints] = []
        # How each part would lie alone, see `result_strides`.
        self.lies: list[Ints] = []
        for k, part in enumerate(reading.group.parts):
            shape, strides = self._lying(k, part)
            self.shapes.append(shape)
            self.lies.append(strides)

    def _lying(self, k: int, part: Part) -> tuple[Ints, Ints]:
        """Return shape and strides of a part."""
        refs = [i for i in part.inputs if i is not None]
        inputs = [self.shape_of(i) for i in refs]
        if k not in self.reading.views:
            shape = broadcast_shape(inputs)
            given = zip(inputs, map(self._strides_of, refs), strict=True)
            walks = [broadcast_strides(own, strides, shape) for own, strides in given]
            return shape, result_strides(self.engine, shape, walks)
        if self.engine.keeps_last:
            seen = self._through(k, CubeTensor(None, inputs[0], self._strides_of(refs[0]), d.uint8))
            if seen is not None:
                return seen.shape, seen.strides
        seen = self._through(k, CubeTensor(None, inputs[0], dense(inputs[0]), d.uint8))
        assert seen is not None  # noqa: S101 - dense memory has a view of any kind
        return seen.shape, dense(seen.shape)

    def _strides_of(self, ref: int) -> Ints:
        return self.tensors[-1 - ref].strides if ref < 0 else self.lies[ref]

    def shape_of(self, ref: int) -> Ints:
        """Return the shape of a part or of an outside tensor."""
        return self.tensors[-1 - ref].shape if ref < 0 else self.shapes[ref]

    def _through(self, k: int, x: CubeTensor) -> CubeTensor | None:
        """Return what a view shows of memory, None where it would have to copy."""
        return shown(self.engine, self.reading.group.parts[k], self.given[k], x)

    def _before(self, k: int, x: CubeTensor) -> CubeTensor | None:
        """Return the memory of a view's result as the view's input."""
        part = self.reading.group.parts[k]
        if part.name == "flip":
            return self._through(k, x)
        if part.name == "permute":
            dims = part.static[0]
            back = tuple(sorted(range(len(dims)), key=dims.__getitem__))
            return _shown("permute")(self.engine, x, back)
        (source,) = part.inputs
        assert source is not None  # noqa: S101 - a view has an input
        shape = self.shape_of(source)
        strides = reshaped(x.shape, x.strides, shape)
        return None if strides is None else x.view(shape, strides)

    def _seen(self, x: CubeTensor, path: Path, where: Path) -> CubeTensor | None:
        """Return memory that lies behind `path` as it is seen from `where`."""
        common = 0
        for a, b in zip(path, where, strict=False):
            if a != b:
                break
            common += 1
        seen: CubeTensor | None = x
        for k in reversed(path[common:]):
            seen = None if seen is None else self._through(k, seen)
        for k in where[common:]:
            seen = None if seen is None else self._before(k, seen)
        return seen

    def _walks(self, where: Path) -> Walks | None:
        arrays: list[CubeTensor | None] = []
        offsets = []
        for read in self.reading.reads:
            x = self.tensors[read.outside]
            if x.buf is None:
                continue
            if read.reader not in self.reading.views:
                shape = self.shapes[read.reader]
                x = x.view(shape, broadcast_strides(x.shape, x.strides, shape))
            arrays.append(self._seen(x, read.path, where))
            offsets.append(x.offset)
        outs = []
        for p, path in self.reading.outputs:
            own = CubeTensor(None, self.shapes[p], self.own(p), d.uint8)
            outs.append(self._seen(own, path, where))
        seen = [x for x in (*arrays, *outs) if x is not None]
        if len(seen) < len(arrays) + len(outs):
            return None
        shape = seen[-1].shape
        made = Walks(
            shape,
            [x.strides for x in seen[: len(arrays)]],
            tuple(x.offset - o for x, o in zip(seen, offsets, strict=False)),
            [x.strides for x in seen[len(arrays) :]],
            tuple(x.offset for x in seen[len(arrays) :]),
            tuple(self.shapes[p] for p, _ in self.reading.outputs),
            tuple(self.own(p) for p, _ in self.reading.outputs),
        )
        first, _ = self.reading.outputs[0]
        return made.in_order() if is_last(self.shapes[first], self.own(first)) else made

    def own(self, p: int) -> Ints:
        """Return the strides of a result."""
        shape = self.shapes[p]
        return self.lies[p] if is_last(shape, self.lies[p]) else dense(shape)

    def walks(self) -> Walks | None:
        """Return the best walks, None where several kernels are faster or have to copy."""
        best, least = None, (0, 0)
        for where in self.reading.spaces:
            found = self._walks(where)
            if found is None:
                continue
            hops = _hops(found)
            if best is None or hops < least:
                best, least = found, hops
        if best is None or size_of(best.shape) < SMALL:
            return best
        # With a kernel for each side of a view one array is read across, and the first kernel might
        # compute in whole vectors.
        return None if least > (0, 1) or self._is_ragged(best) else best

    def _is_ragged(self, walks: Walks) -> bool:
        """Return whether costly functions would fill a processor's vectors badly."""
        if self.engine.client.properties.kind != "cpu" or not self.reading.costly:
            return False
        extents, merged = collapse(walks.shape, [*walks.outs, *walks.arrays])
        return extents[-1] < SHORT and (len(extents) > 1 or any(m[-1] != 1 for m in merged))


def _hops(walks: Walks) -> tuple[int, int]:
    """Return how many results and arrays are not walked in ones; results cannot be copied first."""
    _, merged = collapse(walks.shape, [*walks.outs, *walks.arrays])
    hops = [m[-1] not in (0, 1) for m in merged]
    return sum(hops[: len(walks.outs)]), sum(hops[len(walks.outs) :])


def shown(
    engine: Engine, part: Part, given: Sequence[Any], x: CubeTensor
) -> CubeTensor | None:  # fmt: skip
    """Return what a view shows of memory, None where it would have to copy.

    Args:
        engine: the device.
        part: the view.
        given: its run-time values.
        x: its input.
    """
    if part.name == "reshape":
        strides = reshaped(x.shape, x.strides, given[0])
        return None if strides is None else x.view(given[0], strides)
    return _shown(part.name)(engine, x, *part.static, *given)


def _shown(name: str) -> Callable[..., CubeTensor]:
    from burn_cube_backend.kernels import views

    shown: dict[str, Callable[..., CubeTensor]] = {
        "permute": views.permute, "squeeze": views.squeeze, "unsqueeze": views.unsqueeze,
        "flip": views.flip, "slice": views.slice_, "select": views.select,
        "expand": views.expand,
    }  # fmt: skip
    return shown[name]
