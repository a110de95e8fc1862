"""Layers and losses: everything of burn_nn."""

from burn_nn import *  # noqa: F403
from burn_nn import __all__ as __all__
