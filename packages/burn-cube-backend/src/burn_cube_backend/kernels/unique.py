"""Distinct values: sorted, told apart from their neighbours, numbered by a running count."""

from __future__ import annotations

from burn_cube import Kernel
from burn_cube_backend.code import Code
from burn_cube_backend.engine import Engine
from burn_cube_backend.kernels.index import taken
from burn_cube_backend.kernels.scan import scanned
from burn_cube_backend.kernels.sort import order
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d


def edge_kernel(dtype: DType, index: DType) -> Kernel:
    """Write 1 where an element of a sorted line differs from the one before; NaN equals nothing."""
    code = Code("unique_edges", index)
    out, x, count = code.buffer("out", d.int64), code.buffer("x", dtype), code.place("count")
    with code.each(count) as i:
        flag = code.local(d.int64, 1)
        with code.when(i > 0):
            flag.set(x[i].ne(x[i - 1]).cast(d.int64))
        out[i] = flag.get()
    return code.finish()


def number_kernel(dtype: DType, index: DType) -> Kernel:
    """Write the distinct values, where each begins, and the number of each element's value."""
    code = Code("unique_numbers", index)
    values, starts = code.buffer("values", dtype), code.buffer("starts", d.int64)
    inverse = code.buffer("inverse", d.int64)
    x, running = code.buffer("x", dtype), code.buffer("running", d.int64)
    places, count = code.buffer("places", d.int64), code.place("count")
    with code.each(count) as i:
        number = running[i] - 1
        inverse[places[i].cast(index)] = number
        before = code.local(d.int64, -1)
        with code.when(i > 0):
            before.set(running[i - 1] - 1)
        with code.when(before.get().ne(number)):
            at = number.cast(index)
            values[at] = x[i]
            starts[at] = i.cast(d.int64)
    return code.finish()


def length_kernel(index: DType) -> Kernel:
    """Write the distances of neighbouring starts, the last to the end."""
    code = Code("unique_counts", index)
    out, starts = code.buffer("out", d.int64), code.buffer("starts", d.int64)
    count, total = code.place("count"), code.place("total")
    with code.each(count) as i:
        end = code.local(d.int64, total.cast(d.int64))
        with code.when(i + 1 < count):
            end.set(starts[i + 1])
        out[i] = end.get() - starts[i]
    return code.finish()


@kernel("unique", checked=True)
def unique(
    engine: Engine, x: CubeTensor, return_inverse: bool, return_counts: bool
) -> list[CubeTensor]:
    """Sorted distinct values, then inverse and counts where asked; waits for their number."""
    size = x.size
    flat = engine.row_major(x).view((size,), (1,))
    if not size:
        out = [engine.empty((0,), x.dtype)]
        out += [engine.empty(x.shape, d.int64)] if return_inverse else []
        return out + ([engine.empty((0,), d.int64)] if return_counts else [])
    places = engine.row_major(order(engine, flat, 0, False))
    line = taken(engine, "unique", flat, places, 0)
    index = engine.index_dtype(x, line, count=size)
    edges = engine.empty((size,), d.int64)
    engine.run(edge_kernel, (x.dtype, index), size, [edges.buf, line.buf, size])
    running = engine.row_major(scanned(engine, "sum", edges, 0, d.int64, d.int64))
    n = int(engine.to_numpy(running.view((), (), running.offset + size - 1)))
    values, starts = engine.empty((n,), x.dtype), engine.empty((n,), d.int64)
    inverse = engine.empty(x.shape, d.int64)
    args = [values.buf, starts.buf, inverse.buf, line.buf, running.buf, places.buf, size]
    engine.run(number_kernel, (x.dtype, index), size, args)
    out = [values]
    if return_inverse:
        out.append(inverse)
    if return_counts:
        counts = engine.empty((n,), d.int64)
        engine.run(length_kernel, (index,), n, [counts.buf, starts.buf, n, size])
        out.append(counts)
    return out
