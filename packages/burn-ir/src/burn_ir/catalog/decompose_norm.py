"""Normalisation and attention, in f32 for 16-bit floats."""

from __future__ import annotations

from math import e, inf, log2, prod, sqrt

from burn_ir.catalog.decompose import (
    Ints,
    Ops,
    Tensor,
    count_up,
    in_f32,
    last_dims,
    placed,
    sum_to,
    swap_last,
)


def _moments(ops: Ops, x: Tensor, dims: Ints) -> tuple[Tensor, Tensor]:
    """Return mean and biased variance over dims, kept with extent 1."""
    n = prod(x.shape[d] for d in dims)
    mean = ops.div(ops.sum(x, dims, True, x.dtype), n)
    var = ops.div(ops.sum(ops.square(ops.sub(x, mean)), dims, True, x.dtype), n)
    return mean, var


def _affine(ops: Ops, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    if weight is not None:
        x = ops.mul(x, weight)
    return x if bias is None else ops.add(x, bias)


@in_f32(keep=(1, 2))
def layer_norm(
    ops: Ops, x: Tensor, weight: Tensor | None, bias: Tensor | None, dims: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (x - mean) / sqrt(var + eps), scaled and shifted; mean; 1 / sqrt(var + eps)."""
    mean, var = _moments(ops, x, last_dims(x, dims))
    rstd = ops.rsqrt(ops.add(var, eps))
    return _affine(ops, ops.mul(ops.sub(x, mean), rstd), weight, bias), mean, rstd


@in_f32(keep=(1,))
def rms_norm(
    ops: Ops, x: Tensor, weight: Tensor | None, dims: int, eps: float
) -> tuple[Tensor, Tensor]:
    """Return x / sqrt(mean(x^2) + eps), scaled; the reciprocal root."""
    over = last_dims(x, dims)
    n = prod(x.shape[d] for d in over)
    power = ops.div(ops.sum(ops.square(x), over, True, x.dtype), n)
    rstd = ops.rsqrt(ops.add(power, eps))
    return _affine(ops, ops.mul(x, rstd), weight, None), rstd


def _per_channel(ops: Ops, p: Tensor | None, rank: int) -> Tensor | None:
    return None if p is None else placed(ops, p, 1, rank)


@in_f32(keep=(1, 2))
def group_norm(
    ops: Ops, x: Tensor, weight: Tensor | None, bias: Tensor | None, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return x normalised over each group of channels; mean and rstd [N, groups]."""
    n, c, rank = x.shape[0], x.shape[1], len(x.shape)
    rows = ops.reshape(x, (n, groups, c // groups * prod(x.shape[2:])))
    mean, var = _moments(ops, rows, (2,))
    rstd = ops.rsqrt(ops.add(var, eps))
    out = ops.reshape(ops.mul(ops.sub(rows, mean), rstd), x.shape)
    out = _affine(ops, out, _per_channel(ops, weight, rank), _per_channel(ops, bias, rank))
    return out, ops.reshape(mean, (n, groups)), ops.reshape(rstd, (n, groups))


@in_f32(keep=(1, 2), lead=True)
def batch_norm(
    ops: Ops,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    var: Tensor | None,
    training: bool,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return x normalised per channel by its own or the given statistics, and those."""
    if len(x.shape) < 2:  # an empty tensor of rank 1 has no channels either
        nothing = ops.full(x.dtype, (0,), 0.0)
        return x, nothing, nothing
    rank, c = len(x.shape), x.shape[1]
    if training or mean is None or var is None:
        kept, kept_var = _moments(ops, x, (0, *range(2, rank)))
        mean, var = ops.reshape(kept, (c,)), ops.reshape(kept_var, (c,))
    rstd = ops.rsqrt(ops.add(var, eps))
    out = ops.mul(ops.sub(x, placed(ops, mean, 1, rank)), placed(ops, rstd, 1, rank))
    out = _affine(ops, out, _per_channel(ops, weight, rank), _per_channel(ops, bias, rank))
    return out, mean, var


@in_f32(keep=(1, 2), lead=True)
def batch_norm_backward(
    ops: Ops,
    g: Tensor,
    x: Tensor,
    weight: Tensor | None,
    mean: Tensor,
    var: Tensor,
    training: bool,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return r w (g - mean(g) - xhat mean(g xhat)), sum(g xhat) and sum(g).

    With statistics that were given the first is r w g.
    """
    if len(x.shape) < 2:
        nothing = ops.full(x.dtype, (0,), 0.0)
        return x, nothing, nothing
    rank, over = len(x.shape), (0, *range(2, len(x.shape)))
    n = prod(x.shape[d] for d in over)
    rstd = ops.rsqrt(ops.add(placed(ops, var, 1, rank), eps))
    xhat = ops.mul(ops.sub(x, placed(ops, mean, 1, rank)), rstd)
    gweight = ops.sum(ops.mul(g, xhat), over, False, x.dtype)
    gbias = ops.sum(g, over, False, x.dtype)
    if training:
        rest = ops.mul(xhat, placed(ops, ops.div(gweight, n), 1, rank))
        g = ops.sub(ops.sub(g, placed(ops, ops.div(gbias, n), 1, rank)), rest)
    return _affine(ops, ops.mul(g, rstd), _per_channel(ops, weight, rank), None), gweight, gbias


# ---- attention ---------------------------------------------------------------------------------

# A sum of powers is kept as its log2, as the kernels of GPUs want it.
_LOG2E = log2(e)


def _repeat_heads(ops: Ops, x: Tensor, heads: int) -> Tensor:
    """Return [..., Hk, S, E] with every head repeated so that there are `heads`."""
    *batch, own, s, e = x.shape
    times = heads // own
    wide = ops.expand(ops.reshape(x, (*batch, own, 1, s, e)), (*batch, own, times, s, e))
    return ops.reshape(wide, (*batch, heads, s, e))


def _scale(q: Tensor, scale: float | None) -> float:
    return 1 / sqrt(max(q.shape[-1], 1)) if scale is None else scale


def _scores(
    ops: Ops, q: Tensor, k: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> Tensor:
    """Return q k^T scale + mask, -inf where a query does not see a key."""
    scores = ops.matmul(ops.mul(q, scale), swap_last(ops, k))
    if 0 in scores.shape:
        return scores
    if mask is not None:
        scores = ops.where(mask, scores, -inf) if mask.dtype.is_bool else ops.add(scores, mask)
    if causal:
        rows, columns = q.shape[-2], k.shape[-2]
        seen = ops.le(
            placed(ops, count_up(ops, columns), 1, 2), placed(ops, count_up(ops, rows), 0, 2)
        )
        scores = ops.where(seen, scores, -inf)
    return scores


@in_f32(keep=(1,))
def attention(
    ops: Ops,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    causal: bool,
    gqa: bool,
    scale: float | None,
) -> tuple[Tensor, Tensor]:
    """Return softmax(q k^T scale + mask) v, and log2 of the sums of the rows' powers."""
    if gqa:
        k, v = (_repeat_heads(ops, t, q.shape[-3]) for t in (k, v))
    scores = _scores(ops, q, k, mask, causal, _scale(q, scale))
    rank = len(scores.shape)
    if scores.shape[-1] == 0:
        out = ops.matmul(scores, v)
        return out, ops.full(scores.dtype, tuple(out.shape[:-1]), inf)
    peak = ops.amax(scores, (rank - 1,), True)
    peak = ops.where(ops.eq(peak, -inf), 0.0, peak)
    powers = ops.exp(ops.sub(scores, peak))
    total = ops.sum(powers, (rank - 1,), True, powers.dtype)
    none = ops.eq(total, 0)
    out = ops.matmul(ops.div(powers, ops.where(none, 1.0, total)), v)
    sums = ops.where(none, inf, ops.add(ops.mul(peak, _LOG2E), ops.log2(total)))
    return out, ops.expand(ops.squeeze(sums, (rank - 1,)), tuple(out.shape[:-1]))


@in_f32()
def attention_backward(
    ops: Ops,
    g: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    out: Tensor,
    sums: Tensor,
    causal: bool,
    gqa: bool,
    scale: float | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return gradients of q, k, v and of the masked scores.

    With p the weights: dv = p^T g, ds = p (g v^T - sum(g out)), dq = scale ds k,
    dk = scale ds^T q; sums run over dims that were broadcast and heads that were repeated.
    """
    factor, k_shape, v_shape = _scale(q, scale), tuple(k.shape), tuple(v.shape)
    if gqa:
        k, v = (_repeat_heads(ops, t, q.shape[-3]) for t in (k, v))
    scores = _scores(ops, q, k, mask, causal, factor)
    last = (len(g.shape) - 1,)
    p = ops.exp(ops.sub(scores, ops.div(ops.unsqueeze(sums, last), _LOG2E)))
    dp = ops.matmul(g, swap_last(ops, v))
    ds = ops.mul(p, ops.sub(dp, ops.sum(ops.mul(g, out), last, True, g.dtype)))
    dq = ops.mul(ops.matmul(ds, k), factor)
    dk = ops.mul(ops.matmul(swap_last(ops, ds), q), factor)
    dv = ops.matmul(swap_last(ops, p), g)
    if gqa:
        dk, dv = _sum_heads(ops, dk, k_shape[-3]), _sum_heads(ops, dv, v_shape[-3])
    return (
        sum_to(ops, dq, tuple(q.shape)),
        sum_to(ops, dk, k_shape),
        sum_to(ops, dv, v_shape),
        ds,
    )


def _sum_heads(ops: Ops, x: Tensor, heads: int) -> Tensor:
    """Return [..., H, S, E] with groups of heads that share one key head added up."""
    *batch, h, s, e = x.shape
    apart = ops.reshape(x, (*batch, heads, h // heads, s, e))
    return ops.sum(apart, (len(batch) + 1,), False, x.dtype)
