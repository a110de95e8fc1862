"""The printed tree of a module: classes, shapes and counts."""

from __future__ import annotations

from typing import Any

from burn_core.parameter import Buffer, Parameter
from burn_core.tree import items
from burn_tensor import Tensor


def tree_text(module: Any) -> str:
    """Return the tree, one line per module and per parameter, and the count of parameters."""
    lines = _lines(type(module).__name__, module, 0)
    return "\n".join([*lines, f"# {module.num_params():,} parameters"])


def _lines(title: str, module: Any, depth: int) -> list[str]:
    pad = "  " * depth
    extra = module.extra_repr()
    out = [f"{pad}{title}({extra})"]
    for key, child in items(module):
        out += _child(key, child, depth + 1)
    return out


def _child(key: str, child: Any, depth: int) -> list[str]:
    pad = "  " * depth
    if isinstance(child, Tensor):
        kind = "Parameter" if isinstance(child, Parameter) else "Buffer" if isinstance(child, Buffer) else "Tensor"
        frozen = ", frozen" if isinstance(child, Parameter) and not child.requires_grad else ""
        return [f"{pad}{key}: {kind} {child.dtype.short}{list(child.shape)}{frozen}"]
    if hasattr(child, "__burn_module__"):
        return _lines(f"{key}: {type(child).__name__}", child, depth)
    if isinstance(child, (list, tuple, dict)):
        inner = [line for k, c in items(child) for line in _child(k, c, depth + 1)]
        return [f"{pad}{key}:", *inner] if inner else []
    return []
