"""The supervised loop: history, checkpoints, resume, interruption."""

from __future__ import annotations

import numpy as np
import pytest

import burn_tensor as bt
from burn_dataset import DataLoader, IterableDataset
from burn_nn import Linear
from burn_optim import SGD, GradScaler, lr_scheduler
from burn_std import ArgumentError, DTypeError, TrainError
from burn_train import (
    Checkpoints,
    KeepLast,
    Learner,
    LearningRate,
    Mark,
    Step,
    SupervisedTraining,
)

F16 = bt.tensor(np.zeros(1, np.float16)).dtype


def _same(one, two):
    return all((a == b).all() for a, b in zip(one, two, strict=True))


def test_history_holds_every_epoch(learner, loaders, capsys):
    train, valid = loaders()
    result = SupervisedTraining(train, valid, epochs=3, view="plain").run(learner())
    assert [row["epoch"] for row in result.history] == [1, 2, 3]
    assert {"train loss", "valid loss", "seconds"} <= set(result.last)
    assert result.column("valid loss")[2] < result.column("valid loss")[0]
    assert not result.interrupted
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 4
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("stop", [1, 3])
def test_a_resumed_run_ends_with_the_same_bits(learner, loaders, parameters, tmp_path, stop):
    def run(epochs, directory, resume=False):
        # Another seed: everything that matters must come from the checkpoint.
        made = learner(seed=1 if resume else 0)
        training = SupervisedTraining(*loaders(), epochs=epochs, directory=directory, view="plain")
        return made, training.run(made, resume=resume)

    whole, want = run(4, tmp_path / "whole")
    run(stop, tmp_path / "half")
    resumed, found = run(4, tmp_path / "half", resume=True)
    assert _same(parameters(whole), parameters(resumed))
    for name in ("train loss", "valid loss"):
        assert found.column(name) == want.column(name)


def test_evaluation_changes_nothing(learner, loaders, parameters):
    made = learner()
    training = SupervisedTraining(*loaders(), view="plain")
    before = parameters(made)
    one = training.evaluate(made, training.valid)
    assert one == training.evaluate(made, training.valid)
    assert _same(before, parameters(made))


def test_resume_without_a_checkpoint_begins(learner, loaders, tmp_path):
    training = SupervisedTraining(*loaders(), epochs=1, directory=tmp_path / "none", view="plain")
    assert len(training.run(learner(), resume=True).history) == 1


def test_a_broken_checkpoint_is_refused(learner, loaders, tmp_path):
    training = SupervisedTraining(*loaders(), epochs=1, directory=tmp_path, view="plain")
    training.run(learner())
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    (checkpoints.path(Mark(1)) / "model.safetensors").write_bytes(b"x" * 50)
    with pytest.raises(TrainError, match="not whole"):
        checkpoints.load(Mark(1))


def test_gradient_free_values_are_arrays(learner, loaders, parameters):
    made = learner()
    before = parameters(made)
    SupervisedTraining(*loaders(), epochs=1, view="plain").run(made)
    assert not _same(before, parameters(made))
    assert all(np.isfinite(p).all() for p in parameters(made))


def test_streams_have_no_length_and_resume_too(learner, parameters, device, tmp_path):
    rng = np.random.default_rng(0)
    rows = [(rng.standard_normal(3).astype(np.float32), np.ones(1, np.float32)) for _ in range(10)]

    def run(directory, resume=False, stop=None):
        made = learner(seed=int(resume))
        made.accumulate = 3
        loader = DataLoader(IterableDataset(rows), 2, device=device)
        training = SupervisedTraining(loader, epochs=3, directory=directory, view="plain")
        real = made.train_step

        def step(batch, *args, **kwargs):
            out = real(batch, *args, **kwargs)
            if stop is not None and made.steps == stop:
                training.interrupter.stop()
            return out

        made.train_step = step
        return made, training.run(made, resume)

    whole, want = run(tmp_path / "a")
    # Five batches are a step of three and one of two.
    assert whole.steps == 6
    _, half = run(tmp_path / "b", stop=3)
    assert half.interrupted
    again, found = run(tmp_path / "b", resume=True)
    assert found.column("train loss") == want.column("train loss")
    assert _same(parameters(whole), parameters(again))


def test_schedules_by_epoch_see_the_metric(learner, loaders):
    made = learner()
    made.schedule = lr_scheduler.ReduceLROnPlateau(0.5, patience=0, mode="max", factor=0.5)
    made.schedule_on = "epoch"
    result = SupervisedTraining(*loaders(), epochs=3, view="plain", metrics=[LearningRate]).run(
        made
    )
    losses = result.column("valid loss")
    want, best = [0.5], losses[0]
    for loss in losses[1:]:
        want.append(want[-1] if loss > best * 1.0001 else want[-1] / 2)
        best = max(best, loss)
    assert made.schedule.lr == want[-1]


def test_mixed_precision_trains(learner, loaders, device):
    made = learner()
    made.autocast = F16
    made.scaler = GradScaler(1024.0, device=device)
    made.skip_nonfinite = True
    result = SupervisedTraining(*loaders(), epochs=4, view="plain").run(made)
    assert result.column("valid loss")[-1] < result.column("valid loss")[0]
    assert {p.dtype.name for p in made.model.parameters()} == {"float32"}


def test_a_learner_of_other_batches(device, loaders):
    class Autoencoder(Learner):
        def forward(self, model, batch):
            x, _ = batch
            y = model(x)
            return Step(y, x, ((y - x) ** 2).mean())

    made = Autoencoder(Linear(3, 3, device=device), SGD(lr=0.1))
    result = SupervisedTraining(*loaders(), epochs=3, view="plain").run(made)
    assert result.last["valid loss"] < result.history[0]["valid loss"]
    with pytest.raises(ArgumentError, match="override forward"):
        Learner(made.model, made.optimizer).train_step((1, 2))
    for bad in ({"accumulate": 0}, {"schedule_on": "day"}, {"validate_average": True}):
        with pytest.raises(ArgumentError):
            Learner(made.model, made.optimizer, **bad)


def test_misplaced_arguments_get_the_remedy(learner, loaders):
    made = learner()
    with pytest.raises(ArgumentError, match="the optimizer stands second"):
        Learner(made.model, made.loss, made.optimizer)
    with pytest.raises(ArgumentError, match="resume needs a directory"):
        SupervisedTraining(*loaders(), epochs=1, view="plain").run(made, resume=True)


def test_workers_serve_a_training(learner, loaders, parameters, device):
    one = learner()
    train, valid = loaders()
    SupervisedTraining(train, valid, epochs=2, view="plain").run(one)
    two = learner()
    train.num_workers = 2
    train.epoch = 0
    SupervisedTraining(train, valid, epochs=2, view="plain").run(two)
    train.close()
    assert _same(parameters(one), parameters(two))


class _Endless:
    pass


@pytest.mark.parametrize(("settings", "words"), [
    ({"train": None}, "train gives batches; got NoneType"),
    ({"train": []}, "train gives batches; got an empty list"),
    ({"valid": []}, "valid gives batches"), ({"valid": _Endless()}, "valid gives batches"),
    ({"epochs": -1}, "epochs is an integer"), ({"epochs": 1.5}, "epochs is an integer"),
    ({"epochs": None}, "epochs is an integer"), ({"save_every": 0, "directory": "x"}, "save_every"),
    ({"save_every": 2}, "need a directory"), ({"rule": KeepLast(1)}, "need a directory"),
])  # fmt: skip
def test_settings_that_make_no_training(loaders, settings, words):
    train, valid = loaders()
    given = {"train": train, "valid": valid, "view": "plain", **settings}
    with pytest.raises(ArgumentError, match=words):
        SupervisedTraining(**given)


def test_an_iterator_that_is_used_up_and_a_loss_that_is_no_tensor(learner, loaders):
    train, _ = loaders()
    with pytest.raises(TrainError, match="none in epoch 2"):
        SupervisedTraining(iter(list(train)), epochs=2, view="plain").run(learner())
    made = learner()
    made.loss = lambda output, target: 1.0
    with pytest.raises(DTypeError, match=r"Learner.forward.*got float"):
        SupervisedTraining(train, view="plain").run(made)
