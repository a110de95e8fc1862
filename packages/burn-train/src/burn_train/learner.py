"""Learner: a model, its loss and its optimizer, and what one step of each kind does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burn_core import Module
from burn_optim import Optimizer
from burn_tensor import Tensor


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
        >>> output, loss = learner.train_step((bt.ones(4, 1), bt.ones(4, 1)))
        >>> output.shape, loss.shape
        ((4, 1), ())
    """

    def __init__(self, model: Module, optimizer: Optimizer, loss: Callable[[Any, Any], Tensor]) -> None:
        self.model = model
        self.optimizer = optimizer
        self.loss = loss

    def train_step(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Update the model by one batch (inputs, targets); return (output, loss), untracked."""
        inputs, targets = batch
        output = self.model(inputs)
        loss = self.loss(output, targets)
        grads = loss.backward()
        output, loss = output.detach(), loss.detach()
        self.optimizer.step(self.model, grads)
        return output, loss

    def valid_step(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Return (output, loss) of one batch without changing anything."""
        inputs, targets = batch
        output = self.model.valid()(inputs)
        return output, self.loss(output, targets)
