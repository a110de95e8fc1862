"""Products of few rows on the cpu: the right matrix is read once, as it lies.

A BLAS library packs the right matrix before it multiplies, which costs more than the product where
the left one has few rows. Two kernels: `rows` where the columns of the right matrix lie in one
piece (a transposed weight), which adds up vectors along the depth; `columns` where its rows do,
which adds up neighbouring columns. A cube computes a tile whose sums stay in registers; the last
tile of an extent that is no multiple begins earlier and computes some columns a second time.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from burn_cube import Kernel, Vector
from burn_cube.spi import jit
from burn_cube_backend.code import Code, Local, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.payload import CubeTensor
from burn_std import DType, dtypes as d

# Rows of the left matrix up to which these kernels are ahead of the library: with room for few
# sums, with room for many, and that while the right matrix has at most so many elements. Measured
# beside OpenBLAS's kernels for AVX-512.
FEW_ROWS, SOME_ROWS, MOST_ROWS, SMALL = 16, 32, 96, 1 << 20
# The depth below which sums across lanes cost too much.
LEAST_DEPTH = 64
# Multiplications below which a call of the library costs nothing that could be saved.
LEAST_WORK = 1 << 12
# What a vector operation costs, in the runtime's unit, and at least, where its operand comes from
# beyond the first cache and serves few rows.
COST, STREAM = 0.75, 6.0


@cache
def registers() -> tuple[int, int]:
    """Return the bytes of a vector register of this processor, and the rows of four that fit."""
    machine = jit().machine
    if "+avx512f" in machine:
        return 64, 6
    if "+avx2" in machine:
        return 32, 2
    return 16, 6 if machine.startswith(("aarch64", "arm64")) else 2


class Rows(NamedTuple):
    """How rows are cut: `longer` blocks of one more than `rows`, then the others."""

    blocks: int
    rows: int
    longer: int


def cut(count: int, most: int) -> Rows:
    """Return blocks of at most so many rows that differ by one at most.

    Example:
        >>> cut(32, 6)
        Rows(blocks=6, rows=5, longer=2)
    """
    blocks = -(-count // most)
    rows = count // blocks
    return Rows(blocks, rows, count - blocks * rows)


def vector_cost(rows: int) -> float:
    """Return what a vector of the right matrix costs that is multiplied by so many rows."""
    return max(COST * (rows + 1), STREAM)


class Spec(NamedTuple):
    """What a kernel depends on.

    Attributes:
        dtype: of all matrices.
        across: the right matrix is added up along its depth, else by columns.
        lanes: elements of a vector.
        columns: columns of a tile, in vectors unless `across`.
        most: rows of a tile at most; a kernel holds the code of each number of rows, so that
            another number of rows in all needs no kernel of its own.
        biased: a vector is added to every row.
    """

    dtype: DType
    across: bool
    lanes: int
    columns: int
    most: int
    biased: bool


def narrow_kernel(s: Spec) -> Kernel:
    """Write a product of rows by a matrix, a tile per cube."""
    code = Code("narrow_rows" if s.across else "narrow_columns", d.int64, 1)
    out, x, w = (code.buffer(n, s.dtype) for n in ("out", "x", "w"))
    bias = code.buffer("bias", s.dtype) if s.biased else None
    x0, x_row, w0, w_row = (code.place(p) for p in ("x_offset", "x_row", "w_offset", "w_row"))
    plus, depth, extent = (code.place(p) for p in ("bias_offset", "depth", "extent"))
    blocks, least, longer = code.place("blocks"), code.place("rows"), code.place("longer")
    kind: Any = Vector(s.dtype, s.lanes) if s.lanes > 1 else s.dtype
    number = code.special("cube_pos")
    tile = number // blocks
    block = number - tile * blocks
    width = s.columns if s.across else s.columns * s.lanes
    column = (tile * width).call("min", extent - width)
    first = block * least + block.call("min", longer)
    here = (block < longer).pick(least + 1, least)

    def vector(at: Val, buf: Any) -> Val:
        return Val(code, code.b.load(buf.op, at.op, s.lanes))

    def across(rows: int) -> None:
        sums = [[Local(code, kind, 0.0) for _ in range(s.columns)] for _ in range(rows)]
        lefts = [x0 + (first + r) * x_row for r in range(rows)]
        rights = [w0 + (column + c) * w_row for c in range(s.columns)]
        whole = depth // s.lanes * s.lanes
        with code.loop(0, whole, code.at(s.lanes)) as k:
            right = [vector(b + k, w) for b in rights]
            for line, begin in zip(sums, lefts, strict=True):
                left = vector(begin + k, x)
                for total, b in zip(line, right, strict=True):
                    total.set(left.call("fma", b, total.get()))
        singles = [[Local(code, s.dtype, added(code, t.get(), s.lanes)) for t in r] for r in sums]
        with code.loop(whole, depth) as k:
            for line, begin in zip(singles, lefts, strict=True):
                for total, b in zip(line, rights, strict=True):
                    total.set(x[begin + k].call("fma", w[b + k], total.get()))
        for r, line in enumerate(singles):
            for c, total in enumerate(line):
                value = total.get()
                if bias is not None:
                    value = value + bias[plus + column + c]
                out[(first + r) * extent + column + c] = value

    def along(rows: int) -> None:
        sums = [[Local(code, kind, 0.0) for _ in range(s.columns)] for _ in range(rows)]
        lefts = [x0 + (first + r) * x_row for r in range(rows)]
        with code.loop(0, depth) as k:
            begin = w0 + k * w_row + column
            right = [vector(begin + c * s.lanes, w) for c in range(s.columns)]
            for line, left in zip(sums, lefts, strict=True):
                value = x[left + k]
                many = value if s.lanes == 1 else Val(code, code.b.splat(value.op, s.lanes))
                for total, b in zip(line, right, strict=True):
                    total.set(b.call("fma", many, total.get()))
        for r, line in enumerate(sums):
            for c, total in enumerate(line):
                at = column + c * s.lanes
                value = total.get()
                if bias is not None:
                    value = value + vector(plus + at, bias)
                code.b.store(out.op, ((first + r) * extent + at).op, value.op)

    body = across if s.across else along
    for rows in range(1, s.most + 1):
        with code.when(here.eq(rows)):
            body(rows)
    return code.finish()


def added(code: Code, value: Val, lanes: int) -> Val:
    """Return the sum of the lanes of a vector, halves onto each other."""
    while lanes > 1:
        half = lanes // 2
        parts = [code.b.extract(value.op, k) for k in range(lanes)]
        low, high = parts[:half], parts[half:]
        if half == 1:
            return Val(code, low[0]) + Val(code, high[0])
        value = Val(code, code.b.vector(*low)) + Val(code, code.b.vector(*high))
        lanes = half
    return value


class Narrow(NamedTuple):
    """A product of one shape and layout, all but its addresses.

    Attributes:
        program: the kernel.
        cubes: how many tiles.
        cost: of a tile, for the runtime.
        shape: of the result.
        x_row, w_row: elements from line to line.
        tail: numbers behind.
    """

    program: Any
    cubes: int
    cost: float
    shape: tuple[int, ...]
    x_row: int
    w_row: int
    tail: tuple[int, ...]

    def run(
        self, engine: Engine, x: CubeTensor, y: CubeTensor, out: CubeTensor,
        bias: CubeTensor | None,
    ) -> None:  # fmt: skip
        """Multiply."""
        args: list[Any] = [out.buf, x.buf, y.buf]
        if bias is not None:
            args.append(bias.buf)
        at = 0 if bias is None else bias.offset
        self.program.cost = self.cost
        args += [x.offset, self.x_row, y.offset, self.w_row, at, *self.tail]
        engine.start(self.program, (self.cubes, 1, 1), args)


def plan(engine: Engine, x: CubeTensor, y: CubeTensor, biased: bool) -> Narrow | None:
    """Return how two matrices are multiplied here, None where the library is to do it."""
    dtype, (m, k), n = x.dtype, x.shape[-2:], y.shape[-1]
    if len(x.shape) != 2 or len(y.shape) != 2 or m * n * k < LEAST_WORK:
        return None
    size, most = registers()
    if m > (FEW_ROWS if most < 6 else MOST_ROWS if n * k <= SMALL else SOME_ROWS):
        return None
    (x_row, x_step), (down, right) = x.strides, y.strides
    if x_step != 1 and k > 1:
        return None
    lanes = size // dtype.itemsize
    if down == 1 and k >= LEAST_DEPTH and (right >= k or n == 1):
        # Few rows leave registers for more columns, which hide the latency of a sum.
        columns, across, w_row = min(8 if m <= 2 else 4, n), True, right
        width = columns
    elif right == 1 and (down >= n or k == 1):
        lanes = min(lanes, 1 << (n.bit_length() - 1))
        columns, across, w_row = min(4, n // lanes), False, down
        width = columns * lanes
    else:
        return None
    rows = cut(m, most)
    spec = Spec(dtype, across, lanes, columns, min(most, 2) if m <= 2 else most, biased)
    cost = vector_cost(rows.rows) * k * columns / (lanes if across else 1)
    return Narrow(
        engine.loaded(narrow_kernel, (spec,)), -(-n // width) * rows.blocks, max(1.0, cost),
        (m, n), x_row, w_row, (k, n, rows.blocks, rows.rows, rows.longer),
    )  # fmt: skip
