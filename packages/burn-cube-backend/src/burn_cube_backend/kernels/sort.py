"""Stable sorting along a dim by merging runs of doubling length.

Each unit finds the place of one element: its own place in its run, plus how many elements of the
partner run come before it, by bisection. Left runs come before equal elements of right ones, so the
order is stable. Keys are unsigned integers in the order of the values, NaN largest.
"""

from __future__ import annotations

from collections.abc import Sequence

from burn_cube import Kernel
from burn_cube_backend.code import Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import size_of
from burn_cube_backend.kernels.index import taken
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.table import kernel
from burn_std import DType, dtypes as d


def key_dtype(dtype: DType) -> DType:
    """Return the unsigned dtype that holds the order of a dtype."""
    return d.uint64 if dtype.bits == 64 else d.uint32


def ordered(x: Val) -> Val:
    """Return an unsigned value in the order of x: NaN is the largest, -0 equals 0."""
    dtype = x.dtype
    key = key_dtype(dtype)
    if dtype.is_float:
        x = x.cast(d.float64 if dtype.bits == 64 else d.float32)
        nan = x.call("isnan")
        bits = (x + 0.0).bits(key)
        top = 1 << (key.bits - 1)
        negative = (bits & top).ne(0)
        flipped = negative.pick(~bits, bits | top)
        return nan.pick((1 << key.bits) - 1, flipped)
    if dtype.is_signed:
        signed = d.int64 if key is d.uint64 else d.int32
        return x.cast(signed).bits(key) ^ (1 << (key.bits - 1))
    return x.cast(key)


def key_kernel(dtype: DType, descending: bool, rank: int, index: DType) -> Kernel:
    """Write keys and places of the elements of lines, the sorted dim last."""
    code = Code("sort_keys", index)
    key = key_dtype(dtype)
    keys, places = code.buffer("keys", key), code.buffer("places", d.int64)
    x, count, length = code.buffer("x", dtype), code.place("count"), code.place("length")
    offset = code.place("offset")
    extents, strides = code.places("extent", rank), code.places("stride", rank)
    with code.each(count) as i:
        value = ordered(x[code.walk(offset, code.coords(i, extents), strides)])
        keys[i] = ~value if descending else value
        places[i] = (i % length).cast(d.int64)
    return code.finish()


def merge_kernel(key: DType, index: DType) -> Kernel:
    """Write one pass: pairs of runs of `run` elements become runs of twice the length."""
    code = Code("sort_merge", index)
    keys, places = code.buffer("keys", key), code.buffer("places", d.int64)
    new_keys, new_places = code.buffer("new_keys", key), code.buffer("new_places", d.int64)
    count, length, run = code.place("count"), code.place("length"), code.place("run")
    with code.each(count) as i:
        line = i // length
        base = line * length
        at = i - base
        number = at // run
        right = (number & 1).eq(1)
        partner = right.pick(number - 1, number + 1) * run
        start = partner.call("min", length)
        stop = (partner + run).call("min", length)
        own = keys[i]
        low, high = code.local(code.index, start), code.local(code.index, stop)
        with code.b.while_() as loop:
            with code.b.inside(loop.regions[0]):
                code.b.until_false((low.get() < high.get()).op)
            with code.b.inside(loop.regions[1]):
                middle = low.get() + ((high.get() - low.get()) >> 1)
                other = keys[base + middle]
                # A right element stands behind equal left ones, a left one before equal right ones.
                before = (other < own) | (right & other.eq(own))
                low.set(before.pick(middle + 1, low.get()))
                high.set(before.pick(high.get(), middle))
        left = right.pick(number - 1, number) * run
        place = base + left + (at - number * run) + (low.get() - start)
        new_keys[place] = own
        new_places[place] = places[i]
    return code.finish()


def order(engine: Engine, x: CubeTensor, dim: int, descending: bool) -> CubeTensor:
    """Return the stable order along a dim, int64, in the shape of x."""
    rest = [k for k in range(len(x.shape)) if k != dim]
    extents = [*(x.shape[k] for k in rest), x.shape[dim]]
    strides = [*(x.strides[k] for k in rest), x.strides[dim]]
    key = key_dtype(x.dtype)
    length, count = x.shape[dim], size_of(x.shape)
    shape = tuple(extents)
    keys, places = engine.empty(shape, key), engine.empty(shape, d.int64)
    if count:
        index = engine.index_dtype(x, count=2 * count)
        tail = [x.buf, count, length, x.offset, *extents, *strides]
        spec = (x.dtype, descending, len(extents), index)
        engine.run(key_kernel, spec, count, [keys.buf, places.buf, *tail])
        new_keys, new_places = engine.empty(shape, key), engine.empty(shape, d.int64)
        run = 1
        while run < length:
            args = [keys.buf, places.buf, new_keys.buf, new_places.buf, count, length, run]
            engine.run(merge_kernel, (key, index), count, args)
            keys, new_keys, places, new_places = new_keys, keys, new_places, places
            run *= 2
    back = sorted(range(len(x.shape)), key=[*rest, dim].__getitem__)
    return places.view(x.shape, tuple(places.strides[k] for k in back))


@kernel("sort")
def sort(engine: Engine, x: CubeTensor, dim: int, descending: bool) -> Sequence[CubeTensor]:
    """(values, indices), stable; descending keeps the lowest index first among equals."""
    if not x.shape:
        from burn_cube_backend.kernels.create import filled

        return x, filled(engine, d.int64, (), 0)
    places = order(engine, x, dim, descending)
    return taken(engine, "sort", x, places, dim), places
