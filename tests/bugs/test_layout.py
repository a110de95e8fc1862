"""Layout, broadcasting and contiguity."""

from __future__ import annotations

from typing import Any

import numpy as np

import burn
from burn import functional


def test_b13_both_operands_permuted_and_one_broadcast(make: Any) -> None:
    a = make(np.arange(6).reshape(2, 3))
    b = make([[10], [20]])
    assert (a.T + b.T).tolist() == [[10, 23], [11, 24], [12, 25]]


def test_b14_map_and_reduction_after_a_permutation(make: Any) -> None:
    t = make(np.arange(1024).reshape(2, 2, 256))
    p = t.permute(0, 2, 1)
    assert p.shape == (2, 256, 2)
    assert p.sum(1).tolist() == [[32640, 98176], [163712, 229248]]
    assert ((p + 1) * 2).sum(1).tolist() == [[65792, 196864], [327936, 459008]]


def test_b15_products_of_views(make: Any) -> None:
    row = make(np.zeros((1, 1), np.float32)).expand(1, 2)
    assert (row @ make(np.zeros((2, 2), np.float32))).tolist() == [[0, 0]]
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(1, 8, 2048)).astype("f4"), rng.normal(size=(32, 2048)).astype("f4")
    found = make(x)[:, 7, :] @ make(w).T
    assert found.shape == (1, 32)
    np.testing.assert_allclose(found.numpy(), x[:, 7, :] @ w.T, rtol=1e-4, atol=1e-3)


def test_b17_transposed_weight(make: Any) -> None:
    x = np.arange(6, dtype="f4").reshape(2, 3)
    w = np.arange(12, dtype="f4").reshape(3, 4)
    stored = make(np.ascontiguousarray(w.T)).T  # column-major
    np.testing.assert_array_equal((make(x) @ stored).numpy(), x @ w)
    np.testing.assert_array_equal(functional.linear(make(x), stored.T).numpy(), x @ w)


def test_b18_what_was_written_is_what_is_returned(make: Any) -> None:
    # The fault: an update went to a contiguous copy of a view and the view was returned.
    for view in (make([[1.0, 2.0], [3.0, 4.0]]).T, make([[1.0, 3.0], [2.0, 4.0]])):
        y = view.contiguous()
        y += 10
        assert y.tolist() == [[11, 13], [12, 14]]
        y[0] = 0.0
        assert y.tolist() == [[0, 0], [12, 14]]
        assert view.tolist() == [[1, 3], [2, 4]]


def test_b19_unsqueeze_after_keepdim(make: Any) -> None:
    x = make(np.ones((1, 16, 256), np.float32))
    inverse = ((x * x).mean(2, keepdim=True) + 1e-5) ** -0.5
    found = inverse.unsqueeze(2)
    assert found.shape == (1, 16, 1, 1)
    np.testing.assert_allclose(found.numpy(), 0.999995, rtol=1e-6)


def test_b18_rows_of_a_stack_are_their_own(make: Any) -> None:
    parts = [make([1.0, 2.0]), make([3.0, 4.0])]
    both = burn.stack(parts)
    parts[0][0] = 9.0
    assert both.tolist() == [[1, 2], [3, 4]]
