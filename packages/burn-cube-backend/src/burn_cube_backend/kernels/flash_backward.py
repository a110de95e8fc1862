"""Gradients of attention of halves on tensor cores.

Weights are computed again from the scores and the sums that the forward kernel left. One kernel
owns keys and walks over queries, for the gradients of keys and values; one owns queries and walks
over keys. So nothing is added by atomics, and results are the same in every run. With
p = exp(s - log sum), dp = g v^T and delta = sum(g out):

ds = p (dp - delta), dq = scale ds k, dk = scale ds^T q, dv = p^T g.

Source: Dao, FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning, 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from burn_cube import Kernel
from burn_cube.spi import Op
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.kernels.flash import (
    Factors,
    Layout,
    Left,
    Mask,
    Rows,
    Shape,
    gather,
    scores,
)
from burn_cube_backend.tiles import CHUNK, PLANE, SIDE, Groups, Tiles, column_of, half_of
from burn_std import DType, dtypes as d

# Fragments of so many halves a row stay in registers; wider ones are read again in each step.
KEPT = 64


class Frame:
    """What both kernels begin with: operands, counts, where heads lie."""

    def __init__(self, code: Code, s: Shape) -> None:
        self.code, self.s = code, s
        self.q, self.k, self.v, self.g = (code.buffer(n, s.dtype) for n in "qkvg")
        self.sums, self.delta = code.buffer("sums", d.float32), code.buffer("delta", d.float32)
        self.mask = code.buffer("mask", s.mask) if s.mask is not None else None
        self.queries, self.keys = code.place("queries"), code.place("keys")
        self.scale, self.factor = code.scalar("scale", d.float32), code.scalar("factor", d.float32)
        self.group = code.place("group")
        self.names = ("q", "k", "v", "g") if s.mask is None else ("q", "k", "v", "g", "mask")
        self.tiles = Tiles(code, s.dtype)
        self.plane = code.special("plane_pos")

    def weight(self, score: Val, sums: Val) -> Val:
        """Return the weight of a score."""
        return score.call("fma", self.scale, -sums).call("exp2")


def products(
    tiles: Tiles, pairs: Sequence[Factors], count: int
) -> list[Callable[[], list[list[Val]]]]:
    """Return what gives the elements of products of a plane's rows with blocks of rows."""
    return [
        partial(lambda found: [tiles.elements(t) for t in found()], made)
        for made in scores(tiles, pairs, count)
    ]


def store(
    frame: Frame, out: Buf, slots: Sequence[Op], first: Val, limit: Val, head: Val, factor: Val
) -> None:
    """Write the sums of a plane times a factor, row-major."""
    code, tiles = frame.code, frame.tiles
    held = [
        [(e * factor).cast(frame.s.dtype) for e in tiles.elements(code.b.get(slot))]
        for slot in slots
    ]

    def start(side: int) -> tuple[Val, Val]:
        row = first + frame.plane * SIDE + tiles.row + 8 * side
        return (head * limit + row) * (len(slots) * SIDE), row < limit

    tiles.store_rows(out, held, start)


def _masked(
    frame: Frame, mask: Mask, held_scores: list[list[Val]], needed: Val,
    place: Callable[[int, int], tuple[Val, Val]],
) -> list[list[Val]]:  # fmt: skip
    """Return scores with -inf where a key is not seen; `place` gives query and key."""
    code = frame.code
    cells = [[code.local(d.float32, e) for e in held] for held in held_scores]
    with code.when(needed):
        for n, held in enumerate(cells):
            for number, e in enumerate(held):
                query, key = place(n, number)
                counts = (frame.queries, frame.keys)
                e.set(mask.scored(e.get(), query, key, frame.scale, counts))
    return [[e.get() for e in held] for held in cells]


class _Facts:
    """Sums and deltas of a block of queries in shared memory, twice."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.block = frame, frame.s.block
        code = frame.code
        self.pairs = [
            (far, code.shared(d.float32, 2 * self.block)) for far in (frame.sums, frame.delta)
        ]

    def bring(self, half: Val, head: Val, first: Val) -> None:
        """Start the copies of a block; queries that are not there have zeros."""
        frame, code = self.frame, self.frame.code
        unit = code.special("unit_pos")
        row = first + unit
        with code.when(unit < self.block):
            for far, near in self.pairs:
                at, source = half * self.block + unit, head * frame.queries + row
                inside = (row < frame.queries).op
                code.b.async_copy(near.op, at.op, far.op, source.op, 1, True, inside)

    def at(self, half: Val, column: Val) -> tuple[Val, Val]:
        """Return sum and delta of a query of the block."""
        place = half * self.block + column
        return self.pairs[0][1][place], self.pairs[1][1][place]


def keys_kernel(s: Shape) -> Kernel:
    """Write the gradients of keys and values; grid: blocks of keys by heads of keys.

    Query heads that share keys are neighbours: their gradients add up one after the other.
    """
    code = Code("attention_keys", s.places, s.units, fast_math=True)
    b = code.b
    dk, dv = code.buffer("dk", s.dtype), code.buffer("dv", s.dtype)
    frame = Frame(code, s)
    rows = s.planes * SIDE
    first, head = code.special("cube_pos_x") * rows, code.special("cube_pos_y")
    lay = Layout(code, frame.names, s.rank)
    ks = Rows(code, frame.k, s.dtype, rows, s.depth, s.units, 1, s.grouped)
    vs = Rows(code, frame.v, s.dtype, rows, s.width, s.units, 1, s.grouped)
    qs = Rows(code, frame.q, s.dtype, s.block, s.depth, s.units, 2, s.grouped)
    gs = Rows(code, frame.g, s.dtype, s.block, s.width, s.units, 2, s.grouped)
    facts = _Facts(frame)
    # The first block of queries that sees a key of the cube.
    start = first // s.block if s.causal else code.at(0)
    per = ((frame.queries + (s.block - 1)) // s.block - start).call("max", 0)
    steps = per * frame.group

    def where(step: Val) -> tuple[Val, Val]:
        number = step // per
        return head * frame.group + number, (start + step - number * per) * s.block

    def bring(step: Val) -> None:
        own, at = where(step)
        half = step & 1
        batch = lay.of(own)
        qs.bring(half * qs.size, batch.heads["q"], at, frame.queries, batch.rows["q"])
        gs.bring(half * gs.size, batch.heads["g"], at, frame.queries, batch.rows["g"])
        facts.bring(half, own, at)

    own_batch = lay.of(head * frame.group)
    ks.bring(code.at(0), own_batch.heads["k"], first, frame.keys, own_batch.rows["k"])
    vs.bring(code.at(0), own_batch.heads["v"], first, frame.keys, own_batch.rows["v"])
    with code.when(steps > 0):
        bring(code.at(0))
    b.async_wait()
    code.barrier()
    tiles = frame.tiles
    left_k, left_v = (Left(tiles, own, frame.plane, KEPT) for own in (ks, vs))
    sums_k = [tiles.slot() for _ in range(s.depth // SIDE)]
    sums_v = [tiles.slot() for _ in range(s.width // SIDE)]
    key0 = first + frame.plane * SIDE + tiles.row
    with code.loop(0, steps) as step:
        b.async_wait()
        code.barrier()
        with code.when(step + 1 < steps):
            bring(step + 1)
        half = step & 1
        own, at = where(step)
        mask = Mask(s, frame.mask, lay, lay.of(own))
        found_scores, found_slopes = products(
            tiles, [(left_k, qs, half * qs.size), (left_v, gs, half * gs.size)], s.block // SIDE
        )
        held_scores = found_scores()

        def place(n: int, number: int, at: Val = at) -> tuple[Val, Val]:
            query = at + tiles.column + (n * SIDE + column_of(number))
            return query, key0 + 8 * half_of(number)

        if s.causal or s.mask is not None:
            needed = at < first + rows if s.mask is None else at >= 0
            held_scores = _masked(frame, mask, held_scores, needed, place)
        slopes = found_slopes()
        # A unit has two columns of each eight: what it needs of them is read once for both rows.
        known = {
            (n, c): facts.at(half, tiles.column + (n * SIDE + c))
            for n in range(len(held_scores))
            for c in (0, 1, 8, 9)
        }
        weights = [
            [frame.weight(e, known[n, column_of(number)][0]) for number, e in enumerate(held)]
            for n, held in enumerate(held_scores)
        ]
        gather(tiles, sums_v, weights, gs, half * gs.size)
        for n, held in enumerate(weights):
            slopes[n] = [
                p * (slopes[n][number] - known[n, column_of(number)][1])
                for number, p in enumerate(held)
            ]
        gather(tiles, sums_k, slopes, qs, half * qs.size)
        if s.grouped:
            Groups(code).wait([*sums_v, *sums_k])
    store(frame, dk, sums_k, first, frame.keys, head, frame.factor)
    store(frame, dv, sums_v, first, frame.keys, head, code.const(1.0, d.float32))
    return code.finish()


def queries_kernel(s: Shape) -> Kernel:
    """Write the gradient of queries; grid: blocks of queries by heads."""
    code = Code("attention_queries", s.places, s.units, fast_math=True)
    b = code.b
    dq = code.buffer("dq", s.dtype)
    frame = Frame(code, s)
    rows = s.planes * SIDE
    block = code.special("cube_count_x") - 1 - code.special("cube_pos_x")
    first, head = block * rows, code.special("cube_pos_y")
    lay = Layout(code, frame.names, s.rank)
    batch = lay.of(head)
    mask = Mask(s, frame.mask, lay, batch)
    qs = Rows(code, frame.q, s.dtype, rows, s.depth, s.units, 1, s.grouped)
    gs = Rows(code, frame.g, s.dtype, rows, s.width, s.units, 1, s.grouped)
    ks = Rows(code, frame.k, s.dtype, s.block, s.depth, s.units, 2, s.grouped)
    vs = Rows(code, frame.v, s.dtype, s.block, s.width, s.units, 2, s.grouped)
    blocks = (frame.keys + (s.block - 1)) // s.block
    whole = frame.keys // s.block
    if s.causal:
        blocks = blocks.call("min", (first + (rows + s.block - 1)) // s.block)
        whole = whole.call("min", (first + 1) // s.block)
    if s.mask is not None:
        whole = code.at(0)

    def bring(j: Val) -> None:
        half = j & 1
        ks.bring(half * ks.size, batch.heads["k"], j * s.block, frame.keys, batch.rows["k"])
        vs.bring(half * vs.size, batch.heads["v"], j * s.block, frame.keys, batch.rows["v"])

    qs.bring(code.at(0), batch.heads["q"], first, frame.queries, batch.rows["q"])
    gs.bring(code.at(0), batch.heads["g"], first, frame.queries, batch.rows["g"])
    bring(code.at(0))
    b.async_wait()
    code.barrier()
    tiles = frame.tiles
    left_q, left_g = (Left(tiles, own, frame.plane, KEPT) for own in (qs, gs))
    sums_q = [tiles.slot() for _ in range(s.depth // SIDE)]
    query0 = first + frame.plane * SIDE + tiles.row
    facts = []
    for side in range(2):
        at = head * frame.queries + (query0 + 8 * side).call("min", frame.queries - 1)
        facts.append((frame.sums[at], frame.delta[at]))
    with code.loop(0, blocks) as j:
        b.async_wait()
        code.barrier()
        with code.when(j + 1 < blocks):
            bring(j + 1)
        half = j & 1
        found_scores, found_slopes = products(
            tiles, [(left_q, ks, half * ks.size), (left_g, vs, half * vs.size)], s.block // SIDE
        )
        held_scores = found_scores()

        def place(n: int, number: int, j: Val = j) -> tuple[Val, Val]:
            key = j * s.block + tiles.column + (n * SIDE + column_of(number))
            return query0 + 8 * half_of(number), key

        held_scores = _masked(frame, mask, held_scores, j >= whole, place)
        slopes = found_slopes()
        for n, held in enumerate(held_scores):
            slope = []
            for number, e in enumerate(held):
                total, delta = facts[half_of(number)]
                slope.append(frame.weight(e, total) * (slopes[n][number] - delta))
            slopes[n] = slope
        gather(tiles, sums_q, slopes, ks, half * ks.size)
        if s.grouped:
            Groups(code).wait(sums_q)
    store(frame, dq, sums_q, first, frame.queries, head, frame.factor)
    return code.finish()


class Delta(NamedTuple):
    """What the kernel of deltas depends on."""

    dtype: DType
    width: int
    rank: int
    places: DType


def delta_kernel(s: Delta) -> Kernel:
    """Write sum(g out) of each row, [heads, queries]: neighbouring units have a row together."""
    code = Code("attention_delta", s.places)
    b = code.b
    delta, out, g = (
        code.buffer("delta", d.float32), code.buffer("out", s.dtype), code.buffer("g", s.dtype)
    )  # fmt: skip
    count, queries = code.place("count"), code.place("queries")
    extents = code.places("extent", s.rank)
    offset, step = code.place("g_offset"), code.place("g_row")
    strides = code.places("g_stride", s.rank)
    chunks = s.width // CHUNK
    across = min(PLANE, 1 << (chunks - 1).bit_length())
    unit = code.special("absolute_pos")
    number, lane = unit // across, unit % across
    row = number.call("min", count - 1)
    head = row // queries
    base = code.walk(offset, code.coords(head, extents), strides) + (row - head * queries) * step
    total = code.local(d.float32)
    with code.loop(lane, code.at(chunks), code.at(across)) as chunk:
        pair = []
        for buf, start in ((out, row * s.width), (g, base)):
            made = b.load(buf.op, (start + chunk * CHUNK).op, CHUNK)
            pair.append([Val(code, b.extract(made, n)).cast(d.float32) for n in range(CHUNK)])
        for x, y in zip(*pair, strict=True):
            total.set(total.get() + x * y)
    step_ = 1
    while step_ < across:
        by = code.const(step_, d.int32).op
        total.set(total.get() + Val(code, b.plane("shuffle_xor", total.get().op, by)))
        step_ *= 2
    with code.when(lane.eq(0) & (number < count)):
        delta[number] = total.get()
    return code.finish()
