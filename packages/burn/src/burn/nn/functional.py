"""Everything of burn_tensor.functional, where PyTorch has it: `import burn.nn.functional as F`."""

from typing import TYPE_CHECKING

from burn_tensor.functional import *  # noqa: F403
from burn_tensor.functional import __all__ as __all__

if not TYPE_CHECKING:
    from burn_tensor.functional import __getattr__ as __getattr__
