"""Data sets that worker processes can import: a child finds this module by its name."""

from __future__ import annotations

import os
import signal
import time

import numpy as np

import burn_tensor as bt


def noisy(item, rng):
    return np.array([item, rng.integers(1 << 30)])


def squared(item):
    return item * item


def image(item):
    return {"x": np.full((3, 5, item % 3 + 1), item, np.float32), "name": f"n{item}", "none": None}


def first(items):
    return items[0]


def slow(item):
    time.sleep(0.2 if item == 0 else 0.0)
    return item


def endless(item):
    time.sleep(60)


def whose(item):
    return os.getpid()


class Failing:
    def __init__(self, at):
        self.at = at

    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index == self.at:
            raise KeyError(f"item {index} is broken")
        return index


class Unportable(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a}-{b}")


def unportable(item):
    raise Unportable(1, 2)


def killed(item):
    if item == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def on_a_device(item):
    return bt.ones(2)


class Holder:
    """Holds something that cannot be sent."""

    def __init__(self, inner):
        self.inner = {"deep": [inner]}

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return index
