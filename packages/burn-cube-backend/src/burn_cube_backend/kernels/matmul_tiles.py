"""Products of halves on tensor cores, in tiles that copies bring ahead of the work.

A cube computes a block of the result. Blocks of both operands pass through a ring of shared
memory: while one is multiplied, copies of the next ones are under way. Planes share the block;
each keeps its part of the sums. Operands are read as they lie, by rows or by columns. Where blocks
of the result are few, the depth is cut in parts whose sums in float32 are added afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

from burn_cube import Kernel
from burn_cube.spi import Op
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    collapse,
    dense,
    size_of,
)
from burn_cube_backend.kernels.maps import HALVES
from burn_cube_backend.kernels.reduce import reduce
from burn_cube_backend.kernels.reduction import Reducer
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.tiles import CHUNK, PLANE, SIDE, Tiles, column_of, half_of
from burn_std import DType, dtypes as d


class Block(NamedTuple):
    """How a cube cuts its work.

    Attributes:
        planes: planes of a cube, down and across.
        tile: rows and columns of the result that a plane has, multiples of 16.
        depth: of a step, a multiple of 16.
        stages: blocks in the ring.
    """

    planes: tuple[int, int]
    tile: tuple[int, int]
    depth: int
    stages: int

    @property
    def rows(self) -> int:
        """Rows of the result of a cube."""
        return self.planes[0] * self.tile[0]

    @property
    def columns(self) -> int:
        """Columns of the result of a cube."""
        return self.planes[1] * self.tile[1]

    @property
    def units(self) -> int:
        """Units of a cube."""
        return self.planes[0] * self.planes[1] * PLANE


LARGE = Block((2, 4), (64, 64), 64, 3)
SMALL = Block((2, 2), (32, 32), 64, 3)
# Neighbouring rows of blocks whose cubes run one after the other: they share columns in the cache.
GROUP = 8
# Parts of the depth at most, and steps that each has at least.
PARTS, STEPS = 16, 8


class Spec(NamedTuple):
    """What a kernel depends on.

    Attributes:
        dtype: of the operands.
        out: dtype of the result.
        turned: whether the left and the right operand lie by columns.
        block: how a cube cuts its work.
        rank: dims of the batch.
        places: dtype of places.
    """

    dtype: DType
    out: DType
    turned: tuple[bool, bool]
    block: Block
    rank: int
    places: DType


class Lies(NamedTuple):
    """Where the block of an operand lies.

    Attributes:
        head: place of the matrix.
        lead: elements from line to line.
        first: first row or column of the cube.
        start: first depth of the cube.
        stop: depth behind its last one.
        extent: rows or columns that there are.
    """

    head: Val
    lead: Val
    first: Val
    start: Val
    stop: Val
    extent: Val


class _Ring:
    """One operand in shared memory: blocks of lines of contiguous halves.

    `along` says that lines run along the depth.
    """

    def __init__(self, code: Code, far: Buf, s: Spec, extent: int, along: bool, lies: Lies) -> None:
        self.code, self.far, self.s, self.along, self.lies = code, far, s, along, lies
        self.lines, self.width = (extent, s.block.depth) if along else (s.block.depth, extent)
        self.stride = self.width + CHUNK
        self.size = self.lines * self.stride
        self.near = code.shared(s.dtype, self.size * s.block.stages)
        # A unit has one chunk of every `hop`-th line.
        chunks = self.width // CHUNK
        unit = code.special("unit_pos")
        self.hop = s.block.units // chunks
        self.line, self.column = unit // chunks, (unit % chunks) * CHUNK
        line0, place0 = (lies.first, lies.start) if along else (lies.start, lies.first)
        self.source = lies.head + (line0 + self.line) * lies.lead + place0 + self.column

    def bring(self, slot: Val, step: Val) -> None:
        """Start copies of the block of a step; what is outside becomes zeros.

        Args:
            slot: number of the block in the ring.
            step: number of the step.
        """
        b, lies = self.code.b, self.lies
        depth = step * self.s.block.depth
        source = self.source + (depth if self.along else depth * lies.lead)
        target = slot * self.size + self.line * self.stride + self.column
        at = lies.start + depth
        for part in range(self.lines // self.hop):
            line = self.line + part * self.hop
            if self.along:
                inside = (lies.first + line < lies.extent) & (at + self.column < lies.stop)
            else:
                inside = (at + line < lies.stop) & (lies.first + self.column < lies.extent)
            b.async_copy(
                self.near.op, (target + part * self.hop * self.stride).op, self.far.op,
                (source + (lies.lead * (part * self.hop))).op, CHUNK, True, inside.op,
            )  # fmt: skip

    def place(self, slot: Val, first: Val, at: int, depth: int) -> Val:
        """Return where the tile at a row or column behind `first` and at a depth begins."""
        if self.along:
            return slot * self.size + first * self.stride + (at * self.stride + depth)
        return slot * self.size + first + (depth * self.stride + at)


def product_kernel(s: Spec) -> Kernel:
    """Write out = x y for a batch; grid: blocks of the result, parts of the depth, batch."""
    block = s.block
    code = Code("matmul_tiles", s.places, block.units)
    b = code.b
    out, x, y = code.buffer("out", s.out), code.buffer("x", s.dtype), code.buffer("y", s.dtype)
    m, n, k = (code.place(p) for p in "mnk")
    part_depth = code.place("part_depth")
    x0, y0, x_lead, y_lead = (code.place(p) for p in ("x0", "y0", "x_lead", "y_lead"))
    extents = code.places("extent", s.rank)
    x_strides, y_strides = code.places("x_stride", s.rank), code.places("y_stride", s.rank)
    batch = code.special("cube_pos_z")
    coords = code.coords(batch, extents)
    x_head, y_head = code.walk(x0, coords, x_strides), code.walk(y0, coords, y_strides)
    part, parts = code.special("cube_pos_y"), code.special("cube_count_y")
    row0, column0 = place_of(code, block.rows, block.columns, m, n)
    start = part * part_depth
    stop = (start + part_depth).call("min", k)
    steps = (stop - start + (block.depth - 1)) // block.depth
    left = _Ring(
        code, x, s, block.rows, not s.turned[0], Lies(x_head, x_lead, row0, start, stop, m)
    )
    right = _Ring(
        code, y, s, block.columns, s.turned[1], Lies(y_head, y_lead, column0, start, stop, n)
    )
    tiles = Tiles(code, s.dtype)

    def bring(step: Val, slot: Val) -> None:
        left.bring(slot, step)
        right.bring(slot, step)

    for number in range(block.stages - 1):
        with code.when(code.at(number) < steps):
            bring(code.at(number), code.at(number))
        b.async_commit()
    plane = code.special("plane_pos")
    down = (plane // block.planes[1]) * block.tile[0]
    across = (plane % block.planes[1]) * block.tile[1]
    high, wide = block.tile[0] // SIDE, block.tile[1] // SIDE
    sums = [[tiles.slot() for _ in range(wide)] for _ in range(high)]

    def operands(slot: Val, depth: int) -> tuple[list[Op], list[Op]]:
        lefts = [
            tiles.load(
                "a", left.near, left.place(slot, down, i * SIDE, depth), left.stride, s.turned[0]
            )
            for i in range(high)
        ]
        rights = [
            tiles.load(
                "b", right.near, right.place(slot, across, j * SIDE, depth), right.stride,
                s.turned[1],
            )
            for j in range(wide)
        ]  # fmt: skip
        return lefts, rights

    b.async_wait(block.stages - 2)
    code.barrier()
    slot = code.local(s.places)
    ahead = code.local(s.places, block.stages - 1)
    first = operands(slot.get(), 0)
    kept = [[b.slot(op.type) for op in side] for side in first]
    for cells, side in zip(kept, first, strict=True):
        for cell, op in zip(cells, side, strict=True):
            b.set(cell, op)
    with code.loop(0, steps) as step:
        with code.when(step + (block.stages - 1) < steps):
            bring(step + (block.stages - 1), ahead.get())
        b.async_commit()
        here = slot.get()
        lefts, rights = ([b.get(cell) for cell in cells] for cells in kept)
        for depth in range(0, block.depth, SIDE):
            # Operands of the next step are on their way while this one is multiplied.
            if depth + SIDE < block.depth:
                after = operands(here, depth + SIDE)
            else:
                for turn in (slot, ahead):
                    following = turn.get() + 1
                    turn.set(following.eq(block.stages).pick(0, following))
                b.async_wait(block.stages - 2)
                code.barrier()
                after = operands(slot.get(), 0)
            for i in range(high):
                for j in range(wide):
                    tiles.add(sums[i][j], lefts[i], rights[j])
            lefts, rights = after
        for cells, side in zip(kept, (lefts, rights), strict=True):
            for cell, op in zip(cells, side, strict=True):
                b.set(cell, op)
    base = (batch * parts + part) * m
    for i in range(high):
        for j in range(wide):
            held = tiles.elements(b.get(sums[i][j]))
            for number in (0, 2, 4, 6):
                row = row0 + down + i * SIDE + tiles.row + 8 * half_of(number)
                column = column0 + across + j * SIDE + tiles.column + column_of(number)
                with code.when((row < m) & (column < n)):
                    pair = [e.cast(s.out).op for e in held[number : number + 2]]
                    b.store(out.op, ((base + row) * n + column).op, b.vector(*pair))
    return code.finish()


def place_of(code: Code, high: int, wide: int, m: Val, n: Val) -> tuple[Val, Val]:
    """Return the first row and column of the cube, groups of rows one after the other.

    Args:
        code: the kernel.
        high: rows of the result of a cube.
        wide: columns of them.
        m: rows that there are.
        n: columns that there are.
    """
    rows = (m + (high - 1)) // high
    columns = (n + (wide - 1)) // wide
    cube = code.special("cube_pos_x")
    per = columns * GROUP
    group = cube // per
    first = group * GROUP
    many = (rows - first).call("min", GROUP)
    rest = cube - group * per
    return (first + rest % many) * high, (rest // many) * wide


class _Operand(NamedTuple):
    """How an operand lies: whether by columns, and elements from line to line."""

    turned: bool
    lead: int


def _lies(x: CubeTensor) -> _Operand | None:
    """Return how matrices lie, None where their lines are not in pieces of 16 bytes."""
    rows, columns = x.shape[-2:]
    down, along = x.strides[-2:]
    if along == 1 and columns % CHUNK == 0 and (down >= columns or rows == 1):
        made = _Operand(False, max(down, columns))
    elif down == 1 and rows % CHUNK == 0 and (along >= rows or columns == 1):
        made = _Operand(True, max(along, rows))
    else:
        return None
    steps = [s for n, s in zip(x.shape[:-2], x.strides[:-2], strict=True) if n > 1]
    assert x.buf is not None  # noqa: S101 - solid
    even = all(s % CHUNK == 0 for s in (made.lead, x.offset, *steps)) and x.buf.pointer % 16 == 0
    return made if even else None


def cut(engine: Engine, m: int, n: int, k: int, batches: int) -> tuple[Block, int]:
    """Return how cubes cut a product, and the depth of a part."""
    units = engine.client.properties.units

    def cubes(block: Block) -> int:
        return -(-m // block.rows) * -(-n // block.columns) * batches

    block = LARGE if cubes(LARGE) >= units else SMALL
    parts = max(1, min(PARTS, units // cubes(block), k // (block.depth * STEPS)))
    depth = -(-k // parts)
    return block, -(-depth // block.depth) * block.depth


def product(engine: Engine, x: CubeTensor, y: CubeTensor) -> CubeTensor | None:
    """Return the product of two tensors of matrices, or None where this kernel does not fit.

    Args:
        engine: the device.
        x: [..., M, K].
        y: [..., K, N], of the same dtype.
    """
    dtype = x.dtype
    if "tensor_cores" not in engine.client.properties.capabilities or dtype not in HALVES:
        return None
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    batch = broadcast_shape([x.shape[:-2], y.shape[:-2]])
    batches = size_of(batch)
    if not batches or not m or not n or not k or batches > 65535 or n % 2:
        return None
    left, right = _lies(x), _lies(y)
    if left is None or right is None:
        return None
    block, depth = cut(engine, m, n, k, batches)
    return multiplied(engine, x, y, (left, right), batch, block, depth)


def multiplied(
    engine: Engine, x: CubeTensor, y: CubeTensor, lies: tuple[_Operand, _Operand], batch: Ints,
    block: Block, depth: int,
) -> CubeTensor:  # fmt: skip
    """Return a product cut in a way."""
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    parts = -(-k // depth)
    kind = x.dtype if parts == 1 else d.float32
    out = engine.empty((*batch, m, n) if parts == 1 else (size_of(batch), parts, m * n), kind)
    walks = [broadcast_strides(t.shape[:-2], t.strides[:-2], batch) for t in (x, y)]
    extents, strides = collapse(batch, walks)
    index = engine.index_dtype(x, y, out, count=out.size)
    spec = Spec(x.dtype, kind, (lies[0].turned, lies[1].turned), block, len(extents), index)
    args = [
        out.buf, x.buf, y.buf, m, n, k, depth, x.offset, y.offset, lies[0].lead, lies[1].lead,
        *extents, *strides[0], *strides[1],
    ]  # fmt: skip
    cubes = -(-m // block.rows) * -(-n // block.columns)
    program = engine.loaded(product_kernel, (spec,))
    engine.start(program, (cubes, parts, size_of(batch)), args)
    if parts == 1:
        return out
    whole = Reducer("sum", kind, kind, kind, x.dtype)
    made = reduce(engine, whole, out, (1,), False)
    shape = (*batch, m, n)
    return made.view(shape, dense(shape))
