"""Rule of attention: the backward kernel, or operations where a higher order is wanted."""

from __future__ import annotations

from math import e, inf, log2

from burn_autodiff.rules.pieces import add_some, sum_to, transpose
from burn_autodiff.rules.table import Call, Grads, Tensor, rule, widened
from burn_std.dtypes import int64


@rule("attention", saves="q k v mask out sums")
def attention(
    c: Call, g: Grads, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, out: Tensor, sums: Tensor
) -> Grads:
    """With p = softmax(scale q k^T + mask) and ds = p (g v^T - sum(g out)):

    dq = scale ds k, dk = scale ds^T q, dv = p^T g, dmask = ds; rows masked everywhere have p = 0.
    What arrives at the sums adds p log2(e) to ds.
    """
    if c.create_graph or g[0] is None or g[1] is not None:
        return composed(c, g, q, k, v, mask)
    gq, gk, gv, gs = c.ops.attention_backward(g[0], q, k, v, mask, out, sums, *c.attrs)
    gm = None
    if c.need[3]:
        gm = sum_to(c, gs, c.shapes[3])
        gm = gm if gm.dtype is mask.dtype else c.ops.cast(gm, mask.dtype)
    return gq, gk, gv, gm


def _scores(c: Call, q: Tensor, k: Tensor, mask: Tensor, causal: bool, scale: float) -> Tensor:
    """Return softmax weights [..., L, S]; rows masked everywhere are 0."""
    ops = c.ops
    s = ops.mul(ops.matmul(q, transpose(c, k)), scale)
    if mask is not None:
        s = ops.where(mask, s, -inf) if mask.dtype.is_bool else ops.add(s, mask)
    if causal:
        rows = ops.unsqueeze(ops.arange(int64, q.shape[-2], 0, 1), (1,))
        s = ops.where(ops.ge(rows, ops.arange(int64, k.shape[-2], 0, 1)), s, -inf)
    if mask is None and not causal:
        return ops.softmax(s, len(s.shape) - 1, None)
    last = len(s.shape) - 1
    dead = ops.eq(ops.amax(s, (last,), True), -inf)
    return ops.where(dead, 0.0, ops.softmax(ops.where(dead, 0.0, s), last, None))


def _repeat_heads(c: Call, t: Tensor, heads: int) -> Tensor:
    """Return t [..., H, S, E] with every head repeated in place to `heads` heads."""
    *lead, h, s, e = t.shape
    wide_t = c.ops.expand(c.ops.unsqueeze(t, (len(lead) + 1,)), (*lead, h, heads // h, s, e))
    return c.ops.reshape(wide_t, (*lead, heads, s, e))


def _sum_heads(c: Call, t: Tensor, heads: int) -> Tensor:
    """Return the adjoint of `_repeat_heads`."""
    *lead, h, s, e = t.shape
    groups = c.ops.reshape(t, (*lead, heads, h // heads, s, e))
    return c.ops.sum(groups, (len(lead) + 1,), False, None)


def _composed(c: Call, g: Grads, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Grads:
    """Return the gradients in operations that can be differentiated again."""
    ops = c.ops
    causal, gqa, scale = c.attrs
    keys, values = k, v
    if gqa:
        keys, values = (_repeat_heads(c, t, q.shape[-3]) for t in (k, v))
    p = _scores(c, q, keys, mask, causal, scale)
    gs = gv = None
    if g[0] is not None:
        gp = ops.matmul(g[0], transpose(c, values))
        last = (len(gp.shape) - 1,)
        gs = ops.mul(p, ops.sub(gp, ops.sum(ops.mul(gp, p), last, True, None)))
        gv = ops.matmul(transpose(c, p), g[0])
    if g[1] is not None:
        last = (len(g[1].shape),)
        gs = add_some(c, gs, ops.mul(p, ops.mul(ops.unsqueeze(g[1], last), log2(e))))
    gq = ops.mul(ops.matmul(gs, keys), scale)
    gk = ops.mul(ops.matmul(transpose(c, gs), q), scale)
    if gqa:
        gk, gv = (None if t is None else _sum_heads(c, t, k.shape[-3]) for t in (gk, gv))
    return (
        sum_to(c, gq, c.shapes[0]) if c.need[0] else None,
        sum_to(c, gk, c.shapes[1]) if c.need[1] else None,
        sum_to(c, gv, c.shapes[2]) if c.need[2] and gv is not None else None,
        sum_to(c, gs, c.shapes[3]) if c.need[3] else None,
    )


composed = widened("attention", _composed, ("q", "k", "v", "mask"))
