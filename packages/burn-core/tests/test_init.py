"""Initializers against PyTorch's formulas, by moments and bounds."""

from __future__ import annotations

import math

import pytest

import burn_tensor as bt
from burn_core import Parameter, init
from burn_std import ArgumentError, DTypeError, ShapeError
from burn_std.dtypes import bfloat16, float64


@pytest.fixture(autouse=True)
def _seed() -> None:
    bt.manual_seed(7)


def made(*shape: int) -> Parameter:
    return Parameter(bt.zeros(*shape, dtype=float64))


def test_uniform_bounds_are_pytorchs() -> None:
    # fan_in 3 * 9 = 27, fan_out 64 * 9; gain of leaky_relu(sqrt 5) is sqrt(1/3).
    shape = (64, 3, 3, 3)
    p = made(*shape)
    for fill, bound in (
        (lambda: init.kaiming_uniform_(p, a=math.sqrt(5)), 1 / math.sqrt(27)),
        (lambda: init.kaiming_uniform_(p, mode="fan_out", nonlinearity="relu"), math.sqrt(6 / 576)),
        (lambda: init.xavier_uniform_(p, gain=2.0), 2.0 * math.sqrt(6 / (27 + 576))),
    ):
        fill()
        largest = p.abs().max().item()
        assert 0.98 * bound < largest <= bound


def test_normal_deviations_are_pytorchs() -> None:
    p = made(64, 30, 3, 3)
    for fill, std in (
        (lambda: init.kaiming_normal_(p, nonlinearity="relu"), math.sqrt(2 / 270)),
        (lambda: init.xavier_normal_(p), math.sqrt(2 / (270 + 576))),
        (lambda: init.normal_(p, 1.0, 0.5), 0.5),
    ):
        fill()
        assert p.std().item() == pytest.approx(std, rel=0.02)


def test_truncated_normal_has_its_moments() -> None:
    p = made(20000)
    init.trunc_normal_(p, mean=1.0, std=2.0, a=0.0, b=3.0)
    # Of N(1, 2) cut to [0, 3]: alpha -1/2, beta 1.
    phi = [math.exp(-z * z / 2) / math.sqrt(2 * math.pi) for z in (-0.5, 1.0)]
    mass = (math.erf(1 / math.sqrt(2)) + math.erf(0.5 / math.sqrt(2))) / 2
    assert p.mean().item() == pytest.approx(1 + 2 * (phi[0] - phi[1]) / mass, abs=0.02)
    assert p.min().item() >= 0.0 and p.max().item() <= 3.0
    with pytest.raises(ArgumentError):
        init.trunc_normal_(p, a=1.0, b=1.0)


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (4, 3, 2), (5, 5)])
def test_orthogonal_rows_or_columns(shape: tuple[int, ...]) -> None:
    p = init.orthogonal_(made(*shape), gain=2.0)
    m = p.reshape(shape[0], -1)
    product = m @ m.T if m.shape[0] <= m.shape[1] else m.T @ m
    assert (product - 4.0 * bt.eye(product.shape[0], dtype=float64)).abs().max().item() < 1e-12


def test_dirac_hands_channels_on() -> None:
    w = init.dirac_(made(4, 2, 3, 3), groups=2)
    x = bt.randn(1, 4, 5, 5, dtype=float64)
    y = bt.functional.conv2d(x, w, padding=1, groups=2)
    assert (y - x).abs().max().item() == 0.0


def test_sparse_zeroes_a_share_of_each_column() -> None:
    p = init.sparse_(made(10, 4), sparsity=0.25)
    assert (p == 0).sum(0).tolist() == [3, 3, 3, 3]


def test_values_keep_dtype_and_seed_decides() -> None:
    p = Parameter(bt.zeros(3, 3, dtype=bfloat16))
    for fill in (init.xavier_normal_, init.orthogonal_, init.trunc_normal_, init.eye_, init.ones_):
        assert fill(p).dtype is bfloat16
    bt.manual_seed(3)
    one = init.normal_(made(5)).tolist()
    bt.manual_seed(3)
    assert init.normal_(made(5)).tolist() == one


def test_refusals() -> None:
    for fill in (init.kaiming_uniform_, init.xavier_normal_, init.orthogonal_, init.eye_):
        with pytest.raises(ShapeError):
            fill(made(3))
    with pytest.raises(ArgumentError):
        init.calculate_gain("softmax")
    with pytest.raises(ArgumentError):
        init.kaiming_uniform_(made(3, 3), mode="fan")
    with pytest.raises(DTypeError, match="fills a parameter or a buffer; got Tensor"):
        init.zeros_(bt.ones(2))  # type: ignore[arg-type]
    assert init.calculate_gain("leaky_relu", 0.2) == pytest.approx(math.sqrt(2 / 1.04))
    assert init.kaiming_uniform_(made(3, 0)).shape == (3, 0)
