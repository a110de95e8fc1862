"""A batch of nothing changes no metric: not its value, not its count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn_tensor as bt
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
    Metric,
    Perplexity,
    Precision,
    R2Score,
    Recall,
    RougeL,
    TopKAccuracy,
    WordErrorRate,
)  # fmt: skip

RNG = np.random.default_rng(0)


def classes() -> tuple[Any, Any]:
    return RNG.normal(size=(6, 3)).astype(np.float32), RNG.integers(0, 3, 6)


def numbers() -> tuple[Any, Any]:
    return RNG.normal(size=6).astype(np.float32), RNG.normal(size=6).astype(np.float32)


def labels() -> tuple[Any, Any]:
    return RNG.random((6, 2), np.float32), RNG.integers(0, 2, (6, 2))


def binary() -> tuple[Any, Any]:
    return RNG.random(6, np.float32), np.array([0, 1, 1, 0, 1, 0])


def images() -> tuple[Any, Any]:
    one = RNG.random((6, 1, 64, 64), np.float32)
    return one, np.clip(one + 0.1, 0, 1).astype(np.float32)


def pixels() -> tuple[Any, Any]:
    return RNG.normal(size=(6, 3, 4)).astype(np.float32), RNG.integers(0, 3, (6, 4))


def words() -> tuple[Any, Any]:
    return RNG.integers(0, 9, (6, 5)), RNG.integers(0, 9, (6, 5))


MADE: list[tuple[Callable[[], Metric], Callable[[], tuple[Any, Any]]]] = [
    *((m, classes) for m in (
        LossMetric, Accuracy, lambda: TopKAccuracy(2), Perplexity, CalibrationError, Precision,
        Recall, FBetaScore, lambda: ConfusionMatrix(3), lambda: AUROC("multiclass"),
    )),
    *((m, numbers) for m in (MAE, MSE, RMSE, R2Score)),
    *((m, labels) for m in (
        HammingScore, lambda: Precision("multilabel"), lambda: AUROC("multilabel"),
    )),
    *((m, binary) for m in (lambda: Recall("binary"), AUROC, AUCPR)),
    *((m, images) for m in (PSNR, SSIM, lambda: MSSSIM(kernel_size=3))),
    *((m, pixels) for m in (MeanIoU, Dice)),
    *((m, words) for m in (CharErrorRate, WordErrorRate, BLEU, RougeL)),
]  # fmt: skip


@pytest.mark.parametrize(("make", "data"), MADE)
def test_an_empty_batch_changes_nothing(
    make: Callable[[], Metric], data: Callable[[], tuple[Any, Any]]
) -> None:
    output, target = data()
    values, counts = [], []
    for sizes in ((0, 4, 2), (4, 0, 2, 0), (4, 2)):
        metric, at = make(), 0
        for size in sizes:
            rows = slice(at, at + size)
            at += size
            given: list[Any] = [output[rows], target[rows], np.float32(1.5 if size else np.nan)]
            if not metric.on_host:
                given = [bt.tensor(v, device="flex") for v in given]
            metric.update(*given)
        values.append(metric.value())
        counts.append(metric.count)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(values[:2], [values[2]] * 2)
    assert counts == [6] * 3


def test_an_image_without_boxes_and_no_image_are_two_things() -> None:
    boxes, nothing = np.array([[0.0, 0, 2, 2]]), np.zeros((0, 4))
    metric = MeanAveragePrecision()
    found = {"boxes": boxes, "scores": [0.9], "labels": [0]}
    metric.update([found], [{"boxes": boxes, "labels": [0]}], None)
    before = metric.value()
    metric.update([], [], None)
    assert (metric.value(), metric.count) == (before, 1)
    empty = {"boxes": nothing, "scores": [], "labels": []}
    metric.update([empty], [{"boxes": boxes, "labels": [0]}], None)
    assert metric.count == 2
    assert metric.value() < before
