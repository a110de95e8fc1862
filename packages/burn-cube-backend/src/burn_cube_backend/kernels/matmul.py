"""Matrix products: a tiled kernel with shared memory, and a plain one for what is small.

Operands are read as they lie: transposed and broadcast views are not copied. 16-bit floats add in
float32, integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable

from burn_cube import Kernel
from burn_cube_backend.code import Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import (
    broadcast_shape,
    broadcast_strides,
    dense,
    reshaped,
    size_of,
)
from burn_cube_backend.kernels import blas, cublas, matmul_calls, matmul_cpu
from burn_cube_backend.kernels.maps import computed, converted, wide
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel, maker
from burn_std import DType, dtypes as d

# The tile of a cube, its depth, and the square of results of one unit.
TILE, DEPTH, EACH = 64, 16, 4
# Below these extents the plain kernel is used.
SMALL = 32


class _Frame:
    """The parameters that both kernels share: buffers, extents, batches, strides."""

    def __init__(self, code: Code, dtype: DType, rank: int) -> None:
        self.code = code
        self.out, self.x, self.y = (code.buffer(n, dtype) for n in ("out", "x", "y"))
        self.batches, self.m, self.n, self.k = (code.place(p) for p in ("batches", "m", "n", "k"))
        self.x0, self.y0 = code.place("x_offset"), code.place("y_offset")
        self.xm, self.xk, self.yk, self.yn = (code.place(p) for p in ("xm", "xk", "yk", "yn"))
        self.extents = code.places("extent", rank)
        self.xs, self.ys = code.places("x_stride", rank), code.places("y_stride", rank)

    def heads(self, batch: Val) -> tuple[Val, Val]:
        """Return where the two matrices of a batch begin."""
        coords = self.code.coords(batch, self.extents)
        return (
            self.code.walk(self.x0, coords, self.xs), self.code.walk(self.y0, coords, self.ys)
        )  # fmt: skip


def plain_kernel(dtype: DType, rank: int, index: DType) -> Kernel:
    """Write one result per unit."""
    code = Code("matmul_plain", index)
    f = _Frame(code, dtype, rank)
    acc = wide(dtype)
    area = f.m * f.n
    with code.each(f.batches * area) as i:
        batch = i // area
        row = (i - batch * area) // f.n
        column = i % f.n
        x, y = f.heads(batch)
        x, y = x + row * f.xm, y + column * f.yn
        total = code.local(acc)
        with code.loop(0, f.k) as k:
            a, b = f.x[x + k * f.xk].cast(acc), f.y[y + k * f.yk].cast(acc)
            total.set(total.get() + a * b)
        f.out[i] = total.get().cast(dtype)
    return code.finish()


def tiled_kernel(dtype: DType, rank: int, index: DType) -> Kernel:
    """Write a tile of results per cube: 256 units with a square of 4 by 4 each."""
    side = TILE // EACH
    code = Code("matmul_tiled", index, side * side)
    f = _Frame(code, dtype, rank)
    acc = wide(dtype)
    columns, rows = code.place("tile_columns"), code.place("tile_rows")
    xs, ys = code.shared(acc, TILE * DEPTH), code.shared(acc, TILE * DEPTH)
    cube, unit = code.special("cube_pos"), code.special("unit_pos")
    per = rows * columns
    batch = cube // per
    tile = cube - batch * per
    row0, column0 = (tile // columns) * TILE, (tile % columns) * TILE
    x0, y0 = f.heads(batch)
    ty, tx = unit // side, unit % side
    sums = [[code.local(acc) for _ in range(EACH)] for _ in range(EACH)]
    zero = code.const(0, acc)
    with code.loop(0, f.k, code.at(DEPTH)) as k0:
        for part in range(TILE * DEPTH // (side * side)):
            at = unit + part * side * side
            deep, line = at // TILE, at % TILE
            k, row, column = k0 + deep, row0 + line, column0 + line
            a, b = code.local(acc, zero), code.local(acc, zero)
            with code.when((k < f.k) & (row < f.m)):
                a.set(f.x[x0 + row * f.xm + k * f.xk].cast(acc))
            with code.when((k < f.k) & (column < f.n)):
                b.set(f.y[y0 + k * f.yk + column * f.yn].cast(acc))
            xs[at] = a.get()
            ys[at] = b.get()
        code.barrier()
        for depth in range(DEPTH):
            left = [xs[ty + (depth * TILE + r * side)] for r in range(EACH)]
            right = [ys[tx + (depth * TILE + c * side)] for c in range(EACH)]
            for r in range(EACH):
                for c in range(EACH):
                    sums[r][c].set(sums[r][c].get() + left[r] * right[c])
        code.barrier()
    for r in range(EACH):
        for c in range(EACH):
            row, column = row0 + ty + r * side, column0 + tx + c * side
            with code.when((row < f.m) & (column < f.n)):
                f.out[(batch * f.m + row) * f.n + column] = sums[r][c].get().cast(dtype)
    return code.finish()


@maker("matmul")
def _maker(engine: Engine, dtype: DType) -> Callable[[CubeTensor, CubeTensor], CubeTensor]:
    """Return the kernel: products that cuBLAS has seen before go to it at once."""
    library = cublas.provider(engine)
    if library is None:
        return lambda x, y: matmul(engine, engine.solid(x), engine.solid(y))
    plans, run = library.plans, library.run

    def product_(x: CubeTensor, y: CubeTensor) -> CubeTensor:
        plan = plans.get((x.dtype, x.shape, x.strides, y.shape, y.strides))
        if plan is None or x.buf is None or y.buf is None:
            return matmul(engine, engine.solid(x), engine.solid(y))
        return run(engine, plan, x, y)

    return product_


def matmul(engine: Engine, x: CubeTensor, y: CubeTensor) -> CubeTensor:
    """Matrix product; a vector is a row on the left and a column on the right."""
    flat_x, flat_y = len(x.shape) == 1, len(y.shape) == 1
    if flat_x:
        x = x.view((1, *x.shape), (0, *x.strides))
    if flat_y:
        y = y.view((*y.shape, 1), (*y.strides, 0))
    out = product(engine, x, y)
    shape, strides = list(out.shape), list(out.strides)
    if flat_y:
        del shape[-1], strides[-1]
    if flat_x:
        at = len(shape) - (1 if flat_y else 2)
        del shape[at], strides[at]
    return out.view(tuple(shape), tuple(strides))


@kernel("linear", runtime="cpu")
def linear(
    engine: Engine, x: CubeTensor, weight: CubeTensor, bias: CubeTensor | None
) -> CubeTensor:
    """X times the transposed weight, plus bias; all rows of x in one product where they can be.

    Elsewhere it runs by its parts, whose addition goes into a kernel with what follows.
    """
    dtype, lead, outs = x.dtype, x.shape[:-1], weight.shape[:-1]
    if not outs:
        weight = weight.view((1, *weight.shape), (0, *weight.strides))
    rows, depth = size_of(lead), x.shape[-1]
    steps = reshaped(x.shape, x.strides, (rows, depth))
    flat = engine.row_major(x) if steps is None else x.view((rows, depth), steps)
    if steps is None:
        flat = flat.view((rows, depth), (depth, 1))
    right = weight.view(weight.shape[::-1], weight.strides[::-1])
    fits = bias is not None and bias.shape == outs and len(outs) == 1
    made = blas.product(engine, flat, right, bias if fits else None)
    late = None if fits and made is not None else bias
    if made is None:
        kind = wide(dtype)
        made = product(engine, converted(engine, flat, kind), converted(engine, right, kind))
    shape = (*lead, *outs)
    made = made.view(shape, dense(shape))
    if late is not None:
        kind = made.dtype
        made = computed(engine, "x + y", kind, x=made, y=converted(engine, late, kind))
    return converted(engine, made, dtype)


def product(engine: Engine, x: CubeTensor, y: CubeTensor) -> CubeTensor:
    """Return the product of two tensors of matrices."""
    made = blas.product(engine, x, y)
    if made is None:
        made = cublas.product(engine, x, y)
    if made is None:
        made = matmul_calls.product(engine, x, y)
    if made is not None:
        return made
    batch = broadcast_shape([x.shape[:-2], y.shape[:-2]])
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    small = min(m, n) < SMALL or k < DEPTH or x.dtype is d.bool_
    made = None if small or not size_of(batch) else matmul_cpu.product(engine, x, y)
    if made is not None:
        return made
    out = engine.empty((*batch, m, n), x.dtype)
    batches = size_of(batch)
    if not out.size:
        return out
    x_steps = broadcast_strides(x.shape[:-2], x.strides[:-2], batch)
    y_steps = broadcast_strides(y.shape[:-2], y.strides[:-2], batch)
    rank = max(len(batch), 1)
    places = engine.index_dtype(x, y, out, count=out.size)
    args = [
        out.buf, x.buf, y.buf, batches, m, n, k, x.offset, y.offset, x.strides[-2], x.strides[-1],
        y.strides[-2], y.strides[-1], *(batch or (1,)), *(x_steps or (0,)), *(y_steps or (0,)),
    ]  # fmt: skip
    spec = (x.dtype, rank, places)
    if small:
        engine.run(plain_kernel, spec, out.size, args)
    else:
        columns, rows = -(-n // TILE), -(-m // TILE)
        engine.cubes(tiled_kernel, spec, batches * columns * rows, [*args, columns, rows])
    return out
