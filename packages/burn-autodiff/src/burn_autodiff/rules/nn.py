"""Rules of convolution, pooling and resampling: linear maps, so pairs of adjoints."""

from __future__ import annotations

from typing import Any

from burn_autodiff.rules.pieces import fit
from burn_autodiff.rules.table import Call, Grads, Tensor, rule
from burn_std import AutodiffError

# ---- convolution --------------------------------------------------------------------------------


def _bias(c: Call, g: Tensor) -> Tensor:
    return c.ops.sum(g, (0, *range(2, len(g.shape))), False, None) if c.need[2] else None


@rule("conv", saves="x:weight weight:x")
def conv(c: Call, g: Tensor, x: Tensor, weight: Tensor) -> Grads:
    """With y = C(x, w) bilinear: dx = C_x'(g, w), dw = C_w'(g, x), dbias = g summed."""
    gx = gw = None
    if c.need[0]:
        gx = c.ops.conv_input_grad(g, weight, *c.attrs, c.shapes[0])
    if c.need[1]:
        gw = c.ops.conv_weight_grad(g, x, *c.attrs, c.shapes[1])
    return gx, gw, _bias(c, g)


@rule("conv_transpose", saves="x:weight weight:x")
def conv_transpose(c: Call, g: Tensor, x: Tensor, weight: Tensor) -> Grads:
    """Y = C_x'(x, w): dx = C(g, w), dw = C_w'(x, g), dbias = g summed."""
    stride, padding, _, dilation, groups = c.attrs
    how = (stride, padding, dilation, groups)
    gx = gw = None
    if 0 in c.shapes[0][2:]:  # an empty signal has no windows for the products below
        gx = c.ops.full(c.dtypes[0], c.shapes[0], 0) if c.need[0] else None
        gw = c.ops.full(c.dtypes[1], c.shapes[1], 0) if c.need[1] else None
        return gx, gw, _bias(c, g)
    if c.need[0]:
        # An output padding of a stride or more leaves room for windows beyond those of x.
        gx = fit(c, c.ops.conv(g, weight, None, *how), c.shapes[0])
    if c.need[1]:
        kernel = c.shapes[1]
        windows = tuple(
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(
                g.shape[2:], kernel[2:], stride, padding, dilation, strict=True
            )
        )
        gw = c.ops.conv_weight_grad(fit(c, x, (*x.shape[:2], *windows)), g, *how, kernel)
    return gx, gw, _bias(c, g)


@rule("conv_input_grad", saves="g weight")
def conv_input_grad(c: Call, g: Tensor, grad: Tensor, weight: Tensor) -> Grads:
    """C_x'(g, w): dg = C(h, w), dw = C_w'(g, h) for a cotangent h."""
    how = c.attrs[:4]
    gg = gw = None
    if c.need[0]:
        gg = fit(c, c.ops.conv(g, weight, None, *how), grad.shape)
    if c.need[1]:
        gw = c.ops.conv_weight_grad(grad, g, *how, weight.shape)
    return gg, gw


@rule("conv_weight_grad", saves="g x")
def conv_weight_grad(c: Call, g: Tensor, grad: Tensor, x: Tensor) -> Grads:
    """C_w'(g, x): dg = C(x, h), dx = C_x'(g, h) for a cotangent h."""
    how = c.attrs[:4]
    gg = gx = None
    if c.need[0]:
        gg = fit(c, c.ops.conv(x, g, None, *how), grad.shape)
    if c.need[1]:
        gx = c.ops.conv_input_grad(grad, g, *how, x.shape)
    return gg, gx


# ---- pooling ------------------------------------------------------------------------------------


# Indices that lie anywhere in their plane.
_ANYWHERE: tuple[tuple[int, ...], ...] = ((), (), (), ())


@rule("max_pool", saves="indices")
def max_pool(c: Call, g: Any, indices: Tensor) -> Grads:
    """G added at the positions of the maxima, each in its window."""
    return c.ops.max_pool_backward(g[0], indices, *c.attrs[:4], c.shapes[0])


@rule("adaptive_max_pool", saves="indices")
def adaptive_max_pool(c: Call, g: Any, indices: Tensor) -> Grads:
    """G added at the positions of the maxima."""
    return c.ops.max_pool_backward(g[0], indices, *_ANYWHERE, c.shapes[0])


@rule("max_pool_backward", saves="indices")
def max_pool_backward(c: Call, g: Tensor, indices: Tensor) -> Grads:
    """G read at the positions of the maxima."""
    return c.ops.pool_gather(g, indices), None


@rule("pool_gather", saves="indices")
def pool_gather(c: Call, g: Tensor, indices: Tensor) -> Grads:
    """G added at the positions of the maxima."""
    return c.ops.max_pool_backward(g, indices, *_ANYWHERE, c.shapes[0]), None


@rule("avg_pool")
def avg_pool(c: Call, g: Tensor) -> Grads:
    """Each window's g spread over it."""
    return c.ops.avg_pool_backward(g, *c.attrs, c.shapes[0])


@rule("avg_pool_backward")
def avg_pool_backward(c: Call, g: Tensor) -> Grads:
    """Means of g's windows."""
    return c.ops.avg_pool(g, *c.attrs[:-1])


@rule("adaptive_avg_pool")
def adaptive_avg_pool(c: Call, g: Tensor) -> Grads:
    """Each window's g spread over it."""
    return c.ops.adaptive_avg_pool_backward(g, c.shapes[0])


@rule("adaptive_avg_pool_backward")
def adaptive_avg_pool_backward(c: Call, g: Tensor) -> Grads:
    """Means of g's windows."""
    return c.ops.adaptive_avg_pool(g, c.shapes[0][2:])


# ---- resampling and windows ---------------------------------------------------------------------


@rule("interpolate")
def interpolate(c: Call, g: Tensor) -> Grads:
    """The transpose of the weights on g."""
    return c.ops.interpolate_backward(g, *c.attrs, c.shapes[0])


@rule("interpolate_backward")
def interpolate_backward(c: Call, g: Tensor) -> Grads:
    """The weights on g."""
    return c.ops.interpolate(g, *c.attrs[:4])


@rule("grid_sample", saves="x grid")
def grid_sample(c: Call, g: Tensor, x: Tensor, grid: Tensor) -> Grads:
    """dx: g spread with the weights; dgrid: the weights' slopes times x, times g."""
    gx, ggrid = c.ops.grid_sample_backward(g, x, grid, *c.attrs)
    return gx if c.need[0] else None, ggrid if c.need[1] else None


@rule("unfold")
def unfold(c: Call, g: Tensor) -> Grads:
    """Columns back to windows, overlaps added."""
    return c.ops.fold(g, *c.attrs, c.shapes[0][2:])


@rule("fold")
def fold(c: Call, g: Tensor) -> Grads:
    """Windows of g as columns."""
    return c.ops.unfold(g, *c.attrs[:4])


@rule("ctc_loss", saves="grad")
def ctc_loss(c: Call, g: Any, grad: Tensor) -> Grads:
    """The forward's own gradient times g of each sample."""
    if g[1] is not None:
        raise AutodiffError(
            "ctc_loss", "the gradient among its outputs cannot be differentiated again",
            remedy="Detach it.",
        )  # fmt: skip
    each = c.ops.unsqueeze(g[0], (0, 2))
    return c.ops.mul_no_nan(each, grad), None, None, None
