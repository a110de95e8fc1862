"""Sorting, the first k, scans and places of extremes on the cpu: what numpy's give, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn

CPU, FLEX = burn.device("eager-cpu"), burn.device("flex")
DTYPES = (
    burn.float32, burn.float64, burn.float16, burn.bfloat16, burn.int64, burn.int32, burn.int16,
    burn.int8, burn.uint8, burn.uint64, burn.bool_,
)  # fmt: skip
# Short lines, lines of one unit, lines that are cut, and many of them.
SHAPES = (
    (5,),
    (33,),
    (3000,),
    (70000,),
    (3, 40001),
    (300, 33),
    (70, 130, 3),
    (5, 700, 2),
    (40, 50),
)


def values(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> list[Any]:
    """Return values with ties, signs, zeros of both signs and NaN, on both devices."""
    dice = np.random.default_rng(seed)
    host: Any
    if dtype.is_float:
        host = dice.standard_normal(shape)
        host[dice.random(shape) < 0.2] = -0.0
        host[dice.random(shape) < 0.2] = 0.0
        host[dice.random(shape) < 0.05] = np.nan
        host[dice.random(shape) < 0.05] = -np.inf
        host[dice.random(shape) < 0.05] = np.inf
    else:
        wide = {burn.int64: 2**62, burn.int32: 2**30, burn.uint64: 2**62}.get(dtype, 100)
        low = 0 if not dtype.is_signed else -wide
        host = dice.integers(low, wide, shape)
        host[dice.random(shape) < 0.3] = 1
    if dtype.is_float and dtype.bits == 16:
        host = host.astype(np.float32)  # rounded once more, on both devices alike
    return [burn.tensor(host, device=device).to(dtype) for device in (CPU, FLEX)]


def same(found: Any, wanted: Any, about: Any, signs: bool = True) -> None:
    """Compare two values or two pairs, zeros by their sign too."""
    if isinstance(found, tuple):
        for a, b in zip(found, wanted, strict=True):
            same(a, b, about, signs)
        return
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), about
    wide = burn.float64 if found.dtype.is_float else found.dtype
    a, b = found.to(wide).numpy(), wanted.to(wide).numpy()
    np.testing.assert_array_equal(a, b, err_msg=str(about))
    if found.dtype.is_float and signs:
        number = ~np.isnan(b)
        np.testing.assert_array_equal(np.signbit(a)[number], np.signbit(b)[number], str(about))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_sort(shape: tuple[int, ...], dtype: Any) -> None:
    x, y = values(shape, dtype)
    for dim, n in enumerate(shape):
        for descending in (False, True):
            about = (shape, dtype, dim, descending)
            same(tuple(x.sort(dim, descending)), tuple(y.sort(dim, descending)), about)
            order = burn.argsort(x, dim, descending)
            same(order, burn.argsort(y, dim, descending), about)
            for k in {0, 1, min(10, n // 2), n // 3, n} if not dtype.is_bool else ():
                found, wanted = (tuple(v.topk(k, dim, descending)) for v in (x, y))
                same(found, wanted, (*about, k))


def test_sort_of_views() -> None:
    x, y = values((6, 50, 70), burn.float32)
    for a, b in (
        (x.permute(2, 0, 1), y.permute(2, 0, 1)), (x[:, ::2, 5:], y[:, ::2, 5:]),
        (x[:1].expand(4, 50, 70), y[:1].expand(4, 50, 70)),
    ):  # fmt: skip
        for dim in range(3):
            same(tuple(a.sort(dim)), tuple(b.sort(dim)), dim)
            same(tuple(a.topk(2, dim)), tuple(b.topk(2, dim)), dim)


@pytest.mark.parametrize("kind", ["equal", "rising", "falling"])
def test_keys_that_share_digits(kind: str) -> None:
    for size in (1000, 200_000):
        host = {"equal": np.full(size, 3), "rising": np.arange(size), "falling": -np.arange(size)}
        for dtype in (np.int64, np.float32, np.int32):
            x = burn.tensor(host[kind].astype(dtype), device=CPU)
            y = burn.tensor(host[kind].astype(dtype), device=FLEX)
            same(tuple(x.sort(0)), tuple(y.sort(0)), (kind, size))
            same(tuple(x.topk(100, 0)), tuple(y.topk(100, 0)), (kind, size))


@pytest.mark.parametrize("dtype", DTYPES[:-1], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_scans_and_places(shape: tuple[int, ...], dtype: Any) -> None:
    x, y = values(shape, dtype, 1)
    if dtype is not burn.uint64:
        small = [burn.where(v == 1, v, burn.zeros_like(v)) for v in (x, y)]
    else:
        small = [x, y]
    for dim in range(len(shape)):
        about = (shape, dtype, dim)
        for op in ("cummax", "cummin"):
            found, wanted = (tuple(getattr(v, op)(dim)) for v in (x, y))
            # numpy's maximum of two zeros of float16 is either of them.
            same(found, wanted, (*about, op), signs=False)
            same(found[0], burn.gather(x, dim, found[1]), (*about, op))
        for op in ("cumsum", "cumprod"):
            same(getattr(small[0], op)(dim), getattr(small[1], op)(dim), (*about, op))
        for op in ("argmax", "argmin"):
            same(getattr(x, op)(dim), getattr(y, op)(dim), (*about, op))
    same(x.argmax(), y.argmax(), (shape, dtype))
