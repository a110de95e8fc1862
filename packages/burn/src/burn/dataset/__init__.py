"""Data sets and loaders: everything of burn_dataset."""

from typing import TYPE_CHECKING

from burn_dataset import *  # noqa: F403
from burn_dataset import __all__ as __all__

if not TYPE_CHECKING:
    from burn_dataset import __getattr__ as __getattr__
