"""How values are combined at indices: one unit per line, or one per run of equal places.

On a processor a unit walks all positions that fall into its line. On a GPU positions of long lines
are chained by the place that they write to (`chains`), or, if they are many, sorted by it, stably;
then each chain or run of equal places has a unit of its own. All add in the order of the positions,
so results are the same in every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from burn_cube import Kernel
from burn_cube_backend.code import UNITS, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, size_of
from burn_cube_backend.kernels import chains
from burn_cube_backend.kernels.sort import arranged
from burn_cube_backend.kernels.watch import Watch
from burn_cube_backend.kernels.writers_rows import combine, put_panels
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.tiles import PLANE
from burn_std import DType, dtypes as d

# Positions of a line from which sorting them pays on a GPU.
SORTED_FROM = 1024


class Target(NamedTuple):
    """One integer array: its elements, and the dim of the result that they name.

    Attributes:
        array: the integers.
        site: number by which faults are noted.
        size: extent of the dim.
        hop: stride of the dim in the result.
    """

    array: CubeTensor
    site: int
    size: int
    hop: int


class Walk(NamedTuple):
    """Extents, and the strides of result, source and each index along them."""

    extents: Ints
    out: Ints
    source: Ints
    indices: list[Ints]

    @property
    def size(self) -> int:
        """Number of steps."""
        return size_of(self.extents)


def put(
    engine: Engine, out: CubeTensor, source: CubeTensor, targets: Sequence[Target], lines: Walk,
    inner: Walk, mode: str, negative: bool,
) -> None:  # fmt: skip
    """Combine a source into a dense result: `inner` positions of each of the `lines`.

    Lines never meet in an element. Where an index varies along them, they may be walked as
    positions too.
    """
    long = inner.size >= SORTED_FROM
    if long and engine.client.properties.kind == "gpu":
        if any(any(s) for s in lines.indices):
            inner = Walk(
                lines.extents + inner.extents, lines.out + inner.out, lines.source + inner.source,
                [a + b for a, b in zip(lines.indices, inner.indices, strict=True)],
            )  # fmt: skip
            lines = Walk((1,), (0,), (0,), [(0,) for _ in targets])
        put_sorted(engine, out, source, targets, lines, inner, mode, negative)
        return
    count, length = lines.size, inner.size
    tensors = [t.array for t in targets]
    if engine.client.name == "cpu" and targets:
        put_panels(engine, (out, source, tensors), targets, lines, inner, mode, negative)
        return
    places = engine.index_dtype(out, source, *tensors, count=max(out.size, length))
    args = [
        out.buf, source.buf, *[t.buf for t in tensors], engine.record(), count, length,
        *[t.site for t in targets], *[t.size for t in targets], *[t.hop for t in targets],
        *[t.offset for t in tensors], source.offset, *lines.extents, *lines.out, *lines.source,
        *[s for i in lines.indices for s in i], *inner.extents, *inner.out, *inner.source,
        *[s for i in inner.indices for s in i],
    ]  # fmt: skip
    kinds = tuple(t.dtype for t in tensors)
    ranks = (len(lines.extents), len(inner.extents))
    spec = (mode, out.dtype, source.dtype, kinds, negative, *ranks, places)
    engine.run(put_kernel, spec, count, args)


def put_kernel(
    mode: str, dtype: DType, source: DType, kinds: tuple[DType, ...], negative: bool, lines: int,
    rank: int, index: DType,
) -> Kernel:  # fmt: skip
    """Write the combination of a source with x at indices.

    Each unit owns one line: what no other unit writes. It walks the positions of the source that
    fall into its line in order. Parameters after the buffers: count of lines, length of a line;
    per index its site, size, stride of out, offset; offset of the source; extents of lines, strides
    of out, source and each index along them; the same for the positions.
    """
    code = Code(f"put_{mode}", index)
    out, src = code.buffer("out", dtype), code.buffer("source", source)
    buffers = [code.buffer(f"index{k}", kind) for k, kind in enumerate(kinds)]
    watch = Watch(code)
    n = len(kinds)
    count, length = code.place("count"), code.place("length")
    sites = [code.scalar(f"site{k}", d.int32) for k in range(n)]
    sizes, hops = code.places("size", n), code.places("hop", n)
    starts = code.places("start", n)
    offset = code.place("offset")
    outer = code.places("line", lines)
    out_outer, src_outer = code.places("out_line", lines), code.places("src_line", lines)
    index_outer = [code.places(f"index_line{k}_", lines) for k in range(n)]
    inner = code.places("position", rank)
    out_inner, src_inner = code.places("out_step", rank), code.places("src_step", rank)
    index_inner = [code.places(f"index_step{k}_", rank) for k in range(n)]
    with code.each(count) as i:
        line = code.coords(i, outer)
        base = code.walk(code.at(0), line, out_outer)
        from_ = code.walk(offset, line, src_outer)
        heads = [code.walk(starts[k], line, index_outer[k]) for k in range(n)]
        with code.loop(0, length) as p:
            coords = code.coords(p, inner)
            at = code.walk(base, coords, out_inner)
            good: Val | None = None
            for k, buffer in enumerate(buffers):
                raw = buffer[code.walk(heads[k], coords, index_inner[k])]
                place, fine = watch.inside(raw, sizes[k], sites[k], negative)
                at = at + place * hops[k]
                good = fine if good is None else good & fine
            value = src[code.walk(from_, coords, src_inner)].cast(dtype)
            if good is None:
                combine(out, at, value, mode)
            else:
                with code.when(good):
                    combine(out, at, value, mode)
    return code.finish()


def places_kernel(
    key: DType, kinds: tuple[DType, ...], negative: bool, rank: int, index: DType
) -> Kernel:
    """Write the place in a line that each position writes to, or `nowhere` if it is dropped.

    Parameters after the buffers: count, nowhere; per index its site, size, stride of out, offset;
    extents of the positions; strides of out and of each index along them.
    """
    code = Code("put_places", index)
    keys = code.buffer("keys", key)
    buffers = [code.buffer(f"index{k}", kind) for k, kind in enumerate(kinds)]
    watch = Watch(code)
    n = len(kinds)
    count, nowhere = code.place("count"), code.scalar("nowhere", key)
    sites = [code.scalar(f"site{k}", d.int32) for k in range(n)]
    sizes, hops = code.places("size", n), code.places("hop", n)
    starts = code.places("start", n)
    extents, steps = code.places("extent", rank), code.places("step", rank)
    index_steps = [code.places(f"index_step{k}_", rank) for k in range(n)]
    with code.each(count) as i:
        coords = code.coords(i, extents)
        at = code.walk(code.at(0), coords, steps)
        good: Val | None = None
        for k, buffer in enumerate(buffers):
            raw = buffer[code.walk(starts[k], coords, index_steps[k])]
            place, fine = watch.inside(raw, sizes[k], sites[k], negative)
            at = at + place * hops[k]
            good = fine if good is None else good & fine
        made = at.cast(key)
        keys[i] = made if good is None else good.pick(made, nowhere)
    return code.finish()


def runs_kernel(
    mode: str, dtype: DType, source: DType, kind: DType, lines: int, rank: int, index: DType
) -> Kernel:
    """Write the combination of each run of equal places, in each line.

    `keys` are the places in order, `sequence` the positions. Parameters after the buffers: units,
    lines, positions, nowhere; offset of the source; extents of lines, strides of out and source
    along them; extents of positions, strides of the source.
    """
    code = Code(f"put_runs_{mode}", index)
    out, src = code.buffer("out", dtype), code.buffer("source", source)
    keys, sequence = code.buffer("keys", kind), code.buffer("order", d.int64)
    count, width, length = code.place("count"), code.place("lines"), code.place("positions")
    nowhere = code.scalar("nowhere", kind)
    offset = code.place("offset")
    outer = code.places("line", lines)
    out_outer, src_outer = code.places("out_line", lines), code.places("src_line", lines)
    inner, src_inner = code.places("position", rank), code.places("src_step", rank)
    with code.each(count) as i:
        first = i // width
        line = code.coords(i - first * width, outer)
        key, before = keys[first], keys[(first - 1).call("max", 0)]
        with code.when(key.ne(nowhere) & (first.eq(0) | before.ne(key))):
            at = code.walk(key.cast(code.index), line, out_outer)
            from_ = code.walk(offset, line, src_outer)
            now = code.local(code.index, first)
            with code.b.while_() as loop:
                with code.b.inside(loop.regions[0]):
                    # The last position stands for the one behind it: it is read, never used.
                    k = now.get().call("min", length - 1)
                    same = keys[k].eq(key)
                    code.b.until_false(((now.get() < length) & same).op)
                with code.b.inside(loop.regions[1]):
                    coords = code.coords(sequence[now.get()].cast(code.index), inner)
                    value = src[code.walk(from_, coords, src_inner)].cast(dtype)
                    combine(out, at, value, mode)
                    now.set(now.get() + 1)
    return code.finish()


def put_chained(
    engine: Engine, out: CubeTensor, source: CubeTensor, keys: CubeTensor, lines: Walk,
    inner: Walk, mode: str, places: DType,
) -> None:  # fmt: skip
    """Combine after chaining the positions that write to one place."""
    length = inner.size
    links = engine.empty((length,), d.int32)
    engine.cubes(
        chains.links_kernel, (keys.dtype, places), -(-length * PLANE // UNITS),
        [links.buf, keys.buf, keys.buf, length],
    )  # fmt: skip
    # Lines that lie side by side in both are taken several at a time.
    lanes = 4 if lines.extents[-1] % 4 == 0 and lines.out[-1] == lines.source[-1] == 1 else 1
    extents = (*lines.extents[:-1], lines.extents[-1] // lanes)
    steps = [(*walk[:-1], walk[-1] * lanes) for walk in (lines.out, lines.source)]
    each = size_of(extents)
    args = [
        out.buf, source.buf, keys.buf, links.buf, length * each, each, length, out.size,
        source.offset, *extents, *steps[0], *steps[1], *inner.extents, *inner.source,
    ]  # fmt: skip
    spec = chains.Chained(
        mode, out.dtype, source.dtype, keys.dtype, lanes, len(extents), len(inner.extents), places
    )
    engine.run(chains.chains_kernel, (spec,), length * each, args)


def put_sorted(
    engine: Engine, out: CubeTensor, source: CubeTensor, targets: Sequence[Target], lines: Walk,
    inner: Walk, mode: str, negative: bool,
) -> None:  # fmt: skip
    """Combine after sorting the positions by the place that they write to."""
    length, count = inner.size, lines.size
    tensors = [t.array for t in targets]
    places = engine.index_dtype(out, source, *tensors, count=max(out.size, length * count))
    # No place is the size: it stands for what is dropped, behind every other.
    nowhere = out.size
    kind = d.uint32 if nowhere < 1 << 32 else d.uint64
    # Whole blocks, for what compares them.
    keys = engine.empty((-(-length // chains.BLOCK) * chains.BLOCK,), kind).view((length,), (1,))
    args = [
        keys.buf, *[t.buf for t in tensors], engine.record(), length, nowhere,
        *[t.site for t in targets], *[t.size for t in targets], *[t.hop for t in targets],
        *[t.offset for t in tensors], *inner.extents, *inner.out,
        *[s for i in inner.indices for s in i],
    ]  # fmt: skip
    kinds = tuple(t.dtype for t in tensors)
    engine.run(places_kernel, (kind, kinds, negative, len(inner.extents), places), length, args)
    if length <= chains.MOST:
        put_chained(engine, out, source, keys, lines, inner, mode, places)
        return
    keys, sequence = arranged(engine, keys, nowhere.bit_length())
    args = [
        out.buf, source.buf, keys.buf, sequence.buf, length * count, count, length, nowhere,
        source.offset, *lines.extents, *lines.out, *lines.source, *inner.extents, *inner.source,
    ]  # fmt: skip
    ranks = (len(lines.extents), len(inner.extents))
    spec = (mode, out.dtype, source.dtype, kind, *ranks, places)
    engine.run(runs_kernel, spec, length * count, args)
