"""Gradients over any backend: the tape, the backward rules, checkpointing."""

from collections.abc import Callable
from typing import Any

from burn_autodiff.tape import Gradients as Gradients, Node as Node


def rule_of(name: str) -> Callable[..., Any] | None:
    """Return the backward rule of an operation, or None when it is differentiated in parts.

    Example:
        >>> rule_of("mul").__name__
        'mul'
    """
    from burn_autodiff.rules import RULES

    found = RULES.get(name)
    return None if found is None else found.fn
