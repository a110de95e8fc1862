"""Norms, attention, losses, products, random masks and optimizer steps in plain numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest

from burn_std.dtypes import bfloat16, bool_, float16, float32, float64, int64

INF, NAN = math.inf, math.nan


def close(got: Any, want: Any, tolerance: float = 1e-12) -> None:
    if isinstance(want, list):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            close(g, w, tolerance)
    elif want != want:
        assert got != got
    else:
        assert math.isclose(got, want, rel_tol=tolerance, abs_tol=tolerance), (got, want)


# ---- norms -------------------------------------------------------------------------------------


def test_layer_norm_and_statistics(fake: Any) -> None:
    x = fake.tensor([[1.0, 3.0], [2.0, 2.0]])
    out, mean, rstd = fake.layer_norm(x, fake.tensor([2.0, 2.0]), fake.tensor([1.0, 0.0]), 1, 0.0)
    close(out.list()[0], [-1.0, 2.0])
    close(mean.list(), [[2.0], [2.0]])
    close(rstd.list()[0], [1.0])
    out, mean, rstd = fake.layer_norm(fake.tensor([[1.0, 3.0]], float16), None, None, 1, 1e-5)
    assert (out.dtype, mean.dtype, rstd.dtype) == (float16, float32, float32)


def test_rms_norm(fake: Any) -> None:
    out, rstd = fake.rms_norm(fake.tensor([[3.0, 4.0]]), fake.tensor([1.0, 2.0]), 1, 0.0)
    root = math.sqrt(12.5)
    close(out.list(), [[3 / root, 8 / root]])
    close(rstd.list(), [[1 / root]])


def test_group_norm_of_one_group_is_layer_norm(fake: Any) -> None:
    x = fake.tensor([[[1.0, 2.0], [3.0, 6.0]]])
    out, mean, rstd = fake.group_norm(x, fake.tensor([1.0, 2.0]), None, 1, 0.0)
    plain, _, _ = fake.layer_norm(x, None, None, 2, 0.0)
    close(out.list()[0][1], [2 * v for v in plain.list()[0][1]])
    assert mean.list() == [[3.0]]
    assert rstd.shape == (1, 1)


def test_batch_norm_takes_its_own_or_the_given_statistics(fake: Any) -> None:
    x = fake.tensor([[1.0, 10.0], [3.0, 10.0]])
    out, mean, var = fake.batch_norm(x, None, None, None, None, True, 1.0)
    assert (mean.list(), var.list()) == ([2.0, 10.0], [1.0, 0.0])
    close(out.list()[0], [-1 / math.sqrt(2), 0.0])
    given = fake.tensor([0.0, 9.0]), fake.tensor([3.0, 0.0])
    out, mean, var = fake.batch_norm(x, None, None, *given, False, 1.0)
    close(out.list(), [[0.5, 1.0], [1.5, 1.0]])
    assert mean.list() == [0.0, 9.0]


# ---- attention ---------------------------------------------------------------------------------


def softmax(row: list[float]) -> list[float]:
    e = [math.exp(v - max(row)) for v in row]
    return [v / sum(e) for v in e]


def attended(fake: Any, *args: Any) -> Any:
    """Return attention alone, without the sums of its rows."""
    return fake.attention(*args)[0]


def slopes(fake: Any, g: Any, q: Any, k: Any, v: Any, mask: Any, *attrs: Any) -> Any:
    """Return the gradients of attention from what its forward leaves."""
    made = fake.attention(q, k, v, mask, *attrs)
    return fake.attention_backward(g, q, k, v, mask, *made, *attrs)


def test_attention_causal(fake: Any) -> None:
    q, k = fake.tensor([[1.0], [2.0]]), fake.tensor([[1.0], [3.0]])
    v = fake.tensor([[10.0], [20.0]])
    got = attended(fake, q, k, v, None, True, False, 1.0)
    late = softmax([2.0, 6.0])
    close(got.list(), [[10.0], [10 * late[0] + 20 * late[1]]])
    _, sums = fake.attention(q, k, v, None, True, False, 1.0)
    close(sums.list(), [math.log2(math.e), math.log2(math.exp(2) + math.exp(6))])


def test_attention_row_masked_everywhere_is_zero(fake: Any) -> None:
    q, v = fake.tensor([[1.0], [2.0]]), fake.tensor([[10.0], [20.0]])
    mask = fake.tensor([[False, False], [True, False]], bool_)
    assert attended(fake, q, q, v, mask, False, False, None).list() == [[0.0], [10.0]]
    assert fake.attention(q, q, v, mask, False, False, None)[1].list()[0] == INF
    floats = fake.tensor([[-INF, -INF], [0.0, -INF]])
    assert attended(fake, q, q, v, floats, False, False, None).list() == [[0.0], [10.0]]
    g = fake.tensor([[1.0], [1.0]])
    for d in slopes(fake, g, q, q, v, mask, False, False, None)[:2]:
        assert d.list() == [[0.0], [0.0]]


def test_attention_without_keys_is_zero(fake: Any) -> None:
    q = fake.tensor([[1.0, 2.0]])
    none = fake.tensor([], shape=(0, 2))
    assert attended(fake, q, none, none, None, False, False, None).list() == [[0.0, 0.0]]


def test_attention_with_grouped_heads_repeats_keys(fake: Any) -> None:
    numbers = [0.1 * i for i in range(8)]
    q = fake.tensor(numbers, shape=(1, 4, 2, 1))
    k = fake.tensor(numbers[:4], shape=(1, 2, 2, 1))
    got = attended(fake, q, k, k, None, False, True, None)
    wide = fake.tensor([v for h in (0, 0, 1, 1) for v in numbers[2 * h : 2 * h + 2]],
                       shape=(1, 4, 2, 1))  # fmt: skip
    close(got.data, attended(fake, q, wide, wide, None, False, False, None).data)
    g = fake.tensor([1.0] * 8, shape=(1, 4, 2, 1))
    _, dk, dv, scores = slopes(fake, g, q, k, k, None, False, True, None)
    _, dkw, dvw, _ = slopes(fake, g, q, wide, wide, None, False, False, None)
    close(dk.data[:2], [dkw.data[0] + dkw.data[2], dkw.data[1] + dkw.data[3]])
    close(dv.data[2:], [dvw.data[4] + dvw.data[6], dvw.data[5] + dvw.data[7]])
    assert scores.shape == (1, 4, 2, 2)


def test_attention_backward_is_the_difference_quotient(fake: Any) -> None:
    rows = {n: [0.3 * i - 0.5 + len(n) for i in range(4)] for n in ("q", "kk", "vvv")}
    g = fake.tensor([[1.0, -2.0], [0.5, 3.0]])

    def value(at: str, place: int, shift: float) -> float:
        tensors = []
        for name, data in rows.items():
            moved = [v + (shift if name == at and i == place else 0) for i, v in enumerate(data)]
            tensors.append(fake.tensor(moved, shape=(2, 2)))
        out = attended(fake, *tensors, None, True, False, 0.7)
        return float(sum(a * b for a, b in zip(out.data, g.data, strict=True)))

    tensors = [fake.tensor(d, shape=(2, 2)) for d in rows.values()]
    grads = slopes(fake, g, *tensors, None, True, False, 0.7)
    for name, grad in zip(rows, grads, strict=False):
        for i, got in enumerate(grad.data):
            h = 1e-6
            close(got, (value(name, i, h) - value(name, i, -h)) / (2 * h), 1e-7)


# ---- losses ------------------------------------------------------------------------------------


def test_elementwise_losses(fake: Any) -> None:
    x, t = fake.tensor([0.5, 3.0]), fake.tensor([0.0, 0.0])
    assert fake.mse_loss(x, t, "mean").list() == 4.625
    assert fake.l1_loss(x, t, "sum").list() == 3.5
    assert fake.smooth_l1_loss(x, t, "none", 1.0).list() == [0.125, 2.5]
    assert fake.smooth_l1_loss(x, t, "none", 0.0).list() == [0.5, 3.0]
    assert fake.huber_loss(x, t, "none", 2.0).list() == [0.125, 4.0]
    close(fake.mse_loss(fake.tensor([]), fake.tensor([]), "mean").list(), NAN)


def test_binary_cross_entropies(fake: Any) -> None:
    p, t = fake.tensor([0.25, 0.0, 1.0]), fake.tensor([1.0, 1.0, 1.0])
    close(fake.binary_cross_entropy(p, t, None, "none").list(), [-math.log(0.25), 100.0, 0.0])
    x = fake.tensor([1000.0, -1000.0, 0.0])
    zero = fake.tensor([0.0, 0.0, 0.0])
    close(
        fake.binary_cross_entropy_with_logits(x, zero, None, None, "none").list(),
        [1000.0, 0.0, math.log(2)],
    )
    weighted = fake.binary_cross_entropy_with_logits(
        x, t, fake.tensor([1.0, 0.5, 1.0]), fake.tensor([3.0]), "none"
    )
    close(weighted.list(), [0.0, 1500.0, 3 * math.log(2)])


def test_binary_cross_entropy_with_infinite_logits(fake: Any) -> None:
    x, t = fake.tensor([-INF, -INF, INF, INF]), fake.tensor([0.9, 0.0, 1.0, 0.5])
    loss = fake.binary_cross_entropy_with_logits(x, t, None, None, "none")
    assert loss.list() == [INF, 0.0, 0.0, INF]


def test_kl_div_of_a_zero_target_is_zero(fake: Any) -> None:
    x, t = fake.tensor([[-1.0, -2.0]]), fake.tensor([[0.0, 1.0]])
    assert fake.kl_div(x, t, "batchmean", False).list() == 2.0
    close(fake.kl_div(x, x, "sum", True).list(), 0.0)


def test_nll_loss_ignores_and_weighs(fake: Any) -> None:
    x = fake.tensor([[-1.0, -2.0], [-3.0, -4.0], [NAN, INF]])
    t = fake.tensor([1, 0, -100], int64)
    weight = fake.tensor([1.0, 3.0])
    assert fake.nll_loss(x, t, None, "none", -100).list() == [2.0, 3.0, 0.0]
    assert fake.nll_loss(x, t, weight, "mean", -100).list() == 9.0 / 4.0
    gone = fake.tensor([-100] * 3, int64)
    close(fake.nll_loss(x, gone, None, "mean", -100).list(), NAN)
    assert fake.nll_loss(x, gone, None, "sum", -100).list() == 0.0
    assert (
        fake.nll_loss(fake.tensor([-1.0, -2.0]), fake.tensor(1, int64), None, "mean", -100).list()
        == 2.0
    )
    deep = fake.tensor([[[-1.0, -2.0], [-3.0, -4.0]]])
    assert fake.nll_loss(deep, fake.tensor([[1, 0]], int64), None, "none", -100).list() == [
        [3.0, 2.0]
    ]


def test_cross_entropy_classes_smoothing_and_probabilities(fake: Any) -> None:
    x = fake.tensor([[0.0, 0.0], [1e4, 0.0]])
    t = fake.tensor([0, 0], int64)
    close(fake.cross_entropy(x, t, None, "none", None, -100, 0.0).list(), [math.log(2), 0.0])
    smooth = fake.cross_entropy(x, t, None, "none", None, -100, 0.1)
    close(smooth.list(), [math.log(2), 0.05 * 1e4])
    soft = fake.tensor([[0.5, 0.5], [1.0, 0.0]])
    close(fake.cross_entropy(x, soft, None, "mean", None, -100, 0.0).list(), math.log(2) / 2)
    gone = fake.tensor([-100, 0], int64)
    close(fake.cross_entropy(x, gone, None, "mean", None, -100, 0.1).list(), 0.05 * 1e4)
    assert (
        fake.cross_entropy(
            fake.tensor([[1.0, 2.0]], bfloat16),
            fake.tensor([0], int64),
            None,
            "mean",
            None,
            -100,
            0.0,
        ).dtype
        is bfloat16
    )


# ---- products ----------------------------------------------------------------------------------


def test_linear_cross_inverse(fake: Any) -> None:
    x, w = fake.tensor([[1.0, 2.0]]), fake.tensor([[3.0, 4.0], [5.0, 6.0]])
    assert fake.linear(x, w, fake.tensor([1.0, 0.0])).list() == [[12.0, 17.0]]
    assert fake.linear(x, fake.tensor([3.0, 4.0]), None).list() == [11.0]
    a, b = fake.tensor([1.0, 2.0, 3.0]), fake.tensor([4.0, 5.0, 6.0])
    assert fake.cross(a, b, 0).list() == [-3.0, 6.0, -3.0]
    close(fake.inverse(fake.tensor([[2.0, 1.0], [1.0, 1.0]])).list(), [[1.0, -1.0], [-1.0, 2.0]])


def test_conv_transpose_scatters_the_kernel(fake: Any) -> None:
    x, w = fake.tensor([[[1.0, 2.0]]]), fake.tensor([[[1.0, 10.0, 100.0]]])
    got = fake.conv_transpose(x, w, fake.tensor([0.5]), (2,), (0,), (0,), (1,), 1)
    assert got.list() == [[[1.5, 10.5, 102.5, 20.5, 200.5]]]
    none = fake.conv_transpose(fake.tensor([], shape=(0, 1, 2)), w, None, (2,), (0,), (1,), (1,), 1)
    assert none.shape == (0, 1, 6)


@pytest.mark.parametrize("norm", ["backward", "forward", "ortho"])
@pytest.mark.parametrize("n", [1, 4, 5])
def test_transforms_and_their_adjoints(fake: Any, n: int, norm: str) -> None:
    x = fake.tensor([0.5 * i * i - 1 for i in range(n)])
    re, im = fake.rfft(x, 0, norm, n)
    gr = fake.tensor([1.0 + i for i in range(n // 2 + 1)])
    gi = fake.tensor([2.0 - i for i in range(n // 2 + 1)])

    def dot(a: Any, b: Any) -> float:
        return float(sum(u * v for u, v in zip(a.data, b.data, strict=True)))

    back = fake.rfft_backward(gr, gi, 0, norm, n)
    close(dot(x, back), dot(re, gr) + dot(im, gi), 1e-10)
    for bins in (n // 2 + 1, n // 2 + 2):
        zr = fake.tensor([1.0 + i for i in range(bins)])
        zi = fake.tensor([0.5 * i - 1 for i in range(bins)])
        y = fake.irfft(zr, zi, 0, norm, n)
        dr, di = fake.irfft_backward(x, 0, norm, bins)
        close(dot(y, x), dot(dr, zr) + dot(di, zi), 1e-10)


# ---- random and optimizers ---------------------------------------------------------------------


def test_masks_come_from_the_key(fake: Any) -> None:
    key = (3, 5)
    draws = fake.uniform(float32, (6,), 0.0, 1.0, key)
    x = fake.tensor([1.0, 2.0, 3.0, INF, NAN, 6.0], float32)
    got = fake.dropout(x, 0.5, key)
    for value, draw, own in zip(got.data, draws.data, x.data, strict=True):
        close(value, 0.0 if draw < 0.5 else own * 2)
    assert fake.dropout(x, 1.0, key).data == [0.0] * 6
    p = fake.tensor([0.0, 1.0, 0.5, 0.0, 1.0, 1.0], bfloat16)
    ones = fake.bernoulli(p, key)
    assert ones.dtype is bfloat16
    assert ones.data == [float(d < q) for d, q in zip(draws.data, p.data, strict=True)]


def test_sgd_momentum_starts_with_the_gradient(fake: Any) -> None:
    p, g, m = [fake.tensor([1.0], float64)], [fake.tensor([2.0])], [fake.tensor([9.0])]
    step = fake.tensor(0, int64)
    p2, m2, s2 = fake.sgd_step(p, g, m, step, None, False, False, 0.1, 0.9, 0.5, 0.0)
    close([p2.list(), m2.list(), s2.list()], [[0.8], [2.0], 1])
    p3, m3, s3 = fake.sgd_step([p2], g, [m2], s2, None, True, False, 0.1, 0.9, 0.5, 0.0)
    close([m3.list(), s3.list()], [[2.8], 2])
    close(p3.list(), [0.8 - 0.1 * (2.0 + 0.9 * 2.8)])
    skip = fake.tensor(True, bool_)
    p4, s4 = fake.sgd_step(p, g, [], s2, skip, False, True, 0.1, 0.0, 0.0, 0.1)
    assert (p4.list(), s4.list()) == ([1.0], 1)


def test_adam_first_step_moves_by_the_learning_rate(fake: Any) -> None:
    def call(decoupled: bool, sqs: list[Any], decay: float) -> Any:
        p, zero = fake.tensor([1.0], float16), fake.tensor([0.0], float32)
        return fake.adam_step(
            [p], [fake.tensor([4.0], float16)], [zero], [zero], sqs, fake.tensor(0, int64), None,
            decoupled, False, 0.5, 0.9, 0.99, 0.0, decay,
        )  # fmt: skip

    p, m, v, step = call(True, [], 0.1)
    close([p.list(), m.list(), v.list()], [[0.45], [0.4], [0.16]], 1e-3)
    assert (p.dtype, m.dtype, step.list()) == (float16, float32, 1)
    p, m, v, top, step = call(False, [fake.tensor([0.64], float32)], 0.0)
    close([p.list(), top.list()], [[0.75], [0.64]], 1e-3)
