"""Keys: numpy's answers for reading and assigning, and the errors in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn_tensor as bt
from burn_dispatch import Device
from burn_std import (
    ArgumentError,
    AutodiffError,
    BurnError,
    DTypeError,
    IndexRangeError,
    ShapeError,
)

SHAPE = (4, 3, 5)
KEYS: list[Any] = [
    0, -1, slice(None), slice(1, 3), slice(None, None, -1), slice(0, 5, -1), slice(-10, None, -1),
    slice(3, 1), slice(None, None, 2), slice(-2, None), ..., None, (), (1, 2), (1, 2, 3), (..., 0),
    (slice(None), 1), (slice(1, None, 2), slice(None, None, -2), 4), (None, 0, None),
    (0, ..., None), (slice(None), None, 2), [0, 2], [-1, 0, 0], ([0, 1], [1, 2]),
    (slice(None), [0, 2]),
    ([0, 1], slice(None), [2, 3]), (0, slice(None), [1, 2]), (slice(None), 0, [1, 2]),
    ([[0, 1], [2, 3]],), (slice(1, 3), [0, 2]), (None, [0, 1]), ([0, 1], None, [1, 2]),
    (slice(None, None, -1), [0, 2], slice(1, 4)), [], True, False, (True, 1), np.int64(2),
    np.array([1, 2]), range(2), (..., [0, 1]),
]  # fmt: skip


def base() -> np.ndarray[Any, Any]:
    return np.arange(60, dtype=np.float32).reshape(SHAPE)


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_reading_agrees_with_numpy(key: Any) -> None:
    expected = base()[key]
    got = bt.tensor(base())[key]
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got.numpy(), expected)


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_assigning_agrees_with_numpy(key: Any) -> None:
    window = base()[key].shape
    values = (7.5, -np.arange(np.prod(window), dtype=np.float32).reshape(window))
    # numpy takes ones in front of any window but a single element's.
    more = (values[1].reshape((1, *window)),) if window else ()
    for value in (*values, *more):
        expected, x = base(), bt.tensor(base())
        kept = x[:]
        expected[key] = value
        x[key] = value if isinstance(value, float) else bt.tensor(value)
        np.testing.assert_array_equal(x.numpy(), expected)
        np.testing.assert_array_equal(kept.numpy(), base())


@pytest.mark.parametrize("covered", [1, 2, 3])
def test_masks_agree_with_numpy(covered: int) -> None:
    mask = (np.arange(60).reshape(SHAPE)[(..., *[0] * (3 - covered))] % 3) == 0
    expected, x = base(), bt.tensor(base())
    np.testing.assert_array_equal(x[bt.tensor(mask)].numpy(), expected[mask])
    np.testing.assert_array_equal(x[mask].numpy(), expected[mask])
    rows = -base()[mask]
    for value in (1.0, rows):
        y, want = x.clone(), base()
        y[bt.tensor(mask)] = value if isinstance(value, float) else bt.tensor(value)
        want[mask] = value
        np.testing.assert_array_equal(y.numpy(), want)


def test_tensors_as_indices() -> None:
    x = bt.tensor(base())
    i, j = bt.tensor([0, 2]), bt.tensor([[1], [2]])
    np.testing.assert_array_equal(x[i].numpy(), base()[[0, 2]])
    np.testing.assert_array_equal(x[i, j].numpy(), base()[[0, 2], [[1], [2]]])
    np.testing.assert_array_equal(x[bt.tensor(1)].numpy(), base()[1])
    assert x[1 : bt.tensor(3)].shape == (2, 3, 5)


def test_empty_mask_and_empty_windows() -> None:
    x = bt.arange(6).float()
    assert x[x > 99].shape == (0,)
    x[5:5] = bt.zeros(0)
    x[x > 99] = 1.0
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_stepped_assignment() -> None:
    z = bt.zeros(6)
    z[1:6:2] = [1, 2, 3]
    assert z.tolist() == [0, 1, 0, 2, 0, 3]
    z = bt.zeros(6)
    z[::-2] = [1, 2, 3]
    assert z.tolist() == [0, 3, 0, 2, 0, 1]


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (4, IndexRangeError), ((0, -4), IndexRangeError), ((0, 0, 0, 0), IndexRangeError),
        (([0, 4],), IndexRangeError), ((..., ...), IndexRangeError), ([1.5], DTypeError),
        ("a", DTypeError), (1.0, DTypeError), (slice(None, None, 0), ArgumentError),
        ([[1], [1, 2]], DTypeError), (np.zeros(3, bool), IndexRangeError), ({}, DTypeError),
    ],
    ids=repr,
)  # fmt: skip
def test_bad_keys(key: Any, error: type[BurnError]) -> None:
    x = bt.tensor(base())
    with pytest.raises(error):
        x[key]
    with pytest.raises(error):
        x[key] = 0


def test_an_index_out_of_range_names_dim_and_size() -> None:
    with pytest.raises(IndexError, match=r"index 5, dim 1 of size 4"):
        bt.ones(4, 4)[0, 5]


def test_rank_zero_has_no_slices() -> None:
    m = bt.tensor(1.0)
    for key in (0, slice(0, 1)):
        with pytest.raises(IndexError):
            m[key]
    assert m[()].item() == m[...].item() == m[None].item() == 1.0


def test_values_take_the_dtype_and_must_fit() -> None:
    x = bt.zeros(3, dtype=bt.tensor(1).dtype)
    x[0] = 2.9
    x[1] = bt.tensor(3.5)
    x[2] = True
    assert x.tolist() == [2, 3, 1]
    with pytest.raises(ShapeError):
        x[0:2] = bt.zeros(3)
    with pytest.raises(DTypeError):
        x[0] = "a"


def test_assigning_into_a_temporary_is_refused() -> None:
    x = bt.zeros(2, 2)
    with pytest.raises(ArgumentError, match="temporary"):
        x[0][1] = 1.0
    with pytest.raises(ArgumentError, match="temporary"):
        x.T[0] = 1.0
    holder = [x]
    holder[0][0] = 5.0
    holder[0][1] += 1.0
    assert x.tolist() == [[5, 5], [1, 1]]


def test_every_name_of_the_object_sees_an_assignment() -> None:
    x = bt.zeros(2)
    same, other, part = x, x.clone(), x[0]
    x[0] = 1.0
    assert same.tolist() == [1, 0]
    assert other.tolist() == [0, 0]
    assert part.item() == 0.0


def test_gradients_of_assignments() -> None:
    device = Device.default().autodiff()
    x = bt.zeros(6, device=device).require_grad()
    v = bt.ones(3, device=device).require_grad()
    y = x * 1
    y[1:6:2] = v
    weights = bt.arange(6).float()
    grads = (y * weights).sum().backward()
    assert x.grad(grads).tolist() == [0, 0, 2, 0, 4, 0]
    assert v.grad(grads).tolist() == [1, 3, 5]
    y = x * 1
    y[bt.tensor([True, False] * 3)] = v
    grads = (y * weights).sum().backward()
    assert x.grad(grads).tolist() == [0, 1, 0, 3, 0, 5]
    assert v.grad(grads).tolist() == [0, 2, 4]
    y = x * 1
    y[[0, 5]] = v[0]
    grads = (y * weights).sum().backward()
    assert x.grad(grads).tolist() == [0, 1, 2, 3, 4, 0]
    assert v.grad(grads).tolist() == [5, 0, 0]


def test_gradient_of_an_empty_selection() -> None:
    x = bt.ones(4, device=Device.default().autodiff()).require_grad()
    y = x[x > 5].sum()
    assert y.item() == 0.0
    assert x.grad(y.backward()).tolist() == [0, 0, 0, 0]


def test_a_leaf_is_not_assigned_into() -> None:
    from burn_dispatch import no_grad

    x = bt.ones(2, device=Device.default().autodiff()).require_grad()
    with pytest.raises(AutodiffError, match="clone"):
        x[0] = 1.0
    with no_grad():
        x[0] = 5.0
    assert x.is_require_grad()
    assert x.tolist() == [5, 1]
