"""Data sets and loaders: everything of burn_dataset."""

from burn_dataset import *  # noqa: F403
from burn_dataset import __all__ as __all__
