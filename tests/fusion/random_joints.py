"""Operations of random programs that put tensors together or repeat them, and losses over scores.

Parts are computed here or come from outside, some are empty, transposed, there twice or with every
other element only; dims count from either end. Random nets take what takes one tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import burn

F = burn.functional


def _real(x: Any) -> Any:
    return x if x.dtype.is_float else x.to(burn.float32)


def _filled(x: Any, *shape: int) -> Any:
    """Return the elements of a tensor, again and again, in a shape."""
    flat, count = x.reshape(-1), 1
    for n in shape:
        count *= n
    if not flat.shape[0]:
        flat = burn.ones(1, dtype=flat.dtype, device=flat.device)
    while flat.shape[0] < count:
        flat = burn.cat([flat, flat])
    return flat[:count].reshape(*shape)


def _sides(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    """Chains that feed a cat, and what reads it."""
    if not x.shape:
        x = x.reshape(1)
    dim = k % len(x.shape) - (len(x.shape) if k % 2 else 0)
    y = _filled(y, *x.shape).to(x.dtype)
    parts = [
        [x * 2, y, x * 2 + y],
        [x, x],
        [x.narrow(dim, 0, 0), x + y, x.narrow(dim, 0, x.shape[dim] // 2) * 3, y],
        [x.flip(dim), F.relu(y), x],
        [y.transpose(0, -1).contiguous().transpose(0, -1), x * y, y.abs()],
        [x.narrow(dim, x.shape[dim] // 2, x.shape[dim] - x.shape[dim] // 2) * 2, x + 1],
        [x.unsqueeze(0).expand(2, *x.shape)[1] + y, x],
        [x.narrow(dim, 0, 0), x.narrow(dim, 0, 0) + 1],
    ][k]
    whole = burn.cat(parts, dim)
    if k % 4 == 0:
        return [whole, whole * 2 + 1]
    if k % 4 == 1:
        return (whole + whole.flip(0)) * int(s)
    return whole.abs() + 1 if k % 4 == 2 else burn.cat([whole * 2, parts[0] - 1], dim) * 3


def _pads(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    """Something padded, or cropped, behind a chain and before one."""
    last = [(1, 2), (0, 3), (-1, 1), (2, 0), (1, -1), (0, 0), (3, 3), (-1, -1)][k]
    pads = last if len(x.shape) < 2 or k % 2 else (*last, 1, k % 3)
    value = bool(s > 1) if x.dtype.is_bool else s if x.dtype.is_float else int(s)
    made = F.pad(x if k % 3 else x + x, pads, value=value)
    if k % 3 == 0:
        return made
    return [made, made + made] if k % 3 == 1 else F.relu(made.abs() * 2) - 1


def _repeated(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    """A chain whose result is expanded for another."""
    x = _real(x)
    row = _filled(y, *x.shape[:-1], 1) if k % 2 and x.shape else _filled(y, *x.shape[-1:])
    small = (row * 2 + 1).to(x.dtype)
    if k % 3 == 1:
        small = small.tanh() / 3
    wide = small.expand(x.shape) if k < 4 else small.expand(2, *x.shape)
    return wide * x if k % 4 else [wide + x, small]


def _rotated(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    """Halves that are turned by an angle, as tokens are."""
    x = _filled(_real(x), 2, 3, 4 + 2 * (k % 2)) * s
    c = _filled(_real(y), 3, x.shape[-1]).to(x.dtype)
    half = x.shape[-1] // 2
    if k % 3 == 0:
        a, b = x[..., :half], x[..., half:]
        c1, c2 = c[..., :half], c[..., half:]
        return burn.cat([a * c1 - b * c2, b * c1 + a * c2], -1)
    turned = burn.cat([-x[..., half:], x[..., :half]], -1)
    if k % 3 == 1:
        pairs = burn.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
        return x * c + pairs * (c + 1)
    return [x * c + turned * (c + 1), turned]


def _placed(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    """A window of what is computed gets something else."""
    if not x.shape or not x.shape[-1]:
        return x + x
    made = x + x
    if k % 2:
        made[..., : 1 + k % 3] = int(s) if k % 4 == 1 else _filled(y, *x.shape)[..., :1] + 1
    else:
        made[..., k % 2 :: 1 + k // 4] = _filled(y, *x.shape)[..., k % 2 :: 1 + k // 4].abs()
    return made * 2 if k % 3 else [made, made + 1]


def _loss(x: Any, y: Any, z: Any, s: float, k: int) -> Any:
    """A loss of classes with all that it takes: dims behind the classes, weights, ignored targets,
    probabilities, other dtypes, scores that are computed here."""
    x = _real(x)
    n, classes = (5, 0, 1, 6)[k % 4], (4, 7, 3, 1)[(k // 2) % 4]
    shape = (n, classes, 2) if k % 3 == 0 else (n, classes)
    if k == 7:
        n, shape = 1, (classes,)
    scores = _filled(x, *shape) * s + _filled(_real(z), *shape).to(x.dtype)
    if k % 5 == 1:
        scores = scores.to(burn.float32 if k % 2 else burn.bfloat16)
    reduction = ("mean", "sum", "none")[(k + int(s)) % 3]
    smooth = 0.125 * (k % 2)
    if k % 4 == 1:
        share = F.softmax(_filled(_real(y), *shape).nan_to_num(0, 0, 0), min(1, len(shape) - 1))
        return F.cross_entropy(scores, share.to(scores.dtype), label_smoothing=smooth)
    aims = shape[:1] + shape[2:] if len(shape) > 1 else ()
    target = _filled(_real(y).nan_to_num(0, 0, 0), *aims).to(burn.int64) % classes
    weight = None
    if k % 4 == 2:
        weight = (_filled(_real(z), classes).nan_to_num(1, 1, 1).abs() + 0.5).to(scores.dtype)
    made = F.cross_entropy(
        scores, target, weight, ignore_index=k % 3 - 1, reduction=reduction, label_smoothing=smooth
    )
    return made * 2 if k % 2 else [made, scores]


JOINTS: dict[str, Callable[[Any, Any, Any, float, int], Any]] = {
    "sides": _sides,
    "pads": _pads,
    "repeated": _repeated,
    "rotated": _rotated,
    "placed": _placed,
    "loss": _loss,
}
