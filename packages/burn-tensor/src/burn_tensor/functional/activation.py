"""Smooth activations and gates: one map of the catalogue each, a few for `glu`.

`inplace` is an argument for PyTorch's sake and can only be False: tensors are values.
"""

from __future__ import annotations

from burn_std import ArgumentError, ShapeError
from burn_tensor.arguments import one_dim, refuse_inplace
from burn_tensor.tensor import Tensor


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where x > 0, else alpha (exp(x) - 1).

    Args:
        input: any tensor.
        alpha: limit for x to -inf, negated.
        inplace: only False: tensors are values.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        ArgumentError: inplace is set.
        DTypeError: ints and bools.

    Gradient: 1 where x > 0, else alpha exp(x).

    Example:
        >>> burn.functional.elu(burn.tensor([0.0, 2.0])).tolist()
        [0.0, 2.0]

    Source: Clevert et al., Exponential Linear Units, 2015
    """
    if inplace:
        refuse_inplace("elu")
    return input.b.elu(input, float(alpha))


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the scaled ELU with its fixed constants.

    Args:
        input: any tensor.
        inplace: only False: tensors are values.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        ArgumentError: inplace is set.
        DTypeError: ints and bools.

    Gradient: scale where x > 0, else scale alpha exp(x).

    Example:
        >>> burn.functional.selu(burn.tensor([0.0])).tolist()
        [0.0]

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017
    """
    if inplace:
        refuse_inplace("selu")
    return input.b.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where x > 0, else alpha (exp(x / alpha) - 1).

    Args:
        input: any tensor.
        alpha: limit for x to -inf, negated; not 0.
        inplace: only False: tensors are values.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        ArgumentError: alpha is 0, or inplace is set.
        DTypeError: ints and bools.

    Gradient: 1 where x > 0, else exp(x / alpha).

    Example:
        >>> burn.functional.celu(burn.tensor([0.0, 2.0])).tolist()
        [0.0, 2.0]

    Source: Barron, Continuously Differentiable Exponential Linear Units, 2017
    """
    if inplace:
        refuse_inplace("celu")
    if alpha == 0:
        raise ArgumentError("celu", "alpha must not be 0", got=alpha)
    return input.b.celu(input, float(alpha))


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Return x Phi(x), Phi the normal distribution function.

    Args:
        input: any tensor.
        approximate: `none` (erf) or `tanh`.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        ArgumentError: another approximation.
        DTypeError: ints and bools.

    Gradient: defined.

    Example:
        >>> burn.functional.gelu(burn.tensor([0.0])).tolist()
        [0.0]

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016
    """
    if approximate not in ("none", "tanh"):
        raise ArgumentError("gelu", "approximate is none or tanh", got=repr(approximate))
    return input.b.gelu(input, approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x sigmoid(x).

    Args:
        input: any tensor.
        inplace: only False: tensors are values.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        ArgumentError: inplace is set.
        DTypeError: ints and bools.

    Gradient: defined.

    Example:
        >>> burn.functional.silu(burn.tensor([0.0])).tolist()
        [0.0]
    """
    if inplace:
        refuse_inplace("silu")
    return input.b.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x tanh(log(1 + exp(x))).

    Args:
        input: any tensor.
        inplace: only False: tensors are values.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        ArgumentError: inplace is set.
        DTypeError: ints and bools.

    Gradient: defined.

    Example:
        >>> burn.functional.mish(burn.tensor([0.0])).tolist()
        [0.0]

    Source: Misra, Mish: A Self Regularized Non-Monotonic Activation Function, 2019
    """
    if inplace:
        refuse_inplace("mish")
    return input.b.mish(input)


def tanhshrink(input: Tensor) -> Tensor:
    """Return x - tanh(x).

    Args:
        input: any tensor.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats; ints and bools become the default float.

    Gradient: tanh(x)^2.

    Example:
        >>> burn.functional.tanhshrink(burn.tensor([0.0])).tolist()
        [0.0]
    """
    return input.b.tanhshrink(input)


def softsign(input: Tensor) -> Tensor:
    """Return x / (1 + |x|).

    Args:
        input: any tensor.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats; ints and bools become the default float.

    Gradient: 1 / (1 + |x|)^2.

    Example:
        >>> burn.functional.softsign(burn.tensor([-1.0, 3.0])).tolist()
        [-0.5, 0.75]
    """
    return input.b.softsign(input)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return log(1 + exp(beta x)) / beta, x where beta x > threshold.

    Args:
        input: any tensor.
        beta: sharpness.
        threshold: where the line takes over.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        DTypeError: ints and bools.

    Gradient: sigmoid(beta x), 1 beyond the threshold.

    Example:
        >>> burn.functional.softplus(burn.tensor([30.0])).tolist()
        [30.0]
    """
    return input.b.softplus(input, float(beta), float(threshold))


def logsigmoid(input: Tensor) -> Tensor:
    """Return log(sigmoid(x)), stable for any finite x.

    Args:
        input: any tensor.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats.

    Raises:
        DTypeError: ints and bools.

    Gradient: sigmoid(-x).

    Example:
        >>> burn.functional.logsigmoid(burn.tensor([-100.0])).tolist()
        [-100.0]
    """
    return input.b.logsigmoid(input)


def sigmoid(input: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x)).

    Args:
        input: any tensor.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats; ints and bools become the default float.

    Gradient: y (1 - y).

    Example:
        >>> burn.functional.sigmoid(burn.tensor([0.0])).tolist()
        [0.5]
    """
    return input.b.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent.

    Args:
        input: any tensor.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: floats; ints and bools become the default float.

    Gradient: 1 - y^2.

    Example:
        >>> burn.functional.tanh(burn.tensor([0.0])).tolist()
        [0.0]
    """
    return input.b.tanh(input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return a sigmoid(b), a and b the halves of x along dim.

    Args:
        input: any tensor.
        dim: the dim that is halved.

    Shapes:
        input: [*, 2 N, *]
        returns: [*, N, *]

    DTypes: floats.

    Raises:
        ShapeError: the extent along dim is odd.
        IndexRangeError: dim is out of range.

    Gradient: defined.

    Example:
        >>> burn.functional.glu(burn.tensor([4.0, 0.0])).tolist()
        [2.0]

    Source: Dauphin et al., Language Modeling with Gated Convolutional Networks, 2016
    """
    shape, b = input.shape, input.b
    if not shape:
        raise ShapeError("glu", "needs at least one dim", got="a rank-0 tensor")
    dim = one_dim("glu", dim, len(shape))
    n = shape[dim]
    if n % 2:
        raise ShapeError(
            "glu", "the extent along dim must be even", got=f"{list(shape)}, dim {dim}"
        )
    steps, zeros = (1,) * len(shape), (0,) * len(shape)
    stops = (*shape[:dim], n // 2, *shape[dim + 1 :])
    starts = (*zeros[:dim], n // 2, *zeros[dim + 1 :])
    gate = b.slice(input, steps, starts, shape)
    return b.mul(b.slice(input, steps, zeros, stops), b.sigmoid(gate))
