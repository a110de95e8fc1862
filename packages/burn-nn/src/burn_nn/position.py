"""Positional encodings: sinusoids that are added, and rotations of queries and keys."""

from __future__ import annotations

import math
from collections.abc import Callable

from burn_core import Buffer, Module
from burn_dispatch import Device
from burn_std import ArgumentError, DType, ShapeError
from burn_std.dtypes import float32
from burn_tensor import Tensor, arange, cat, stack


def generate_sinusoids(
    length: int, d_model: int, max_timescale: float = 10000.0, device: Device | None = None
) -> Tensor:
    """Return sines and cosines of positions, alternating along the features.

    table[t, 2 i] = sin(t / max_timescale^(2 i / d_model)), table[t, 2 i + 1] = cos of the same

    Args:
        length: positions.
        d_model: features; even.
        max_timescale: longest wavelength over 2 pi.
        device: where it is made; the default device if None.

    Raises:
        ArgumentError: d_model is odd or no positive number, or max_timescale not positive.

    Example:
        >>> burn.nn.generate_sinusoids(1, 4).tolist()
        [[0.0, 1.0, 0.0, 1.0]]

    Source: Vaswani et al. 2017, section 3.5
    """
    if d_model % 2 or d_model < 1:
        raise ArgumentError("generate_sinusoids", "d_model is even and positive", got=d_model)
    if not max_timescale > 0:
        raise ArgumentError("generate_sinusoids", "max_timescale is positive", got=max_timescale)
    plain = None if device is None else device.without_autodiff()
    steps = arange(0, d_model, 2, dtype=float32, device=plain)
    rates = (steps * (-math.log(max_timescale) / d_model)).exp()
    angles = arange(length, dtype=float32, device=plain).unsqueeze(1) * rates
    return stack([angles.sin(), angles.cos()], -1).flatten(1)


class PositionalEncoding(Module):
    """Add sinusoids of the position.

    Args:
        d_model: features; even.
        max_len: most positions.
        max_timescale: longest wavelength over 2 pi.
        device: where the table lives; the default device if None.
        dtype: of the table; the device's default float if None.

    Shapes:
        input: [N, L, d_model]; returns the same

    Raises:
        ArgumentError: d_model is odd or no positive number, or max_timescale not positive.
        ShapeError: more positions than max_len, or other features.

    Example:
        >>> burn.nn.PositionalEncoding(4)(burn.zeros(1, 1, 4)).tolist()
        [[[0.0, 1.0, 0.0, 1.0]]]

    Source: Vaswani et al. 2017, section 3.5
    """

    def __init__(
        self, d_model: int, max_len: int = 5000, max_timescale: float = 10000.0,
        device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        self.d_model = d_model
        self.max_len = max_len
        table = generate_sinusoids(max_len, d_model, max_timescale, device)
        wanted = dtype or table.b.default_float
        self.sinusoids = Buffer(table.to(wanted), persistent=False)

    def forward(self, input: Tensor, start: int = 0) -> Tensor:
        """Return the input with its positions added.

        Args:
            input: the sequence.
            start: position of its first element.
        """
        if len(input.shape) < 2:
            raise ShapeError("PositionalEncoding", "needs [L, d_model]", got=input.shape)
        length = input.shape[-2]
        if start + length > self.max_len or input.shape[-1] != self.d_model:
            raise ShapeError(
                "PositionalEncoding", f"up to {self.max_len} positions of {self.d_model} features",
                got=f"{input.shape} from position {start}",
            )  # fmt: skip
        return input + self.sinusoids[start : start + length].to(input.dtype)


class RotaryEncoding(Module):
    """Rotate pairs of features by angles that grow with the position.

    Scalar products of rotated queries and keys depend on the distance of their positions.

    Args:
        max_len: most positions.
        head_dim: features of a head; even.
        theta: base of the wavelengths.
        interleaved: pairs are neighbours (2 i, 2 i + 1); else (i, i + head_dim / 2), as in
            checkpoints of Llama.
        frequency_scaling: takes and returns the frequencies [head_dim / 2], for longer contexts.
        device: where the tables live; the default device if None.
        dtype: of the tables; float32 if None.

    Shapes:
        input: [..., L, head_dim]; returns the same

    Raises:
        ArgumentError: head_dim is odd or no positive number, or theta not positive.
        ShapeError: more positions than max_len, or other features.

    Example:
        >>> rotary = burn.nn.RotaryEncoding(16, 4)
        >>> x = burn.ones(1, 2, 3, 4)
        >>> y = rotary(x)
        >>> y.shape, bool(((y * y).sum(-1) - 4.0).abs().max() < 1e-5)
        ((1, 2, 3, 4), True)

    Source: Su et al., RoFormer, 2021
    """

    def __init__(
        self, max_len: int, head_dim: int, theta: float = 10000.0, interleaved: bool = True,
        frequency_scaling: Callable[[Tensor], Tensor] | None = None,
        device: Device | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        if head_dim % 2 or head_dim < 1:
            raise ArgumentError("RotaryEncoding", "head_dim is even and positive", got=head_dim)
        if not theta > 0:
            raise ArgumentError("RotaryEncoding", "theta is positive", got=theta)
        self.max_len = max_len
        self.head_dim = head_dim
        self.interleaved = interleaved
        plain = None if device is None else device.without_autodiff()
        steps = arange(0, head_dim, 2, dtype=float32, device=plain)
        rates = (steps * (-math.log(theta) / head_dim)).exp()
        if frequency_scaling is not None:
            rates = frequency_scaling(rates)
        angles = arange(max_len, dtype=float32, device=plain).unsqueeze(1) * rates
        self.cosines = Buffer(angles.cos().to(dtype or float32), persistent=False)
        self.sines = Buffer(angles.sin().to(dtype or float32), persistent=False)

    def forward(self, input: Tensor, start: int = 0) -> Tensor:
        """Return the input rotated.

        Args:
            input: queries or keys.
            start: position of the first element.
        """
        if len(input.shape) < 2:
            raise ShapeError("RotaryEncoding", "needs [..., L, head_dim]", got=input.shape)
        length = input.shape[-2]
        if start + length > self.max_len or input.shape[-1] != self.head_dim:
            raise ShapeError(
                "RotaryEncoding", f"up to {self.max_len} positions of {self.head_dim} features",
                got=f"{input.shape} from position {start}",
            )  # fmt: skip
        # Angles lose their meaning in 16 bits, so the rotation is done in the table's dtype.
        cos, sin = (t[start : start + length] for t in (self.cosines, self.sines))
        x = input.to(cos.dtype) if input.dtype.bits < cos.dtype.bits else input
        if self.interleaved:
            even, odd = x[..., 0::2], x[..., 1::2]
            out = stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)
        else:
            low, high = x.chunk(2, -1)
            out = cat([low * cos - high * sin, high * cos + low * sin], -1)
        return out.to(input.dtype)
