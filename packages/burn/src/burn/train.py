"""Training: everything of burn_train."""

from burn_train import *  # noqa: F403
from burn_train import __all__ as __all__
