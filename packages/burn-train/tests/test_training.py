"""The supervised loop: history, checkpoints, resume, interruption."""

from __future__ import annotations

import numpy as np
import pytest

from burn_std import TrainError
from burn_train import Checkpoints, Mark, SupervisedTraining


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
