"""Rules of losses and of quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

REDUCTIONS = ("none", "mean", "sum")


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    ("op", "more"),
    [("mse_loss", ()), ("l1_loss", ()), ("smooth_l1_loss", (0.7,)), ("smooth_l1_loss", (0.0,)),
     ("huber_loss", (0.8,))],
)  # fmt: skip
def test_regression(rules: Any, rand: Any, op: str, more: Any, reduction: str) -> None:
    rules.check(op, [rand(3, 4), rand(3, 4)], (reduction, *more))
    rules.check(op, [rand(3, 4), rand(4)], (reduction, *more))


@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div(rules: Any, rand: Any, reduction: str, log_target: bool) -> None:
    target = rand(3, 4, low=0.2, high=1.0)
    rules.check("kl_div", [rand(3, 4), target], (reduction, log_target))


def test_kl_div_of_an_impossible_class(rules: Any) -> None:
    gx, gt = rules.grads("kl_div", [np.array([-1.0]), np.zeros(1)], ("sum", False))
    assert (gx[0], gt[0]) == (0, 1)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary(rules: Any, rand: Any, reduction: str) -> None:
    x, t = rand(3, 4, low=0.1, high=0.9), rand(3, 4, low=0.1, high=0.9)
    rules.check("binary_cross_entropy", [x, t, None], (reduction,))
    rules.check("binary_cross_entropy", [x, t, rand(4, low=0.5, high=1)], (reduction,))
    op = "binary_cross_entropy_with_logits"
    x = rand(3, 4)
    rules.check(op, [x, t, None, None], (reduction,))
    rules.check(op, [x, t, rand(4, low=0.5, high=1), None], (reduction,))
    rules.check(op, [x, t, None, rand(4, low=0.5, high=2)], (reduction,))
    rules.check(op, [x, t, rand(3, 1, low=0.5, high=1), rand(4, low=0.5, high=2)], (reduction,))


def test_binary_at_the_ends_is_finite(rules: Any) -> None:
    gx, gt = rules.grads(
        "binary_cross_entropy", [np.array([1.0, 0.0]), np.array([1.0, 0.0]), None], ("mean",)
    )
    np.testing.assert_array_equal(gx, 0)
    assert np.isfinite(gt).all()


TARGETS = np.array([[1, 0], [-100, 3], [2, 2]])


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_nll(rules: Any, rand: Any, reduction: str, weighted: bool) -> None:
    # A float32 weight is not moved by the checker's float64 differences: it has no gradient.
    w = rand(4, low=0.5, high=2.0) if weighted else None
    with untracked(rules, w) as weight:
        rules.check("nll_loss", [rand(3, 4, 2), TARGETS, weight], (reduction, -100))
        rules.check("nll_loss", [rand(3, 4), TARGETS[:, 1], weight], (reduction, -100))
        rules.check("nll_loss", [rand(4), np.array(2), weight], (reduction, -100))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy(
    rules: Any, rand: Any, reduction: str, smoothing: float, weighted: bool
) -> None:
    w = rand(4, low=0.5, high=2.0) if weighted else None
    with untracked(rules, w) as weight:
        more = (reduction, None, -100, smoothing)
        rules.check("cross_entropy", [rand(3, 4, 2), TARGETS, weight], more)
        rules.check("cross_entropy", [rand(3, 4), TARGETS[:, 1], weight], more)
        rules.check("cross_entropy", [rand(4), np.array(2), weight], more)
        soft = rand(3, 4, 2, low=0.1, high=1.0)
        rules.check("cross_entropy", [rand(3, 4, 2), soft, weight], more)
        rules.check("cross_entropy", [rand(4), rand(4, low=0.1, high=1.0), weight], more)


class untracked:
    """Hand an array to the checker as a finished tensor, which it neither moves nor tracks."""

    def __init__(self, rules: Any, array: Any) -> None:
        self.value = None if array is None else rules.tensor(array)

    def __enter__(self) -> Any:
        return self.value

    def __exit__(self, *_: object) -> None:
        pass


def test_every_target_ignored(rules: Any, rand: Any) -> None:
    target = np.full(3, -100)
    for op, more in (("nll_loss", (-100,)), ("cross_entropy", (None, -100, 0.1))):
        got = rules.grads(op, [rand(3, 4), target, None], ("mean", *more))[0]
        np.testing.assert_array_equal(got, 0)


def test_weight_of_classes_has_no_gradient(rules: Any, rand: Any) -> None:
    from burn_std import AutodiffError

    with pytest.raises(AutodiffError, match="weight"):
        rules.grads("nll_loss", [rand(3, 4), np.array([0, 1, 2]), rand(4)], ("mean", -100))


def test_ctc(rules: Any, rand: Any) -> None:
    lengths = [np.array([5, 4]), np.array([2, 1])]
    targets = np.array([[1, 2], [3, 3]])
    logits = rand(5, 2, 4)
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    g = rules.grads("ctc_loss", [logs, targets, *lengths], (0,), [np.array([1.0, 2.0]), None])[0]
    grad = rules.numpy(
        rules.plain.ctc_loss(
            *(rules.plain.tensor_from_numpy(a) for a in (logs, targets, *lengths)), 0
        )[1]
    )
    np.testing.assert_allclose(g, grad * np.array([1.0, 2.0])[None, :, None])


def test_quantisation_passes_straight_through(rules: Any) -> None:
    from burn_std.dtypes import float64, quantized

    ctx, tape = rules.ctx, rules.tape
    for scheme, scale, zero, want in (
        (quantized(8), None, None, [1, 1, 1]),
        (quantized(8), np.array(0.01), None, [0, 1, 0]),
        (quantized(8, symmetric=False), np.array(0.02), np.array(100, np.int8), [0, 1, 1]),
        (quantized(8, block=2), np.array([1.0, 0.01]), None, [1, 1, 0]),
    ):
        x = rules.tensor(np.array([3.0, 0.5, -1.6]), track=True)
        q = ctx.quantize(x, *(rules.tensor(t) for t in (scale, zero)), scheme)
        y = ctx.sum(ctx.dequantize(q, float64), None, False, None)
        np.testing.assert_array_equal(rules.numpy(tape.backward([y], [None]).get(x)), want)


def test_gradient_of_soft_targets_has_their_dtype(rules: Any, rand: Any) -> None:
    x, target = rand(3, 4).astype(np.float16), np.full((3, 4), 0.25, np.float32)
    gx, gt = rules.grads("cross_entropy", [x, target, None], ("mean", None, -100, 0.1))
    assert (gx.dtype, gt.dtype) == (np.float16, np.float32)
