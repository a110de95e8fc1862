"""The tensors of a model that are saved, each with all its paths and the modules around it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from burn_core import Buffer, Module, Parameter, items_of, unique


class Leaf:
    """A parameter or persistent buffer as the store sees it.

    Attributes:
        path: its first path in the model.
        aliases: further paths of the same tensor.
        value: the parameter or buffer.
        name: its name inside the innermost module, `weight`.
        kinds: class names of the innermost module and of its bases.
        outer: (path, class names) of the modules around it, the innermost last.
        siblings: names of the tensors of the innermost module.
        modules: the modules around it, as in `outer`.
    """

    __slots__ = ("aliases", "kinds", "modules", "name", "outer", "path", "siblings", "value")

    def __init__(
        self,
        path: str,
        value: Any,
        name: str,
        outer: tuple[tuple[str, tuple[str, ...]], ...],
        siblings: frozenset[str],
        modules: tuple[Module, ...],
    ) -> None:
        self.path = path
        self.aliases: list[str] = []
        self.value = value
        self.name = name
        self.outer = outer
        self.kinds = outer[-1][1]
        self.siblings = siblings
        self.modules = modules

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        shape: tuple[int, ...] = tuple(self.value.shape)
        return shape

    @property
    def has_value(self) -> bool:
        """False for a lazy parameter, which takes the shape of whatever is loaded."""
        return bool(getattr(self.value, "is_initialized", True))

    @property
    def dtype(self) -> str:
        """The name of the dtype."""
        name: str = self.value.dtype.name
        return name

    def at(self, path: str) -> Leaf:
        """Return this leaf as it stands under another of its paths."""
        made = Leaf(path, self.value, self.name, self.outer, self.siblings, self.modules)
        made.outer = (
            *self.outer[:-1],
            (path.removesuffix(self.name).removesuffix("."), self.kinds),
        )
        return made


def param_id(leaf: Leaf) -> int | None:
    """Return the id of a parameter as a number; None for a buffer."""
    return int(leaf.value.id, 32) if isinstance(leaf.value, Parameter) else None


def leaves(model: Module) -> list[Leaf]:
    """Return parameters and persistent buffers in the order of definition, each once."""
    found: dict[int, Leaf] = {}
    every = list(_walk(model, "", (), (), set()))
    deque(unique(model, ((leaf.path, leaf.value) for leaf in every)), 0)
    for leaf in every:
        first = found.setdefault(id(leaf.value), leaf)
        if first is not leaf:
            first.aliases.append(leaf.path)
    return list(found.values())


def _walk(
    module: Module, path: str, outer: tuple[tuple[str, tuple[str, ...]], ...],
    modules: tuple[Module, ...], open_: set[int],
) -> Iterator[Leaf]:  # fmt: skip
    # A module may stand in two places, which ties all of it, but not inside itself.
    if id(module) in open_:
        return
    open_.add(id(module))
    around = (*outer, (path, tuple(c.__name__ for c in type(module).__mro__)))
    modules = (*modules, module)
    own = [(n, child) for key, child in items_of(module) for n, child in _flat(key, child, set())]
    siblings = frozenset(n for n, child in own if not isinstance(child, Module))
    for name, child in own:
        full = f"{path}.{name}" if path else name
        if isinstance(child, Module):
            yield from _walk(child, full, around, modules, open_)
        else:
            yield Leaf(full, child, name, around, siblings, modules)
    open_.discard(id(module))


def _flat(name: str, value: Any, open_: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield the modules and saved tensors of an attribute, through lists, tuples and dicts."""
    if isinstance(value, (Module, Parameter)) or (isinstance(value, Buffer) and value.persistent):
        yield name, value
    elif isinstance(value, (list, tuple, dict)) and id(value) not in open_:
        open_.add(id(value))
        children = value.items() if isinstance(value, dict) else enumerate(value)
        for key, child in children:
            yield from _flat(f"{name}.{key}", child, open_)
        open_.discard(id(value))
