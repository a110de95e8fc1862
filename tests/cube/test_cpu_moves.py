"""Reading and writing at indices, truth and scans on the cpu: bit for bit what numpy gives.

Values are small integers, so that sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn

CPU, FLEX = burn.device("eager-cpu"), burn.device("flex")
DTYPES = (burn.float32, burn.float16, burn.int64, burn.uint8, burn.bool_)
# One cube, several, and positions enough to be shared between units.
SHAPES = (
    (7,),
    (5000,),
    (3, 5),
    (70, 3),
    (130, 200),
    (4, 1500),
    (1500, 4),
    (6, 17, 33),
    (2, 3, 4100),
)
Layout = Callable[[burn.Tensor], burn.Tensor]
LAYOUTS: dict[str, Layout] = {
    "dense": lambda x: x,
    "turned": lambda x: x.permute(*range(x.ndim)[::-1]).contiguous().permute(*range(x.ndim)[::-1]),
    "backwards": lambda x: burn.flip(burn.flip(x, (0,)).contiguous(), (0,)),
    "sparse": lambda x: x.unsqueeze(-1).repeat(*[1] * x.ndim, 2)[..., 1],
}


def values(dice: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return the same values on both devices."""
    host = dice.integers(0, 2 if dtype.is_bool else 4, shape)
    return [burn.tensor(host, device=device).to(dtype) for device in (CPU, FLEX)]


def indices(dice: np.random.Generator, high: int, shape: Any, low: int = 0) -> Any:
    """Return the same indices on both devices."""
    host = dice.integers(low, high, shape)
    return [burn.tensor(host, device=device) for device in (CPU, FLEX)]


def same(found: Any, wanted: Any, about: Any) -> None:
    """Compare shapes, dtypes and all values."""
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), about
    np.testing.assert_array_equal(found.numpy(), wanted.numpy(), err_msg=str(about))


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("shape", SHAPES)
def test_reading(shape: tuple[int, ...], layout: str) -> None:
    dice = np.random.default_rng(0)
    for number, dtype in enumerate(DTYPES):
        x, y = (LAYOUTS[layout](v) for v in values(dice, shape, dtype))
        for dim, n in enumerate(shape):
            about = (shape, layout, dtype, dim)
            i, j = indices(dice, n, (n + 3,))
            same(burn.index_select(x, dim, i), burn.index_select(y, dim, j), about)
            i, j = indices(dice, n, shape)
            i, j = (LAYOUTS[sorted(LAYOUTS)[number % len(LAYOUTS)]](v) for v in (i, j))
            same(burn.gather(x, dim, i), burn.gather(y, dim, j), about)
        first = indices(dice, shape[0], (9, 1), -shape[0])
        last = indices(dice, shape[-1], (5,), -shape[-1])
        if len(shape) == 1:
            same(x[first[0]], y[first[1]], (shape, layout, dtype))
        else:
            same(x[first[0], ..., last[0]], y[first[1], ..., last[1]], (shape, layout, dtype))


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("shape", SHAPES)
def test_writing(shape: tuple[int, ...], layout: str) -> None:
    dice = np.random.default_rng(1)
    for dtype in DTYPES:
        x, y = values(dice, shape, dtype)
        for dim, n in enumerate(shape):
            about = (shape, layout, dtype, dim)
            i, j = indices(dice, n, shape)
            s, t = (LAYOUTS[layout](v) for v in values(dice, shape, dtype))
            same(burn.scatter(x, dim, i, s), burn.scatter(y, dim, j, t), about)
            if not dtype.is_bool:
                same(x.scatter_add(dim, i, s), y.scatter_add(dim, j, t), about)
                i, j = indices(dice, n, (n,))
                same(x.index_add(dim, i, s), y.index_add(dim, j, t), about)
                for reduce in ("amax", "amin"):
                    i, j = indices(dice, n, shape)
                    found = x.scatter_reduce(dim, i, s, reduce)
                    same(found, y.scatter_reduce(dim, j, t, reduce), (about, reduce))


@pytest.mark.parametrize("op", ["gather", "index_select", "scatter_add", "index_add"])
@pytest.mark.parametrize("size", [4, 9000])
def test_an_index_outside(op: str, size: int) -> None:
    x = burn.zeros(size, device=CPU)
    host = np.zeros(size, np.int64)
    host[size - 2] = size
    i = burn.tensor(host, device=CPU)
    calls = {
        "gather": lambda: burn.gather(x, 0, i),
        "index_select": lambda: burn.index_select(x, 0, i),
        "scatter_add": lambda: x.scatter_add(0, i, x + 1),
        "index_add": lambda: x.index_add(0, i, x + 1),
    }
    with pytest.raises(IndexError, match=f"index {size} for size {size}"):
        calls[op]().numpy()
    # What is inside was written none the less, and the device goes on.
    i = burn.tensor(np.zeros(size, np.int64), device=CPU)
    assert x.index_add(0, i, x + 1)[0].item() == size


@pytest.mark.parametrize("shape", SHAPES)
def test_truth(shape: tuple[int, ...]) -> None:
    dice = np.random.default_rng(2)
    for dtype in DTYPES:
        x, y = values(dice, shape, dtype)
        for dim in [*range(len(shape)), None]:
            for a, b in ((x, y), (x > 0, y > 0), (x > 9, y > 9), (x < 9, y < 9)):
                for op in ("any", "all", "sum", "amax"):
                    if op == "sum" and dtype in (burn.float16,) and a.dtype is dtype:
                        continue
                    args = () if dim is None else (dim,)
                    same(getattr(a, op)(*args), getattr(b, op)(*args), (shape, dtype, dim, op))
                if not a.dtype.is_bool:
                    same(a.argmax(dim), b.argmax(dim), (shape, dtype, dim))


@pytest.mark.parametrize("name", ["eager-cpu", "cpu"])
@pytest.mark.parametrize("dtype", [burn.float16, burn.bfloat16], ids=str)
def test_float64_reaches_halves_through_float32_on_every_device(name: str, dtype: Any) -> None:
    near = np.random.default_rng(0).standard_normal(4000).astype(np.float16)
    tie = (near.astype(np.float64) + np.nextafter(near, np.float16(9)).astype(np.float64)) / 2
    values = np.concatenate([tie, tie * (1 + 1e-12), tie * (1 - 1e-12), tie * 1e6])
    found = [
        burn.tensor(values, dtype=burn.float64, device=burn.device(d)).to(dtype).to(burn.float32)
        for d in (name, "flex")
    ]
    np.testing.assert_array_equal(found[0].numpy(), found[1].numpy())
