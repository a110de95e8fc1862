"""Optimizers: everything of burn_optim."""

from typing import TYPE_CHECKING

from burn_optim import *  # noqa: F403
from burn_optim import __all__ as __all__
from burn_std import missing_name as _missing_name

if not TYPE_CHECKING:
    # What `torch.optim` has under this name, and what to write instead.
    _OTHERWISE = {
        "Rprop": "Use RMSprop, its form for batches.",
        "SparseAdam": "Gradients are dense: use Adam.",
        "swa_utils": "Averages of weights are burn.optim.EMA.",
    }

    def __getattr__(name: str) -> object:
        """Say what to write instead of a name that is not here."""
        raise _missing_name("burn.optim", name, __all__, _OTHERWISE)
