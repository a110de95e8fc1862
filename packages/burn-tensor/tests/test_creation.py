"""New tensors: dtypes, exactness, sharing, and the errors in words."""

from __future__ import annotations

import numpy as np
import pytest

import burn_tensor as bt
from burn_dispatch import Device
from burn_std import ArgumentError, DTypeError, ShapeError, dtypes as d


def test_dtypes_of_python_data() -> None:
    wanted = [
        (1, d.int64), (1.0, d.float32), (True, d.bool_), ([1, 2.5], d.float32),
        ([True, False], d.bool_), ([True, 2], d.int64), ([], d.float32), ([[], []], d.float32),
        (np.float64(1), d.float32),
        (np.ones(1), d.float64), (np.ones(1, np.int8), d.int8), ([np.ones(2)], d.float64),
    ]  # fmt: skip
    for data, dtype in wanted:
        assert bt.tensor(data).dtype is dtype, data


def test_big_integers_are_exact_or_refused() -> None:
    ids = [16777217, 16777219, 2**53 + 1, -(2**63), 2**63 - 1]
    assert bt.tensor(ids).tolist() == ids
    assert bt.tensor([2**63], dtype=d.uint64).tolist() == [2**63]
    with pytest.raises(DTypeError, match="int64"):
        bt.tensor([1, 2**63])
    with pytest.raises(DTypeError, match="int64"):
        bt.tensor([2**70])
    with pytest.raises(DTypeError, match="uint8"):
        bt.tensor([300], dtype=d.uint8)


def test_ragged_lists_name_the_place() -> None:
    with pytest.raises(ShapeError, match=r"data\[1\]\[0\] has 2 elements but data\[1\]\[1\] has 1"):
        bt.tensor([[[1, 2], [3, 4]], [[5, 6], [7]]])
    with pytest.raises(ShapeError, match="no elements"):
        bt.tensor([1, [2]])
    with pytest.raises(DTypeError):
        bt.tensor(["a"])
    with pytest.raises(DTypeError):
        bt.tensor(np.array([1j]))


def test_tensor_copies() -> None:
    a = np.ones(2, np.float32)
    x = bt.tensor(a)
    a[0] = 5
    assert x.tolist() == [1, 1]
    y = bt.tensor(x, dtype=d.float64)
    assert y.dtype is d.float64


def test_from_numpy_shares_owners_and_copies_views() -> None:
    a = np.ones(4, np.float32)
    x = bt.from_numpy(a, device="flex")
    assert not a.flags.writeable
    assert np.shares_memory(x.numpy(), a)
    b = np.ones(4, np.float32)
    view = b[:2]
    y = bt.from_numpy(view)
    view[0] = 7
    assert y.tolist() == [1, 1]
    assert b.flags.writeable
    swapped = np.array([1, 2], ">i4")
    assert bt.from_numpy(swapped).tolist() == [1, 2]
    with pytest.raises(DTypeError):
        bt.from_numpy([1])  # type: ignore[arg-type]


def test_ranges_are_exact() -> None:
    assert bt.arange(16777210, 16777230).tolist() == list(range(16777210, 16777230))
    assert bt.arange(16777217, 16777218, dtype=d.float64).tolist() == [16777217.0]
    assert bt.arange(0, 1, 0.25).tolist() == [0, 0.25, 0.5, 0.75]
    assert bt.arange(5, 0, -2).tolist() == [5, 3, 1]
    assert bt.arange(3, 3).shape == (0,)
    for bad in ((0, 5, 0), (0, 5, -1)):
        with pytest.raises(ArgumentError):
            bt.arange(*bad)


def test_integer_linspace() -> None:
    got = bt.linspace(-2147483647, 2147483647, 10, dtype=d.int32).tolist()
    assert got == [
        -2147483647, -1670265059, -1193046471, -715827883, -238609295, 238609294, 715827882,
        1193046470, 1670265058, 2147483647,
    ]  # fmt: skip
    assert bt.linspace(0, 1, 1).tolist() == [0]
    assert bt.linspace(0, 1, 0).shape == (0,)


def test_filled() -> None:
    assert bt.zeros(2, 3).shape == bt.zeros((2, 3)).shape == bt.zeros([2, 3]).shape == (2, 3)
    assert bt.zeros(()).shape == ()
    assert bt.full((2,), True).dtype is d.bool_
    assert bt.full((2,), 1.5).dtype is d.float32
    assert bt.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    x = bt.ones(2, dtype=d.int32)
    assert bt.zeros_like(x).dtype is d.int32
    assert x.new_full((3,), 2).tolist() == [2, 2, 2]
    with pytest.raises(ShapeError):
        bt.zeros(-1)
    with pytest.raises(DTypeError):
        bt.zeros(1.5)


def test_random_numbers_depend_on_the_seed_alone() -> None:
    bt.manual_seed(3)
    a = bt.rand(4), bt.randn(4), bt.randint(0, 10, (4,)), bt.randperm(5)
    bt.manual_seed(3)
    b = bt.rand(4), bt.randn(4), bt.randint(0, 10, (4,)), bt.randperm(5)
    for x, y in zip(a, b, strict=True):
        assert x.equal(y)
    assert not a[0].equal(bt.rand(4))
    other = Device.flex(7)
    bt.manual_seed(4)
    first = bt.rand(4, device=other)
    assert first.equal(bt.rand(4).to_device(other))


def test_multinomial() -> None:
    bt.manual_seed(0)
    weights = bt.tensor([[0.0, 1.0, 3.0], [1.0, 0.0, 0.0]])
    drawn = bt.multinomial(weights, 200, replacement=True)
    assert drawn.shape == (2, 200)
    assert set(drawn[0].tolist()) == {1, 2}
    assert set(drawn[1].tolist()) == {0}
    assert sorted(bt.multinomial(bt.ones(5), 5).tolist()) == [0, 1, 2, 3, 4]
    with pytest.raises(ArgumentError):
        bt.multinomial(bt.ones(2), 3)


def test_device_names_and_default_device() -> None:
    assert bt.zeros(1, device="flex:1").device == Device.flex(1)
    with Device.flex(2):
        assert bt.zeros(1).device == Device.flex(2)
