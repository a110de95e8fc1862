"""Groups of elementwise operations as one kernel: the code generation of fusion.

Every operation rounds to its dtype inside the kernel too, so a group gives the bits that its
operations give one by one. A kernel has one of five forms: `dense` where all arrays are walked in
one stride, `wide` the same in vectors, `rows` on a processor for everything else (cubes along the
last dim, so that a compiler sees strides of 0 and 1); on a GPU `lined`, vectors along the last dim
where every array is walked there in ones or not at all, and `strided` for what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from burn_backend import Fused, Group, Part
from burn_cube import Kernel, Vector
from burn_cube_backend.code import UNITS, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.fused_columns import FusedColumns
from burn_cube_backend.fused_rows import FusedRows
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    collapse,
    dense as row_major,
    size_of,
)
from burn_cube_backend.kernels.create import wrapped
from burn_cube_backend.kernels.maps import is_map, plain, row_width, vector_width, wide
from burn_cube_backend.part_code import part_value
from burn_cube_backend.payload import CubeTensor
from burn_ir import Entry
from burn_std import DType

# What a group with rows may hold beside elementwise operations.
_OF_ROWS = ("sum", "prod", "amax", "amin", "any", "all", "gather")


class Form(NamedTuple):
    """What a kernel depends on beside the group.

    Attributes:
        kind: `dense`, `wide`, `rows`, `lined` or `strided`.
        bare: which outside tensors are numbers.
        absent: which run-time numbers are None.
        places: dtype of places.
        width: elements of a vector for `wide` and `lined`, units of a cube for `rows`.
        rank: dims that are walked.
        inner: for `rows` and `lined`, the stride of each array along the last dim: 0, 1 or any; of
            the results first for `rows`.
    """

    kind: str
    bare: tuple[bool, ...]
    absent: tuple[bool, ...]
    places: DType
    width: int = 1
    rank: int = 1
    inner: tuple[str, ...] = ()


class Launch(NamedTuple):
    """A kernel for tensors of one layout, but for their addresses."""

    program: Any
    cubes: tuple[int, int, int]
    shape: Ints
    strides: Ints
    elements: int
    head: Ints
    tail: Ints
    offsets: bool


def fused_kernel(group: Group, form: Form) -> Kernel:
    """Write the kernel of a group.

    Parameters are results, arrays, numbers of outside tensors, numbers of parts, then counts,
    offsets of the arrays, extents and strides as far as the form has them.
    """
    writer = _Writer(group, form)
    writer.body()
    return writer.code.finish()


class _Writer:
    def __init__(self, group: Group, form: Form) -> None:
        names = [p.name for p in group.parts if p.name != "full"]
        units = form.width if form.kind == "rows" else UNITS
        code = self.code = Code("_".join(["fused", *names[:6]]), form.places, units)
        self.group, self.form = group, form
        self.wide = form.width if form.kind in ("wide", "lined") else 0
        self.outs = [self._buffer(f"out{k}", group.parts[p].dtype) for k, p in _numbered(group)]
        there = [k for k in range(len(group.outside)) if not form.bare[k]]
        # What stands still along a line is read as one element.
        still = {k for k, mode in zip(there, form.inner, strict=False) if mode == "0"}
        self.still = still if form.kind == "lined" else set()
        self.arrays = {k: self._buffer(f"x{k}", group.outside[k], k in self.still) for k in there}
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

    def _buffer(self, name: str, dtype: DType, single: bool = False) -> Any:
        if self.wide and not single:
            return self.code.b.buffer(name, Vector(dtype, self.wide))
        return self.code.buffer(name, dtype)

    def body(self) -> None:
        kind = self.form.kind
        forms = {
            "dense": self._dense, "wide": self._wide, "rows": self._rows, "lined": self._lined,
            "strided": self._strided,
        }  # fmt: skip
        forms[kind]()

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

    def _lanes(self, i: Val, rows: dict[int, Any], still: dict[int, Val]) -> None:
        """Compute and store vector number i from vectors, and from what is one for all lanes."""
        code, b = self.code, self.code.b
        lanes = [
            self._values({k: Val(code, b.extract(row, lane)) for k, row in rows.items()} | still)
            for lane in range(self.wide)
        ]
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
            rows: dict[int, Any] = {}
            still: dict[int, Val] = {}
            for (k, x), o, walk in zip(self.arrays.items(), offsets, strides, strict=True):
                if k in self.still:
                    still[k] = x[code.walk(o, coords, walk)]
                else:
                    rows[k] = code.b.load(x, code.walk(o // each, coords, walk).op)
            self._lanes(i, rows, still)

    def _rows(self) -> None:
        code, form = self.code, self.form
        length = code.place("length")
        offsets = code.places("offset", len(self.arrays))
        outer = form.rank - 1
        extents = code.places("extent", outer)
        lines = len(self.outs) + len(self.arrays)
        strides = [code.places(f"stride{k}_", outer) for k in range(lines)]
        steps = [
            code.place(f"step{k}") if mode == "n" else None for k, mode in enumerate(form.inner)
        ]
        unit = code.special("unit_pos_x")
        coords = code.coords(code.special("cube_pos_y"), extents) if outer else []
        place = code.special("cube_pos_x") * form.width + unit
        bases = [
            code.walk(at, coords, walk)
            for at, walk in zip([*[code.at(0)] * len(self.outs), *offsets], strides, strict=True)
        ]
        places = [
            base if mode == "0" else base + (place if step is None else place * step)
            for base, mode, step in zip(bases, form.inner, steps, strict=True)
        ]
        first = len(self.outs)
        with code.when(place < length):
            loads = {
                k: x[at] for (k, x), at in zip(self.arrays.items(), places[first:], strict=True)
            }
            for out, at, value in zip(self.outs, places, self._values(loads), strict=False):
                out[at] = value

    def _strided(self) -> None:
        code, rank = self.code, self.form.rank
        count = code.place("count")
        offsets = code.places("offset", len(self.arrays))
        extents = code.places("extent", rank)
        strides = [code.places(f"stride{k}_", rank) for k in range(len(self.arrays))]
        with code.each(count) as i:
            coords = code.coords(i, extents)
            loads = {
                k: x[code.walk(o, coords, walk)]
                for (k, x), o, walk in zip(self.arrays.items(), offsets, strides, strict=True)
            }
            for out, value in zip(self.outs, self._values(loads), strict=True):
                out[i] = value

    def _values(self, loads: dict[int, Val]) -> list[Val]:
        """Return the wanted results of one element."""
        outside = [
            loads[k] if k in loads else self.given[k].cast(t)
            for k, t in enumerate(self.group.outside)
        ]
        made: list[Val] = []
        for p, part in enumerate(self.group.parts):
            made.append(self._part(p, part, outside, made))
        return [made[p] for p in self.group.outputs]

    def _part(self, p: int, part: Part, outside: Sequence[Val], made: Sequence[Val]) -> Val:
        numbers = [self.numbers[p, j] for j in range(part.numbers)]
        if part.name == "full":
            (value,) = numbers
            assert value is not None  # noqa: S101 - a `full` has a number
            return value.cast(part.dtype)
        given = [None if i is None else outside[-1 - i] if i < 0 else made[i] for i in part.inputs]
        return part_value(self.code, part, given, numbers)


def _numbered(group: Group) -> list[tuple[int, int]]:
    return list(enumerate(group.outputs))


class FusedMap:
    """The kernels of one group on one device.

    Args:
        engine: the device.
        group: what they compute.
    """

    def __init__(self, engine: Engine, group: Group) -> None:
        self.engine = engine
        self.group = group
        self.inputs = len(group.outside)
        # How a number is given: as an element of a dtype first, if it stands for a tensor.
        self.numbers: list[tuple[DType, bool]] = [
            (part.static[0] if part.name == "full" else part.lead, part.name == "full")
            for part in group.parts
            for _ in range(part.numbers)
        ]
        self.launches: dict[Any, Launch] = {}

    def __call__(self, *args: Any) -> tuple[CubeTensor, ...]:
        """Compute the group: payloads from outside, then numbers."""
        engine, group = self.engine, self.group
        tensors, given = args[: self.inputs], args[self.inputs :]
        absent = tuple([v is None for v in given])
        bare = tuple([x.buf is None for x in tensors])
        # A number alone is no layout of its own: its value is an argument.
        layouts = tuple(
            [None if x.buf is None else x.layout or engine.layout_of(x) for x in tensors]
        )
        key = (layouts, absent)
        launch = self.launches.get(key)
        arrays = [x for x in tensors if x.buf is not None]
        if launch is None:
            if len(self.launches) >= 1024:
                self.launches.clear()
            shape = broadcast_shape([x.shape for x in tensors])
            launch = self.launches[key] = self._planned(shape, arrays, bare, absent)
        flats = [engine.flat(launch.elements, group.parts[p].dtype) for p in group.outputs]
        if launch.program is not None:
            words: list[Any] = [*flats, *[x.buf for x in arrays]]
            words += [
                plain(x.value, t.kind)
                for x, t in zip(tensors, group.outside, strict=True)
                if x.buf is None
            ]
            for value, (dtype, whole) in zip(given, self.numbers, strict=True):
                if value is not None:
                    value = wrapped(value, dtype) if whole else value
                    words.append(plain(value, dtype.kind))
            words += launch.head
            words += [x.offset for x in arrays]
            words += launch.tail
            engine.start(launch.program, launch.cubes, words)
        return tuple(
            [
                CubeTensor(flat, launch.shape, launch.strides, group.parts[p].dtype)
                for flat, p in zip(flats, group.outputs, strict=True)
            ]
        )

    def _planned(
        self, shape: Ints, arrays: Sequence[CubeTensor], bare: tuple[bool, ...],
        absent: tuple[bool, ...],
    ) -> Launch:  # fmt: skip
        engine, group = self.engine, self.group
        count, own = size_of(shape), row_major(shape)
        if not count:
            return Launch(None, (0, 1, 1), shape, own, 0, (), (), False)
        index = engine.index_dtype(*arrays, count=count)
        walks = [broadcast_strides(x.shape, x.strides, shape) for x in arrays]
        results = len(group.outputs)
        extents, merged = collapse(shape, [*[own] * results, *walks])
        rank = len(extents)

        def made(form: Form, cubes: tuple[int, int, int], head: Ints, tail: Ints) -> Launch:
            program = engine.loaded(fused_kernel, (group, form))
            return Launch(program, cubes, shape, own, count, head, tail, True)

        if rank == 1 and all(m == (1,) or count == 1 for m in merged):
            dtypes = [group.parts[p].dtype for p in group.outputs]
            widths = [vector_width(engine, t, arrays, count) for t in dtypes]
            width = min(widths)
            if width > 1:
                cubes = (-(-count // (UNITS * width)), 1, 1)
                return made(Form("wide", bare, absent, index, width), cubes, (count,), ())
            cubes = (-(-count // UNITS), 1, 1)
            return made(Form("dense", bare, absent, index), cubes, (count,), ())
        if engine.client.properties.kind == "cpu":
            length = extents[-1]
            units = next((u for u in (16, 64, 256) if length <= u), 1024)
            inner = tuple("01"[m[-1]] if m[-1] in (0, 1) else "n" for m in merged)
            tail = extents[:-1] + tuple(s for m in merged for s in m[:-1])
            tail += tuple(m[-1] for m, mode in zip(merged, inner, strict=True) if mode == "n")
            cubes = (-(-length // units), count // length, 1)
            form = Form("rows", bare, absent, index, units, rank, inner)
            return made(form, cubes, (length,), tail)
        width = _line_width(engine, group, arrays, extents, merged[results:])
        if width > 1:
            walked = [
                m if m[-1] == 0 else (*(s // width for s in m[:-1]), 1) for m in merged[results:]
            ]
            tail = (*extents[:-1], extents[-1] // width, *(s for m in walked for s in m))
            inner = tuple(str(m[-1]) for m in walked)
            form = Form("lined", bare, absent, index, width, rank, inner)
            return made(form, (-(-count // (UNITS * width)), 1, 1), (count,), tail)
        tail = extents + tuple(s for m in merged[results:] for s in m)
        form = Form("strided", bare, absent, index, 1, rank)
        return made(form, (-(-count // UNITS), 1, 1), (count,), tail)


def _line_width(
    engine: Engine, group: Group, arrays: Sequence[CubeTensor], extents: Ints,
    walks: Sequence[Ints],
) -> int:  # fmt: skip
    """Return the elements that a unit of a GPU takes at once along the last dim; 1: no vector."""
    if any(m[-1] not in (0, 1) for m in walks):
        return 1
    moving = [(x, m) for x, m in zip(arrays, walks, strict=True) if m[-1]]
    # Results lie row by row: what the last extent asks holds for them.
    widest = max((group.parts[p].dtype for p in group.outputs), key=lambda t: t.itemsize)
    return row_width(engine, widest, [x for x, _ in moving], extents, [m for _, m in moving])


class CubeFuser:
    """The backend's side of fusion on one device."""

    def __init__(self, engine: Engine, supported: Callable[[DType], bool]) -> None:
        self.engine = engine
        self.supported = supported
        self.made: dict[Group, Fused] = {}

    def takes(self, entry: Entry, dtypes: Sequence[DType], out: DType) -> bool:
        """Return whether an operation can be a part and the device has its dtypes."""
        if not (is_map(entry) or entry.name in _OF_ROWS):
            return False
        return all(not t.is_quantized and self.supported(t) for t in (*dtypes, out))

    def fuse(self, group: Group, apart: Fused) -> Fused:
        """Return the kernel of a group; equal groups share one."""
        found = self.made.get(group)
        if found is None:
            if len(self.made) >= 4096:
                self.made.clear()
            made: Fused = FusedMap(self.engine, group)
            if group.rows:
                kind = FusedRows if group.rows > 0 else FusedColumns
                made = kind(self.engine, group, apart)
            found = self.made[group] = made
        return found
