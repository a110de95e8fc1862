"""Random numbers: every value is a function of (seed, counter, element index), see `philox`.

Element i takes word i % 4 of block i // 4; values of 64 bits and normals take words 2 (i % 2) and
2 (i % 2) + 1 of block i // 2, low word first.
"""

from __future__ import annotations

from math import pi, prod
from typing import Any

import numpy as np

from burn_flex.kernels.choose import choose
from burn_flex.kernels.philox import Key, words
from burn_flex.kernels.precision import (
    BF16,
    F16,
    F32,
    F64,
    I64,
    U64,
    Array,
    Fn,
    compute_dtype,
)  # fmt: skip
from burn_flex.table import NATIVE, kernel, maker
from burn_std import DType

# Significant bits of a uniform: the grid on which k / 2^bits and 1 - k / 2^bits are exact.
_BITS = {F16: 11, BF16: 8, F32: 24, F64: 53}


def words_32(key: Key, count: int) -> Array:
    """Return one word per element, u32 [count]."""
    return words(key, -(-count // 4)).reshape(-1)[:count]


def words_64(key: Key, count: int) -> Array:
    """Return one value of 64 bits per element, u64 [count]."""
    pairs = words(key, -(-count // 2)).reshape(-1, 2)[:count].astype(U64)
    pairs[:, 1] <<= np.uint64(32)
    return pairs[:, 0] | pairs[:, 1]


def grid(key: Key, count: int, dtype: np.dtype[Any]) -> Array:
    """Return uniforms in [0, 1) on the grid of `dtype`, in its compute dtype."""
    bits = _BITS[dtype]
    if dtype == F64:
        out = (words_64(key, count) >> np.uint64(64 - bits)).astype(F64)
    else:
        out = (words_32(key, count) >> np.uint32(32 - bits)).astype(F32)
    out *= out.dtype.type(2.0**-bits)
    return out


@kernel("uniform")
def uniform(dtype: DType, shape: tuple[int, ...], low: float, high: float, key: Key) -> Any:
    """Floats in [low, high): low + u (high - low), below high even after rounding."""
    target = NATIVE[dtype]
    u = grid(key, prod(shape), target)
    if low != 0 or high != 1:
        u *= u.dtype.type(high - low)
        u += u.dtype.type(low)
    out = u.astype(target, copy=False).reshape(shape)
    if (low != 0 or high != 1) and low < high:
        below = np.nextafter(target.type(high), target.type(low))
        out = np.where(out < target.type(high), out, below)
    return out


@kernel("normal")
def normal(dtype: DType, shape: tuple[int, ...], mean: float, std: float, key: Key) -> Any:
    """mean + std z with z = sqrt(-2 ln((w0 + 1) / 2^32)) cos(2 pi w1 / 2^32)."""
    target = NATIVE[dtype]
    calm = compute_dtype(target)
    count = prod(shape)
    pairs = words(key, -(-count // 2)).reshape(-1, 2)[:count]
    scale = calm.type(2.0**-32)
    radius = (pairs[:, 0].astype(U64) + np.uint64(1)).astype(calm)
    radius *= scale
    np.log(radius, radius)
    radius *= calm.type(-2)
    np.sqrt(radius, radius)
    angle = pairs[:, 1].astype(calm)
    angle *= calm.type(2 * pi)
    angle *= scale
    radius *= np.cos(angle, angle)
    if std != 1:
        radius *= calm.type(std)
    if mean != 0:
        radius += calm.type(mean)
    return radius.astype(target, copy=False).reshape(shape)


def _high_product(w: Array, span: int) -> Any:
    """Return the high 64 bits of w * span, for u64 w and span below 2^64."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a, b = w >> half, w & mask
    c, d = np.uint64(span >> 32), np.uint64(span & 0xFFFFFFFF)
    middle = a * d + (b * d >> half)
    cross = b * c + (middle & mask)
    return a * c + (middle >> half) + (cross >> half)


@kernel("randint", quiet=True)
def randint(dtype: DType, shape: tuple[int, ...], low: int, high: int, key: Key) -> Any:
    """Integers in [low, high): the high word of word * (high - low)."""
    count, span = prod(shape), high - low
    if span <= 1 << 32:
        out = words_32(key, count).astype(U64)
        out *= np.uint64(span)
        out >>= np.uint64(32)
    elif span < 1 << 64:
        out = _high_product(words_64(key, count), span)
    else:
        out = words_64(key, count)
    out += np.uint64(low & ((1 << 64) - 1))
    target = NATIVE[dtype]
    if target.kind != "u":
        out = out.view(I64)  # the sum has wrapped to two's complement
    return out.astype(target, copy=False).reshape(shape)


@kernel("randperm", quiet=True)
def randperm(dtype: DType, count: int, key: Key) -> Any:
    """A permutation: the stable order of one 64-bit key per element."""
    keys = words_64(key, count)
    # The quick order is the stable one unless two keys of 64 bits are equal.
    order = keys.argsort()
    ordered = keys[order]
    if np.equal(ordered[1:], ordered[:-1]).any():
        order = keys.argsort(kind="stable")
    return order.astype(NATIVE[dtype], copy=False)


@maker("bernoulli", checked=True)
def bernoulli(dtype: np.dtype[Any]) -> Fn:
    """1 where a uniform lies below p."""
    calm = compute_dtype(dtype)  # the grids of 16 bits are too coarse for a mask

    def drawn(p: Array, key: Key) -> Any:
        u = grid(key, p.size, calm).reshape(p.shape)
        return np.less(u, p.astype(calm, copy=False)).astype(dtype)

    return drawn


@maker("dropout", checked=True)
def dropout(dtype: np.dtype[Any]) -> Fn:
    """x / (1 - p) where a uniform is p or more, else 0."""
    calm = compute_dtype(dtype)
    zero = calm.type(0)

    def dropped(x: Array, p: float, key: Key) -> Any:
        if p == 0:
            return x
        if p >= 1:
            return np.zeros(x.shape, dtype)
        keep = np.greater_equal(grid(key, x.size, calm), calm.type(p)).reshape(x.shape)
        scaled = np.multiply(x.astype(calm, copy=False), calm.type(1 / (1 - p)))
        return choose(keep, scaled, zero).astype(dtype, copy=False)

    return dropped
