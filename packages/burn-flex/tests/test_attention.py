import numpy as np
import pytest

inf = float("inf")
RNG = np.random.default_rng(0)


def _qkv(q=(2, 3, 5, 4), k=(2, 3, 6, 4), v=(2, 3, 6, 7)):
    return tuple(RNG.standard_normal(s) for s in (q, k, v))


def _plain(q, k, v, mask, scale):
    scores = q @ np.swapaxes(k, -1, -2) * scale + mask
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


@pytest.fixture
def attention(call):
    """Return attention alone, without the sums."""
    return lambda *args: call("attention", *args)[0]


@pytest.fixture
def backward(call):
    """Return the gradients of attention, from what its forward leaves."""

    def run(g, q, k, v, mask, *attrs):
        made = call("attention", q, k, v, mask, *attrs)
        return call("attention_backward", g, q, k, v, mask, *made, *attrs)

    return run


def test_attention_equals_its_formula(attention):
    q, k, v = _qkv()
    mask = RNG.standard_normal((5, 6))
    got = attention(q, k, v, mask, False, False, 0.3)
    np.testing.assert_allclose(got, _plain(q, k, v, mask, 0.3))
    keep = RNG.integers(0, 2, (3, 5, 6)).astype(bool)
    keep[..., 0] = True
    got = attention(q, k, v, keep, False, False, 0.3)
    np.testing.assert_allclose(got, _plain(q, k, v, np.where(keep, 0, -inf), 0.3))


def test_causal_is_aligned_at_the_top_left(attention):
    q, k, v = _qkv()
    got = attention(q, k, v, None, True, False, 0.5)
    lower = np.where(np.tril(np.ones((5, 6), bool)), 0, -inf)
    np.testing.assert_allclose(got, _plain(q, k, v, lower, 0.5))


@pytest.mark.parametrize("as_float", [False, True])
def test_a_row_masked_everywhere_is_zero_with_zero_gradient(attention, backward, as_float):
    q, k, v = _qkv((4, 4), (4, 4), (4, 4))
    keep = np.ones((4, 4), bool)
    keep[1] = False
    mask = np.where(keep, 0.0, -inf) if as_float else keep
    out = attention(q, k, v, mask, True, False, 0.5)
    assert not out[1].any() and np.isfinite(out).all() and out[0].any()
    grads = backward(np.ones((4, 4)), q, k, v, mask, True, False, 0.5)
    assert all(np.isfinite(g).all() for g in grads)
    assert not grads[0][1].any() and not grads[3][1].any()


def test_groups_of_heads_share_keys(attention, backward):
    q, k, v = _qkv((2, 6, 5, 4), (2, 2, 6, 4), (2, 2, 6, 7))
    wide = [np.repeat(t, 3, axis=1) for t in (k, v)]
    got = attention(q, k, v, None, False, True, 0.5)
    np.testing.assert_array_equal(got, attention(q, *wide, None, False, False, 0.5))
    g = RNG.standard_normal(got.shape)
    grads = backward(g, q, k, v, None, False, True, 0.5)
    full = backward(g, q, *wide, None, False, False, 0.5)
    assert grads[1].shape == k.shape and grads[2].shape == v.shape
    np.testing.assert_allclose(grads[1], full[1].reshape(2, 2, 3, 6, 4).sum(2))


@pytest.mark.parametrize("shapes", [
    ((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 7)),
    ((5, 4), (2, 1, 6, 4), (3, 6, 7)),
    ((2, 5, 4), (6, 4), (6, 7)),
])  # fmt: skip
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_are_differences(attention, backward, shapes, causal):
    inputs = [*_qkv(*shapes), RNG.standard_normal((5, 6))]
    out = attention(*inputs, causal, False, 0.4)
    g = RNG.standard_normal(out.shape)
    grads = backward(g, *inputs, causal, False, 0.4)
    grads = [*grads[:3], grads[3].reshape(-1, 5, 6).sum(0)]
    for i, grad in enumerate(grads):
        assert grad.shape == inputs[i].shape
        step = 1e-6 * RNG.standard_normal(inputs[i].shape)
        up, down = (
            attention(*(t + s * step if j == i else t for j, t in enumerate(inputs)),
                causal, False, 0.4,
            )
            for s in (1, -1)
        )  # fmt: skip
        assert abs(((up - down) * g).sum() / 2 - (grad * step).sum()) < 1e-9


def test_no_keys_give_zeros(attention):
    out = attention(np.ones((2, 3)), np.ones((0, 3)), np.ones((0, 4)), None, False, False, 1.0)
    np.testing.assert_array_equal(out, np.zeros((2, 4)))


def test_inputs_stay_as_they_were(attention, backward):
    inputs = [*_qkv(), RNG.standard_normal((5, 6))]
    before = [t.copy() for t in inputs]
    attention(*inputs, True, False, 0.4)
    backward(np.ones((2, 3, 5, 7)), *inputs, True, False, 0.4)
    for old, new in zip(before, inputs, strict=True):
        np.testing.assert_array_equal(old, new)
