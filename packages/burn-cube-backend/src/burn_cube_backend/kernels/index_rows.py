"""Reading at indices on the cpu: rows where the index stands still, places in vectors where not.

A unit makes a stretch of the rows of the result. Indices along a row are checked together; only
where one of them was outside are they looked at one by one, to note which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from burn_cube import Kernel
from burn_cube_backend.code import Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, size_of
from burn_cube_backend.kernels.watch import Watch
from burn_cube_backend.lanes import copy_row
from burn_cube_backend.payload import CubeTensor
from burn_std import DType, dtypes as d

# Elements of a row that a unit makes, and about how many it makes in all.
PIECE = 4096
# What an element costs, in the operations that the runtime counts: copied, and looked up.
COPIED, FOUND = 0.5, 6.0


def read_rows_kernel(
    dtype: DType, kinds: tuple[DType, ...], negative: bool, modes: Ints, rank: int, index: DType
) -> Kernel:
    """Write x at integer arrays into a row-major result.

    Parameters after the buffers: rows, length of a row, pieces of one, rows of a unit; then those
    of `index_kernel` from the sites on. `modes` are the strides of x and of each index along the
    last dim, 0, 1, or 2 for any.
    """
    code = Code("read_rows", index, 1)
    out, x = code.buffer("out", dtype), code.buffer("x", dtype)
    buffers = [code.buffer(f"index{k}", kind) for k, kind in enumerate(kinds)]
    watch = Watch(code)
    n = len(kinds)
    rows, length, pieces, each = (code.place(p) for p in ("rows", "length", "pieces", "each"))
    sites = [code.scalar(f"site{k}", d.int32) for k in range(n)]
    sizes, hops = code.places("size", n), code.places("hop", n)
    starts = code.places("start", n)
    offset = code.place("offset")
    extents, strides = code.places("extent", rank), code.places("stride", rank)
    steps = [code.places(f"step{k}_", rank) for k in range(n)]
    moving = [k for k in range(n) if modes[1 + k]]
    cube = code.special("cube_pos")
    block = cube // pieces
    first = (cube - block * pieces) * PIECE
    last = (first + PIECE).call("min", length)

    def along(i: Val, mode: int, step: Val) -> Val:
        return i if mode == 1 else i * step

    def found(to: Val, base: Val, heads: Sequence[Val]) -> None:
        def raw(k: int, i: Val) -> Val:
            return buffers[k][heads[k] + along(i, modes[1 + k], steps[k][-1])]

        def move(i: Val, place: Callable[[int], Val]) -> None:
            at = base if modes[0] == 0 else base + along(i, modes[0], strides[-1])
            for k in moving:
                at = at + place(k) * hops[k]
            out[to + i] = x[at]

        bad = code.local(d.int32)
        if moving:
            with code.loop(first, last, independent=True) as i:
                for k in moving:
                    _, good = watch.checked(raw(k, i), sizes[k], negative)
                    bad.set(bad.get() | (~good).cast(d.int32))
        with code.when(bad.get().eq(0)) as branch, code.loop(first, last, independent=True) as i:
            move(i, lambda k: watch.checked(raw(k, i), sizes[k], negative)[0].cast(index))
        with code.otherwise(branch), code.loop(first, last) as i:
            move(i, lambda k: watch.inside(raw(k, i), sizes[k], sites[k], negative)[0])

    with code.loop(block * each, ((block + 1) * each).call("min", rows)) as row:
        coords = code.coords(row, extents[:-1]) if rank > 1 else []
        base = code.walk(offset, coords, strides[:-1])
        heads = [code.walk(starts[k], coords, steps[k][:-1]) for k in range(n)]
        to = row * length
        for k in range(n):
            if k not in moving:
                place, _ = watch.inside(buffers[k][heads[k]], sizes[k], sites[k], negative)
                base = base + place * hops[k]
        if not moving and modes[0] == 1:
            copy_row(out, to + first, x, base + first, last - first)
        else:
            found(to, base, heads)
    return code.finish()


def read_rows(
    engine: Engine, out: CubeTensor, x: CubeTensor, indices: Sequence[CubeTensor],
    targets: Sequence[Ints], layout: tuple[Ints, Sequence[Ints]], negative: bool,
) -> None:  # fmt: skip
    """Write x at integer arrays into a dense result.

    Args:
        engine: the cpu.
        out: the result.
        x: what is read.
        indices: the integers.
        targets: per index its site, and size and stride of its dim in x.
        layout: extents of the result, and the strides of x and of each index along them.
        negative: negative indices count from the end.
    """
    extents, (strides, *steps) = layout
    length, rows = extents[-1], size_of(extents[:-1])
    pieces = -(-length // PIECE)
    each = max(1, min(PIECE // length, rows // 16))
    modes = tuple(s[-1] if s[-1] in (0, 1) else 2 for s in (strides, *steps))
    kinds = tuple(i.dtype for i in indices)
    places = engine.index_dtype(x, out, *indices, count=out.size)
    program = engine.loaded(
        read_rows_kernel, (x.dtype, kinds, negative, modes, len(extents), places)
    )
    args = [
        out.buf, x.buf, *[i.buf for i in indices], engine.record(), rows, length, pieces, each,
        *[site for site, _, _ in targets], *[size for _, size, _ in targets],
        *[hop for _, _, hop in targets], *[i.offset for i in indices], x.offset, *extents,
        *strides, *[s for step in steps for s in step],
    ]  # fmt: skip
    work = FOUND if any(modes[1:]) else COPIED
    program.cost = 20.0 * each + work * each * min(length, PIECE)  # type: ignore[attr-defined]
    engine.start(program, (-(-rows // each) * pieces, 1, 1), args)
