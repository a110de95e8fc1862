"""Layers and losses: everything of burn_nn."""

from typing import TYPE_CHECKING

from burn_nn import *  # noqa: F403
from burn_nn import __all__ as __all__
from burn_tensor import functional as functional

if not TYPE_CHECKING:
    from burn_nn import __getattr__ as __getattr__
