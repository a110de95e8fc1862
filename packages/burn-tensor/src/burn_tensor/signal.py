"""Windows, and the short-time Fourier transform of real signals; spectra are pairs of parts."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, pi
from typing import Any

from burn_dispatch import Device
from burn_std import ArgumentError, DType, DTypeError, ShapeError
from burn_tensor.arguments import as_int, both_parts, need_dim, need_tensor
from burn_tensor.creation import context_of, tensor
from burn_tensor.fft import RealImag, irfft, rfft
from burn_tensor.functional import pad
from burn_tensor.tensor import Tensor

# A window is computed value by value on the host.
_LONGEST = 1 << 26


def _window(
    op: str, length: int, periodic: bool, dtype: DType | None, device: Any,
    value: Callable[[float], float],
) -> Tensor:  # fmt: skip
    """Return values at k / n in [0, 1], where n is the length, or one less without its period."""
    count = as_int(op, "window_length", length)
    if not 0 <= count <= _LONGEST:
        raise ArgumentError(op, f"window_length is not negative, and {_LONGEST} at most", got=count)
    chosen = dtype or context_of(device).default_float
    if not chosen.is_float:
        raise DTypeError(op, "dtype must be float", got=chosen.name)
    n = count if periodic else count - 1
    # One value is 1, whatever the period.
    values = [value(k / n) if count > 1 else 1.0 for k in range(count)]
    return tensor(values, dtype=chosen, device=device)


def hann_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None,
    device: Device | str | None = None,
) -> Tensor:  # fmt: skip
    """Return Hann's window, 1/2 - 1/2 cos(2 pi k / n).

    Args:
        window_length: how many values.
        periodic: one period of it, for spectra; else symmetric.
        dtype: a float dtype; else the default float.
        device: where it is made.

    Example:
        >>> burn.hann_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", window_length, periodic, dtype, device,
                   lambda t: 0.5 - 0.5 * cos(2 * pi * t))  # fmt: skip


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
    dtype: DType | None = None, device: Device | str | None = None,
) -> Tensor:  # fmt: skip
    """Return Hamming's window, alpha - beta cos(2 pi k / n).

    Args:
        window_length: how many values.
        periodic: one period of it, for spectra; else symmetric.
        alpha: its mean.
        beta: its swing.
        dtype: a float dtype; else the default float.
        device: where it is made.

    Example:
        >>> burn.hamming_window(2)
        tensor([0.0800, 1.0000])
    """
    return _window("hamming_window", window_length, periodic, dtype, device,
                   lambda t: alpha - beta * cos(2 * pi * t))  # fmt: skip


def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None,
    device: Device | str | None = None,
) -> Tensor:  # fmt: skip
    """Return Blackman's window, 0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n).

    Args:
        window_length: how many values.
        periodic: one period of it, for spectra; else symmetric.
        dtype: a float dtype; else the default float.
        device: where it is made.

    Example:
        >>> burn.blackman_window(4).tolist()[2]
        1.0
    """
    return _window("blackman_window", window_length, periodic, dtype, device,
                   lambda t: 0.42 - 0.5 * cos(2 * pi * t) + 0.08 * cos(4 * pi * t))  # fmt: skip


def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None,
    device: Device | str | None = None,
) -> Tensor:  # fmt: skip
    """Return Bartlett's window, a triangle.

    Args:
        window_length: how many values.
        periodic: one period of it, for spectra; else symmetric.
        dtype: a float dtype; else the default float.
        device: where it is made.

    Example:
        >>> burn.bartlett_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("bartlett_window", window_length, periodic, dtype, device,
                   lambda t: 1 - abs(2 * t - 1))  # fmt: skip


def _frame(
    op: str, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None
) -> tuple[int, int, Tensor | None]:
    """Return (n_fft, hop, window of n_fft values)."""
    size = as_int(op, "n_fft", n_fft)
    hop = size // 4 if hop_length is None else as_int(op, "hop_length", hop_length)
    width = size if win_length is None else as_int(op, "win_length", win_length)
    if not (size > 0 and hop > 0 and 0 < width <= size):
        raise ArgumentError(
            op, "n_fft and hop_length are positive, win_length in [1, n_fft]",
            got=f"n_fft {size}, hop_length {hop}, win_length {width}",
        )  # fmt: skip
    if window is None:
        if width == size:
            return size, hop, None
        raise ArgumentError(
            op, "a win_length needs a window", got="None", remedy="Pass burn.ones(win_length)."
        )
    if window.shape != (width,):
        raise ShapeError(op, f"window is [{width}]", got=list(window.shape))
    before = (size - width) // 2
    return size, hop, pad(window, (before, size - width - before))


def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect",
    normalized: bool = False,
) -> RealImag:  # fmt: skip
    """Return the spectra of overlapping frames of real signals.

    Args:
        input: signals.
        n_fft: samples of a frame.
        hop_length: distance of frames; None is n_fft // 4.
        win_length: extent of the window, in the middle of a frame; None is n_fft.
        window: what frames are multiplied with; ones if None.
        center: frames are about their times: n_fft // 2 samples are added at both ends.
        pad_mode: how, as in `burn.functional.pad`.
        normalized: divide by sqrt(n_fft).

    Shapes:
        input: [*, L]
        returns: a pair of [*, n_fft // 2 + 1, frames]

    DTypes: floats.

    Raises:
        ShapeError: a signal is shorter than a frame, or the window is not of its extent.
        ArgumentError: extents that are not positive, or no window for a win_length.

    Gradient: defined for input and window.

    Example:
        >>> burn.stft(burn.ones(8), 4, center=False).real.shape
        (3, 5)
    """
    need_tensor("stft", "input", input)
    size, hop, weights = _frame("stft", n_fft, hop_length, win_length, window)
    x = input
    need_dim("stft", x)
    if center:
        x = pad(x, (size // 2, size // 2), mode=pad_mode)
    if x.shape[-1] < size:
        raise ShapeError("stft", "a signal has n_fft samples at least", got=f"{x.shape[-1]}")
    frames = x.unfold(-1, size, hop)
    if weights is not None:
        frames = frames * weights
    real, imag = rfft(frames, norm="ortho" if normalized else None)
    return RealImag(real.transpose(-1, -2), imag.transpose(-1, -2))


def istft(
    input: tuple[Tensor, Tensor], n_fft: int, hop_length: int | None = None,
    win_length: int | None = None, window: Tensor | None = None, center: bool = True,
    normalized: bool = False, length: int | None = None,
) -> Tensor:  # fmt: skip
    """Return the signals of spectra: the reverse of `stft`, where frames agree.

    Overlapping frames are added, weighted by the window, and divided by the sum of its squares,
    whose least value is read on the host.

    Args:
        input: the real and imaginary parts that `stft` returns.
        n_fft: samples of a frame.
        hop_length: distance of frames; None is n_fft // 4.
        win_length: extent of the window, in the middle of a frame; None is n_fft.
        window: what the frames were multiplied with; ones if None.
        center: the frames were about their times.
        normalized: the spectra were divided by sqrt(n_fft).
        length: samples of a signal; None is as many as the frames cover.

    Shapes:
        input: a pair of [*, n_fft // 2 + 1, frames]
        returns: [*, L]

    DTypes: floats.

    Raises:
        DTypeError: input is no pair of tensors.
        ShapeError: the spectra are not of n_fft // 2 + 1 bins.
        ArgumentError: the window leaves samples out, so nothing is known of them.

    Gradient: defined for input and window.

    Example:
        >>> x = burn.arange(16).float()
        >>> spectrum = burn.stft(x, 8, window=burn.hann_window(8))
        >>> burn.istft(spectrum, 8, window=burn.hann_window(8)).round(decimals=3).equal(x)
        True
    """
    real, imag = both_parts("istft", input)
    size, hop, weights = _frame("istft", n_fft, hop_length, win_length, window)
    if len(real.shape) < 2 or real.shape[-2] != size // 2 + 1 or not real.shape[-1]:
        raise ShapeError("istft", f"spectra are [*, {size // 2 + 1}, frames]", got=list(real.shape))
    count = real.shape[-1]
    parts = (real.transpose(-1, -2), imag.transpose(-1, -2))
    frames = irfft(parts, n=size, norm="ortho" if normalized else None)
    if weights is None:
        weights = frames.new_ones(size)
    total = size + hop * (count - 1)
    signal = _overlapped(frames * weights, hop, total)
    envelope = _overlapped((weights * weights).expand(count, size), hop, total)
    start = size // 2 if center else 0
    known = total - (2 * start if length is None and center else start)
    wanted = known if length is None else as_int("istft", "length", length)
    covered = min(wanted, total - start)
    envelope = envelope.narrow(0, start, covered)
    if covered < 1 or envelope.detach().min().item() < 1e-11:
        raise ArgumentError(
            "istft", "every sample is in a frame whose window is not 0 there",
            got=f"hop_length {hop}, n_fft {size}, {count} frames",
            remedy="Use a shorter hop_length, or another window.",
        )  # fmt: skip
    out = signal.narrow(-1, start, covered) / envelope
    return out if covered == wanted else pad(out, (0, wanted - covered))


def _overlapped(frames: Tensor, hop: int, total: int) -> Tensor:
    """Return frames [*, count, size] added at their places, [*, total]."""
    shape = (*frames.shape[:-2], total)
    b, size = frames.b, frames.shape[-1]
    return b.unfold_dim_backward(frames, len(shape) - 1, size, hop, shape)
