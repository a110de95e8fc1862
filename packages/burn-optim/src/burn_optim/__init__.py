"""Optimizers under PyTorch's names, arguments and defaults; schedules, clipping, accumulation."""

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
from burn_optim.sgd import ASGD, SGD

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
    "clip_grad_norm",
    "clip_grad_norm_each",
    "clip_grad_value",
    "lr_scheduler",
]
