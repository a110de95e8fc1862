"""The operations of random programs: each takes three tensors, a number and a small integer.

What does not suit an operation is refused by it, alike on every device; `adapted` gives the others
what they need from whatever there is.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import burn
from tests.fusion.random_joints import JOINTS

F = burn.functional


def real(x: Any) -> Any:
    """Return the tensor in a float dtype."""
    return x if x.dtype.is_float else x.to(burn.float32)


def adapted(x: Any, *shape: int) -> Any:
    """Return the elements of a float tensor, again and again, in a shape."""
    flat = real(x).reshape(-1)
    if not flat.shape[0]:
        flat = burn.ones(1, dtype=flat.dtype, device=flat.device)
    while flat.shape[0] < prod(shape):
        flat = burn.cat([flat, flat, flat + 1])
    return flat[: prod(shape)].reshape(*shape)


def rows(x: Any) -> Any:
    """Return a tensor of two dims."""
    return x.reshape(-1, x.shape[-1]) if len(x.shape) else x.reshape(1, 1)


def near(index: Any, size: int) -> Any:
    """Return indices within a size, from any numbers."""
    if not size:  # recorders find out later than others
        raise IndexError
    return index.to(burn.int64) % size


def _assign(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    made = x * 1
    made[..., :1] = s
    return made


def _rebind(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    x[..., : k % 3] = s
    return x + 0


def _grow(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    x += s
    return x


def _shrink(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    x *= y
    return x


def _mask(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    made = x * 1
    made[made > s] = 0
    return made


def _fill(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    made = x * 1
    made[::2] = y[..., :1].amax().to(made.dtype)
    return made


def _gather(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    x = rows(x)
    index = near(burn.ones(2, x.shape[1], device=x.device) * k, x.shape[0])
    return x.gather(0, index)


def _scatter(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    x = rows(x)
    at = near(rows(z)[:2, : x.shape[1]].nan_to_num(0, 0, 0), x.shape[0])
    src = adapted(y, *at.shape).to(x.dtype)
    return x.scatter(0, at, src) if k % 2 else x.scatter_add(0, at, src)


def _index_add(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    x = rows(x)
    at = near(z.reshape(-1)[:3].nan_to_num(0, 0, 0), x.shape[0])
    src = adapted(y, at.shape[0], x.shape[1]).to(x.dtype)
    if k % 3 == 0:
        return x.index_add(0, at, src)
    return x.index_put([at], src, accumulate=k % 3 == 1)


def _batch_norm(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    x = adapted(x, 4, 3, 5)
    mean, var = burn.zeros(3, device=x.device), burn.ones(3, device=x.device)
    return F.batch_norm(x.to(burn.float32), mean, var, training=k % 2 == 0) + mean[:, None]


def _entropy(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    x = adapted(x, 6, 4)
    target = near(adapted(y, 6).nan_to_num(0, 0, 0), 4)
    return F.cross_entropy(x, target, reduction=("mean", "sum", "none")[k % 3])


def _by_hand(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    x = real(x)
    top = (x * s - x.amax(-1, keepdim=True)).exp()
    return top / top.sum(-1, keepdim=True)


def _normed(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    x = real(x)
    centred = x - x.mean(-1, keepdim=True)
    return centred * ((centred * centred).mean(-1, keepdim=True) + abs(s)).rsqrt()


def _residual(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    """A norm with what a transformer has before and behind it."""
    x = rows(real(x))
    w, b = adapted(y, x.shape[1]).to(x.dtype), adapted(z, x.shape[1]).to(x.dtype)
    stream = x * s + b
    if k % 3 == 0:
        return [stream, F.gelu(F.rms_norm(stream, w.shape, w))]
    made = F.layer_norm(stream, w.shape, w, b if k % 3 == 1 else None)
    return x + made if k % 2 else [stream, made]


def _weights(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    """Softmax of scores with a scale and a mask, and what is done to weights."""
    x = real(x)
    seen = burn.arange(x.shape[-1], device=x.device) < k + 1
    made = F.softmax(x * s + burn.where(seen, 0.0, float("-inf")), -1)
    if k % 3 == 0:
        return F.dropout(made, 0.5, training=True) * 2
    return made.to(burn.float16) + x.to(burn.float16) if k % 3 == 1 else made * x


def _dropped(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    """What a layer drops, with what stands around it."""
    x = rows(real(x))
    kept = F.dropout(F.relu(x * s + adapted(y, x.shape[1]).to(x.dtype)), 0.25, training=True)
    if k % 4 == 0:
        return kept.sum(0)
    if k % 4 == 1:
        return [kept + x, F.layer_norm(kept + x, x.shape[1:])]
    return kept.T * 2 if k % 4 == 2 else kept.sum(-1, keepdim=True) + kept


def _noise(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    """Numbers that are drawn and used at once, or kept too."""
    x = real(x)
    made = {0: burn.rand, 1: burn.randn}[k % 2](*x.shape, dtype=x.dtype, device=x.device)
    if k % 3 == 0:
        return [made, made * s - x]
    return x + made * s if k % 3 == 1 else (made < 0.5).to(x.dtype) * x


def _joined(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    """Parts that are computed here and put side by side."""
    x = rows(real(x))
    y = adapted(y, *x.shape).to(x.dtype)
    whole = burn.cat([x * s, y.tanh() if k % 3 else y, x + y], k % 2)
    return [whole, F.relu(whole) + 1] if k % 4 < 2 else F.pad(whole + s, (k % 3, 1), value=s)


def _channels(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    """A batch norm with what stands before and behind it, and its gradient."""
    x = adapted(x, 4, 3, 6).to(burn.float32)
    mean, var = burn.zeros(3, device=x.device), burn.ones(3, device=x.device)
    w, b = adapted(y, 3).to(x.dtype), adapted(z, 3).to(x.dtype)
    made = F.batch_norm(x * s + 1, mean, var, w, b, training=k % 4 < 3)
    return [F.relu(made + x), mean] if k % 2 else [made, (made * x).sum((0, 2))]


def _graded(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    """A loss over scores that are computed here."""
    x = adapted(x, 6, 5) * s + adapted(z, 5).to(real(x).dtype)
    target = near(adapted(y, 6).nan_to_num(0, 0, 0), 5)
    reduction = ("mean", "sum", "none")[k % 3]
    return F.cross_entropy(x, target, label_smoothing=0.1 * (k % 2), reduction=reduction) * 2


def _guess(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    """The best class of scores that are computed here, and its log-probability."""
    x = rows(real(x)) * s + 1
    at = x.argmax(-1, keepdim=True) if k % 2 else x.argmin(-1, keepdim=True)
    return [at * 2, F.log_softmax(x, -1).gather(1, at), x.sum(-1)]


def _attention(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    q, w, v = adapted(x, 1, 2, 4, 4), adapted(y, 1, 2, 4, 4), adapted(z, 1, 2, 4, 4)
    wide = burn.promote_types(burn.promote_types(q.dtype, w.dtype), v.dtype)
    return F.scaled_dot_product_attention(q.to(wide), w.to(wide), v.to(wide), is_causal=k % 2 == 0)


def _conv(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    a, w = adapted(x, 1, 2, 6, 6), adapted(y, 3, 2, 3, 3)
    wide = burn.promote_types(a.dtype, w.dtype)
    return F.conv2d(a.to(wide), w.to(wide), padding=k % 2)


def _column(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    x = rows(real(x))
    return (x * s + 1).sum(0) if k % 2 else (x.tanh() * x).mean(0, keepdim=True)


def _step(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    """By hand what an optimizer does."""
    x, g = adapted(x, 6).to(burn.float32), adapted(y, 6).to(burn.float32)
    m = g * 0.1
    v = g * g * 0.001
    return [x - s * 0.01 * (m / (v.sqrt() + 1e-8)), m, v]


OPS: dict[str, Callable[[Any, Any, Any, float, int], Any]] = {
    "add": lambda x, y, z, s, k: x + y,
    "mul": lambda x, y, z, s, k: x * y,
    "sub": lambda x, y, z, s, k: x - y,
    "div": lambda x, y, z, s, k: x / (y * y + 1),
    "mod": lambda x, y, z, s, k: x % (abs(s) + 0.5),
    "fmod": lambda x, y, z, s, k: x.fmod(abs(int(s)) + 1),
    "scale": lambda x, y, z, s, k: x * s + 0.5,
    "offset": lambda x, y, z, s, k: int(s) - x,
    "power": lambda x, y, z, s, k: (x * x + 1) ** s,
    "square": lambda x, y, z, s, k: x**2,
    "exp": lambda x, y, z, s, k: (x * 0.25).exp(),
    "log": lambda x, y, z, s, k: (x * x + 0.5).log(),
    "tanh": lambda x, y, z, s, k: x.tanh(),
    "erf": lambda x, y, z, s, k: x.erf(),
    "sigmoid": lambda x, y, z, s, k: real(x).sigmoid(),
    "sin": lambda x, y, z, s, k: x.sin(),
    "atan": lambda x, y, z, s, k: burn.atan2(x, y),
    "rsqrt": lambda x, y, z, s, k: (x.abs() + 1).rsqrt(),
    "relu": lambda x, y, z, s, k: F.relu(x),
    "gelu": lambda x, y, z, s, k: F.gelu(real(x)),
    "silu": lambda x, y, z, s, k: F.silu(real(x)),
    "leaky": lambda x, y, z, s, k: F.leaky_relu(real(x), s),
    "abs": lambda x, y, z, s, k: x.abs(),
    "neg": lambda x, y, z, s, k: -x,
    "sign": lambda x, y, z, s, k: x.sign(),
    "round": lambda x, y, z, s, k: x.round(),
    "less": lambda x, y, z, s, k: x < y,
    "same": lambda x, y, z, s, k: x == y,
    "nan": lambda x, y, z, s, k: x.isnan(),
    # Open in one run and a number in the next: the numbers of a program that change.
    "open bounds": lambda x, y, z, s, k: x.nan_to_num(
        int(s) if k % 2 else s, None if s > 0.6 else 3.0, -s if s < 2 else None
    ),
    "not": lambda x, y, z, s, k: x.logical_not(),
    "where": lambda x, y, z, s, k: burn.where(x > s, x, y),
    "choose": lambda x, y, z, s, k: burn.where(z > 0, x, s),
    "maximum": lambda x, y, z, s, k: burn.maximum(x, y),
    "clamp": lambda x, y, z, s, k: x.clamp(-1, s),
    "floor": lambda x, y, z, s, k: x // (abs(int(s)) + 1),
    "bits": lambda x, y, z, s, k: x & y,
    "shift": lambda x, y, z, s, k: x << (k % 5),
    "lerp": lambda x, y, z, s, k: burn.lerp(real(x), real(y).to(real(x).dtype), s),
    "addcmul": lambda x, y, z, s, k: burn.addcmul(x, y, z, value=s),
    "masked fill": lambda x, y, z, s, k: x.masked_fill(x > 0, s),
    "turn": lambda x, y, z, s, k: x.permute(*reversed(range(len(x.shape)))),
    "swap": lambda x, y, z, s, k: x.transpose(0, -1),
    "line": lambda x, y, z, s, k: x.reshape(prod(x.shape)),
    "flip": lambda x, y, z, s, k: x.flip(0),
    "evens": lambda x, y, z, s, k: x[..., ::2],
    "back": lambda x, y, z, s, k: x[::-1],
    "tail": lambda x, y, z, s, k: x[1:],
    "first": lambda x, y, z, s, k: x[0],
    "narrow": lambda x, y, z, s, k: x.narrow(-1, k % 3, 1),
    "none": lambda x, y, z, s, k: x[..., :0],
    "deeper": lambda x, y, z, s, k: x.unsqueeze(0).expand(2, *x.shape),
    "column of ones": lambda x, y, z, s, k: x.unsqueeze(-1),
    "squeeze": lambda x, y, z, s, k: x.squeeze(),
    "diagonal": lambda x, y, z, s, k: x.diagonal(),
    "triangle": lambda x, y, z, s, k: x.tril(k % 3 - 1),
    "windows": lambda x, y, z, s, k: x.unfold(0, 2, 1),
    "sum": lambda x, y, z, s, k: x.sum(),
    "outer sum": lambda x, y, z, s, k: x.sum((0, -1)),
    "sum of rows": lambda x, y, z, s, k: x.sum(-1, keepdim=True),
    "sum of columns": lambda x, y, z, s, k: x.sum(0),
    "columns": _column,
    "product": lambda x, y, z, s, k: (x * 0.5).prod(0),
    "largest": lambda x, y, z, s, k: x.amax(-1),
    "smallest": lambda x, y, z, s, k: x.amin(0, keepdim=True),
    "mean": lambda x, y, z, s, k: real(x).mean(k % 2 - 1),
    "spread": lambda x, y, z, s, k: real(x).var(-1),
    "norm": lambda x, y, z, s, k: real(x).norm(),
    "any": lambda x, y, z, s, k: x.any(0),
    "all": lambda x, y, z, s, k: x.all(-1),
    "logsumexp": lambda x, y, z, s, k: real(x).logsumexp(-1),
    "running": lambda x, y, z, s, k: x.cumsum(0),
    "running max": lambda x, y, z, s, k: list(x.cummax(-1)),
    "best": lambda x, y, z, s, k: x.argmax(-1),
    "max and where": lambda x, y, z, s, k: list(x.max(-1)),
    "top": lambda x, y, z, s, k: list(x.topk(1 + k % 2, -1)),
    "sorted": lambda x, y, z, s, k: list(x.sort(-1, descending=k % 2 == 0)),
    "order": lambda x, y, z, s, k: x.argsort(0, stable=True),
    "softmax": lambda x, y, z, s, k: F.softmax(real(x), -1),
    "log softmax": lambda x, y, z, s, k: F.log_softmax(real(x), k % 2 - 1),
    "softmax by hand": _by_hand,
    "weights": _weights,
    "residual": _residual,
    "guess": _guess,
    "dropped": _dropped,
    "noise": _noise,
    "joined": _joined,
    **JOINTS,
    "channels": _channels,
    "graded": _graded,
    "norm by hand": _normed,
    "layer norm": lambda x, y, z, s, k: F.layer_norm(real(x), x.shape[-1:]),
    "rms norm": lambda x, y, z, s, k: F.rms_norm(real(x), x.shape[-1:]),
    "group norm": lambda x, y, z, s, k: F.group_norm(adapted(x, 2, 4, 3), 2),
    "batch norm": _batch_norm,
    "entropy": _entropy,
    "squares": lambda x, y, z, s, k: F.mse_loss(adapted(x, 6), adapted(y, 6)),
    "matmul": lambda x, y, z, s, k: rows(x)[:8] @ rows(y)[:8].T,
    "outer": lambda x, y, z, s, k: x.reshape(-1, 1)[:20] @ y.reshape(1, -1)[:, :20],
    "linear": lambda x, y, z, s, k: F.linear(
        adapted(x, 5, 4).to(burn.float32), adapted(y, 3, 4).to(burn.float32),
        adapted(z, 3).to(burn.float32),
    ),
    "batched": lambda x, y, z, s, k: adapted(x, 2, 3, 4) @ adapted(y, 4, 2),
    "conv": _conv,
    "pool": lambda x, y, z, s, k: F.max_pool2d(adapted(x, 1, 2, 6, 6), 2),
    "mean pool": lambda x, y, z, s, k: F.avg_pool2d(adapted(x, 1, 2, 6, 6), 3, 2, 1),
    "attention": _attention,
    "embedding": lambda x, y, z, s, k: F.embedding(
        near(adapted(x, 5).nan_to_num(0, 0, 0), 4), adapted(y, 4, 3)
    ),
    "one hot": lambda x, y, z, s, k: F.one_hot(near(adapted(x, 5).nan_to_num(0, 0, 0), 4), 4),
    "join": lambda x, y, z, s, k: burn.cat([x.reshape(-1), y.reshape(-1)]),
    "stack": lambda x, y, z, s, k: burn.stack([x, x * s, x + y], k % 2),
    "split": lambda x, y, z, s, k: list(x.split(2, 0))[:3],
    "pad": lambda x, y, z, s, k: F.pad(x, (1, 2), value=s),
    "reflect": lambda x, y, z, s, k: F.pad(adapted(x, 1, 2, 4), (1, 1), mode="reflect"),
    "roll": lambda x, y, z, s, k: x.roll(int(s), 0),
    "take": lambda x, y, z, s, k: x[[0, -1]],
    "select": lambda x, y, z, s, k: x.index_select(0, (y.reshape(-1) * 0).to(burn.int64)),
    "gather": _gather,
    "scatter": _scatter,
    "index add": _index_add,
    "masked": lambda x, y, z, s, k: x[x > s],
    "count": lambda x, y, z, s, k: (x != 0).nonzero(),
    "repeat": lambda x, y, z, s, k: x.repeat(*(2,) * max(1, len(x.shape))),
    "full": lambda x, y, z, s, k: burn.full(x.shape, s, device=x.device),
    "like": lambda x, y, z, s, k: burn.zeros_like(x) + y,
    "range": lambda x, y, z, s, k: burn.arange(k + 1, device=x.device) * s,
    "assign": _assign,
    "rebind": _rebind,
    "grow": _grow,
    "shrink": _shrink,
    "mask": _mask,
    "fill": _fill,
    "clone": lambda x, y, z, s, k: x.clone(),
    "detach": lambda x, y, z, s, k: x.detach(),
    "contiguous": lambda x, y, z, s, k: x.contiguous(),
    "update": _step,
    "random": lambda x, y, z, s, k: burn.rand(*x.shape, device=x.device) + s,
    "normal": lambda x, y, z, s, k: burn.randn(*x.shape, device=x.device) * s,
    "integers": lambda x, y, z, s, k: burn.randint(-5, 9, x.shape, device=x.device),
    "dropout": lambda x, y, z, s, k: F.dropout(real(x), 0.5, training=True),
    "permuted": lambda x, y, z, s, k: burn.randperm(5, device=x.device),
    "coin": lambda x, y, z, s, k: burn.bernoulli(real(x).sigmoid().nan_to_num(0.5)),
}  # fmt: skip
RANDOM = frozenset({
    "random", "normal", "integers", "dropout", "weights", "permuted", "coin", "dropped", "noise",
})  # fmt: skip
# No step or graph has them: their sizes depend on values, or they make a tensor of host data.
DYNAMIC = frozenset({"masked", "count", "take"})
