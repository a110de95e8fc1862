"""Calls of modules: words where they are wrong, and names of PyTorch that are not here."""

from __future__ import annotations

from typing import Any

from burn_std import BurnError
from burn_tensor.guard import explained_call

# What to write instead of what PyTorch's modules have and these have not.
OTHERWISE = {
    "requires_grad_": "Use model.freeze() and model.unfreeze().",
    "zero_grad": "Gradients are values that nothing accumulates into.",
    "cuda": "Use model.to_device(burn.Device.cuda()).",
    "cpu": "Use model.to_device(burn.Device.cpu()), or Device.flex().",
    "compile": "Nothing to call: devices that record compile by themselves; burn.capture replays a "
    "whole step.",
    "type": "Use model.to_dtype(dtype).",
    "share_memory": "Workers of a loader get arrays; parameters stay in one process.",
    "register_full_backward_hook": "Gradients are a value: read and change it between backward "
    "and opt.step.",
    "register_forward_pre_hook": "Write a module that calls this one.",
    "get_buffer": "Use dict(model.named_buffers())[path].",
    "register_buffer": "Write self.name = nn.Buffer(tensor).",
    "register_parameter": "Write self.name = nn.Parameter(tensor).",
    "add_module": "Write self.name = module.",
    "register_module": "Write self.name = module.",
    "register_forward_hook": "Write a module that calls this one.",
    "device": "Its parameters have one: next(model.parameters()).device.",
    "save": "Write burn.store.save(model, path).",
    "half": "Use model.to_dtype(burn.float16).",
    "double": "Use model.to_dtype(burn.float64).",
    "float": "Use model.to_dtype(burn.float32).",
    "bfloat16": "Use model.to_dtype(burn.bfloat16).",
}


# Packages whose layers say which argument was wrong; frames and words of others stay as they are.
_EXPLAINED: set[str] = set()


def explain_arguments(package: str) -> None:
    """Let wrong arguments of a package's layers get typed errors that end at the caller's line.

    Its constructors and `forward` methods need annotations that say what they take.

    Args:
        package: name of the package, as it is imported.

    Example:
        >>> burn.nn.Linear(2, "3")
        Traceback (most recent call last):
            ...
        burn_std.errors.DTypeError: Linear: out_features must be an integer; got str '3'
    """
    _EXPLAINED.add(package)


def is_explained(cls: type) -> bool:
    """Return whether a class is of a package that `explain_arguments` was told of."""
    return cls.__module__.partition(".")[0] in _EXPLAINED


def explained(
    module: Any, cause: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Exception | None:
    """Return the error of a call that was given what its module does not take; else None."""
    kind = type(module)
    if isinstance(cause, BurnError) or not is_explained(kind):
        return None
    found = explained_call(cause, kind.forward, (module, *args), kwargs, kind.__name__)
    return None if found is cause else found


# Stands for the argument of a call without any.
NOTHING: Any = object()


def given(first: Any, more: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the positional arguments of a call, of which the first stands apart."""
    return more if first is NOTHING else (first, *more)
