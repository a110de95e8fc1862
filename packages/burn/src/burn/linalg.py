"""Everything of burn_tensor.linalg."""

from burn_tensor.linalg import *  # noqa: F403
from burn_tensor.linalg import __all__ as __all__
