"""Softmax, its logarithm and its relatives."""

from __future__ import annotations

from burn_std import ArgumentError, DType, DTypeError
from burn_tensor.arguments import one_dim, refuse_other
from burn_tensor.functional.values import constant, in_dtype, widened
from burn_tensor.tensor import Tensor


def _softmax_dim(op: str, dim: int | None, rank: int) -> int:
    if dim is None:
        return 0 if rank in (0, 1, 3) else 1
    return one_dim(op, dim, rank)


def _refuse_stacklevel(op: str, level: int) -> None:
    refuse_other(op, "_stacklevel", level, 3, "Leave it out, and pass dtype by name.")


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """Return exp(x) / sum(exp(x)) along dim, stable; a row of all -inf is NaN.

    Args:
        input: any tensor.
        dim: the dim that sums to 1; None is PyTorch's old rule: 0 for ranks 0, 1 and 3, else 1.
        _stacklevel: only 3: a dim that is left out gives no warning to place.
        dtype: float that x is cast to first.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats; ints and bools need a dtype.

    Raises:
        ArgumentError: _stacklevel is another number.
        DTypeError: the result's dtype would not be float.
        IndexRangeError: dim is out of range.

    Gradient: y (g - sum(g y)).

    Example:
        >>> burn.functional.softmax(burn.tensor([0.0, 0.0]), 0).tolist()
        [0.5, 0.5]
    """
    if _stacklevel != 3:
        _refuse_stacklevel("softmax", _stacklevel)
    rank = len(input.shape)
    if dim is None or not 0 <= dim < rank:
        dim = _softmax_dim("softmax", dim, rank)
    return input.b.softmax(input, dim, dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """Return log(softmax(x)) along dim, stable.

    Args:
        input: any tensor.
        dim: the dim that sums to 1; None is PyTorch's old rule: 0 for ranks 0, 1 and 3, else 1.
        _stacklevel: only 3: a dim that is left out gives no warning to place.
        dtype: float that x is cast to first.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats; ints and bools need a dtype.

    Raises:
        ArgumentError: _stacklevel is another number.
        DTypeError: the result's dtype would not be float.
        IndexRangeError: dim is out of range.

    Gradient: g - softmax(x) sum(g).

    Example:
        >>> burn.functional.log_softmax(burn.tensor([7.0]), 0).tolist()
        [0.0]
    """
    if _stacklevel != 3:
        _refuse_stacklevel("log_softmax", _stacklevel)
    rank = len(input.shape)
    if dim is None or not 0 <= dim < rank:
        dim = _softmax_dim("log_softmax", dim, rank)
    return input.b.log_softmax(input, dim, dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """Return softmax(-x) along dim; unsigned integers wrap in -x, as in PyTorch.

    Args:
        input: any tensor.
        dim: the dim that sums to 1; None is PyTorch's old rule: 0 for ranks 0, 1 and 3, else 1.
        _stacklevel: only 3: a dim that is left out gives no warning to place.
        dtype: float that x is cast to first.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats; ints and bools need a dtype.

    Raises:
        ArgumentError: _stacklevel is another number.
        DTypeError: the result's dtype would not be float.
        IndexRangeError: dim is out of range.

    Gradient: that of softmax, negated.

    Example:
        >>> burn.functional.softmin(burn.tensor([0.0, 0.0]), 0).tolist()
        [0.5, 0.5]
    """
    _refuse_stacklevel("softmin", _stacklevel)
    b = input.b
    dim = _softmax_dim("softmin", dim, len(input.shape))
    return b.softmax(b.neg(input), dim, dtype)


def quiet_softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """Return exp(x) / (1 + sum exp(x)) along dim, stable: a row may sum to less than 1.

    It is softmax with one more entry, 0, that is left out; an attention head can stay silent.

    Args:
        input: any tensor.
        dim: the dim that sums to 1 at most.
        dtype: float that x is cast to first.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats; ints and bools need a dtype. 16-bit floats compute in float32.

    Raises:
        DTypeError: the result's dtype would not be float.
        IndexRangeError: dim is out of range.

    Gradient: y (g - sum(g y)).

    Example:
        >>> burn.functional.quiet_softmax(burn.tensor([0.0, 0.0, 0.0]), 0).tolist()
        [0.25, 0.25, 0.25]

    Source: Miller, Attention Is Off By One, 2023
    """
    b = input.b
    dim = one_dim("quiet_softmax", dim, len(input.shape))
    x = input if dtype is None else in_dtype(input, dtype)
    if not x.dtype.is_float:
        raise DTypeError("quiet_softmax", "needs floats, or a dtype", got=x.dtype)
    wide = widened(x)
    row = wide if wide.shape else b.unsqueeze(wide, (0,))
    shape, rank = row.shape, len(row.shape)
    silence = b.full(row.dtype, (*shape[:dim], 1, *shape[dim + 1 :]), 0.0)
    out = b.softmax(b.cat([row, silence], dim), dim, None)
    out = b.slice(out, (1,) * rank, (0,) * rank, shape)
    return in_dtype(out if wide.shape else b.squeeze(out, (0,)), x.dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Return a sample of the Gumbel-softmax distribution.

    Args:
        logits: unnormalised log-probabilities.
        tau: temperature, positive.
        hard: return one-hot rows with the gradient of the soft ones.
        eps: only 1e-10: the uniform numbers are kept off 0 and 1 by themselves.
        dim: the dim that sums to 1.

    Shapes:
        logits: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        ArgumentError: tau is not positive, or eps is another number.
        IndexRangeError: dim is out of range.

    Gradient: that of softmax((logits + noise) / tau).

    Example:
        >>> burn.functional.gumbel_softmax(burn.zeros(3), hard=True).sum().item()
        1.0

    Source: Jang et al., Categorical Reparameterization with Gumbel-Softmax, 2016
    """
    refuse_other("gumbel_softmax", "eps", eps, 1e-10, "Leave it out, and pass dim by name.")
    if tau <= 0:
        raise ArgumentError("gumbel_softmax", "tau must be positive", got=tau)
    b, shape = logits.b, logits.shape
    dim = one_dim("gumbel_softmax", dim, len(shape))
    # 0 would give an infinite sample, and a row of two of them NaN.
    uniform = b.clamp(
        b.uniform(logits.dtype, shape, 0.0, 1.0, b.next_key()),
        2.0**-25,
        1.0 - 2.0**-9 if logits.dtype.bits == 16 else None,
    )
    noise = b.neg(b.log(b.neg(b.log(uniform))))
    soft = b.softmax(b.div(b.add(logits, noise), tau), dim, None)
    if not hard:
        return soft
    index = b.argmax(soft, dim, True)
    zeros = b.full(soft.dtype, shape, 0.0)
    ones = b.full(soft.dtype, index.shape, 1.0)
    picked = b.scatter(zeros, index, ones, dim, "assign")
    return b.add(constant(b.sub(picked, soft)), soft)
