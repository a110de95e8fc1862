"""What cannot train says so, with the remedy, before anything is trained."""

from __future__ import annotations

import numpy as np
import pytest

import burn
from burn import nn, optim
from burn.train import Accuracy, EarlyStopping, KeepBest, KeepLast, Learner, SupervisedTraining

X = np.ones((4, 2), np.float32)
BATCHES = [(burn.ones(2, 2), burn.ones(2, 1))] * 2


def _learner(device: burn.Device | None = None, **more) -> Learner:
    device = burn.Device.default().autodiff() if device is None else device
    return Learner(nn.Linear(2, 1, device=device), optim.SGD(lr=0.1), nn.MSELoss(), **more)


def test_a_model_without_autodiff_is_refused_before_training(tmp_path):
    learner = _learner(burn.Device.default().without_autodiff())
    training = SupervisedTraining(BATCHES, directory=tmp_path / "run", view="plain")
    for run in (lambda: training.run(learner), lambda: learner.train_step(BATCHES[0])):
        with pytest.raises(burn.ArgumentError, match=r"model\.to_device\(device\.autodiff\(\)\)"):
            run()
    assert not (tmp_path / "run").exists()
    assert sorted(training.evaluate(learner, BATCHES)) == ["loss"]
    learner.model.to_device(burn.Device.default().autodiff())
    learner.train_step(BATCHES[0])


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_validation_without_batches_is_no_nan(epochs):
    rows = iter(()) if epochs == 1 else iter(BATCHES[:1])
    training = SupervisedTraining(BATCHES, rows, epochs=2, view="plain")
    with pytest.raises(burn.TrainError, match=f"none in epoch {epochs}.*used up"):
        training.run(_learner())
    with pytest.raises(burn.TrainError, match="evaluation has batches"):
        training.evaluate(_learner(), iter(()))


@pytest.mark.parametrize(("more", "who", "meant"), [
    ({"early_stopping": EarlyStopping("valid los")}, "EarlyStopping", "valid loss"),
    ({"rule": KeepLast(1) | KeepBest("valid acuracy")}, "KeepBest", "valid accuracy"),
])  # fmt: skip
def test_unknown_metrics_are_told_before_the_first_epoch(more, who, meant, tmp_path):
    training = SupervisedTraining(
        BATCHES, BATCHES, metrics=[Accuracy], directory=tmp_path / "run", view="plain", **more
    )
    with pytest.raises(burn.TrainError, match=f"{who}: no such metric.*{meant}"):
        training.run(_learner())
    assert not (tmp_path / "run").exists()


def test_a_schedule_that_watches_an_unknown_metric():
    learner = _learner(
        schedule=optim.lr_scheduler.ReduceLROnPlateau(0.1), schedule_on="epoch", monitor="loss"
    )
    with pytest.raises(burn.TrainError, match=r"Learner\.monitor: no such metric"):
        SupervisedTraining(BATCHES, view="plain").run(learner)


@pytest.mark.parametrize(("given", "meant"), [
    ("accuracy", "Accuracy"), ("top k accuracy", "TopKAccuracy"), ("f_beta_score", "FBetaScore"),
])  # fmt: skip
def test_a_metric_by_name(given, meant):
    with pytest.raises(burn.ArgumentError, match=f"Pass burn.train.{meant}"):
        SupervisedTraining(BATCHES, metrics=[given])
