"""Matrix products of a processor, where there is no library for them.

A cube is a task: it makes a block of the result, in tiles that stay in registers. Blocks of both
operands are packed for it, in panels as wide as a tile: what a tile reads follows on what it read
before, from the second cache and the first, however the operands lie.
"""

from __future__ import annotations

from typing import NamedTuple

from burn_cube import Kernel, Vector
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import broadcast_shape, broadcast_strides, size_of
from burn_cube_backend.kernels.maps import converted, wide
from burn_cube_backend.lanes import load, splat, store, together
from burn_cube_backend.payload import CubeTensor
from burn_std import DType

# Depth of a block, and bytes of a column of the left block and of a row of the right one: together
# they are 192 KiB, which leaves the rest of a second cache to the result.
DEEP, HIGH, WIDE = 128, 512, 1024
# Operations of a sixth of a nanosecond that a multiplication takes.
_COST = 6 * 2 / 250


class Tile(NamedTuple):
    """What stays in registers.

    Attributes:
        rows: of the result, a width of vectors.
        vectors: of each row.
        lanes: of a vector.
    """

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        """Columns of the result."""
        return self.vectors * self.lanes


def tile_of(vector_bytes: int, acc: DType) -> Tile:
    """Return the tile for registers of a size: 32 of the widest, 16 of others."""
    lanes = max(2, min(16, vector_bytes // acc.itemsize))
    return Tile(8, 2, lanes) if vector_bytes >= 64 else Tile(4, 3, lanes)


class Spec(NamedTuple):
    """What a kernel depends on.

    Attributes:
        dtype: of the operands.
        tile: in registers.
        near: where neighbours of the left and of the right operand lie: along the `depth`, along
            the `lines` (rows of the left one, columns of the right one), or nowhere.
        rank: dims of the batch.
        places: dtype of places.
        block: most rows and columns of a block, multiples of those of a tile, and its depth.
    """

    dtype: DType
    tile: Tile
    near: tuple[str, str]
    rank: int
    places: DType
    block: tuple[int, int, int]


class _Side(NamedTuple):
    """One operand of a cube.

    Attributes:
        x: where it is read, `to` where it is packed.
        at: place of the first line of the cube at depth 0.
        line: elements from line to line.
        step: elements from depth to depth.
        lines: how many there are.
        size: lines of a panel.
        near: where neighbours lie.
    """

    x: Buf
    to: Buf
    at: Val
    line: Val
    step: Val
    lines: Val
    size: int
    near: str


def _pack(code: Code, s: Spec, side: _Side, first: Val, depth: Val) -> None:
    """Pack the lines of a cube from a depth on: a panel holds all its lines depth by depth."""
    acc, size, deep = wide(s.dtype), side.size, s.block[2]
    start = side.at + first * side.step

    def one_by_one(begin: Val, panel: Val) -> None:
        with code.loop(begin, depth) as k, code.loop(0, code.at(size)) as r:
            value = code.local(acc)
            with code.when(panel + r < side.lines):
                value.set(side.x[start + (panel + r) * side.line + k * side.step].cast(acc))
            side.to[panel * deep + k * size + r] = value.get()

    def along_lines(panel: Val) -> None:
        lanes = min(size, s.tile.lanes)
        with code.loop(0, depth) as k:
            for r in range(0, size, lanes):
                value = load(side.x, start + (panel + r) + k * side.step, lanes).cast(acc)
                store(side.to, panel * deep + k * size + r, value)

    def along_depth(panel: Val) -> None:
        lanes = min(size, s.tile.lanes)
        whole = depth // lanes * lanes
        with code.loop(0, whole, code.at(lanes)) as k:
            for r in range(0, size, lanes):
                here = start + (panel + r) * side.line + k
                square = [load(side.x, here + side.line * n, lanes).cast(acc) for n in range(lanes)]
                # Lines become columns: as many times as lanes can be halved, halves go in turn.
                for _ in range(lanes.bit_length() - 1):
                    half = zip(square[: lanes // 2], square[lanes // 2 :], strict=True)
                    square = [value for pair in half for value in together(*pair)]
                for n, value in enumerate(square):
                    store(side.to, panel * deep + (k + n) * size + r, value)
        one_by_one(whole, panel)

    quick = {"lines": along_lines, "depth": along_depth}.get(side.near)
    with code.loop(0, side.lines, code.at(size)) as panel:
        if quick is None:
            one_by_one(code.at(0), panel)
        else:
            with code.when(panel + size <= side.lines) as complete:
                quick(panel)
            with code.otherwise(complete):
                one_by_one(code.at(0), panel)


class _Tiles:
    """The tiles of a cube: what they read was packed, and they add to the result."""

    def __init__(self, code: Code, s: Spec, sides: tuple[_Side, _Side], out: Buf, n: Val) -> None:
        self.code, self.tile, self.deep = code, s.tile, s.block[2]
        self.left, self.right = sides
        self.out, self.n, self.acc = out, n, wide(s.dtype)
        self.vector = Vector(self.acc, s.tile.lanes)
        # What a tile at the edge has is written from here, element by element.
        self.spare = code.shared(self.acc, s.tile.rows * s.tile.columns)

    def product(self, row: Val, column: Val, at: Val, depth: Val, more: Val) -> None:
        """Make one tile.

        Args:
            row: its first row in the block.
            column: its first column in the block.
            at: its place in the result.
            depth: of the block.
            more: the result has the sums of the depth before.
        """
        code, b, tile = self.code, self.code.b, self.tile
        cells = [[b.slot(self.vector) for _ in range(tile.vectors)] for _ in range(tile.rows)]
        places = [
            (cell, at + self.n * r + v * tile.lanes, r * tile.columns + v * tile.lanes)
            for r, line in enumerate(cells) for v, cell in enumerate(line)
        ]  # fmt: skip
        inside = (row + tile.rows <= self.left.lines) & (column + tile.columns <= self.right.lines)
        for cell, _, _ in places:
            b.set(cell, b.const(0, self.vector))
        with code.when(inside & more):
            for cell, place, _ in places:
                b.set(cell, load(self.out, place, tile.lanes).op)
        with code.loop(0, depth) as k:
            near = column * self.deep + k * tile.columns
            right = [
                load(self.right.to, near + v * tile.lanes, tile.lanes) for v in range(tile.vectors)
            ]
            for r, line in enumerate(cells):
                left = splat(self.left.to[row * self.deep + k * tile.rows + r], tile.lanes)
                for cell, value in zip(line, right, strict=True):
                    old = Val(code, b.get(cell))
                    b.set(cell, self._added(left, value, old).op)
        with code.when(inside) as complete:
            for cell, place, _ in places:
                store(self.out, place, Val(code, b.get(cell)))
        with code.otherwise(complete):
            for cell, _, spare in places:
                store(self.spare, code.at(spare), Val(code, b.get(cell)))
            self._edge(row, column, at, more)

    def _added(self, a: Val, b: Val, c: Val) -> Val:
        return a.call("fma", b, c) if self.acc.is_float else c + a * b

    def _edge(self, row: Val, column: Val, at: Val, more: Val) -> None:
        code, tile = self.code, self.tile
        rows = (self.left.lines - row).call("min", tile.rows)
        columns = (self.right.lines - column).call("min", tile.columns)
        with code.loop(0, rows) as r, code.loop(0, columns) as c:
            value = code.local(self.acc)
            value.set(self.spare[r * tile.columns + c])
            place = at + r * self.n + c
            with code.when(more):
                value.set(value.get() + self.out[place])
            self.out[place] = value.get()


def product_kernel(s: Spec) -> Kernel:
    """Write out = x y for a batch, in the dtype of the sums; a cube for each block and matrix."""
    code = Code("matmul_cpu", s.places, 1)
    acc, tile = wide(s.dtype), s.tile
    out, x, y = code.buffer("out", acc), code.buffer("x", s.dtype), code.buffer("y", s.dtype)
    m, n, k, high, width = (code.place(p) for p in ("m", "n", "k", "high", "wide"))
    x0, y0 = code.place("x_offset"), code.place("y_offset")
    xm, xk, yk, yn = (code.place(p) for p in ("xm", "xk", "yk", "yn"))
    extents = code.places("extent", s.rank)
    steps = code.places("x_stride", s.rank), code.places("y_stride", s.rank)
    most_rows, most_columns, deep = s.block
    near = code.shared(acc, most_rows * deep), code.shared(acc, most_columns * deep)
    cube = code.special("cube_pos")
    down, across = (m + high - 1) // high, (n + width - 1) // width
    batch = cube // (down * across)
    block = cube - batch * (down * across)
    row, column = (block // across) * high, (block % across) * width
    coords = code.coords(batch, extents)
    heads = code.walk(x0, coords, steps[0]), code.walk(y0, coords, steps[1])
    left = _Side(
        x, near[0], heads[0] + row * xm, xm, xk, (m - row).call("min", high), tile.rows, s.near[0]
    )
    right = _Side(
        y, near[1], heads[1] + column * yn, yn, yk, (n - column).call("min", width), tile.columns,
        s.near[1],
    )  # fmt: skip
    tiles = _Tiles(code, s, (left, right), out, n)
    start = (batch * m + row) * n + column
    with code.loop(0, k, code.at(deep)) as first:
        depth = (k - first).call("min", deep)
        _pack(code, s, left, first, depth)
        _pack(code, s, right, first, depth)
        # The panel of the right block stays in the first cache while rows pass by.
        columns = code.loop(0, right.lines, code.at(tile.columns))
        with columns as j, code.loop(0, left.lines, code.at(tile.rows)) as i:
            tiles.product(i, j, start + i * n + j, depth, first > 0)
    return code.finish()


def product(engine: Engine, x: CubeTensor, y: CubeTensor) -> CubeTensor | None:
    """Return the product of two tensors of matrices, or None where this kernel does not fit.

    Args:
        engine: the device.
        x: [..., M, K].
        y: [..., K, N], of the same dtype, not bools.
    """
    facts = engine.client.properties
    if not facts.vector_bytes:
        return None
    acc = wide(x.dtype)
    tile = tile_of(facts.vector_bytes, acc)
    block = (HIGH // acc.itemsize, WIDE // acc.itemsize // tile.columns * tile.columns, DEEP)
    return multiplied(engine, x, y, tile, block)


def multiplied(
    engine: Engine, x: CubeTensor, y: CubeTensor, tile: Tile, block: tuple[int, int, int]
) -> CubeTensor:
    """Return a product cut in a way."""
    acc = wide(x.dtype)
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    batch = broadcast_shape([x.shape[:-2], y.shape[:-2]])
    out = engine.empty((*batch, m, n), acc)
    x_steps = broadcast_strides(x.shape[:-2], x.strides[:-2], batch)
    y_steps = broadcast_strides(y.shape[:-2], y.strides[:-2], batch)
    batches = size_of(batch)
    high, width = _extents(m, n, batches, engine.client.properties.units, tile, block)
    cubes = batches * -(-m // high) * -(-n // width)
    near = _near(x.strides[-2], x.strides[-1]), _near(y.strides[-1], y.strides[-2])
    rank = max(len(batch), 1)
    spec = Spec(x.dtype, tile, near, rank, engine.index_dtype(x, y, out, count=out.size), block)
    args = [
        out.buf, x.buf, y.buf, m, n, k, high, width, x.offset, y.offset, x.strides[-2],
        x.strides[-1], y.strides[-2], y.strides[-1], *(batch or (1,)), *(x_steps or (0,)),
        *(y_steps or (0,)),
    ]  # fmt: skip
    program = engine.loaded(product_kernel, (spec,))
    if hasattr(program, "cost"):
        # The runtime guesses eight rounds of a loop.
        program.cost = max(1.0, min(high, m) * min(width, n) * k * acc.itemsize / 4 * _COST)
    engine.start(program, (cubes, 1, 1), args)
    return converted(engine, out, x.dtype)


def _near(line: int, step: int) -> str:
    """Return where neighbours lie of an operand with steps from line to line and in depth."""
    return "depth" if step == 1 else "lines" if line == 1 else ""


def _extents(
    m: int, n: int, batches: int, threads: int, tile: Tile, block: tuple[int, int, int]
) -> tuple[int, int]:
    """Return rows and columns of a block: large, but so that every thread has one."""
    high, width = (
        min(most, -(-extent // each) * each)
        for most, extent, each in ((block[0], m, tile.rows), (block[1], n, tile.columns))
    )
    while batches * -(-m // high) * -(-n // width) < threads:
        if width > tile.columns and width >= high:
            width = -(-width // (2 * tile.columns)) * tile.columns
        elif high > tile.rows:
            high = -(-high // (2 * tile.rows)) * tile.rows
        else:
            break
    return high, width
