"""Fourier transforms of real signals; complex numbers are pairs of real and imaginary parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from burn_dispatch import Device
from burn_std import ArgumentError, DType, ShapeError, missing_name as _missing_name
from burn_tensor.arguments import as_int, as_number, both_parts, one_dim, some_dims
from burn_tensor.functional.values import in_dtype
from burn_tensor.guard import guard_names
from burn_tensor.methods import as_tensor
from burn_tensor.tensor import Tensor

__all__ = ["RealImag", "fftfreq", "fftshift", "ifftshift", "irfft", "rfft", "rfftfreq"]

_NORMS = {None: "backward", "backward": "backward", "ortho": "ortho", "forward": "forward"}


class RealImag(NamedTuple):
    """The parts of complex numbers.

    Attributes:
        real: real parts.
        imag: imaginary parts.
    """

    real: Tensor
    imag: Tensor


def _norm(op: str, norm: str | None) -> str:
    found = _NORMS.get(norm)
    if found is None:
        raise ArgumentError(op, "norm is backward, ortho or forward", got=repr(norm))
    return found


def _dim(op: str, input: Tensor, dim: int) -> int:
    shape = input.shape
    if not shape:
        raise ShapeError(op, "needs at least one dim", got="a rank-0 tensor")
    return one_dim(op, dim, len(shape))


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> RealImag:
    """Return the first n // 2 + 1 bins of the discrete Fourier transform of real signals.

    X[k] = sum over t of x[t] exp(-2 pi i k t / n)

    Args:
        input: signals.
        n: samples; the input is cut or padded with zeros to it. None is its extent.
        dim: the dim of a signal.
        norm: `backward` (None) divides in `irfft`, `forward` here, `ortho` by sqrt(n) in both.

    Shapes:
        input: [*, L, *]
        returns: a pair of [*, n // 2 + 1, *]

    DTypes: floats; ints and bools become the default float.

    Raises:
        ShapeError: a rank-0 input, or n is not positive.
        ArgumentError: the norm is unknown.

    Gradient: defined.

    Example:
        >>> burn.fft.rfft(burn.tensor([1.0, 1.0])).real.tolist()
        [2.0, 0.0]
    """
    dim = _dim("rfft", input, dim)
    n = input.shape[dim] if n is None else n
    real, imag = input.b.rfft(input, dim, _norm("rfft", norm), n)
    return RealImag(real, imag)


def irfft(
    input: Tensor | tuple[Tensor, Tensor],
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    imag: Tensor | None = None,
) -> Tensor:
    """Return the real signals whose `rfft` has these bins.

    Args:
        input: real parts, or the pair that `rfft` returned.
        n: samples of the result; None is 2 (bins - 1).
        dim: the dim of the bins.
        norm: as in `rfft`.
        imag: imaginary parts; None is zero. Those of the first and, for even n, the last bin
            have no effect.

    Shapes:
        input, imag: [*, bins, *]
        returns: [*, n, *]

    DTypes: floats; ints and bools become the default float.

    Raises:
        ShapeError: a rank-0 input, or n is not positive.
        DTypeError: input is neither a tensor nor a pair of two.
        ArgumentError: the norm is unknown, or imaginary parts are given twice.

    Gradient: defined for both parts.

    Example:
        >>> burn.fft.irfft(burn.tensor([2.0, 0.0])).tolist()
        [1.0, 1.0]
    """
    if isinstance(input, Tensor):
        real = input
    elif imag is None:
        real, imag = both_parts("irfft", input)
    else:
        raise ArgumentError("irfft", "imaginary parts are given once", got="a pair and imag")
    dim = _dim("irfft", real, dim)
    n = 2 * (real.shape[dim] - 1) if n is None else n
    return real.b.irfft(real, imag, dim, _norm("irfft", norm), n)


def _frequencies(op: str, n: int, d: float, dtype: DType | None, device: Device | None) -> Tensor:
    n, d = as_int(op, "n", n), as_number(op, "d", d)
    if n < 1 or d == 0:
        raise ArgumentError(op, "n must be positive and d not 0", got=f"n {n}, d {d}")
    if op == "fftfreq":
        counts = np.concatenate([np.arange((n + 1) // 2), np.arange(-(n // 2), 0)])
    else:
        counts = np.arange(n // 2 + 1)
    context = (Device.default() if device is None else device).context
    out = as_tensor(context.tensor_from_numpy(np.asarray(counts, np.float64) / (n * d)))
    return in_dtype(out, context.default_float if dtype is None else dtype)


def fftfreq(
    n: int, d: float = 1.0, *, dtype: DType | None = None, device: Device | None = None
) -> Tensor:
    """Return the frequencies of the n bins of a full transform, in cycles per unit of d.

    Args:
        n: samples.
        d: distance of samples.
        dtype: float of the result; None is the default float.
        device: where it is made; None is the default device.

    Shapes:
        returns: [n]

    DTypes: floats.

    Raises:
        ArgumentError: n is not positive, or d is 0.

    Gradient: none.

    Example:
        >>> burn.fft.fftfreq(4).tolist()
        [0.0, 0.25, -0.5, -0.25]
    """
    return _frequencies("fftfreq", n, d, dtype, device)


def rfftfreq(
    n: int, d: float = 1.0, *, dtype: DType | None = None, device: Device | None = None
) -> Tensor:
    """Return the frequencies of the bins of `rfft`, in cycles per unit of d.

    Args:
        n: samples.
        d: distance of samples.
        dtype: float of the result; None is the default float.
        device: where it is made; None is the default device.

    Shapes:
        returns: [n // 2 + 1]

    DTypes: floats.

    Raises:
        ArgumentError: n is not positive, or d is 0.

    Gradient: none.

    Example:
        >>> burn.fft.rfftfreq(4).tolist()
        [0.0, 0.25, 0.5]
    """
    return _frequencies("rfftfreq", n, d, dtype, device)


def _shifted(op: str, input: Tensor, dim: Any, sign: int) -> Tensor:
    rank = len(input.shape)
    dims = some_dims(op, dim, rank)
    at = tuple(range(rank)) if dims is None else dims
    halves = tuple([
        input.shape[d] // 2 if sign > 0 else -(input.shape[d] // 2) for d in at
    ])  # fmt: skip
    return input.b.roll(input, at, halves)


def fftshift(input: Tensor, dim: int | tuple[int, ...] | None = None) -> Tensor:
    """Return the bins with frequency 0 moved to the middle.

    Args:
        input: bins of full transforms.
        dim: the dims to shift; None is all.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: any.

    Raises:
        IndexRangeError: dim is out of range.

    Gradient: defined.

    Example:
        >>> burn.fft.fftshift(burn.tensor([0, 1, -2, -1])).tolist()
        [-2, -1, 0, 1]
    """
    return _shifted("fftshift", input, dim, 1)


def ifftshift(input: Tensor, dim: int | tuple[int, ...] | None = None) -> Tensor:
    """Return the inverse of `fftshift`.

    Args:
        input: shifted bins.
        dim: the dims to shift back; None is all.

    Shapes:
        input: [*]
        returns: [*]

    DTypes: any.

    Raises:
        IndexRangeError: dim is out of range.

    Gradient: defined.

    Example:
        >>> burn.fft.ifftshift(burn.tensor([-2, -1, 0, 1])).tolist()
        [0, 1, -2, -1]
    """
    return _shifted("ifftshift", input, dim, -1)


guard_names(globals(), __all__)

if not TYPE_CHECKING:
    # What PyTorch has under this name, and what to write instead.
    _OTHERWISE = dict.fromkeys(
        ("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn",
         "hfft", "ihfft"),
        "Signals are real and of one dim: burn.fft.rfft(x) gives (real, imag), and "
        "burn.fft.irfft(real, imag) goes back.",
    )  # fmt: skip

    def __getattr__(name: str) -> object:
        """Say what to write instead of a name that is not here."""
        raise _missing_name("burn.fft", name, __all__, _OTHERWISE)
