"""L-BFGS and its line search."""

from __future__ import annotations

import numpy as np
import pytest

import burn_tensor as bt
from burn_optim import LBFGS
from burn_optim.line_search import Point, cubic_minimum, strong_wolfe
from burn_std import ArgumentError, StoreError


def _rosenbrock(model):
    x, y = model.x[0], model.x[1]
    return (1 - x) ** 2 + 100 * (y - x * x) ** 2


def _closure(model, counter=None):
    def closure():
        if counter is not None:
            counter.append(1)
        loss = _rosenbrock(model)
        return loss, loss.backward()

    return closure


@pytest.fixture
def valley(weights, device):
    def make():
        model = weights(x=[-1.2, 1.0])
        model.to_dtype(bt.tensor(np.zeros(1)).dtype)
        return model

    return make


def test_it_finds_the_bottom_of_a_curved_valley(valley):
    model = valley()
    optimizer = LBFGS(line_search_fn="strong_wolfe", max_iter=100)
    first = optimizer.step(model, _closure(model))
    assert first.item() == pytest.approx(24.2)
    np.testing.assert_allclose(model.x.numpy(), [1, 1], atol=1e-4)


def test_without_a_search_it_goes_full_steps(weights):
    # A quadratic: two parameters of other shapes; one of them is not reached.
    model = weights(a=[[4.0, -3.0]], b=[1.0], idle=[7.0])
    optimizer = LBFGS(lr=0.5, max_iter=60)

    def closure():
        loss = ((model.a - 1) ** 2).sum() + 3 * ((model.b + 2) ** 2).sum()
        return loss, loss.backward()

    optimizer.step(model, closure)
    np.testing.assert_allclose(model.a.numpy(), [[1, 1]], atol=1e-3)
    np.testing.assert_allclose(model.b.numpy(), [-2], atol=1e-3)
    assert model.idle.tolist() == [7.0]


def test_evaluations_are_bounded(valley):
    model, calls = valley(), []
    LBFGS(max_iter=50, max_eval=5, lr=1e-3).step(model, _closure(model, calls))
    assert len(calls) == 5


def test_a_restored_state_goes_on_with_the_same_bits(valley):
    whole, half, fresh = valley(), valley(), valley()

    def make():
        return LBFGS(max_iter=3, line_search_fn="strong_wolfe")

    one, two, three = make(), make(), make()
    for _ in range(4):
        one.step(whole, _closure(whole))
    for _ in range(2):
        two.step(half, _closure(half))
    fresh.load_state_dict(half.state_dict())
    three.load_state_dict(fresh, two.state_dict())
    for _ in range(2):
        three.step(fresh, _closure(fresh))
    assert (whole.x.numpy() == fresh.x.numpy()).all()


def test_a_state_that_is_not_whole_is_refused(valley, weights):
    model = valley()
    optimizer = LBFGS(max_iter=3)
    optimizer.step(model, _closure(model))
    state = optimizer.state_dict()
    with pytest.raises(StoreError):
        optimizer.load_state_dict(model, {k: t for k, t in state.items() if k != "scale"})
    with pytest.raises(StoreError):
        optimizer.load_state_dict(weights(x=[1.0, 2.0, 3.0]), state)


def test_a_line_search_backs_out_of_what_is_no_number():
    def at(t):
        value = np.inf if t > 1 else (t - 0.5) ** 2
        return Point(t, value, None, 2 * (t - 0.5))

    found, tried = strong_wolfe(at, at(0.0), 8.0, 1.0)
    assert found.t == pytest.approx(0.5, abs=0.46)
    assert tried < 10


@pytest.mark.parametrize("first", [1e-3, 0.3, 1.0, 7.0])
def test_a_line_search_ends_where_it_is_flat(first):
    def at(t):
        return Point(t, t**4 - 2 * t, None, 4 * t**3 - 2)

    start = at(0.0)
    found, _ = strong_wolfe(at, start, first, 1.0)
    assert found.value <= start.value + 1e-4 * found.t * start.slope
    assert abs(found.slope) <= 0.9 * 2


def test_the_cubic_stays_in_its_bounds():
    a, b = Point(0.0, 0.0, None, -1.0), Point(1.0, 5.0, None, 1.0)
    assert 0 <= cubic_minimum(a, b) <= 1
    assert cubic_minimum(a, b, (2.0, 3.0)) == 2.0
    assert cubic_minimum(a, Point(1.0, np.inf, None, 0.0)) == 0.5


@pytest.mark.parametrize("make", [
    lambda: LBFGS(lr=0), lambda: LBFGS(line_search_fn="armijo"), lambda: LBFGS(max_iter=0),
])  # fmt: skip
def test_settings_that_make_no_sense(make):
    with pytest.raises(ArgumentError):
        make()


def test_one_dtype_only(weights):
    model = weights(a=[1.0], b=np.ones(1, np.float16))
    with pytest.raises(ArgumentError, match="one dtype"):
        LBFGS().step(model, lambda: None)
