"""Look-ups in tables: embeddings, bags of them, one-hot vectors."""

from __future__ import annotations

from burn_std import ArgumentError, DTypeError, ShapeError
from burn_std.dtypes import bool_, int64
from burn_tensor.arguments import refuse_other
from burn_tensor.functional.values import constant, in_dtype, meeting, rebind, straight_through
from burn_tensor.tensor import Tensor

_DENSE = "Leave it out: gradients are dense, and an optimizer updates every row."


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return 1 at the index and 0 elsewhere, along a new last dim.

    Args:
        tensor: class indices.
        num_classes: extent of the new dim; -1 is the largest index + 1, which is read back.

    Shapes:
        tensor: [*]
        returns: [*, num_classes]

    DTypes: integers. Result int64.

    Raises:
        DTypeError: the indices are no integers.
        IndexRangeError: an index is negative or not less than num_classes.
        ArgumentError: num_classes is -1 and there is no index.

    Gradient: none.

    Example:
        >>> burn.functional.one_hot(burn.tensor([1, 0])).tolist()
        [[0, 1], [1, 0]]
    """
    b = tensor.b
    if num_classes == -1:
        if 0 in tensor.shape:
            raise ArgumentError(
                "one_hot", "an empty tensor has no largest class", remedy="Pass num_classes."
            )
        if not tensor.dtype.is_int:
            raise DTypeError("one_hot", "class indices are integers", got=tensor.dtype)
        # At least one, so that a negative index is reported as what it is.
        num_classes = max(1, int(b.to_numpy(b.amax(tensor, None, False))) + 1)
    return b.one_hot(tensor, num_classes)


def _row(padding_idx: int | None, weight: Tensor, op: str) -> int | None:
    if padding_idx is None:
        return None
    if not weight.shape:
        raise ShapeError(op, "weight is a table [rows, D]", got="rank 0")
    rows = weight.shape[0]
    if not -rows <= padding_idx < rows:
        raise ArgumentError(op, f"padding_idx must be in [{-rows}, {rows - 1}]", got=padding_idx)
    return padding_idx % rows


def _renormalised(input: Tensor, weight: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Return the table with the rows that are looked up scaled to at most max_norm.

    A Buffer or Parameter keeps the scaled rows, as in PyTorch; the gradient passes unchanged.
    """
    table = constant(weight)
    b = table.b
    norms = b.vector_norm(table, (1,), True, norm_type)
    scaled = b.mul(table, b.div(max_norm, b.add(norms, 1e-7)))
    used = b.index_put(
        b.full(bool_, (table.shape[0], 1), False), b.full(bool_, (), True),
        [constant(input)], (0,), False,
    )  # fmt: skip
    over = b.logical_and(b.gt(norms, max_norm), used)
    value = b.where(over, scaled, table)
    if hasattr(weight.__class__, "set"):  # a Buffer or Parameter
        rebind(weight, value)
        return weight
    return straight_through(weight, value)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of a table at the indices.

    Args:
        input: indices.
        weight: the table.
        padding_idx: row that gets no gradient; negative counts from the end.
        max_norm: rows looked up are scaled to at most this norm first; a Buffer or Parameter
            keeps them scaled, any other tensor is a value and stays.
        norm_type: order of that norm.
        scale_grad_by_freq: the gradient of a row is divided by how often it is looked up.
        sparse: only False: gradients are dense.

    Shapes:
        input: [*]
        weight: [V, D]
        returns: [*, D]

    DTypes: input integers, weight any.

    Raises:
        IndexRangeError: an index is outside [0, V).
        DTypeError: the indices are no integers.
        ArgumentError: padding_idx is out of range, or sparse is set.

    Gradient: sums of the incoming rows, for weight.

    Example:
        >>> burn.functional.embedding(burn.tensor([1, 1]), burn.tensor([[0.0], [5.0]])).tolist()
        [[5.0], [5.0]]
    """
    if sparse:
        refuse_other("embedding", "sparse", sparse, False, _DENSE)
    if padding_idx is not None:
        padding_idx = _row(padding_idx, weight, "embedding")
    if max_norm is not None:
        weight = _renormalised(input, weight, float(max_norm), float(norm_type))
    out = weight.b.embedding(weight, input, padding_idx)
    return _by_frequency(out, input, weight) if scale_grad_by_freq else out


def _by_frequency(out: Tensor, input: Tensor, weight: Tensor) -> Tensor:
    """Return `out` itself, with its gradient divided by how often each row is looked up."""
    b = out.b
    count = 1
    for n in input.shape:
        count *= n
    flat = b.reshape(input, (count,))
    often = b.gather(b.bincount(flat, None, weight.shape[0]), in_dtype(flat, int64), 0)
    share = b.reshape(b.reciprocal(in_dtype(often, out.dtype)), (*input.shape, 1))
    scaled = b.mul(out, share)
    return b.add(constant(out), b.sub(scaled, constant(scaled)))


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return the sum, mean or maximum of the rows of each bag of indices.

    Args:
        input: indices; two dims are bags of one size, one dim needs offsets.
        weight: the table.
        offsets: where each bag begins in a one-dim input.
        max_norm: as in `embedding`.
        norm_type: order of that norm.
        scale_grad_by_freq: as in `embedding`; not with `max`.
        mode: `sum`, `mean` or `max`.
        sparse: only False: gradients are dense.
        per_sample_weights: factor of every row, `sum` only.
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: row that counts in no bag and gets no gradient.

    Shapes:
        input: [B, N] or [N]
        weight: [V, D]
        offsets: [B], or [B + 1] with include_last_offset
        per_sample_weights: the input's
        returns: [B, D]; an empty bag is 0

    DTypes: input and offsets integers, weight floats.

    Raises:
        ShapeError: input has 0 or more than 2 dims, or weights differ from it.
        ArgumentError: offsets are missing or given where none belong, the mode is unknown, or
            sparse is set.

    Gradient: defined for weight and per_sample_weights.

    Example:
        >>> table = burn.tensor([[1.0], [2.0]])
        >>> burn.functional.embedding_bag(burn.tensor([[0, 1]]), table, mode="sum").tolist()
        [[3.0]]
    """
    op = "embedding_bag"
    refuse_other(op, "sparse", sparse, False, _DENSE)
    shape = input.shape
    if mode not in ("sum", "mean", "max"):
        raise ArgumentError(op, "mode is sum, mean or max", got=repr(mode))
    if len(shape) not in (1, 2):
        raise ShapeError(op, "input has one or two dims", got=f"input {list(shape)}")
    if (offsets is None) != (len(shape) == 2):
        raise ArgumentError(
            op, "offsets go with an input of one dim", got=f"input {list(shape)}, offsets {offsets}"
        )
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != shape):
        raise ArgumentError(
            op, "per_sample_weights have the input's shape and go with mode sum", got=mode
        )
    if scale_grad_by_freq and mode == "max":
        raise ArgumentError(op, "scale_grad_by_freq does not go with mode max")
    b = meeting(op, weight, input, offsets, per_sample_weights)
    padding_idx = _row(padding_idx, weight, op)
    rows = embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)
    kept = None if padding_idx is None else b.ne(input, padding_idx)
    if per_sample_weights is not None:
        rows = b.mul(rows, b.unsqueeze(per_sample_weights, (len(shape),)))
    if kept is not None:
        neutral = float("-inf") if mode == "max" else 0.0
        rows = b.where(b.unsqueeze(kept, (len(shape),)), rows, neutral)
    ones = b.full(rows.dtype, shape, 1.0) if kept is None else in_dtype(kept, rows.dtype)
    if offsets is None:
        return _fixed_bags(rows, ones, mode)
    return _ragged_bags(rows, ones, offsets, mode, include_last_offset)


def _fixed_bags(rows: Tensor, ones: Tensor, mode: str) -> Tensor:
    b = rows.b
    count = b.sum(ones, (1,), True, None)
    if mode == "max":
        if not rows.shape[1]:
            return b.full(rows.dtype, (rows.shape[0], rows.shape[2]), 0.0)
        return b.where(b.gt(count, 0), b.amax(rows, (1,), False), 0.0)
    total = b.sum(rows, (1,), False, None)
    return b.div(total, b.clamp(count, 1, None)) if mode == "mean" else total


def _ragged_bags(
    rows: Tensor, ones: Tensor, offsets: Tensor, mode: str, include_last: bool
) -> Tensor:
    b = rows.b
    length, features = rows.shape
    bags = offsets.shape[0] - (1 if include_last else 0)
    starts = in_dtype(offsets, int64)
    if include_last:
        starts = b.slice(starts, (1,), (0,), (bags,))
    places = b.arange(int64, length, 0, 1)
    bag = b.sub(b.searchsorted(starts, places, True), 1)
    count = b.index_add(b.full(rows.dtype, (bags,), 0.0), bag, ones, 0, 1)
    count = b.unsqueeze(count, (1,))
    if mode == "max":
        low = b.full(rows.dtype, (bags, features), float("-inf"))
        index = b.expand(b.unsqueeze(bag, (1,)), (length, features))
        return b.where(b.gt(count, 0), b.scatter(low, index, rows, 0, "amax"), 0.0)
    total = b.index_add(b.full(rows.dtype, (bags, features), 0.0), bag, rows, 0, 1)
    return b.div(total, b.clamp(count, 1, None)) if mode == "mean" else total
