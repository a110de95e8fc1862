"""Everything of burn_tensor.fft."""

from burn_tensor.fft import *  # noqa: F403
from burn_tensor.fft import __all__ as __all__
