"""Groups of elementwise operations as one kernel: the code generation of fusion.

Every operation rounds to its dtype inside the kernel too, so a group gives the bits that its
operations give one by one. A kernel has one of five forms: `dense` where all arrays are walked in
one stride, `wide` the same in vectors, `rows` on a processor for everything else (loops along the
last dim, so that a compiler sees strides of 0 and 1); on a GPU `lined`, vectors along the last dim
where every array is walked there in ones or not at all, and `strided` for what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from burn_backend import LEAVES, Fused, Group, Part
from burn_cube import Kernel, Vector
from burn_cube_backend.code import UNITS, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.fused_calls import GroupKernels
from burn_cube_backend.fused_rows import COMPUTED, COSTLY, TOUCHED
from burn_cube_backend.fused_views import VIEWS, Geometry, Path, Reading, Walks
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    collapse,
    dense as row_major,
    is_last,
    size_of,
)
from burn_cube_backend.kernels.copies import is_turned
from burn_cube_backend.kernels.maps import (
    PIECE,
    copied,
    result_strides,
    row_blocks,
    row_width,
    vector_width,
    wide,
)
from burn_cube_backend.part_code import expression, part_value
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.random_code import Draws, What, is_whole
from burn_cube_backend.row_code import costly
from burn_std import DType


class Form(NamedTuple):
    """What a kernel depends on beside the group.

    Attributes:
        kind: `dense`, `wide`, `rows`, `lined` or `strided`.
        bare: which outside tensors are numbers.
        absent: which run-time numbers are None.
        places: dtype of places.
        width: elements of a vector for `wide` and `lined`.
        rank: dims that are walked.
        inner: for `rows` and `lined`, the stride of each array along the last dim: 0, 1 or any; of
            the results first for `rows`.
        loose: results do not lie in the order in which they are walked.
        drawn: parts that are random numbers, by number, and what they are.
    """

    kind: str
    bare: tuple[bool, ...]
    absent: tuple[bool, ...]
    places: DType
    width: int = 1
    rank: int = 1
    inner: tuple[str, ...] = ()
    loose: bool = False
    drawn: What = ()


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

    Parameters are results, arrays, numbers of outside tensors, numbers of parts, those of random
    numbers, then counts, offsets of the arrays, first places of the results, extents and strides as
    far as the form has them. A tensor is an array for each way through views by which it is read.
    """
    writer = _Writer(group, form)
    writer.body()
    return writer.code.finish()


class _Writer:
    def __init__(self, group: Group, form: Form) -> None:
        names = [p.name for p in group.parts if p.name != "full"]
        units = 1 if form.kind == "rows" else UNITS
        code = self.code = Code("_".join(["fused", *names[:6]]), form.places, units)
        self.group, self.form = group, form
        self.wide = form.width if form.kind in ("wide", "lined") else 0
        self.outs = [self._buffer(f"out{k}", group.parts[p].dtype) for k, p in _numbered(group)]
        self.reading = Reading(group)
        reads = [r for r in enumerate(self.reading.reads) if not form.bare[r[1][0]]]
        modes = form.inner if form.kind == "lined" else ("",) * len(reads)
        # What stands still along a line is read as one element.
        self.still = {
            (k, path) for (_, (k, path, _)), m in zip(reads, modes, strict=True) if m == "0"
        }
        self.arrays = {
            (k, path): self._buffer(f"x{n}", group.outside[k], (k, path) in self.still)
            for n, (k, path, _) in reads
        }
        self.given = {
            k: code.scalar(f"n{k}", wide(t)) for k, t in enumerate(group.outside) if form.bare[k]
        }
        self.numbers: dict[tuple[int, int], Val | None] = {}
        absent = iter(form.absent)
        for p, part in enumerate(group.parts):
            for j in range(part.numbers):
                none = next(absent)
                kind = wide(part.lead)
                self.numbers[p, j] = None if none else code.scalar(f"s{p}_{j}", kind)
        self.draws = Draws(code, form.drawn)

    def _buffer(self, name: str, dtype: DType, single: bool = False) -> Any:
        if self.wide and not single:
            return self.code.b.buffer(name, Vector(dtype, self.wide))
        return self.code.buffer(name, dtype)

    def body(self) -> None:
        forms = {
            "dense": self._dense, "wide": self._wide, "rows": self._rows, "lined": self._lined,
            "strided": self._strided,
        }  # fmt: skip
        forms[self.form.kind]()

    def _dense(self) -> None:
        code = self.code
        count = code.place("count")
        offsets = code.places("offset", len(self.arrays))
        with code.each(count) as i:
            loads = {k: b[o + i] for (k, b), o in zip(self.arrays.items(), offsets, strict=True)}
            for out, value in zip(self.outs, self._values(loads), strict=True):
                out[i] = value

    def _wide(self) -> None:
        code, b, width = self.code, self.code.b, self.wide
        count = code.place("count")
        offsets = code.places("offset", len(self.arrays))
        each = code.at(width)
        with code.each(count // each) as i:
            rows = {
                k: b.load(x, (o // each + i).op)
                for (k, x), o in zip(self.arrays.items(), offsets, strict=True)
            }
            self._lanes(i, rows, {})

    def _lanes(self, i: Val, rows: dict[Any, Any], still: dict[Any, Val]) -> None:
        """Compute and store vector number i from vectors, and from what is one for all lanes."""
        code, b = self.code, self.code.b
        self.draws.vector(i, self.wide)
        lanes = []
        for lane in range(self.wide):
            self.draws.go(lane)
            loads = {k: Val(code, b.extract(row, lane)) for k, row in rows.items()}
            lanes.append(self._values(loads | still))
        for k, out in enumerate(self.outs):
            b.store(out, i.op, b.vector(*[values[k].op for values in lanes]))

    def _lined(self) -> None:
        code, rank = self.code, self.form.rank
        count = code.place("count")
        offsets = code.places("offset", len(self.arrays))
        # The last extent, and the strides of what is walked, count vectors.
        extents = code.places("extent", rank)
        strides = [code.places(f"stride{k}_", rank) for k in range(len(self.arrays))]
        each = code.at(self.wide)
        with code.each(count // each) as i:
            coords = code.coords(i, extents)
            rows: dict[Any, Any] = {}
            still: dict[Any, Val] = {}
            for (k, x), o, walk in zip(self.arrays.items(), offsets, strides, strict=True):
                if k in self.still:
                    still[k] = x[code.walk(o, coords, walk)]
                else:
                    rows[k] = code.b.load(x, code.walk(o // each, coords, walk).op)
            self._lanes(i, rows, still)

    def _rows(self) -> None:
        code, form = self.code, self.form
        length, rows, pieces, each = (code.place(p) for p in ("length", "rows", "pieces", "each"))
        offsets = code.places("offset", len(self.arrays))
        starts = self._starts()
        outer = form.rank - 1
        extents = code.places("extent", outer)
        lines = len(self.outs) + len(self.arrays)
        strides = [code.places(f"stride{k}_", outer) for k in range(lines)]
        steps = [
            code.place(f"step{k}") if mode == "n" else None for k, mode in enumerate(form.inner)
        ]
        cube = code.special("cube_pos")
        block = cube // pieces
        first = (cube - block * pieces) * PIECE
        last = (first + PIECE).call("min", length)
        below = ((block + 1) * each).call("min", rows)
        # A cube has several rows, or a piece of one.
        self.draws.scratch(
            block * each * length + first, (below - block * each - 1) * length + last - first
        )
        with code.loop(block * each, below) as row:
            self.at = row * length
            coords = code.coords(row, extents) if outer else []
            bases = [
                code.walk(at, coords, walk)
                for at, walk in zip([*starts, *offsets], strides, strict=True)
            ]
            self._row(bases, steps, first, last)

    def _row(
        self, bases: Sequence[Val], steps: Sequence[Val | None], first: Val, last: Val
    ) -> None:
        """Compute a piece of a row; bases are where its lines begin, results before arrays."""
        code, modes = self.code, self.form.inner
        results = len(self.outs)
        named = list(zip(self.arrays.items(), bases[results:], modes[results:], strict=True))
        same = {k: x[base] for (k, x), base, mode in named if mode == "0"}
        with code.loop(first, last, independent=True) as i:
            places = [
                base + (i if step is None else i * step)
                for base, step in zip(bases, steps, strict=True)
            ]
            loads = {
                k: same[k] if k in same else x[at]
                for ((k, x), _, _), at in zip(named, places[results:], strict=True)
            }
            self.draws.near(self.at + i)
            for out, at, value in zip(self.outs, places, self._values(loads), strict=False):
                out[at] = value

    def _starts(self) -> list[Val]:
        """Return the first place of each result."""
        if self.form.loose:
            return self.code.places("start", len(self.outs))
        return [self.code.at(0)] * len(self.outs)

    def _strided(self) -> None:
        code, rank, loose = self.code, self.form.rank, self.form.loose
        count = code.place("count")
        offsets = code.places("offset", len(self.arrays))
        starts = self._starts()
        extents = code.places("extent", rank)
        walks = [code.places(f"walk{k}_", rank) for k in range(len(self.outs) if loose else 0)]
        strides = [code.places(f"stride{k}_", rank) for k in range(len(self.arrays))]
        with code.each(count) as i:
            coords = code.coords(i, extents)
            loads = {
                k: x[code.walk(o, coords, walk)]
                for (k, x), o, walk in zip(self.arrays.items(), offsets, strides, strict=True)
            }
            places = [i] * len(self.outs)
            if loose:
                places = [code.walk(o, coords, w) for o, w in zip(starts, walks, strict=True)]
            for out, at, value in zip(self.outs, places, self._values(loads), strict=True):
                out[at] = value

    def _values(self, loads: dict[Any, Val]) -> list[Val]:
        """Return the wanted results of one element."""
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
                found = made[ref, path] = self._part(ref, part, given)
            return found

        return [value(p, path) for p, path in self.reading.outputs]

    def _part(self, p: int, part: Part, given: Sequence[Val | None]) -> Val:
        numbers = [self.numbers[p, j] for j in range(part.numbers)]
        if part.name == "full":
            (number,) = numbers
            assert number is not None  # noqa: S101 - a `full` has a number
            return number.cast(part.dtype)
        if part.name in LEAVES:
            return self.draws.value(p)
        return part_value(self.code, part, given, numbers)


def _numbered(group: Group) -> list[tuple[int, int]]:
    return list(enumerate(group.outputs))


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
        engine, group = self.engine, self.group
        arrays = self._arrays(tensors)
        flats = [engine.flat(launch.elements, group.parts[p].dtype) for p in group.outputs]
        for k, shape, strides, delta in launch.turned:
            x = arrays[k]
            arrays[k] = copied(engine, x.view(shape, strides, x.offset + delta))
        if launch.program is not None:
            words: list[Any] = [*flats, *[x.buf for x in arrays]]
            words += self.outside_numbers(tensors)
            words += self.part_numbers(given)
            words += [*drawn, *launch.head]
            words += [x.offset + d for x, d in zip(arrays, launch.deltas, strict=True)]
            words += launch.tail
            if launch.cost and hasattr(launch.program, "cost"):
                launch.program.cost = launch.cost
            engine.start(launch.program, launch.cubes, words)
        return tuple(
            [
                CubeTensor(flat, *result, group.parts[p].dtype)
                for flat, result, p in zip(flats, launch.results, group.outputs, strict=True)
            ]
        )

    def _planned(
        self, tensors: Sequence[CubeTensor], absent: tuple[bool, ...], targets: Sequence[Ints],
        drawn: What,
    ) -> Launch | None:  # fmt: skip
        shape = broadcast_shape([*targets, *[x.shape for x in tensors]])
        arrays, results = self._arrays(tensors), len(self.group.outputs)
        lines = [broadcast_strides(x.shape, x.strides, shape) for x in arrays]
        # The number of a place is drawn by where it stands, not where it lies.
        own = row_major(shape) if drawn else result_strides(self.engine, shape, lines)
        walks = Walks(
            shape, lines, (0,) * len(arrays), [own] * results, (0,) * results, (shape,) * results,
            (own,) * results,
        )  # fmt: skip
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
        index = engine.index_dtype(*arrays, count=count)
        results = len(group.outputs)
        turned = tuple(
            (k, shape, strides, walks.deltas[k])
            for k, strides in enumerate(walks.arrays)
            if is_turned(engine, shape, strides)
        )
        if turned:
            copies = [k for k, *_ in turned]
            lines = [own if k in copies else s for k, s in enumerate(walks.arrays)]
            deltas = tuple(0 if k in copies else d for k, d in enumerate(walks.deltas))
            walks = walks._replace(arrays=lines, deltas=deltas)
        extents, merged = collapse(shape, [*walks.outs, *walks.arrays])
        rank = len(extents)
        _, order = collapse(shape, [own, *walks.outs])
        loose = any(walks.starts) or any(m != order[0] for m in order)
        starts = walks.starts if loose else ()

        def made(form: Form, cubes: tuple[int, int, int], head: Ints, tail: Ints) -> Launch:
            program = engine.loaded(fused_kernel, (group, form._replace(drawn=drawn)))
            return Launch(program, cubes, shapes, count, head, tail, walks.deltas, turned=turned)

        even = all(delta == 0 for delta in walks.deltas) or engine.client.properties.kind == "cpu"
        # A processor draws the numbers of a piece at once.
        even = even and not (drawn and engine.client.properties.kind == "cpu")
        if rank == 1 and not loose and even and all(m == (1,) or count == 1 for m in merged):
            dtypes = [group.parts[p].dtype for p in group.outputs]
            widths = [vector_width(engine, t, arrays, count) for t in dtypes]
            width = min(widths)
            if not is_whole(drawn, width):
                return None
            if width > 1:
                cubes = (-(-count // (UNITS * width)), 1, 1)
                return made(Form("wide", bare, absent, index, width), cubes, (count,), ())
            cubes = (-(-count // UNITS), 1, 1)
            return made(Form("dense", bare, absent, index), cubes, (count,), ())
        if engine.client.properties.kind == "cpu":
            length = extents[-1]
            rows, pieces, each = row_blocks(count // length, length)
            inner = tuple("01"[m[-1]] if m[-1] in (0, 1) else "n" for m in merged)
            tail = starts + extents[:-1] + tuple(s for m in merged for s in m[:-1])
            tail += tuple(m[-1] for m, mode in zip(merged, inner, strict=True) if mode == "n")
            form = Form("rows", bare, absent, index, 1, rank, inner, loose)
            launch = made(
                form, (pieces * -(-rows // each), 1, 1), (length, rows, pieces, each), tail
            )
            return launch._replace(cost=self.cost * min(length, PIECE) * each)
        # A copy of what lies across begins at a place of its own.
        firsts = [0 if k in {t[0] for t in turned} else x.offset + d
                  for k, (x, d) in enumerate(zip(arrays, walks.deltas, strict=True))]  # fmt: skip
        width = 1 if loose else self._line_width(arrays, firsts, extents, merged[results:])
        if not is_whole(drawn, width):
            return None
        if width > 1:
            walked = [
                m if m[-1] == 0 else (*(s // width for s in m[:-1]), 1) for m in merged[results:]
            ]
            tail = (*extents[:-1], extents[-1] // width, *(s for m in walked for s in m))
            inner = tuple(str(m[-1]) for m in walked)
            form = Form("lined", bare, absent, index, width, rank, inner)
            return made(form, (-(-count // (UNITS * width)), 1, 1), (count,), tail)
        tail = starts + extents + tuple(s for m in merged[0 if loose else results :] for s in m)
        form = Form("strided", bare, absent, index, 1, rank, (), loose)
        return made(form, (-(-count // UNITS), 1, 1), (count,), tail)

    def _line_width(
        self, arrays: Sequence[CubeTensor], firsts: Sequence[int], extents: Ints,
        walks: Sequence[Ints],
    ) -> int:  # fmt: skip
        """Return the elements that a unit of a GPU takes at once along the last dim; 1: none."""
        if any(m[-1] not in (0, 1) for m in walks):
            return 1
        moving = [k for k, m in enumerate(walks) if m[-1]]
        # Results lie row by row: what the last extent asks holds for them.
        group = self.group
        widest = max((group.parts[p].dtype for p in group.outputs), key=lambda t: t.itemsize)
        width = row_width(
            self.engine, widest, [arrays[k] for k in moving], extents, [walks[k] for k in moving]
        )
        while width > 1 and any(firsts[k] % width for k in moving):
            width //= 2
        return width


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
