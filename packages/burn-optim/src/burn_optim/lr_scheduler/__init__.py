"""Learning-rate schedules under PyTorch's names; the rate of step k is a function of k.

    schedule = StepLR(0.1, step_size=30)
    for batch in loader:
        opt.step(model, grads, lr=schedule.lr)      # step 0 uses the rate of 0
        schedule.step()

A schedule is no part of an optimizer: `lr` is a number that the loop hands on, and all state is
how many steps were made (and, for `ReduceLROnPlateau`, what it saw).
"""

from typing import TYPE_CHECKING

from burn_optim.lr_scheduler.compose import (
    ChainedScheduler as ChainedScheduler,
    ComposedLR as ComposedLR,
    GroupLR as GroupLR,
    SequentialLR as SequentialLR,
    WarmupLR as WarmupLR,
)
from burn_optim.lr_scheduler.cyclic import (
    CosineAnnealingLR as CosineAnnealingLR,
    CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts,
    CyclicLR as CyclicLR,
    OneCycleLR as OneCycleLR,
)
from burn_optim.lr_scheduler.decay import (
    ConstantLR as ConstantLR,
    ExponentialLR as ExponentialLR,
    LambdaLR as LambdaLR,
    LinearLR as LinearLR,
    MultiplicativeLR as MultiplicativeLR,
    MultiStepLR as MultiStepLR,
    NoamLR as NoamLR,
    PolynomialLR as PolynomialLR,
    StepLR as StepLR,
)
from burn_optim.lr_scheduler.plateau import ReduceLROnPlateau as ReduceLROnPlateau
from burn_optim.lr_scheduler.schedule import LRScheduler as LRScheduler
from burn_std import missing_name as _missing_name
from burn_tensor.guard import guard_constructors as _guard_constructors

__all__ = [
    "ChainedScheduler",
    "ComposedLR",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "GroupLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "NoamLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
    "WarmupLR",
]

_guard_constructors(globals(), __all__)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what to write instead of a name that is not here."""
        raise _missing_name("burn.optim.lr_scheduler", name, __all__, {})
