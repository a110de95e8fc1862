"""Parametrised weights: everything of burn_nn.parametrizations."""

from burn_nn.parametrizations import *  # noqa: F403
from burn_nn.parametrizations import __all__ as __all__
