"""Softmax and the normalisations as one kernel each; halves compute in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from burn_cube import Kernel
from burn_cube_backend.code import Buf, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, dense, size_of
from burn_cube_backend.kernels.maps import HALVES, computed, converted, copied, wide
from burn_cube_backend.kernels.rows import At, Layout, Row, layout, row_code, run_rows
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d

# Squares of what is larger are near the end of float32.
_HUGE = 2.0**60


# Powers of a row are made so many powers of two too large.
RAISED = 40
# Added to a float32 it leaves, in the low bits, the exponent field of 2^(n + RAISED); n is exact.
_FIELD = 1.5 * 2.0**23 + 127 + RAISED


def raised_power(x: Val) -> Val:
    """Return exp(x) 2^40 of a float32 that is not positive.

    exp(x) may be subnormal, so it takes two steps to scale it; this never is, and takes one. The
    reciprocal of a sum of such powers takes the factor away, and rounds to 0 what is below e^-110.
    """
    x = (x < -110.0).pick(-110.0, x)
    shifted = x * 1.44269504088896341 + _FIELD
    scale = (shifted.bits(d.int32) << 23).bits(d.float32)
    n = shifted - _FIELD
    # What is left of x, with ln 2 in two parts; the polynomial is that of `exp`.
    r = n.call("fma", -0.693359375, x)
    r = n.call("fma", 2.12194440e-4, r)
    p = r.call("fma", 1.9875691500e-4, 1.3981999507e-3)
    for c in (8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1):
        p = p.call("fma", r, c)
    return (p.call("fma", r * r, r) + 1.0) * scale


class Ends(NamedTuple):
    """Where a row of one of these operations comes from, and where it goes.

    Attributes:
        first: gives elements in the first walk.
        again: gives them in later ones.
        write: takes results.
    """

    first: Callable[[At], Val]
    again: Callable[[At], Val]
    write: Callable[[At, Val], None]


def softmax_row(row: Row, log: bool, kind: DType, ends: Ends, room: Buf | None, start: Val) -> None:
    """Write softmax, or its logarithm, of a row; a row of -inf is NaN.

    Args:
        row: which one.
        log: the logarithm.
        kind: dtype that it is computed in.
        ends: where it comes from and goes.
        room: memory in which powers wait until their sum is known, None computes them twice.
        start: where the row begins there.
    """
    (top,) = row.fold(("top", kind), body=ends.first)
    quick = row.how.vectors and kind is d.float32

    def power(at: At) -> Val:
        below = ends.again(at) - at.of(top)
        made = raised_power(below) if quick else below.call("exp")
        if room is not None:
            at.store(room, start, made, kind)
        return made

    (total,) = row.fold(("add", kind), body=power)
    if log:
        shift = (total * 2.0**-RAISED if quick else total).call("log")
        row.each(lambda at: ends.write(at, ends.again(at) - at.of(top) - at.of(shift)))
        return
    factor = 1.0 / total

    def scaled(at: At) -> None:
        value = at.load(room, start, kind) if room is not None else power(at)
        ends.write(at, value * at.of(factor))

    row.each(scaled)


def softmax_kernel(log: bool, source: DType, out: DType, how: Layout) -> Kernel:
    """Write softmax, or its logarithm, of each row."""
    code = row_code("log_softmax" if log else "softmax", how)
    kind = wide(out)
    target, x = code.buffer("out", out), code.buffer("x", source)
    length, offset = code.place("length"), code.place("offset")
    row = Row(code, how, length)
    base, start = row.number * row.length + offset, row.number * row.length

    def read(at: At) -> Val:
        return at.load(x, base, kind)

    ends = Ends(read, read, lambda at, value: at.store(target, start, value, out))
    # What a pass stores it reads again itself, so the powers are not computed twice.
    room = target if not log and out is kind else None
    softmax_row(row, log, kind, ends, room, start)
    return code.finish()


def _softmax(engine: Engine, x: CubeTensor, dim: int, dtype: DType | None, log: bool) -> CubeTensor:
    target = dtype or x.dtype
    if not x.size or not x.shape:
        flat = converted(engine, x, target)
        if not x.size:
            return flat
        dim, x = 0, flat.view((1,), (1,))
        return _softmax(engine, x, 0, target, log).view((), ())
    if x.dtype is not target and x.dtype not in HALVES:
        x = converted(engine, x, target)
    last = len(x.shape) - 1
    turned = [k for k in range(len(x.shape)) if k != dim] + [dim]
    if dim != last:
        seen = x.view(tuple(x.shape[k] for k in turned), tuple(x.strides[k] for k in turned))
        x = copied(engine, seen)
    else:
        x = engine.row_major(x)
    out = engine.empty(x.shape, target)
    length = x.shape[-1]
    how = layout(engine, length, engine.index_dtype(x, out, count=x.size))
    args = [out.buf, x.buf, length, x.offset]
    spec = (log, x.dtype, target, how)
    run_rows(engine, softmax_kernel, spec, x.size // length, length * 3.0, args)
    if dim == last:
        return out
    back = sorted(range(len(turned)), key=turned.__getitem__)
    return out.view(tuple(x.shape[k] for k in back), tuple(out.strides[k] for k in back))


@kernel("softmax")
def softmax(engine: Engine, x: CubeTensor, dim: int, dtype: DType | None) -> CubeTensor:
    """exp(x - max) / sum along dim."""
    return _softmax(engine, x, dim, dtype, False)


@kernel("log_softmax")
def log_softmax(engine: Engine, x: CubeTensor, dim: int, dtype: DType | None) -> CubeTensor:
    """x - max - log(sum(exp(x - max))) along dim."""
    return _softmax(engine, x, dim, dtype, True)


def norm_row(
    row: Row, centred: bool, kind: DType, eps: Val, ends: Ends,
    scales: tuple[Callable[[At], Val] | None, Callable[[At], Val] | None],
) -> tuple[Val | None, Val]:  # fmt: skip
    """Write the normalisation of a row; its mean (if it is taken off) and 1 / sqrt(var + eps).

    The second walk of a row finds it in the cache, so that the variance is that of differences.

    Args:
        row: which one.
        centred: the mean is taken off.
        kind: dtype that it is computed in.
        eps: is added to the variance.
        ends: where it comes from and goes.
        scales: give weight and bias.
    """
    code, count = row.code, row.length.cast(kind)
    mean: Val | None = None
    small: Val | None = None
    if centred:

        def read(at: At) -> tuple[Val, Val]:
            value = ends.first(at)
            return value, value.call("abs")

        total, largest = row.fold(("add", kind), ("top", kind), body=read)
        mean = total / count
        # Differences of huge elements are made small, so that their squares do not overflow.
        small = (largest > _HUGE).pick(code.const(1 / _HUGE, kind), 1.0)

    def squared(at: At) -> Val:
        value = ends.first(at) if mean is None else ends.again(at) - at.of(mean)
        if small is not None:
            value = value * at.of(small)
        return value * value

    (power,) = row.fold(("add", kind), body=squared)
    if small is None:
        root = 1.0 / (power / count + eps).call("sqrt")
    else:
        root = small / (power / count + eps * small * small).call("sqrt")
    weight, bias = scales

    def written(at: At) -> None:
        value = ends.again(at)
        value = (value if mean is None else value - at.of(mean)) * at.of(root)
        if weight is not None:
            value = value * weight(at)
        if bias is not None:
            value = value + bias(at)
        ends.write(at, value)

    row.each(written)
    return mean, root


def norm_kernel(centred: bool, source: DType, weighted: bool, biased: bool, how: Layout) -> Kernel:
    """Write the normalisation of each row, its mean and 1 / sqrt(var + eps)."""
    code = row_code("layer_norm" if centred else "rms_norm", how)
    kind = wide(source)
    target, x = code.buffer("out", source), code.buffer("x", source)
    means = code.buffer("mean", kind) if centred else None
    roots = code.buffer("rstd", kind)
    weight = code.buffer("weight", source) if weighted else None
    bias = code.buffer("bias", source) if biased else None
    length, offset = code.place("length"), code.place("offset")
    weight0, bias0 = code.place("weight_offset"), code.place("bias_offset")
    eps = code.scalar("eps", kind)
    row = Row(code, how, length)
    start = row.number * row.length

    def line(buf: Buf, base: Val) -> Callable[[At], Val]:
        return lambda at: at.load(buf, base, kind)

    read = line(x, start + offset)
    ends = Ends(read, read, lambda at, value: at.store(target, start, value, source))
    scales = (
        None if weight is None else line(weight, weight0),
        None if bias is None else line(bias, bias0),
    )
    mean, root = norm_row(row, centred, kind, eps, ends, scales)
    if means is not None and mean is not None:
        row.store(means, mean, kind)
    row.store(roots, root, kind)
    return code.finish()


def _normalised(
    engine: Engine, x: CubeTensor, weight: CubeTensor | None, bias: CubeTensor | None, dims: int,
    eps: float, centred: bool,
) -> tuple[CubeTensor, CubeTensor, CubeTensor]:  # fmt: skip
    x = engine.row_major(x)
    kept: Ints = x.shape[: len(x.shape) - dims]
    length, rows = size_of(x.shape[len(kept) :]), size_of(kept)
    stats = (*kept, *(1 for _ in range(dims)))
    kind = wide(x.dtype)
    out = engine.empty(x.shape, x.dtype)
    mean, root = engine.empty(stats, kind), engine.empty(stats, kind)
    params = [None if p is None else engine.row_major(p) for p in (weight, bias)]
    if rows:
        w, b = params
        how = layout(engine, length, engine.index_dtype(x, count=x.size))
        spec = (centred, x.dtype, w is not None, b is not None, how)
        args = [
            out.buf, x.buf, *([mean.buf] if centred else []), root.buf,
            *[p.buf for p in params if p is not None], length, x.offset,
            *[0 if p is None else p.offset for p in params], eps,
        ]  # fmt: skip
        run_rows(engine, norm_kernel, spec, rows, length * 1.5, args)
    return out, mean, root


@kernel("layer_norm")
def layer_norm(
    engine: Engine, x: CubeTensor, weight: CubeTensor | None, bias: CubeTensor | None, dims: int,
    eps: float,
) -> tuple[CubeTensor, CubeTensor, CubeTensor]:  # fmt: skip
    """(x - mean) / sqrt(var + eps) over the last dims; (out, mean, rstd)."""
    return _normalised(engine, x, weight, bias, dims, eps, True)


@kernel("rms_norm")
def rms_norm(
    engine: Engine, x: CubeTensor, weight: CubeTensor | None, dims: int, eps: float
) -> tuple[CubeTensor, CubeTensor]:
    """X / sqrt(mean(x^2) + eps) * weight over the last dims; (out, rstd)."""
    out, _, root = _normalised(engine, x, weight, None, dims, eps, False)
    return out, root


@kernel("group_norm")
def group_norm(
    engine: Engine, x: CubeTensor, weight: CubeTensor | None, bias: CubeTensor | None,
    groups: int, eps: float,
) -> tuple[CubeTensor, CubeTensor, CubeTensor]:  # fmt: skip
    """x [N, C, *] normalised over groups of channels; (out, mean [N, G], rstd [N, G])."""
    n, channels = x.shape[:2]
    dtype, kind = x.dtype, wide(x.dtype)
    x = engine.row_major(converted(engine, x, kind))
    rows = (n, groups, size_of((channels // groups, *x.shape[2:])))
    out, mean, root = _normalised(engine, x.view(rows, dense(rows)), None, None, 1, eps, True)
    out = out.view(x.shape, dense(x.shape))
    text, given = "x", {"x": out}
    for sign, name, p in (("*", "weight", weight), ("+", "bias", bias)):
        if p is not None:
            shape = (channels, *(1 for _ in x.shape[2:]))
            p = p.view(shape, (p.strides[0], *(0 for _ in x.shape[2:])))
            given[name] = converted(engine, p, kind)
            text += f" {sign} {name}"
    if len(given) > 1:
        out = computed(engine, text, dtype, **given)
    stats = (n, groups)
    return (
        converted(engine, out, dtype),
        mean.view(stats, dense(stats)),
        root.view(stats, dense(stats)),
    )
