"""Views: other windows on the same memory; a copy only where no strides give the elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, broadcast_strides, reshaped
from burn_cube_backend.kernels.create import filled
from burn_cube_backend.kernels.maps import copied, write
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_ir.rules.shape import slice_extents

# Elements from which on what a window replaces is not copied first.
_LARGE = 1 << 14


@kernel("reshape")
def reshape(engine: Engine, x: CubeTensor, shape: Ints) -> CubeTensor:
    """Same elements in row-major order."""
    strides = reshaped(x.shape, x.strides, shape)
    if strides is not None:
        return x.view(shape, strides)
    x = copied(engine, x)
    strides = reshaped(x.shape, x.strides, shape)
    return x.view(shape, strides or ())


@kernel("permute")
def permute(engine: Engine, x: CubeTensor, dims: Ints) -> CubeTensor:
    """Dims in another order."""
    return x.view(tuple(x.shape[k] for k in dims), tuple(x.strides[k] for k in dims))


@kernel("expand")
def expand(engine: Engine, x: CubeTensor, shape: Ints) -> CubeTensor:
    """Dims of size 1 repeated with stride 0."""
    return x.view(shape, broadcast_strides(x.shape, x.strides, shape))


@kernel("squeeze")
def squeeze(engine: Engine, x: CubeTensor, dims: Ints) -> CubeTensor:
    """Named dims of size 1 removed."""
    keep = [k for k in range(len(x.shape)) if k not in dims]
    return x.view(tuple(x.shape[k] for k in keep), tuple(x.strides[k] for k in keep))


@kernel("unsqueeze")
def unsqueeze(engine: Engine, x: CubeTensor, dims: Ints) -> CubeTensor:
    """Dims of size 1 inserted."""
    shape, strides = list(x.shape), list(x.strides)
    for k in dims:
        shape.insert(k, 1)
        strides.insert(k, 0)
    return x.view(tuple(shape), tuple(strides))


def window(x: CubeTensor, steps: Ints, starts: Ints, stops: Ints) -> CubeTensor:
    """Return a strided window of a tensor."""
    shape = slice_extents("slice", x.shape, steps, starts, stops)
    offset, strides = x.offset, []
    for s, start, step, n in zip(x.strides, starts, steps, shape, strict=True):
        if n:
            offset += start * s
        strides.append(s * step)
    return x.view(tuple(shape), tuple(strides), offset)


@kernel("slice")
def slice_(engine: Engine, x: CubeTensor, steps: Ints, starts: Ints, stops: Ints) -> CubeTensor:
    """A strided window."""
    return window(x, steps, starts, stops)


@kernel("select")
def select(engine: Engine, x: CubeTensor, dim: int, index: int) -> CubeTensor:
    """One slice along a dim, which goes."""
    rest = [k for k in range(len(x.shape)) if k != dim]
    at = x.offset + index * x.strides[dim]
    return x.view(tuple(x.shape[k] for k in rest), tuple(x.strides[k] for k in rest), at)


@kernel("flip")
def flip(engine: Engine, x: CubeTensor, dims: Ints) -> CubeTensor:
    """Reversed along dims."""
    strides, offset = list(x.strides), x.offset
    for k in dims if x.shape else ():
        if x.shape[k]:
            offset += (x.shape[k] - 1) * strides[k]
            strides[k] = -strides[k]
    return x.view(x.shape, tuple(strides), offset)


@kernel("diagonal")
def diagonal(engine: Engine, x: CubeTensor, dim1: int, dim2: int, offset: int) -> CubeTensor:
    """A diagonal as the last dim."""
    rows, columns = x.shape[dim1], x.shape[dim2]
    length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    s1, s2 = x.strides[dim1], x.strides[dim2]
    at = x.offset + ((offset * s2 if offset >= 0 else -offset * s1) if length else 0)
    rest = [k for k in range(len(x.shape)) if k not in (dim1, dim2)]
    shape = (*(x.shape[k] for k in rest), length)
    return x.view(shape, (*(x.strides[k] for k in rest), s1 + s2), at)


@kernel("unfold_dim")
def unfold_dim(engine: Engine, x: CubeTensor, dim: int, size: int, step: int) -> CubeTensor:
    """Windows along a dim; the window is the new last dim."""
    if not x.shape:
        return x.view((min(size, 1),), (1,))
    count = (x.shape[dim] - size) // step + 1
    stride = x.strides[dim]
    shape = (*x.shape[:dim], count, *x.shape[dim + 1 :], size)
    strides = (*x.strides[:dim], stride * step, *x.strides[dim + 1 :], stride)
    return x.view(shape, strides)


# ---- writes into windows, joins ----------------------------------------------------------------


@kernel("slice_assign")
def slice_assign(
    engine: Engine, x: CubeTensor, value: CubeTensor, steps: Ints, starts: Ints, stops: Ints
) -> CubeTensor:
    """x with a strided window replaced by value."""
    out = engine.empty(x.shape, x.dtype)
    place = window(out, steps, starts, stops)
    if any(s != 1 for s in steps) or 2 * place.size < out.size or out.size < _LARGE:
        write(engine, out, x)
    else:
        for low, high in _around(x.shape, starts, stops):
            write(engine, window(out, steps, low, high), window(x, steps, low, high))
    write(engine, place, value)
    return out


def _around(shape: Ints, starts: Ints, stops: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Return starts and stops of windows that cover a shape but for a window of it."""
    low, high = [0] * len(shape), list(shape)
    for k, n in enumerate(shape):
        for a, b in ((0, starts[k]), (stops[k], n)):
            if a < b:
                yield (*low[:k], a, *low[k + 1 :]), (*high[:k], b, *high[k + 1 :])
        low[k], high[k] = starts[k], stops[k]


@kernel("slice_backward")
def slice_backward(
    engine: Engine, g: CubeTensor, steps: Ints, starts: Ints, stops: Ints, shape: Ints
) -> CubeTensor:
    """Zeros with g in a strided window."""
    out = filled(engine, g.dtype, shape, 0)
    write(engine, window(out, steps, starts, stops), g)
    return out


@kernel("cat")
def cat(engine: Engine, xs: Sequence[CubeTensor], dim: int) -> CubeTensor:
    """Tensors joined along a dim."""
    shape = list(xs[0].shape)
    shape[dim] = sum(x.shape[dim] for x in xs)
    out = engine.empty(tuple(shape), xs[0].dtype)
    at = out.offset
    for x in xs:
        if x.size:
            write(engine, out.view(x.shape, out.strides, at), x)
        at += x.shape[dim] * out.strides[dim]
    return out
