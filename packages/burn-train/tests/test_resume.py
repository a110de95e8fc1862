"""Stopping anywhere and going on: the same bits as a run that nobody stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from burn_core import Lora, Quantizer, apply_lora
from burn_dataset import DataLoader, WorkerError
from burn_dispatch import Device, device
from burn_nn import Dropout, Linear, MSELoss, ReLU, Sequential
from burn_optim import EMA, AdamW, GradScaler, lr_scheduler
from burn_std import TrainError, quantized
from burn_train import (
    AUROC,
    MAE,
    EarlyStopping,
    HostMetric,
    Interrupter,
    KeepEvery,
    Learner,
    Mark,
    MemoryLogger,
    Observer,
    SupervisedTraining,
)

EPOCHS = 4


class Bad(HostMetric):
    name = "bad"

    def update(self, output, target, loss):
        raise ZeroDivisionError("in the metric")

    def result(self, seen):
        return 0.0


class StopAt(Observer):
    """Presses a training's button once so many steps were made in all."""

    every = 1

    def __init__(self, step):
        self.step = step
        self.button = None

    def begin(self, info):
        self.button = info.interrupter

    def values(self, split, epoch, step, values):
        if step >= self.step:
            self.button.stop("test")


@pytest.fixture
def everything(device):
    """A learner with all that has state."""

    def make(seed=0):
        device.seed(seed)
        model = Sequential(
            Linear(3, 8, device=device), ReLU(), Dropout(0.3), Linear(8, 1, device=device)
        )
        schedule = lr_scheduler.WarmupLR(lr_scheduler.CosineAnnealingLR(0.02, T_max=20), 3)
        return Learner(
            model, AdamW(lr=0.02).add_group("0", lr=0.01), MSELoss(), schedule=schedule,
            clip_norm=1.0, accumulate=2, scaler=GradScaler(8.0, growth_interval=3, device=device),
            ema=EMA(model, 0.9), validate_average=True,
        )  # fmt: skip

    return make


def _training(loaders, directory, **more):
    settings = {"epochs": EPOCHS, "metrics": [MAE, _Sign], "view": "plain", **more}
    return SupervisedTraining(*loaders(), directory=directory, **settings)


class _Sign(AUROC):
    """A metric of the host that suits a regression."""

    def update(self, output, target, loss):
        super().update(np.asarray(output)[:, 0], np.asarray(target)[:, 0] > 0, loss)


def _columns(result):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in result.history]


@pytest.mark.parametrize("stop", [1, 3, 4, 5, 6, 9, 14])
def test_a_run_stopped_at_any_step_ends_with_the_same_bits(
    everything, loaders, parameters, tmp_path, stop
):
    stopping = {"early_stopping": EarlyStopping("valid mae", patience=9)}
    whole = everything()
    want = _training(loaders, tmp_path / "whole", **stopping).run(whole)
    first = _training(
        loaders, tmp_path / "half", loggers=[StopAt(stop)],
        early_stopping=EarlyStopping("valid mae", patience=9),
    ).run(everything())  # fmt: skip
    assert first.interrupted
    assert first.reason == "test"
    # Another seed: everything that matters must come from the checkpoint.
    second = everything(seed=5)
    found = _training(
        loaders, tmp_path / "half", early_stopping=EarlyStopping("valid mae", patience=9)
    ).run(second, resume=True)
    assert found.reason == "done"
    assert _columns(found) == _columns(want)
    for a, b in zip(parameters(whole), parameters(second), strict=True):
        np.testing.assert_array_equal(a, b)
    one, two = whole.optimizer.state_dict(whole.model), second.optimizer.state_dict(second.model)
    assert all((one[k].numpy() == two[k].numpy()).all() for k in one)
    assert whole.scalars() == second.scalars()
    assert [t.tolist() for t in whole.ema.state_dict().values()] == [
        t.tolist() for t in second.ema.state_dict().values()
    ]


def test_places_inside_an_epoch_are_saved(learner, loaders, tmp_path, monkeypatch):
    marks = []
    training = _training(loaders, tmp_path, epochs=1, save_every=2)
    real = training.checkpoints.save
    monkeypatch.setattr(
        training.checkpoints, "save", lambda mark, *a: marks.append(mark) or real(mark, *a)
    )
    training.run(learner())
    assert marks == [(0, 2), (0, 4), (1, 0)]
    assert training.checkpoints.marks() == [(1, 0)]


@pytest.mark.parametrize("told", [True, False])
def test_workers_that_end_at_the_same_signal_do_not_cost_the_place(
    learner, loaders, parameters, tmp_path, told
):
    class Ended(DataLoader):
        def _batches(self, epoch, start):
            for k, batch in enumerate(super()._batches(epoch, start), start):
                if (epoch, k) == (1, 3) and training.interrupter is button:
                    if told:
                        button.stop("terminated")
                    raise WorkerError("DataLoader", "a worker process ended")
                yield batch

    button = Interrupter()
    train, valid = loaders()
    ended = Ended(train.dataset, 4, shuffle=True, seed=3, device=train.device)
    training = SupervisedTraining(
        ended, valid, epochs=3, directory=tmp_path, view="plain", interrupter=button
    )
    if not told:
        with pytest.raises(WorkerError):
            training.run(learner())
        return
    assert training.run(learner()).reason == "terminated"
    assert training.checkpoints.latest() == Mark(1, 3)
    training.interrupter = Interrupter()
    second = learner(5)
    training.run(second, resume=True)
    whole = learner()
    SupervisedTraining(*loaders(), epochs=3, view="plain").run(whole)
    for a, b in zip(parameters(second), parameters(whole), strict=True):
        assert (a == b).all()


def test_adapters_on_quantised_weights_go_on_with_the_same_bits(loaders, device, tmp_path):
    def make(seed=0):
        device.seed(seed)
        model = Sequential(Linear(3, 8, device=device), ReLU(), Linear(8, 1, device=device))
        apply_lora(model, Lora(2, quantizer=Quantizer(quantized(4, block=2))))
        return Learner(model, AdamW(lr=0.02), MSELoss())

    def run(learner, directory, epochs, resume=False):
        training = SupervisedTraining(*loaders(), epochs=epochs, directory=directory, view="plain")
        training.run(learner, resume=resume)
        state = learner.model.state_dict().values()
        return [(t.dequantize() if t.dtype.is_quantized else t).numpy() for t in state]

    want = run(make(), tmp_path / "whole", 4)
    run(make(), tmp_path / "half", 2)
    found = run(make(7), tmp_path / "half", 4, resume=True)
    for a, b in zip(found, want, strict=True):
        assert (a == b).all()


@pytest.mark.parametrize("save", [True, False])
def test_a_stop_between_epochs_is_saved_whatever_the_rule_keeps(learner, loaders, tmp_path, save):
    class Presser(Observer):
        def values(self, split, epoch, step, values):
            if split == "valid" and epoch == 3:
                training.interrupter.stop("enough", save=save)

        live = True

    training = SupervisedTraining(
        *loaders(), epochs=10, directory=tmp_path, rule=KeepEvery(10), view="plain",
        loggers=[Presser()],
    )  # fmt: skip
    result = training.run(learner())
    assert (result.reason, len(result.history)) == ("enough", 3)
    assert training.checkpoints.latest() == (Mark(3) if save else None)


def test_stopping_without_saving(learner, loaders, tmp_path):
    training, made = _training(loaders, tmp_path), learner()
    real = made.train_step

    def step(*args, **kwargs):
        training.interrupter.stop("kill", save=False)
        return real(*args, **kwargs)

    made.train_step = step
    assert training.run(made).reason == "kill"
    assert training.checkpoints.marks() == []


def test_the_best_weights_come_back_however_it_ends(learner, loaders, parameters):
    # B96: best at epoch 2 of 4; patience never runs out.
    def run(**more):
        made = learner()
        seen = []

        class Watch(Observer):
            def epoch(self, row):
                seen.append(parameters(made))

        stopping = EarlyStopping("train loss", patience=9)
        stopping.improves = lambda value: len(seen) == 1
        training = SupervisedTraining(
            *loaders(), epochs=4, early_stopping=stopping, view="plain", loggers=[Watch()], **more
        )
        result = training.run(made)
        return result, seen, parameters(made)

    result, seen, last = run()
    assert (result.reason, result.best_epoch) == ("done", 2)
    assert all((a == b).all() for a, b in zip(seen[1], last, strict=True))
    assert not all((a == b).all() for a, b in zip(seen[3], last, strict=True))


def test_it_stops_early_and_stays_stopped(learner, loaders, tmp_path):
    def run(resume=False):
        stopping = EarlyStopping("train loss", patience=1, mode="max")
        return _training(loaders, tmp_path, early_stopping=stopping).run(learner(), resume)

    first = run()
    assert first.reason == "early stop"
    assert not first.interrupted
    again = run(resume=True)
    assert (again.reason, _columns(again)) == ("early stop", _columns(first))


def test_an_error_of_a_metric_ends_training_with_its_own_traceback(learner, loaders):
    log = MemoryLogger()
    training = SupervisedTraining(*loaders(), metrics=[Bad], view="plain", loggers=[log])
    with pytest.raises(ZeroDivisionError, match="in the metric") as caught:
        training.run(learner())
    assert any(frame.name == "update" for frame in caught.traceback)
    assert log.summary is None


def test_a_full_disk_ends_training_with_the_last_good_one(learner, loaders, tmp_path, monkeypatch):
    training = _training(loaders, tmp_path)
    import burn_train.checkpoint as module

    real, calls = module.save_tensors, []

    def save(*args, **kwargs):
        calls.append(1)
        if len(calls) > 5:
            raise OSError(28, "No space left on device")
        real(*args, **kwargs)

    monkeypatch.setattr(module, "save_tensors", save)
    with pytest.raises(TrainError, match="No space left"):
        training.run(learner())
    monkeypatch.undo()
    assert training.checkpoints.load_newest().mark == training.checkpoints.latest()
    assert len(_training(loaders, tmp_path).run(learner(), resume=True).history) == EPOCHS


def test_a_newest_checkpoint_that_is_damaged_is_passed_over(learner, loaders, tmp_path):
    training = _training(loaders, tmp_path, epochs=3)
    training.run(learner())
    (training.checkpoints.path(training.checkpoints.latest()) / "optimizer.safetensors").unlink()
    log = MemoryLogger()
    again = _training(loaders, tmp_path, epochs=3, loggers=[log])
    assert len(again.run(learner(), resume=True).history) == 3
    assert "epoch-3 is not whole" in log.messages[0]
    assert "resumed from epoch-2" in log.messages[1]


def test_the_order_of_epochs_is_that_of_the_whole_run(learner, loaders, device, tmp_path):
    # B100: the sample ids of a stopped and resumed run are those of the whole one.
    def run(directory, resume=False, **more):
        seen = []
        train, valid = loaders()

        class Watched(DataLoader):
            def __iter__(self):
                for x, y in super().__iter__():
                    seen.append(x.numpy().tobytes())
                    yield x, y

        watched = Watched(train.dataset, 4, shuffle=True, seed=3, device=device)
        SupervisedTraining(watched, valid, epochs=3, directory=directory, view="plain", **more).run(
            learner(), resume
        )
        return seen

    whole = run(tmp_path / "a")
    half = run(tmp_path / "b", loggers=[StopAt(8)])
    rest = run(tmp_path / "b", resume=True)
    assert half == whole[: len(half)]
    # What the stopped run fetched beyond its last step is fetched again.
    assert (half + rest)[-len(rest) :] == whole[-len(rest) :]
    assert len(half) + len(rest) == len(whole)


def test_going_on_elsewhere_draws_the_same_numbers(learner, loaders, parameters, tmp_path):
    whole = learner()
    SupervisedTraining(*loaders(), epochs=EPOCHS, view="plain").run(whole)
    SupervisedTraining(*loaders(), epochs=2, view="plain", directory=tmp_path).run(learner())
    elsewhere = device(f"{Device.default().name}:1").autodiff()
    rest = learner()
    rest.model.to_device(elsewhere)
    train, valid = loaders()
    train.device = valid.device = elsewhere
    SupervisedTraining(train, valid, epochs=EPOCHS, view="plain", directory=tmp_path).run(
        rest, True
    )
    for a, b in zip(parameters(whole), parameters(rest), strict=True):
        assert np.array_equal(a, b)


_SCRIPT = """
import sys, time
import numpy as np
from burn_dataset import ArrayDataset, DataLoader, collate
from burn_dispatch import Device
from burn_nn import Dropout, Linear, MSELoss, Sequential
from burn_optim import Adam
from burn_train import Learner, SupervisedTraining
from burn_store import save

def slow(items):
    time.sleep(0.004)
    return collate(items)

device = Device.default().autodiff()
device.seed(0)
rng = np.random.default_rng(0)
x = rng.standard_normal((64, 3)).astype(np.float32)
data = ArrayDataset(x, x @ np.ones((3, 1), np.float32))
model = Sequential(Linear(3, 4, device=device), Dropout(0.2), Linear(4, 1, device=device))
training = SupervisedTraining(
    DataLoader(data, 4, shuffle=True, seed=1, device=device, collate=slow),
    epochs=4, directory=sys.argv[1], save_every=3, view="plain",
)
result = training.run(Learner(model, Adam(lr=0.01), MSELoss()), resume=True)
if result.interrupted:
    raise SystemExit(130)
save(model, sys.argv[1] + "/final.safetensors")
"""


def _start(script, folder):
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, str(script), str(folder)], env=env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_run_ends_with_the_same_bits(tmp_path, kind):
    # B98 and issue: interrupted and killed at random steps, resumed until it is done.
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT)
    whole = _start(script, tmp_path / "whole")
    assert whole.wait(60) == 0, whole.stdout.read()
    whole.stdout.close()
    rng = np.random.default_rng(int(kind))
    kills = 0
    for _ in range(int(os.environ.get("BURN_TEST_KILLS", "4"))):
        process = _start(script, tmp_path / "killed")
        # Until training writes something, a signal would meet the interpreter's start.
        _wait_for(tmp_path / "killed" / "experiment.log", process)
        time.sleep(float(rng.uniform(0.01, 0.12)))
        process.send_signal(kind)
        code = process.wait(60)
        said = process.stdout.read()
        process.stdout.close()
        assert code in (0, 130, -signal.SIGKILL), said
        if code == 0:
            break
        kills += 1
        (tmp_path / "killed" / "experiment.log").unlink()
    else:
        process = _start(script, tmp_path / "killed")
        assert process.wait(60) == 0, process.stdout.read()
        process.stdout.close()
    assert kills >= 2
    final = [(tmp_path / n / "final.safetensors").read_bytes() for n in ("whole", "killed")]
    assert final[0] == final[1]


def _wait_for(path, process):
    end = time.monotonic() + 30
    while not path.exists() and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.005)
