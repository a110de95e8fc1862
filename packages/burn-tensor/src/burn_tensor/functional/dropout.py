"""Dropout of elements and of whole channels; the backward draws the same mask again."""

from __future__ import annotations

from math import sqrt

from burn_std import ArgumentError, ShapeError
from burn_std.dtypes import bool_
from burn_tensor.arguments import refuse_inplace
from burn_tensor.functional.extents import Ints
from burn_tensor.tensor import Tensor

# The limit of SELU for x to -inf, negated: its scale times its alpha.
_SELU_LIMIT = 1.7580993408473766


def _probability(op: str, p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(op, "p is a probability in [0, 1]", got=p)


def _nothing(input: Tensor) -> Tensor:
    """Return zeros that keep a place in the tape, with gradient 0, also where x is not finite."""
    b = input.b
    return b.where(b.full(bool_, (), False), input, 0)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return x / (1 - p) with probability 1 - p, else 0, independently per element.

    Outside training and for p = 0 the input itself comes back and no random number is drawn;
    p = 1 gives zeros.

    Args:
        input: any tensor.
        p: probability of a 0.
        training: drop, else return the input.
        inplace: only False: tensors are values.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        ArgumentError: p is outside [0, 1], or inplace is set.
        DTypeError: ints and bools.

    Gradient: g / (1 - p) where x was kept, else 0.

    Example:
        >>> burn.functional.dropout(burn.ones(3), p=1.0).tolist()
        [0.0, 0.0, 0.0]

    Source: Srivastava et al., Dropout, 2014
    """
    if inplace:
        refuse_inplace("dropout")
    if not training or p == 0.0:
        _probability("dropout", p)
        return input
    if not 0.0 < p < 1.0:
        _probability("dropout", p)
        return _nothing(input)
    b = input.b
    return b.dropout(input, p, b.next_key())


def _mask_shape(op: str, input: Tensor, n: int) -> Ints:
    """Return the shape of a mask of whole channels for n spatial dims."""
    shape = input.shape
    if len(shape) not in (n + 1, n + 2):
        raise ShapeError(op, f"needs {n + 1} or {n + 2} dims", got=f"input {list(shape)}")
    lead = 1 if len(shape) == n + 1 else 2
    return shape[:lead] + (1,) * n


def _channels(op: str, input: Tensor, shape: Ints, p: float, training: bool) -> Tensor:
    _probability(op, p)
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return _nothing(input)
    b = input.b
    mask = b.dropout(b.full(input.dtype, shape, 1.0), p, b.next_key())
    return b.mul(mask, input)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Return the input with whole channels of 1-D signals dropped.

    Args:
        input: signals, batched or not.
        p: probability with which a channel is 0; kept ones are divided by 1 - p.
        training: drop, else return the input.
        inplace: only False: tensors are values.

    Shapes:
        input: [B, C, L] or [C, L]
        returns: the input's

    DTypes: floats.

    Raises:
        ArgumentError: p is outside [0, 1], or inplace is set.
        ShapeError: ranks do not fit.

    Gradient: g / (1 - p) where the channel was kept, else 0.

    Example:
        >>> burn.functional.dropout1d(burn.ones(1, 2, 3), p=0.0).shape
        (1, 2, 3)

    Source: Tompson et al., Efficient Object Localization Using Convolutional Networks, 2014
    """
    if inplace:
        refuse_inplace("dropout1d")
    return _channels("dropout1d", input, _mask_shape("dropout1d", input, 1), p, training)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Return the input with whole channels of planes dropped.

    Three dims are read as [B, C, L], as PyTorch does.

    Args:
        input: planes.
        p: probability with which a channel is 0; kept ones are divided by 1 - p.
        training: drop, else return the input.
        inplace: only False: tensors are values.

    Shapes:
        input: [B, C, H, W]
        returns: the input's

    DTypes: floats.

    Raises:
        ArgumentError: p is outside [0, 1], or inplace is set.
        ShapeError: ranks do not fit.

    Gradient: g / (1 - p) where the channel was kept, else 0.

    Example:
        >>> burn.functional.dropout2d(burn.ones(1, 2, 3, 3), p=0.0).shape
        (1, 2, 3, 3)

    Source: Tompson et al., Efficient Object Localization Using Convolutional Networks, 2014
    """
    if inplace:
        refuse_inplace("dropout2d")
    n = 1 if len(input.shape) == 3 else 2
    return _channels("dropout2d", input, _mask_shape("dropout2d", input, n), p, training)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Return the input with whole channels of volumes dropped.

    Args:
        input: volumes, batched or not.
        p: probability with which a channel is 0; kept ones are divided by 1 - p.
        training: drop, else return the input.
        inplace: only False: tensors are values.

    Shapes:
        input: [B, C, D, H, W] or [C, D, H, W]
        returns: the input's

    DTypes: floats.

    Raises:
        ArgumentError: p is outside [0, 1], or inplace is set.
        ShapeError: ranks do not fit.

    Gradient: g / (1 - p) where the channel was kept, else 0.

    Example:
        >>> burn.functional.dropout3d(burn.ones(1, 2, 1, 1, 1), p=0.0).shape
        (1, 2, 1, 1, 1)

    Source: Tompson et al., Efficient Object Localization Using Convolutional Networks, 2014
    """
    if inplace:
        refuse_inplace("dropout3d")
    return _channels("dropout3d", input, _mask_shape("dropout3d", input, 3), p, training)


def _alpha(op: str, input: Tensor, shape: Ints, p: float, training: bool) -> Tensor:
    """Return x where a mask of `shape` keeps it, else SELU's limit; then mean 0, variance 1."""
    _probability(op, p)
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return _nothing(input)
    b = input.b
    a = 1.0 / sqrt((_SELU_LIMIT**2 * p + 1.0) * (1.0 - p))
    kept = b.bernoulli(b.full(input.dtype, shape, 1.0 - p), b.next_key())
    shift = b.add(b.mul(b.sub(kept, 1.0), _SELU_LIMIT * a), _SELU_LIMIT * a * p)
    return b.add(b.mul(b.mul(kept, a), input), shift)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return the input with elements at SELU's limit with probability p, mean and variance kept.

    Args:
        input: any tensor.
        p: probability of the limit.
        training: drop, else return the input.
        inplace: only False: tensors are values.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        ArgumentError: p is outside [0, 1], or inplace is set.

    Gradient: to the elements kept.

    Example:
        >>> burn.functional.alpha_dropout(burn.ones(3), p=0.5).tolist()
        [1.0, 1.0, 1.0]

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017
    """
    if inplace:
        refuse_inplace("alpha_dropout")
    return _alpha("alpha_dropout", input, input.shape, p, training)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return the input with whole channels at SELU's limit, mean and variance kept.

    Args:
        input: signals.
        p: probability of the limit.
        training: drop, else return the input.
        inplace: only False: tensors are values.

    Shapes:
        input: [B, C, *]
        returns: the input's

    DTypes: floats.

    Raises:
        ArgumentError: p is outside [0, 1], or inplace is set.
        ShapeError: fewer than 2 dims.

    Gradient: to the channels kept.

    Example:
        >>> burn.functional.feature_alpha_dropout(burn.ones(1, 2, 3), p=0.5).shape
        (1, 2, 3)

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017
    """
    if inplace:
        refuse_inplace("feature_alpha_dropout")
    shape = input.shape
    if len(shape) < 2:
        raise ShapeError("feature_alpha_dropout", "needs [B, C, *]", got=f"input {list(shape)}")
    return _alpha("feature_alpha_dropout", input, shape[:2] + (1,) * (len(shape) - 2), p, training)
