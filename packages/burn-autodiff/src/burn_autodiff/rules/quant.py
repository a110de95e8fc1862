"""Rules of quantisation: straight through, so a quantised forward trains its float source."""

from __future__ import annotations

from burn_autodiff.rules.pieces import at, keep_where, refuse
from burn_autodiff.rules.table import Call, Grads, Tensor, rule


@rule("quantize", saves="x scale zero")
def quantize(c: Call, g: Tensor, x: Tensor, scale: Tensor, zero: Tensor) -> Grads:
    """1 where x / scale + zero rounds into the range of the scheme, else 0."""
    refuse(c, "quantize", 1, "scale")
    ops, dtype = c.ops, c.attrs[0]
    g = ops.cast(g, x.dtype) if g.dtype is not x.dtype else g
    if scale is None:
        return g, None, None
    scale = _per_element(c, scale, x.shape, dtype.block)
    level = ops.div(x, ops.cast(scale, x.dtype))
    if zero is not None and not dtype.symmetric:
        level = ops.add(level, ops.cast(_per_element(c, zero, x.shape, dtype.block), x.dtype))
    inside = ops.logical_and(ops.ge(level, dtype.qmin - 0.5), ops.le(level, dtype.qmax + 0.5))
    return keep_where(c, inside, g), None, None


def _per_element(c: Call, t: Tensor, shape: tuple[int, ...], block: int) -> Tensor:
    """Return values of blocks of the last dim repeated over their elements."""
    if not block or not t.shape:
        return t
    each = c.ops.expand(c.ops.unsqueeze(t, (len(t.shape),)), (*t.shape, block))
    rows = c.ops.reshape(each, (*t.shape[:-1], t.shape[-1] * block))
    return c.ops.reshape(at(c, rows, len(t.shape) - 1, 0, shape[-1] if shape else 1), shape)


@rule("dequantize")
def dequantize(c: Call, g: Tensor) -> Grads:
    """1: the cotangent of a quantised tensor is the float cotangent of its values."""
    return g
