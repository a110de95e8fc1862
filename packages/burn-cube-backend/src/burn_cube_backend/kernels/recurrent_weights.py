"""Gradients of a recurrent layer's weights on the cpu: sums of outer products over all steps.

The gates' gradients d [steps, rows] times what went into the steps [steps, columns], both read as
they lie: the input, the outputs of the steps before, and the first state where there is none. A
cube takes some rows of the result and goes through the steps in pieces. Of each piece it packs one
tile of columns, which then stays in the first cache while all of its rows are multiplied by it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from burn_cube import Kernel, Vector
from burn_cube_backend.code import Code, Local, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.kernels.create import filled
from burn_cube_backend.kernels.maps import copied
from burn_cube_backend.kernels.narrow import cut, registers, vector_cost
from burn_cube_backend.kernels.recurrent import ends_of, in_f32
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d

# Rows of a tile, and steps of a piece: so many vectors of four fill most of the first cache.
ROWS, PIECE = 6, 128


class Right(NamedTuple):
    """How one of the right matrices is read.

    Attributes:
        lanes: elements of a vector.
        vectors: of a tile.
        before: a step reads the one before it, or the first state.
        masked: where the one before lies behind the end of its sequence, too.
    """

    lanes: int
    vectors: int
    before: bool = False
    masked: bool = False

    @property
    def width(self) -> int:
        """Columns of a tile."""
        return self.lanes * self.vectors


class _Matrix:
    """The parameters of a right matrix and of its result."""

    def __init__(self, code: Code, number: int, right: Right, dtype: DType) -> None:
        self.right = right
        self.x, self.out = (code.buffer(f"{n}{number}", dtype) for n in ("x", "out"))
        self.start = code.buffer(f"start{number}", dtype) if right.before else None
        self.lengths = code.buffer(f"lengths{number}", d.int64) if right.masked else None
        names = ("offset", "step", "row", "extent", "tiles", "kept")
        self.offset, self.step, self.row, self.extent, self.tiles, self.kept = (
            code.place(f"{n}{number}") for n in names
        )
        if right.before:
            self.start_offset, self.shift = (code.place(f"{n}{number}") for n in ("first", "shift"))


class Spec(NamedTuple):
    """What the kernel depends on.

    Attributes:
        dtype: of all matrices.
        rights: how right matrices are read.
        rows: of a tile; the first ones have one more if there are `longer` ones.
        longer: whether there are.
        bias: how the left matrix is read to be added up over all steps, if it is.
    """

    dtype: DType
    rights: tuple[Right, ...]
    rows: int
    longer: bool
    bias: Right | None


def weights_kernel(s: Spec) -> Kernel:
    """Write the product of the turned left matrix by right ones, and its sums over all steps.

    What is no last piece keeps its sums tile by tile in `sums`.
    """
    dtype, rows, longer = s.dtype, s.rows, s.longer
    code = Code("recurrent_weights", d.int64, 1)
    left, panel, sums = (code.buffer(n, dtype) for n in ("d_gates", "panel", "sums"))
    bias = code.buffer("bias", dtype) if s.bias else None
    left_offset = code.place("left_offset")
    matrices = [_Matrix(code, k, right, dtype) for k, right in enumerate(s.rights)]
    count, batch, extent = (code.place(n) for n in ("count", "batch", "extent"))
    blocks, more, each = (code.place(n) for n in ("blocks", "longer", "each"))
    bias_kept = code.place("bias_kept") if s.bias else None
    most = max((r.width for r in s.rights), default=0)
    number = code.special("cube_pos")
    low = number * each
    high = (low + each).call("min", blocks)
    mine = number * (PIECE * most)
    depth = count * batch

    def load(buf: Any, at: Val, lanes: int) -> Val:
        return Val(code, code.b.load(buf.op, at.op, lanes))

    def store(buf: Any, at: Val, value: Val) -> None:
        code.b.store(buf.op, at.op, value.op)

    def sums_of(vectors: int, lanes: int) -> list[Local]:
        kind: Any = Vector(dtype, lanes) if lanes > 1 else dtype
        return [Local(code, kind, 0.0) for _ in range(vectors)]

    def pack(m: _Matrix, first: Val, here: Val, column: Val) -> None:
        """Write a tile of columns of the steps of a piece behind one another."""
        lanes, vectors, width = m.right.lanes, m.right.vectors, m.right.width
        step, row = Local(code, d.int64, first // batch), Local(code, d.int64, first % batch)

        def copy(buf: Any, at: Val, to: Val) -> None:
            for v in range(vectors):
                store(panel, to + v * lanes, load(buf, at + v * lanes, lanes))

        with code.loop(0, here) as k:
            t, n, to = step.get(), row.get(), mine + k * width
            if m.start is None:
                copy(m.x, m.offset + t * m.step + n * m.row + column, to)
            else:
                before = t + m.shift
                end = count if m.lengths is None else m.lengths[n].call("min", count)
                with code.when((before >= 0) & (before < end)) as branch:
                    copy(m.x, m.offset + before * m.step + n * m.row + column, to)
                with code.otherwise(branch):
                    copy(m.start, m.start_offset + n * m.extent + column, to)
            over = (n + 1).eq(batch)
            row.set(over.pick(0, n + 1))
            step.set(over.pick(t + 1, t))

    def multiply(m: _Matrix, rows: int, first: Val, here: Val, tile: Val, at: Val) -> None:
        """Add the product of a piece to some rows of a tile; `at` is the first of them."""
        lanes, vectors, width = m.right.lanes, m.right.vectors, m.right.width
        acc = [sums_of(vectors, lanes) for _ in range(rows)]
        kept = m.kept + (tile * extent + at) * width

        def places(begin: Val, apart: Val) -> list[list[Val]]:
            return [[begin + apart * r + v * lanes for v in range(vectors)] for r in range(rows)]

        with code.when(first > 0):
            for line, row in zip(acc, places(kept, code.at(width)), strict=True):
                for slot, place in zip(line, row, strict=True):
                    slot.set(load(sums, place, lanes))
        with code.loop(0, here) as k:
            begin = left_offset + (first + k) * extent + at
            right = [load(panel, mine + k * width + v * lanes, lanes) for v in range(vectors)]
            for r, line in enumerate(acc):
                value = left[begin + r]
                many = value if lanes == 1 else Val(code, code.b.splat(value.op, lanes))
                for slot, other in zip(line, right, strict=True):
                    slot.set(other.call("fma", many, slot.get()))
        column = (tile * width).call("min", m.extent - width)
        with code.when(first + here < depth) as branch:
            for line, row in zip(acc, places(kept, code.at(width)), strict=True):
                for slot, place in zip(line, row, strict=True):
                    store(sums, place, slot.get())
        with code.otherwise(branch):
            begin = at * m.extent + column
            for line, row in zip(acc, places(begin, m.extent), strict=True):
                for slot, place in zip(line, row, strict=True):
                    store(m.out, place, slot.get())

    def begin_of(block: Val) -> Val:
        return block * rows + block.call("min", more)

    def add(r: Right, out: Any, kept: Val, first: Val, here: Val) -> None:
        """Add up the rows of this cube, which also brings them into the cache."""
        lanes, width = r.lanes, r.width
        start, stop = begin_of(low), begin_of(high)
        mine = kept + number * (each * (rows + 1) + width)
        with code.loop(start, stop, code.at(width)) as at:
            column = at.call("min", extent - width)
            acc = sums_of(r.vectors, lanes)
            place = mine + (at - start)
            with code.when(first > 0):
                for v, slot in enumerate(acc):
                    slot.set(load(sums, place + v * lanes, lanes))
            with code.loop(0, here) as k:
                begin = left_offset + (first + k) * extent + column
                for v, slot in enumerate(acc):
                    slot.set(slot.get() + load(left, begin + v * lanes, lanes))
            with code.when(first + here < depth) as branch:
                for v, slot in enumerate(acc):
                    store(sums, place + v * lanes, slot.get())
            with code.otherwise(branch):
                for v, slot in enumerate(acc):
                    store(out, column + v * lanes, slot.get())

    with code.loop(0, depth, code.at(PIECE)) as first:
        here = (depth - first).call("min", PIECE)
        if s.bias is not None and bias_kept is not None:
            add(s.bias, bias, bias_kept, first, here)
        for m in matrices:
            with code.loop(0, m.tiles) as tile:
                pack(m, first, here, (tile * m.right.width).call("min", m.extent - m.right.width))
                with code.loop(low, high) as block:
                    at = begin_of(block)
                    if longer:
                        with code.when(block < more) as branch:
                            multiply(m, rows + 1, first, here, tile, at)
                        with code.otherwise(branch):
                            multiply(m, rows, first, here, tile, at)
                    else:
                        multiply(m, rows, first, here, tile, at)
    return code.finish()


def _width(dtype: DType, columns: int) -> tuple[int, int]:
    """Return lanes and vectors of a tile."""
    size, most = registers()
    lanes = min(size // dtype.itemsize, 1 << (columns.bit_length() - 1))
    # Rows times vectors, and the vectors beside them, stay in registers.
    return lanes, min(4 if most >= ROWS else 2, columns // lanes)


class Product(NamedTuple):
    """A right matrix and its result.

    Attributes:
        x: what is read, [steps, batch, columns].
        out: the result.
        start: what the first step reads where others read the one before.
        lengths: of the sequences, where that depends on them.
        shift: from a step to the one before.
    """

    x: CubeTensor
    out: CubeTensor
    start: CubeTensor | None = None
    lengths: CubeTensor | None = None
    shift: int = 0


def _multiplied(
    engine: Engine, left: CubeTensor, products: list[Product], bias: CubeTensor | None
) -> None:
    """Multiply the turned left matrix by right ones, and add up its rows."""
    if not products and bias is None:
        return
    (count, batch, extent), dtype = left.shape, left.dtype
    rights: list[Right] = []
    memory: list[Any] = [left.buf]
    args: list[Any] = []
    kept = vectors = 0
    for x, out, start, lengths, shift in products:
        right = Right(*_width(dtype, x.shape[-1]), start is not None, lengths is not None)
        tiles = -(-x.shape[-1] // right.width)
        args += [x.buf, out.buf, *(t.buf for t in (start, lengths) if t is not None)]
        args += [x.offset, *x.strides[:2], x.shape[-1], tiles, kept]
        if start is not None:
            args += [start.offset, shift]
        kept += tiles * right.width * extent
        vectors += tiles * right.vectors
        rights.append(right)
    blocks = cut(extent, ROWS)
    threads: int = engine.client.properties.units
    each = -(-blocks.blocks // threads)
    cubes = -(-blocks.blocks // each)
    across = None if bias is None else Right(*_width(dtype, extent))
    spec = Spec(dtype, tuple(rights), blocks.rows, blocks.longer > 0, across)
    ends: list[Any] = [count, batch, extent, blocks.blocks, blocks.longer, each]
    if across is not None:
        ends.append(kept)
        kept += cubes * (each * (blocks.rows + 1) + across.width)
    panel = engine.empty((cubes, PIECE, max((r.width for r in rights), default=0)), dtype)
    sums = engine.empty((kept if count * batch > PIECE else 0,), dtype)
    memory += [panel.buf, sums.buf, *([] if bias is None else [bias.buf])]
    program: Any = engine.loaded(weights_kernel, (spec,))
    # Sums of rows weigh little beside any product.
    program.cost = max(1.0, vector_cost(ROWS) * each * max(vectors, 1) * count * batch)
    engine.start(program, (cubes, 1, 1), [*memory, left.offset, *args, *ends])


@kernel("recurrent_weights", runtime="cpu")
@in_f32
def recurrent_weights(
    engine: Engine, d_gates: CubeTensor, d_hidden: CubeTensor | None, x: CubeTensor,
    h: CubeTensor, out: CubeTensor, lengths: CubeTensor | None, reverse: bool, inputs: bool,
    states: bool, biases: bool,
) -> tuple[CubeTensor, ...]:  # fmt: skip
    """Gradients of weights and biases; empty where not wanted."""
    dtype, (count, batch, rows) = d_gates.dtype, d_gates.shape
    apart = d_hidden is not None

    def made(wanted: bool, *shape: int) -> CubeTensor:
        if not wanted:
            return engine.empty((0,), dtype)
        return engine.empty(shape, dtype) if count * batch else filled(engine, dtype, shape, 0)

    dw_ih, dw_hh = made(inputs, rows, x.shape[-1]), made(states, rows, h.shape[-1])
    db_ih, db_hh = made(biases, rows), made(biases and apart, rows)
    if not count * batch * rows:
        return dw_ih, dw_hh, db_ih, db_hh
    of_x, of_h = [], []
    if inputs and x.shape[-1]:
        of_x.append(Product(x if x.strides[-1] == 1 else copied(engine, x), dw_ih))
    if states:
        ends = None
        if reverse and lengths is not None:  # sequences begin at their ends
            ends = ends_of(engine, lengths)
        out = out if out.strides[-1] == 1 else copied(engine, out)
        of_h.append(Product(out, dw_hh, engine.row_major(h), ends, 1 if reverse else -1))
    d_gates = engine.row_major(d_gates)
    if d_hidden is None:
        _multiplied(engine, d_gates, of_x + of_h, db_ih if biases else None)
    else:
        _multiplied(engine, d_gates, of_x, db_ih if biases else None)
        _multiplied(engine, engine.row_major(d_hidden), of_h, db_hh if biases else None)
    return dw_ih, dw_hh, db_ih, db_hh
