"""Batch norm and its gradient on CUDA: one pass for what is known of each channel, one over all.

Where channels lie last, a cube owns a panel of neighbouring channels and its units divide the rows;
row by row, it owns some images of one channel. Pieces meet in a second kernel. Variances are merged
from means and squared distances of small blocks (Chan), so no large square is ever subtracted.

Source: Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample
variances, 1979.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from burn_cube import Kernel
from burn_cube_backend.code import UNITS, Buf, Code, Local, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, is_dense, size_of
from burn_cube_backend.kernels.create import filled
from burn_cube_backend.kernels.maps import computed, converted, copied, wide
from burn_cube_backend.kernels.orders import asks_last, lies, moved
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType

# Bytes that a unit reads at once; rows that it reads before it computes.
BYTES, AHEAD = 16, 4
PLANE = 32
# Cubes for each processor of the device, and rows that each piece of a panel has at least.
WAVES, ROWS = 8, 128


class Spec(NamedTuple):
    """What a kernel depends on.

    Attributes:
        dtype: of the elements.
        last: channels lie last.
        width: elements that are read at once.
        across: units that stand side by side in a panel.
        places: dtype of places.
    """

    dtype: DType
    last: bool
    width: int
    across: int
    places: DType


class Cut(NamedTuple):
    """How the elements of all channels are divided.

    Attributes:
        channels: how many there are, in so many `panels`.
        rows: blocks of a channel in memory (rows, or images), of `area` elements each.
        pieces: in how many pieces they are cut, and rows of one `piece`.
    """

    channels: int
    panels: int
    rows: int
    area: int
    pieces: int
    piece: int


class _Walk:
    """The part of one unit in a pass over the elements of its channels.

    Attributes:
        lanes: channels that a unit has side by side.
        channel: the first of them; `inside` whether there is one.
        number: of the piece.
    """

    def __init__(self, code: Code, s: Spec) -> None:
        self.code, self.s = code, s
        self.channels, panels, rows, area, piece = (
            code.place(p) for p in ("channels", "panels", "rows", "area", "piece")
        )
        cube, unit = code.special("cube_pos"), code.special("unit_pos")
        if s.last:
            self.lanes, across = s.width, s.across
            self.number = cube // panels
            panel = cube - self.number * panels
            self.channel = (panel * across + unit % across) * s.width
            self.inside = self.channel < self.channels
            self.row = unit // across
        else:
            self.lanes = 1
            self.number = cube // self.channels
            self.channel = cube - self.number * self.channels
            self.inside = self.channel < self.channels
            self.row = unit
        self.start = self.number * piece
        self.stop = (self.start + piece).call("min", rows)
        self.area = area

    def run(self, arrays: Sequence[tuple[Buf, Val]], take: Callable[..., None]) -> None:
        """Give elements to `take`: per array the values of each lane.

        Args:
            arrays: memory, and where its first element is.
            take: called with a list for each array: of each lane a list of values.
        """
        if self.s.last:
            self._panel(arrays, take)
        else:
            self._images(arrays, take)

    def _load(self, array: Buf, at: Val) -> list[Val]:
        code, width = self.code, self.s.width
        kind = wide(self.s.dtype)
        if width == 1:
            return [array[at].cast(kind)]
        made = code.b.load(array.op, at.op, width)
        return [Val(code, code.b.extract(made, k)).cast(kind) for k in range(width)]

    def _panel(self, arrays: Sequence[tuple[Buf, Val]], take: Callable[..., None]) -> None:
        code = self.code
        down = UNITS // self.s.across
        bases = [at + self.inside.pick(self.channel, 0) for _, at in arrays]

        def rows(first: Val, count: int) -> None:
            found = []
            for (array, _), base in zip(arrays, bases, strict=True):
                read = [
                    self._load(array, base + (first + part * down) * self.channels)
                    for part in range(count)
                ]
                found.append([list(lane) for lane in zip(*read, strict=True)])
            take(*found)

        step = down * AHEAD
        many = self.start + (self.stop - self.start) // step * step
        with code.loop(self.start, many, code.at(step)) as k:
            rows(k + self.row, AHEAD)
        with code.loop(many + self.row, self.stop, code.at(down)) as k:
            rows(k, 1)

    def _images(self, arrays: Sequence[tuple[Buf, Val]], take: Callable[..., None]) -> None:
        code, width = self.code, self.s.width
        with code.loop(self.start, self.stop) as image:
            head = (image * self.channels + self.channel) * self.area
            with code.loop(self.row * width, self.area, code.at(UNITS * width)) as k:
                take(*[[self._load(array, at + head + k)] for array, at in arrays])

    @contextmanager
    def ends(self) -> Iterator[None]:
        """Run the block in the units that have the results of the cube's channels."""
        with self.code.when(self.inside & self.row.eq(0)):
            yield

    def meet(self, states: Sequence[Any]) -> None:
        """Take the states of all units of a cube that stand below one another into the first's."""
        code, s = self.code, self.s
        across = s.across if s.last else 1
        meet(code, states, self.row, across)


def meet(code: Code, states: Sequence[Any], row: Val, across: int) -> None:
    """Take states of the units of a cube that stand below one another into the first's.

    Args:
        code: the kernel.
        states: those of each unit.
        row: which row a unit stands in.
        across: units in a row.
    """
    half = UNITS // across // 2
    if not half:
        return
    unit = code.special("unit_pos")
    shelves = [[code.shared(v.slot.type, UNITS) for v in state.values] for state in states]

    def put() -> None:
        for state, shelf in zip(states, shelves, strict=True):
            for value, memory in zip(state.values, shelf, strict=True):
                memory[unit] = value.get()

    put()
    code.barrier()
    while half:
        with code.when(row < half):
            far = unit + across * half
            for state, shelf in zip(states, shelves, strict=True):
                state.merge(*[memory[far] for memory in shelf])
            put()
        code.barrier()
        half //= 2


class _Moments:
    """Count of what was taken, and of each lane its mean and sum of squared distances."""

    def __init__(self, code: Code, kind: DType, lanes: int) -> None:
        self.code, self.kind = code, kind
        self.count = code.local(kind)
        self.means, self.fars = ([code.local(kind) for _ in range(lanes)] for _ in range(2))
        self.values: list[Local] = [self.count, *self.means, *self.fars]

    def take(self, lanes: Sequence[Sequence[Val]]) -> None:
        """Take some values of each lane."""
        n = len(lanes[0])
        means, fars = [], []
        for values in lanes:
            total = values[0]
            for v in values[1:]:
                total = total + v
            mean = total * (1.0 / n) if n > 1 else total
            far = self.code.const(0, self.kind)
            for v in values if n > 1 else ():
                far = far + (v - mean) * (v - mean)
            means.append(mean)
            fars.append(far)
        self.merge(self.code.const(n, self.kind), *means, *fars)

    def merge(self, count: Val, *more: Val) -> None:
        """Take what another has."""
        own = self.count.get()
        both = own + count
        share = count / both.call("max", 1)
        lanes = len(self.means)
        for k in range(lanes):
            mean, far = self.means[k].get(), self.fars[k].get()
            away = more[k] - mean
            self.means[k].set(mean + away * share)
            self.fars[k].set(far + more[lanes + k] + away * (away * (own * share)))
        self.count.set(both)


class _Sums:
    """Sums of values and of products."""

    def __init__(self, code: Code, kind: DType) -> None:
        self.values: list[Local] = [code.local(kind), code.local(kind)]

    def merge(self, *more: Val) -> None:
        """Take what another has."""
        for value, by in zip(self.values, more, strict=True):
            value.set(value.get() + by)


def moments_kernel(s: Spec) -> Kernel:
    """Write mean and sum of squared distances of each channel in each piece: [pieces, C]."""
    code = Code("batch_norm_moments", s.places)
    kind = wide(s.dtype)
    means, fars = code.buffer("means", kind), code.buffer("fars", kind)
    x, offset = code.buffer("x", s.dtype), code.place("offset")
    walk = _Walk(code, s)
    state = _Moments(code, kind, walk.lanes)
    walk.run([(x, offset)], state.take)
    walk.meet([state])
    with walk.ends():
        at = walk.number * walk.channels + walk.channel
        for k, (mean, far) in enumerate(zip(state.means, state.fars, strict=True)):
            means[at + k] = mean.get()
            fars[at + k] = far.get()
    return code.finish()


def joined_kernel(kind: DType, index: DType) -> Kernel:
    """Write mean, variance and reciprocal deviation of a channel by each cube."""
    code = Code("batch_norm_join", index)
    mean, var, rstd = (code.buffer(n, kind) for n in ("mean", "var", "rstd"))
    means, fars = code.buffer("means", kind), code.buffer("fars", kind)
    eps = code.scalar("eps", kind)
    channels, rows, area, pieces, piece = (
        code.place(p) for p in ("channels", "rows", "area", "pieces", "piece")
    )
    channel, unit = code.special("cube_pos"), code.special("unit_pos")
    state = _Moments(code, kind, 1)
    with code.loop(unit, pieces, code.at(UNITS)) as k:
        at = k * channels + channel
        count = (rows - k * piece).call("min", piece) * area
        state.merge(count.cast(kind), means[at], fars[at])
    meet(code, [state], unit, 1)
    with code.when(unit.eq(0)):
        spread = state.fars[0].get() / state.count.get()
        mean[channel], var[channel] = state.means[0].get(), spread
        rstd[channel] = code.const(1, kind) / (spread + eps).call("sqrt")
    return code.finish()


def sums_kernel(s: Spec) -> Kernel:
    """Write the sums of g, and of g times the normalised x, of each channel and piece."""
    code = Code("batch_norm_sums", s.places)
    kind = wide(s.dtype)
    plain, scaled = code.buffer("plain", kind), code.buffer("scaled", kind)
    g, x = code.buffer("g", s.dtype), code.buffer("x", s.dtype)
    mean, rstd = code.buffer("mean", kind), code.buffer("rstd", kind)
    g0, x0 = code.place("g_offset"), code.place("x_offset")
    walk = _Walk(code, s)
    states = [_Sums(code, kind) for _ in range(walk.lanes)]
    first = walk.inside.pick(walk.channel, 0)
    centres = [mean[first + k] for k in range(walk.lanes)]
    scales = [rstd[first + k] for k in range(walk.lanes)]

    def take(gs: Sequence[Sequence[Val]], xs: Sequence[Sequence[Val]]) -> None:
        for k, state in enumerate(states):
            for one, value in zip(gs[k], xs[k], strict=True):
                state.merge(one, one * ((value - centres[k]) * scales[k]))

    walk.run([(g, g0), (x, x0)], take)
    walk.meet(states)
    with walk.ends():
        at = walk.number * walk.channels + walk.channel
        for k, state in enumerate(states):
            plain[at + k] = state.values[0].get()
            scaled[at + k] = state.values[1].get()
    return code.finish()


def totals_kernel(kind: DType, index: DType) -> Kernel:
    """Write both sums of a channel by each cube, and over the number of its elements."""
    code = Code("batch_norm_totals", index)
    names = ("plain", "scaled", "plain_mean", "scaled_mean")
    outs = [code.buffer(n, kind) for n in names]
    given = [code.buffer(n, kind) for n in ("plains", "scaleds")]
    channels, length, pieces = (code.place(p) for p in ("channels", "length", "pieces"))
    channel, unit = code.special("cube_pos"), code.special("unit_pos")
    state = _Sums(code, kind)
    with code.loop(unit, pieces, code.at(UNITS)) as k:
        state.merge(*[part[k * channels + channel] for part in given])
    meet(code, [state], unit, 1)
    with code.when(unit.eq(0)):
        for out, mean, value in zip(outs[:2], outs[2:], state.values, strict=True):
            out[channel] = value.get()
            mean[channel] = value.get() / length.cast(kind)
    return code.finish()


def scale_kernel(source: DType, kind: DType, index: DType) -> Kernel:
    """Write 1 / sqrt(var + eps)."""
    code = Code("batch_norm_scale", index)
    out, var = code.buffer("out", kind), code.buffer("var", source)
    eps, count = code.scalar("eps", kind), code.place("count")
    offset, step = code.place("offset"), code.place("step")
    with code.each(count) as i:
        spread = var[offset + i * step].cast(kind) + eps
        out[i] = code.const(1, kind) / spread.call("sqrt")
    return code.finish()


def cut_of(engine: Engine, x: CubeTensor, last: bool) -> tuple[Spec, Cut]:
    """Return how a pass over an image goes."""
    n, channels = x.shape[:2]
    area = size_of(x.shape[2:])
    index = engine.index_dtype(x, count=x.size)
    width = max(1, BYTES // x.dtype.itemsize)
    wanted = engine.client.properties.units * WAVES
    if last:
        while channels % width:
            width //= 2
        across = min(PLANE, 1 << (-(-channels // width) - 1).bit_length())
        panels, rows, area = -(-channels // (across * width)), n * area, 1
        pieces = max(1, min(wanted // panels, rows // ROWS))
    else:
        while area % width:
            width //= 2
        across, panels, rows = 1, channels, n
        pieces = max(1, min(wanted // panels, rows))
    piece = -(-rows // pieces)
    cut = Cut(channels, panels, rows, area, -(-rows // piece), piece)
    return Spec(x.dtype, last, width, across, index), cut


def _image(engine: Engine, x: CubeTensor, last: bool) -> CubeTensor:
    """Return x in an order, beginning where vectors may."""
    there = is_dense(x.shape, x.strides) if len(x.shape) == 2 else lies(x, last)
    if there and x.offset * x.dtype.itemsize % BYTES == 0:
        return x
    return copied(engine, x) if len(x.shape) == 2 else moved(engine, x, last)


def _flat(engine: Engine, x: CubeTensor, dtype: DType) -> CubeTensor:
    """Return what is [C] in a dtype, from the beginning of its memory on."""
    there = x.dtype is dtype and not x.offset and is_dense(x.shape, x.strides)
    return x if there else copied(engine, x, dtype)


def _pass(engine: Engine, make: Any, s: Spec, cut: Cut, args: Sequence[Any]) -> None:
    numbers = [cut.channels, cut.panels, cut.rows, cut.area, cut.piece]
    engine.cubes(make, (s,), cut.panels * cut.pieces, [*args, *numbers])


def _moments(
    engine: Engine, x: CubeTensor, last: bool, eps: Any
) -> tuple[CubeTensor, CubeTensor, CubeTensor]:
    """Return mean, variance and reciprocal deviation of each channel."""
    kind = wide(x.dtype)
    s, cut = cut_of(engine, x, last)
    parts = [engine.empty((cut.pieces, cut.channels), kind) for _ in range(2)]
    _pass(engine, moments_kernel, s, cut, [*(p.buf for p in parts), x.buf, x.offset])
    made = [engine.empty((cut.channels,), kind) for _ in range(3)]
    args = [*(m.buf for m in made), *(p.buf for p in parts), eps]
    args += [cut.channels, cut.rows, cut.area, cut.pieces, cut.piece]
    engine.cubes(joined_kernel, (kind, s.places), cut.channels, args)
    return made[0], made[1], made[2]


def _scale(engine: Engine, var: CubeTensor, kind: DType, eps: Any) -> CubeTensor:
    made = engine.empty(var.shape, kind)
    index = engine.index_dtype(var)
    args = [made.buf, var.buf, eps, made.size, var.offset, var.strides[0]]
    engine.run(scale_kernel, (var.dtype, kind, index), made.size, args)
    return made


def _channel(x: CubeTensor, rank: int) -> CubeTensor:
    """Return what is [C] along the channels of an image."""
    rest = (1,) * (rank - 2)
    return x.view((*x.shape, *rest), (*x.strides, *rest))


def _is_last(engine: Engine, *images: CubeTensor) -> bool:
    """Return whether images are walked by panels of channels: matrices always are."""
    return len(images[0].shape) == 2 or asks_last(engine, *images)


@kernel("batch_norm", runtime="cuda")
def batch_norm(
    engine: Engine, x: CubeTensor, weight: CubeTensor | None, bias: CubeTensor | None,
    mean: CubeTensor | None, var: CubeTensor | None, training: bool, eps: Any,
) -> list[CubeTensor]:  # fmt: skip
    """x [N, C, *L] normalised by each channel's statistics: (out, mean, biased variance)."""
    if not x.size:
        return _of_nothing(engine, x, mean, var, training)
    given, mean, var = operands(engine, x, weight, bias, mean, var, training, eps)
    text = "(x - m) * r" + " * w" * ("w" in given) + " + b" * ("b" in given)
    return [computed(engine, text, x.dtype, **given), mean, var]


def operands(
    engine: Engine, x: CubeTensor, weight: CubeTensor | None, bias: CubeTensor | None,
    mean: CubeTensor | None, var: CubeTensor | None, training: bool, eps: Any,
) -> tuple[dict[str, CubeTensor], CubeTensor, CubeTensor]:  # fmt: skip
    """Return what the last kernel of a batch norm reads, and mean and variance.

    It computes (x - m) r w + b, of which weight and bias may be absent.
    """
    kind = wide(x.dtype)
    last = _is_last(engine, x)
    x = _image(engine, x, last)
    if training or mean is None or var is None:
        mean, var, rstd = _moments(engine, x, last, eps)
    else:
        mean, var = converted(engine, mean, kind), converted(engine, var, kind)
        rstd = _scale(engine, var, kind, eps)
    given = {"m": mean, "r": rstd, "w": weight, "b": bias}
    rank = len(x.shape)
    channels = {n: _channel(t, rank) for n, t in given.items() if t is not None}
    return {"x": x, **channels}, mean, var


def _of_nothing(
    engine: Engine, x: CubeTensor, mean: CubeTensor | None, var: CubeTensor | None, training: bool
) -> list[CubeTensor]:
    kind = wide(x.dtype)
    channels: Ints = x.shape[1:2] if len(x.shape) > 1 else (0,)
    if training or mean is None or var is None:
        made = [filled(engine, kind, channels, float("nan")) for _ in range(2)]
    else:
        made = [converted(engine, mean, kind), converted(engine, var, kind)]
    return [engine.empty(x.shape, x.dtype), *made]


@kernel("batch_norm_backward", runtime="cuda")
def batch_norm_backward(
    engine: Engine, g: CubeTensor, x: CubeTensor, weight: CubeTensor | None, mean: CubeTensor,
    var: CubeTensor, training: bool, eps: Any,
) -> list[CubeTensor]:  # fmt: skip
    """Gradients by x, weight and bias of `batch_norm`; the last two in the dtype of the sums."""
    kind, rank = wide(x.dtype), len(x.shape)
    if not x.size:
        channels: Ints = x.shape[1:2] if rank > 1 else (0,)
        nothing = [filled(engine, kind, channels, 0) for _ in range(2)]
        return [engine.empty(x.shape, x.dtype), *nothing]
    last = _is_last(engine, x, g)
    g, x = _image(engine, g, last), _image(engine, x, last)
    mean, rstd = _flat(engine, mean, kind), _scale(engine, var, kind, eps)
    s, cut = cut_of(engine, x, last)
    parts = [engine.empty((cut.pieces, cut.channels), kind) for _ in range(2)]
    arrays = [t.buf for t in (*parts, g, x, mean, rstd)]
    _pass(engine, sums_kernel, s, cut, [*arrays, g.offset, x.offset])
    made = [engine.empty((cut.channels,), kind) for _ in range(4)]
    args: list[Any] = [*(m.buf for m in made), *(p.buf for p in parts)]
    args += [cut.channels, cut.rows * cut.area, cut.pieces]
    engine.cubes(totals_kernel, (kind, s.places), cut.channels, args)
    plain, scaled, plain_mean, scaled_mean = made
    given = {"g": g, "r": rstd}
    text = "g * r"
    if training:
        text = "(g - p - (x - m) * r * q) * r"
        given |= {"x": x, "m": mean, "p": plain_mean, "q": scaled_mean}
    if weight is not None:
        text, given["w"] = f"{text} * w", weight
    given = {n: t if n in ("g", "x") else _channel(t, rank) for n, t in given.items()}
    return [computed(engine, text, x.dtype, **given), scaled, plain]
