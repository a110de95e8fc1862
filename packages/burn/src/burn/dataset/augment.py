"""Changes of images: everything of burn_dataset.augment."""

from typing import TYPE_CHECKING

from burn_dataset.augment import *  # noqa: F403
from burn_dataset.augment import __all__ as __all__

if not TYPE_CHECKING:
    from burn_dataset.augment import __getattr__ as __getattr__
