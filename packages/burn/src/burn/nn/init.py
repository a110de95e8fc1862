"""Initializers: everything of burn_core.init."""

from typing import TYPE_CHECKING

from burn_core.init import *  # noqa: F403
from burn_core.init import __all__ as __all__

if not TYPE_CHECKING:
    from burn_core.init import __getattr__ as __getattr__
