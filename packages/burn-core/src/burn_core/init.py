"""Initializers: rebind a parameter to fresh values; PyTorch's names, formulas and defaults.

Every function returns the parameter it rebinds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from burn_core.parameter import Buffer, Parameter
from burn_dispatch import Device
from burn_std import ArgumentError, DType, DTypeError, ShapeError, missing_name as _missing_name
from burn_std.dtypes import float32, float64
from burn_tensor import Tensor, eye, linalg, zeros
from burn_tensor.guard import guard_names

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

Target = Parameter | Buffer


def _plain(param: Target) -> Any:
    given: Any = param
    if not isinstance(given, (Parameter, Buffer)):
        raise DTypeError(
            "nn.init", "fills a parameter or a buffer", got=type(given).__name__,
            remedy="Write nn.Parameter(tensor), or make the tensor with the values you want.",
        )  # fmt: skip
    return param.b.resource.plain_context()


def _wide(ctx: Any) -> DType:
    """Return the widest float of a device, for formulas of several steps."""
    return float64 if ctx.resource.backend.supports_dtype(float64) else float32


def uniform_(param: Target, a: float = 0.0, b: float = 1.0) -> Target:
    """Fill from U(a, b).

    Args:
        param: rebound to the new values.
        a: lower bound.
        b: upper bound.

    Example:
        >>> p = burn.nn.init.uniform_(burn.Parameter(burn.zeros(3)), 1.0, 2.0)
        >>> bool((p >= 1.0).all())
        True
    """
    ctx = _plain(param)
    param.set(ctx.uniform(param.dtype, param.shape, a, b, ctx.next_key()))
    return param


def normal_(param: Target, mean: float = 0.0, std: float = 1.0) -> Target:
    """Fill from N(mean, std^2).

    Args:
        param: rebound to the new values.
        mean: centre.
        std: standard deviation.

    Example:
        >>> burn.nn.init.normal_(burn.Parameter(burn.zeros(3)), mean=2.0, std=0.0).tolist()
        [2.0, 2.0, 2.0]
    """
    ctx = _plain(param)
    param.set(ctx.normal(param.dtype, param.shape, mean, std, ctx.next_key()))
    return param


def trunc_normal_(
    param: Target, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0
) -> Target:
    """Fill from N(mean, std^2) cut to [a, b], by the inverse of the distribution function.

    x = mean + std sqrt(2) erfinv(u), u uniform in [erf((a - mean) / (std sqrt(2))), same of b]

    Args:
        param: rebound to the new values.
        mean: centre before the cut.
        std: standard deviation before the cut.
        a: lower bound, as a value (not in units of std).
        b: upper bound.

    Raises:
        ArgumentError: a is not below b.

    Example:
        >>> p = burn.nn.init.trunc_normal_(burn.Parameter(burn.zeros(99)), std=3.0, a=0.0, b=1.0)
        >>> bool(((p >= 0.0) & (p <= 1.0)).all())
        True
    """
    if not a < b:
        raise ArgumentError("trunc_normal_", "a must be below b", got=f"a {a}, b {b}")
    low, high = (math.erf((e - mean) / (std * math.sqrt(2.0))) for e in (a, b))
    ctx = _plain(param)
    u: Tensor = ctx.uniform(_wide(ctx), param.shape, low, high, ctx.next_key())
    x = _erfinv(u) * (std * math.sqrt(2.0)) + mean
    param.set(x.clamp(a, b).to(param.dtype))
    return param


def _erfinv(y: Tensor) -> Tensor:
    """Return erfinv: Winitzki's first guess and three Newton steps."""
    edge = 1.0 - (1e-15 if y.dtype is float64 else 1e-7)
    y = y.clamp(-edge, edge)
    w = (-y * y).log1p()
    c = w * 0.5 + 2.0 / (math.pi * 0.147)
    x = y.sign() * ((c * c - w / 0.147).sqrt() - c).sqrt()
    for _ in range(3):
        x = x - (x.erf() - y) / ((-x * x).exp() * (2.0 / math.sqrt(math.pi)))
    return x


def constant_(param: Target, val: float) -> Target:
    """Fill with one value.

    Args:
        param: rebound to the new values.
        val: the value.

    Example:
        >>> burn.nn.init.constant_(burn.Parameter(burn.zeros(2)), 0.5).tolist()
        [0.5, 0.5]
    """
    ctx = _plain(param)
    param.set(ctx.full(param.dtype, param.shape, val))
    return param


def zeros_(param: Target) -> Target:
    """Fill with 0.

    Args:
        param: rebound to the new values.

    Example:
        >>> burn.nn.init.zeros_(burn.Parameter(burn.ones(2))).tolist()
        [0.0, 0.0]
    """
    return constant_(param, 0.0)


def ones_(param: Target) -> Target:
    """Fill with 1.

    Args:
        param: rebound to the new values.

    Example:
        >>> burn.nn.init.ones_(burn.Parameter(burn.zeros(2))).tolist()
        [1.0, 1.0]
    """
    return constant_(param, 1.0)


def eye_(param: Target) -> Target:
    """Fill a matrix with the identity.

    Args:
        param: rebound to the new values.

    Raises:
        ShapeError: it is no matrix.

    Example:
        >>> burn.nn.init.eye_(burn.Parameter(burn.zeros(2, 3))).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    if len(param.shape) != 2:
        raise ShapeError("eye_", "needs a matrix", got=param.shape)
    ctx = _plain(param)
    param.set(eye(*param.shape, dtype=param.dtype, device=ctx.device))
    return param


def dirac_(param: Target, groups: int = 1) -> Target:
    """Fill the weight of a convolution so that it hands its channels on unchanged.

    Args:
        param: of 3 to 5 dims; rebound to the new values.
        groups: of the convolution.

    Raises:
        ShapeError: another rank, or the output channels do not divide by groups.

    Example:
        >>> burn.nn.init.dirac_(burn.Parameter(burn.zeros(2, 2, 3)))[0].tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    shape = param.shape
    if not 3 <= len(shape) <= 5 or shape[0] % groups:
        raise ShapeError(
            "dirac_", "needs 3 to 5 dims and output channels that divide by groups", got=shape
        )
    ctx = _plain(param)
    per_group = shape[0] // groups
    value: Tensor = ctx.full(param.dtype, shape, 0)
    middle = tuple(k // 2 for k in shape[2:])
    for g in range(groups):
        for d in range(min(per_group, shape[1])):
            value[(g * per_group + d, d, *middle)] = 1.0
    param.set(value)
    return param


def sparse_(param: Target, sparsity: float, std: float = 0.01) -> Target:
    """Fill a matrix from N(0, std^2) and set a share of every column to 0.

    Args:
        param: rebound to the new values.
        sparsity: share of zeros in a column, rounded up.
        std: standard deviation of the rest.

    Raises:
        ShapeError: it is no matrix.
        ArgumentError: the share is outside [0, 1].

    Example:
        >>> p = burn.nn.init.sparse_(burn.Parameter(burn.zeros(4, 2)), 0.5)
        >>> (p == 0).sum(0).tolist()
        [2, 2]

    Source: Martens 2010
    """
    if len(param.shape) != 2:
        raise ShapeError("sparse_", "needs a matrix", got=param.shape)
    if not 0.0 <= sparsity <= 1.0:
        raise ArgumentError("sparse_", "the share is in [0, 1]", got=sparsity)
    rows, cols = param.shape
    ctx = _plain(param)
    value: Tensor = ctx.normal(param.dtype, (rows, cols), 0.0, std, ctx.next_key())
    # Ranks of uniform numbers are a random order of the rows, column by column.
    order: Tensor = ctx.uniform(float32, (rows, cols), 0.0, 1.0, ctx.next_key())
    rank = order.argsort(0).argsort(0)
    param.set(value.masked_fill(rank < math.ceil(sparsity * rows), 0.0))
    return param


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the gain of a nonlinearity as PyTorch recommends it.

    Args:
        nonlinearity: name of a function of `functional`, or of a layer.
        param: slope of leaky_relu; 0.01 if None.

    Raises:
        ArgumentError: the name is unknown.

    Example:
        >>> burn.nn.init.calculate_gain("tanh")
        1.6666666666666667
    """
    linear = ("linear", "sigmoid", *(f"conv{t}{n}d" for t in ("", "_transpose") for n in (1, 2, 3)))
    if nonlinearity in linear:
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 0.75
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    raise ArgumentError("calculate_gain", "the nonlinearity is unknown", got=nonlinearity)


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return (fan_in, fan_out) of a weight [out, in, *kernel].

    Args:
        shape: of the weight.

    Raises:
        ShapeError: fewer than two dims.

    Example:
        >>> from burn_core.init import fans
        >>> fans((8, 3, 5, 5))
        (75, 200)
    """
    if len(shape) < 2:
        raise ShapeError("fans", "a weight has at least two dims", got=shape)
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _fan(shape: tuple[int, ...], mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError("kaiming", "mode is fan_in or fan_out", got=mode)
    return fans(shape)[mode == "fan_out"]


def kaiming_uniform_(
    param: Target, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Target:
    """Fill from U(-bound, bound), bound = gain sqrt(3 / fan).

    Args:
        param: rebound to the new values.
        a: slope of leaky_relu.
        mode: fan_in keeps the variance in the forward, fan_out in the backward.
        nonlinearity: what follows, for the gain.

    Raises:
        ShapeError: fewer than two dims.
        ArgumentError: mode or nonlinearity is unknown.

    Example:
        >>> p = burn.nn.init.kaiming_uniform_(burn.Parameter(burn.zeros(4, 6)))
        >>> bool((p.abs() <= 1.0).all())
        True

    Source: He et al. 2015
    """
    if 0 in param.shape:
        return param
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / _fan(param.shape, mode))
    return uniform_(param, -bound, bound)


def kaiming_normal_(
    param: Target, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Target:
    """Fill from N(0, std^2), std = gain / sqrt(fan).

    Args:
        param: rebound to the new values.
        a: slope of leaky_relu.
        mode: fan_in keeps the variance in the forward, fan_out in the backward.
        nonlinearity: what follows, for the gain.

    Raises:
        ShapeError: fewer than two dims.
        ArgumentError: mode or nonlinearity is unknown.

    Example:
        >>> burn.nn.init.kaiming_normal_(burn.Parameter(burn.zeros(4, 6))).shape
        (4, 6)

    Source: He et al. 2015
    """
    if 0 in param.shape:
        return param
    std = calculate_gain(nonlinearity, a) / math.sqrt(_fan(param.shape, mode))
    return normal_(param, 0.0, std)


def xavier_uniform_(param: Target, gain: float = 1.0) -> Target:
    """Fill from U(-bound, bound), bound = gain sqrt(6 / (fan_in + fan_out)).

    Args:
        param: rebound to the new values.
        gain: factor for what follows, see `calculate_gain`.

    Raises:
        ShapeError: fewer than two dims.

    Example:
        >>> p = burn.nn.init.xavier_uniform_(burn.Parameter(burn.zeros(3, 3)))
        >>> bool((p.abs() <= 1.0).all())
        True

    Source: Glorot and Bengio 2010
    """
    bound = gain * math.sqrt(6.0 / max(1, sum(fans(param.shape))))
    return uniform_(param, -bound, bound)


def xavier_normal_(param: Target, gain: float = 1.0) -> Target:
    """Fill from N(0, std^2), std = gain sqrt(2 / (fan_in + fan_out)).

    Args:
        param: rebound to the new values.
        gain: factor for what follows, see `calculate_gain`.

    Raises:
        ShapeError: fewer than two dims.

    Example:
        >>> burn.nn.init.xavier_normal_(burn.Parameter(burn.zeros(3, 3))).shape
        (3, 3)

    Source: Glorot and Bengio 2010
    """
    return normal_(param, 0.0, gain * math.sqrt(2.0 / max(1, sum(fans(param.shape)))))


def orthogonal_(param: Target, gain: float = 1.0) -> Target:
    """Fill with gain times a (semi-)orthogonal matrix over the flattened trailing dims.

    Args:
        param: rebound to the new values.
        gain: factor.

    Raises:
        ShapeError: fewer than two dims.

    Example:
        >>> p = burn.nn.init.orthogonal_(burn.Parameter(burn.zeros(2, 3)))
        >>> bool(((p @ p.T - burn.eye(2)).abs() < 1e-5).all())
        True

    Source: Saxe et al. 2013; QR of a normal matrix, with the signs fixed
    """
    if len(param.shape) < 2:
        raise ShapeError("orthogonal_", "needs at least two dims", got=param.shape)
    if 0 in param.shape:
        return param
    rows, cols = param.shape[0], math.prod(param.shape[1:])
    ctx = _plain(param)
    flat: Tensor = ctx.normal(_wide(ctx), (rows, cols), 0.0, 1.0, ctx.next_key())
    q, r = linalg.qr(flat.T if rows < cols else flat)
    q = q * r.diagonal().sign()
    q = q.T if rows < cols else q
    param.set((q * gain).reshape(param.shape).to(param.dtype))
    return param


def fresh(shape: tuple[int, ...], dtype: DType | None, device: Device | None) -> Tensor:
    """Return zeros for a parameter that an initializer fills next.

    Args:
        shape: extents.
        dtype: the device's default float if None.
        device: the default device if None.

    Example:
        >>> from burn_core.init import fresh
        >>> fresh((2,), None, None).tolist()
        [0.0, 0.0]
    """
    return zeros(shape, dtype=dtype, device=device)


guard_names(globals(), __all__)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what to write instead of a name that is not here."""
        known = {name: f"Write burn.nn.init.{name}_(param)."} if f"{name}_" in __all__ else {}
        raise _missing_name("burn.nn.init", name, __all__, known)
