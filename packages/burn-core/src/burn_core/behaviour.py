"""Training behaviour: decided once, at the outermost module call, for everything inside."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from burn_core.parameter import Parameter
from burn_core.tree import any_autodiff
from burn_dispatch import current_scope
from burn_tensor import Tensor

# Whether training behaviour is on in the running module call; None outside of any.
TRAINING: ContextVar[bool | None] = ContextVar("burn_training", default=None)

# Set in the `__dict__` of modules that `valid()` made.
VALID = "__valid__"


def is_training() -> bool:
    """Return whether the running forward shows training behaviour (Dropout, BatchNorm).

    It was decided at the outermost module call: on when an input or a Parameter of that module
    is of an autodiff context, no `no_grad` is active and the module is no `valid()`.

    Example:
        >>> burn.is_training()  # outside of any module call
        False
    """
    return bool(TRAINING.get())


def updates_statistics() -> bool:
    """Return whether running statistics move: in training, and in no recompute of a checkpoint.

    Example:
        >>> burn.core.updates_statistics()
        False
    """
    return is_training() and not current_scope().recompute


def decides(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether an outermost call of a module trains."""
    if VALID in module.__dict__:
        return False
    scope = current_scope()
    # The first run of a checkpointed function is untracked, but it is no inference.
    if scope.no_grad and not scope.checkpoint:
        return False
    bare = not kwargs
    for a in args:
        if not isinstance(a, Tensor):
            bare = False
        elif a.b.is_autodiff:
            return True
    if not bare and any_autodiff([args, kwargs], Tensor):
        return True
    return any_autodiff(module, Parameter)
