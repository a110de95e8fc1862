import ml_dtypes
import numpy as np
import pytest

from burn_flex.kernels.optim import sgd_step

RNG = np.random.default_rng(0)
STEP = np.array(0)


def _sgd(
    call,
    p,
    g,
    m,
    step,
    *,
    skip=None,
    nesterov=False,
    maximize=False,
    momentum=0.0,
    dampening=0.0,
    decay=0.0,
):
    return call(
        "sgd_step", p, g, m, step, skip, nesterov, maximize, 0.1, momentum, dampening, decay
    )


def _adam(call, p, g, m, v, top, step, *, skip=None, decoupled=False, maximize=False, decay=0.0):
    return call(
        "adam_step", p, g, m, v, top, step, skip, decoupled, maximize, 0.1, 0.9, 0.999, 1e-8, decay
    )


def test_the_first_momentum_is_the_undampened_gradient(call):
    p, g, m = [np.array([1.0])], [np.array([2.0])], [np.array([0.0])]
    new, buffer, step = _sgd(call, p, g, m, STEP, momentum=0.9, dampening=0.5)
    assert (new, buffer, step) == (0.8, 2.0, 1) and step.dtype == np.int64
    new, buffer, step = _sgd(call, [new], g, [buffer], step, momentum=0.9, dampening=0.5)
    np.testing.assert_allclose((new[0], buffer[0]), (0.8 - 0.1 * 2.8, 2.8))


def test_nesterov_looks_ahead(call):
    p, g, m = [np.array([1.0])], [np.array([2.0])], [np.array([0.0])]
    new, _, _ = _sgd(call, p, g, m, STEP, momentum=0.9, nesterov=True)
    np.testing.assert_allclose(new, 1 - 0.1 * (2 + 0.9 * 2))


def test_maximize_and_decay_of_sgd(call):
    p, g = [np.array([1.0])], [np.array([2.0])]
    new, _ = _sgd(call, p, g, [], STEP, maximize=True, decay=0.5)
    np.testing.assert_allclose(new, 1 - 0.1 * (-2 + 0.5))


def test_decoupled_decay_leaves_the_moments_alone(call):
    p, zero = [np.array([1.0])], [np.array([0.0])]
    new, m, v, _ = _adam(call, p, zero, zero, zero, [], STEP, decoupled=True, decay=0.01)
    assert (new, m, v) == (0.999, 0, 0)
    new, *_ = _adam(call, p, zero, zero, zero, [], STEP, decay=0.01)
    np.testing.assert_allclose(new, 0.9, rtol=1e-5)
    new, *_ = _adam(call, p, [np.array([0.1])], zero, zero, [], STEP, decoupled=True, decay=0.01)
    np.testing.assert_allclose(new, 0.899, rtol=1e-6)


def test_adam_and_its_maxima_against_the_formulas(call):
    p, m, v, top = (np.zeros(4) for _ in range(4))
    state = [p], [m], [v], [top]
    step = STEP
    for t in range(1, 4):
        g = RNG.standard_normal(4)
        p, m, v, top, step = _adam(call, state[0], [g], *state[1:], step)
        want_m = 0.9 * state[1][0] + 0.1 * g
        want_v = 0.999 * state[2][0] + 0.001 * g * g
        want_top = np.maximum(state[3][0], want_v)
        moved = 0.1 / (1 - 0.9**t) * want_m / (np.sqrt(want_top / (1 - 0.999**t)) + 1e-8)
        for got, want in ((m, want_m), (v, want_v), (top, want_top), (p, state[0][0] - moved)):
            np.testing.assert_allclose(got, want, rtol=1e-10)
        state = [p], [m], [v], [top]
    assert step == 3


@pytest.mark.parametrize("flag", [False, True])
def test_skip_leaves_everything(call, flag):
    skip = np.array(flag)
    p, g, m = [np.ones(2)], [np.ones(2)], [np.ones(2)]
    new, _, step = _sgd(call, p, g, m, STEP, skip=skip, momentum=0.9)
    assert (new[0] == 1) == flag
    assert int(step) == (0 if flag else 1)
    *out, step = _adam(call, p, g, m, m, [], STEP, skip=skip)
    assert int(step) == (0 if flag else 1)
    assert all((o == 1).all() for o in out) is flag


def test_large_and_strided_parameters_and_untouched_inputs(call):
    p = [RNG.standard_normal((300, 500)).T, RNG.standard_normal(())]
    g = [RNG.standard_normal(t.shape) for t in p]
    before = [t.copy() for t in (*p, *g)]
    zeros = [np.zeros_like(t) for t in p]
    one, two, *_ = _adam(call, p, g, zeros, zeros, [], STEP)
    np.testing.assert_allclose(one, p[0] - 0.1 * np.sign(g[0]), rtol=1e-3, atol=1e-3)
    assert two.shape == ()
    for old, new in zip(before, (*p, *g), strict=True):
        np.testing.assert_array_equal(old, new)
    assert not any(z.any() for z in zeros)


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=str)
def test_halves_round_once(call, dtype):
    p, g, m = ([np.array([v], dtype)] for v in (1, 0.25, 0))
    new, buffer, _ = _sgd(call, p, g, m, STEP, momentum=0.9)
    assert new.dtype == buffer.dtype == dtype
    assert new == np.float32(1 - 0.025).astype(dtype)
    assert all(o.dtype == dtype for o in _adam(call, p, g, m, m, m, STEP)[:-1])


def test_no_parameters():
    (step,) = sgd_step([], [], [], STEP, None, False, False, 0.1, 0.0, 0.0, 0.0)
    assert step == 1
