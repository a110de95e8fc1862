"""Optimizers under PyTorch's names, arguments and defaults; schedules, clipping, accumulation."""

from typing import TYPE_CHECKING

from burn_optim import lr_scheduler
from burn_optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from burn_optim.adaptive import Adadelta, Adagrad, RMSprop
from burn_optim.averaging import EMA
from burn_optim.clipping import clip_grad_norm, clip_grad_norm_each, clip_grad_value
from burn_optim.gradients import GradientAccumulator, Gradients, GradientSet
from burn_optim.lbfgs import LBFGS
from burn_optim.modern import LAMB, Adafactor, Adan, Lion, Muon
from burn_optim.optimizer import Group, Optimizer
from burn_optim.scaling import GradScaler
from burn_optim.sgd import ASGD, SGD, Rprop
from burn_std import missing_name as _missing_name
from burn_tensor.guard import guard_constructors as _guard_constructors

__all__ = [
    "ASGD",
    "EMA",
    "LAMB",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Adan",
    "GradScaler",
    "GradientAccumulator",
    "GradientSet",
    "Gradients",
    "Group",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "clip_grad_norm",
    "clip_grad_norm_each",
    "clip_grad_value",
    "lr_scheduler",
]

_guard_constructors(globals(), __all__)

if not TYPE_CHECKING:
    # What `torch.optim` and `torch.nn.utils` have under this name, and what to write instead.
    _OTHERWISE = {
        "clip_grad_norm_": "Write burn.optim.clip_grad_norm(model, grads, max_norm).",
        "clip_grad_value_": "Write burn.optim.clip_grad_value(model, grads, clip_value).",
        "swa_utils": "Averages of weights are burn.optim.EMA.",
        "SparseAdam": "Gradients are dense: use Adam.",
    }

    def __getattr__(name: str) -> object:
        """Say what to write instead of a name that is not here."""
        raise _missing_name("burn.optim", name, __all__, _OTHERWISE)
