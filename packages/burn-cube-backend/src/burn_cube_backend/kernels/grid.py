"""grid_sample in 2 and 3 dims and its gradients.

A grid holds positions in [-1, 1] per sample, last component first dim from the right. Positions of
a half grid are rounded to it at every step, as PyTorch does: where a sample falls depends on that.
Values and weights are float32, or float64. The gradient of the input is added by one unit per
plane, sample after sample: the order of additions is the same in every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from burn_cube import Kernel
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import size_of
from burn_cube_backend.kernels.create import filled
from burn_cube_backend.kernels.maps import HALVES, converted, wide
from burn_cube_backend.kernels.resample import CUBIC
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d

# Far outside any plane: where PyTorch sends positions that are not finite or beyond int.
_OUTSIDE = -100.0
_FAR = float(2**31 - 1)


class Rule(NamedTuple):
    """How positions become taps.

    Attributes:
        mode: bilinear, nearest or bicubic.
        padding: zeros, border or reflection.
        align_corners: ends are centres of elements.
        half: dtype of the grid if it is a half, to which positions are rounded.
        dims: spatial dims.
    """

    mode: str
    padding: str
    align_corners: bool
    half: DType | None
    dims: int

    def rounded(self, x: Val) -> Val:
        """Return a position as the grid's dtype holds it."""
        return x if self.half is None else x.cast(self.half).cast(x.dtype)


class Tap(NamedTuple):
    """One element that a sample reads along one dim: place, weight, slope of the weight."""

    place: Val
    inside: Val
    weight: Val
    slope: Val


class _Line:
    """The taps of one sample along one dim."""

    def __init__(self, code: Code, rule: Rule, grid: Val, extent: Val) -> None:
        self.code = code
        self.rule = rule
        self.kind = grid.dtype
        self.extent = extent
        self.n = extent.cast(grid.dtype)

    def number(self, value: float) -> Val:
        return self.code.const(value, self.kind)

    def taps(self, grid: Val) -> list[Tap]:
        """Return the taps, the first one leftmost."""
        rule = self.rule
        slope = ((self.n - 1) if rule.align_corners else self.n) * 0.5
        at = rule.rounded(rule.rounded(grid + 1) * slope)
        if not rule.align_corners:
            at = rule.rounded(at - 0.5)
        if rule.mode == "bicubic":
            return self._cubic(at, slope)
        at, bend = self._padded(at)
        at = rule.rounded(at)
        one, zero = self.number(1), self.number(0)
        if rule.mode == "nearest":
            return [self._tap(at.call("round"), one, zero)]
        first = at.call("floor")
        t, pull = at - first, slope * bend
        return [self._tap(first, 1 - t, -pull), self._tap(first + 1, t, pull)]

    def _tap(self, at: Val, weight: Val, slope: Val) -> Tap:
        place = at.cast(d.int64)
        limit = self.extent.cast(d.int64)
        inside = (place >= 0) & (place < limit)
        clamped = place.call("max", 0).call("min", limit - 1).cast(self.code.index)
        return Tap(clamped, inside, weight, slope)

    def _cubic(self, at: Val, slope: Val) -> list[Tap]:
        # The padding rule applies to every tap, not to the position between them.
        at = at.call("isfinite").pick(at, _OUTSIDE)
        first = at.call("floor")
        t = at - first
        u = 1 - t
        weights = [_far(t + 1), _near(t), _near(u), _far(2 - t)]
        slopes = [_far_slope(t + 1), _near_slope(t), -_near_slope(u), -_far_slope(2 - t)]
        out = []
        for k, (weight, rise) in enumerate(zip(weights, slopes, strict=True), -1):
            place = self._padded(first + k)[0].call("round")
            out.append(self._tap(place, weight, slope * rise))
        return out

    def _clip(self, at: Val) -> tuple[Val, Val]:
        """Clamp to the plane, with its slope: 0 at and beyond both ends. NaN goes to 0."""
        end = self.n - 1
        inside = (at > 0) & (at < end)
        clipped = (at > 0).pick((at < end).pick(at, end), 0.0)
        return clipped, inside.pick(self.number(1), 0.0)

    def _reflect(self, at: Val, low: Val, span: Val) -> tuple[Val, Val]:
        """Mirror at both ends as often as needed, with the slope (1 or -1)."""
        some = span > 0
        span = some.pick(span, 1.0)
        slope = (at < low).pick(self.number(-1), 1.0)
        away = (at - low).call("abs")
        extra = away.call("rem", span)
        turns = (away / span).call("floor")
        even = turns.call("rem", 2.0).eq(0.0)
        mirrored = even.pick(extra + low, span - extra + low)
        bend = even.pick(slope, -slope)
        return some.pick(mirrored, 0.0), some.pick(bend, 0.0)

    def _padded(self, at: Val) -> tuple[Val, Val]:
        """Return positions after the padding rule, and the slope of that rule."""
        slope = self.number(1)
        if self.rule.padding == "border":
            at, slope = self._clip(at)
        elif self.rule.padding == "reflection":
            corners = self.rule.align_corners
            low = self.number(0 if corners else -0.5)
            span = self.n - 1 if corners else self.n
            at, bend = self._reflect(at, low, span)
            at, slope = self._clip(at)
            slope = slope * bend
        near = at.call("abs") < _FAR
        return near.pick(at, _OUTSIDE), slope


def _near(t: Val) -> Val:
    return ((CUBIC + 2) * t - (CUBIC + 3)) * t * t + 1


def _far(t: Val) -> Val:
    return ((CUBIC * t - 5 * CUBIC) * t + 8 * CUBIC) * t - 4 * CUBIC


def _near_slope(t: Val) -> Val:
    return (3 * (CUBIC + 2) * t - 2 * (CUBIC + 3)) * t


def _far_slope(t: Val) -> Val:
    return (3 * CUBIC * t - 10 * CUBIC) * t + 8 * CUBIC


class _Sampler:
    """What the kernels share: the input's extents, the grid and its strides."""

    def __init__(self, code: Code, rule: Rule, source: DType, grid: DType) -> None:
        self.code = code
        self.rule = rule
        self.kind = wide(source)
        self.x, self.grid = code.buffer("x", source), code.buffer("grid", grid)
        self.count, self.channels = code.place("count"), code.place("channels")
        self.samples = code.place("samples")
        self.x0, self.grid0 = code.place("x_offset"), code.place("grid_offset")
        self.extents = code.places("extent", rule.dims)
        self.plane = self.extents[0]
        for extent in self.extents[1:]:
            self.plane = self.plane * extent

    def taps(self, batch: Val, sample: Val) -> list[list[Tap]]:
        """Return the taps of a sample along every dim."""
        dims = self.rule.dims
        base = self.grid0 + (batch * self.samples + sample) * dims
        out = []
        for k, extent in enumerate(self.extents):
            grid = self.grid[base + (dims - 1 - k)].cast(wide(self.grid_dtype()))
            out.append(_Line(self.code, self.rule, grid, extent).taps(grid))
        return out

    def grid_dtype(self) -> DType:
        """Return the dtype of positions in memory."""
        made: DType = self.grid.op.type.elem
        return made

    def each(self, taps: Sequence[Sequence[Tap]]) -> Iterator[tuple[tuple[Tap, ...], Val, Val]]:
        """Yield the taps of an element that is read, its place in the plane, and if it is one."""
        for chosen in product(*taps):
            place, inside = chosen[0].place, chosen[0].inside
            for extent, tap in zip(self.extents[1:], chosen[1:], strict=True):
                place, inside = place * extent + tap.place, inside & tap.inside
            yield chosen, place, inside

    def read(self, base: Val, place: Val, inside: Val) -> Val:
        """Return an element of x, 0 outside."""
        return inside.pick(self.x[base + place].cast(self.kind), 0.0)


def _weight(chosen: Sequence[Tap], kind: DType, slope_of: int = -1) -> Val:
    parts = [t.slope if k == slope_of else t.weight for k, t in enumerate(chosen)]
    made = parts[0]
    for part in parts[1:]:
        made = made * part
    return made.cast(kind)


def sample_kernel(rule: Rule, source: DType, grid: DType, index: DType) -> Kernel:
    """Write one sampled element per unit."""
    code = Code("grid_sample", index)
    out = code.buffer("out", source)
    s = _Sampler(code, rule, source, grid)
    with code.each(s.count) as i:
        plane, sample = i // s.samples, i % s.samples
        base = s.x0 + plane * s.plane
        total = code.const(0, s.kind)
        for chosen, place, inside in s.each(s.taps(plane // s.channels, sample)):
            total = total + s.read(base, place, inside) * _weight(chosen, s.kind)
        out[i] = total.cast(source)
    return code.finish()


def spread_kernel(rule: Rule, source: DType, grid: DType, index: DType) -> Kernel:
    """Write the gradient of x, one plane per unit, into zeros."""
    code = Code("grid_spread", index)
    kind = wide(source)
    dx, g = code.buffer("dx", kind), code.buffer("g", source)
    s = _Sampler(code, rule, source, grid)
    with code.each(s.count) as plane, code.loop(0, s.samples) as sample:
        value = g[plane * s.samples + sample].cast(kind)
        for chosen, place, inside in s.each(s.taps(plane // s.channels, sample)):
            with code.when(inside):
                at = plane * s.plane + place
                dx[at] = dx[at] + value * _weight(chosen, kind)
    return code.finish()


def slope_kernel(rule: Rule, source: DType, grid: DType, index: DType) -> Kernel:
    """Write the gradient of the grid, one sample per unit."""
    code = Code("grid_slope", index)
    kind = wide(source)
    dgrid, g = code.buffer("dgrid", grid), code.buffer("g", source)
    s = _Sampler(code, rule, source, grid)
    with code.each(s.count) as i:
        batch, sample = i // s.samples, i % s.samples
        taps = s.taps(batch, sample)
        pulls = [code.local(kind) for _ in range(rule.dims)]
        with code.loop(0, s.channels) as channel:
            plane = batch * s.channels + channel
            value = g[plane * s.samples + sample].cast(kind)
            base = s.x0 + plane * s.plane
            for chosen, place, inside in s.each(taps):
                pull = value * s.read(base, place, inside)
                for k, total in enumerate(pulls):
                    total.set(total.get() + pull * _weight(chosen, kind, k))
        _stored(dgrid, i * rule.dims, [p.get() for p in reversed(pulls)], grid)
    return code.finish()


def _stored(out: Buf, at: Val, values: Sequence[Val], dtype: DType) -> None:
    for k, value in enumerate(values):
        out[at + k] = value.cast(dtype)


def _rule(x: CubeTensor, grid: CubeTensor, mode: str, padding: str, align: bool) -> Rule:
    half = grid.dtype if grid.dtype in HALVES else None
    return Rule(mode, padding, align, half, len(x.shape) - 2)


@kernel("grid_sample")
def grid_sample(
    engine: Engine, x: CubeTensor, grid: CubeTensor, mode: str, padding: str, align_corners: bool
) -> CubeTensor:
    """x [N, C, *L] at grid [N, *S, dims] to [N, C, *S]."""
    x, grid = engine.row_major(x), engine.row_major(grid)
    out = engine.empty((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    if out.size:
        index = engine.index_dtype(x, grid, out, count=out.size)
        args = [
            out.buf, x.buf, grid.buf, out.size, x.shape[1], size_of(grid.shape[1:-1]), x.offset,
            grid.offset, *x.shape[2:],
        ]  # fmt: skip
        spec = (_rule(x, grid, mode, padding, align_corners), x.dtype, grid.dtype, index)
        engine.run(sample_kernel, spec, out.size, args)
    return out


@kernel("grid_sample_backward")
def grid_sample_backward(
    engine: Engine, g: CubeTensor, x: CubeTensor, grid: CubeTensor, mode: str, padding: str,
    align_corners: bool,
) -> tuple[CubeTensor, CubeTensor]:  # fmt: skip
    """(dx, dgrid); at a kink the slope of the padding rule is PyTorch's."""
    g, x, grid = (engine.row_major(t) for t in (g, x, grid))
    if g.offset:
        # These kernels read g from the start of its memory.
        from burn_cube_backend.kernels.maps import copied

        g = copied(engine, g)
    dx = filled(engine, wide(x.dtype), x.shape, 0)
    samples, (n, channels) = size_of(grid.shape[1:-1]), x.shape[:2]
    index = engine.index_dtype(x, grid, g, dx, count=max(dx.size, g.size))
    spec = (_rule(x, grid, mode, padding, align_corners), x.dtype, grid.dtype, index)
    tail = [channels, samples, x.offset, grid.offset, *x.shape[2:]]
    if g.size:
        args = [dx.buf, g.buf, x.buf, grid.buf, n * channels, *tail]
        engine.run(spread_kernel, spec, n * channels, args)
    if mode == "nearest" or not g.size:
        dgrid = filled(engine, grid.dtype, grid.shape, 0)
    else:
        dgrid = engine.empty(grid.shape, grid.dtype)
        args = [dgrid.buf, g.buf, x.buf, grid.buf, n * samples, *tail]
        engine.run(slope_kernel, spec, n * samples, args)
    return converted(engine, dx, x.dtype), dgrid
