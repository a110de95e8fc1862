"""Walking modules: attributes, lists, tuples and dicts, nested, in the order of definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from burn_tensor import Tensor

if TYPE_CHECKING:
    from burn_core.module import Module


def items(container: Any) -> Iterator[tuple[str, Any]]:
    """Yield (key, child) of a module, list, tuple or dict; nothing of anything else."""
    if isinstance(container, (list, tuple)):
        for k, child in enumerate(container):
            yield str(k), child
    elif isinstance(container, dict):
        for key, child in container.items():
            yield str(key), child
    elif hasattr(container, "__burn_module__"):
        for name, child in container.__dict__.items():
            if not name.startswith("__"):
                yield name, child


def walk(module: Module, prefix: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield (path, owner, key, leaf) for every tensor and module below `module`.

    Each object is met once, so tied parameters count once. Modules come before what they hold.
    """
    seen = set() if seen is None else seen
    if id(module) in seen:
        return
    seen.add(id(module))
    for key, child in items(module):
        path = f"{prefix}{key}"
        yield from _walk(path, module, key, child, seen)


def _walk(path: str, owner: Any, key: str, child: Any, seen: set[int]) -> Iterator[tuple[str, Any, Any, Any]]:
    if isinstance(child, Tensor):
        if id(child) not in seen:
            seen.add(id(child))
            yield path, owner, key, child
    elif hasattr(child, "__burn_module__") and not isinstance(child, type):
        if id(child) not in seen:
            yield path, owner, key, child
            yield from walk(child, f"{path}.", seen)
    elif isinstance(child, (list, tuple, dict)):
        for k, inner in items(child):
            yield from _walk(f"{path}.{k}", child, k, inner, seen)


def rebuilt(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return a copy of nested containers with tensors and modules replaced by `leaf`."""
    if isinstance(value, Tensor) or (hasattr(value, "__burn_module__") and not isinstance(value, type)):
        return leaf(value)
    if isinstance(value, dict):
        return type(value)((k, rebuilt(v, leaf)) for k, v in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(rebuilt(v, leaf) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(rebuilt(v, leaf) for v in value)
    return value
