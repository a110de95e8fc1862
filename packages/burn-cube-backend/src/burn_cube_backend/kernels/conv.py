"""Convolution in 1 to 3 dims and its two gradients: which way each takes.

The processor has kernels of its own, chosen by geometry; CUDA has cuDNN where it is installed. The
way that all devices have is a matrix product of gathered windows: views of the padded input by
strides, laid out as columns by one copy.
"""

from __future__ import annotations

from burn_cube import Kernel
from burn_cube_backend.code import Code
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, dense, size_of
from burn_cube_backend.kernels import conv_blas, cudnn, direct, winograd, winograd_weight
from burn_cube_backend.kernels.create import filled
from burn_cube_backend.kernels.epilogue import Epilogue
from burn_cube_backend.kernels.maps import HALVES, combine, converted, copied, wide, write
from burn_cube_backend.kernels.matmul import product
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d


def out_lengths(lengths: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    """Return how many windows there are along each dim."""
    return tuple(
        (n + 2 * p - w * (k - 1) - 1) // s + 1
        for n, k, s, p, w in zip(lengths, kernel, stride, padding, dilation, strict=True)
    )


def padded(engine: Engine, x: CubeTensor, padding: Ints) -> CubeTensor:
    """Return x [N, C, *L] with zeros around its last dims; itself without padding."""
    if not any(padding):
        return x
    lengths = tuple(n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True))
    out = filled(engine, x.dtype, (*x.shape[:2], *lengths), 0)
    at = sum(p * s for p, s in zip(padding, out.strides[2:], strict=True))
    if x.size:
        write(engine, out.view(x.shape, out.strides, at), x)
    return out


def columns(
    engine: Engine, x: CubeTensor, kernel: Ints, out: Ints, stride: Ints, padding: Ints,
    dilation: Ints, groups: int,
) -> CubeTensor:  # fmt: skip
    """Return the windows of x [N, C, *L] as [N, groups, C / groups * prod(K), prod(out)]."""
    if is_pointwise(kernel, stride, padding):
        return in_groups(engine.row_major(x), groups)
    x = padded(engine, x, padding)
    n, channels = x.shape[0], x.shape[1] // groups
    batch, channel, *space = x.strides
    taps = tuple(s * w for s, w in zip(space, dilation, strict=True))
    steps = tuple(s * w for s, w in zip(space, stride, strict=True))
    shape = (n, groups, channels, *kernel, *out)
    view = x.view(shape, (batch, channel * channels, channel, *taps, *steps))
    rows, length = channels * size_of(kernel), size_of(out)
    made = copied(engine, view)
    final = (n, groups, rows, length)
    return made.view(final, dense(final))


def in_groups(x: CubeTensor, groups: int) -> CubeTensor:
    """Return dense [N, O, *out] as [N, groups, O / groups, prod(out)]."""
    shape = (x.shape[0], groups, x.shape[1] // groups, size_of(x.shape[2:]))
    return x.view(shape, dense(shape))


def is_pointwise(size: Ints, stride: Ints, padding: Ints) -> bool:
    """Return whether windows are the elements themselves, so that nothing need be laid out."""
    return size_of(size) == max(stride) == 1 and not any(padding)


def widens(engine: Engine, dtype: DType) -> bool:
    """Return whether halves are computed in float32 and rounded once, by its kernels."""
    return dtype in HALVES and engine.client.runtime.name == "cpu"


@kernel("conv")
def conv(
    engine: Engine, x: CubeTensor, weight: CubeTensor, bias: CubeTensor | None, stride: Ints,
    padding: Ints, dilation: Ints, groups: int,
) -> CubeTensor:  # fmt: skip
    """x [N, C, *L], weight [O, C / groups, *K] to [N, O, *out]."""
    dtype, size = x.dtype, weight.shape[2:]
    out = out_lengths(x.shape[2:], size, stride, padding, dilation)
    fast = cudnn.forward(engine, x, weight, bias, out, stride, padding, dilation)
    if fast is not None:
        return fast
    if widens(engine, dtype):
        wide_x, wide_w = converted(engine, x, d.float32), converted(engine, weight, d.float32)
        wide_b = None if bias is None else converted(engine, bias, d.float32)
        made = conv(engine, wide_x, wide_w, wide_b, stride, padding, dilation, groups)
        return converted(engine, made, dtype)
    if winograd.serves(engine, dtype, weight.shape, stride, dilation, groups):
        return winograd.forward(engine, x, weight, weight, bias, out, padding)
    if direct.serves(engine, dtype, weight.shape, stride):
        how = (out, stride, padding, dilation, groups)
        return direct.forward(engine, x, weight, bias, *how)
    library = conv_blas.serves(engine, dtype)
    if library is not None and not is_pointwise(size, stride, padding) and size_of(weight.shape):
        args = (out, stride, padding, dilation, groups)
        return conv_blas.forward(engine, library, x, weight, bias, *args)
    windows = columns(engine, x, size, out, stride, padding, dilation, groups)
    outs = weight.shape[0]
    w = engine.row_major(weight)
    shape = (groups, outs // groups, size_of(weight.shape[1:]))
    w = w.view(shape, dense(shape))
    full = (x.shape[0], outs, *out)
    if bias is None:
        made = product(engine, w, windows)
        return made.view(full, dense(full))
    # The sum and the bias round once together.
    calm = wide(dtype)
    if dtype in HALVES:
        w, windows = converted(engine, w, calm), converted(engine, windows, calm)
    made = product(engine, w, windows).view(full, dense(full))
    b = bias.view((outs, *(1 for _ in out)), (bias.strides[0], *(0 for _ in out)))
    return converted(engine, combine(engine, "add", made, converted(engine, b, calm)), dtype)


def conv_with(
    engine: Engine, x: CubeTensor, weight: CubeTensor, bias: CubeTensor | None, stride: Ints,
    padding: Ints, dilation: Ints, groups: int, epilogue: Epilogue,
) -> CubeTensor | None:  # fmt: skip
    """Return what an epilogue makes of a convolution; None where its kernel has no place for it."""
    dtype, shape = x.dtype, weight.shape
    out = out_lengths(x.shape[2:], shape[2:], stride, padding, dilation)
    if winograd.serves(engine, dtype, shape, stride, dilation, groups):
        # Its tiles come in short pieces of rows; a tensor that is read so takes longer than in a
        # pass of its own.
        if epilogue.by_place:
            return None
        return winograd.forward(engine, x, weight, weight, bias, out, padding, epilogue)
    if direct.serves(engine, dtype, shape, stride):
        how = (out, stride, padding, dilation, groups)
        return direct.forward(engine, x, weight, bias, *how, epilogue)
    return None


@kernel("conv_weight_grad")
def conv_weight_grad(
    engine: Engine, g: CubeTensor, x: CubeTensor, stride: Ints, padding: Ints, dilation: Ints,
    groups: int, shape: Ints,
) -> CubeTensor:  # fmt: skip
    """g [N, O, *out] and x [N, C, *L] to [O, C / groups, *K]; g says how many windows there are."""
    fast = cudnn.weight_grad(engine, g, x, stride, padding, dilation, shape)
    if fast is not None:
        return fast
    if widens(engine, x.dtype):
        wide_g, wide_x = converted(engine, g, d.float32), converted(engine, x, d.float32)
        how = (stride, padding, dilation, groups, shape)
        return converted(engine, conv_weight_grad(engine, wide_g, wide_x, *how), x.dtype)
    if not size_of(shape):
        return engine.empty(shape, x.dtype)
    if winograd.serves(engine, x.dtype, shape, stride, dilation, groups):
        return winograd_weight.weight_grad(engine, g, x, padding, shape)
    served = direct.serves(engine, x.dtype, shape, stride)
    if served and direct.serves_weight(shape, stride, g.shape[2:]):
        return direct.weight_grad(engine, g, x, stride, padding, dilation, groups, shape)
    library = conv_blas.serves(engine, x.dtype)
    if library is not None:
        args = (stride, padding, dilation, groups, shape)
        return conv_blas.weight_grad(engine, library, g, x, *args)
    out, outs = g.shape[2:], g.shape[1]
    windows = columns(engine, x, shape[2:], out, stride, padding, dilation, groups)
    rows, length, n = windows.shape[2], windows.shape[3], g.shape[0]
    # One product over samples and windows: [groups, O / groups, N * out] by [groups, N * out, CK].
    g = in_groups(engine.row_major(g), groups)
    left = _joined(engine, g, (1, 2, 0, 3), (groups, outs // groups, n * length))
    right = _joined(engine, windows, (1, 0, 3, 2), (groups, n * length, rows))
    return product(engine, left, right).view(shape, dense(shape))


def _joined(engine: Engine, x: CubeTensor, dims: Ints, shape: Ints) -> CubeTensor:
    seen = x.view(tuple(x.shape[k] for k in dims), tuple(x.strides[k] for k in dims))
    return copied(engine, seen).view(shape, dense(shape))


def spread_kernel(dtype: DType, source: DType, rank: int, index: DType) -> Kernel:
    """Write the sum of all columns that were gathered from an element.

    Parameters after the buffers: count, channels, taps, windows; extents of the input's last dims;
    then kernel, out, stride, padding and dilation for each of them.
    """
    code = Code("conv_spread", index)
    out, cols = code.buffer("out", dtype), code.buffer("columns", source)
    count, taps, windows = code.place("count"), code.place("taps"), code.place("windows")
    extents, sizes, outs, strides, pads, holes = (
        code.places(p, rank) for p in ("extent", "kernel", "out", "stride", "padding", "dilation")
    )
    zero = code.at(0)
    with code.each(count) as i:
        plane, *at = code.coords(i, [zero, *extents])
        total = code.local(source)
        with code.loop(0, taps) as tap:
            offsets = code.coords(tap, sizes)
            window = zero
            inside = tap >= 0
            for p, k, s, pad, w, o in zip(at, offsets, strides, pads, holes, outs, strict=True):
                moved = p + pad - k * w
                step = moved // s
                inside = inside & (moved >= 0) & (step * s).eq(moved) & (step < o)
                window = window * o + step
            with code.when(inside):
                total.set(total.get() + cols[(plane * taps + tap) * windows + window])
        out[i] = total.get().cast(dtype)
    return code.finish()


@kernel("conv_input_grad")
def conv_input_grad(
    engine: Engine, g: CubeTensor, weight: CubeTensor, stride: Ints, padding: Ints, dilation: Ints,
    groups: int, shape: Ints,
) -> CubeTensor:  # fmt: skip
    """g [N, O, *out], weight [O, C / groups, *K] to [N, C, *L]."""
    dtype, size, out = g.dtype, weight.shape[2:], g.shape[2:]
    fast = cudnn.input_grad(engine, g, weight, stride, padding, dilation, shape)
    if fast is not None:
        return fast
    if widens(engine, dtype):
        wide_g, wide_w = converted(engine, g, d.float32), converted(engine, weight, d.float32)
        made = conv_input_grad(engine, wide_g, wide_w, stride, padding, dilation, groups, shape)
        return converted(engine, made, dtype)
    around = [w * (k - 1) - p for w, k, p in zip(dilation, size, padding, strict=True)]
    turns = max(stride) == 1 and min(around) >= 0 and g.size > 0
    if turns and winograd.serves(engine, dtype, weight.shape, stride, dilation, groups):
        return winograd.input_grad(engine, g, weight, padding, shape)
    how = (padding, dilation, groups, shape)
    if direct.serves(engine, dtype, weight.shape, stride):
        return direct.input_grad(engine, g, weight, stride, *how)
    library = conv_blas.serves(engine, dtype)
    pointwise = is_pointwise(size, stride, padding)
    if turns and library is not None and not pointwise and size_of(weight.shape):
        return conv_blas.input_grad(engine, library, g, weight, *how)
    made = engine.empty(shape, dtype)
    if not made.size:
        return made
    outs, rows = weight.shape[0] // groups, size_of(weight.shape[1:])
    w = engine.row_major(weight).view((groups, rows, outs), (outs * rows, 1, rows))
    g = in_groups(engine.row_major(g), groups)
    calm = wide(dtype)
    cols = product(engine, converted(engine, w, calm), converted(engine, g, calm))
    if pointwise:
        return converted(engine, cols.view(shape, dense(shape)), dtype)
    index = engine.index_dtype(made, cols, count=made.size)
    args = [
        made.buf, cols.buf, made.size, size_of(size), size_of(out), *shape[2:], *size, *out,
        *stride, *padding, *dilation,
    ]  # fmt: skip
    engine.run(spread_kernel, (dtype, calm, len(size), index), made.size, args)
    return made
