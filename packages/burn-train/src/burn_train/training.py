"""SupervisedTraining: epochs of steps, validation, metrics, checkpoints, resume."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from burn_core import Module
from burn_dataset import DataLoader
from burn_optim.lr_scheduler import ReduceLROnPlateau
from burn_std import ArgumentError, Closed
from burn_train.checkpoint import Checkpoints
from burn_train.evaluation import evaluate
from burn_train.interrupter import Interrupter
from burn_train.learner import Learner
from burn_train.measuring import MetricLike, Metrics
from burn_train.observer import Observer
from burn_train.rules import KeepBest, KeepLast, KeepRule
from burn_train.run import Run
from burn_train.stopping import EarlyStopping, column
from burn_train.summary import Summary


class TrainingResult:
    """What a training leaves behind.

    Attributes:
        history: one dict per epoch, columns of the table.
        reason: why it ended: `done`, `early stop`, `Ctrl-C` or what an interrupter was told.
        model: the trained model, for inference.
        summary: of the history.
        best_epoch: whose weights the model has, if early stopping brought them back.
    """

    __slots__ = ("best_epoch", "history", "model", "reason", "summary")

    def __init__(
        self, history: list[dict[str, Any]], reason: str, model: Module, summary: Summary,
        best_epoch: int | None = None,
    ) -> None:  # fmt: skip
        self.history = history
        self.reason = reason
        self.model = model
        self.summary = summary
        self.best_epoch = best_epoch

    @property
    def interrupted(self) -> bool:
        """Whether someone ended it before its time."""
        return self.reason not in ("done", "early stop")

    @property
    def last(self) -> dict[str, Any]:
        """The last epoch's values."""
        return self.history[-1] if self.history else {}

    def column(self, name: str) -> list[Any]:
        """Return one column over the epochs, for curves.

        Args:
            name: as in the table, `valid loss`.
        """
        return [row[name] for row in self.history if name in row]


class SupervisedTraining(Closed):
    """Train a learner on batches.

    An epoch is: train, validate, save, ask early stopping. Ctrl-C ends the step it is in and saves
    where it was; `run(learner, resume=True)` goes on from there and ends with the same bits as a
    run that nobody stopped.

    Args:
        train: loader of the training split.
        valid: loader of a held-out split, or None.
        epochs: how many times the training split is seen in all, a resumed part included.
        metrics: classes or instances of metrics and gauges, besides the loss.
        directory: of the run: checkpoints and logs; None keeps none. A run that does not resume
            moves what is there into `previous`, and says so.
        rule: which checkpoints stay; the newest two and the best by validation loss by default.
        save_every: also save inside an epoch each so many steps.
        early_stopping: ends the training when a metric does not improve.
        interrupter: ends it from outside.
        loggers: hear of everything, besides the directory's files.
        view: `dashboard`, `progress`, `plain` or another installed view, or an `Observer`; chosen
            by where the output goes if None.

    Raises:
        ArgumentError: a loader gives no batches or cannot, a number is no positive integer, or
            `rule=` or `save_every=` stands without `directory=`.

    Example:
        >>> import numpy as np
        >>> from burn.dataset import ArrayDataset, DataLoader
        >>> from burn.nn import Linear, MSELoss
        >>> x = np.ones((4, 1), np.float32)
        >>> model = Linear(1, 1, device=burn.Device.default().autodiff())
        >>> learner = Learner(model, burn.optim.SGD(lr=0.1), MSELoss())
        >>> training = SupervisedTraining(DataLoader(ArrayDataset(x, x), 2), epochs=2, view="plain")
        >>> result = training.run(learner)
             epoch  train loss     seconds
        ...
        >>> len(result.history), result.reason
        (2, 'done')
    """

    def __init__(
        self,
        train: DataLoader | Iterable[Any],
        valid: DataLoader | Iterable[Any] | None = None,
        *,
        epochs: int = 1,
        metrics: Sequence[MetricLike] = (),
        directory: str | os.PathLike[str] | None = None,
        rule: KeepRule | None = None,
        save_every: int | None = None,
        early_stopping: EarlyStopping | None = None,
        interrupter: Interrupter | None = None,
        loggers: Sequence[Observer] = (),
        view: str | Observer | None = None,
    ) -> None:
        for name, loader in (("train", train), ("valid", valid)):
            _check_loader(name, loader, needed=name == "train")
        _check_count("epochs", epochs, least=0)
        if save_every is not None:
            _check_count("save_every", save_every, least=1)
        if directory is None and (rule is not None or save_every is not None):
            raise ArgumentError(
                "SupervisedTraining", "checkpoints need a directory", got="rule= or save_every=",
                remedy="Pass directory= too.",
            )  # fmt: skip
        self.train = train
        self.valid = valid
        self.epochs = epochs
        self.metrics = Metrics(metrics)
        self.directory = None if directory is None else Path(directory)
        if rule is None:
            rule = KeepLast(2) if valid is None else KeepLast(2) | KeepBest("valid loss")
        self.checkpoints = (
            None if self.directory is None else Checkpoints(self.directory / "checkpoints", rule)
        )
        self.save_every = save_every
        self.early_stopping = early_stopping
        self.interrupter = interrupter or Interrupter()
        self.loggers = list(loggers)
        self.view = view

    def run(self, learner: Learner, resume: bool = False) -> TrainingResult:
        """Train and return what came of it.

        Args:
            learner: model, optimizer and loss.
            resume: go on from the newest checkpoint that is whole, if there is one.

        Raises:
            ArgumentError: there is nothing to resume from without a `directory=`, or the model is
                on a device without autodiff.
            TrainError: a checkpoint cannot be written, none of those there is whole, or early
                stopping, a rule or a schedule asks for a metric that is not in the table.
        """
        if resume and self.checkpoints is None:
            raise ArgumentError(
                "SupervisedTraining.run", "resume needs a directory", got="none",
                remedy="Pass directory= to SupervisedTraining.",
            )  # fmt: skip
        learner.check_trains("SupervisedTraining.run")
        self._check_names(learner)
        return Run(self, learner).go(resume)

    def _check_names(self, learner: Learner) -> None:
        """Ask for the metrics that others will ask for, before the first epoch."""
        row: dict[str, Any] = {f"train {c.name}": 0.0 for c in self.metrics.columns()}
        if self.valid is not None:
            row |= {f"valid {m.name}": 0.0 for m in self.metrics.metrics}
        asked = [] if self.checkpoints is None else self.checkpoints.rule.metrics()
        wanted = [("KeepBest", name) for name in asked]
        if self.early_stopping is not None:
            wanted.append(("EarlyStopping", self.early_stopping.metric))
        if learner.schedule_on == "epoch" and isinstance(learner.schedule, ReduceLROnPlateau):
            wanted.append(("Learner.monitor", learner.monitor))
        for who, name in wanted:
            column(row, name, who)

    def evaluate(
        self, learner: Learner, loaders: Mapping[str, Iterable[Any]] | Iterable[Any]
    ) -> dict[str, Any]:
        """Return loss and metrics over a loader by name, or over several by their names.

        Args:
            learner: its model stays as it is.
            loaders: one loader, or several by name of test set.
        """
        if isinstance(loaders, Mapping):
            return {name: evaluate(learner, one, self.metrics) for name, one in loaders.items()}
        return evaluate(learner, loaders, self.metrics)


def _check_loader(name: str, loader: Any, needed: bool) -> None:
    if loader is None and not needed:
        return
    if not hasattr(loader, "__iter__"):
        raise ArgumentError(
            "SupervisedTraining", f"{name} gives batches", got=type(loader).__name__,
            remedy="Use burn.dataset.DataLoader.",
        )  # fmt: skip
    try:
        empty = len(loader) == 0
    except TypeError:  # nobody knows
        return
    if empty:
        raise ArgumentError(
            "SupervisedTraining", f"{name} gives batches", got=f"an empty {type(loader).__name__}",
            remedy="Is the data set empty, or smaller than a batch with drop_last?",
        )  # fmt: skip


def _check_count(name: str, value: Any, least: int) -> None:
    counts = type(value) is not bool and isinstance(value, Integral)
    if not counts or value < least:
        raise ArgumentError(
            "SupervisedTraining", f"{name} is an integer of at least {least}", got=value
        )
