"""Schedules of the learning rate: everything of burn_optim.lr_scheduler."""

from burn_optim.lr_scheduler import *  # noqa: F403
from burn_optim.lr_scheduler import __all__ as __all__
