"""Everything of burn_tensor.linalg."""

from typing import TYPE_CHECKING

from burn_tensor.linalg import *  # noqa: F403
from burn_tensor.linalg import __all__ as __all__

if not TYPE_CHECKING:
    from burn_tensor.linalg import __getattr__ as __getattr__
