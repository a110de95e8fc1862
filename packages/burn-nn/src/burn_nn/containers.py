"""Modules made of modules; PyTorch's names and keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import compress
from typing import Any

from burn_core import Module, Parameter, call_in_turn
from burn_std import ArgumentError, IndexRangeError
from burn_tensor import Tensor


def need_module(op: str, name: str, value: Any) -> Module:
    """Return a value, which has to be a module.

    Args:
        op: what an error names.
        name: of the argument or element.
        value: what was given.

    Raises:
        ArgumentError: it is none.
    """
    if not isinstance(value, Module):
        raise ArgumentError(op, "holds modules", got=f"{name}: {type(value).__name__}")
    return value


# Whether an attribute of a container is one of its modules, by name: it is soon asked.
_INSIDE: dict[str, bool] = {}
_inside = _INSIDE.__getitem__


def _held(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the modules among the attributes of a container.

    A summary puts its watching `forward` among them.
    """
    inside = {name: name[:2] != "__" and name != "forward" for name in attributes}
    if len(_INSIDE) < 4096:
        _INSIDE.update(inside)
    return {name: m for name, m in attributes.items() if inside[name]}


class _Held(Module):
    """What containers share: modules stand in attributes named by number or key."""

    def extra_repr(self) -> str:
        """Return nothing: the tree shows what is held."""
        return ""

    def _held(self) -> dict[str, Any]:
        return _held(self.__dict__)

    def _place(self, index: int) -> str:
        names = list(self._held())
        if not -len(names) <= index < len(names):
            raise IndexRangeError(
                type(self).__name__, "the index is out of range", got=f"{index} of {len(names)}"
            )
        return names[index]

    def _renumber(self, values: Iterable[Any]) -> None:
        for name in self._held():
            del self.__dict__[name]
        for k, value in enumerate(values):
            self.__dict__[str(k)] = value

    def __len__(self) -> int:
        return len(self._held())


class Sequential(_Held):
    """Call modules one after the other, each with the result of the one before.

    Args:
        args: the modules, or one dict of them by name.

    Raises:
        ArgumentError: something is no module.

    Example:
        >>> model = burn.nn.Sequential(burn.nn.Linear(2, 3), burn.nn.ReLU())
        >>> model(burn.ones(1, 2)).shape
        (1, 3)
        >>> len(model), len(model[1:])
        (2, 1)
    """

    def __init__(self, *args: Any) -> None:
        if len(args) == 1 and isinstance(args[0], Mapping):
            named = dict(args[0])
        else:
            named = {str(k): m for k, m in enumerate(args)}
        for name, m in named.items():
            self.__dict__[name] = need_module("Sequential", name, m)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the last module's result; the first takes the arguments."""
        # A list, since a module may change what holds it; without `_held`, which takes longer.
        try:
            held = [*compress(self.__dict__.values(), map(_inside, self.__dict__))]
        except KeyError:  # a name that is new
            held = [*self._held().values()]
        if len(args) == 1 and not kwargs:
            return call_in_turn(held, args[0])
        if not held:
            return args[0] if args else None
        return call_in_turn(held[1:], held[0](*args, **kwargs))

    def append(self, module: Module) -> Sequential:
        """Add a module at the end; return this one.

        Args:
            module: what is added.
        """
        self.__dict__[str(len(self))] = need_module("Sequential", "append", module)
        return self

    def extend(self, modules: Iterable[Module]) -> Sequential:
        """Add modules at the end; return this one.

        Args:
            modules: what is added.
        """
        for m in modules:
            self.append(m)
        return self

    def insert(self, index: int, module: Module) -> Sequential:
        """Put a module before another; the rest is renumbered; return this one.

        Args:
            index: where it will stand.
            module: what is added.
        """
        held = list(self._held().values())
        held.insert(index, need_module("Sequential", "insert", module))
        self._renumber(held)
        return self

    def __iter__(self) -> Iterator[Module]:
        return iter(self._held().values())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return Sequential(dict(list(self._held().items())[index]))
        return self.__dict__[self._place(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        self.__dict__[self._place(index)] = need_module("Sequential", str(index), module)

    def __delitem__(self, index: int | slice) -> None:
        held = list(self._held().values())
        del held[index]
        self._renumber(held)


class _List(_Held):
    """What lists of modules and of parameters share."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        self.extend([] if values is None else values)

    def _check(self, value: Any) -> Any:
        return need_module(type(self).__name__, "an element", value)

    def append(self, value: Any) -> Any:
        """Add an element at the end; return this list.

        Args:
            value: what is added.
        """
        self.__dict__[str(len(self))] = self._check(value)
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        """Add elements at the end; return this list.

        Args:
            values: what is added.
        """
        try:
            found = list(values)
        except TypeError:
            name = type(self).__name__
            raise ArgumentError(name, "takes a list", got=type(values).__name__) from None
        for v in found:
            self.append(v)
        return self

    def insert(self, index: int, value: Any) -> None:
        """Put an element before another; the rest is renumbered.

        Args:
            index: where it will stand.
            value: what is added.
        """
        held = list(self._held().values())
        held.insert(index, self._check(value))
        self._renumber(held)

    def pop(self, index: int = -1) -> Any:
        """Take an element out and return it; the rest is renumbered.

        Args:
            index: which.
        """
        held = list(self._held().values())
        out = held.pop(index)
        self._renumber(held)
        return out

    def __iter__(self) -> Iterator[Any]:
        return iter(self._held().values())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            made: Any = type(self)
            return made(list(self._held().values())[index])
        return self.__dict__[self._place(index)]

    def __setitem__(self, index: int, value: Any) -> None:
        self.__dict__[self._place(index)] = self._check(value)

    def __delitem__(self, index: int | slice) -> None:
        held = list(self._held().values())
        del held[index]
        self._renumber(held)


class ModuleList(_List):
    """Modules in a list, found under their numbers.

    Args:
        modules: the first elements.

    Raises:
        ArgumentError: an element is no module.

    Example:
        >>> layers = burn.nn.ModuleList([burn.nn.ReLU(), burn.nn.Tanh()])
        >>> [type(m).__name__ for m in layers]
        ['ReLU', 'Tanh']
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        self.extend(modules or [])


class ParameterList(_List):
    """Parameters in a list, found under their numbers; tensors become parameters.

    Args:
        values: the first elements.

    Example:
        >>> params = burn.nn.ParameterList([burn.ones(2)])
        >>> [path for path, _ in params.named_parameters()]
        ['0']
    """

    def _check(self, value: Any) -> Any:
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            return Parameter(value)
        return value


class _Dict(_Held):
    """What dicts of modules and of parameters share."""

    def _check(self, key: str, value: Any) -> Any:
        return need_module(type(self).__name__, key, value)

    def update(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add or replace elements.

        Args:
            values: by key.
        """
        try:
            pairs = dict(values)
        except (TypeError, ValueError):
            raise ArgumentError(
                type(self).__name__, "takes a dict, or pairs of a key and an element",
                got=type(values).__name__,
            ) from None  # fmt: skip
        for key, value in pairs.items():
            self[key] = value

    def keys(self) -> Iterator[str]:
        """Yield the keys."""
        return iter(self._held())

    def values(self) -> Iterator[Any]:
        """Yield the elements."""
        return iter(self._held().values())

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield (key, element)."""
        return iter(self._held().items())

    def pop(self, key: str) -> Any:
        """Take an element out and return it.

        Args:
            key: which.
        """
        out = self[key]
        del self.__dict__[key]
        return out

    def __iter__(self) -> Iterator[str]:
        return iter(self._held())

    def __contains__(self, key: object) -> bool:
        return key in self._held()

    def __getitem__(self, key: str) -> Any:
        return self._held()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        given: Any = key
        if not isinstance(given, str) or key.startswith("__") or "." in key:
            raise ArgumentError(type(self).__name__, "a key is a text without dots", got=repr(key))
        self.__dict__[key] = self._check(key, value)

    def __delitem__(self, key: str) -> None:
        self.pop(key)


class ModuleDict(_Dict):
    """Modules by name.

    Args:
        modules: the first elements.

    Raises:
        ArgumentError: an element is no module, or a key no text without dots.

    Example:
        >>> heads = burn.nn.ModuleDict({"a": burn.nn.Linear(2, 1)})
        >>> sorted(heads.state_dict())
        ['a.bias', 'a.weight']
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        self.update({} if modules is None else modules)


class ParameterDict(_Dict):
    """Parameters by name; tensors become parameters.

    Args:
        values: the first elements.

    Example:
        >>> sorted(burn.nn.ParameterDict({"scale": burn.ones(2)}).state_dict())
        ['scale']
    """

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self.update({} if values is None else values)

    def _check(self, key: str, value: Any) -> Any:  # noqa: ARG002 - the base class names it
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            return Parameter(value)
        return value
