"""Attention of halves on tensor cores, without the scores in memory.

A cube owns a block of queries, each plane sixteen of them, and walks over blocks of keys. Scores
stay in the units that hold them: four neighbours have a row together. The running maximum and sum
of a row rescale what was added before. Exponentials are powers of two, so the scale carries
log2(e). Shared rows are padded by eight halves, so that `ldmatrix` meets every bank once.

Source: Dao, FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning, 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from math import log2
from typing import NamedTuple

from burn_cube import Kernel
from burn_cube.spi import Op
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.tiles import (
    CHUNK,
    GROUP_ROWS,
    LINE,
    PLANE,
    SIDE,
    SUMS,
    Groups,
    Tiles,
    column_of,
    half_of,
)
from burn_std import DType, dtypes as d

# Operands that are loaded before the first of them is used.
AHEAD = 4
LOG2E = log2(2.718281828459045)


class Shape(NamedTuple):
    """What a kernel depends on.

    Attributes:
        dtype: float16 or bfloat16.
        depth: extent of queries and keys, a multiple of 16.
        width: extent of values, a multiple of 16.
        rank: dims of the batch, heads among them.
        causal: a query sees keys up to its own number.
        mask: dtype of the mask, None without one.
        planes: planes of a cube.
        block: rows that are brought in a step, a multiple of 16.
        places: dtype of places.
        grouped: four planes multiply together.
    """

    dtype: DType
    depth: int
    width: int
    rank: int
    causal: bool
    mask: DType | None
    planes: int
    block: int
    places: DType
    grouped: bool = False

    @property
    def units(self) -> int:
        """Units of a cube."""
        return self.planes * PLANE


class Rows:
    """Rows of a matrix in memory that are brought into shared memory.

    Attributes:
        near: shared memory of `stages` blocks.
        stride: halves from row to row there.
        size: halves of a block there.
        grouped: rows are lines of operands of groups, in panels of 64 columns.
    """

    def __init__(
        self, code: Code, far: Buf, dtype: DType, block: int, width: int, units: int, stages: int,
        grouped: bool = False,
    ) -> None:  # fmt: skip
        self.code, self.far = code, far
        self.block, self.width, self.units = block, width, units
        self.grouped = grouped
        self.stride = LINE if grouped else width + CHUNK
        self.size = block * self.stride * (-(-width // LINE) if grouped else 1)
        self.near = code.shared(dtype, self.size * stages)
        self.dtype = dtype

    def bring(self, to: Val, head: Val, first: Val, limit: Val, step: Val) -> None:
        """Start copies of a block of rows; rows from `limit` on become zeros.

        Args:
            to: start of the block in shared memory.
            head: place of row 0 in memory.
            first: number of the first row.
            limit: rows that there are.
            step: elements from row to row.
        """
        code, b = self.code, self.code.b
        chunks = self.width // CHUNK
        count = self.block * chunks
        unit = code.special("unit_pos")
        for part in range(-(-count // self.units)):
            number = unit + part * self.units
            row, chunk = number // chunks, number % chunks
            column = chunk * CHUNK
            at = to + row * self.stride + self._along(row, chunk)
            source = head + (first + row) * step + column
            inside = (first + row < limit).op
            whole = (part + 1) * self.units <= count
            with nullcontext() if whole else code.when(number < count):
                b.async_copy(
                    self.near.op, at.op, self.far.op, source.op, CHUNK, True, inside
                )  # fmt: skip

    def _along(self, row: Val, chunk: Val) -> Val:
        """Return how far behind the start of its line a chunk lies."""
        if not self.grouped:
            return chunk * CHUNK
        each = LINE // CHUNK
        near = ((chunk % each) ^ (row % each)) * CHUNK
        return near if self.width <= LINE else near + chunk // each * (self.block * LINE)

    def along(self, start: Val, steps: int) -> list[Val]:
        """Return where steps along the columns of a block of lines begin."""
        each = LINE // SIDE
        return [start + (n // each * self.block * LINE + n % each * SIDE) for n in range(steps)]


class Batch(NamedTuple):
    """Where the matrices of a head begin, and the steps of their rows, by name."""

    rows: dict[str, Val]
    heads: dict[str, Val]


class Layout:
    """The numbers that say where the matrices of each head begin."""

    def __init__(self, code: Code, names: Sequence[str], rank: int) -> None:
        self.code = code
        self.extents = code.places("extent", rank)
        self.numbers = {}
        for name in names:
            offset, row = code.place(f"{name}_offset"), code.place(f"{name}_row")
            self.numbers[name] = (offset, row, code.places(f"{name}_stride", rank))
        self.along = code.place("mask_along") if "mask" in names else None

    def of(self, head: Val) -> Batch:
        """Return where the matrices of a head begin."""
        coords = self.code.coords(head, self.extents)
        heads = {
            name: self.code.walk(offset, coords, strides)
            for name, (offset, _, strides) in self.numbers.items()
        }
        return Batch({name: row for name, (_, row, _) in self.numbers.items()}, heads)


class Mask:
    """The mask of scores of one head.

    Args:
        s: what the kernel depends on.
        buf: memory of the mask, None without one.
        layout: where masks begin.
        head: number of the head.
    """

    def __init__(self, s: Shape, buf: Buf | None, layout: Layout, head: Batch) -> None:
        self.s, self.buf, self.along, self.batch = s, buf, layout.along, head

    def scored(self, score: Val, query: Val, key: Val, scale: Val, counts: tuple[Val, Val]) -> Val:
        """Return a score before the scale, -inf where the key is not seen.

        Args:
            score: product of query and key.
            query: its number.
            key: its number.
            scale: with log2(e) in it.
            counts: how many queries and keys there are.
        """
        s = self.s
        queries, keys = counts
        made = score
        seen = key < keys
        if s.causal:
            seen = seen & (key <= query)
        if self.buf is not None and self.along is not None:
            # Numbers outside read the last element; what comes of them is dropped.
            row = query.call("min", queries - 1) * self.batch.rows["mask"]
            at = self.batch.heads["mask"] + row + key.call("min", keys - 1) * self.along
            value = self.buf[at]
            if value.dtype.is_bool:
                seen = seen & value
            else:
                made = made + value.cast(d.float32) * (LOG2E / scale)
        return seen.pick(made, float("-inf"))


def over_row(code: Code, op: str, value: Val) -> Val:
    """Return a fold over the four units that hold a row."""
    for step in (1, 2):
        by = code.const(step, d.int32).op
        value = value.call(op, Val(code, code.b.plane("shuffle_xor", value.op, by)))
    return value


def forward_kernel(s: Shape) -> Kernel:
    """Write attention, and log2 of the sum of powers of each row, [heads, queries].

    Grid: blocks of queries by heads. Results are row-major.
    """
    code = Code("attention_forward", s.places, s.units, fast_math=True)
    b = code.b
    out, sums = code.buffer("out", s.dtype), code.buffer("sums", d.float32)
    q, k, v = (code.buffer(n, s.dtype) for n in "qkv")
    masks = code.buffer("mask", s.mask) if s.mask is not None else None
    queries, keys, scale = (
        code.place("queries"),
        code.place("keys"),
        code.scalar("scale", d.float32),
    )
    head = code.special("cube_pos_y")
    names = ("q", "k", "v") if s.mask is None else ("q", "k", "v", "mask")
    layout = Layout(code, names, s.rank)
    batch = layout.of(head)
    mask = Mask(s, masks, layout, batch)
    tiles = Tiles(code, s.dtype)
    rows = s.planes * SIDE
    # The longest rows of a causal mask begin first.
    block = code.special("cube_count_x") - 1 - code.special("cube_pos_x")
    first = block * rows
    plane = code.special("plane_pos")
    qs = Rows(code, q, s.dtype, rows, s.depth, s.units, 1, s.grouped)
    ks = Rows(code, k, s.dtype, s.block, s.depth, s.units, 2, s.grouped)
    vs = Rows(code, v, s.dtype, s.block, s.width, s.units, 2, s.grouped)

    def bring(j: Val) -> None:
        half = j & 1
        ks.bring(half * ks.size, batch.heads["k"], j * s.block, keys, batch.rows["k"])
        vs.bring(half * vs.size, batch.heads["v"], j * s.block, keys, batch.rows["v"])

    blocks = (keys + (s.block - 1)) // s.block
    # Blocks in which every query of the cube sees every key.
    whole = keys // s.block
    if s.causal:
        blocks = blocks.call("min", (first + (rows + s.block - 1)) // s.block)
        whole = whole.call("min", (first + 1) // s.block)
    if s.mask is not None:
        whole = code.at(0)
    qs.bring(code.at(0), batch.heads["q"], first, queries, batch.rows["q"])
    bring(code.at(0))
    b.async_wait()
    code.barrier()
    left = Left(tiles, qs, plane, s.depth)
    acc = [tiles.slot() for _ in range(s.width // SIDE)]
    top = [code.local(d.float32, float("-inf")) for _ in range(2)]
    total = [code.local(d.float32) for _ in range(2)]
    query = first + plane * SIDE + tiles.row
    with code.loop(0, blocks) as j:
        b.async_wait()
        code.barrier()
        with code.when(j + 1 < blocks):
            bring(j + 1)
        half = j & 1
        values = [
            [code.local(d.float32, e) for e in tiles.elements(score)]
            for score in scores(tiles, [(left, ks, half * ks.size)], s.block // SIDE)[0]()
        ]
        with code.when(j >= whole):
            for n, held in enumerate(values):
                for number, e in enumerate(held):
                    key = j * s.block + tiles.column + (n * SIDE + column_of(number))
                    row = query + 8 * half_of(number)
                    e.set(mask.scored(e.get(), row, key, scale, (queries, keys)))
        shrinks = []
        for side in range(2):
            own = [e for held in values for n, e in enumerate(held) if half_of(n) == side]
            most = own[0].get()
            for e in own[1:]:
                most = most.call("max", e.get())
            most = over_row(code, "max", most).call("max", top[side].get())
            base = most.eq(float("-inf")).pick(0.0, -(most * scale))
            shrinks.append(top[side].get().call("fma", scale, base).call("exp2"))
            top[side].set(most)
            part = code.const(0.0, d.float32)
            for e in own:
                e.set(e.get().call("fma", scale, base).call("exp2"))
                part = part + e.get()
            total[side].set(total[side].get().call("fma", shrinks[-1], part))
        for slot in acc:
            held_ = tiles.elements(b.get(slot))
            b.set(slot, tiles.of([e * shrinks[half_of(n)] for n, e in enumerate(held_)]))
        gather(tiles, acc, [[e.get() for e in held] for held in values], vs, half * vs.size)
        if s.grouped:
            Groups(code).wait(acc)
    factors = []
    for side in range(2):
        row = query + 8 * side
        whole_sum = over_row(code, "add", total[side].get())
        none = whole_sum.eq(0.0)
        factors.append(1.0 / none.pick(1.0, whole_sum))
        with code.when((row < queries) & tiles.column.eq(0)):
            # Rows that see nothing have no power: as if their scores were far below.
            log = top[side].get() * scale + whole_sum.call("log2")
            sums[head * queries + row] = none.pick(float("inf"), log)
    made = [
        [(e * factors[half_of(n)]).cast(s.dtype) for n, e in enumerate(tiles.elements(b.get(slot)))]
        for slot in acc
    ]

    def start(side: int) -> tuple[Val, Val]:
        row = query + 8 * side
        return (head * queries + row) * s.width, row < queries

    tiles.store_rows(out, made, start)
    return code.finish()


def ahead_of_use(
    order: Sequence[tuple[int, int]], load: Callable[[int, int], Op],
    use: Callable[[int, int, Op], None],
) -> None:  # fmt: skip
    """Use what is loaded, in an order, with some loads under way before the first is used."""
    waiting = [load(*pair) for pair in order[:AHEAD]]
    for number, pair in enumerate(order):
        if number + AHEAD < len(order):
            waiting.append(load(*order[number + AHEAD]))
        use(*pair, waiting[number])


class Left:
    """The rows of a plane as left operands: kept, or read again where they are wide.

    Those of groups stay in shared memory.
    """

    def __init__(self, tiles: Tiles, rows: Rows, plane: Val, widest: int) -> None:
        self.tiles, self.rows = tiles, rows
        self.count = rows.width // SIDE
        group = plane // (GROUP_ROWS // SIDE)
        self.first = group * (GROUP_ROWS * LINE) if rows.grouped else plane * (SIDE * rows.stride)
        keep = not rows.grouped and rows.width <= widest
        self.kept = [self._load(n) for n in range(self.count)] if keep else None

    def _load(self, n: int) -> Op:
        return self.tiles.load("a", self.rows.near, self.first + n * SIDE, self.rows.stride)

    def __getitem__(self, n: int) -> Op:
        return self.kept[n] if self.kept is not None else self._load(n)

    @property
    def operand(self) -> tuple[Buf, list[Val]]:
        """The operand of the group, step by step."""
        return self.rows.near, self.rows.along(self.first, self.count)


# The rows of a plane, a block of rows, and where it begins.
Factors = tuple[Left, Rows, Val]


def scores(tiles: Tiles, pairs: Sequence[Factors], count: int) -> list[Callable[[], list[Op]]]:
    """Return what gives products of the rows of a plane with blocks of rows, sixteen each.

    Groups have all of them under way together; tiles are multiplied where they are asked for, so
    that they take registers no earlier.
    """
    b = tiles.code.b
    if not all(rows.grouped for _, rows, _ in pairs):
        return [partial(_scores, tiles, *pair, count) for pair in pairs]
    groups = Groups(tiles.code)
    made = []
    for left, rows, start in pairs:
        made.append([b.slot(SUMS) for _ in range(count)])
        places = rows.along(start, left.count)
        groups.add(made[-1], left.operand, rows.near, places, fresh=True)
    groups.wait([slot for slots in made for slot in slots])
    return [partial(lambda slots: [b.get(slot) for slot in slots], slots) for slots in made]


def _scores(tiles: Tiles, left: Left, rows: Rows, start: Val, count: int) -> list[Op]:
    """Return products by tiles of the plane alone."""
    made = [tiles.fill() for _ in range(count)]
    operands: dict[int, Op] = {}

    def load(i: int, n: int) -> Op:
        if i not in operands:
            operands[i] = left[i]
        at = start + (n * SIDE * rows.stride + i * SIDE)
        return tiles.load("b", rows.near, at, rows.stride, True)

    def use(i: int, n: int, right: Op) -> None:
        made[n] = tiles.code.b.tile_mma(operands[i], right, made[n])

    # Tiles take turns: a product does not wait for the one before.
    ahead_of_use([(i, n) for i in range(left.count) for n in range(count)], load, use)
    return made


def gather(
    tiles: Tiles, slots: Sequence[Op], left: Sequence[Sequence[Val]], rows: Rows, start: Val
) -> None:
    """Add products of elements, [16, block], with a block of rows, [block, width].

    Products of groups are under way behind it.
    """
    operands = [tiles.operand(elements) for elements in left]
    if rows.grouped:
        places = [start + n * SIDE * LINE for n in range(len(left))]
        Groups(tiles.code).add(
            slots, operands, rows.near, places, (False, True), span=(LINE, rows.block)
        )  # fmt: skip
        return

    def load(n: int, i: int) -> Op:
        at = start + (n * SIDE * rows.stride + i * SIDE)
        return tiles.load("b", rows.near, at, rows.stride)

    def use(n: int, i: int, right: Op) -> None:
        tiles.add(slots[i], operands[n], right)

    order = [(n, i) for n in range(len(left)) for i in range(len(slots))]
    ahead_of_use(order, load, use)
