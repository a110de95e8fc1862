"""How tensors print."""

from __future__ import annotations

import pytest

import burn_tensor as bt
from burn_dispatch import Device
from burn_std import ArgumentError, dtypes as d


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (lambda: bt.tensor(1), "tensor(1)"),
        (lambda: bt.tensor(1.5), "tensor(1.5000)"),
        (lambda: bt.tensor(True), "tensor(True)"),
        (lambda: bt.tensor([1.0, 2.0]), "tensor([1., 2.])"),
        (lambda: bt.tensor([1.0, float("nan"), float("-inf")]), "tensor([  1.,  nan, -inf])"),
        (lambda: bt.tensor([True, False]), "tensor([ True, False])"),
        (lambda: bt.zeros(0), "tensor([])"),
        (lambda: bt.zeros(0, 3), "tensor([], size=(0, 3))"),
        (lambda: bt.zeros(0, dtype=d.int64), "tensor([], dtype=burn.int64)"),
        (lambda: bt.tensor([1], dtype=d.int8), "tensor([1], dtype=burn.int8)"),
        (lambda: bt.tensor([0.5], dtype=d.bfloat16), "tensor([0.5000], dtype=burn.bfloat16)"),
        (lambda: bt.tensor([1e-8, 1.0]), "tensor([1.0000e-08, 1.0000e+00])"),
        (lambda: bt.zeros(1, device="flex:3"), "tensor([0.], device='flex:3')"),
        (lambda: bt.tensor([[1, 2], [3, 40]]), "tensor([[ 1,  2],\n        [ 3, 40]])"),
    ],
)  # fmt: skip
def test_text(x: object, text: str) -> None:
    assert repr(x()) == text  # type: ignore[operator]


def test_large_tensors_are_shortened() -> None:
    text = repr(bt.arange(100_000).reshape(100, 1000))
    assert "..." in text
    assert len(text.splitlines()) == 7
    assert "99999" in text
    assert "99000" in text
    assert repr(bt.arange(1001)) == "tensor([   0,    1,    2, ...,  998,  999, 1000])"
    assert "..." not in repr(bt.arange(1000))


def test_gradients_show() -> None:
    x = bt.ones(1, device=Device.flex().autodiff()).require_grad()
    assert repr(x) == "tensor([1.], device='autodiff<flex>', require_grad=True)"
    assert repr(x * 2).endswith("tracked=True)")


def test_options() -> None:
    bt.set_printoptions(precision=2, edgeitems=1, threshold=3)
    try:
        assert repr(bt.tensor([0.123, 0.456])) == "tensor([0.12, 0.46])"
        assert repr(bt.arange(5)) == "tensor([0, ..., 4])"
    finally:
        bt.set_printoptions(precision=4, edgeitems=3, threshold=1000)
    with pytest.raises(ArgumentError):
        bt.set_printoptions(precision=-1)
