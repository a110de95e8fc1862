"""Training: everything of burn_train."""

from typing import TYPE_CHECKING

from burn_std import missing_name as _missing_name
from burn_train import *  # noqa: F403
from burn_train import __all__ as __all__

if not TYPE_CHECKING:
    # What other libraries have under this name, and what to write instead.
    _OTHERWISE = {
        "Trainer": "Use SupervisedTraining(...).run(learner).",
        "ModelCheckpoint": "Pass directory= and rule= to SupervisedTraining.",
        "Callback": "Subclass Observer.",
        "R2": "Use R2Score.",
        "IoU": "Use MeanIoU.",
        "F1Score": "Use FBetaScore.",
    }

    def __getattr__(name: str) -> object:
        """Say what to write instead of a name that is not here."""
        raise _missing_name("burn.train", name, __all__, _OTHERWISE)
