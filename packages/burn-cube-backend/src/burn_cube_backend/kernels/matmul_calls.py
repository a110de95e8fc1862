"""Which kernel makes a product of halves on tensor cores, and its launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from burn_cube import Kernel
from burn_cube_backend.engine import Engine
from burn_cube_backend.geometry import (
    Ints,
    broadcast_shape,
    broadcast_strides,
    collapse,
    dense,
    size_of,
)
from burn_cube_backend.kernels.maps import HALVES
from burn_cube_backend.kernels.matmul_groups import GroupBlock, group_kernel
from burn_cube_backend.kernels.matmul_tiles import Block, Spec, product_kernel
from burn_cube_backend.kernels.reduce import reduce
from burn_cube_backend.kernels.reduction import Reducer
from burn_cube_backend.payload import CubeTensor
from burn_cube_backend.tiles import CHUNK
from burn_std import dtypes as d

Cut = Block | GroupBlock
MAKERS: dict[type, Callable[..., Kernel]] = {Block: product_kernel, GroupBlock: group_kernel}
# The first block of which there is about one for every multiprocessor is taken, if it is not much
# larger than the matrix; else the last one, of which two are at work together.
TILED: tuple[Block, ...] = (Block((2, 4), (64, 64), 64, 3), Block((2, 2), (32, 32), 64, 3))
GROUPED: tuple[GroupBlock, ...] = (
    GroupBlock((2, 1), (64, 256), 4),
    GroupBlock((2, 1), (64, 128), 3),
    GroupBlock((2, 1), (64, 64), 4),
    GroupBlock((1, 1), (64, 64), 4),
)
# Parts of the depth at most, and steps that each has at least.
PARTS, STEPS = 16, 8


class _Operand(NamedTuple):
    """How an operand lies: whether by columns, and elements from line to line."""

    turned: bool
    lead: int


def _lies(x: CubeTensor) -> _Operand | None:
    """Return how matrices lie, None where their lines are not in pieces of 16 bytes."""
    rows, columns = x.shape[-2:]
    down, along = x.strides[-2:]
    if along == 1 and columns % CHUNK == 0 and (down >= columns or rows == 1):
        made = _Operand(False, max(down, columns))
    elif down == 1 and rows % CHUNK == 0 and (along >= rows or columns == 1):
        made = _Operand(True, max(along, rows))
    else:
        return None
    steps = [s for n, s in zip(x.shape[:-2], x.strides[:-2], strict=True) if n > 1]
    assert x.buf is not None  # noqa: S101 - solid
    even = all(s % CHUNK == 0 for s in (made.lead, x.offset, *steps)) and x.buf.pointer % 16 == 0
    return made if even else None


def cut(engine: Engine, m: int, n: int, k: int, batches: int) -> tuple[Cut, int]:
    """Return how cubes cut a product, and the depth of a part."""
    units = engine.client.properties.units

    def cubes(block: Cut) -> int:
        return -(-m // block.rows) * -(-n // block.columns) * batches

    grouped = "groups" in engine.client.properties.capabilities
    *large, small = GROUPED if grouped else TILED
    if grouped and k < large[0].depth * STEPS:
        # A multiprocessor has one cube of the widest block: nothing hides its beginning and end.
        large = large[1:]
    block = next(
        (
            one for one in large
            if cubes(one) * 10 >= units * 9
            and one.rows < m + small.rows and one.columns < n + small.columns
        ), small,
    )  # fmt: skip
    most = units * 2 if grouped and block is small else units
    parts = max(1, min(PARTS, most // cubes(block), k // (block.depth * STEPS)))
    steps = -(-k // (parts * block.depth))
    # Without a use for all of the ring more cubes are at work at once.
    return block._replace(stages=min(block.stages, max(2, steps))), steps * block.depth


def product(engine: Engine, x: CubeTensor, y: CubeTensor) -> CubeTensor | None:
    """Return the product of two tensors of matrices, or None where this kernel does not fit.

    Args:
        engine: the device.
        x: [..., M, K].
        y: [..., K, N], of the same dtype.
    """
    dtype = x.dtype
    if "tensor_cores" not in engine.client.properties.capabilities or dtype not in HALVES:
        return None
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    batch = broadcast_shape([x.shape[:-2], y.shape[:-2]])
    batches = size_of(batch)
    if not batches or not m or not n or not k or batches > 65535 or n % 2:
        return None
    left, right = _lies(x), _lies(y)
    if left is None or right is None:
        return None
    block, depth = cut(engine, m, n, k, batches)
    return multiplied(engine, x, y, (left, right), batch, block, depth)


def multiplied(
    engine: Engine, x: CubeTensor, y: CubeTensor, lies: tuple[_Operand, _Operand], batch: Ints,
    block: Cut, depth: int,
) -> CubeTensor:  # fmt: skip
    """Return a product cut in a way."""
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    parts = -(-k // depth)
    kind = x.dtype if parts == 1 else d.float32
    out = engine.empty((*batch, m, n) if parts == 1 else (size_of(batch), parts, m * n), kind)
    walks = [broadcast_strides(t.shape[:-2], t.strides[:-2], batch) for t in (x, y)]
    extents, strides = collapse(batch, walks)
    index = engine.index_dtype(x, y, out, count=out.size)
    turned = (lies[0].turned, lies[1].turned)
    spec = Spec(x.dtype, kind, turned, n % CHUNK == 0, len(extents), index)
    args = [
        out.buf, x.buf, y.buf, m, n, k, depth, x.offset, y.offset, lies[0].lead, lies[1].lead,
        *extents, *strides[0], *strides[1],
    ]  # fmt: skip
    cubes = -(-m // block.rows) * -(-n // block.columns)
    program = engine.loaded(MAKERS[type(block)], (spec, block))
    engine.start(program, (cubes, parts, size_of(batch)), args)
    if parts == 1:
        return out
    whole = Reducer("sum", kind, kind, kind, x.dtype)
    made = reduce(engine, whole, out, (1,), False)
    shape = (*batch, m, n)
    return made.view(shape, dense(shape))
