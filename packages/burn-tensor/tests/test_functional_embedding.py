"""Look-ups: norms of rows, frequencies, bags against loops, one-hot vectors."""

from __future__ import annotations

import numpy as np
import pytest

import burn_tensor as burn
from burn_dispatch import Device
from burn_std import ArgumentError, DTypeError, IndexRangeError, ShapeError
from burn_std.dtypes import int64
from burn_tensor import functional as F

RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((5, 3))


def leaf(data: object) -> burn.Tensor:
    return burn.tensor(data, device=Device.default().autodiff()).require_grad()


class Parameter(burn.Tensor):
    """Stands in for burn_core's class: an object made to be rebound."""

    def __new__(cls, value: burn.Tensor) -> Parameter:
        made: Parameter = object.__new__(cls)
        made.b, made.v, made.node = value.b, value.v, value.node
        return made

    def __init__(self, value: burn.Tensor) -> None:
        pass

    def set(self, value: burn.Tensor) -> None:
        self.v = value.v


def test_rows_are_scaled_to_the_norm_and_values_stay() -> None:
    w = leaf([[3.0, 4.0], [0.3, 0.4]])
    out = F.embedding(burn.tensor([0, 1]), w, max_norm=1.0)
    np.testing.assert_allclose(out.numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-5)
    assert w.tolist()[0] == [3.0, 4.0]
    assert w.grad(out.sum().backward()).tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_a_parameter_keeps_the_scaled_rows_that_were_looked_up() -> None:
    w = Parameter(leaf([[3.0, 4.0], [6.0, 8.0]]))
    out = F.embedding(burn.tensor([0, 0]), w, max_norm=1.0)
    np.testing.assert_allclose(w.numpy(), [[0.6, 0.8], [6.0, 8.0]], rtol=1e-5)
    assert w.grad(out.sum().backward()).tolist() == [[2.0, 2.0], [0.0, 0.0]]


def test_padding_gets_no_gradient_and_frequency_divides_it() -> None:
    w = leaf(TABLE)
    i = burn.tensor([[0, 4], [0, 1]])
    g = w.grad(F.embedding(i, w, padding_idx=-1).sum().backward()).numpy()
    assert g[:, 0].tolist() == [2.0, 1.0, 0.0, 0.0, 0.0]
    out = F.embedding(i, w, scale_grad_by_freq=True)
    np.testing.assert_array_equal(out.numpy(), TABLE[i.numpy()])
    assert w.grad(out.sum().backward()).numpy()[:, 0].tolist() == [1.0, 1.0, 0.0, 0.0, 1.0]


def test_what_look_ups_refuse() -> None:
    w = burn.tensor(TABLE)
    with pytest.raises(IndexRangeError):
        F.embedding(burn.tensor([5]), w).tolist()
    with pytest.raises(DTypeError):
        F.embedding(burn.tensor([1.0]), w)
    with pytest.raises(ArgumentError, match="padding_idx must be in"):
        F.embedding(burn.tensor([1]), w, padding_idx=5)


BAGS = [[0, 4, 0], [], [1, 3], [2]]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 0])
def test_ragged_bags_against_loops(mode: str, padding: int | None) -> None:
    flat = [i for bag in BAGS for i in bag]
    starts = np.cumsum([0] + [len(bag) for bag in BAGS])
    expected = []
    for bag in BAGS:
        rows = np.array([TABLE[i] for i in bag if i != padding]).reshape(-1, 3)
        expected.append(getattr(rows, mode)(0) if len(rows) else np.zeros(3))
    i, w = burn.tensor(flat), burn.tensor(TABLE)
    out = F.embedding_bag(i, w, burn.tensor(starts[:-1]), mode=mode, padding_idx=padding)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12)
    out = F.embedding_bag(
        i, w, burn.tensor(starts), mode=mode, padding_idx=padding, include_last_offset=True
    )
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_one_size_and_their_gradient(mode: str) -> None:
    i, w = burn.tensor([[0, 4], [1, 0]]), leaf(TABLE)
    out = F.embedding_bag(i, w, mode=mode, padding_idx=0)
    kept = np.array([TABLE[4], TABLE[1]])
    np.testing.assert_allclose(out.numpy(), kept)
    assert w.grad(out.sum().backward()).numpy()[:, 0].tolist() == [0.0, 1.0, 0.0, 0.0, 1.0]


def test_bags_with_weights() -> None:
    i, w, s = burn.tensor([[0, 4]]), burn.tensor(TABLE), leaf([[2.0, 3.0]])
    out = F.embedding_bag(i, w, mode="sum", per_sample_weights=s)
    np.testing.assert_allclose(out.numpy(), [2 * TABLE[0] + 3 * TABLE[4]], rtol=1e-6)
    np.testing.assert_allclose(
        s.grad(out.sum().backward()).numpy(), [TABLE[[0, 4]].sum(1)], rtol=1e-6
    )


def test_what_bags_refuse() -> None:
    i, w = burn.tensor([0, 1]), burn.tensor(TABLE)
    with pytest.raises(ArgumentError, match="offsets go with an input of one dim"):
        F.embedding_bag(i, w)
    with pytest.raises(ArgumentError, match="mode is sum, mean or max"):
        F.embedding_bag(i, w, i, mode="min")
    with pytest.raises(ArgumentError, match="per_sample_weights"):
        F.embedding_bag(i, w, i, per_sample_weights=burn.ones(2))
    with pytest.raises(ShapeError, match="one or two dims"):
        F.embedding_bag(burn.zeros(1, 1, 1, dtype=int64), w)


def test_one_hot() -> None:
    assert F.one_hot(burn.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.one_hot(burn.zeros(0, dtype=int64), 3).shape == (0, 3)
    with pytest.raises(ArgumentError, match="no largest class"):
        F.one_hot(burn.zeros(0, dtype=int64))
    with pytest.raises(IndexRangeError):
        F.one_hot(burn.tensor([3]), 3).tolist()
    with pytest.raises(IndexRangeError):
        F.one_hot(burn.tensor([-1])).tolist()
    with pytest.raises(DTypeError):
        F.one_hot(burn.tensor([1.0]))
