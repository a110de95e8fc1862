"""`mypkg::matmul_add_relu`: one operation with its kernel and its gradient, as a package brings it.

Nothing here is part of the framework: the entry goes into the catalogue, the kernel into the table
of the compiling devices, the rule into that of autodiff. Devices without the kernel, such as
`flex`, run the decomposition.
"""

from __future__ import annotations

from math import prod
from typing import Any

import burn_cube as bc
from burn_autodiff import rule
from burn_cube import ABSOLUTE_POS, Array, Float, cast, cube, fma, maximum, splat
from burn_cube_backend import CubeTensor, Engine, kernel
from burn_ir import Entry, Spec, check_dtype, register
from burn_std import ShapeError, dtypes
from burn_tensor import Tensor

NAME = "mypkg::matmul_add_relu"
UNITS = 256


def matmul_add_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return relu(x @ weight + bias), computed by one kernel where there is one.

    Args:
        x: rows.
        weight: the matrix.
        bias: added to every row.

    Shapes:
        x: [..., K]
        weight: [K, N]
        bias: [N]
        returns: [..., N]

    DTypes: floats.

    Gradient: defined for all three, of any order; 0 where the result is 0.
    """
    made: Tensor = getattr(x.b, NAME)(x, weight, bias)
    return made


# ---- the entry: what the operation is ----------------------------------------------------------


def shapes(x: Spec, weight: Spec, bias: Spec) -> Spec:
    """Say what comes out; the one place that checks shapes."""
    check_dtype(NAME, "float", x)
    fits = (
        x.rank >= 1
        and weight.rank == 2
        and x.shape[-1] == weight.shape[0]
        and bias.shape == weight.shape[1:]
    )
    if not fits:
        raise ShapeError(
            NAME, "x is [..., K], weight [K, N] and bias [N]", got=f"{x}, {weight} and {bias}"
        )
    return Spec((*x.shape[:-1], weight.shape[1]), x.dtype)


def composite(ops: Any, x: Any, weight: Any, bias: Any) -> Any:
    """The same in operations of the catalogue; rounds 16-bit floats once, as the kernel does."""
    half = x.dtype if x.dtype.bits == 16 else None
    if half is not None:
        x, weight, bias = (ops.cast(t, dtypes.float32) for t in (x, weight, bias))
    out = ops.relu(ops.add(ops.matmul(x, weight), bias))
    return out if half is None else ops.cast(out, half)


register(
    Entry(
        NAME, "x^ weight^ bias^", "", shapes, "contract", "relu(x @ weight + bias)",
        accepts="float", cost="compute", autocast="lower", decompose=composite,
    )
)  # fmt: skip


# ---- the kernel: how the compiling devices do it -----------------------------------------------


@cube
def fused(
    x: Array[Float], weight: Array[Float], bias: Array[Float], out: Array[Float],
    inner: bc.index, columns: bc.index, *, acc, lanes,
):  # fmt: skip
    """Each unit makes `lanes` neighbours of one row, in registers; bias and relu cost no pass."""
    strips = columns // lanes
    row, column = ABSOLUTE_POS // strips, ABSOLUTE_POS % strips * lanes
    if row * columns < len(out):
        total = cast(bias.load(column, lanes), acc)
        for k in range(inner):
            left = splat(cast(x[row * inner + k], acc), lanes)
            total = fma(left, cast(weight.load(k * columns + column, lanes), acc), total)
        out.store(row * columns + column, cast(maximum(total, 0), out.dtype))


@kernel(NAME)
def launch(engine: Engine, x: CubeTensor, weight: CubeTensor, bias: CubeTensor) -> CubeTensor:
    """Allocate the result and start the kernel; shapes and dtypes have been checked."""
    inner, columns = weight.shape
    out = engine.empty((*x.shape[:-1], columns), x.dtype)
    # Vectors of a processor's registers; on a GPU neighbouring units make the wide access.
    widest = 16 if engine.client.properties.kind == "cpu" else 1
    lanes = next(n for n in (16, 8, 4, 2, 1) if n <= widest and columns % n == 0)
    units = prod(out.shape) // lanes
    fused.launch(
        engine.client,
        -(-units // UNITS),
        *(engine.array(t) for t in (x, weight, bias, out)),
        inner,
        columns,
        cube_dim=UNITS,
        acc=dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32,
        lanes=lanes,
    )
    return out


# ---- the rule: its gradient --------------------------------------------------------------------


@rule(NAME, saves="x:weight weight:x out")
def gradient(c: Any, g: Any, x: Any, weight: Any, out: Any) -> Any:
    """dx = h W', dW = x' h, db = h summed over the rows, with h = g where the result is positive.

    A rule calls operations of the catalogue only, so it runs everywhere and can be differentiated.
    """
    ops = c.ops
    columns = c.shapes[1][1]
    h = ops.where(ops.gt(out, 0.0), g, 0.0)
    rows = ops.reshape(h, (prod(h.shape[:-1]), columns))
    gx = ops.matmul(h, ops.permute(weight, (1, 0))) if c.need[0] else None
    gw = None
    if c.need[1]:
        flat = ops.reshape(x, (rows.shape[0], c.shapes[1][0]))
        gw = ops.matmul(ops.permute(flat, (1, 0)), rows)
    return gx, gw, ops.sum(rows, (0,), False, g.dtype) if c.need[2] else None
