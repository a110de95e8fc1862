"""SupervisedTraining: epochs of steps, validation, metrics, checkpoints, resume."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from burn_dataset import DataLoader
from burn_tensor import Tensor
from burn_train.checkpoint import Checkpoints
from burn_train.learner import Learner
from burn_train.metrics import LossMetric, Metric
from burn_train.views import View, choose_view


class TrainingResult:
    """What a training leaves behind.

    Attributes:
        history: one dict per epoch, columns of the table.
        interrupted: Ctrl-C ended it.
    """

    __slots__ = ("history", "interrupted")

    def __init__(self, history: list[dict[str, Any]], interrupted: bool) -> None:
        self.history = history
        self.interrupted = interrupted

    @property
    def last(self) -> dict[str, Any]:
        """The last epoch's values."""
        return self.history[-1] if self.history else {}

    def column(self, name: str) -> list[Any]:
        """Return one column over the epochs, for curves."""
        return [row[name] for row in self.history if name in row]


class SupervisedTraining:
    """Train a learner on batches (inputs, targets).

    Args:
        train: loader of the training split.
        valid: loader of a held-out split, or None.
        epochs: how many times the training split is seen in all, a resumed part included.
        metrics: besides the loss.
        directory: where checkpoints go; None keeps none.
        keep: how many of the newest checkpoints stay.
        view: `progress`, `plain` or another installed view; chosen by the terminal if None.

    Example:
        >>> import numpy as np
        >>> from burn_dataset import ArrayDataset, DataLoader
        >>> from burn_dispatch import Device
        >>> from burn_nn import Linear, MSELoss
        >>> from burn_optim import SGD
        >>> x = np.ones((4, 1), np.float32)
        >>> learner = Learner(Linear(1, 1, device=Device.flex().autodiff()), SGD(lr=0.1), MSELoss())
        >>> training = SupervisedTraining(DataLoader(ArrayDataset(x, x), 2), epochs=2, view="plain")
        >>> result = training.run(learner)  # doctest: +ELLIPSIS
             epoch  train loss     seconds
        ...
        >>> len(result.history)
        2
    """

    def __init__(
        self,
        train: DataLoader,
        valid: DataLoader | None = None,
        *,
        epochs: int = 1,
        metrics: Sequence[type[Metric]] = (),
        directory: str | os.PathLike[str] | None = None,
        keep: int = 2,
        view: str | None = None,
    ) -> None:
        self.train = train
        self.valid = valid
        self.epochs = epochs
        self.metrics = metrics
        self.checkpoints = None if directory is None else Checkpoints(directory, keep)
        self.view = view

    def run(self, learner: Learner, resume: bool = False) -> TrainingResult:
        """Train and return the history.

        Args:
            learner: model, optimizer and loss.
            resume: go on from the newest checkpoint in the directory, if there is one.

        Raises:
            TrainError: a checkpoint cannot be written or read.
        """
        history: list[dict[str, Any]] = []
        if resume:
            history = self._resume(learner)
        for device in _devices(learner):
            device.flush()  # what made the model is no part of the first step
        view: View = choose_view(self.view)
        interrupted = False
        view.begin(self.epochs - len(history), len(self.train))
        try:
            while len(history) < self.epochs:
                row = self._epoch(len(history) + 1, learner, view)
                history.append(row)
                view.epoch(row)
                self._save(learner, history)
        except KeyboardInterrupt:
            # The unfinished epoch is not in the history: a resume begins it anew.
            interrupted = True
        finally:
            view.end()
        return TrainingResult(history, interrupted)

    def _epoch(self, epoch: int, learner: Learner, view: View) -> dict[str, Any]:
        start = time.perf_counter()
        self.train.epoch, self.train.position = epoch - 1, 0
        found = self._split("train", self.train, learner.train_step, epoch, view)
        if self.valid is not None:
            found |= self._split("valid", self.valid, learner.valid_step, epoch, None)
        return {"epoch": epoch, **found, "seconds": time.perf_counter() - start}

    def evaluate(self, learner: Learner, loader: DataLoader) -> dict[str, float]:
        """Return loss and metrics over a loader, by name, without changing the model."""
        return self._split("", loader, learner.valid_step, 0, None)

    def _split(
        self, name: str, loader: DataLoader, step: Any, epoch: int, view: View | None
    ) -> dict[str, float]:
        metrics: list[Metric] = [LossMetric(), *(m() for m in self.metrics)]
        for k, batch in enumerate(loader):
            step(batch, metrics)
            flush(batch)
            if view is not None:
                view.step(epoch, k + 1)
        return {f"{name} {m.name}".strip(): m.value() for m in metrics}

    def _save(self, learner: Learner, history: list[dict[str, Any]]) -> None:
        if self.checkpoints is not None:
            random = _devices(learner)
            state = {"history": history, "random": {d.name: list(d.random_state()) for d in random}}
            self.checkpoints.save(len(history), learner.model, learner.optimizer, state)

    def _resume(self, learner: Learner) -> list[dict[str, Any]]:
        latest = self.checkpoints.latest() if self.checkpoints else None
        if self.checkpoints is None or latest is None:
            return []
        state = self.checkpoints.load(latest, learner.model, learner.optimizer)
        for device in _devices(learner):
            if device.name in state["random"]:
                device.set_random_state(tuple(state["random"][device.name]))
        history: list[dict[str, Any]] = state["history"]
        return history[: self.epochs]


def flush(batch: Any) -> None:
    """Hand the recorded operations of a batch to its device.

    So every batch records the same program.
    """
    for part in batch.values() if isinstance(batch, dict) else batch:
        if isinstance(part, Tensor):
            part.device.flush()
            return


def _devices(learner: Learner) -> list[Any]:
    """Return the devices of the model's parameters, each once."""
    return list({p.b.device.name: p.b.device for p in learner.model.parameters()}.values())
