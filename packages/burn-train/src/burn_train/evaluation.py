"""Evaluation of a model over test sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from burn_core import Module
from burn_std import TrainError
from burn_tensor import Tensor
from burn_train.learner import Learner
from burn_train.measuring import MetricLike, Metrics, run_state
from burn_train.observer import Observer, Observers
from burn_train.worker import Worker


def evaluate(
    learner: Learner,
    loader: Iterable[Any],
    metrics: Metrics,
    done: Callable[[int], None] = lambda step: None,
    model: Module | None = None,
) -> dict[str, float]:
    """Return loss and metrics over a loader, by name.

    Args:
        learner: says what a batch comes to; its model stays as it is.
        loader: of batches.
        metrics: prototypes.
        done: hears how many batches are done.
        model: an inference model; the learner's if None.

    Raises:
        TrainError: the loader gives no batch.
    """
    split, k = metrics.split(gauges=False), 0
    infer = learner.inference() if model is None else model
    with Worker() as worker:
        for k, batch in enumerate(loader, 1):
            step = learner.valid_step(batch, split.on_device, model=infer, keep=split.keep)
            flush(batch)
            split.hand_over(step, worker)
            done(k)
        worker.drain()
        if k == 0:
            raise no_batches("evaluation", "none")
        return split.reading(run_state(learner, 0.0))()


def no_batches(what: str, got: str) -> TrainError:
    """Return the error of a pass over a loader that gave nothing: its values would be NaN.

    Args:
        what: the pass.
        got: what came of it.
    """
    return TrainError(
        "SupervisedTraining", f"{what} has batches", got=got,
        remedy="An iterator is used up after one epoch: pass a DataLoader or a list.",
    )  # fmt: skip


def flush(batch: Any) -> None:
    """Hand the recorded operations of a batch to its device, so every batch records alike.

    Args:
        batch: tensors, or tuples, lists and dicts of them.
    """
    found = first_tensor(batch)
    if found is not None:
        found.device.flush()


def first_tensor(value: Any) -> Tensor | None:
    """Return the first tensor in a batch, or None.

    Args:
        value: a tensor, or tuples, lists and dicts of them.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            found = first_tensor(part)
            if found is not None:
                return found
    return None


class Evaluator:
    """Evaluates a model over several named test sets.

    Args:
        model: for inference, or a training one.
        loss: `(output, target) -> loss of rank 0`.
        metrics: classes or instances, besides the loss.
        observers: hear the values of every test set.

    Example:
        >>> import numpy as np
        >>> from burn.dataset import ArrayDataset, DataLoader
        >>> from burn.nn import Linear, MSELoss
        >>> model = Linear(1, 1)
        >>> x = np.ones((3, 1), np.float32)
        >>> easy, hard = (DataLoader(ArrayDataset(x, y), 2) for y in (x, -x))
        >>> found = Evaluator(model, MSELoss()).run({"easy": easy, "hard": hard})
        >>> list(found), list(found["easy"])
        (['easy', 'hard'], ['loss'])
    """

    def __init__(
        self,
        model: Module,
        loss: Callable[[Any, Any], Tensor],
        metrics: Sequence[MetricLike] = (),
        observers: Sequence[Observer] = (),
    ) -> None:
        self._learner = _Evaluated(model, loss)
        self.metrics = Metrics(metrics)
        self._observers = Observers(observers)

    def run(self, loaders: Mapping[str, Iterable[Any]]) -> dict[str, dict[str, float]]:
        """Return loss and metrics by test set and name.

        Args:
            loaders: by name of test set.
        """
        out: dict[str, dict[str, float]] = {}
        model = self._learner.inference()
        for name, loader in loaders.items():
            out[name] = evaluate(self._learner, loader, self.metrics, model=model)
            self._observers.tell("values", name, 0, 0, out[name])
        return out


class _Evaluated(Learner):
    """A learner that never learns."""

    def __init__(self, model: Module, loss: Callable[[Any, Any], Tensor]) -> None:
        from burn_optim import SGD

        super().__init__(model, SGD(), loss)
