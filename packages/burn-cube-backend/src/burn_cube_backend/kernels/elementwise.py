"""The form of elementwise kernels, of single operations and of groups: how elements are walked.

A kernel has one of five forms: `dense` where all arrays are walked in one stride, `wide` the same
in vectors, `rows` on a processor for everything else (loops along the last dim, so that a compiler
sees strides of 0 and 1); on a GPU `lined`, vectors along the last dim where every array is walked
there in ones or not at all, and `strided` for what is left. What is computed of an element is said
by who writes the kernel: `maps` an expression, `fused` the parts of a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from burn_cube import Vector
from burn_cube_backend.code import UNITS, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, collapse, dense, reach, size_of
from burn_cube_backend.payload import CubeTensor
from burn_std import DType

# Elements that a unit takes at once, at most.
LANES = 8
# Elements of a row that a unit of a processor computes.
PIECE = 4096
# Elements from which on a GPU has units to spare for vectors.
_MANY = 1 << 14
# What the runtime of the processor counts for an element: to read or write it, to compute it, if
# that is costly.
TOUCHED, COMPUTED, COSTLY = 0.3, 0.15, 1.0


class Form(NamedTuple):
    """What a kernel depends on beside what it computes.

    Attributes:
        kind: `dense`, `wide`, `rows`, `lined` or `strided`.
        bare: which outside tensors of a group are numbers.
        absent: which run-time numbers of a group are None.
        places: dtype of places.
        width: elements of a vector for `wide` and `lined`.
        rank: dims that are walked.
        inner: for `rows` and `lined`, the stride of each array along the last dim: 0, 1 or any; of
            the results first for `rows`.
        loose: results do not lie in the order in which they are walked.
        drawn: parts of a group that are random numbers, by number, and what they are.
    """

    kind: str
    bare: tuple[bool, ...]
    absent: tuple[bool, ...]
    places: DType
    width: int = 1
    rank: int = 1
    inner: tuple[str, ...] = ()
    loose: bool = False
    drawn: tuple[tuple[int, Any], ...] = ()


class Lines(NamedTuple):
    """Where results and arrays lie, seen from the space over which a kernel runs.

    Attributes:
        shape: of that space.
        outs: strides of each result, `starts` its first place.
        arrays: strides of each array, `firsts` its first place.
    """

    shape: Ints
    outs: Sequence[Ints]
    starts: Ints
    arrays: Sequence[Ints]
    firsts: Ints


class Laid(NamedTuple):
    """How a kernel is launched.

    Attributes:
        form: of the kernel.
        cubes: the grid.
        head: arguments before the first places of the arrays, `tail` those behind.
        each: elements of a cube where the runtime cannot see them, else 0.
    """

    form: Form
    cubes: tuple[int, int, int]
    head: Ints
    tail: Ints
    each: int = 0


class Writer:
    """Writes a kernel in its form; who derives from it says what is computed.

    Parameters are results, arrays and numbers, then counts, first places of the arrays and, if they
    are loose, of the results, extents and strides as far as the form has them.

    Args:
        name: of the kernel.
        form: of the kernel.
        outs: dtype of each result.
        arrays: dtype of each array by any key.
    """

    def __init__(
        self, name: str, form: Form, outs: Sequence[DType], arrays: Mapping[Any, DType]
    ) -> None:
        self.code = Code(name, form.places, 1 if form.kind == "rows" else UNITS)
        self.form = form
        self.wide = form.width if form.kind in ("wide", "lined") else 0
        self.outs = [self._buffer(f"out{k}", dtype) for k, dtype in enumerate(outs)]
        modes = form.inner if form.kind == "lined" else ("",) * len(arrays)
        # What stands still along a line is read as one element.
        self.still = {key for key, mode in zip(arrays, modes, strict=True) if mode == "0"}
        self.arrays = {
            key: self._buffer(f"x{n}", dtype, key in self.still)
            for n, (key, dtype) in enumerate(arrays.items())
        }

    def _buffer(self, name: str, dtype: DType, single: bool = False) -> Any:
        if self.wide and not single:
            return self.code.b.buffer(name, Vector(dtype, self.wide))
        return self.code.buffer(name, dtype)

    # --- what is computed --------------------------------------------------------------------

    def values(self, loads: Mapping[Any, Val]) -> list[Val]:
        """Return the results of one element, from that of each array."""
        raise NotImplementedError

    def at_piece(self, first: Val, count: Val) -> None:
        """Hear that so many elements from a place on come next."""

    def at_place(self, place: Val) -> None:
        """Hear which of them comes next."""

    def at_vector(self, number: Val) -> None:
        """Hear which vector comes next."""

    def at_lane(self, lane: int) -> None:
        """Hear which of its lanes comes next."""

    # --- the forms ---------------------------------------------------------------------------

    def body(self) -> None:
        """Write everything behind the numbers."""
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
            loads = {k: x[o + i] for (k, x), o in zip(self.arrays.items(), offsets, strict=True)}
            for out, value in zip(self.outs, self.values(loads), strict=True):
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
            self._lanes(i, rows, {}, [i] * len(self.outs))

    def _lanes(
        self, i: Val, rows: Mapping[Any, Any], still: Mapping[Any, Val], places: Sequence[Val]
    ) -> None:
        """Compute vector number i from vectors, and from what is one for all lanes; store it."""
        code, b = self.code, self.code.b
        self.at_vector(i)
        lanes = []
        for lane in range(self.wide):
            self.at_lane(lane)
            loads = {k: Val(code, b.extract(row, lane)) for k, row in rows.items()}
            lanes.append(self.values({**loads, **still}))
        for k, (out, at) in enumerate(zip(self.outs, places, strict=True)):
            b.store(out, at.op, b.vector(*[values[k].op for values in lanes]))

    def _lined(self) -> None:
        code = self.code
        count = code.place("count")
        offsets = code.places("offset", len(self.arrays))
        starts = self._starts()
        # The last extent, and the strides of what is walked, count vectors.
        extents, walks, strides = self._strides()
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
            starts = [start // each for start in starts] if self.form.loose else starts
            self._lanes(i, rows, still, self._places(i, starts, coords, walks))

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
        self.at_piece(
            block * each * length + first, (below - block * each - 1) * length + last - first
        )
        with code.loop(block * each, below) as row:
            coords = code.coords(row, extents) if outer else []
            bases = [
                code.walk(at, coords, walk)
                for at, walk in zip([*starts, *offsets], strides, strict=True)
            ]
            self._row(row * length, bases, steps, first, last)

    def _row(
        self, at: Val, bases: Sequence[Val], steps: Sequence[Val | None], first: Val, last: Val
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
                k: same[k] if k in same else x[place]
                for ((k, x), _, _), place in zip(named, places[results:], strict=True)
            }
            self.at_place(at + i)
            for out, place, value in zip(self.outs, places, self.values(loads), strict=False):
                out[place] = value

    def _strided(self) -> None:
        code = self.code
        count = code.place("count")
        offsets = code.places("offset", len(self.arrays))
        starts = self._starts()
        extents, walks, strides = self._strides()
        with code.each(count) as i:
            coords = code.coords(i, extents)
            loads = {
                k: x[code.walk(o, coords, walk)]
                for (k, x), o, walk in zip(self.arrays.items(), offsets, strides, strict=True)
            }
            places = self._places(i, starts, coords, walks)
            for out, at, value in zip(self.outs, places, self.values(loads), strict=True):
                out[at] = value

    def _starts(self) -> list[Val]:
        """Return the first place of each result."""
        if self.form.loose:
            return self.code.places("start", len(self.outs))
        return [self.code.at(0)] * len(self.outs)

    def _strides(self) -> tuple[list[Val], list[list[Val]], list[list[Val]]]:
        """Return the extents, the strides of the results if they are loose, those of the arrays."""
        code, rank = self.code, self.form.rank
        extents = code.places("extent", rank)
        walks = [code.places(f"walk{k}_", rank) for k in range(len(self.outs))
                 if self.form.loose]  # fmt: skip
        return extents, walks, [code.places(f"stride{k}_", rank) for k in range(len(self.arrays))]

    def _places(
        self, i: Val, starts: Sequence[Val], coords: Sequence[Val], walks: Sequence[Sequence[Val]]
    ) -> list[Val]:
        """Return where the results of number i are written."""
        if not self.form.loose:
            return [i] * len(self.outs)
        named = zip(starts, walks, strict=True)
        return [self.code.walk(start, coords, walk) for start, walk in named]


# ---- the choice of a form ----------------------------------------------------------------------


def laid(
    engine: Engine, lines: Lines, outs: Sequence[DType], arrays: Sequence[CubeTensor],
    pieces: bool = False,
) -> Laid:  # fmt: skip
    """Choose the form of a kernel over one element at least.

    Args:
        engine: the device.
        lines: where everything lies.
        outs: dtype of each result.
        arrays: what is read, by `lines.firsts` from there on.
        pieces: a processor takes pieces of rows in any case.
    """
    on_cpu = engine.client.properties.kind == "cpu"
    shape, results = lines.shape, len(outs)
    count = size_of(shape)
    ends = [reach(shape, walk, at) for walk, at in zip(lines.outs, lines.starts, strict=True)]
    index = engine.index_dtype(*arrays, count=max(count, *ends))
    extents, merged = collapse(shape, [*lines.outs, *lines.arrays])
    rank = len(extents)
    _, order = collapse(shape, [dense(shape), *lines.outs])
    loose = any(lines.starts) or any(m != order[0] for m in order)
    starts = lines.starts if loose else ()
    one = all(m == (1,) or count == 1 for m in merged)
    if rank == 1 and not loose and one and not (pieces and on_cpu):
        width = _vector_width(engine, outs, lines.firsts, arrays, count)
        form = Form("wide" if width > 1 else "dense", (), (), index, width)
        return Laid(form, (-(-count // (UNITS * width)), 1, 1), (count,), ())
    if on_cpu:
        length = extents[-1]
        rows, cuts, each = row_blocks(count // length, length)
        inner = tuple("01"[m[-1]] if m[-1] in (0, 1) else "n" for m in merged)
        tail = starts + extents[:-1] + tuple(s for m in merged for s in m[:-1])
        tail += tuple(m[-1] for m, mode in zip(merged, inner, strict=True) if mode == "n")
        form = Form("rows", (), (), index, 1, rank, inner, loose)
        cubes = (cuts * -(-rows // each), 1, 1)
        return Laid(form, cubes, (length, rows, cuts, each), tail, min(length, PIECE) * each)
    walks = merged if loose else merged[results:]
    width = _line_width(engine, outs, lines, arrays, extents, walks)
    if width > 1:
        walked = [m if m[-1] == 0 else (*(s // width for s in m[:-1]), 1) for m in walks]
        inner = tuple(str(m[-1]) for m in walked[len(walked) - len(arrays) :])
        tail = (*starts, *extents[:-1], extents[-1] // width, *(s for m in walked for s in m))
        form = Form("lined", (), (), index, width, rank, inner, loose)
        return Laid(form, (-(-count // (UNITS * width)), 1, 1), (count,), tail)
    form = Form("strided", (), (), index, 1, rank, (), loose)
    tail = starts + extents + tuple(s for m in walks for s in m)
    return Laid(form, (-(-count // UNITS), 1, 1), (count,), tail)


def _widest(dtypes: Sequence[DType]) -> int:
    """Return the elements of 16 bytes of the widest dtype, at most `LANES`."""
    return min(16 // max(t.itemsize for t in dtypes), LANES)


def _vector_width(
    engine: Engine, outs: Sequence[DType], firsts: Ints, arrays: Sequence[CubeTensor], count: int
) -> int:
    """Return how many elements a unit of a GPU takes at once of what lies in one piece.

    A compiler for the CPU makes vectors of its own, and a small array has no units to spare.
    """
    if engine.client.properties.kind != "gpu" or count < _MANY:
        return 1
    width = _widest([*outs, *(x.dtype for x in arrays)])
    if count % width:
        return 1
    while any(first % width for first in firsts):
        width //= 2
    return width


def _line_width(
    engine: Engine, outs: Sequence[DType], lines: Lines, arrays: Sequence[CubeTensor],
    extents: Ints, walks: Sequence[Ints],
) -> int:  # fmt: skip
    """Return how many elements a unit of a GPU takes at once along the last dim; 1: no vector.

    What moves there is walked in ones, and nothing begins inside a vector.
    """
    if engine.client.properties.kind != "gpu" or size_of(extents) < _MANY:
        return 1
    results = len(walks) - len(arrays)
    if any(m[-1] not in (0, 1) for m in walks) or any(m[-1] == 0 for m in walks[:results]):
        return 1
    begins = (*(lines.starts if results else ()), *lines.firsts)
    moving = [k for k, m in enumerate(walks) if m[-1]]
    even = [extents[-1], *(begins[k] for k in moving), *(s for k in moving for s in walks[k][:-1])]
    width = _widest([*outs, *(arrays[k - results].dtype for k in moving if k >= results)])
    while width > 1 and any(n % width for n in even):
        width //= 2
    return width


def row_blocks(rows: int, length: int) -> Ints:
    """Return how many rows there are, in how many pieces each is cut, and how many go together.

    Example:
        >>> row_blocks(1000, 16), row_blocks(3, 5000)
        ((1000, 1, 62), (3, 2, 1))
    """
    # No block so large that threads wait for the last one.
    return rows, -(-length // PIECE), max(1, min(PIECE // length, rows // 16))
