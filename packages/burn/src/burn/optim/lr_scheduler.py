"""Schedules of the learning rate: everything of burn_optim.lr_scheduler."""

from typing import TYPE_CHECKING

from burn_optim.lr_scheduler import *  # noqa: F403
from burn_optim.lr_scheduler import __all__ as __all__

if not TYPE_CHECKING:
    from burn_optim.lr_scheduler import __getattr__ as __getattr__
