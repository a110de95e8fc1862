"""Real Fourier transforms of any length.

A transform of n = r1 r2 ... is a pass per factor: each unit writes one element, a sum of r terms
with factors of a table (Stockham's order, so nothing is permuted). A length with a prime factor
above `LARGEST` goes by Bluestein's identity through a power of two. Transforms are complex inside:
half of the work of a real one is given away for one path that fits every length.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from burn_cube import Kernel
from burn_cube_backend.code import Code
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, size_of
from burn_cube_backend.kernels.maps import wide
from burn_cube_backend.kernels.tables import tables
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType

# A pass of radix r reads r elements for each it writes: beyond this Bluestein is cheaper.
LARGEST = 61
# Radices that powers of two are cut into.
RADICES = (8, 4, 2)


def factors(n: int) -> list[int] | None:
    """Return the radices of the passes of a length, or None if a prime factor is too large.

    Example:
        >>> factors(48), factors(7), factors(2 * 127)
        ([8, 2, 3], [7], None)
    """
    out = []
    for r in RADICES:
        while n % r == 0:
            out.append(r)
            n //= r
    p = 3
    while n > 1 and p <= LARGEST:
        while n % p == 0:
            out.append(p)
            n //= p
        p += 2
    return out if n == 1 else None


class Pair(NamedTuple):
    """Complex numbers as two row-major buffers [lines, n]."""

    real: CubeTensor
    imag: CubeTensor


def _pair(engine: Engine, lines: int, n: int, kind: DType) -> Pair:
    return Pair(engine.empty((lines, n), kind), engine.empty((lines, n), kind))


def load_kernel(
    source: DType, kind: DType, mirrored: bool, imag: bool, rank: int, index: DType
) -> Kernel:
    """Write lines of n complex numbers from tensors, cut or padded with zeros.

    `mirrored`: the tensors hold the first bins of a spectrum of real samples; the others are their
    conjugates. The imaginary parts of the ends are not read, as in numpy.
    """
    code = Code("fourier_load", index)
    out, out_i = code.buffer("out", kind), code.buffer("out_imag", kind)
    x = code.buffer("x", source)
    xi = code.buffer("x_imag", source) if imag else None
    count, n, have = code.place("count"), code.place("n"), code.place("have")
    offset, hop = code.place("offset"), code.place("hop")
    offset_i, hop_i = code.place("offset_imag"), code.place("hop_imag")
    extents = code.places("extent", rank)
    strides, strides_i = code.places("stride", rank), code.places("stride_imag", rank)
    with code.each(count) as i:
        line, k = i // n, i % n
        coords = code.coords(line, extents)
        flipped = (k + k > n) if mirrored else None
        at = k if flipped is None else flipped.pick(n - k, k)
        real, low = code.local(kind), code.local(kind)
        with code.when(at < have):
            real.set(x[code.walk(offset, coords, strides) + at * hop].cast(kind))
            if xi is not None and flipped is not None:
                value = xi[code.walk(offset_i, coords, strides_i) + at * hop_i].cast(kind)
                end = at.eq(0) | (at + at).eq(n)
                low.set(end.pick(code.const(0, kind), flipped.pick(-value, value)))
        out[i] = real.get()
        out_i[i] = low.get()
    return code.finish()


def pass_kernel(radix: int, kind: DType, index: DType) -> Kernel:
    """Write one pass: transforms of length `done` become those of radix * done.

    The factors are a table cos, sin of 2 pi k / n; `sign` -1 is the forward transform.
    """
    code = Code(f"fourier_{radix}", index)
    out, out_i = code.buffer("out", kind), code.buffer("out_imag", kind)
    x, xi = code.buffer("x", kind), code.buffer("x_imag", kind)
    cos, sin = code.buffer("cos", kind), code.buffer("sin", kind)
    sign = code.scalar("sign", kind)
    count, n, done = code.place("count"), code.place("n"), code.place("done")
    with code.each(count) as i:
        line, at = i // n, i % n
        longer = done * radix
        group, k = at // longer, at % longer
        groups = n // longer
        base = line * n + group * done + k % done
        hop = groups * done
        # groups * k < n, so that the multiples below stay within radix * n.
        step = groups * k
        real, imag = x[base], xi[base]
        turn = step
        for t in range(1, radix):
            place = base + hop * t
            c, s = cos[turn % n], sin[turn % n] * sign
            a, b = x[place], xi[place]
            real, imag = real + (a * c - b * s), imag + (a * s + b * c)
            turn = turn + step
        out[i] = real
        out_i[i] = imag
    return code.finish()


def store_kernel(kind: DType, out: DType, imag: bool, rank: int, index: DType) -> Kernel:
    """Write the first elements of lines into row-major tensors, times a factor."""
    code = Code("fourier_store", index)
    target = code.buffer("out", out)
    target_i = code.buffer("out_imag", out) if imag else None
    x, xi = code.buffer("x", kind), code.buffer("x_imag", kind)
    factor = code.scalar("factor", kind)
    count, n, length = code.place("count"), code.place("n"), code.place("length")
    extents, strides = code.places("extent", rank), code.places("stride", rank)
    hop = code.place("hop")
    with code.each(count) as i:
        line, k = i // length, i % length
        at = code.walk(k * hop, code.coords(line, extents), strides)
        place = line * n + k
        target[at] = (x[place] * factor).cast(out)
        if target_i is not None:
            target_i[at] = (xi[place] * factor).cast(out)
    return code.finish()


def chirp_kernel(kind: DType, index: DType) -> Kernel:
    """Write `out[line, k] = x[line, k] * w[k]` for k below both `have` and `n`, else 0.

    Lines of x have `n` elements and those of out `m`; `sign` conjugates w, `back` the result.
    """
    code = Code("fourier_chirp", index)
    out, out_i = code.buffer("out", kind), code.buffer("out_imag", kind)
    x, xi = code.buffer("x", kind), code.buffer("x_imag", kind)
    cos, sin = code.buffer("cos", kind), code.buffer("sin", kind)
    sign, factor = code.scalar("sign", kind), code.scalar("factor", kind)
    count, m, n, have = (code.place(p) for p in ("count", "m", "n", "have"))
    with code.each(count) as i:
        line, k = i // m, i % m
        real, imag = code.local(kind), code.local(kind)
        with code.when(k < have):
            place = line * n + k
            c, s = cos[k] * factor, sin[k] * sign * factor
            a, b = x[place], xi[place]
            real.set(a * c - b * s)
            imag.set(a * s + b * c)
        out[i] = real.get()
        out_i[i] = imag.get()
    return code.finish()


class Transforms:
    """Complex transforms of the lines of one device."""

    def __init__(self, engine: Engine, kind: DType) -> None:
        self.engine = engine
        self.kind = kind

    def index(self, *parts: Pair) -> DType:
        """Return the dtype of places; multiples of the twiddle's number stay in it as well."""
        engine = self.engine
        largest = max(p.real.size for p in parts)
        return engine.index_dtype(*(p.real for p in parts), count=largest * LARGEST)

    def run(self, x: Pair, sign: int) -> Pair:
        """Return the transform of every line, unscaled; sign -1 is the forward one."""
        lines, n = x.real.shape
        radices = factors(n)
        if radices is None:
            return self._bluestein(x, sign)
        engine, kind = self.engine, self.kind
        if n == 1:
            return x
        cos, sin = tables(engine, ("twiddle", n, kind), lambda: _circle(np.arange(n), n, kind))
        done, index = 1, self.index(x)
        for radix in radices:
            out = _pair(engine, lines, n, kind)
            args = [
                out.real.buf, out.imag.buf, x.real.buf, x.imag.buf, cos, sin, float(sign),
                lines * n, n, done,
            ]  # fmt: skip
            engine.run(pass_kernel, (radix, kind, index), lines * n, args)
            x, done = out, done * radix
        return x

    def _bluestein(self, x: Pair, sign: int) -> Pair:
        """k j = (k^2 + j^2 - (k - j)^2) / 2: a transform is a convolution with a chirp."""
        engine, kind = self.engine, self.kind
        n = x.real.shape[1]
        m = 1 << (2 * n - 2).bit_length()
        square = np.arange(n) ** 2 % (2 * n)
        wave = tables(engine, ("chirp", n, kind), lambda: _circle(square, 2 * n, kind))

        def spectrum() -> list[tuple[np.ndarray[Any, Any], DType]]:
            chirp = np.zeros(m, np.complex128)
            chirp[:n] = np.exp(1j * pi * square / n)
            chirp[m - n + 1 :] = chirp[n - 1 : 0 : -1]
            made = np.fft.fft(chirp)
            return [(made.real, kind), (made.imag, kind)]

        filtered = tables(engine, ("chirp spectrum", n, kind), spectrum)
        # The table is that of sign -1; for +1 everything is conjugated.
        a = self.times(x, wave, sign, m, n, 1.0)
        a = self.run(a, sign)
        a = self.times(a, filtered, -sign, m, m, 1.0)
        a = self.run(a, -sign)
        return self.times(a, wave, sign, n, n, 1.0 / m)

    def times(self, x: Pair, wave: Any, sign: int, m: int, have: int, factor: float) -> Pair:
        """Return lines of m elements: the first `have` of x times a table, then zeros."""
        engine = self.engine
        lines, n = x.real.shape
        out = _pair(engine, lines, m, self.kind)
        args = [
            out.real.buf, out.imag.buf, x.real.buf, x.imag.buf, *wave, float(sign), factor,
            lines * m, m, n, have,
        ]  # fmt: skip
        engine.run(chirp_kernel, (self.kind, self.index(x, out)), lines * m, args)
        return out


def _circle(k: Any, n: int, kind: DType) -> list[tuple[np.ndarray[Any, Any], DType]]:
    angle = 2 * pi * k / n
    return [(np.cos(angle), kind), (np.sin(angle), kind)]


def _split(x: CubeTensor, dim: int) -> tuple[Ints, Ints, int, int]:
    """Return extents and strides of the other dims, at least one, then those of dim."""
    if not x.shape:
        return (1,), (0,), 1, 0
    rest = [k for k in range(len(x.shape)) if k != dim]
    extents, strides = tuple(x.shape[k] for k in rest), tuple(x.strides[k] for k in rest)
    return extents or (1,), strides or (0,), x.shape[dim], x.strides[dim]


def loaded(
    engine: Engine, x: CubeTensor, imag: CubeTensor | None, dim: int, n: int, mirrored: bool
) -> Pair:
    """Return the lines of a tensor along dim as complex numbers."""
    kind = wide(x.dtype)
    extents, strides, have, hop = _split(x, dim)
    lines = size_of(extents)
    out = _pair(engine, lines, n, kind)
    other = x if imag is None else imag
    _, strides_i, _, hop_i = _split(other, dim)
    index = engine.index_dtype(x, other, out.real, count=2 * lines * n)
    extra = [] if imag is None else [imag.buf]
    args = [
        out.real.buf, out.imag.buf, x.buf, *extra, lines * n, n, have, x.offset, hop,
        other.offset, hop_i, *extents, *strides, *strides_i,
    ]  # fmt: skip
    spec = (x.dtype, kind, mirrored, imag is not None, len(extents), index)
    engine.run(load_kernel, spec, lines * n, args)
    return out


def stored(
    engine: Engine, x: Pair, shape: Ints, dim: int, dtype: DType, factor: float, imag: bool
) -> list[CubeTensor]:
    """Return tensors of a shape with the first elements of the lines along dim."""
    made = [engine.empty(shape, dtype) for _ in range(2 if imag else 1)]
    extents, strides, length, hop = _split(made[0], dim)
    kind = x.real.dtype
    index = engine.index_dtype(x.real, made[0], count=made[0].size)
    args = [
        *[t.buf for t in made], x.real.buf, x.imag.buf, factor, made[0].size, x.real.shape[1],
        length, *extents, *strides, hop,
    ]  # fmt: skip
    engine.run(store_kernel, (kind, dtype, imag, len(extents), index), made[0].size, args)
    return made


def scale_of(n: int, norm: str, inverse: bool) -> float:
    """Return the factor of a transform of length n.

    Example:
        >>> scale_of(4, "backward", True), scale_of(4, "ortho", False), scale_of(4, "forward", True)
        (0.25, 0.5, 1.0)
    """
    if norm == "ortho":
        return 1 / sqrt(n)
    return 1.0 / n if (norm == "backward") is inverse else 1.0


@kernel("rfft")
def rfft(
    engine: Engine, x: CubeTensor, dim: int, norm: str, n: int
) -> tuple[CubeTensor, CubeTensor]:
    """n samples along dim (cut or padded with zeros) to n // 2 + 1 bins."""
    shape = (*x.shape[:dim], n // 2 + 1, *x.shape[dim + 1 :])
    if not size_of(shape):
        return engine.empty(shape, x.dtype), engine.empty(shape, x.dtype)
    lines = Transforms(engine, wide(x.dtype)).run(loaded(engine, x, None, dim, n, False), -1)
    real, imag = stored(engine, lines, shape, dim, x.dtype, scale_of(n, norm, False), True)
    return real, imag


@kernel("irfft")
def irfft(
    engine: Engine, real: CubeTensor, imag: CubeTensor | None, dim: int, norm: str, n: int
) -> CubeTensor:
    """Bins to n samples along dim."""
    shape = (*real.shape[:dim], n, *real.shape[dim + 1 :])
    if not size_of(shape):
        return engine.empty(shape, real.dtype)
    lines = Transforms(engine, wide(real.dtype)).run(loaded(engine, real, imag, dim, n, True), 1)
    return stored(engine, lines, shape, dim, real.dtype, scale_of(n, norm, True), False)[0]
