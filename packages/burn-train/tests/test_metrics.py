"""Metrics against plain numpy: over batches of uneven sizes, restored in the middle, reset."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import burn_tensor as bt
from burn_dispatch import Device
from burn_std import ArgumentError, ShapeError, StoreError
from burn_train import (
    AUCPR,
    AUROC,
    BLEU,
    MAE,
    MSE,
    MSSSIM,
    PSNR,
    RMSE,
    SSIM,
    Accuracy,
    CalibrationError,
    CharErrorRate,
    ConfusionMatrix,
    Dice,
    FBetaScore,
    HammingScore,
    LossMetric,
    MeanAveragePrecision,
    MeanIoU,
    Perplexity,
    Precision,
    R2Score,
    Recall,
    RougeL,
    TopKAccuracy,
    WordErrorRate,
)
from burn_train.worker import on_host

RNG = np.random.default_rng(11)
N, C = 23, 4
SCORES = RNG.standard_normal((N, C)).astype(np.float32)
LABELS = RNG.integers(0, C, N)
MULTI = (RNG.random((N, C)) < 0.4).astype(np.int64)
REAL, NEAR = (RNG.standard_normal((N, 3)).astype(np.float32) for _ in range(2))
IDS, FOUND = (RNG.integers(0, 6, (N, 7)) for _ in range(2))
MAPS = RNG.standard_normal((N, 3, 4, 5)).astype(np.float32)
REGIONS = RNG.integers(0, 3, (N, 4, 5))
IMAGES = RNG.random((N, 1, 12, 12)).astype(np.float32)
NOISY = (IMAGES + 0.1 * RNG.standard_normal(IMAGES.shape)).astype(np.float32)


def _softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _stats(found, true):
    hits = (found & true).sum(0)
    return hits, found.sum(0), true.sum(0)


def _one_hot(labels):
    return labels[:, None] == np.arange(C)


def _f(beta, found, true):
    hits, f, t = _stats(found, true)
    return 100 * np.mean((1 + beta**2) * hits / (beta**2 * t + f))


def _auroc(scores, true):
    pairs = scores[true][:, None] - scores[~true][None, :]
    return 100 * ((pairs > 0) + 0.5 * (pairs == 0)).mean()


def _iou(dice=False):
    found = MAPS.argmax(1)
    out = []
    for c in range(3):
        a, b = found == c, c == REGIONS
        out.append(
            2 * (a & b).sum() / (a.sum() + b.sum()) if dice else (a & b).sum() / (a | b).sum()
        )
    return 100 * np.mean(out)


TOP2 = np.argsort(-SCORES, 1)[:, :2]
BEST = _one_hot(SCORES.argmax(1))
CASES = {
    "accuracy": (Accuracy, SCORES, LABELS, 100 * (SCORES.argmax(1) == LABELS).mean()),
    "top2": (
        lambda: TopKAccuracy(2), SCORES, LABELS, 100 * (LABELS[:, None] == TOP2).any(1).mean(),
    ),
    "perplexity": (
        Perplexity, SCORES, LABELS, np.exp(-np.log(_softmax(SCORES)[np.arange(N), LABELS]).mean()),
    ),
    "hamming": (
        lambda: HammingScore(sigmoid=True), SCORES, MULTI,
        100 * ((SCORES > 0) == (MULTI != 0)).mean(),
    ),
    "mae": (MAE, NEAR, REAL, np.abs(NEAR - REAL).mean()),
    "mse": (MSE, NEAR, REAL, ((NEAR - REAL) ** 2).mean()),
    "rmse": (RMSE, NEAR, REAL, np.sqrt(((NEAR - REAL) ** 2).mean())),
    "r2": (
        R2Score, NEAR, REAL + 5,
        1 - ((NEAR - REAL - 5) ** 2).sum() / ((REAL - REAL.mean()) ** 2).sum(),
    ),
    "precision": (
        Precision, SCORES, LABELS, 100 * np.mean(np.divide(*_stats(BEST, _one_hot(LABELS))[:2])),
    ),
    "recall": (
        Recall, SCORES, LABELS,
        100 * np.mean(np.divide(*np.array(_stats(BEST, _one_hot(LABELS)))[[0, 2]])),
    ),
    "f2": (lambda: FBetaScore(2.0), SCORES, LABELS, _f(2.0, BEST, _one_hot(LABELS))),
    "micro": (
        lambda: Precision("multilabel", threshold=0.0, average="micro"), SCORES, MULTI,
        100 * ((SCORES > 0) & (MULTI != 0)).sum() / (SCORES > 0).sum(),
    ),
    "confusion": (
        lambda: ConfusionMatrix(C), SCORES, LABELS, 100 * (SCORES.argmax(1) == LABELS).mean(),
    ),
    "auroc": (
        AUROC, np.round(SCORES[:, 0], 1), MULTI[:, 0],
        _auroc(np.round(SCORES[:, 0], 1), MULTI[:, 0] != 0),
    ),
    "auroc_classes": (
        lambda: AUROC("multiclass"), SCORES, LABELS,
        np.mean([_auroc(SCORES[:, c], c == LABELS) for c in range(C)]),
    ),
    "iou": (MeanIoU, MAPS, REGIONS, _iou()),
    "dice": (Dice, MAPS, REGIONS, _iou(dice=True)),
    "psnr": (
        PSNR, NOISY, IMAGES, np.mean(-10 * np.log10(((NOISY - IMAGES) ** 2).mean((1, 2, 3)))),
    ),
}  # fmt: skip
# Without a formula as short as itself, but restored and split like the others.
MORE = {
    "aucpr": (AUCPR, SCORES[:, 0], MULTI[:, 0]),
    "calibration": (CalibrationError, SCORES, LABELS),
    "cer": (lambda: CharErrorRate(pad=0), FOUND, IDS),
    "wer": (lambda: WordErrorRate(space=3), FOUND, IDS),
    "bleu": (lambda: BLEU(2, smoothing="exponential"), FOUND, IDS),
    "rouge": (RougeL, FOUND, IDS),
    "ssim": (lambda: SSIM(kernel_size=5), NOISY, IMAGES),
    "msssim": (lambda: MSSSIM(kernel_size=3, betas=(0.4, 0.6)), NOISY, IMAGES),
    "loss": (LossMetric, SCORES, LABELS),
}
ALL = {**{k: v[:3] for k, v in CASES.items()}, **MORE}


def _feed(metric, output, target, cuts):
    for a, b in pairwise(cuts):
        batch = [bt.tensor(v[a:b]) for v in (output, target)] + [bt.tensor(float(a))]
        metric.update(*(on_host(v) if metric.on_host else v for v in batch))


@pytest.mark.parametrize("name", CASES)
def test_a_value_is_that_of_all_samples(name):
    make, output, target, want = CASES[name]
    metric = make()
    _feed(metric, output, target, [0, 9, 18, N])
    assert metric.value() == pytest.approx(float(want), rel=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_batches_do_not_matter(name):
    make, output, target = ALL[name]
    one, many = make(), make()
    _feed(one, output, target, [0, N])
    _feed(many, output, target, [0, 1, 2, 11, N])
    if name != "loss":  # the loss that is fed differs
        assert one.value() == pytest.approx(many.value(), rel=1e-5)
    assert math.isnan(make().value())


@pytest.mark.parametrize("name", ALL)
def test_a_restored_metric_goes_on_with_the_same_bits(name):
    make, output, target = ALL[name]
    whole, first, second = make(), make(), make()
    _feed(whole, output, target, [0, 8, 16, N])
    _feed(first, output, target, [0, 8])
    second.load_state_dict(first.state_dict())
    _feed(second, output, target, [8, 16, N])
    assert second.value() == whole.value()
    with pytest.raises(StoreError, match="count"):
        second.load_state_dict({})


@pytest.mark.parametrize("name", ALL)
def test_reset_and_fresh_forget(name):
    # B94
    make, output, target = ALL[name]
    metric, other = make(), make()
    _feed(metric, output, target, [0, 10])
    snapshot, before = metric.snapshot(), metric.value()
    assert math.isnan(metric.fresh().value())
    metric.reset()
    _feed(metric, output, target, [10, N])
    _feed(other, output, target, [10, N])
    assert metric.value() == other.value()
    assert snapshot() == before


def test_a_smaller_last_batch_counts_as_what_it_is():
    # B92: losses 10 (2 samples) and 9 (1 sample); accuracies .7, .8, .9 of 256, 256, 10.
    loss = LossMetric()
    loss.update(bt.zeros(2, 1), bt.zeros(2), bt.tensor(10.0))
    loss.update(bt.zeros(1, 1), bt.zeros(1), bt.tensor(9.0))
    assert loss.value() == pytest.approx(29 / 3)
    accuracy = Accuracy()
    for hits, n in ((179, 256), (205, 256), (9, 10)):
        rows = np.zeros((n, 2), np.float32)
        rows[:hits, 0] = 1
        rows[hits:, 1] = 1
        accuracy.update(bt.tensor(rows), bt.tensor(np.zeros(n, np.int64)), bt.tensor(0.0))
    assert accuracy.value() == pytest.approx(100 * 393 / 522)


def test_what_cannot_be_averaged_is_not():
    # B93: two batches of perfect order each, 75 together.
    metric = AUROC()
    metric.update(np.array([0.1, 0.4]), np.array([0, 1]), 0.0)
    metric.update(np.array([0.6, 0.9]), np.array([0, 1]), 0.0)
    assert metric.value() == 75


def test_sums_of_halves_do_not_overflow():
    loss, sure = LossMetric(), Perplexity()
    scores = np.zeros((30_000, 2), np.float16)
    with Device.flex():  # whose long sums are good to a digit more than the table asks for
        target = bt.tensor(np.zeros(30_000, np.int64))
        for _ in range(2):
            loss.update(bt.tensor(scores), target, bt.tensor(np.float16(100.0)))
            sure.update(bt.tensor(scores), target, bt.tensor(0.0))
    assert loss.value() == 100
    assert sure.value() == pytest.approx(2)


def test_padding_does_not_count():
    logits = bt.tensor(RNG.standard_normal((2, 5, 3)).astype(np.float32))
    target = bt.tensor(np.array([[1, 0, 0], [2, 3, 0]]))
    kept = np.array([[True, False, False], [True, True, False]])
    for metric, want in (
        (Accuracy(pad=0), 100 * (logits.numpy().argmax(1) == target.numpy())[kept].mean()),
        (TopKAccuracy(5, pad=0), 100.0),
    ):
        metric.update(logits, target, bt.tensor(0.0))
        assert metric.value() == pytest.approx(want)
    nothing = Accuracy(pad=0)
    nothing.update(logits, bt.tensor(np.zeros((2, 3), np.int64)), bt.tensor(0.0))
    assert math.isnan(nothing.value())
    sure = Perplexity(pad=0)
    sure.update(logits, target, bt.tensor(0.0))
    p = _softmax(logits.numpy())
    want = np.exp(-np.mean([np.log(p[0, 1, 0]), np.log(p[1, 2, 0]), np.log(p[1, 3, 1])]))
    assert sure.value() == pytest.approx(want, rel=1e-5)


def test_edges_of_counts():
    none = Precision("binary")
    none.update(bt.tensor([0.1, 0.2]), bt.tensor([1, 1]), bt.tensor(0.0))
    assert none.value() == 0
    empty = Recall("binary")
    empty.update(bt.tensor([0.1, 0.2]), bt.tensor([0, 0]), bt.tensor(0.0))
    assert math.isnan(empty.value())
    level = R2Score()
    level.update(bt.tensor([1.0, 2.0]), bt.tensor([3.0, 3.0]), bt.tensor(0.0))
    assert math.isnan(level.value())
    alone = AUROC()
    alone.update(np.array([0.5]), np.array([1]), 0.0)
    assert math.isnan(alone.value())


def test_the_matrix_of_confusions():
    metric = ConfusionMatrix(2, labels=["cat", "dog"])
    assert metric.matrix().tolist() == [[0, 0], [0, 0]]
    metric.update(bt.eye(2), bt.tensor([0, 0]), bt.tensor(0.0))
    assert metric.table().splitlines() == ["    cat dog", "cat   1   1", "dog   0   0"]


def test_texts():
    bleu = BLEU(2)
    bleu.update(np.array([[1, 2, 3]]), np.array([[4, 5, 6]]), 0.0)
    assert bleu.value() == 0
    short = BLEU(1)
    short.update(np.array([[1, 2, 9]]), np.array([[1, 2, 3]]), 0.0)
    assert short.value() == pytest.approx(200 / 3)
    scores = np.zeros((1, 4, 2), np.float32)
    scores[0, [2, 3], [0, 1]] = 1
    edits = CharErrorRate()
    edits.update(scores, np.array([[2, 1]]), 0.0)
    assert edits.value() == 50


def test_detection():
    box = np.array([[0.0, 0.0, 10.0, 10.0]])
    metric = MeanAveragePrecision([0.5, 0.9])
    image = {"boxes": np.concatenate([box, box + 30, box + 2]), "scores": np.array([0.9, 0.8, 0.7]),
             "labels": np.array([1, 1, 1])}  # fmt: skip
    metric.update([image], [{"boxes": np.concatenate([box, box + 31]), "labels": [1, 1]}], 0.0)
    # At 0.5 both are found in order; at 0.9 the first alone: 51 of 101 recalls at precision 1.
    assert metric.value() == pytest.approx(100 * (1 + 51 / 101) / 2)
    empty = MeanAveragePrecision()
    nothing = {"boxes": np.zeros((0, 4)), "scores": np.zeros(0), "labels": np.zeros(0, int)}
    empty.update([nothing], [{"boxes": box, "labels": [1]}], 0.0)
    assert empty.value() == 0


def test_equal_images_are_alike_and_small_ones_refused():
    image = bt.tensor(IMAGES)
    metric = SSIM()
    metric.update(image, image, bt.tensor(0.0))
    assert metric.value() == pytest.approx(1, abs=1e-5)
    with pytest.raises(ShapeError, match="at least 11"):
        metric.update(image[:, :, :5], image[:, :, :5], bt.tensor(0.0))


@pytest.mark.parametrize("make", [
    lambda: TopKAccuracy(0), lambda: Precision("many"), lambda: FBetaScore(0.0), lambda: BLEU(0),
    lambda: Recall(average="weighted"), lambda: CalibrationError(0), lambda: AUROC("ternary"),
    lambda: ConfusionMatrix(2, ["a"]), lambda: MeanAveragePrecision([]), lambda: SSIM(sigma=0),
    lambda: BLEU(smoothing="more"), lambda: Precision(top_k=0),
])  # fmt: skip
def test_settings_that_make_no_sense(make):
    with pytest.raises(ArgumentError):
        make()
