"""Optimizers under PyTorch's names, arguments and defaults."""

from burn_optim.adam import Adam as Adam, AdamW as AdamW
from burn_optim.optimizer import Optimizer as Optimizer
from burn_optim.sgd import SGD as SGD

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Optimizer",
]
