"""Modules made of modules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from burn_core import Module
from burn_core.tree import items
from burn_std import ArgumentError


class Sequential(Module):
    """Call modules one after the other.

    Args:
        *modules: the modules, or one dict of them by name.

    Example:
        >>> import burn_tensor as bt
        >>> from burn_nn import Linear, ReLU
        >>> Sequential(Linear(2, 3), ReLU())(bt.ones(1, 2)).shape
        (1, 3)
    """

    def __init__(self, *modules: Any) -> None:
        if len(modules) == 1 and isinstance(modules[0], dict):
            named = dict(modules[0])
        else:
            named = {str(k): m for k, m in enumerate(modules)}
        for name, m in named.items():
            if not isinstance(m, Module):
                raise ArgumentError("Sequential", "takes modules", got=f"{name}: {type(m).__name__}")
            self.__dict__[name] = m

    def _modules(self) -> OrderedDict[str, Module]:
        return OrderedDict((k, m) for k, m in items(self) if isinstance(m, Module))

    def forward(self, x: Any) -> Any:
        """Return the last module's result."""
        for m in self._modules().values():
            x = m(x)
        return x

    def __len__(self) -> int:
        return len(self._modules())

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules().values())

    def __getitem__(self, index: int | slice) -> Any:
        found = list(self._modules().items())
        if isinstance(index, slice):
            return Sequential(dict(found[index]))
        return found[index][1]
