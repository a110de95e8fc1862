"""Views, padding and indexing: values of their decompositions."""

from __future__ import annotations

from typing import Any

import pytest

from burn_ir import Spec
from burn_std import IndexRangeError, ShapeError
from burn_std.dtypes import bool_, float32, float64, int64


def numbers(fake: Any, *shape: int) -> Any:
    count = 1
    for n in shape:
        count *= n
    return fake.tensor(list(map(float, range(count))), shape=shape)


def test_squeeze_unsqueeze_flip(fake: Any) -> None:
    x = numbers(fake, 2, 3)
    assert fake.unsqueeze(x, (0, 3)).shape == (1, 2, 3, 1)
    assert fake.squeeze(fake.unsqueeze(x, (0, 3)), (0, 3)).list() == x.list()
    assert fake.flip(x, (0, 1)).list() == [[5.0, 4.0, 3.0], [2.0, 1.0, 0.0]]
    assert fake.flip(x, ()).list() == x.list()
    assert fake.flip(numbers(fake, 0, 2), (0,)).shape == (0, 2)
    assert fake.flip(numbers(fake), (0,)).list() == 0.0


@pytest.mark.parametrize(
    ("dims", "offset", "want"),
    [
        ((0, 1), 0, [0.0, 4.0]), ((0, 1), 1, [1.0, 5.0]), ((1, 0), 1, [3.0]),
        ((0, 1), -1, [3.0]), ((0, 1), 9, []), ((1, 0), -2, [2.0]),
    ],
)  # fmt: skip
def test_diagonal_and_its_adjoint(fake: Any, dims: Any, offset: int, want: list[float]) -> None:
    x = numbers(fake, 2, 3)
    assert fake.diagonal(x, *dims, offset).list() == want
    back = fake.diagonal_backward(fake.tensor(want, shape=(len(want),)), *dims, (2, 3), offset)
    assert sorted(v for v in back.data if v) == sorted(v for v in want if v)
    assert fake.diagonal(back, *dims, offset).list() == want


def test_diagonal_of_separated_dims_comes_last(fake: Any) -> None:
    x = numbers(fake, 2, 3, 2)
    got = fake.diagonal(x, 0, 2, 0)
    assert got.list() == [[0.0, 7.0], [2.0, 9.0], [4.0, 11.0]]
    assert fake.diagonal(fake.diagonal_backward(got, 0, 2, (2, 3, 2), 0), 0, 2, 0).list() == (
        got.list()
    )


def test_windows_and_their_adjoint(fake: Any) -> None:
    x = numbers(fake, 5)
    assert fake.unfold_dim(x, 0, 3, 2).list() == [[0.0, 1.0, 2.0], [2.0, 3.0, 4.0]]
    g = fake.tensor([[1.0] * 3] * 2)
    assert fake.unfold_dim_backward(g, 0, 3, 2, (5,)).list() == [1.0, 1.0, 2.0, 1.0, 1.0]
    y = fake.unfold_dim(numbers(fake, 3, 2), 0, 2, 1)
    assert y.list() == [[[0.0, 2.0], [1.0, 3.0]], [[2.0, 4.0], [3.0, 5.0]]]
    assert fake.unfold_dim(numbers(fake), 0, 1, 1).list() == [0.0]
    assert fake.unfold_dim(numbers(fake), 0, 0, 1).shape == (0,)


def test_roll_and_repeat(fake: Any) -> None:
    x = numbers(fake, 2, 3)
    assert fake.roll(x, (1,), (1,)).list() == [[2.0, 0.0, 1.0], [5.0, 3.0, 4.0]]
    assert fake.roll(x, (0, 1), (-3, 7)).list() == [[5.0, 3.0, 4.0], [2.0, 0.0, 1.0]]
    assert fake.roll(numbers(fake, 0), (0,), (2,)).shape == (0,)
    assert fake.repeat(fake.tensor([1.0, 2.0]), (2, 2)).list() == [[1.0, 2.0, 1.0, 2.0]] * 2
    assert fake.repeat(fake.tensor(7.0), (3,)).list() == [7.0] * 3
    assert fake.repeat(x, (0, 1)).shape == (0, 3)


@pytest.mark.parametrize("diagonal", [-3, -1, 0, 1, 5])
@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles_equal_their_expression(fake: Any, name: str, diagonal: int) -> None:
    x = fake.tensor(list(map(float, range(1, 13))), shape=(2, 2, 3))
    got = getattr(fake, name)(x, diagonal)
    fake.native = {name}
    assert got.data == getattr(fake, name)(x, diagonal).data
    assert getattr(fake, name)(fake.tensor([[True]], bool_), 0).data == [True]


@pytest.mark.parametrize(
    ("mode", "want"),
    [
        ("constant", [9.0, 9.0, 1.0, 2.0, 3.0, 9.0]),
        ("reflect", [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]),
        ("replicate", [1.0, 1.0, 1.0, 2.0, 3.0, 3.0]),
        ("circular", [2.0, 3.0, 1.0, 2.0, 3.0, 1.0]),
    ],
)
def test_pad_and_its_adjoint(fake: Any, mode: str, want: list[float]) -> None:
    x = fake.tensor([1.0, 2.0, 3.0])
    assert fake.pad(x, mode, ((2, 1),), 9.0).list() == want
    # <pad(x), g> = <x, pad_backward(g)> for the linear part of pad.
    g = fake.tensor([1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0])
    back = fake.pad_backward(g, mode, ((2, 1),))
    padded = fake.pad(x, mode, ((2, 1),), 0.0)
    left = sum(a * b for a, b in zip(padded.data, g.data, strict=True))
    assert left == sum(a * b for a, b in zip(x.data, back.data, strict=True))


def test_negative_pads_crop(fake: Any) -> None:
    x = numbers(fake, 4)
    assert fake.pad(x, "constant", ((-1, 2),), 5.0).list() == [1.0, 2.0, 3.0, 5.0, 5.0]
    assert fake.pad(x, "constant", ((-5, 3),), 5.0).list() == [5.0, 5.0]
    assert fake.pad(x, "constant", ((-2, -2),), 5.0).shape == (0,)
    assert fake.pad(x, "replicate", ((-1, 1),), 0.0).list() == [1.0, 2.0, 3.0, 3.0]
    assert fake.pad(numbers(fake, 0), "constant", ((1, 1),), 2.0).list() == [2.0, 2.0]


def test_slice_backward_puts_the_window_back(fake: Any) -> None:
    g = fake.tensor([1.0, 2.0])
    assert fake.slice_backward(g, (-2,), (3,), (0,), (4,)).list() == [0.0, 2.0, 0.0, 1.0]
    with pytest.raises(ShapeError, match="slice_backward"):
        fake.slice_backward(g, (1,), (0,), (3,), (4,))


def test_index_select_and_add(fake: Any) -> None:
    x, at = numbers(fake, 2, 3), fake.tensor([2, 0, 2], int64)
    assert fake.index_select(x, at, 1).list() == [[2.0, 0.0, 2.0], [5.0, 3.0, 5.0]]
    assert fake.index_select(fake.tensor(4.0), fake.tensor(0, int64), 0).list() == 4.0
    src = fake.tensor([[1.0, 2.0, 3.0]] * 2)
    assert fake.index_add(x, at, src, 1, 10).list() == [[20.0, 1.0, 42.0], [23.0, 4.0, 45.0]]
    assert (
        fake.index_add(fake.tensor(1.0), fake.tensor([0], int64), fake.tensor([2.0]), 0, 1).list()
        == 3.0
    )


def test_embedding_and_its_adjoint(fake: Any) -> None:
    weight, at = numbers(fake, 3, 2), fake.tensor([[0, 2], [2, 1]], int64)
    assert fake.embedding(weight, at, None).list()[0] == [[0.0, 1.0], [4.0, 5.0]]
    g = fake.tensor([[[1.0, 1.0]] * 2] * 2)
    assert fake.embedding_backward(g, at, None, 3).list() == [[1.0] * 2, [1.0] * 2, [2.0] * 2]
    assert fake.embedding_backward(g, at, 2, 3).list() == [[1.0] * 2, [1.0] * 2, [0.0] * 2]
    empty = fake.embedding(weight, fake.tensor([], int64), None)
    assert empty.shape == (0, 2)


def test_one_hot_searchsorted_bincount(fake: Any) -> None:
    at = fake.tensor([2, 0], int64)
    assert fake.one_hot(at, 3).list() == [[0, 0, 1], [1, 0, 0]]
    line = fake.tensor([1.0, 3.0, 3.0, 5.0])
    values = fake.tensor([0.0, 3.0, 6.0, float("nan")])
    assert fake.searchsorted(line, values, False).list() == [0, 1, 4, 4]
    assert fake.searchsorted(line, values, True).list() == [0, 3, 4, 4]
    assert fake.searchsorted(line, fake.tensor(3.0), True).list() == 3
    rows = fake.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert fake.searchsorted(rows, fake.tensor([[2.0], [9.0]]), False).list() == [[1], [2]]
    x = fake.tensor([1, 1, 3], int64)
    assert fake.bincount(x, None, 5).list() == [0, 2, 0, 1, 0]
    weights = fake.tensor([0.5, 0.25, 2.0], float32)
    assert fake.bincount(x, weights, 4).list() == [0.0, 0.75, 0.0, 2.0]
    assert fake.bincount(x, fake.tensor([1, 2, 3], int64), 4).dtype is float64


def test_masked_select(fake: Any) -> None:
    x = numbers(fake, 2, 2)
    mask = fake.tensor([[True, False], [True, True]], bool_)
    assert fake.masked_select(x, mask).list() == [0.0, 2.0, 3.0]
    assert fake.masked_select(fake.tensor(5.0), fake.tensor(True, bool_)).list() == [5.0]
    assert Spec((0,), float64).rank == 1


def test_dims_out_of_range_are_index_errors(fake: Any) -> None:
    x = numbers(fake, 2, 3)
    for name, args in [("flip", ((2,),)), ("softmax", (2, None)), ("index_select", None)]:
        with pytest.raises(IndexRangeError, match=name):
            if args is None:
                fake.index_select(x, fake.tensor([0], int64), 5)
            else:
                getattr(fake, name)(x, *args)
