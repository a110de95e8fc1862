"""Everything of burn_tensor.fft."""

from typing import TYPE_CHECKING

from burn_tensor.fft import *  # noqa: F403
from burn_tensor.fft import __all__ as __all__

if not TYPE_CHECKING:
    from burn_tensor.fft import __getattr__ as __getattr__
