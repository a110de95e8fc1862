"""Matrix tiles where there are no tensor cores: operands in shared memory, sums in each unit.

An operand is copied where the whole plane can read it. Of an accumulator each unit holds the
elements that it holds on CUDA, or with other planes unit, unit + plane, unit + 2 plane and so on.
Products of halves are exact in float32 and are added with increasing k; tensor cores add in an
order of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from burn_cube.builder import Builder
from burn_cube.frontend.memory import ArrayVal
from burn_cube.frontend.values import Val, swap_builder
from burn_cube.ir import Kernel, Op, walk
from burn_cube.language import bitcast, cast, fma
from burn_cube.lowering.choice import select
from burn_cube.lowering.rewrite import rewrite
from burn_cube.types import Tile
from burn_std.dtypes import float32, uint32

# Operations on tiles whose result is none.
OF_TILES = frozenset({"tile_store", "tile_element", "group_mma", "group_wait"})
# Halves of a line, of a chunk, and lines of the pattern in which operands of groups lie.
LINE, CHUNK, LINES = 64, 8, 8


def tiles_in_memory(kernel: Kernel) -> Kernel:
    """Replace tile operations in place; return the kernel."""
    if not any(isinstance(op.type, Tile) for op in walk(kernel.body)):
        return kernel
    made: dict[Op, ArrayVal] = {}

    def rule(op: Op, builder: Builder) -> Op | None:
        tile = isinstance(op.type, Tile) or op.name in OF_TILES
        if not tile and not (op.name == "set" and isinstance(op.args[0].type, Tile)):
            return None
        before = swap_builder(builder)
        try:
            return _Tiles(kernel, builder, made).result(op)
        finally:
            swap_builder(before)

    rewrite(kernel, rule)
    kernel.body.ops = [op for op in kernel.body.ops if op.name != "tile_slot"]
    return kernel


class _Tiles:
    """Every tile value stands for an array: shared for operands, of the unit for accumulators."""

    def __init__(self, kernel: Kernel, builder: Builder, made: dict[Op, ArrayVal]) -> None:
        self.builder = builder
        self.plane = kernel.plane_dim
        self.planes = -(-kernel.cube_size // kernel.plane_dim)
        self.made = made

    def array(self, op: Op) -> ArrayVal:
        """Return a new array for the tile that an operation makes."""
        tile: Tile = op.type
        count = tile.rows * tile.cols
        if tile.use == "acc":
            each = -(-count // self.plane)
            found = ArrayVal(self.builder.local(float32, each), each)
        else:
            size = count * self.planes
            found = ArrayVal(self.builder.shared(tile.dtype, size), size)
        self.made[op] = found
        return found

    def lane(self) -> Val:
        return Val(self.builder.special("unit_pos_plane"))

    def first(self, tile: Tile) -> Val:
        """Return where the tile of this plane begins in the shared array."""
        return Val(self.builder.special("plane_pos")) * (tile.rows * tile.cols)

    def elements(self, tile: Tile) -> list[tuple[int, Val]]:
        """Return for each element that this unit holds its number here and in the tile."""
        if tile.use == "acc" and self.plane == 32:
            first = self.lane() // 4 * tile.cols + self.lane() % 4 * 2
            return [
                (at, first + ((at >> 1 & 1) * 8 * tile.cols + (at & 1) + (at >> 2) * 8))
                for at in range(8)
            ]
        each = -(-tile.rows * tile.cols // self.plane)
        return [(at, self.lane() + at * self.plane) for at in range(each)]

    def result(self, op: Op) -> Op:
        made: Op | None = getattr(self, op.name)(op)
        if made is not None:
            return made
        # The old operation is dropped: what stands in its place only names the tile's array.
        token = Op("tile_slot", op.type)
        if op in self.made:
            self.made[token] = self.made[op]
        return token

    def slot(self, op: Op) -> None:
        self.array(op)

    def get(self, op: Op) -> None:
        self._copy(self.array(op), self.made[op.args[0]], op.type)

    def set(self, op: Op) -> None:
        self._copy(self.made[op.args[0]], self.made[op.args[1]], op.args[0].type)

    def _copy(self, target: ArrayVal, source: ArrayVal, tile: Tile) -> None:
        if tile.use == "acc":
            for at, _ in self.elements(tile):
                target[at] = source[at]
            return
        self.builder.barrier()
        for _, place in self.elements(tile):
            target[self.first(tile) + place] = source[self.first(tile) + place]
        self.builder.barrier()

    def tile_fill(self, op: Op) -> None:
        array = self.array(op)
        for at, _ in self.elements(op.type):
            array[at] = Val(op.args[0])

    def _source(self, op: Op, tile: Tile, place: Val) -> Val:
        index, stride = Val(op.args[1]), Val(op.args[2])
        row, col = place // tile.cols, place % tile.cols
        if op.attrs["layout"] == "col":
            row, col = col, row
        return index + cast(row, index.dtype) * stride + cast(col, index.dtype)

    def tile_load(self, op: Op) -> None:
        tile, source, array = op.type, ArrayVal(op.args[0]), self.array(op)
        if tile.use == "acc":
            for at, place in self.elements(tile):
                array[at] = source[self._source(op, tile, place)]
            return
        # Others may still read what the round before left.
        self.builder.barrier()
        for _, place in self.elements(tile):
            value = source[self._source(op, tile, place)]
            array[self.first(tile) + place] = _tf32(value) if tile.dtype is float32 else value
        self.builder.barrier()

    def tile_store(self, op: Op) -> None:
        tile, target = op.args[3].type, ArrayVal(op.args[0])
        array = self.made[op.args[3]]
        for at, place in self.elements(tile):
            target[self._source(op, tile, place)] = array[at]

    def tile_element(self, op: Op) -> Op:
        held: Op = self.made[op.args[0]][op.attrs["number"]].op
        return held

    def tile_of(self, op: Op) -> None:
        array = self.array(op)
        for at, value in enumerate(op.args):
            array[at] = Val(value)

    def tile_operand(self, op: Op) -> None:
        array, source = self.array(op), self.made[op.args[0]]
        # Others may still read what the round before left.
        self.builder.barrier()
        for at, place in self.elements(op.args[0].type):
            array[self.first(op.type) + place] = cast(source[at], op.type.dtype)
        self.builder.barrier()

    def tile_mma(self, op: Op) -> None:
        a, b, acc = op.args
        left, right, old, new = self.made[a], self.made[b], self.made[acc], self.array(op)
        inner = a.type.cols
        for at, place in self.elements(op.type):
            new[at] = old[at]
            row = self.first(a.type) + place // op.type.cols * inner
            col = self.first(b.type) + place % op.type.cols
            builder = self.builder
            start, stop = (builder.const(n, builder.index) for n in (0, inner))
            with builder.for_(start, stop) as k_op:
                k = Val(k_op)
                x = cast(left[row + k], float32)
                y = cast(right[col + k * b.type.cols], float32)
                new[at] = fma(x, y, new[at])

    def group_mma(self, op: Op) -> None:
        attrs, count = op.attrs, op.attrs["columns"]
        steps, held = attrs["steps"], attrs["held"]
        slots, rest = op.args[:count], op.args[count:]
        memories, places = (rest[:1], rest[1:]) if held else (rest[:2], rest[2:])
        tile = Tile("acc", float32, 16, 16)
        own = self.lane() // 4
        row = Val(self.builder.special("plane_pos")) % 4 * 16
        if attrs["fresh"]:
            for slot in slots:
                for at, _ in self.elements(tile):
                    self.made[slot][at] = Val(self.builder.const(0.0, float32))
        for left, right in zip(places[:steps], places[steps:], strict=True):
            for number, slot in enumerate(slots):
                acc = self.made[slot]
                with self._loop(8) as e, self._loop(16) as k:
                    m = own + (e >> 1 & 1) * 8
                    n = self.lane() % 4 * 2 + (e & 1) + (e >> 2) * 8 + number * 16
                    if held:
                        x = self.made[left][self.first(left.type) + m * 16 + k]
                    else:
                        x = self._grouped(memories[0], left, row + m, k, attrs, 0)
                    y = self._grouped(memories[-1], right, n, k, attrs, 1)
                    acc[e] = fma(cast(x, float32), cast(y, float32), acc[e])

    def group_wait(self, op: Op) -> None:
        pass

    @contextmanager
    def _loop(self, count: int) -> Iterator[Val]:
        start, stop = (self.builder.const(n, self.builder.index) for n in (0, count))
        with self.builder.for_(start, stop) as number:
            yield Val(number)

    def _grouped(
        self, memory: Op, place: Op, outer: Val, k: Val, attrs: dict[str, Any], side: int
    ) -> Val:
        """Return an element of an operand of a group, by its row or column and its depth."""
        start = cast(Val(place), self.builder.index)
        line, column = start // LINE, start % LINE
        if attrs["turned"][side]:
            line = line + outer // LINE * attrs["span"][side] + k
            column = column + outer % LINE
        else:
            line, column = line + outer, column + k
        chunk = (column // CHUNK) ^ (line % LINES)
        found: Val = ArrayVal(memory)[line * LINE + chunk * CHUNK + column % CHUNK]
        return found


def _tf32(value: Val) -> Val:
    """Round a float32 to the ten bits of mantissa that tensor cores read."""
    bits = bitcast(value, uint32)
    rounded = (bits + 0xFFF + ((bits >> 13) & 1)) & 0xFFFFE000
    finite = (bits & 0x7F800000) != 0x7F800000
    kept: Val = bitcast(select(finite, rounded, bits), float32)
    return kept
