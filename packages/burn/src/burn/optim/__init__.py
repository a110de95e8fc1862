"""Optimizers: everything of burn_optim."""

from typing import TYPE_CHECKING

from burn_optim import *  # noqa: F403
from burn_optim import __all__ as __all__

if not TYPE_CHECKING:
    from burn_optim import __getattr__ as __getattr__
