"""Philox4x32-10: random words as a function of (seed, operation counter, block).

Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011). The key is the
seed (low, high word); the counter words are block low, high, operation low, high. A block gives
four words of 32 bits.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from burn_flex.kernels.precision import U32, U64, Array

Key = tuple[int, int]
_LOW = 0xFFFFFFFF
_MULTIPLIERS = np.array([[0xD2511F53], [0xCD9E8D57]], U64)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_MASK = np.array(_LOW, U64)
_SHIFT = np.array(32, U64)
_ROUNDS = 10
# Blocks per pass: the arrays of one pass stay in the second-level cache.
_CHUNK = 1 << 13


def words(key: Key, blocks: int) -> Array:
    """Return the words of blocks 0 to blocks - 1, u32 [blocks, 4]."""
    out = np.empty((blocks, 4), U32)
    for first in range(0, blocks, _CHUNK):
        _fill(out[first : first + _CHUNK], first, key)
    return out


@lru_cache(maxsize=64)
def _round_keys(seed: int) -> tuple[Array, ...]:
    """Return one pair of key words per round, each [2, 1]."""
    return tuple(
        np.array([[(seed + r * _WEYL[0]) & _LOW], [((seed >> 32) + r * _WEYL[1]) & _LOW]], U64)
        for r in range(_ROUNDS)
    )


def _fill(out: Array, first: int, key: Key) -> None:
    seed, counter = key
    n = out.shape[0]
    block = np.arange(first, first + n, dtype=U64)
    # Words 0 and 2 of all blocks in one array, 1 and 3 in the other, each in 64 bits so that a
    # product of 32-bit words fits.
    even = np.empty((2, n), U64)
    odd = np.empty((2, n), U64)
    np.bitwise_and(block, _MASK, even[0])
    np.right_shift(block, _SHIFT, odd[0])
    even[1] = counter & _LOW
    odd[1] = counter >> 32 & _LOW
    product = np.empty((2, n), U64)
    crossed = product[::-1]
    for round_key in _round_keys(seed):
        np.multiply(even, _MULTIPLIERS, product)
        # high words cross over: the new word 0 comes from the product of word 2
        np.right_shift(crossed, _SHIFT, even)
        np.bitwise_xor(even, odd, even)
        np.bitwise_xor(even, round_key, even)
        np.bitwise_and(crossed, _MASK, odd)
    out[:, 0::2] = even.T
    out[:, 1::2] = odd.T
