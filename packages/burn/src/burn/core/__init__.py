"""Modules, parameters, buffers, configs, initializers: everything of burn_core."""

from burn_core import *  # noqa: F403
from burn_core import __all__ as __all__
