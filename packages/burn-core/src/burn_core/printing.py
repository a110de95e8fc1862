"""The printed tree of a module: classes, shapes and counts."""

from __future__ import annotations

from math import prod
from typing import Any

from burn_core.parameter import Buffer, Parameter
from burn_core.tree import is_module, items_of, walk
from burn_tensor import Tensor


def tree_text(module: Any) -> str:
    """Return the tree, one line per module and per parameter, and the count of parameters."""
    lines = _lines("", module, 0, {})
    known = [p for p in _parameters(module) if p.is_initialized]
    count = sum(prod(p.shape) for p in known)
    frozen = sum(prod(p.shape) for p in known if not p.requires_grad)
    lazy = sum(1 for p in _parameters(module) if not p.is_initialized)
    notes = [f"{frozen:,} frozen"] if 0 < frozen < count else []
    notes += [f"{lazy} lazy"] if lazy else []
    return "\n".join(
        [*lines, f"# {count:,} parameters" + (f" ({', '.join(notes)})" if notes else "")]
    )


def _parameters(module: Any) -> list[Parameter]:
    return [leaf for _, _, _, leaf in walk(module) if isinstance(leaf, Parameter)]


def _lines(path: str, module: Any, depth: int, seen: dict[int, str]) -> list[str]:
    pad = "  " * depth
    title = f"{path.rpartition('.')[2]}: " if path else ""
    name = type(module).__name__
    if id(module) in seen:
        return [f"{pad}{title}{name} (same as {seen[id(module)]})"]
    seen[id(module)] = path or "the top"
    own = sum(prod(p.shape) for p in _parameters(module) if p.is_initialized)
    out = [f"{pad}{title}{name}({module.extra_repr()})" + (f"  # {own:,}" if own and path else "")]
    for key, child in items_of(module):
        out += _child(f"{path}.{key}" if path else key, key, child, depth + 1, seen)
    return out


_DEEPEST = 64


def _child(path: str, key: str, child: Any, depth: int, seen: dict[int, str]) -> list[str]:
    pad = "  " * depth
    if isinstance(child, Tensor):
        return [f"{pad}{key}: {_tensor(path, child, seen)}"]
    if is_module(child):
        return _lines(path, child, depth, seen)
    if isinstance(child, (list, tuple, dict)):
        if depth > _DEEPEST:  # among them a list that holds itself
            return [f"{pad}{key}: ..."]
        inner = [
            line
            for k, c in items_of(child)
            for line in _child(f"{path}.{k}", k, c, depth + 1, seen)
        ]
        return [f"{pad}{key}:", *inner] if inner else []
    return []


def _tensor(path: str, t: Tensor, seen: dict[int, str]) -> str:
    kind = (
        "Parameter" if isinstance(t, Parameter) else "Buffer" if isinstance(t, Buffer) else "Tensor"
    )
    if id(t) in seen:
        return f"{kind} (same as {seen[id(t)]})"
    seen[id(t)] = path
    if isinstance(t, Parameter) and not t.is_initialized:
        return f"{kind} {t.dtype.short}, lazy"
    frozen = ", frozen" if type(t) is Parameter and not t.requires_grad else ""
    return f"{kind} {t.dtype.short}{list(t.shape)}{frozen}"
