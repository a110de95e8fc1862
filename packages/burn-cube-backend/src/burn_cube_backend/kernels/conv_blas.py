"""Convolution on the cpu: bands of windows are gathered and multiplied by BLAS while in the cache.

One native call computes a whole convolution: every thread takes bands of output rows, lays their
windows out as columns in its own piece of memory, and hands them to the library. The weight
gradient adds the bands of each thread up in a copy of its own, summed at the end in a fixed order;
the input gradient of stride 1 is a convolution with the turned weight.
"""

from __future__ import annotations

from typing import NamedTuple

from burn_cube import Kernel
from burn_cube.spi import NativeCall
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, dense, size_of
from burn_cube_backend.kernels.blas import Blas, provider
from burn_cube_backend.kernels.blas_native import CONV_WORDS
from burn_cube_backend.kernels.create import filled
from burn_cube_backend.kernels.maps import combine, copied, write
from burn_cube_backend.payload import CubeTensor
from burn_std import DType, dtypes as d

# Columns of a band, in bytes: what stays in the second cache of a core.
BAND = 1024 << 10
LANES = 16


def gather_kernel(dtype: DType, rank: int, dense: bool) -> Kernel:
    """Write the columns of a band: unit number = (slot * jobs + job) * depth + channel and tap.

    A unit writes the elements that its tap sees in the rows of the band, one output row after the
    other; the output rows of leading dims count as one. `dense` says that windows stand side by
    side in the last dim, so that rows are copied in vectors.
    """
    code = Code("conv_gather", d.int64, 1)
    out, x = code.buffer("out", dtype), code.buffer("x", dtype)
    jobs, depth, slot, rows = (code.place(p) for p in ("jobs", "depth", "slot", "rows"))
    bands, channels, total = code.place("bands"), code.place("channels"), code.place("total_rows")
    plane, offset = code.place("plane"), code.place("offset")
    extents, sizes, outs, strides, pads, holes = (
        code.places(p, rank) for p in ("extent", "kernel", "out", "stride", "padding", "dilation")
    )
    unit = code.special("cube_pos")
    number = unit // depth
    taps = code.coords(unit - number * depth, [channels, *sizes])
    place = number // jobs
    job = number - place * jobs
    image = job // bands
    first = (job - image * bands) * rows
    have = (total - first).call("min", rows)
    width, step = outs[-1], strides[-1]
    # Columns whose element lies inside are low <= k < high.
    head = taps[-1] * holes[-1] - pads[-1]
    low = ((step - 1 - head).call("max", 0) // step).call("min", width)
    high = ((extents[-1] - head + step - 1).call("max", 0) // step).call("min", width)
    high = high.call("max", low)
    source = offset + (image * channels + taps[0]) * plane + head
    target = place * slot + (unit - number * depth) * have * width
    zero, none = code.const(0, dtype), code.at(0)
    with code.loop(none, have) as row:
        at = code.coords(first + row, [total, *outs[:-1]])[1:]
        if rank == 2:
            at = [first + row]
        inside, base = row >= 0, none
        for axis in range(rank - 1):
            c = at[axis] * strides[axis] + taps[1 + axis] * holes[axis] - pads[axis]
            inside = inside & (c >= 0) & (c < extents[axis])
            base = base * extents[axis] + c
        begin, end = inside.pick(low, width), inside.pick(high, width)
        into, from_ = target + row * width, source + base * extents[-1]
        with code.loop(none, begin) as k:
            out[into + k] = zero
        if dense:
            _copied(code, out, x, into + begin, from_ + begin, end - begin)
        else:
            with code.loop(begin, end) as k:
                out[into + k] = x[from_ + k * step]
        with code.loop(end, width) as k:
            out[into + k] = zero
    return code.finish()


def _copied(code: Code, out: Buf, x: Buf, into: Val, from_: Val, count: Val) -> None:
    """Copy elements in vectors; the last one overlaps the one before."""

    def vector(k: Val) -> None:
        value = code.b.load(x.op, (from_ + k).op, LANES)
        code.b.store(out.op, (into + k).op, value)

    whole = count // LANES * LANES
    with code.loop(code.at(0), whole, code.at(LANES)) as k:
        vector(k)
    with code.when(whole < count):
        with code.when(whole > 0) as branch:
            vector(count - LANES)
        with code.otherwise(branch), code.loop(whole, count) as k:
            out[into + k] = x[from_ + k]


class Shape(NamedTuple):
    """What a convolution is: extents of the input, windows and outputs."""

    x: CubeTensor
    kernel: Ints
    out: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    groups: int

    @property
    def depth(self) -> int:
        """Elements of a window of one group."""
        return self.x.shape[1] // self.groups * size_of(self.kernel)


def serves(engine: Engine, dtype: DType) -> Blas | None:
    """Return the library where it computes convolutions of a dtype."""
    return provider(engine) if dtype in (d.float32, d.float64) else None


def _run(
    engine: Engine, blas: Blas, s: Shape, m: int, matrix: CubeTensor, images: CubeTensor,
    copies: bool, beta: float,
) -> None:  # fmt: skip
    """Run a convolution: matrix [groups, m, depth] against images [N, groups, m, windows].

    With `copies` the matrix is the result: one copy per task, the images its other operand.
    """
    x, dtype = s.x, s.x.dtype
    item, width = dtype.itemsize, s.out[-1]
    length, total = size_of(s.out), size_of(s.out[:-1])
    rows = max(1, min(total, BAND // max(1, s.depth * width * item)))
    bands = -(-total // rows)
    jobs = x.shape[0] * s.groups * bands
    tasks = matrix.shape[0] if copies else max(1, min(jobs, blas.runtime.threads))
    slot = s.depth * rows * width
    columns = engine.flat(tasks * slot, dtype)
    program = engine.loaded(gather_kernel, (dtype, len(s.kernel), s.stride[-1] == 1))
    channels = x.shape[1] // s.groups
    args = [
        columns, x.buf, jobs, s.depth, slot, rows, bands, channels, total, size_of(x.shape[2:]),
        x.offset, *x.shape[2:], *s.kernel, *s.out, *s.stride, *s.padding, *s.dilation,
    ]  # fmt: skip
    packed = program.packed(tasks * jobs * s.depth, args)  # type: ignore[attr-defined]
    assert matrix.buf is not None and images.buf is not None  # noqa: S101 - both are dense copies
    size = s.groups * m * s.depth * item
    words = CONV_WORDS.pack(
        blas.products[dtype], program.address, 0, s.depth, jobs, tasks,  # type: ignore[attr-defined]
        columns.pointer, slot * item, bands, s.groups, m, s.depth, length, rows * width,
        matrix.buf.pointer + matrix.offset * item, m * s.depth * item,
        images.buf.pointer + images.offset * item, m * length * item, size, int(copies), beta,
    )  # fmt: skip
    # The word with number 2 becomes the address of the gathering kernel's own.
    call = NativeCall(blas.convolutions[dtype], words, tasks, 1, inner=packed, inner_at=2)
    blas.submit(call, None, "convolution (BLAS)")


def forward(
    engine: Engine, blas: Blas, x: CubeTensor, weight: CubeTensor, bias: CubeTensor | None,
    out: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int,
) -> CubeTensor:  # fmt: skip
    """Return x [N, C, *L] with weight [O, C / groups, *K] as [N, O, *out]."""
    x, weight = engine.row_major(x), engine.row_major(weight)
    outs = weight.shape[0]
    made = engine.empty((x.shape[0], outs, *out), x.dtype)
    if made.size:
        if bias is not None:  # the products are added to it
            ones = (1,) * len(out)
            write(engine, made, bias.view((outs, *ones), (bias.strides[0], *(0 for _ in out))))
        s = Shape(x, weight.shape[2:], out, stride, padding, dilation, groups)
        _run(engine, blas, s, outs // groups, weight, made, False, 0.0 if bias is None else 1.0)
    return made


def weight_grad(
    engine: Engine, blas: Blas, g: CubeTensor, x: CubeTensor, stride: Ints, padding: Ints,
    dilation: Ints, groups: int, shape: Ints,
) -> CubeTensor:  # fmt: skip
    """Return the gradient of a weight of `shape`."""
    g, x = engine.row_major(g), engine.row_major(x)
    if not g.size or not x.size or not size_of(shape):
        return filled(engine, x.dtype, shape, 0)
    tasks = max(1, min(x.shape[0] * groups, blas.runtime.threads))
    # Groups of one task may never come to another: all copies begin as zeros.
    copies = filled(engine, x.dtype, (tasks, *shape), 0)
    s = Shape(x, shape[2:], g.shape[2:], stride, padding, dilation, groups)
    _run(engine, blas, s, shape[0] // groups, copies, g, True, 1.0)
    size = size_of(shape)
    parts = [copies.view(shape, dense(shape), k * size) for k in range(tasks)]
    total = parts[0]
    for part in parts[1:]:
        total = combine(engine, "add", total, part)
    return total


def input_grad(
    engine: Engine, blas: Blas, g: CubeTensor, weight: CubeTensor, padding: Ints, dilation: Ints,
    groups: int, shape: Ints,
) -> CubeTensor:  # fmt: skip
    """Return the gradient of the input for steps of one, where no padding exceeds the window."""
    size = weight.shape[2:]
    around = tuple(w * (k - 1) - p for w, k, p in zip(dilation, size, padding, strict=True))
    outs, channels = weight.shape[0] // groups, weight.shape[1]
    # [O, C / groups, *K] as [C, O / groups, *K], every K turned round.
    strides = weight.strides
    rank = len(size)
    seen = weight.view(
        (groups, channels, outs, *size),
        (strides[0] * outs, strides[1], strides[0], *(-s for s in strides[2:])),
        weight.offset + sum((k - 1) * s for k, s in zip(size, strides[2:], strict=True)),
    )
    turned_shape = (groups * channels, outs, *size)
    turned = copied(engine, seen).view(turned_shape, dense(turned_shape))
    return forward(
        engine, blas, g, turned, None, shape[2:], (1,) * rank, around, dilation, groups
    )  # fmt: skip
