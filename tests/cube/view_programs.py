"""Random programs of elementwise operations and views between them, for two devices."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import numpy as np

import burn
from tests.cube.row_programs import FLOATS, MAPS


def _factors(count: int, dice: random.Random) -> tuple[int, ...]:
    """Return a shape of so many elements."""
    out = []
    while count > 1 and len(out) < 3:
        n = dice.choice([k for k in range(1, count + 1) if count % k == 0])
        out.append(n)
        count //= n
    return (*out, count)


def view(x: Any, dice: random.Random) -> Any:
    """Return a random view of a tensor."""
    rank = len(x.shape)
    dims = list(range(rank))
    kind = dice.choice(
        ["permute", "permute", "reshape", "reshape", "flip", "slice", "select", "one"]
    )
    if kind == "permute":
        dice.shuffle(dims)
        return x.permute(*dims)
    if kind == "reshape":
        return x.reshape(_factors(prod(x.shape), dice))
    if not rank:
        return x.unsqueeze(0)
    d = dice.choice(dims)
    n = x.shape[d]
    if kind == "flip":
        return x.flip((d,))
    if kind == "one":
        return x.unsqueeze(d) if dice.random() < 0.6 or n != 1 else x.squeeze(d)
    if n < 2:
        return x
    if kind == "select":
        return x.select(d, dice.randrange(n))
    step = dice.choice([1, 1, 2, -1])
    start = dice.randrange(n // 2 + 1)
    piece = slice(None, start - n - 1, -1) if step < 0 else slice(start, None, step)
    return x[tuple(piece if k == d else slice(None) for k in dims)]


def run(
    seed: int, device: Any, shape: tuple[int, ...], dtype: Any, scale: float = 1.0, steps: int = 16
) -> list[Any]:
    """Return the values that a program of a seed ends with.

    Args:
        seed: decides the program, and what its tensors hold.
        device: where it runs.
        shape: of its inputs.
        dtype: of the tensors.
        scale: a number that changes nothing but numbers.
        steps: operations.
    """
    dice, rng = random.Random(seed), np.random.default_rng(seed)

    def tensor(shape: tuple[int, ...]) -> Any:
        data = rng.standard_normal(shape) * 2
        return burn.tensor(data.astype(np.float32), device=device).to(dtype)

    rank = len(shape)
    turned = tensor(shape[::-1]).permute(*reversed(range(rank)))
    pool = [tensor(shape), tensor(shape), turned, tensor(shape[-1:]), tensor(())]
    maps = MAPS + FLOATS * dtype.is_float
    for _ in range(steps):
        x = pool[-1] if dice.random() < 0.7 else dice.choice(pool)
        if dice.random() < 0.4:
            pool.append(view(x, dice))
            continue
        s = dice.choice([0.5, 2.0, -1.25]) * scale if dtype.is_float else dice.choice([1, 2, -3])
        fits = [y for y in pool if y.shape == x.shape or not y.shape or y.shape == x.shape[-1:]]
        y = tensor(x.shape) if dice.random() < 0.2 else dice.choice(fits)
        pool.append(dice.choice(maps)(x, y, s))
    # What is not returned is a value inside a program.
    return [*(t for t in pool[5:] if dice.random() < 0.1), pool[-1]]
