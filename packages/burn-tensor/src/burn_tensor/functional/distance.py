"""Distances and products of pairs of vectors, and the linear layers over them."""

from __future__ import annotations

from math import prod

import numpy as np

from burn_std import ArgumentError, DTypeError, ShapeError
from burn_std.dtypes import bool_
from burn_tensor.arguments import one_dim
from burn_tensor.functional.extents import Ints
from burn_tensor.functional.values import in_dtype, meeting, straight_through, widened
from burn_tensor.tensor import Tensor


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return input weight^T + bias.

    Args:
        input: vectors along the last dim.
        weight: one row per output feature, or one vector.
        bias: one number per output feature.

    Shapes:
        input: [*, N]
        weight: [M, N] or [N]
        bias: [M] or []
        returns: [*, M] or [*]

    DTypes: ints and floats; the three promote. 16-bit floats accumulate in float32. A quantised
    weight promotes as floats of the device's default dtype; its bytes are read as they are.

    Raises:
        ShapeError: input and weight do not share N, or the bias does not fit.

    Gradient: defined for input, weight and bias.

    Example:
        >>> burn.functional.linear(burn.tensor([1.0, 2.0]), burn.tensor([[3.0, 4.0]])).tolist()
        [11.0]
    """
    return input.b.linear(input, weight, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return y[o] = sum over i, j of input1[i] weight[o, i, j] input2[j], plus bias[o].

    Args:
        input1: vectors along the last dim.
        input2: vectors along the last dim, as many.
        weight: one matrix per output feature.
        bias: one number per output feature.

    Shapes:
        input1: [*, N]
        input2: [*, M]
        weight: [O, N, M]
        bias: [O]
        returns: [*, O]

    DTypes: ints and floats. 16-bit floats compute in float32.

    Raises:
        ShapeError: shapes do not fit.

    Gradient: defined for all inputs.

    Example:
        >>> one = burn.tensor([2.0])
        >>> burn.functional.bilinear(one, one, burn.tensor([[[3.0]]])).tolist()
        [12.0]
    """
    b = meeting("bilinear", input1, input2, weight, bias)
    lead, want = input1.shape[:-1], weight.shape
    if (
        len(want) != 3
        or not input1.shape
        or not input2.shape
        or input2.shape[:-1] != lead
        or (input1.shape[-1], input2.shape[-1]) != want[1:]
    ):
        raise ShapeError(
            "bilinear", "input1 [*, N], input2 [*, M] and weight [O, N, M] must fit",
            got=f"{list(input1.shape)}, {list(input2.shape)}, {list(want)}",
        )  # fmt: skip
    outs, n, m = want
    dtype = input1.dtype
    rows = prod(lead)
    x, y, w = (widened(t) for t in (input1, input2, weight))
    table = b.reshape(b.permute(w, (1, 0, 2)), (n, outs * m))
    left = b.reshape(b.matmul(b.reshape(x, (rows, n)), table), (rows, outs, m))
    out = b.matmul(left, b.reshape(y, (rows, m, 1)))  # [rows, O, M] @ [rows, M, 1]
    out = b.reshape(out, (*lead, outs))
    if bias is not None:
        out = b.add(out, bias)
    return in_dtype(out, dtype) if dtype.is_float and dtype.bits == 16 else out


def _along(op: str, dim: int, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor, Ints | None]:
    """Return both tensors with one rank and one extent along dim, and dim as a tuple."""
    b = meeting(op, x1, x2)
    rank = max(len(x1.shape), len(x2.shape))
    at = one_dim(op, dim, rank)
    if not rank:
        return x1, x2, None
    aligned = [
        b.reshape(x, (1,) * (rank - len(x.shape)) + x.shape) if len(x.shape) < rank else x
        for x in (x1, x2)
    ]
    wide = max(x.shape[at] for x in aligned)
    for i, x in enumerate(aligned):
        if x.shape[at] == 1 != wide:
            aligned[i] = b.expand(x, (*x.shape[:at], wide, *x.shape[at + 1 :]))
    return aligned[0], aligned[1], (at,)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors along dim.

    x1 . x2 / (max(||x1||, eps) max(||x2||, eps)); the two broadcast.

    Args:
        x1: vectors.
        x2: vectors.
        dim: the dim of a vector, in the broadcast shape.
        eps: least norm.

    Shapes:
        x1, x2: [*, N, *]
        returns: [*, *]

    DTypes: floats.

    Raises:
        ShapeError: the shapes do not broadcast.
        IndexRangeError: dim is out of range.

    Gradient: defined for both.

    Example:
        >>> x, y = burn.tensor([1.0, 0.0]), burn.tensor([0.0, 2.0])
        >>> burn.functional.cosine_similarity(x, y, dim=0).item()
        0.0
    """
    b = meeting("cosine_similarity", x1, x2)
    x1, x2, dims = _along("cosine_similarity", dim, x1, x2)
    units = []
    for x in (x1, x2):
        norm = b.vector_norm(x, dims, True, 2.0)
        # The divisor is raised without hiding it from the gradient, as PyTorch does.
        units.append(b.div(x, straight_through(norm, b.clamp(norm, eps, None))))
    return b.sum(b.mul(units[0], units[1]), dims, False, None)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Return ||x1 - x2 + eps||_p over the last dim.

    Args:
        x1: vectors.
        x2: vectors; the two broadcast.
        p: order of the norm.
        eps: added to every difference.
        keepdim: keep the last dim with extent 1.

    Shapes:
        x1, x2: [*, N]
        returns: [*]

    DTypes: ints and floats; ints give the default float.

    Raises:
        ShapeError: the shapes do not broadcast.

    Gradient: defined for both.

    Example:
        >>> x, y = burn.tensor([0.0, 3.0]), burn.tensor([4.0, 0.0])
        >>> burn.functional.pairwise_distance(x, y, eps=0.0).item()
        5.0
    """
    b = meeting("pairwise_distance", x1, x2)
    gap = b.add(b.sub(x1, x2), float(eps))
    rank = len(gap.shape)
    return b.vector_norm(gap, (rank - 1,) if rank else None, keepdim, p)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Return the p-norm distances of all pairs of rows i < j, in the order of (i, j).

    Args:
        input: rows.
        p: order of the norm, not negative; 0 counts differing coordinates, inf takes the largest.

    Shapes:
        input: [N, M]
        returns: [N (N - 1) / 2]

    DTypes: floats.

    Raises:
        ShapeError: the input is no matrix.
        ArgumentError: p is negative.
        DTypeError: ints and bools.

    Gradient: that of `norm`; 0 between equal rows.

    Example:
        >>> burn.functional.pdist(burn.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]])).tolist()
        [5.0, 0.0, 5.0]
    """
    if len(input.shape) != 2:
        raise ShapeError("pdist", "needs a matrix", got=list(input.shape))
    if not input.dtype.is_float:
        raise DTypeError("pdist", "needs floats", got=input.dtype)
    if p < 0:
        raise ArgumentError("pdist", "p must not be negative", got=p)
    b, rows = input.b, input.shape[0]
    # Each pair once, so that no row is compared with itself.
    first = [i for i in range(rows) for _ in range(i + 1, rows)]
    second = [j for i in range(rows) for j in range(i + 1, rows)]
    ends = [
        b.index_select(input, b.tensor_from_numpy(np.array(k, np.int64)), 0)
        for k in (first, second)
    ]
    gap = b.sub(ends[0], ends[1])
    out = b.vector_norm(gap, (1,), False, float(p))
    if p == 0 and gap.node is not None:
        # A count has no slope; the input is reached all the same, with zeros.
        return b.where(b.scalar(False, bool_), b.sum(gap, (1,), False, None), out)
    return out
