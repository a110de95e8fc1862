"""Changes of images: everything of burn_dataset.augment."""

from burn_dataset.augment import *  # noqa: F403
from burn_dataset.augment import __all__ as __all__
