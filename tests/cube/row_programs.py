"""Random programs of elementwise operations, reductions of rows and views, for two devices."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import burn

F = burn.functional

MAPS: list[Callable[[Any, Any, float], Any]] = [
    lambda x, y, s: x + y,
    lambda x, y, s: x * y,
    lambda x, y, s: x - y,
    lambda x, y, s: x * s + y,
    lambda x, y, s: burn.maximum(x, y),
    lambda x, y, s: burn.where(x > y, x, y * s),
    lambda x, y, s: x / (y * y + 1),
]
FLOATS: list[Callable[[Any, Any, float], Any]] = [
    lambda x, y, s: (x * 0.25).exp() - y,
    lambda x, y, s: x.tanh() * s + y,
    lambda x, y, s: (x * x + 0.5).log() + y,
    lambda x, y, s: F.gelu(x) + y * s,
    lambda x, y, s: (x * x + 1).rsqrt() * y,
    lambda x, y, s: x.isfinite().to(x.dtype) * s - y,
]
REDUCTIONS: list[Callable[[Any, Any, bool], Any]] = [
    lambda x, dims, keep: x.sum(dims, keepdim=keep),
    lambda x, dims, keep: x.sum(dims, keepdim=keep),
    lambda x, dims, keep: x.amax(dims, keepdim=keep),
    lambda x, dims, keep: x.amin(dims, keepdim=keep),
    lambda x, dims, keep: (x > 0).sum(dims, keepdim=keep).to(x.dtype),
    lambda x, dims, keep: (x > 0).any(dims, keepdim=keep).to(x.dtype),
]
MEANS: list[Callable[[Any, Any, bool], Any]] = [
    lambda x, dims, keep: x.mean(dims, keepdim=keep),
    lambda x, dims, keep: x.var(dims, keepdim=keep),
    lambda x, dims, keep: x.logsumexp(dims, keepdim=keep),
    lambda x, dims, keep: (
        (x * 0.5 + 0.5).prod(dims[-1], keepdim=keep)
        if len(dims) == 1
        else x.mean(dims, keepdim=keep)
    ),
]


def run(
    seed: int, device: Any, shape: tuple[int, ...], dims: int, dtype: Any, wild: bool = False,
    scale: float = 1.0, steps: int = 14, first: bool = False,
) -> list[Any]:  # fmt: skip
    """Return the values that a program of a seed ends with.

    Args:
        seed: decides the program, and what its tensors hold.
        device: where it runs.
        shape: of the values that are reduced.
        dims: how many last dims a row has.
        dtype: of the tensors.
        wild: rows hold inf and NaN.
        scale: a number that changes nothing but numbers.
        steps: operations.
        first: the first dims are reduced in place of the last.
    """
    dice, rng = random.Random(seed), np.random.default_rng(seed)

    def tensor(shape: tuple[int, ...]) -> Any:
        data = rng.standard_normal(shape) * 2
        if wild and data.size:
            flat = data.reshape(-1)
            flat[rng.integers(0, flat.size, 3)] = [np.inf, -np.inf, np.nan]
        return burn.tensor(data.astype(np.float32), device=device).to(dtype)

    rows, last = shape[: len(shape) - dims], shape[len(shape) - dims :]
    over, ones = tuple(range(-dims, 0)), (*rows, *(1,) * dims)
    if first:
        rows, last = shape[dims:], shape[:dims]
        over, ones = tuple(range(dims)), (*(1,) * dims, *rows)
    turned = tensor(shape[::-1]).permute(*reversed(range(len(shape))))
    full = [tensor(shape), tensor(shape), turned]
    kept = [tensor(ones)]
    cut = [tensor(rows)]
    columns = [tensor(()) if first else tensor(last), tensor(())]
    floats = dtype.is_float
    maps = MAPS + FLOATS * floats
    for _ in range(steps):
        kind = dice.choice(["map", "map", "map", "kept", "cut", "fold", "fold", "view", "pick"])
        s = dice.choice([0.5, 2.0, -1.25, 3.0]) * scale if floats else dice.choice([1, 2, -3])
        fn, x = dice.choice(maps), dice.choice(full)
        if kind == "map":
            # What is reduced and read along columns again is two kernels.
            others = [*full, *full, *kept[:1], *columns] if first else [*full, *kept, *columns]
            full.append(fn(x, dice.choice(others), s))
        elif kind == "kept":
            kept.append(fn(dice.choice(kept), dice.choice(kept), s))
        elif kind == "cut":
            cut.append(fn(dice.choice(cut), dice.choice(cut), s))
        elif kind == "fold":
            keep = dice.random() < 0.7
            # An empty row has no extreme value.
            fold = dice.choice(REDUCTIONS[:2] if 0 in last else REDUCTIONS + MEANS * floats)
            made = fold(x, over, keep).to(dtype)
            (kept if keep else cut).append(made)
        elif kind == "view" and first:
            cut.append(dice.choice(kept).reshape(*rows))
        elif kind == "view" and dims == 1:
            which = dice.randrange(3)
            if which == 0:
                kept.append(dice.choice(cut).unsqueeze(-1))
            elif which == 1:
                cut.append(dice.choice(kept).squeeze(-1))
            else:
                full.append(dice.choice(kept).expand(*shape))
        elif kind == "pick" and not first and dims == 1 and rows and last[0]:
            places = rng.integers(0, last[0], (*rows, 1))
            kept.append(x.gather(len(rows), burn.tensor(places, device=device)))
    # Some of the last values are wanted, the rest may live inside kernels.
    pool = [*full[3:], *kept[1:], *cut[1:]]
    chosen = sorted(dice.sample(range(len(pool)), min(len(pool), dice.randint(1, 5))))
    wanted = [pool[k] for k in chosen]
    del full, kept, cut, pool, x
    return [w.numpy() for w in wanted]


def bits(array: Any) -> bytes:
    """Return the elements of an array; the sign of a NaN is the processor's."""
    unequal = np.asarray(array != array)
    if unequal.any():
        array = np.where(unequal, np.array(np.nan, array.dtype), array)
    return bytes(array.tobytes())
