"""Rules of real Fourier transforms: linear, so each adjoint is the other's rule."""

from __future__ import annotations

from typing import Any

from burn_autodiff.rules.pieces import fit, zeros
from burn_autodiff.rules.table import Call, Grads, Tensor, rule


def _both(c: Call, g: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    real, imag = g
    if real is None:
        return zeros(c, imag.shape, imag), imag
    return real, zeros(c, real.shape, real) if imag is None else imag


def _extent(shape: tuple[int, ...], dim: int, n: int) -> tuple[int, ...]:
    return (*shape[:dim], n, *shape[dim + 1 :])


@rule("rfft")
def rfft(c: Call, g: Any) -> Grads:
    """The adjoint over n samples, cropped or padded to x as x was to n."""
    dim, norm, n = c.attrs
    return fit(c, c.ops.rfft_backward(*_both(c, g), dim, norm, n), c.shapes[0])


@rule("rfft_backward")
def rfft_backward(c: Call, g: Tensor) -> Grads:
    """The transform of g."""
    return c.ops.rfft(g, *c.attrs)


@rule("irfft")
def irfft(c: Call, g: Tensor) -> Grads:
    """The adjoint over n // 2 + 1 bins, cropped or padded to the bins that were given."""
    dim, norm, n = c.attrs
    real, imag = c.ops.irfft_backward(g, dim, norm, n // 2 + 1)
    return (
        fit(c, real, c.shapes[0]) if c.need[0] else None,
        fit(c, imag, c.shapes[1]) if c.need[1] else None,
    )


@rule("irfft_backward")
def irfft_backward(c: Call, g: Any) -> Grads:
    """The inverse transform of g, over as many samples."""
    dim, norm, _ = c.attrs
    real, imag = _both(c, g)
    return c.ops.irfft(real, imag, dim, norm, c.shapes[0][dim])
