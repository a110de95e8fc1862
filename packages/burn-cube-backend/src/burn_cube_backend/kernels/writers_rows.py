"""Writing at indices on the cpu: a unit owns neighbouring columns of the result.

It walks all positions that may meet in its columns, in order, and at each of them combines its
piece of the row. One column has one unit: units that share the targets of one branch at random,
which takes longer than to do it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from burn_cube import Kernel
from burn_cube_backend.code import Buf, Code, Val
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import Ints, size_of
from burn_cube_backend.kernels.watch import Watch
from burn_cube_backend.payload import CubeTensor
from burn_std import DType, dtypes as d

# Columns of a unit, at least.
PANEL = 64
# What a step costs, in the operations that the runtime counts: of a row, and of an element.
STEP, ELEMENT = 12.0, 1.5


def merged(old: Val, value: Val, mode: str) -> Val:
    """Return the combination of an element with a value."""
    if mode == "assign":
        return value
    if value.dtype.is_bool:
        name = "or" if mode in ("add", "amax") else "and"
    else:
        name = {"add": "add", "multiply": "mul", "amin": "min", "amax": "max"}[mode]
    return old.call(name, value)


def combine(out: Buf, at: Val, value: Val, mode: str) -> None:
    """Write the combination of an element with a value."""
    out[at] = value if mode == "assign" else merged(out[at], value, mode)


class Panels(NamedTuple):
    """What a kernel depends on.

    Attributes:
        mode: how elements combine.
        out: dtype of the result.
        source: dtype of what is written.
        kinds: dtypes of the integers.
        negative: negative indices count from the end.
        moving: per index, whether it varies along the columns.
        single: there is one column.
        lines: dims of the lines, that of the columns last.
        rank: dims of the positions.
        places: dtype of places.
    """

    mode: str
    out: DType
    source: DType
    kinds: tuple[DType, ...]
    negative: bool
    moving: tuple[bool, ...]
    single: bool
    lines: int
    rank: int
    places: DType


def panel_kernel(p: Panels) -> Kernel:
    """Write the combination of a source with x at indices; columns lie side by side in the result.

    Parameters after the buffers: panels, columns of a panel, positions; per index its site, size,
    stride of out, offset; offset of the source; extents of lines, strides of out, source and
    each index along them; the same for the positions.
    """
    code = Code(f"put_panels_{p.mode}", p.places, 1)
    out, src = code.buffer("out", p.out), code.buffer("source", p.source)
    buffers = [code.buffer(f"index{k}", kind) for k, kind in enumerate(p.kinds)]
    watch = Watch(code)
    n = len(p.kinds)
    panels, width, length = (code.place(name) for name in ("panels", "width", "length"))
    sites = [code.scalar(f"site{k}", d.int32) for k in range(n)]
    sizes, hops = code.places("size", n), code.places("hop", n)
    starts = code.places("start", n)
    offset = code.place("offset")
    outer = code.places("line", p.lines)
    walks = [code.places(f"walk{k}_", p.lines) for k in range(2 + n)]
    inner = code.places("position", p.rank)
    steps = [code.places(f"step{k}_", p.rank) for k in range(2 + n)]

    cube = code.special("cube_pos")
    line = cube // panels
    first = (cube - line * panels) * width
    last = (first + width).call("min", outer[-1])
    coords = code.coords(line, outer[:-1]) if p.lines > 1 else []
    zero = code.at(0)
    bases = [
        code.walk(start, coords, walk[:-1])
        for start, walk in zip([zero, offset, *starts], walks, strict=True)
    ]

    def found(k: int, at: Val, to: Val, then: Callable[[Val], None]) -> None:
        """Go on where index k, of the place `at`, is inside, with the place of the target."""
        raw = buffers[k][at]
        place, good = watch.checked(raw, sizes[k], p.negative)
        with code.when(good) as branch:
            then(to + place.cast(code.index) * hops[k])
        with code.otherwise(branch):
            watch.note(raw, sites[k])

    def each(ks: Sequence[int], ats: Sequence[Val], to: Val, then: Callable[[Val], None]) -> None:
        if not ks:
            then(to)
            return
        found(ks[0], ats[0], to, lambda at: each(ks[1:], ats[1:], at, then))

    moving = [k for k in range(n) if p.moving[k]]
    still = [k for k in range(n) if not p.moving[k]]

    def columns(to: Val, from_: Val, heads: Sequence[Val]) -> None:
        def one(c: Val) -> None:
            value = src[from_ + c * walks[1][-1]].cast(p.out)
            ats = [heads[k] + c * walks[2 + k][-1] for k in moving]
            each(moving, ats, to + c, lambda at: combine(out, at, value, p.mode))

        if p.single:
            one(zero)
        else:
            with code.loop(first, last, independent=not moving) as c:
                one(c)

    with code.loop(0, length) as position:
        places = code.coords(position, inner)
        to, from_, *heads = (
            code.walk(base, places, step) for base, step in zip(bases, steps, strict=True)
        )
        each(still, [heads[k] for k in still], to, lambda at: columns(at, from_, heads))
    return code.finish()


def put_panels(
    engine: Engine, tensors: tuple[CubeTensor, CubeTensor, Sequence[CubeTensor]],
    targets: Sequence[Any], lines: Any, inner: Any, mode: str, negative: bool,
) -> None:  # fmt: skip
    """Combine a source into a dense result.

    Args:
        engine: the cpu.
        tensors: the result, the source, and the integers.
        targets: what they name, each a `Target`.
        lines: a `Walk` over what never meets in an element.
        inner: one over the positions.
        mode: how elements combine.
        negative: negative indices count from the end.
    """
    out, source, indices = tensors
    extents = lines.extents
    walks: list[Ints] = [lines.out, lines.source, *lines.indices]
    if extents[-1] != 1 and lines.out[-1] != 1:
        # Columns that do not lie side by side are lines of their own.
        extents, walks = (*extents, 1), [(*w, 0) for w in walks]
    columns, others = extents[-1], size_of(extents[:-1])
    threads: int = engine.client.runtime.threads  # type: ignore[attr-defined]  # of the cpu runtime
    panels = max(1, min(4 * threads // others, columns // PANEL))
    width = -(-columns // panels)
    places = engine.index_dtype(out, source, *indices, count=max(out.size, inner.size))
    spec = Panels(
        mode, out.dtype, source.dtype, tuple(i.dtype for i in indices), negative,
        tuple(w[-1] != 0 and columns > 1 for w in walks[2:]), columns == 1,
        len(extents), len(inner.extents), places,
    )  # fmt: skip
    args = [
        out.buf, source.buf, *[i.buf for i in indices], engine.record(), panels, width,
        inner.size, *[t.site for t in targets], *[t.size for t in targets],
        *[t.hop for t in targets], *[i.offset for i in indices], source.offset, *extents,
        *[s for w in walks for s in w], *inner.extents, *inner.out, *inner.source,
        *[s for w in inner.indices for s in w],
    ]  # fmt: skip
    program = engine.loaded(panel_kernel, (spec,))
    work = STEP + width * (STEP if any(spec.moving) else ELEMENT)
    program.cost = work * inner.size  # type: ignore[attr-defined]
    engine.start(program, (panels * others, 1, 1), args)
