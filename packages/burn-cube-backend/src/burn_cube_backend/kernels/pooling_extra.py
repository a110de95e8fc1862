"""Pooling directly over windows, and its gradients, each as one kernel.

A unit owns one result and walks its window; gradients of means are gathered by the element they go
to, those of maxima added in their order by the unit that owns a piece of a plane (on a GPU gathered
as well), so that every sum has one order. Images with their channels last are read and made as they
lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import product
from typing import Any

from burn_cube import Kernel
from burn_cube_backend.code import Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, dense, size_of
from burn_cube_backend.kernels import max_pool_rows, pooling_whole
from burn_cube_backend.kernels.maps import computed, wide
from burn_cube_backend.kernels.orders import asks_last, laid, ordered
from burn_cube_backend.kernels.reduction import first_value
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d

# Windows up to this many elements are written out instead of walked.
_UNROLLED = 16
# Units of a GPU that share a plane into which gradients of maxima are added.
_PIECES = 32
# Neighbours of which a unit of a GPU gathers the gradients.
_LANES = 4


def pooled(n: int, k: int, s: int, p: int, hole: int, ceil: bool) -> int:
    """Return the pooled extent; in ceil mode no window starts in the padding on the right."""
    free = n + 2 * p - hole * (k - 1) - 1
    out = (free + (s - 1 if ceil else 0)) // s + 1
    return out - 1 if ceil and (out - 1) * s >= n + p else out


def _flat(code: Code, at: Sequence[Val], extents: Sequence[Val]) -> Val:
    place = at[0]
    for c, n in zip(at[1:], extents[1:], strict=True):
        place = place * n + c
    return place


def _area(extents: Sequence[Val]) -> Val:
    made = extents[0]
    for n in extents[1:]:
        made = made * n
    return made


def _nested(
    code: Code, bounds: Sequence[tuple[Val, Val]], body: Callable[[list[Val]], None]
) -> None:
    with ExitStack() as stack:
        body([stack.enter_context(code.loop(low, high)) for low, high in bounds])


class _Planes:
    """Where the elements of a plane lie.

    Its parameter is the number of channels if they lie last.
    """

    def __init__(self, code: Code, last: bool) -> None:
        self.code = code
        self.channels = code.place("channels") if last else None

    def place(self, i: Val, count: Val, extents: Sequence[Val]) -> tuple[Any, list[Val]]:
        """Return the plane of element number i, and where in it that is.

        Args:
            i: number in the order of memory.
            count: of all.
            extents: of a plane.
        """
        if self.channels is None:
            plane, *at = self.code.coords(i, [count, *extents])
            return plane, at
        image, *at, channel = self.code.coords(i, [count, *extents, self.channels])
        return (image, channel), at

    def first(self, plane: Any, area: Val) -> Val:
        """Return where a plane of so many elements begins."""
        if self.channels is None:
            return plane * area  # type: ignore[no-any-return]
        image, channel = plane
        return image * area * self.channels + channel  # type: ignore[no-any-return]

    def step(self, place: Val) -> Val:
        """Return how far an element lies from the first of its plane."""
        return place if self.channels is None else place * self.channels


def max_kernel(
    dtype: DType, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, checked: bool,
    last: bool, index: DType,
) -> Kernel:  # fmt: skip
    """Write the maximum of each window and its flat index; the first wins, NaN before all."""
    code = Code("max_pool", index)
    rank = len(kernel)
    out, places = code.buffer("out", dtype), code.buffer("places", d.int64)
    x, count, offset = code.buffer("x", dtype), code.place("count"), code.place("offset")
    extents, outs = code.places("extent", rank), code.places("out", rank)
    planes = _Planes(code, last)
    kind = wide(dtype)
    with code.each(count) as i:
        plane, window = planes.place(i, count, outs)
        base = offset + planes.first(plane, _area(extents))
        heads = [w * s - p for w, s, p in zip(window, stride, padding, strict=True)]
        best, winner = code.local(kind, first_value("max", kind)), code.local(index, -1)

        def take(taps: Sequence[Any]) -> None:
            at = [h + t * w for h, t, w in zip(heads, taps, dilation, strict=True)]
            if not checked:
                step(at)
                return
            inside = (at[0] >= 0) & (at[0] < extents[0])
            for c, n in zip(at[1:], extents[1:], strict=True):
                inside = inside & (c >= 0) & (c < n)
            with code.when(inside):
                step(at)

        def step(at: Sequence[Val]) -> None:
            place = _flat(code, at, extents)
            value, now = x[base + planes.step(place)].cast(kind), best.get()
            better = (value > now) | (winner.get() < 0)
            if kind.is_float:
                better = better | (value.call("isnan") & ~now.call("isnan"))
            best.set(better.pick(value, now))
            winner.set(better.pick(place, winner.get()))

        if size_of(kernel) <= _UNROLLED:
            for taps in product(*map(range, kernel)):
                take(taps)
        else:
            _nested(code, [(code.at(0), code.at(k)) for k in kernel], take)
        out[i] = best.get().cast(dtype)
        # A dilated window may see nothing but padding: its index must still lie in the plane.
        places[i] = winner.get().call("max", 0).cast(d.int64)
    return code.finish()


@kernel("max_pool")
def max_pool(
    engine: Engine, x: CubeTensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints,
    ceil: bool,
) -> tuple[CubeTensor, CubeTensor]:  # fmt: skip
    """x [N, C, *L] to maxima and their flat index in each plane."""
    last = asks_last(engine, x)
    x = laid(engine, x, last)
    sizes = list(zip(x.shape[2:], kernel, stride, padding, dilation, strict=True))
    outs = tuple(pooled(*a, ceil) for a in sizes)
    reach = [(o - 1) * s + w * (k - 1) + 1 for o, (_, k, s, _, w) in zip(outs, sizes, strict=True)]
    checked = any(padding) or any(r > n for r, n in zip(reach, x.shape[2:], strict=True))
    shape = (*x.shape[:2], *outs)
    out, places = ordered(engine, shape, x.dtype, last), ordered(engine, shape, d.int64, last)
    if out.size and not last and max_pool_rows.serves(engine, x, kernel, stride, dilation):
        max_pool_rows.run(engine, x, out, places, kernel, stride, padding)
    elif out.size:
        index = engine.index_dtype(x, out, count=x.size)
        args = [out.buf, places.buf, x.buf, out.size, x.offset, *x.shape[2:], *outs]
        args += x.shape[1:2] if last else ()
        spec = (x.dtype, kernel, stride, padding, dilation, checked, last, index)
        engine.run(max_kernel, spec, out.size, args)
    return out, places


def spread_kernel(dtype: DType, last: bool, index: DType) -> Kernel:
    """Write a piece of a plane by each unit: zeros, then every g whose index is in it, in order."""
    code = Code("pool_spread", index)
    kind = wide(dtype)
    out, g, at = code.buffer("out", kind), code.buffer("g", dtype), code.buffer("index", d.int64)
    units, size, count, pieces, g0, at0 = (
        code.place(p) for p in ("units", "size", "count", "pieces", "g_offset", "at_offset")
    )
    planes = _Planes(code, last)
    with code.each(units) as unit:
        # Neighbours share a plane where it lies in one piece, else its place in theirs.
        plane, (piece,) = planes.place(unit, units, [pieces])
        base, head = planes.first(plane, size), planes.first(plane, count)
        each = (size + (pieces - 1)) // pieces
        start = (piece * each).call("min", size)
        stop = (start + each).call("min", size)
        with code.loop(start, stop) as k:
            out[base + planes.step(k)] = code.const(0, kind)
        with code.loop(0, count) as k:
            far = head + planes.step(k)
            raw = at[at0 + far].cast(index)
            with code.when((raw >= start) & (raw < stop)):
                place = base + planes.step(raw)
                out[place] = out[place] + g[g0 + far].cast(kind)
    return code.finish()


def gathered_kernel(
    dtype: DType, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, last: bool,
    lanes: int, index: DType,
) -> Kernel:  # fmt: skip
    """Write for each element the sum of g of the windows around it that chose it, in order.

    A unit has `lanes` neighbours, which share the quotients that say where they are.
    """
    code = Code("max_pool_gather", index)
    rank, kind = len(kernel), wide(dtype)
    out, g, at = code.buffer("out", dtype), code.buffer("g", dtype), code.buffer("index", d.int64)
    units, g0, at0 = (code.place(p) for p in ("units", "g_offset", "at_offset"))
    extents, outs = code.places("extent", rank), code.places("out", rank)
    planes = _Planes(code, last)
    apart = all(k <= s and w == 1 for k, s, w in zip(kernel, stride, dilation, strict=True))
    axes = [units, *extents, *([] if planes.channels is None else [planes.channels])]
    axes[-1] = axes[-1] // lanes

    def element(place: Val, plane: Any, coords: Sequence[Val]) -> None:
        head, own = planes.first(plane, _area(outs)), _flat(code, coords, extents)
        total = code.local(kind)

        def take(windows: Sequence[Val]) -> None:
            far = head + planes.step(_flat(code, windows, outs))
            with code.when(at[at0 + far].cast(index).eq(own)):
                total.set(total.get() + g[g0 + far].cast(kind))

        if apart:
            windows = [(c + p) // s for c, s, p in zip(coords, stride, padding, strict=True)]
            inside = windows[0] < outs[0]
            for w, o in zip(windows[1:], outs[1:], strict=True):
                inside = inside & (w < o)
            with code.when(inside):
                take(windows)
        else:
            spans = []
            sizes = zip(coords, kernel, stride, padding, dilation, outs, strict=True)
            for c, k, s, p, w, o in sizes:
                # Numbers are moved up so that the quotient towards zero is the ceiling.
                low = (c + (p - w * (k - 1) + s - 1)).call("max", 0) // s
                spans.append((low, ((c + p) // s + 1).call("min", o)))
            _nested(code, spans, take)
        out[place] = total.get().cast(dtype)

    with code.each(units) as unit:
        *before, group = code.coords(unit, axes)
        for lane in range(lanes):
            where = [*before, group * lanes + lane]
            if last:
                image, *coords, channel = where
                element(unit * lanes + lane, (image, channel), coords)
            else:
                plane, *coords = where
                element(unit * lanes + lane, plane, coords)
    return code.finish()


@kernel("max_pool_backward")
def max_pool_backward(
    engine: Engine, g: CubeTensor, indices: CubeTensor, kernel: Ints, stride: Ints, padding: Ints,
    dilation: Ints, shape: Ints,
) -> CubeTensor:  # fmt: skip
    """g [N, C, *out] added at the flat indices of each plane of `shape`; duplicates add up.

    With a kernel each index lies in its window, and a GPU asks of each element who chose it.
    """
    last = asks_last(engine, g, indices)
    if kernel and engine.client.properties.kind == "gpu":
        return gathered(engine, g, indices, (kernel, stride, padding, dilation), shape, last)
    out = ordered(engine, shape, wide(g.dtype), last)
    if out.size:
        g, indices = laid(engine, g, last), laid(engine, indices, last)
        planes, size, count = size_of(shape[:2]), size_of(shape[2:]), size_of(g.shape[2:])
        index = engine.index_dtype(out, g, count=max(out.size, g.size))
        # A processor has no use for units that read all indices to find their own.
        pieces = min(_PIECES, size) if engine.client.properties.kind == "gpu" else 1
        args = [out.buf, g.buf, indices.buf, planes * pieces, size, count, pieces]
        args += [g.offset, indices.offset, *(shape[1:2] if last else ())]
        engine.run(spread_kernel, (g.dtype, last, index), planes * pieces, args)
    return out if out.dtype is g.dtype else computed(engine, "x", g.dtype, x=out)


def gathered(
    engine: Engine, g: CubeTensor, indices: CubeTensor, windows: tuple[Ints, Ints, Ints, Ints],
    shape: Ints, last: bool,
) -> CubeTensor:  # fmt: skip
    """Return the same where indices lie in their windows: kernel, stride, padding, dilation."""
    out = ordered(engine, shape, g.dtype, last)
    if out.size:
        g, indices = laid(engine, g, last), laid(engine, indices, last)
        index = engine.index_dtype(out, g, count=max(out.size, g.size))
        lanes = 1 if (shape[1] if last else shape[-1]) % _LANES else _LANES
        units = out.size // lanes
        args = [out.buf, g.buf, indices.buf, units, g.offset, indices.offset]
        args += [*shape[2:], *g.shape[2:], *(shape[1:2] if last else ())]
        engine.run(gathered_kernel, (g.dtype, *windows, last, lanes, index), units, args)
    return out


# ---- means -------------------------------------------------------------------------------------


class _Means:
    """The parameters of kernels of means: extents of input and result, then the windows."""

    def __init__(
        self, code: Code, rank: int, adaptive: bool, divisor: bool, padded: bool, last: bool
    ) -> None:
        self.code, self.rank, self.adaptive, self.padded = code, rank, adaptive, padded
        self.count, self.offset = code.place("count"), code.place("offset")
        self.extents, self.outs = code.places("extent", rank), code.places("out", rank)
        names = () if adaptive else ("kernel", "stride", "padding")
        self.sizes = [code.places(n, rank) for n in names]
        self.divisor = code.place("divisor") if divisor else None
        self.planes = _Planes(code, last)

    def window(self, dim: int, at: Val) -> tuple[Val, Val, Val]:
        """Return start and stop of a window inside the input, and what it counts."""
        n, o = self.extents[dim], self.outs[dim]
        if self.adaptive:
            start, stop = at * n // o, ((at + 1) * n + (o - 1)) // o
            return start, stop, stop - start
        k, s, p = (sizes[dim] for sizes in self.sizes)
        start = at * s - p
        # PyTorch clips windows to the padded input.
        stop = (start + k).call("min", n + p)
        low, high = start.call("max", 0), stop.call("min", n)
        count = (stop - start if self.padded else high - low).call("max", 1)
        return low, high, count

    def windows(self, dim: int, at: Val) -> tuple[Val, Val]:
        """Return the first window that an element is in, and the one behind the last."""
        n, o = self.extents[dim], self.outs[dim]
        if self.adaptive:
            return at * o // n, ((at + 1) * o + (n - 1)) // n
        k, s, p = (sizes[dim] for sizes in self.sizes)
        # Numbers are moved up so that the quotient towards zero is the floor.
        low = (at + p - k + s).call("max", 0) // s
        return low, ((at + p) // s + 1).call("min", o)

    def by(self, counts: Sequence[Val]) -> Val:
        """Return what a window divides by."""
        return _area(counts) if self.divisor is None else self.divisor


def mean_kernel(
    dtype: DType, rank: int, adaptive: bool, divisor: bool, padded: bool, last: bool, index: DType
) -> Kernel:
    """Write the mean of each window; integers add in 64 bits and truncate."""
    code = Code("avg_pool", index)
    kind = wide(dtype) if dtype.is_float else d.int64
    out, x = code.buffer("out", dtype), code.buffer("x", dtype)
    m = _Means(code, rank, adaptive, divisor, padded, last)
    with code.each(m.count) as i:
        plane, at = m.planes.place(i, m.count, m.outs)
        base = m.offset + m.planes.first(plane, _area(m.extents))
        spans = [m.window(k, c) for k, c in enumerate(at)]
        total = code.local(kind)

        def add(places: Sequence[Val]) -> None:
            place = m.planes.step(_flat(code, places, m.extents))
            total.set(total.get() + x[base + place].cast(kind))

        _nested(code, [(low, high) for low, high, _ in spans], add)
        by = m.by([count for _, _, count in spans]).cast(kind)
        made = total.get() / by if kind.is_float else total.get() // by
        out[i] = made.cast(dtype)
    return code.finish()


def mean_spread_kernel(
    dtype: DType, rank: int, adaptive: bool, divisor: bool, padded: bool, last: bool, index: DType
) -> Kernel:
    """Write for each element the sum of g over the divisors of the windows that it is in."""
    code = Code("avg_pool_spread", index)
    kind = wide(dtype)
    out, g = code.buffer("out", dtype), code.buffer("g", dtype)
    m = _Means(code, rank, adaptive, divisor, padded, last)
    with code.each(m.count) as i:
        plane, at = m.planes.place(i, m.count, m.extents)
        base = m.offset + m.planes.first(plane, _area(m.outs))
        total = code.local(kind)

        def add(places: Sequence[Val]) -> None:
            by = m.by([m.window(k, c)[2] for k, c in enumerate(places)]).cast(kind)
            place = m.planes.step(_flat(code, places, m.outs))
            total.set(total.get() + g[base + place].cast(kind) / by)

        _nested(code, [m.windows(k, c) for k, c in enumerate(at)], add)
        out[i] = total.get().cast(dtype)
    return code.finish()


def _means(
    engine: Engine, make: Any, x: CubeTensor, shape: Ints, extents: Ints, outs: Ints,
    sizes: Sequence[Ints], padded: bool, divisor: int | None,
) -> CubeTensor:  # fmt: skip
    last = asks_last(engine, x)
    x = laid(engine, x, last)
    out = ordered(engine, shape, x.dtype, last)
    if out.size:
        index = engine.index_dtype(x, out, count=max(x.size, out.size))
        extra = [] if divisor is None else [divisor]
        extra += shape[1:2] if last else ()
        args = [out.buf, x.buf, out.size, x.offset, *extents, *outs]
        args += [n for size in sizes for n in size] + extra
        spec = (x.dtype, len(outs), not sizes, divisor is not None, padded, last, index)
        engine.run(make, spec, out.size, args)
    return out


@kernel("avg_pool")
def avg_pool(
    engine: Engine, x: CubeTensor, kernel: Ints, stride: Ints, padding: Ints, ceil: bool,
    count_include_pad: bool, divisor: int | None,
) -> CubeTensor:  # fmt: skip
    """x [N, C, *L] to means of windows."""
    sizes = zip(x.shape[2:], kernel, stride, padding, strict=True)
    outs = tuple(pooled(*a, 1, ceil) for a in sizes)
    if pooling_whole.is_whole(x, outs, (kernel, stride, padding)):
        return pooling_whole.mean(engine, x, divisor)
    return _means(
        engine, mean_kernel, x, (*x.shape[:2], *outs), x.shape[2:], outs,
        (kernel, stride, padding), count_include_pad, divisor,
    )  # fmt: skip


@kernel("avg_pool_backward")
def avg_pool_backward(
    engine: Engine, g: CubeTensor, kernel: Ints, stride: Ints, padding: Ints, ceil: bool,
    count_include_pad: bool, divisor: int | None, shape: Ints,
) -> CubeTensor:  # fmt: skip
    """Each g over its divisor, added to every element of its window."""
    planes = CubeTensor(None, shape, dense(shape), g.dtype)
    if pooling_whole.is_whole(planes, g.shape[2:], (kernel, stride, padding)):
        return pooling_whole.spread(engine, g, shape, divisor)
    return _means(
        engine, mean_spread_kernel, g, shape, shape[2:], g.shape[2:],
        (kernel, stride, padding), count_include_pad, divisor,
    )  # fmt: skip


@kernel("adaptive_avg_pool")
def adaptive_avg_pool(engine: Engine, x: CubeTensor, size: Ints) -> CubeTensor:
    """Means of the windows that tile x [N, C, *L] to `size`."""
    shape = (*x.shape[:2], *size)
    if pooling_whole.is_whole(x, size, ()):
        return pooling_whole.mean(engine, x, None)
    return _means(engine, mean_kernel, x, shape, x.shape[2:], size, (), True, None)


@kernel("adaptive_avg_pool_backward")
def adaptive_avg_pool_backward(engine: Engine, g: CubeTensor, shape: Ints) -> CubeTensor:
    """Each g over the size of its window, added to every element of the window."""
    if pooling_whole.is_whole(CubeTensor(None, shape, dense(shape), g.dtype), g.shape[2:], ()):
        return pooling_whole.spread(engine, g, shape, None)
    return _means(
        engine, mean_spread_kernel, g, shape, shape[2:], g.shape[2:], (), True, None
    )  # fmt: skip
