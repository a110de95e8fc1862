import pytest

import burn_tensor as bt
from burn_dispatch import device
from burn_std import ShapeError

NULL = device("null")


def test_shapes_and_dtypes_without_mathematics() -> None:
    x = bt.zeros(10**6, 10**6, device=NULL)  # nothing is allocated
    y = (x @ x.T).sum(0)
    assert y.shape == (10**6,)
    assert y.dtype is x.dtype
    assert bt.zeros(3, device=NULL).softmax(0).tolist() == [0, 0, 0]


def test_refusals_are_those_of_the_catalogue() -> None:
    with pytest.raises(ShapeError):
        bt.zeros(2, device=NULL) + bt.zeros(3, device=NULL)


def test_gradients_have_shapes_too() -> None:
    w = bt.zeros(4, 3, device=NULL.autodiff()).require_grad()
    grads = bt.functional.linear(bt.zeros(2, 3, device=NULL), w).sum().backward()
    assert w.grad(grads).shape == (4, 3)
