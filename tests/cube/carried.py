"""Random loops that carry tensors from round to round, with snapshots, on one device or another."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import burn

SHAPES = [(6, 8), (8, 6), (48,), (1, 8), (6, 1), (2, 3, 8)]


def program(dice: random.Random) -> list[tuple[Any, ...]]:
    """Return the steps of a round: operation, operands by number, and where to flush."""
    names = [
        "scale", "shift", "add", "mul", "row", "turn", "flat", "part", "sum", "cat", "tanh",
        "where", "matmul", "flip", "copy", "cast",
    ]  # fmt: skip
    steps = []
    for _ in range(dice.randint(3, 14)):
        number = dice.choice([0.5, -0.75, 0.25])
        steps.append((dice.choice(names), dice.randrange(64), dice.randrange(64), number))
        if dice.random() < 0.15:
            steps.append(("flush", 0, 0, 0.0))
    return steps


def applied(step: tuple[Any, ...], values: list[Any], device: Any) -> Any:
    """Return the result of a step, None where its operands do not fit."""
    name, a, b, number = step
    x, y = values[a % len(values)], values[b % len(values)]
    if name == "flush":
        device.flush()
        return None
    if name in ("add", "mul", "where"):
        try:
            shape = np.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            return None
        if len(shape) > 3 or int(np.prod(shape)) > 400:
            return None
        if name == "where":
            return burn.where(x > y, x, y * number)
        return x + y if name == "add" else x * y * number
    if name == "matmul":
        fits = x.ndim == 2 and y.ndim == 2 and x.shape[1] == y.shape[0]
        return (x @ y) * 0.1 if fits else None
    if name == "cat":
        fits = x.ndim == y.ndim and x.shape[1:] == y.shape[1:] and x.numel() + y.numel() < 400
        return burn.cat([x, y], 0) if fits else None
    if name == "row":
        return x - x.sum(-1, keepdim=True) * 0.125
    return {
        "scale": lambda: x * number, "shift": lambda: x + number,
        "turn": lambda: x.transpose(0, -1),
        "flat": lambda: x.reshape(-1), "part": lambda: x[1:] if x.shape[0] > 1 else x[:],
        "sum": lambda: x.sum(0, keepdim=True) * 0.25, "tanh": lambda: (x * number).tanh(),
        "flip": lambda: x.flip(0), "copy": lambda: x * 1.0,
        "cast": lambda: (x * 4).to(burn.int32).to(burn.float32) * 0.25,
    }[name]()  # fmt: skip


def carried(seed: int, device: Any, rounds: int = 9) -> list[Any]:
    """Return all values that a loop ends with, and its snapshots."""
    dice = random.Random(seed)
    rng = np.random.default_rng(seed)
    steps = program(dice)
    state = [
        burn.tensor(rng.standard_normal(s).astype(np.float32), device=device)
        for s in dice.sample(SHAPES, dice.randint(2, 5))
    ]
    keeps = [dice.random() < 0.3 for _ in range(rounds)]
    choice = [dice.randrange(64) for _ in range(8)]
    held: list[Any] = []
    for k in range(rounds):
        values = list(state)
        for step in steps:
            made = applied(step, values, device)
            if made is not None:
                values.append(
                    made.clamp(-4.0, 4.0) if step[0] in ("add", "mul", "matmul") else made
                )
        if keeps[k]:
            held += [values[c % len(values)] for c in choice[:3]]
        # Whatever has the shape of a tensor of the state becomes it.
        for n, old in enumerate(state):
            fitting = [v for v in values[len(state) :] if v.shape == old.shape]
            if fitting:
                state[n] = fitting[choice[n] % len(fitting)]
        del values, made, old, fitting
        device.flush()
    return [t.numpy() for t in (*state, *held)]
