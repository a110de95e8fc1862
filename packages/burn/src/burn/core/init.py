"""Initializers: everything of burn_core.init."""

from burn_core.init import *  # noqa: F403
from burn_core.init import __all__ as __all__
