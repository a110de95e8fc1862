"""References of random numbers: Philox4x32-10 in Python integers, straight from the paper.

J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burn_testing.oracle.table import Array, oracle

Key = tuple[int, int]
_M = 0xFFFFFFFF


def block(key: Key, number: int) -> list[int]:
    """Return the four words of a block."""
    seed, counter = key
    c = [number & _M, number >> 32 & _M, counter & _M, counter >> 32 & _M]
    k0, k1 = seed & _M, seed >> 32 & _M
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & _M, (a >> 32) ^ c[3] ^ k1, a & _M]
        k0, k1 = (k0 + 0x9E3779B9) & _M, (k1 + 0xBB67AE85) & _M
    return c


def word32(key: Key, i: int) -> int:
    """Return the word of element i."""
    return block(key, i // 4)[i % 4]


def words(key: Key, i: int) -> tuple[int, int]:
    """Return the two words of element i of what takes 64 bits."""
    b = block(key, i // 2)
    return b[2 * (i % 2)], b[2 * (i % 2) + 1]


def word64(key: Key, i: int) -> int:
    """Return 64 bits of element i, low word first."""
    low, high = words(key, i)
    return low | high << 32


@oracle("uniform")
def uniform(dtype: Any, shape: tuple[int, ...], low: float, high: float, key: Key) -> Array:
    """The top bits of a word, on the grid of the dtype."""
    count = math.prod(shape)
    bits = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}[dtype.short]
    if bits == 53:
        unit = [(word64(key, i) >> 11) * 2.0**-53 for i in range(count)]
    else:
        unit = [(word32(key, i) >> (32 - bits)) * 2.0**-bits for i in range(count)]
    return np.array([low + u * (high - low) for u in unit]).reshape(shape)


@oracle("normal")
def normal(dtype: Any, shape: tuple[int, ...], mean: float, std: float, key: Key) -> Array:
    """Box and Muller, the cosine alone."""
    out = []
    for i in range(math.prod(shape)):
        w0, w1 = words(key, i)
        radius = math.sqrt(-2 * math.log((w0 + 1) / 2**32))
        out.append(mean + std * radius * math.cos(2 * math.pi * w1 / 2**32))
    return np.array(out).reshape(shape)


@oracle("randint")
def randint(dtype: Any, shape: tuple[int, ...], low: int, high: int, key: Key) -> Array:
    """The high word of word times range."""
    span, count = high - low, math.prod(shape)
    if span <= 1 << 32:
        drawn = [(word32(key, i) * span) >> 32 for i in range(count)]
    else:
        drawn = [(word64(key, i) * span) >> 64 for i in range(count)]
    return np.array([low + d for d in drawn], np.int64).reshape(shape)


@oracle("randperm")
def randperm(dtype: Any, count: int, key: Key) -> Array:
    """A stable sort of 64-bit keys."""
    return np.array(sorted(range(count), key=lambda i: word64(key, i)), np.int64)
