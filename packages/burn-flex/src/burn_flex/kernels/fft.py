"""Real Fourier transforms of any length and their adjoints; numpy keeps f32 in complex64."""

from __future__ import annotations

import numpy as np

from burn_flex.kernels.halves import Array, wide


def _complex(real: Array, imag: Array | None) -> Array:
    """Return real + i imag in the complex dtype of the same precision."""
    shape = real.shape if imag is None else np.broadcast_shapes(real.shape, imag.shape)
    out = np.zeros(shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    out.real = real
    if imag is not None:
        out.imag = imag
    return out


def _parts(z: Array) -> tuple[Array, Array]:
    return np.ascontiguousarray(z.real), np.ascontiguousarray(z.imag)


def _bins(array: Array, dim: int) -> Array:
    """Return the array with `dim` first: bins are then addressed by their number."""
    return np.moveaxis(array, dim, 0)


@wide("rfft")
def rfft(x: Array, dim: int, norm: str, n: int) -> tuple[Array, Array]:
    """n samples along dim (cut or padded with zeros) to n // 2 + 1 bins."""
    return _parts(np.fft.rfft(x, n, axis=dim, norm=norm))  # type: ignore[arg-type]


@wide("irfft")
def irfft(real: Array, imag: Array | None, dim: int, norm: str, n: int) -> Array:
    """Bins to n samples along dim."""
    return np.fft.irfft(_complex(real, imag), n, axis=dim, norm=norm)  # type: ignore[arg-type]


@wide("rfft_backward")
def rfft_backward(greal: Array, gimag: Array, dim: int, norm: str, n: int) -> Array:
    """g[j] = c * sum over k of greal[k] cos(2 pi j k / n) - gimag[k] sin(2 pi j k / n).

    irfft counts every inner bin twice (it stands for its mirror image too), so those are halved.
    """
    z = _complex(greal, gimag)
    _bins(z, dim)[1 : (n + 1) // 2] *= 0.5
    out = np.fft.irfft(z, n, axis=dim, norm="forward")
    return _scaled(out, n, {"backward": 0.0, "ortho": -0.5, "forward": -1.0}[norm])


@wide("irfft_backward")
def irfft_backward(g: Array, dim: int, norm: str, bins: int) -> tuple[Array, Array]:
    """Twice rfft(g) at inner bins, once at the ends, where the imaginary part is not read."""
    n = g.shape[dim]
    z = np.fft.rfft(g, axis=dim)
    _bins(z, dim)[1 : (n + 1) // 2] *= 2
    z = _scaled(z, n, {"backward": -1.0, "ortho": -0.5, "forward": 0.0}[norm])
    have = z.shape[dim]
    if bins != have:
        fitted = np.zeros((bins, *_bins(z, dim).shape[1:]), z.dtype)
        fitted[: min(bins, have)] = _bins(z, dim)[:bins]
        z = np.moveaxis(fitted, 0, dim)
    real, imag = _parts(z)
    ends = _bins(imag, dim)
    ends[:1] = 0
    if n % 2 == 0:
        ends[n // 2 : n // 2 + 1] = 0
    return real, imag


def _scaled(x: Array, n: int, power: float) -> Array:
    """Multiply a fresh array by n ** power."""
    if power:
        x *= float(n) ** power
    return x
