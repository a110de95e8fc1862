"""Kernels of recurrent layers on the cpu: one step of a sequence, forward and backward.

A cube computes a tile: some rows of the batch by some lanes of the state. Sums stay in registers
while the products of the step are added to them, and what follows (gates and states, or gradients
of gates) is computed from there. Weights come packed, so that a tile reads them in order. The last
tile of an extent that is no multiple begins earlier and computes some lanes a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from burn_cube import Kernel, Vector
from burn_cube_backend.code import Buf, Code, Local, Val
from burn_std import DType, dtypes as d

# Sums of a row: gates of a cell, or neighbouring vectors of the state.
SUMS = 4


class Spec(NamedTuple):
    """What the kernels of a step depend on.

    Attributes:
        cell: `lstm`, `gru`, `rnn_tanh` or `rnn_relu`.
        dtype: of all tensors.
        lanes: elements of a vector.
        vectors: neighbouring vectors of the state in a tile.
        rows: rows of a tile; the first tiles have one more if there are `longer` ones.
        longer: whether there are.
        masked: sequences end at lengths of their own.
        options: what else there is, by the kernel: biases, gradients, results that are kept.
    """

    cell: str
    dtype: DType
    lanes: int
    vectors: int
    rows: int
    longer: bool
    masked: bool
    options: tuple[bool, ...]

    @property
    def width(self) -> int:
        """Elements of the state in a tile."""
        return self.lanes * self.vectors


def pack_kernel(dtype: DType, lanes: int, vectors: int, index: DType = d.int64) -> Kernel:
    """Write a matrix [depth, columns] tile by tile: all depths of one tile, `vectors` each.

    Vector v of the tile at column c has the columns from v * apart + c on. A cube packs a tile.
    """
    code = Code("recurrent_pack", index, 1)
    out, w = code.buffer("out", dtype), code.buffer("w", dtype)
    offset, down, along = code.place("offset"), code.place("down"), code.place("along")
    depth, width, extent, apart = (code.place(p) for p in ("depth", "width", "extent", "apart"))
    first, whole = code.place("first"), code.place("whole")
    tile = code.special("cube_pos")
    column = (tile * width).call("min", extent - width)
    target = (tile * whole + first) * (vectors * lanes)
    with code.loop(0, depth) as k:
        for v in range(vectors):
            at = offset + k * down + (column + apart * v) * along
            made = [w[at + along * lane].op for lane in range(lanes)]
            value = code.b.vector(*made) if lanes > 1 else made[0]
            code.b.store(out.op, (target + (k * vectors + v) * lanes).op, value)
    return code.finish()


class _Step:
    """What the kernels of a step share: parameters, tiles, products."""

    def __init__(self, name: str, s: Spec) -> None:
        self.s = s
        self.code = Code(name, d.int64, 1)
        self.kind: Any = s.dtype if s.lanes == 1 else Vector(s.dtype, s.lanes)
        self.buffers: dict[str, tuple[Buf, Val]] = {}

    def buffer(self, name: str) -> None:
        """Add a buffer and the place where it begins."""
        made = self.code.buffer(name, self.s.dtype)
        self.buffers[name] = made, self.code.place(f"{name}_offset")

    def load(self, name: str, at: Val) -> Val:
        """Return lanes of a buffer."""
        buf, offset = self.buffers[name]
        return Val(self.code, self.code.b.load(buf.op, (offset + at).op, self.s.lanes))

    def store(self, name: str, at: Val, value: Val) -> None:
        """Write lanes."""
        buf, offset = self.buffers[name]
        self.code.b.store(buf.op, (offset + at).op, value.op)

    def spread(self, value: Val) -> Val:
        """Return a number in every lane."""
        if self.s.lanes == 1:
            return value
        return Val(self.code, self.code.b.splat(value.op, self.s.lanes))

    def number(self, value: float) -> Val:
        """Return a constant in every lane."""
        return self.code.const(value, self.kind)

    def sums(self, start: Sequence[Val | None]) -> list[Local]:
        """Return sums that begin somewhere, at 0 for None."""
        made = []
        for value in start:
            slot = Local(self.code, self.kind, 0.0 if value is None else value)
            made.append(slot)
        return made

    def tiles(self, hidden: Val, body: Callable[[Val, list[Val], Val], None]) -> None:
        """Run the body for the tile of this cube: its number, its rows, its first lane."""
        code, s = self.code, self.s
        blocks, longer = code.place("blocks"), code.place("longer")
        number = code.special("cube_pos")
        tile = number // blocks
        block = number - tile * blocks
        lane = (tile * s.width).call("min", hidden - s.width)
        first = block * s.rows + block.call("min", longer)

        def rows(count: int) -> None:
            body(tile, [first + r for r in range(count)], lane)

        if not s.longer:
            rows(s.rows)
            return
        with code.when(block < longer) as branch:
            rows(s.rows + 1)
        with code.otherwise(branch):
            rows(s.rows)

    def product(
        self, sums: list[list[Local]], left: str, rows: list[Val], panel: str, at: Val,
        depth: Val, into: Sequence[int],
    ) -> None:  # fmt: skip
        """Add rows of the left operand times a packed tile to sums; `into` says which ones."""
        code, s = self.code, self.s
        buf, offset = self.buffers[left]
        begins = [offset + r for r in rows]
        with code.loop(0, depth) as k:
            place = at + k * (len(into) * s.lanes)
            right = [self.load(panel, place + v * s.lanes) for v in range(len(into))]
            for row, begin in zip(sums, begins, strict=True):
                x = self.spread(buf[begin + k])
                for v, number in enumerate(into):
                    row[number].set(right[v].call("fma", x, row[number].get()))


def sigmoid(x: Val) -> Val:
    """Return 1 / (1 + exp(-x))."""
    return 1.0 / ((-x).call("exp") + 1.0)


def forward_kernel(s: Spec) -> Kernel:
    """Write a step: the new state of every row, and what the backward wants.

    Options: biases, and whether gates and cells are kept. With lengths, rows that have ended keep
    their state, and their output is 0.
    """
    f = _Step("recurrent_forward", s)
    code, (biased, keeps) = f.code, s.options
    lstm, gru = s.cell == "lstm", s.cell == "gru"
    for name in ("out", "x", "h", "panel"):
        f.buffer(name)
    if biased:
        f.buffer("bias_ih")
        f.buffer("bias_hh")
    if lstm:
        f.buffer("c")
        f.buffer("c_next")
    if keeps and (lstm or gru):
        f.buffer("gates")
    lengths = None
    if s.masked:
        f.buffer("h_next")
        lengths = code.buffer("lengths", d.int64)
    step, inputs, hidden, x_row = (code.place(p) for p in ("step", "inputs", "hidden", "x_row"))
    gates = 4 if lstm else 3 if gru else 1
    from_x = (0, 1, 2) if gru else tuple(range(gates if lstm else s.vectors))
    from_h = (0, 1, 3) if gru else from_x
    columns = len(from_x)

    def bias(name: str, lane: Val) -> list[Val]:
        apart = hidden if gates > 1 else code.at(s.lanes)
        return [f.load(name, lane + apart * v) for v in range(columns)]

    def body(tile: Val, rows: list[Val], lane: Val) -> None:
        start: list[Val | None] = [None] * (4 if gru else columns)
        if biased:
            for names, into in (("bias_ih", from_x), ("bias_hh", from_h)):
                for number, value in zip(into, bias(names, lane), strict=True):
                    old = start[number]
                    start[number] = value if old is None else old + value
        sums = [f.sums(start) for _ in rows]
        at = tile * ((inputs + hidden) * (columns * s.lanes))
        f.product(sums, "x", [r * x_row for r in rows], "panel", at, inputs, from_x)
        at = at + inputs * (columns * s.lanes)
        f.product(sums, "h", [r * hidden for r in rows], "panel", at, hidden, from_h)
        for row, sum_ in zip(rows, sums, strict=True):
            finish(row, [v.get() for v in sum_], lane)

    def finish(row: Val, v: list[Val], lane: Val) -> None:
        place = row * hidden + lane
        active = None if lengths is None else f.spread(lengths[row] > step)
        if lstm:
            i, o, g, u = sigmoid(v[0]), sigmoid(v[3]), v[2].call("tanh"), sigmoid(v[1])
            before = f.load("c", place)
            c = u * before + i * g
            keep((i, u, g, o), row, lane, active)
            if active is not None:
                f.store("c_next", place, active.pick(c, before))
            else:
                f.store("c_next", place, c)
            written(place, o * c.call("tanh"), active)
        elif gru:
            r, z = sigmoid(v[0]), sigmoid(v[1])
            n = (v[2] + r * v[3]).call("tanh")
            keep((r, z, n, v[3]), row, lane, active)
            written(place, n + z * (f.load("h", place) - n), active)
        else:
            for k in range(s.vectors):
                value = v[k].call("tanh") if s.cell == "rnn_tanh" else v[k].call("max", 0.0)
                written(place + k * s.lanes, value, active)

    def keep(values: tuple[Val, ...], row: Val, lane: Val, active: Val | None) -> None:
        if keeps:
            for v, value in enumerate(values):
                made = value if active is None else active.pick(value, f.number(0.0))
                f.store("gates", (row * 4 + v) * hidden + lane, made)

    def written(place: Val, value: Val, active: Val | None) -> None:
        if active is None:
            f.store("out", place, value)
            return
        f.store("h_next", place, active.pick(value, f.load("h", place)))
        f.store("out", place, active.pick(value, f.number(0.0)))

    f.tiles(hidden, body)
    return code.finish()


def backward_kernel(s: Spec) -> Kernel:
    """Write a step of the backward: from the gradients of a state to those of its gates.

    The gradient of a state is what comes from the step behind, its gates' gradients times the
    recurrent weight and a rest that passed by them, and that of the output. `dc` is to the cell
    what the rest is to the state.

    Options: a rest comes in, and gradients of outputs, of kept gates, of kept cells.
    """
    f = _Step("recurrent_backward", s)
    code, (rested, outs, of_gates, of_cells) = f.code, s.options
    lstm, gru = s.cell == "lstm", s.cell == "gru"
    for name in ("d_behind", "panel", "d_gates"):
        f.buffer(name)
    if rested:
        f.buffer("rest")
    if outs:
        f.buffer("g")
    if lstm or gru:
        f.buffer("gates")
    else:
        f.buffer("out")
    if lstm:
        for name in ("c", "c_before", "dc", "dc_next"):
            f.buffer(name)
    if gru:
        f.buffer("h")
        f.buffer("d_hidden")
    if of_gates:
        f.buffer("g_gates")
    if of_cells:
        f.buffer("g_cells")
    passes = gru or s.masked
    if passes:
        f.buffer("rest_next")
    lengths = None
    if s.masked:
        lengths = code.buffer("lengths", d.int64)
        if gru:
            f.buffer("start")
    step, before, depth, hidden = (code.place(p) for p in ("step", "before", "depth", "hidden"))
    g_row = code.place("g_row") if outs else hidden
    many = 4 if lstm else 3 if gru else 1

    def body(tile: Val, rows: list[Val], lane: Val) -> None:
        at = tile * (depth * s.width)
        sums = []
        for row in rows:
            places = [row * hidden + lane + v * s.lanes for v in range(s.vectors)]
            sums.append(f.sums([f.load("rest", p) if rested else None for p in places]))
        into = tuple(range(s.vectors))
        f.product(sums, "d_behind", [r * depth for r in rows], "panel", at, depth, into)
        for row, sum_ in zip(rows, sums, strict=True):
            for v, dh in enumerate(sum_):
                finish(row, lane + v * s.lanes, dh.get())

    def finish(row: Val, lane: Val, dh: Val) -> None:
        place = row * hidden + lane
        length = None if lengths is None else lengths[row]
        active = None if length is None else f.spread(length > step)
        whole = dh + f.load("g", row * g_row + lane) if outs else dh
        wide = row * many * hidden + lane

        def gate(name: str, k: int) -> Val:
            return f.load(name, (row * 4 + k) * hidden + lane)

        def more(value: Val, k: int) -> Val:
            return value + gate("g_gates", k) if of_gates else value

        def written(name: str, k: int, value: Val) -> None:
            made = value if active is None else active.pick(value, f.number(0.0))
            f.store(name, wide + hidden * k, made)

        if lstm:
            i, u, m, o = (gate("gates", k) for k in range(4))
            tc = f.load("c", place).call("tanh")
            given = f.load("dc", place)
            if of_cells:
                given = given + f.load("g_cells", place)
            dc = given + whole * o * (1.0 - tc * tc)
            written("d_gates", 0, more(dc * m, 0) * i * (1.0 - i))
            written("d_gates", 1, more(dc * f.load("c_before", place), 1) * u * (1.0 - u))
            written("d_gates", 2, more(dc * i, 2) * (1.0 - m * m))
            written("d_gates", 3, more(whole * tc, 3) * o * (1.0 - o))
            after = dc * u
            f.store("dc_next", place, after if active is None else active.pick(after, given))
            if active is not None:
                f.store("rest_next", place, active.pick(f.number(0.0), dh))
        elif gru:
            r, z, n, hn = (gate("gates", k) for k in range(4))
            old = f.load("h", place)
            if length is not None:  # what was read first has the first state before it
                old = f.spread(length > before).pick(old, f.load("start", place))
            dn = more(whole * (1.0 - z), 2) * (1.0 - n * n)
            dr = more(dn * hn, 0) * r * (1.0 - r)
            dz = more(whole * (old - n), 1) * z * (1.0 - z)
            for name in ("d_gates", "d_hidden"):
                written(name, 0, dr)
                written(name, 1, dz)
            written("d_gates", 2, dn)
            written("d_hidden", 2, more(dn * r, 3))
            after = whole * z
            f.store("rest_next", place, after if active is None else active.pick(after, dh))
        else:
            y = f.load("out", place)
            if s.cell == "rnn_tanh":
                value = whole * (1.0 - y * y)
            else:
                value = (y > 0.0).pick(whole, f.number(0.0))
            written("d_gates", 0, value)
            if active is not None:
                f.store("rest_next", place, active.pick(f.number(0.0), dh))

    f.tiles(hidden, body)
    return code.finish()


def first_kernel(s: Spec) -> Kernel:
    """Write the gradient of the first state: gates' gradients times the weight, and the rest.

    Options: a rest comes in.
    """
    f = _Step("recurrent_first", s)
    (rested,) = s.options
    for name in ("d_behind", "panel", "dh"):
        f.buffer(name)
    if rested:
        f.buffer("rest")
    depth, hidden = f.code.place("depth"), f.code.place("hidden")

    def body(tile: Val, rows: list[Val], lane: Val) -> None:
        places = [[r * hidden + lane + v * s.lanes for v in range(s.vectors)] for r in rows]
        sums = [f.sums([f.load("rest", p) if rested else None for p in ps]) for ps in places]
        into = tuple(range(s.vectors))
        at = tile * (depth * s.width)
        f.product(sums, "d_behind", [r * depth for r in rows], "panel", at, depth, into)
        for ps, sum_ in zip(places, sums, strict=True):
            for place, value in zip(ps, sum_, strict=True):
                f.store("dh", place, value.get())

    f.tiles(hidden, body)
    return f.code.finish()
