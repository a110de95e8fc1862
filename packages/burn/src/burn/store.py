"""Weights on disk: everything of burn_store."""

from burn_store import *  # noqa: F403
from burn_store import __all__ as __all__
