"""Groups of elementwise operations as one kernel: the code generation of fusion.

Every operation rounds to its dtype inside the kernel too, so a group gives the bits that its
operations give one by one. The kernel's form is that of `kernels/elementwise.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from burn_backend import LEAVES, Fused, Group
from burn_cube import Kernel
from burn_cube_backend.code import Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.fused_calls import GroupKernels
from burn_cube_backend.fused_views import VIEWS, Geometry, Path, Reading, Walks
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    dense as row_major,
    is_last,
    size_of,
)
from burn_cube_backend.kernels.copies import is_turned
from burn_cube_backend.kernels.elementwise import (
    COMPUTED,
    COSTLY,
    TOUCHED,
    Form,
    Lines,
    Writer,
    laid,
)
from burn_cube_backend.kernels.maps import copied, plain, result_strides, wide
from burn_cube_backend.part_code import expression, part_numbers, part_value
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.random_code import Draws, What, is_whole
from burn_cube_backend.scalar_code import costly


class Launch(NamedTuple):
    """A kernel for tensors of one layout, but for their addresses.

    Attributes:
        program: the compiled kernel, None where there is no element.
        cubes: the grid.
        results: shape and strides of each.
        elements: of each result.
        head: arguments before the offsets of the arrays, `tail` those behind.
        deltas: added to the offsets of the arrays.
        cost: work of a cube, 0 where the runtime knows it.
        turned: arrays that are copied first, by number: what of their memory is read.
    """

    program: Any
    cubes: tuple[int, int, int]
    results: tuple[tuple[Ints, Ints], ...]
    elements: int
    head: Ints
    tail: Ints
    deltas: Ints
    cost: float = 0.0
    turned: tuple[tuple[int, Ints, Ints, int], ...] = ()


def fused_kernel(group: Group, form: Form) -> Kernel:
    """Write the kernel of a group.

    Its numbers are those of outside tensors, of parts, and of random numbers. A tensor is an array
    for each way through views by which it is read.
    """
    writer = _Writer(group, form)
    writer.body()
    return writer.code.finish()


class _Writer(Writer):
    def __init__(self, group: Group, form: Form) -> None:
        names = [p.name for p in group.parts if p.name != "full"]
        self.group = group
        self.reading = Reading(group)
        super().__init__(
            "_".join(["fused", *names[:6]]),
            form,
            [group.parts[p].dtype for p in group.outputs],
            {(k, path): group.outside[k] for k, path, _ in self.reading.reads if not form.bare[k]},
        )
        code = self.code
        self.given = {
            k: code.scalar(f"n{k}", wide(t)) for k, t in enumerate(group.outside) if form.bare[k]
        }
        self.numbers = part_numbers(code, group.parts, form.absent)
        self.draws = Draws(code, form.drawn)

    def at_piece(self, first: Val, count: Val) -> None:
        self.draws.scratch(first, count)

    def at_place(self, place: Val) -> None:
        self.draws.near(place)

    def at_vector(self, number: Val) -> None:
        self.draws.vector(number, self.wide)

    def at_lane(self, lane: int) -> None:
        self.draws.go(lane)

    def values(self, loads: Mapping[Any, Val]) -> list[Val]:
        outside = {k: number.cast(self.group.outside[k]) for k, number in self.given.items()}
        made: dict[Any, Val] = {}

        def value(ref: int, path: Path) -> Val:
            if ref < 0:
                return outside[-1 - ref] if -1 - ref in outside else loads[-1 - ref, path]
            part = self.group.parts[ref]
            if part.name in VIEWS:
                return value(part.inputs[0] or 0, (*path, ref))
            found = made.get((ref, path))
            if found is None:
                given = [None if i is None else value(i, path) for i in part.inputs]
                found = made[ref, path] = (
                    self.draws.value(ref)
                    if part.name in LEAVES
                    else part_value(self.code, part, given, self.numbers[ref])
                )
            return found

        return [value(p, path) for p, path in self.reading.outputs]


class FusedMap(GroupKernels):
    """The kernels of one group on one device.

    Args:
        engine: the device.
        group: what they compute.
        apart: the same by several kernels; None where one kernel always does.
    """

    def __init__(self, engine: Engine, group: Group, apart: Fused | None = None) -> None:
        super().__init__(engine, group, apart, VIEWS)
        self.reading = Reading(group)
        # Work of an element as the runtime of the processor counts it.
        maps = [p.name for p in group.parts if p.name not in (*VIEWS, *LEAVES, "full")]
        self.cost = TOUCHED * (len(self.reading.reads) + len(group.outputs))
        self.cost += sum(COMPUTED + COSTLY * costly(expression(name)) for name in maps)

    def _arrays(self, tensors: Sequence[CubeTensor]) -> list[CubeTensor]:
        """Return the tensor of each read that is no number."""
        arrays = [tensors[read.outside] for read in self.reading.reads]
        return [x for x in arrays if x.buf is not None]

    def _started(
        self, launch: Launch, tensors: Sequence[CubeTensor], given: Sequence[Any],
        drawn: Sequence[Any],
    ) -> tuple[CubeTensor, ...]:  # fmt: skip
        """Start a kernel and return its results; see `start`."""
        engine, group = self.engine, self.group
        flats = [engine.flat(launch.elements, group.parts[p].dtype) for p in group.outputs]
        bare = [x for x in tensors if x.buf is None]
        self.start(launch, flats, bare, self._arrays(tensors), given, drawn)
        return tuple(
            [
                CubeTensor(flat, *result, group.parts[p].dtype)
                for flat, result, p in zip(flats, launch.results, group.outputs, strict=True)
            ]
        )

    def start(
        self, launch: Launch, flats: Sequence[Any], bare: Sequence[CubeTensor],
        arrays: Sequence[CubeTensor], given: Sequence[Any], drawn: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        """Start a kernel.

        Args:
            launch: the kernel.
            flats: memory of the results.
            bare: tensors from outside that are numbers.
            arrays: the tensor of each read.
            given: run-time numbers.
            drawn: arguments of random numbers.
        """
        engine = self.engine
        if launch.turned:
            arrays = list(arrays)
            for k, shape, strides, delta in launch.turned:
                x = arrays[k]
                arrays[k] = copied(engine, x.view(shape, strides, x.offset + delta))
        if launch.program is not None:
            words: list[Any] = [*flats, *[x.buf for x in arrays]]
            words += [plain(x.value, x.dtype.kind) for x in bare]
            words += self.part_numbers(given)
            words += [*drawn, *launch.head]
            words += [x.offset + d for x, d in zip(arrays, launch.deltas, strict=True)]
            words += launch.tail
            if launch.cost and hasattr(launch.program, "cost"):
                launch.program.cost = launch.cost
            engine.start(launch.program, launch.cubes, words)

    def _planned(
        self, tensors: Sequence[CubeTensor], absent: tuple[bool, ...], targets: Sequence[Ints],
        drawn: What,
    ) -> Launch | None:  # fmt: skip
        shape = broadcast_shape([*targets, *[x.shape for x in tensors]])
        arrays, results = self._arrays(tensors), len(self.group.outputs)
        lines = [broadcast_strides(x.shape, x.strides, shape) for x in arrays]
        # The number of a place is drawn by where it stands, not where it lies.
        own = row_major(shape) if drawn else result_strides(self.engine, shape, lines)
        owns = (own,) * results
        if results > 1 and is_last(shape, own):
            # One that nothing with channels last goes into lies in rows.
            geometry = Geometry(self.engine, self.reading, tensors, {})
            owns = tuple([geometry.own(p) for p in self.group.outputs])
        walks = Walks(
            shape, lines, (0,) * len(arrays), [*owns], (0,) * results, (shape,) * results, owns
        )
        if not drawn and is_last(shape, own):
            walks = walks.in_order()
        return self.launch_on(walks, arrays, tuple([x.buf is None for x in tensors]), absent, drawn)

    def launch_on(
        self, walks: Walks, arrays: Sequence[CubeTensor], bare: tuple[bool, ...],
        absent: tuple[bool, ...], drawn: What = (),
    ) -> Launch | None:  # fmt: skip
        """Choose the kernel; None where random numbers would be drawn in vain.

        Args:
            walks: where everything lies.
            arrays: the tensor of each read.
            bare: which outside tensors are numbers.
            absent: which run-time numbers are None.
            drawn: random numbers among the parts.
        """
        engine, group, shape = self.engine, self.group, walks.shape
        count, own = size_of(shape), row_major(shape)
        shapes = tuple(zip(walks.shapes, walks.lies, strict=True))
        if not count:
            return Launch(None, (0, 1, 1), shapes, 0, (), (), ())
        turned = tuple(
            (k, shape, strides, walks.deltas[k])
            for k, strides in enumerate(walks.arrays)
            if is_turned(engine, shape, strides)
        )
        copies = {k for k, *_ in turned}
        places = enumerate(zip(arrays, walks.deltas, strict=True))
        # A copy of what lies across begins at a place of its own.
        firsts = tuple(0 if k in copies else x.offset + delta for k, (x, delta) in places)
        lines = [own if k in copies else s for k, s in enumerate(walks.arrays)]
        deltas = tuple(0 if k in copies else delta for k, delta in enumerate(walks.deltas))
        dtypes = [group.parts[p].dtype for p in group.outputs]
        # A processor draws the numbers of a piece at once, a unit of a GPU those of its vector.
        space = Lines(shape, walks.outs, walks.starts, lines, firsts)
        how = laid(engine, space, dtypes, arrays, pieces=bool(drawn))
        if engine.client.properties.kind != "cpu" and not is_whole(drawn, how.form.width):
            return None
        form = how.form._replace(bare=bare, absent=absent, drawn=drawn)
        program = engine.loaded(fused_kernel, (group, form))
        return Launch(
            program, how.cubes, shapes, count, how.head, how.tail, deltas, self.cost * how.each,
            turned,
        )  # fmt: skip


class FusedViews(FusedMap):
    """The kernels of one group with views on one device."""

    def _planned(
        self, tensors: Sequence[CubeTensor], absent: tuple[bool, ...], targets: Sequence[Ints],
        drawn: What,
    ) -> Launch | None:  # fmt: skip
        values = iter(targets)
        extents = {
            k: tuple(next(values) for _ in range(part.numbers))
            for k, part in enumerate(self.group.parts)
            if part.name in VIEWS
        }
        walks = Geometry(self.engine, self.reading, tensors, extents).walks()
        bare = tuple([x.buf is None for x in tensors])
        return None if walks is None else self.launch_on(walks, self._arrays(tensors), bare, absent)
