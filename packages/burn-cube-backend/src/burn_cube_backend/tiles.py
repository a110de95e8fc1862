"""Matrix tiles in kernels: operands from shared rows of halves, products, elements of units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from burn_cube.spi import Op, Tile
from burn_cube_backend.code import Buf, Code, Val
from burn_std import DType, dtypes as d

PLANE, SIDE = 32, 16
# Halves that one copy takes, and that pad a shared row.
CHUNK = 8
# Units of four planes, rows of their products, and halves of a line of their operands.
GROUP_UNITS, GROUP_ROWS, LINE = 128, 64, 64
# What a plane has of a product.
SUMS = Tile("acc", d.float32, SIDE, SIDE)


class Tiles:
    """Tiles of a kernel: loads, products, elements."""

    def __init__(self, code: Code, dtype: DType) -> None:
        self.code, self.dtype = code, dtype
        lane = code.special("unit_pos_plane")
        # Where the first element of a unit stands in a tile.
        self.row, self.column = lane // 4, (lane % 4) * 2

    def load(self, use: str, memory: Buf, at: Val, stride: int, turned: bool = False) -> Op:
        """Return an operand from shared rows of halves; `turned` reads the transpose."""
        b, code = self.code.b, self.code
        layout = "col" if turned else "row"
        return b.tile_load(
            use, memory.op, at.op, code.at(stride).op, SIDE, SIDE, layout, aligned=True
        )

    def fill(self, value: float = 0.0) -> Op:
        """Return an accumulator."""
        return self.code.b.tile_fill(self.code.const(value, d.float32).op, SIDE, SIDE)

    def slot(self) -> Op:
        """Return a mutable accumulator of zeros."""
        made = self.code.b.slot(SUMS)
        self.code.b.set(made, self.fill())
        return made

    def add(self, slot: Op, a: Op, b: Op) -> None:
        """Add a product to a mutable accumulator."""
        code = self.code.b
        code.set(slot, code.tile_mma(a, b, code.get(slot)))

    def elements(self, tile: Op) -> list[Val]:
        """Return the elements of the unit: numbers 0, 1, 4, 5 in its first row, else 8 below."""
        return [Val(self.code, self.code.b.tile_element(tile, n)) for n in range(8)]

    def of(self, elements: Sequence[Val]) -> Op:
        """Return an accumulator from elements."""
        return self.code.b.tile_of(*[e.op for e in elements])

    def operand(self, elements: Sequence[Val]) -> Op:
        """Return elements as the left operand of a product."""
        return self.code.b.tile_operand(self.of(elements), self.dtype)

    def store_rows(
        self, out: Buf, held: Sequence[Sequence[Val]], row: Callable[[int], tuple[Val, Val]],
        whole: bool = True, inside: Callable[[Val], Val] | None = None,
    ) -> None:  # fmt: skip
        """Write the elements of tiles that lie side by side in rows.

        Four units that have a row of halves exchange them, so that each writes 16 bytes.

        Args:
            out: memory.
            held: of each tile the elements of the unit, in the dtype of the result.
            row: gives where the first or the second row of the unit begins, and whether it is one.
            whole: rows begin at multiples of 16 bytes.
            inside: whether what begins at a column is there.
        """
        b, code = self.code.b, self.code
        for half in (0, 1):
            base, good = row(half)
            pieces: list[tuple[Val, list[Val]]] = []
            number = 0
            while number < len(held):
                pairs = [
                    (n * SIDE + c, [e[first], e[first + 1]])
                    for n, e in enumerate(held[number : number + 2], number)
                    for c, first in ((0, 2 * half), (8, 4 + 2 * half))
                ]
                if whole and len(pairs) == 4 and held[number][0].dtype.bits == 16:
                    at = (self.column * 4) + number * SIDE
                    pieces.append((at, self._exchanged([pair for _, pair in pairs])))
                    number += 2
                else:
                    pieces += [(self.column + c, pair) for c, pair in pairs[:2]]
                    number += 1
            for at, values in pieces:
                there = good if inside is None else good & inside(at)
                with code.when(there):
                    b.store(out.op, (base + at).op, b.vector(*[v.op for v in values]))

    def _exchanged(self, pairs: Sequence[Sequence[Val]]) -> list[Val]:
        """Return eight neighbours of a row, of which each of four units has four pairs."""
        code, dtype = self.code, pairs[0][0].dtype
        words = []
        for pair in pairs:
            low, high = (e.bits(d.uint16).cast(d.uint32) for e in pair)
            words.append(low | high << 16)
        lane = code.special("unit_pos_plane").cast(d.int32)
        for step in (1, 2):
            upper, by = (lane & step).ne(0), code.const(step, d.int32).op
            for n in (k for k in range(4) if not k & step):
                low, high = words[n], words[n | step]
                got = Val(code, code.b.plane("shuffle_xor", upper.pick(low, high).op, by))
                words[n], words[n | step] = upper.pick(got, low), upper.pick(high, got)
        return [
            part.cast(d.uint16).bits(dtype)
            for word in words
            for part in (word & 0xFFFF, word >> 16)
        ]


def half_of(number: int) -> int:
    """Return 0 if an element stands in the first row of its unit, 1 if in the second."""
    return number >> 1 & 1


def column_of(number: int) -> int:
    """Return how far an element stands behind the first column of its unit."""
    return (number & 1) + (number >> 2) * 8


class Groups:
    """Products of four planes, from shared lines of 64 halves."""

    def __init__(self, code: Code) -> None:
        self.code = code

    def add(
        self, sums: Sequence[Op], left: list[Op] | tuple[Buf, Sequence[Val]], right: Buf,
        places: Sequence[Val], turned: tuple[bool, bool] = (False, False), fresh: bool = False,
        span: tuple[int, int] = (LINE, LINE),
    ) -> None:  # fmt: skip
        """Add a product to mutable accumulators; `left` may be operands that the planes hold."""
        given: Any = left
        if isinstance(left, tuple):
            given = (left[0].op, [p.op for p in left[1]])
        self.code.b.group_mma(
            sums, given, right.op, [p.op for p in places], turned=turned, span=span, fresh=fresh
        )

    def wait(self, sums: Sequence[Op]) -> None:
        """Wait for all products; the sums can be read behind it."""
        self.code.b.group_wait(sums)
