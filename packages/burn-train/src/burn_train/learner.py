"""Learner: a model, its loss and its optimizer, and what one step of each kind does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from burn_core import Module
from burn_optim import Optimizer
from burn_tensor import Tensor
from burn_train.metrics import Metric


class Learner:
    """What training needs to know; override a step for other kinds of learning.

    Args:
        model: on an autodiff device.
        optimizer: updates it.
        loss: `(output, target) -> loss of rank 0`.

    Example:
        >>> import burn_tensor as bt
        >>> from burn_dispatch import Device
        >>> from burn_nn import Linear, MSELoss
        >>> from burn_optim import SGD
        >>> model = Linear(1, 1, device=Device.flex().autodiff())
        >>> learner = Learner(model, SGD(lr=0.1), MSELoss())
        >>> learner.train_step((bt.ones(4, 1), bt.ones(4, 1)))
    """

    def __init__(
        self, model: Module, optimizer: Optimizer, loss: Callable[[Any, Any], Tensor]
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.loss = loss

    def train_step(self, batch: Any, metrics: Sequence[Metric] = ()) -> None:
        """Update the model by one batch (inputs, targets).

        The metrics hear of it before the optimizer's step ends the recording, so that a whole
        step is one program.
        """
        inputs, targets = batch
        output = self.model(inputs)
        loss = self.loss(output, targets)
        grads = loss.backward()
        for m in metrics:
            m.update(output, targets, loss)
        del output, loss
        self.optimizer.step(self.model, grads)

    def valid_step(self, batch: Any, metrics: Sequence[Metric]) -> None:
        """Let the metrics hear of one batch; changes nothing in the model."""
        inputs, targets = batch
        output = self.model.valid()(inputs)
        loss = self.loss(output, targets)
        for m in metrics:
            m.update(output, targets, loss)
