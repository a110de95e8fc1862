"""Products of halves by groups of four planes, whose operands stay in shared memory.

As in `matmul_tiles` a cube computes a block of the result, and blocks of both operands pass
through a ring of shared memory. Here they lie in the lines that `group_mma` reads. While a block
is multiplied, the copies of a later one are started; it takes the place of the block before.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple

from burn_cube import Kernel
from burn_cube_backend.code import Code, Val
from burn_cube_backend.kernels.matmul_tiles import Frame, Operand, Spec
from burn_cube_backend.tiles import (
    CHUNK,
    GROUP_ROWS,
    GROUP_UNITS,
    LINE,
    SIDE,
    Groups,
    Tiles,
)


class GroupBlock(NamedTuple):
    """How a cube cuts its work.

    Attributes:
        groups: groups of four planes, down and across.
        tile: rows and columns of the result that a group has: multiples of 64, and of 16 up to 256.
        stages: blocks in the ring.
    """

    groups: tuple[int, int]
    tile: tuple[int, int]
    stages: int

    @property
    def depth(self) -> int:
        """Depth of a step: one line."""
        return LINE

    @property
    def rows(self) -> int:
        """Rows of the result of a cube."""
        return self.groups[0] * self.tile[0]

    @property
    def columns(self) -> int:
        """Columns of the result of a cube."""
        return self.groups[1] * self.tile[1]

    @property
    def units(self) -> int:
        """Units of a cube."""
        return self.groups[0] * self.groups[1] * GROUP_UNITS


class _Ring:
    """One operand in shared memory: a line for each row or column, or panels of lines of depth."""

    def __init__(
        self, code: Code, operand: Operand, s: Spec, block: GroupBlock, extent: int
    ) -> None:
        self.code = code
        self.far, self.along, self.lies = operand
        # Panels are whole.
        self.lines = extent if self.along else -(-extent // LINE) * LINE
        self.size = self.lines * LINE
        self.near = code.shared(s.dtype, self.size * block.stages)
        # A unit has one chunk of every `hop`-th line, always the same one of the pattern.
        chunks = LINE // CHUNK
        unit = code.special("unit_pos")
        self.hop = block.units // chunks
        self.line, chunk = unit // chunks, unit % chunks
        self.column = chunk * CHUNK
        self.at = self.line * LINE + (chunk ^ (self.line % 8)) * CHUNK
        self.panels = [self._panel(first) for first in range(0, self.lines, self.hop)]
        self.source = self.lies.place(self.along, self.line, self.column)

    def _panel(self, first: int) -> tuple[Val, Val]:
        """Return the first column of a line's panel, and its depth, for lines of depth."""
        if LINE % self.hop == 0:
            return self.code.at(first // LINE * LINE), self.line + first % LINE
        line = self.line + first
        return line // LINE * LINE, line % LINE

    def bring(self, slot: Val, step: Val) -> None:
        """Start copies of the block of a step; what is outside becomes zeros."""
        b, lies = self.code.b, self.lies
        depth = step * LINE
        source = self.source + (depth if self.along else depth * lies.lead)
        target = slot * self.size + self.at
        for part in range(-(-self.lines // self.hop)):
            first = part * self.hop
            line = self.line + first
            whole = first + self.hop <= self.lines
            if self.along:
                inside = lies.holds(True, line, self.column, depth)
                more = lies.lead * first
            else:
                # Lines of depth, panel by panel.
                panel, deep = self.panels[part]
                inside = lies.holds(False, deep, self.column + panel, depth)
                more = (deep - self.line) * lies.lead + panel
            with nullcontext() if whole else self.code.when(line < self.lines):
                b.async_copy(
                    self.near.op, (target + first * LINE).op, self.far.op, (source + more).op,
                    CHUNK, True, inside.op,
                )  # fmt: skip

    def places(self, slot: Val, first: Val) -> list[Val]:
        """Return where the operand begins at a row or column, at each step of a block."""
        start = slot * self.size + first * LINE
        each = SIDE if self.along else SIDE * LINE
        return [start + step * each for step in range(LINE // SIDE)]


def group_kernel(s: Spec, block: GroupBlock) -> Kernel:
    """Write out = x y for a batch; grid and parameters are those of `matmul_tiles`."""
    frame = Frame("matmul_groups", s, block)
    code, b = frame.code, frame.code.b
    left = _Ring(code, frame.left, s, block, block.rows)
    right = _Ring(code, frame.right, s, block, block.columns)
    tiles, groups = Tiles(code, s.dtype), Groups(code)

    def bring(slot: Val, step: Val) -> None:
        left.bring(slot, step)
        right.bring(slot, step)

    frame.begin(bring)
    # Blocks that are brought before they are needed.
    ahead = block.stages - 1
    group = code.special("unit_pos") // GROUP_UNITS
    down = (group // block.groups[1]) * block.tile[0]
    across = (group % block.groups[1]) * block.tile[1]
    high, wide = block.tile[0] // GROUP_ROWS, block.tile[1] // SIDE
    sums = [[tiles.slot() for _ in range(wide)] for _ in range(high)]
    slot, next_slot = code.local(s.places), code.local(s.places, ahead)
    with code.loop(0, frame.steps) as step:
        b.async_wait(ahead - 1)
        code.barrier()
        here = slot.get()
        for i, row in enumerate(sums):
            groups.add(
                row, (left.near, left.places(here, down + i * GROUP_ROWS)), right.near,
                right.places(here, across), (not left.along, not right.along),
            )  # fmt: skip
        # What was multiplied in the step before makes room: every group is behind it.
        with code.when(step + ahead < frame.steps):
            bring(next_slot.get(), step + ahead)
        b.async_commit()
        groups.wait([cell for row in sums for cell in row])
        frame.turn(slot, next_slot)
    plane = code.special("plane_pos") % 4
    for i, cells in enumerate(sums):
        line = down + (plane * SIDE + tiles.row + i * GROUP_ROWS)
        frame.store(tiles, cells, line, across)
    return code.finish()
