"""Optimizers: everything of burn_optim."""

from burn_optim import *  # noqa: F403
from burn_optim import __all__ as __all__
