"""Products, transforms and inverses written in other operations."""

from __future__ import annotations

from burn_ir.catalog.decompose import (
    Ints,
    Ops,
    Tensor,
    count_up,
    in_f32,
    placed,
    swap_last,
    zeros,
)


def linear(ops: Ops, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return x @ weight.T + bias; of halves the product is rounded before the bias is added.

    A product of halves adds in f32 and is what tensor cores are for; one of f32 is not.
    """
    out = ops.matmul(x, swap_last(ops, weight) if len(weight.shape) == 2 else weight)
    return out if bias is None else ops.add(out, bias)


def quantized_matmul(
    ops: Ops, x: Tensor, weight: Tensor, bias: Tensor | None, transpose: bool
) -> Tensor:
    """Return the product by the matrix that a quantised one stands for."""
    plain = ops.dequantize(weight, x.dtype)
    if transpose:
        return ops.linear(x, plain, bias)
    out = ops.matmul(x, plain)
    return out if bias is None else ops.add(out, bias)


def cross(ops: Ops, x: Tensor, y: Tensor, dim: int) -> Tensor:
    """Return x[1] y[2] - x[2] y[1] and its two turns, along dim."""
    (x1, x2), (y1, y2) = (
        tuple(ops.index(t, (_turn(ops, by),), (dim,)) for by in (1, 2)) for t in (x, y)
    )
    return ops.sub(ops.mul(x1, y2), ops.mul(x2, y1))


def _turn(ops: Ops, by: int) -> Tensor:
    return ops.remainder(count_up(ops, 3, by), 3)


def conv_transpose(
    ops: Ops,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    dilation: Ints,
    groups: int,
) -> Tensor:
    """Return the gradient of a conv with respect to its input, plus bias, as `linear` does.

    Output padding of a whole stride or more is no conv's remainder; then the gradient is taken
    without padding and cut or filled to size.
    """
    full = tuple(
        (n - 1) * s + d * (k - 1) + 1
        for n, k, s, d in zip(x.shape[2:], weight.shape[2:], stride, dilation, strict=True)
    )
    sizes = tuple(n - 2 * p + o for n, p, o in zip(full, padding, output_padding, strict=True))
    lead = (x.shape[0], weight.shape[1] * groups)
    shape = (*lead, *sizes)
    if 0 in x.shape:
        out = zeros(ops, x.dtype, shape)
    elif any(o >= s for o, s in zip(output_padding, stride, strict=True)):
        none = (0,) * len(full)
        wide = ops.conv_input_grad(x, weight, stride, none, dilation, groups, (*lead, *full))
        ends = ((-p, o - p) for p, o in zip(padding, output_padding, strict=True))
        out = ops.pad(wide, "constant", ((0, 0), (0, 0), *ends), 0)
    else:
        out = ops.conv_input_grad(x, weight, stride, padding, dilation, groups, shape)
    return out if bias is None else ops.add(out, placed(ops, bias, 1, len(shape)))


_INVERSE = {"forward": "backward", "backward": "forward", "ortho": "ortho"}


def _bin_weights(ops: Ops, x: Tensor, dim: int, n: int, inner: float) -> Tensor:
    """Return 1 for the bins that occur once (0 and n / 2), else `inner`, along dim."""
    bins = count_up(ops, x.shape[dim])
    once = ops.eq(bins, 0)
    if n % 2 == 0:
        once = ops.bitwise_or(once, ops.eq(bins, n // 2))
    weights = ops.where(once, ops.full(x.dtype, (), 1.0), inner)
    return placed(ops, weights, dim, len(x.shape))


@in_f32()
def rfft_backward(ops: Ops, greal: Tensor, gimag: Tensor, dim: int, norm: str, n: int) -> Tensor:
    """Return the inverse transform of g with the doubled bins halved."""
    weights = _bin_weights(ops, greal, dim, n, 0.5)
    inverse = _INVERSE[norm]
    return ops.irfft(ops.mul(greal, weights), ops.mul(gimag, weights), dim, inverse, n)


@in_f32()
def irfft_backward(ops: Ops, g: Tensor, dim: int, norm: str, bins: int) -> tuple[Tensor, Tensor]:
    """Return the transform of g with the bins that occur twice doubled, cut or padded to bins."""
    n = g.shape[dim]
    parts = ops.rfft(g, dim, _INVERSE[norm], n)
    weights = _bin_weights(ops, parts[0], dim, n, 2.0)
    grown = bins - (n // 2 + 1)
    pads = tuple((0, grown if i == dim else 0) for i in range(len(g.shape)))
    real, imag = (
        ops.pad(ops.mul(p, weights), "constant", pads, 0) if grown else ops.mul(p, weights)
        for p in parts
    )
    return real, imag


@in_f32()
def inverse(ops: Ops, x: Tensor) -> Tensor:
    """Return the solution of x y = identity."""
    n = x.shape[-1]
    at = count_up(ops, n)
    same = ops.eq(placed(ops, at, 0, 2), placed(ops, at, 1, 2))
    return ops.solve(x, ops.expand(ops.cast(same, x.dtype), tuple(x.shape)))
