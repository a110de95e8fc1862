"""Recurrent layers on the cpu: one launch a step, for all gates and both products.

Weights are packed once a call. Elsewhere the operations run by their parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import is_dense
from burn_cube_backend.kernels.create import filled
from burn_cube_backend.kernels.maps import HALVES, converted, copied
from burn_cube_backend.kernels.narrow import cut, registers, vector_cost
from burn_cube_backend.kernels.recurrent_code import (
    SUMS,
    Spec,
    backward_kernel,
    first_kernel,
    forward_kernel,
    pack_kernel,
)
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d

# Rows of the weights per element of the state.
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


class Tiles:
    """How a step is cut: tiles of the state by blocks of rows.

    Attributes:
        lanes: elements of a vector.
        vectors: of a tile.
        rows: how rows are cut.
        count: cubes.
    """

    def __init__(self, engine: Engine, dtype: DType, batch: int, hidden: int, many: bool) -> None:
        size, most = registers()
        self.engine = engine
        self.dtype = dtype
        self.lanes = min(size // dtype.itemsize, 1 << (hidden.bit_length() - 1))
        self.vectors = min(SUMS, hidden // self.lanes) if many else 1
        self.width = self.lanes * self.vectors
        self.tiles = -(-hidden // self.width)
        self.rows = cut(batch, most)
        self.hidden = hidden
        self.count = self.tiles * self.rows.blocks

    def spec(self, cell: str, masked: bool, *options: bool) -> Spec:
        """Return what a kernel depends on."""
        return Spec(
            cell, self.dtype, self.lanes, self.vectors, self.rows.rows, self.rows.longer > 0,
            masked, options,
        )  # fmt: skip

    def panel(self, *parts: tuple[CubeTensor, int, int, int], columns: int) -> CubeTensor:
        """Return matrices [depth, columns] packed behind one another, tile by tile.

        Args:
            parts: memory and strides from depth to depth and from column to column; depth.
            columns: vectors of a tile, which for gates stand one state apart.
        """
        engine = self.engine
        whole = sum(p[3] for p in parts)
        out = engine.empty((self.tiles, whole, columns * self.lanes), self.dtype)
        program: Any = engine.loaded(pack_kernel, (self.dtype, self.lanes, columns))
        apart = self.lanes if columns == self.vectors else self.hidden
        first = 0
        for w, down, along, depth in parts:
            program.cost = 4.0 * depth * columns * self.lanes
            args = [
                out.buf, w.buf, w.offset, down, along, depth, self.width, self.hidden, apart,
                first, whole,
            ]  # fmt: skip
            engine.start(program, (self.tiles, 1, 1), args)
            first += depth
        return out

    def run(self, make: Any, spec: Spec, depth: int, args: list[Any]) -> None:
        """Launch a step."""
        program: Any = self.engine.loaded(make, (spec,))
        program.cost = max(1.0, vector_cost(self.rows.rows) * depth * SUMS)
        last = (self.rows.blocks, self.rows.longer)
        self.engine.start(program, (self.count, 1, 1), [*args, *last])


def _at(x: CubeTensor, step: int = 0) -> list[Any]:
    """Return memory of a sequence, and the place of a step in it."""
    return [x.buf, x.offset + (step * x.strides[0] if len(x.shape) == 3 else 0)]


def _nothing(engine: Engine, dtype: DType) -> CubeTensor:
    return engine.empty((0,), dtype)


def ends_of(engine: Engine, lengths: CubeTensor) -> CubeTensor:
    """Return the lengths of sequences from the beginning of their memory, as kernels read them."""
    ends = engine.row_major(converted(engine, lengths, d.int64))
    return copied(engine, ends) if ends.offset else ends


def in_f32(fn: Callable[..., tuple[CubeTensor, ...]]) -> Callable[..., tuple[CubeTensor, ...]]:
    """Make a kernel compute halves in float32 and round its results once."""

    def run(engine: Engine, *args: Any) -> tuple[CubeTensor, ...]:
        half = next((a.dtype for a in args if getattr(a, "dtype", None) in HALVES), None)
        if half is None:
            return fn(engine, *args)
        wide = [
            converted(engine, a, d.float32) if getattr(a, "dtype", None) in HALVES else a
            for a in args
        ]
        return tuple(converted(engine, out, half) for out in fn(engine, *wide))

    return run


@kernel("recurrent", runtime="cpu")
@in_f32
def recurrent(
    engine: Engine, x: CubeTensor, h: CubeTensor, c: CubeTensor | None, weight_ih: CubeTensor,
    weight_hh: CubeTensor, bias_ih: CubeTensor | None, bias_hh: CubeTensor | None,
    lengths: CubeTensor | None, cell: str, reverse: bool, keep: bool,
) -> tuple[CubeTensor, ...]:  # fmt: skip
    """A layer over a sequence; (out, last, last cell, gates, cells)."""
    dtype, (count, batch, inputs), hidden = x.dtype, x.shape, h.shape[-1]
    lstm = cell == "lstm"
    none = _nothing(engine, dtype)
    out = engine.empty((count, batch, hidden), dtype)
    gates = cells = none
    if keep and GATES[cell] > 1:
        gates = engine.empty((count, batch, 4 * hidden), dtype)
    if keep and lstm:
        cells = engine.empty(out.shape, dtype)
    if not out.size:
        return out, copied(engine, h), none if c is None else copied(engine, c), gates, cells
    if x.strides[-1] != 1:
        x = copied(engine, x)
    h = engine.row_major(h)
    tiles = Tiles(engine, dtype, batch, hidden, GATES[cell] == 1)
    columns = tiles.vectors if GATES[cell] == 1 else GATES[cell]
    panel = tiles.panel(
        (weight_ih, weight_ih.strides[1], weight_ih.strides[0], inputs),
        (weight_hh, weight_hh.strides[1], weight_hh.strides[0], hidden),
        columns=columns,
    )
    fixed: list[Any] = [panel.buf, 0]
    for bias in (bias_ih, bias_hh):
        if bias is not None:
            fixed += _at(engine.row_major(bias))
    spec = tiles.spec(cell, lengths is not None, bias_ih is not None, keep)
    ends = None if lengths is None else ends_of(engine, lengths)
    state, old = h, None if c is None else engine.row_major(c)
    spare = [engine.empty(h.shape, dtype) for _ in range(2 if ends is not None else 0)]
    # Cells that nobody keeps need a place for the old ones and one for the new ones.
    two = [engine.empty(h.shape, dtype) for _ in range(2 if lstm and not keep else 0)]
    at, cell_at = 0, 0
    for turn in range(count):
        t = count - 1 - turn if reverse else turn
        args = [*_at(out, t), *_at(x, t), *_at(state, at), *fixed]
        if old is not None:
            new, new_at = (cells, t) if keep else (two[turn % 2], 0)
            args += [*_at(old, cell_at), *_at(new, new_at)]
            old, cell_at = new, new_at
        if gates is not none:
            args += _at(gates, t)
        if ends is None:
            state, at = out, t
        else:
            state = spare[turn % 2]
            args += [*_at(state), ends.buf]
        args += [t, inputs, hidden, x.strides[1]]
        tiles.run(forward_kernel, spec, inputs + hidden, args)
    return out, _step(state, at), none if old is None else _step(old, cell_at), gates, cells


def _step(x: CubeTensor, t: int) -> CubeTensor:
    """Return a step of a sequence; what is no sequence is one step."""
    if len(x.shape) < 3:
        return x
    return x.view(x.shape[1:], x.strides[1:], x.offset + t * x.strides[0])


@kernel("recurrent_backward", runtime="cpu")
@in_f32
def recurrent_backward(
    engine: Engine, weight_hh: CubeTensor, h: CubeTensor, c: CubeTensor | None, out: CubeTensor,
    gates: CubeTensor, cells: CubeTensor, g: CubeTensor | None, g_last: CubeTensor | None,
    g_cell: CubeTensor | None, g_gates: CubeTensor | None, g_cells: CubeTensor | None,
    lengths: CubeTensor | None, cell: str, reverse: bool, first: bool,
) -> tuple[CubeTensor, ...]:  # fmt: skip
    """Gradients of the gates of all steps and of the first states."""
    dtype, (count, batch, hidden) = out.dtype, out.shape
    lstm, gru, many = cell == "lstm", cell == "gru", GATES[cell]
    none = _nothing(engine, dtype)
    d_gates = engine.empty((count, batch, many * hidden), dtype)
    d_hidden = engine.empty(d_gates.shape, dtype) if gru else none

    def given(x: CubeTensor | None) -> CubeTensor:
        return filled(engine, dtype, h.shape, 0) if x is None else engine.row_major(x)

    if not out.size:
        return d_gates, d_hidden, given(g_last) if first else none, given(g_cell) if lstm else none
    masked = lengths is not None
    ends = None if lengths is None else ends_of(engine, lengths)
    tiles = Tiles(engine, dtype, batch, hidden, True)
    depth = many * hidden
    w = weight_hh
    panel = tiles.panel((w, w.strides[0], w.strides[1], depth), columns=tiles.vectors)
    out, h = engine.row_major(out), engine.row_major(h)
    gates, cells = engine.row_major(gates), engine.row_major(cells)
    g_gates, g_cells = _rows(engine, g_gates), _rows(engine, g_cells)
    if g is not None and g.strides[-1] != 1:
        g = copied(engine, g)
    start = None if c is None else engine.row_major(c)
    passes = gru or masked
    rest = given(g_last) if g_last is not None else None
    rests = [engine.empty(h.shape, dtype) for _ in range(2 if passes else 0)]
    dc = given(g_cell) if lstm else none
    dcs = [engine.empty(h.shape, dtype) for _ in range(2 if lstm else 0)]
    behind: CubeTensor = d_hidden if gru else d_gates
    at = -1
    for turn in range(count):
        t = turn if reverse else count - 1 - turn
        before = t + 1 if reverse else t - 1
        inner = 0 <= before < count
        args = [*_at(behind, max(at, 0)), panel.buf, 0, *_at(d_gates, t)]
        for x, step in ((rest, 0), (g, t)):
            if x is not None:
                args += _at(x, step)
        args += _at(gates if many > 1 else out, t)
        if lstm:
            assert start is not None  # noqa: S101 - the rule of the entry asks for it
            args += _at(cells, t)
            args += _at(cells, before) if inner else _at(start)
            args += [*_at(dc), *_at(dcs[turn % 2])]
            dc = dcs[turn % 2]
        if gru:
            args += _at(out, before) if inner else _at(h)
            args += _at(d_hidden, t)
        for x in (g_gates, g_cells):
            if x is not None:
                args += _at(x, t)
        if passes:
            args += _at(rests[turn % 2])
        if ends is not None:
            args.append(ends.buf)
            if gru:
                args += _at(h)
        options = (rest is not None, g is not None, g_gates is not None, g_cells is not None)
        spec = tiles.spec(cell, masked, *options)
        args += [t, before if inner else -1, depth if at >= 0 else 0, hidden]
        if g is not None:
            args.append(g.strides[1])
        tiles.run(backward_kernel, spec, depth, args)
        rest = rests[turn % 2] if passes else None
        at = t
    # Where no tile computes lanes of another once more, gates can make room for their gradients:
    # half of what a backward has in the cache.
    if lstm and hidden % tiles.width == 0:
        engine.walked(d_gates, gates, count)
    if not first:
        return d_gates, d_hidden, none, dc
    dh = engine.empty(h.shape, dtype)
    args = [*_at(behind, at), panel.buf, 0, *_at(dh)]
    if rest is not None:
        args += _at(rest)
    spec = tiles.spec(cell, False, rest is not None)
    tiles.run(first_kernel, spec, depth, [*args, depth, hidden])
    return d_gates, d_hidden, dh, dc


def _rows(engine: Engine, x: CubeTensor | None) -> CubeTensor | None:
    """Return a sequence whose steps are dense matrices."""
    if x is None or is_dense(x.shape[1:], x.strides[1:]):
        return x
    return copied(engine, x)
