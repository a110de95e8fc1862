"""Initializers: rebind a parameter to fresh values; PyTorch's names, formulas and defaults."""

from __future__ import annotations

import math
from typing import Any

from burn_core.parameter import Buffer, Parameter
from burn_std import ArgumentError, ShapeError
from burn_tensor import Tensor

Target = Parameter | Buffer


def _plain(param: Target) -> Any:
    return param.b.resource.plain_context()


def uniform_(param: Target, a: float = 0.0, b: float = 1.0) -> Target:
    """Fill from U(a, b).

    Example:
        >>> import burn_tensor as bt
        >>> p = uniform_(Parameter(bt.zeros(3)), 1.0, 2.0)
        >>> bool((p >= 1.0).all())
        True
    """
    ctx = _plain(param)
    param.set(ctx.uniform(param.dtype, param.shape, a, b, ctx.next_key()))
    return param


def normal_(param: Target, mean: float = 0.0, std: float = 1.0) -> Target:
    """Fill from N(mean, std^2)."""
    ctx = _plain(param)
    param.set(ctx.normal(param.dtype, param.shape, mean, std, ctx.next_key()))
    return param


def trunc_normal_(param: Target, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Target:
    """Fill from N(mean, std^2) cut to [a, b], by the inverse of the distribution function.

    x = mean + std sqrt(2) erfinv(u), u uniform in [2 Phi((a - mean)/std) - 1, 2 Phi((b - mean)/std) - 1].

    Raises:
        ArgumentError: a is not below b.
    """
    import numpy as np

    if not a < b:
        raise ArgumentError("trunc_normal_", "a must be below b", got=f"a {a}, b {b}")
    from burn_std.dtypes import float64

    low, high = (math.erf((e - mean) / std / math.sqrt(2.0)) for e in (a, b))
    ctx = _plain(param)
    u = ctx.to_numpy(ctx.uniform(float64, param.shape, low, high, ctx.next_key()))
    x = np.clip(mean + std * math.sqrt(2.0) * _erfinv(u), a, b)
    param.set(ctx.cast(ctx.tensor_from_numpy(x), param.dtype))
    return param


def _erfinv(y: Any) -> Any:
    """Return erfinv by Winitzki's first guess and three Newton steps in float64."""
    import numpy as np

    y = np.clip(y, -1 + 1e-15, 1 - 1e-15)
    w = np.log1p(-y * y)
    c = 2 / (math.pi * 0.147) + w / 2
    x = np.sign(y) * np.sqrt(np.sqrt(c * c - w / 0.147) - c)
    erf = np.vectorize(math.erf, otypes=[float])
    for _ in range(3):
        x = x - (erf(x) - y) / (2 / math.sqrt(math.pi) * np.exp(-x * x))
    return x


def constant_(param: Target, val: float) -> Target:
    """Fill with one value."""
    param.set(_plain(param).full(param.dtype, param.shape, val))
    return param


def zeros_(param: Target) -> Target:
    """Fill with 0."""
    return constant_(param, 0.0)


def ones_(param: Target) -> Target:
    """Fill with 1."""
    return constant_(param, 1.0)


def eye_(param: Target) -> Target:
    """Fill a matrix with the identity."""
    import numpy as np

    if len(param.shape) != 2:
        raise ShapeError("eye_", "needs a matrix", got=param.shape)
    ctx = _plain(param)
    param.set(ctx.cast(ctx.tensor_from_numpy(np.eye(*param.shape)), param.dtype))
    return param


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the gain of a nonlinearity as PyTorch recommends it.

    Raises:
        ArgumentError: the name is unknown.

    Example:
        >>> calculate_gain("tanh")
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

    Raises:
        ShapeError: fewer than two dims.
    """
    if len(shape) < 2:
        raise ShapeError("fan", "a weight has at least two dims", got=shape)
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _fan(shape: tuple[int, ...], mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError("kaiming", "mode is fan_in or fan_out", got=mode)
    return fans(shape)[mode == "fan_out"]


def kaiming_uniform_(param: Target, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Target:
    """Fill from U(-bound, bound), bound = gain sqrt(3 / fan). Source: He et al. 2015."""
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / max(1, _fan(param.shape, mode)))
    return uniform_(param, -bound, bound)


def kaiming_normal_(param: Target, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Target:
    """Fill from N(0, std^2), std = gain / sqrt(fan). Source: He et al. 2015."""
    return normal_(param, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(max(1, _fan(param.shape, mode))))


def xavier_uniform_(param: Target, gain: float = 1.0) -> Target:
    """Fill from U(-bound, bound), bound = gain sqrt(6 / (fan_in + fan_out)). Source: Glorot 2010."""
    bound = gain * math.sqrt(6.0 / max(1, sum(fans(param.shape))))
    return uniform_(param, -bound, bound)


def xavier_normal_(param: Target, gain: float = 1.0) -> Target:
    """Fill from N(0, std^2), std = gain sqrt(2 / (fan_in + fan_out)). Source: Glorot 2010."""
    return normal_(param, 0.0, gain * math.sqrt(2.0 / max(1, sum(fans(param.shape)))))


def orthogonal_(param: Target, gain: float = 1.0) -> Target:
    """Fill with gain times a (semi-)orthogonal matrix over the flattened trailing dims.

    Source: Saxe et al. 2013; QR of a normal matrix with signs fixed.
    """
    import numpy as np

    if len(param.shape) < 2:
        raise ShapeError("orthogonal_", "needs at least two dims", got=param.shape)
    from burn_std.dtypes import float64

    rows, cols = param.shape[0], math.prod(param.shape[1:])
    ctx = _plain(param)
    flat = ctx.to_numpy(ctx.normal(float64, (rows, cols), 0.0, 1.0, ctx.next_key()))
    q, r = np.linalg.qr(flat.T if rows < cols else flat)
    q = q * np.sign(np.diag(r))
    q = q.T if rows < cols else q
    param.set(ctx.cast(ctx.tensor_from_numpy(np.ascontiguousarray(gain * q).reshape(param.shape)), param.dtype))
    return param


def fresh(shape: tuple[int, ...], dtype: Any, device: Any) -> Tensor:
    """Return zeros for a parameter that an initializer fills next."""
    from burn_dispatch import Device

    ctx = (device or Device.default()).context
    made: Tensor = ctx.full(dtype or ctx.default_float, shape, 0)
    return made
