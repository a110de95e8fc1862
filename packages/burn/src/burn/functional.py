"""Everything of burn_tensor.functional."""

from burn_tensor.functional import *  # noqa: F403
from burn_tensor.functional import __all__ as __all__
