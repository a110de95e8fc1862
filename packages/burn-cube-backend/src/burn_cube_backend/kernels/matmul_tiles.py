"""Products of halves on tensor cores, in tiles that copies bring ahead of the work.

A cube computes a block of the result. Blocks of both operands pass through a ring of shared
memory: while one is multiplied, copies of the next ones are under way. Planes share the block;
each keeps its part of the sums. Operands are read as they lie, by rows or by columns. Where blocks
of the result are few, the depth is cut in parts whose sums in float32 are added afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from burn_cube import Kernel
from burn_cube.spi import Op
from burn_cube_backend.code import Buf, Code, Local, Val
from burn_cube_backend.tiles import CHUNK, PLANE, SIDE, Tiles
from burn_std import DType

if TYPE_CHECKING:
    from burn_cube_backend.kernels.matmul_groups import GroupBlock


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


# Neighbouring rows of blocks whose cubes run one after the other: they share columns in the cache.
GROUP = 8


class Spec(NamedTuple):
    """What a kernel depends on.

    Attributes:
        dtype: of the operands.
        out: dtype of the result.
        turned: whether the left and the right operand lie by columns.
        whole: rows of the result begin at multiples of 16 bytes.
        rank: dims of the batch.
        places: dtype of places.
    """

    dtype: DType
    out: DType
    turned: tuple[bool, bool]
    whole: bool
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

    def place(self, along: bool, line: Val, column: Val) -> Val:
        """Return the place of an element of the cube's first block."""
        line0, column0 = (self.first, self.start) if along else (self.start, self.first)
        return self.head + (line0 + line) * self.lead + column0 + column

    def holds(self, along: bool, line: Val, column: Val, depth: Val) -> Val:
        """Return whether an element of the block that begins so deep is one of the operand."""
        across, down = (line, column) if along else (column, line)
        return (self.first + across < self.extent) & (self.start + depth + down < self.stop)


class Operand(NamedTuple):
    """An operand of a product: its memory, whether lines run along the depth, where it lies."""

    far: Buf
    along: bool
    lies: Lies


class Frame:
    """What both kernels of tiles have: parameters, the block of a cube, and its edges.

    Attributes:
        code: the kernel.
        left: the operands; `right` the other one.
        steps: blocks of depth of the cube.
    """

    def __init__(self, name: str, s: Spec, block: Block | GroupBlock) -> None:
        self.code = code = Code(name, s.places, block.units)
        self._out = code.buffer("out", s.out)
        x, y = code.buffer("x", s.dtype), code.buffer("y", s.dtype)
        m, n, k = (code.place(p) for p in "mnk")
        part_depth = code.place("part_depth")
        x0, y0, x_lead, y_lead = (code.place(p) for p in ("x0", "y0", "x_lead", "y_lead"))
        extents = code.places("extent", s.rank)
        x_strides, y_strides = code.places("x_stride", s.rank), code.places("y_stride", s.rank)
        batch = code.special("cube_pos_z")
        coords = code.coords(batch, extents)
        x_head, y_head = code.walk(x0, coords, x_strides), code.walk(y0, coords, y_strides)
        part, parts = code.special("cube_pos_y"), code.special("cube_count_y")
        row0, column0 = _place_of(code, block.rows, block.columns, m, n)
        start = part * part_depth
        stop = (start + part_depth).call("min", k)
        self.steps = (stop - start + (block.depth - 1)) // block.depth
        self.left = Operand(x, not s.turned[0], Lies(x_head, x_lead, row0, start, stop, m))
        self.right = Operand(y, s.turned[1], Lies(y_head, y_lead, column0, start, stop, n))
        self._stages, self._whole, self._dtype = block.stages, s.whole, s.out
        self._base, self._first, self._extents = (batch * parts + part) * m, (row0, column0), (m, n)

    def begin(self, bring: Callable[[Val, Val], None]) -> None:
        """Start copies of the first blocks: `bring` takes a place of the ring and a step."""
        for number in range(self._stages - 1):
            at = self.code.at(number)
            with self.code.when(at < self.steps):
                bring(at, at)
            self.code.b.async_commit()

    def turn(self, *slots: Local) -> None:
        """Go to the next places of the ring."""
        for slot in slots:
            following = slot.get() + 1
            slot.set(following.eq(self._stages).pick(0, following))

    def store(self, tiles: Tiles, cells: Sequence[Op], row: Val, column: Val) -> None:
        """Write sums that lie side by side.

        Args:
            tiles: of the kernel.
            cells: mutable accumulators.
            row: that of the unit, in the cube's block.
            column: the first one, in the cube's block.
        """
        (row0, column0), (rows, columns) = self._first, self._extents
        row, column = row0 + row, column0 + column
        held = [
            [e.cast(self._dtype) for e in tiles.elements(self.code.b.get(cell))] for cell in cells
        ]
        tiles.store_rows(
            self._out, held,
            lambda half: ((self._base + row + 8 * half) * columns + column, row + 8 * half < rows),
            self._whole, lambda at: column + at < columns,
        )  # fmt: skip


class _Ring:
    """One operand in shared memory: blocks of lines of contiguous halves.

    `along` says that lines run along the depth.
    """

    def __init__(self, code: Code, operand: Operand, s: Spec, block: Block, extent: int) -> None:
        self.code, self.block = code, block
        self.far, self.along, self.lies = operand
        self.lines, self.width = (extent, block.depth) if self.along else (block.depth, extent)
        self.stride = self.width + CHUNK
        self.size = self.lines * self.stride
        self.near = code.shared(s.dtype, self.size * block.stages)
        # A unit has one chunk of every `hop`-th line.
        chunks = self.width // CHUNK
        unit = code.special("unit_pos")
        self.hop = block.units // chunks
        self.line, self.column = unit // chunks, (unit % chunks) * CHUNK
        self.source = self.lies.place(self.along, self.line, self.column)

    def bring(self, slot: Val, step: Val) -> None:
        """Start copies of the block of a step; what is outside becomes zeros.

        Args:
            slot: number of the block in the ring.
            step: number of the step.
        """
        b, lies = self.code.b, self.lies
        depth = step * self.block.depth
        source = self.source + (depth if self.along else depth * lies.lead)
        target = slot * self.size + self.line * self.stride + self.column
        for part in range(self.lines // self.hop):
            inside = lies.holds(self.along, self.line + part * self.hop, self.column, depth)
            b.async_copy(
                self.near.op, (target + part * self.hop * self.stride).op, self.far.op,
                (source + (lies.lead * (part * self.hop))).op, CHUNK, True, inside.op,
            )  # fmt: skip

    def place(self, slot: Val, first: Val, at: int, depth: int) -> Val:
        """Return where the tile at a row or column behind `first` and at a depth begins."""
        if self.along:
            return slot * self.size + first * self.stride + (at * self.stride + depth)
        return slot * self.size + first + (depth * self.stride + at)


def product_kernel(s: Spec, block: Block) -> Kernel:
    """Write out = x y for a batch; grid: blocks of the result, parts of the depth, batch."""
    frame = Frame("matmul_tiles", s, block)
    code, b = frame.code, frame.code.b
    left = _Ring(code, frame.left, s, block, block.rows)
    right = _Ring(code, frame.right, s, block, block.columns)
    tiles = Tiles(code, s.dtype)

    def bring(slot: Val, step: Val) -> None:
        left.bring(slot, step)
        right.bring(slot, step)

    frame.begin(bring)
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
    with code.loop(0, frame.steps) as step:
        with code.when(step + (block.stages - 1) < frame.steps):
            bring(ahead.get(), step + (block.stages - 1))
        b.async_commit()
        here = slot.get()
        lefts, rights = ([b.get(cell) for cell in cells] for cells in kept)
        for depth in range(0, block.depth, SIDE):
            # Operands of the next step are on their way while this one is multiplied.
            if depth + SIDE < block.depth:
                after = operands(here, depth + SIDE)
            else:
                frame.turn(slot, ahead)
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
    for i, cells in enumerate(sums):
        frame.store(tiles, cells, down + i * SIDE + tiles.row, across)
    return code.finish()


def _place_of(code: Code, high: int, wide: int, m: Val, n: Val) -> tuple[Val, Val]:
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
