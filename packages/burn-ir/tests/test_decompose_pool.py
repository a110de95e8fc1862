"""Pooling, unfold and fold: decompositions against loops over windows."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest

from burn_std.dtypes import float16, float64, int64

NAN = math.nan


def plane(fake: Any, *shape: int) -> Any:
    count = math.prod(shape)
    return fake.tensor([float(i * 7 % 11 - 5) for i in range(count)], shape=(1, 1, *shape))


def looped(x: Any, sizes: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Return, per window in order, the (value, flat index) of its elements inside the input."""
    extents = x.shape[2:]
    out = []
    for o in product(*map(range, sizes)):
        inside = []
        for k in product(*map(range, kernel)):
            at = [
                i * s - p + d * j
                for i, s, p, d, j in zip(o, stride, padding, dilation, k, strict=True)
            ]
            if all(0 <= a < n for a, n in zip(at, extents, strict=True)):
                place = 0
                for a, n in zip(at, extents, strict=True):
                    place = place * n + a
                inside.append((x.data[place], place))
        out.append(inside)
    return out


SETTINGS = [
    # kernel, stride, padding, dilation, ceil
    ((3,), (2,), (1,), (1,), False),
    ((3,), (2,), (1,), (2,), True),
    ((2,), (3,), (1,), (1,), True),
    ((2, 3), (1, 2), (1, 1), (1, 1), False),
    ((3, 2), (2, 2), (1, 0), (2, 1), True),
    ((2, 2, 2), (1, 2, 1), (0, 1, 1), (1, 1, 1), False),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_max_pool_equals_loops(fake: Any, setting: Any) -> None:
    kernel, stride, padding, dilation, ceil = setting
    x = plane(fake, *(5, 6, 4)[: len(kernel)])
    values, indices = fake.max_pool(x, kernel, stride, padding, dilation, ceil)
    windows = looped(x, values.shape[2:], kernel, stride, padding, dilation)
    want = [max(w, key=lambda v: v[0]) for w in windows]
    assert values.data == [v for v, _ in want]
    assert indices.data == [i for _, i in want]


def test_max_pool_padding_never_wins(fake: Any) -> None:
    x = fake.tensor([[[-math.inf, -math.inf, NAN]]])
    values, indices = fake.max_pool(x, (2,), (2,), (1,), (1,), False)
    assert (values.data[0], indices.data) == (-math.inf, [0, 2])
    assert math.isnan(values.data[1])
    ints = fake.tensor([[[-5, -3]]], int64)
    assert fake.max_pool(ints, (2,), (2,), (1,), (1,), False)[0].data == [-5, -3]


def test_max_pool_backward_and_gather(fake: Any) -> None:
    x = plane(fake, 4, 4)
    values, indices = fake.max_pool(x, (2, 2), (1, 1), (0, 0), (1, 1), False)
    assert fake.pool_gather(x, indices).data == values.data
    g = fake.tensor([1.0] * 9, shape=(1, 1, 3, 3))
    back = fake.max_pool_backward(g, indices, (2, 2), (1, 1), (0, 0), (1, 1), (1, 1, 4, 4))
    assert sum(back.data) == 9.0
    assert all(back.data[i] >= 1 for i in indices.data)


@pytest.mark.parametrize("pads", [True, False])
@pytest.mark.parametrize("setting", [s for s in SETTINGS if set(s[3]) == {1}], ids=str)
def test_avg_pool_and_its_adjoint(fake: Any, setting: Any, pads: bool) -> None:
    kernel, stride, padding, dilation, ceil = setting
    x = plane(fake, *(5, 6, 4)[: len(kernel)])
    got = fake.avg_pool(x, kernel, stride, padding, ceil, pads, None)
    windows = looped(x, got.shape[2:], kernel, stride, padding, dilation)
    for o, (value, inside) in enumerate(zip(got.data, windows, strict=True)):
        count = len(inside)
        if pads:
            rest, count = o, 1
            for n, out, k, s, p in reversed(
                list(zip(x.shape[2:], got.shape[2:], kernel, stride, padding, strict=True))
            ):
                start = rest % out * s - p
                rest //= out
                count *= min(start + k, n + p) - start
        assert math.isclose(value, sum(v for v, _ in inside) / count, abs_tol=1e-12)
    g = plane(fake, *got.shape[2:])
    back = fake.avg_pool_backward(g, kernel, stride, padding, ceil, pads, None, x.shape)
    left = sum(a * b for a, b in zip(got.data, g.data, strict=True))
    right = sum(a * b for a, b in zip(x.data, back.data, strict=True))
    assert math.isclose(left, right, abs_tol=1e-9)


def test_avg_pool_divisor_and_f16(fake: Any) -> None:
    x = fake.tensor([[[60000.0, 60000.0]]], float16)
    assert fake.avg_pool(x, (2,), (2,), (0,), False, True, 4).data == [30000.0]


@pytest.mark.parametrize("size", [(3,), (7,), (2, 3), (1, 1), (2, 2, 3)], ids=str)
def test_adaptive_pools(fake: Any, size: Any) -> None:
    x = plane(fake, *(5, 6, 4)[: len(size)])
    mean = fake.adaptive_avg_pool(x, size)
    values, indices = fake.adaptive_max_pool(x, size)
    for place, o in enumerate(product(*map(range, size))):
        spans = [
            range(i * n // s, -(-(i + 1) * n // s))
            for i, n, s in zip(o, x.shape[2:], size, strict=True)
        ]
        inside = [x.at(0, 0, *w) for w in product(*spans)]
        assert math.isclose(mean.data[place], sum(inside) / len(inside), abs_tol=1e-12)
        assert values.data[place] == max(inside) == x.data[indices.data[place]]
    g = plane(fake, *size)
    back = fake.adaptive_avg_pool_backward(g, x.shape)
    left = sum(a * b for a, b in zip(mean.data, g.data, strict=True))
    right = sum(a * b for a, b in zip(x.data, back.data, strict=True))
    assert math.isclose(left, right, abs_tol=1e-9)


def test_adaptive_pools_of_size_zero_and_infinite_neighbours(fake: Any) -> None:
    x = plane(fake, 4)
    assert fake.adaptive_avg_pool(x, (0,)).shape == (1, 1, 0)
    assert fake.adaptive_max_pool(x, (0,))[1].shape == (1, 1, 0)
    y = fake.tensor([[[1.0, 2.0, math.inf, NAN, 3.0]]])
    assert fake.adaptive_avg_pool(y, (5,)).data[:3] == [1.0, 2.0, math.inf]
    assert fake.adaptive_avg_pool(fake.tensor([], float64, (0, 2, 3)), (2,)).shape == (0, 2, 2)


def test_unfold_and_fold_are_adjoint(fake: Any) -> None:
    x = fake.tensor([float(i) for i in range(40)], shape=(1, 2, 4, 5))
    columns = fake.unfold(x, (2, 3), (1, 1), (1, 0), (2, 1))
    assert columns.shape == (1, 12, 9)
    assert columns.list()[0][3][:3] == [0.0, 1.0, 2.0]
    back = fake.fold(columns, (2, 3), (1, 1), (1, 0), (2, 1), (4, 5))
    left = sum(v * v for v in columns.data)
    assert left == sum(a * b for a, b in zip(x.data, back.data, strict=True))
