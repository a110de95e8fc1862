import numpy as np
import pytest

from burn_std import IndexRangeError

nan, inf = float("nan"), float("inf")
RNG = np.random.default_rng(0)


def _close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_reductions(call):
    x, t = np.array([[1.0, 2], [3, 5]]), np.array([[1.0, 1], [1, 1]])
    _close(call("mse_loss", x, t, "none"), [[0, 1], [4, 16]])
    _close(call("mse_loss", x, t, "sum"), 21)
    _close(call("mse_loss", x, t, "mean"), 5.25)
    _close(call("l1_loss", x, t, "mean"), 1.75)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss"])
def test_the_mean_of_nothing_is_nan(call, name):
    nothing = np.zeros((0, 3))
    assert np.isnan(call(name, nothing, nothing, "mean"))
    assert call(name, nothing, nothing, "sum") == 0


def test_smooth_losses_at_their_knee(call):
    x = np.array([0.0, 0.5, 2, 3])
    zero = np.zeros(4)
    _close(call("smooth_l1_loss", x, zero, "none", 2.0), [0, 0.0625, 1, 2])
    _close(call("smooth_l1_loss", x, zero, "none", 0.0), x)
    _close(call("huber_loss", x, zero, "none", 2.0), [0, 0.125, 2, 4])


def test_bce_with_large_logits(call):
    x = np.array([100, -100, 100, -100], np.float32)
    t = np.array([0, 1, 1, 0], np.float32)
    got = call("binary_cross_entropy_with_logits", x, t, None, None, "none")
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, [100, 100, 3.783506e-44, 3.783506e-44])
    _close(call("binary_cross_entropy_with_logits", x, t, None, None, "mean"), 50)


def test_bce_with_infinite_logits(call, same):
    x, t = np.array([-inf, -inf, inf, nan]), np.array([0.9, 0, 1, 1])
    got = call("binary_cross_entropy_with_logits", x, t, None, None, "none")
    same(got, np.array([inf, 0, 0, nan]))


def test_bce_with_logits_weighs_positives(call):
    x, t = RNG.standard_normal(5), RNG.uniform(size=5)
    weight, positive = RNG.uniform(size=5), RNG.uniform(1, 3, 5)
    p = 1 / (1 + np.exp(-x))
    want = -weight * (positive * t * np.log(p) + (1 - t) * np.log(1 - p))
    _close(call("binary_cross_entropy_with_logits", x, t, weight, positive, "none"), want)


def test_bce_of_probabilities_at_the_ends(call, same):
    p, t = np.array([1.0, 0, 0]), np.array([1.0, 0, 1])
    same(call("binary_cross_entropy", p, t, None, "none"), np.array([0.0, 0, 100]))


def test_kl_div_and_its_batchmean(call):
    x = np.log(np.array([[0.5, 0.5], [0.9, 0.1]]))
    t = np.array([[1.0, 0], [0.5, 0.5]])
    want = np.where(t == 0, 0, t * (np.log(np.where(t == 0, 1, t)) - x))
    _close(call("kl_div", x, t, "none", False), want)
    _close(call("kl_div", x, t, "batchmean", False), want.sum() / 2)
    _close(call("kl_div", x, np.log(t[1:]), "sum", True), (t[1:] * (np.log(t[1:]) - x)).sum())


def test_nll_weighs_and_ignores(call):
    x = np.log(np.array([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]))
    target, weight = np.array([1, 0, -100]), np.array([1.0, 3])
    each = [-3 * np.log(0.8), -np.log(0.6), 0]
    _close(call("nll_loss", x, target, weight, "none", -100), each)
    _close(call("nll_loss", x, target, weight, "mean", -100), sum(each) / 4)
    _close(call("nll_loss", x[0], np.array(1), None, "mean", -100), -np.log(0.8))


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
def test_every_target_ignored(call, name):
    x, target = RNG.standard_normal((3, 4)), np.full(3, 7)
    more = (7,) if name == "nll_loss" else (None, 7, 0.1)
    assert np.isnan(call(name, x, target, None, "mean", *more))
    assert call(name, x, target, None, "sum", *more) == 0
    assert not call(name, x, target, None, "none", *more).any()


def test_targets_outside_the_classes_raise(call):
    x = np.zeros((2, 3))
    for bad in (3, -1):
        with pytest.raises(IndexRangeError, match=f"target {bad}"):
            call("cross_entropy", x, np.array([0, bad]), None, "mean", None, -100, 0.0)


def test_an_ignored_sample_may_hold_anything(call):
    x = np.array([[nan, inf], [0.0, 0]])
    _close(call("cross_entropy", x, np.array([-100, 1]), None, "mean", None, -100, 0.0), np.log(2))


def test_cross_entropy_is_stable(call):
    x = np.array([[1e30, 0.0], [0, -1e30]])
    _close(call("cross_entropy", x, np.array([0, 1]), None, "none", None, -100, 0.0), [0, 1e30])


def test_indices_are_probabilities_of_one(call):
    x = RNG.standard_normal((4, 5, 2, 3))
    target, weight = RNG.integers(0, 5, (4, 2, 3)), RNG.uniform(size=5)
    soft = np.moveaxis(np.eye(5)[target], -1, 1)
    for smoothing in (0.0, 0.3):
        hard = call("cross_entropy", x, target, weight, "none", None, -100, smoothing)
        probabilities = call("cross_entropy", x, soft, weight, "none", None, -100, smoothing)
        assert hard.shape == (4, 2, 3)
        _close(hard, probabilities)
    total = call("cross_entropy", x, soft, None, "sum", None, -100, 0.0)
    _close(call("cross_entropy", x, soft, None, "mean", None, -100, 0.0), total / 24)


def test_smoothing_divides_by_the_weights_of_the_kept_classes(call):
    x = RNG.standard_normal((3, 4))
    target, weight = np.array([1, 3, -100]), np.array([1.0, 2, 3, 4])
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    main = -(2 * logs[0, 1] + 4 * logs[1, 3])
    spread = -(logs[:2] * weight).sum()
    want = (0.8 * main + 0.2 / 4 * spread) / 6
    _close(call("cross_entropy", x, target, weight, "mean", None, -100, 0.2), want)


def test_halves_reduce_in_f32(call):
    x = np.full(5000, 10, np.float16)
    assert call("mse_loss", x, np.zeros_like(x), "mean") == np.float16(100)


def _ctc(call, log_probs, targets, inputs, lengths, blank=0):
    return call(
        "ctc_loss", log_probs, np.array(targets), np.array(inputs), np.array(lengths), blank
    )


def test_ctc_sums_over_alignments(call):
    p = np.array([[[0.5, 0.3, 0.2]], [[0.1, 0.6, 0.3]]])
    loss, _ = _ctc(call, np.log(p), [[1]], [2], [1])
    _close(loss, [-np.log(0.3 * 0.6 + 0.5 * 0.6 + 0.3 * 0.1)])
    loss, _ = _ctc(call, np.log(p), [[1]], [2], [0])
    _close(loss, [-np.log(0.5 * 0.1)])


def test_ctc_repeats_need_a_blank_between(call):
    log_probs = np.log(np.full((3, 2, 2), 0.5))
    loss, grad = _ctc(call, log_probs, [[1, 1], [1, 1]], [2, 3], [2, 2])
    assert loss[0] == inf and not grad[:, 0].any()
    _close(loss[1], 3 * np.log(2))


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc_gradient_is_the_derivative(call, blank):
    log_probs = np.log(RNG.dirichlet(np.ones(4), (6, 3)))
    targets = RNG.choice([c for c in range(4) if c != blank], (3, 3))
    how = (targets, [6, 5, 4], [3, 1, 0], blank)
    loss, grad = _ctc(call, log_probs, *how)
    assert np.isfinite(loss).all()
    assert not grad[5:, 1].any() and not grad[4:, 2].any()
    step = 1e-6 * RNG.standard_normal(log_probs.shape)
    up, down = (_ctc(call, log_probs + s * step, *how)[0] for s in (1, -1))
    assert abs((up - down).sum() / 2 - (grad * step).sum()) < 1e-9
