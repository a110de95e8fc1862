"""Slicing, indexing, concatenation and scatter as users broke them elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burn


def test_b02_negative_step_walks_backwards_from_the_start(make: Any) -> None:
    x = make([0, 1, 2, 3, 4])
    assert x[0:5:-1].shape == (0,)
    assert x[::-1].tolist() == [4, 3, 2, 1, 0]
    assert x[3::-1].tolist() == [3, 2, 1, 0]
    assert x[4:0:-2].tolist() == [4, 2]
    assert x[-2:None:-1].tolist() == [3, 2, 1, 0]


def test_b04_stepped_assignment_and_its_gradients(make: Any, leaf: Any) -> None:
    z = make([0.0] * 6)
    z[1:6:2] = make([1.0, 2.0, 3.0])
    assert z.tolist() == [0, 1, 0, 2, 0, 3]
    z = make([0.0] * 6)
    z[::-2] = make([1.0, 2.0, 3.0])
    assert z.tolist() == [0, 3, 0, 2, 0, 1]

    base, value = leaf([1.0] * 6), leaf([5.0, 6.0, 7.0])
    z = base * 1
    z[::-2] = value
    weights = burn.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], device=base.device)
    grads = (z * weights).sum().backward()
    assert value.grad(grads).tolist() == [6, 4, 2]
    assert base.grad(grads).tolist() == [1, 0, 3, 0, 5, 0]


@pytest.mark.parametrize("at", [(0, 4), (0, 6), (0, -5), (4, 0)])
def test_b05_index_out_of_range_names_dim_index_and_size(at: Any, make: Any) -> None:
    with pytest.raises(IndexError) as caught:
        make(np.ones((4, 4)))[at]
    wrong = next(i for i in at if not -4 <= i < 4)
    assert str(wrong) in str(caught.value)
    assert "4" in str(caught.value)


def test_b05_index_tensor_out_of_range_is_never_a_wild_read(make: Any) -> None:
    x = make(np.ones((4, 4)))
    for bad in ([4], [-5]):
        with pytest.raises((IndexError, burn.ExecutionError)):
            x[make(bad)].numpy()
    with pytest.raises((IndexError, burn.ExecutionError)):
        x.gather(1, make([[7]])).numpy()


def test_b06_empty_pieces_of_cat_and_empty_assignment(make: Any) -> None:
    out = burn.cat([make(np.zeros((2, 3))), make(np.zeros((2, 0)))], 1)
    assert out.shape == (2, 3)
    assert burn.cat([make(np.zeros((2, 0))), make(np.zeros((2, 0)))], 1).shape == (2, 0)
    x = make([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    x[5:5] = make(np.zeros(0, np.float32))
    assert x.tolist() == [1, 2, 3, 4, 5, 6]


def test_b08_empty_boolean_selection_has_zero_sum_and_gradient(leaf: Any) -> None:
    x = leaf([1.0, 2.0, 3.0, 4.0])
    mask = burn.tensor([False] * 4, device=x.device)
    total = x[mask].sum()
    grads = total.backward()
    assert total.item() == 0
    assert x.grad(grads).tolist() == [0, 0, 0, 0]


def test_b09_rank_0_prints_and_refuses_slices(make: Any) -> None:
    m = make([0.0, 1.0, 2.0]).mean()
    assert m.shape == ()
    assert m.item() == 1.0
    assert "1." in str(m)
    with pytest.raises(IndexError):
        m[0:1]


def test_b11_offsets_beyond_2_31(make: Any) -> None:
    # Views of one element: no memory, but every offset and extent passes 2^31.
    n = 2**31 + 16
    x = make([7.0]).expand(n)
    assert x[2**31 + 3].item() == 7.0
    assert x[2**31 - 2 : 2**31 + 2].tolist() == [7.0] * 4
    assert x[make([2**31 + 5])].tolist() == [7.0]
    y = make(np.arange(24901, dtype=np.float32)).reshape(24901, 1, 1, 1).expand(24901, 8, 128, 128)
    assert y[16384, 7, 127, 127].item() == 16384
    assert y[24900, 0, 0, :3].tolist() == [24900.0] * 3
