"""Laws of shapes: broadcasting, reshaping, splitting, slicing, indexing; numpy is the judge."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import burn

SIZES = st.integers(0, 4)
SHAPES = st.lists(SIZES, max_size=4).map(tuple)
quiet = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def numbers(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.arange(prod(shape), dtype=np.int64).reshape(shape)


@st.composite
def pairs(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes, most of which broadcast."""
    shape = draw(SHAPES)
    other = [1 if draw(st.booleans()) else n for n in shape][draw(st.integers(0, len(shape))) :]
    if draw(st.integers(0, 5)) == 0:
        other = [draw(SIZES) for _ in other]
    return (shape, tuple(other)) if draw(st.booleans()) else (tuple(other), shape)


@quiet
@given(pairs())
def test_broadcasting_is_numpys(device: Any, shapes: Any) -> None:
    x, y = (numbers(s) for s in shapes)
    a, b = (burn.tensor(v, device=device) for v in (x, y))
    try:
        expected = x + y
    except ValueError:
        with pytest.raises(burn.ShapeError):
            (a + b).numpy()
        return
    np.testing.assert_array_equal((a + b).numpy(), expected)
    np.testing.assert_array_equal((a < b).numpy(), x < y)
    np.testing.assert_array_equal(burn.where(a > b, a, b).numpy(), np.where(x > y, x, y))


@quiet
@given(SHAPES, st.randoms(use_true_random=False))
def test_reshapes_and_permutations_come_back(device: Any, shape: Any, random: Any) -> None:
    x = burn.tensor(numbers(shape), device=device)
    order = list(range(len(shape)))
    random.shuffle(order)
    back = [order.index(i) for i in range(len(shape))]
    np.testing.assert_array_equal(x.permute(*order).permute(*back).numpy(), numbers(shape))
    flat = x.reshape(-1) if prod(shape) else x.reshape(0)
    np.testing.assert_array_equal(flat.reshape(shape).numpy(), numbers(shape))
    moved = x.permute(*order).reshape(prod(shape))
    np.testing.assert_array_equal(moved.numpy(), numbers(shape).transpose(order).reshape(-1))


@quiet
@given(SHAPES.filter(len), st.data())
def test_reductions_split(device: Any, shape: Any, data: Any) -> None:
    dim = data.draw(st.integers(0, len(shape) - 1))
    at = data.draw(st.integers(0, shape[dim]))
    x = burn.tensor(numbers(shape) - 7, device=device)
    first, second = x.narrow(dim, 0, at), x.narrow(dim, at, shape[dim] - at)
    np.testing.assert_array_equal((first.sum(dim) + second.sum(dim)).numpy(), x.sum(dim).numpy())
    np.testing.assert_array_equal((first.prod(dim) * second.prod(dim)).numpy(), x.prod(dim).numpy())
    if 0 < at < shape[dim] and prod(shape):
        extreme = burn.maximum(first.amax(dim), second.amax(dim))
        np.testing.assert_array_equal(extreme.numpy(), x.amax(dim).numpy())
    np.testing.assert_array_equal(x.sum().numpy(), x.sum(dim).sum().numpy())
    joined = burn.cat([first, second], dim)
    np.testing.assert_array_equal(joined.numpy(), x.numpy())


@quiet
@given(st.integers(0, 6), st.integers(0, 6), st.integers(1, 6))
def test_a_slice_padded_is_the_middle(device: Any, start: int, stop: int, n: int) -> None:
    x = numbers((2, n)) + 1
    a, b = sorted((min(start, n), min(stop, n)))
    found = burn.functional.pad(burn.tensor(x, device=device)[:, a:b], (a, n - b))
    expected = np.zeros_like(x)
    expected[:, a:b] = x[:, a:b]
    np.testing.assert_array_equal(found.numpy(), expected)


def _bounds(n: int) -> Any:
    return st.none() | st.integers(-n - 2, n + 2)


@st.composite
def keys(draw: Any, shape: tuple[int, ...]) -> Any:
    """A key that numpy understands, with every kind of part."""
    parts: list[Any] = []
    dim = 0
    arrays = draw(st.booleans())
    length = draw(st.integers(0, 3))
    while dim < len(shape):
        n = shape[dim]
        kind = draw(st.sampled_from(["slice", "slice", "int", "none", "end", "array", "mask"]))
        if kind == "end":
            break
        if kind == "none":
            parts.append(None)
            continue
        if kind == "int" and n:
            parts.append(draw(st.integers(-n, n - 1)))
        elif kind == "array" and arrays and n:
            parts.append(draw(st.lists(st.integers(-n, n - 1), min_size=length, max_size=length)))
        elif kind == "mask" and arrays and length == 0:
            parts.append(np.zeros(n, bool))
        else:
            step = draw(st.sampled_from([None, 1, 2, 3, -1, -2]))
            parts.append(slice(draw(_bounds(n)), draw(_bounds(n)), step))
        dim += 1
    if draw(st.integers(0, 3)) == 0:
        # Elsewhere it would shift what follows to other dims when some are left out.
        parts.insert(
            draw(st.integers(0, len(parts))) if dim == len(shape) else len(parts), Ellipsis
        )
    return tuple(parts)


def _shown(key: Any, device: Any) -> Any:
    return tuple(burn.tensor(p, device=device) if isinstance(p, np.ndarray) else p for p in key)


@settings(quiet, max_examples=max(300, settings().max_examples))
@given(SHAPES, st.data())
def test_indexing_is_numpys(device: Any, shape: Any, data: Any) -> None:
    key = data.draw(keys(shape))
    x = numbers(shape)
    clean = tuple(np.array(p, np.int64) if isinstance(p, list) else p for p in key)
    expected = x[clean]
    found = burn.tensor(x, device=device)[_shown(key, device)]
    np.testing.assert_array_equal(found.numpy(), expected)
    assert found.shape == expected.shape

    value = -1 - numbers(expected.shape)
    want = x.copy()
    want[clean] = value
    target = burn.tensor(x, device=device)
    before = target + 0
    target[_shown(key, device)] = burn.tensor(value, device=device)
    np.testing.assert_array_equal(target.numpy(), want)
    np.testing.assert_array_equal(before.numpy(), x)


@quiet
@given(SHAPES.filter(len), st.randoms(use_true_random=False))
def test_masks_are_numpys(device: Any, shape: Any, random: Any) -> None:
    x = numbers(shape)
    mask = np.array([random.random() < 0.5 for _ in range(x.size)], bool).reshape(shape)
    a, m = burn.tensor(x, device=device), burn.tensor(mask, device=device)
    np.testing.assert_array_equal(a[m].numpy(), x[mask])
    np.testing.assert_array_equal(m.nonzero().numpy(), np.argwhere(mask))
    want = x.copy()
    want[mask] = -1
    a[m] = -1
    np.testing.assert_array_equal(a.numpy(), want)


@pytest.mark.parametrize("name", ["relu", "relu6"])
def test_a_negative_zero_stays_one(device: Any, name: str) -> None:
    # In every place of a vector, and of what is left of one.
    given = np.tile(np.array([-0.0, 0.0, -1.0, 2.0, np.nan], np.float32), 7)
    want = np.tile(np.array([-0.0, 0.0, 0.0, 2.0, np.nan], np.float32), 7)
    x = burn.tensor(given, device=device)
    made = getattr(burn.functional, name)(x).numpy()
    assert np.array_equal(made, want, equal_nan=True)
    assert np.array_equal(np.signbit(made), np.signbit(want))
    leaf = burn.tensor(given, device=device.autodiff()).require_grad()
    slope = leaf.grad(getattr(burn.functional, name)(leaf).sum().backward()).numpy()
    assert np.array_equal(slope[:4], [0, 0, 0, 1])
