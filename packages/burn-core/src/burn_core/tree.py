"""Walking modules: attributes, lists, tuples and dicts, nested, in the order of definition."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any, TypeVar

from burn_std import Absent, ArgumentError
from burn_tensor import Tensor

T = TypeVar("T")

# Where a module keeps weights that are computed from others (LoRA, quantised), by attribute name.
REPARAMETERIZED = "__reparameterized__"


class Computed:
    """Stands on a class of modules under the name of a weight that some of them compute.

    It serves those that have no attribute of their own under the name.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, module: Any, cls: type) -> Any:
        """Return the weight."""
        made = None if module is None else module.__dict__.get(REPARAMETERIZED)
        if made is None or self._name not in made:
            raise AttributeError(f"{cls.__name__!r} object has no attribute {self._name!r}")
        return made[self._name].materialize()


def computes(cls: type, names: Iterable[str]) -> None:
    """Let modules of a class compute weights, where the class has nothing under their names."""
    absent = Absent("", "", "")
    for name in names:
        if all(isinstance(b.__dict__.get(name, absent), Absent) for b in cls.__mro__):
            setattr(cls, name, Computed(name))


def is_module(value: Any) -> bool:
    """Return whether a value is a module, without importing the class."""
    return hasattr(value, "__burn_module__") and not isinstance(value, type)


def items_of(container: Any) -> Iterator[tuple[str, Any]]:
    """Yield (key, child) of a module, list, tuple or dict; nothing of anything else.

    The tensors that a weight is computed from are children of its module.

    Args:
        container: any value.

    Example:
        >>> [key for key, _ in burn.core.items_of(burn.nn.Linear(1, 1))][-2:]
        ['weight', 'bias']
    """
    if isinstance(container, (list, tuple)):
        for k, child in enumerate(container):
            yield str(k), child
    elif isinstance(container, dict):
        for key, child in container.items():
            yield str(key), child
    elif is_module(container):
        for name, child in container.__dict__.items():
            if not name.startswith("__"):
                yield name, child
        for name, made in container.__dict__.get(REPARAMETERIZED, {}).items():
            yield from made.named(name)


def walk(
    module: Any, prefix: str = "", seen: set[int] | None = None
) -> Iterator[tuple[str, Any, str, Any]]:
    """Yield (path, owner, key, leaf) for every tensor and module below `module`.

    Each object is met once, so tied parameters count once. Modules come before what they hold.

    Args:
        module: where to begin; it is not yielded itself.
        prefix: put before every path.
        seen: ids of objects to leave out; filled on the way.
    """
    seen = set() if seen is None else seen
    seen.add(id(module))
    for key, child in items_of(module):
        yield from _walk(f"{prefix}{key}", module, key, child, seen)


def _walk(
    path: str, owner: Any, key: str, child: Any, seen: set[int]
) -> Iterator[tuple[str, Any, str, Any]]:
    if isinstance(child, Tensor):
        if id(child) not in seen:
            seen.add(id(child))
            yield path, owner, key, child
    elif isinstance(child, (list, tuple, dict)):
        if id(child) in seen:  # all in it was met; it may also hold itself
            return
        seen.add(id(child))
        for k, inner in items_of(child):
            yield from _walk(f"{path}.{k}", child, k, inner, seen)
    elif is_module(child) and id(child) not in seen:
        yield path, owner, key, child
        yield from walk(child, f"{path}.", seen)


def unique(module: Any, named: Iterable[tuple[str, T]]) -> Iterator[tuple[str, T]]:
    """Yield (path, thing), and refuse two things under one path: who goes by paths would lose one.

    Args:
        module: where the paths begin.
        named: paths, and what stands there.

    Raises:
        ArgumentError: there are two, as under the keys `1` and `"1"` of a dict.

    Example:
        >>> layer = burn.nn.Linear(1, 1)
        >>> [path for path, _ in burn.core.unique(layer, [("weight", layer.weight)])]
        ['weight']
    """
    here: dict[str, T] = {}
    for path, thing in named:
        if here.setdefault(path, thing) is not thing:
            raise ArgumentError(
                type(module).__name__, f"two things stand under the path {path}",
                got=" and ".join(_spelled(module, path)),
                remedy="Give the dict keys that differ as texts, and have no dots.",
            )  # fmt: skip
        yield path, thing


def _spelled(module: Any, path: str) -> list[str]:
    """Return where things under a path stand, as Python writes it."""
    found: list[str] = []
    above: set[int] = set()

    def visit(at: str, spelled: str, child: Any) -> None:
        if at == path:
            found.append(spelled)
        elif (not at or path.startswith(f"{at}.")) and id(child) not in above:
            above.add(id(child))
            keys = list(child) if isinstance(child, dict) else None
            for k, (key, inner) in enumerate(items_of(child)):
                if keys is not None:
                    here = f"[{keys[k]!r}]"
                else:
                    here = f".{key}" if is_module(child) else f"[{key}]"
                visit(f"{at}.{key}" if at else key, f"{spelled}{here}", inner)
            above.discard(id(child))

    visit("", "model", module)
    return found


def leaves_of(module: Any, kind: type) -> list[Any]:
    """Return the tensors of a class that a walk meets, in its order, without their paths.

    Args:
        module: where the walk begins.
        kind: the class.
    """
    found: list[Any] = []
    _gather(_children(module), kind, found, {id(module)})
    return found


def _children(module: Any) -> list[Any]:
    """Return the values in a module that are or may hold tensors."""
    inner, kinds = module.__dict__, _KINDS
    if REPARAMETERIZED in inner:
        return [child for _, child in items_of(module)]
    return [v for name, v in inner.items() if kinds[v.__class__] and name[:2] != "__"]


def _gather(values: Iterable[Any], kind: type, found: list[Any], seen: set[int]) -> None:
    kinds = _KINDS
    for v in values:
        what = kinds[v.__class__]
        if not what or id(v) in seen:
            continue
        seen.add(id(v))
        if what == "tensor":
            if isinstance(v, kind):
                found.append(v)
        elif what == "module":
            inner = _children(v)
            if inner:
                _gather(inner, kind, found, seen)
        else:
            _gather(v.values() if what == "dict" else v, kind, found, seen)


def aliases(module: Any) -> dict[str, str]:
    """Return {other path: first path} of tensors that are met more than once (tied ones)."""
    first: dict[int, str] = {}
    out: dict[str, str] = {}
    places: list[tuple[str, Tensor]] = []
    # Modules on the way down, so that a module that holds itself ends.
    above: set[int] = set()

    def visit(path: str, child: Any) -> None:
        if isinstance(child, Tensor):
            places.append((path, child))
            known = first.setdefault(id(child), path)
            if known != path:
                out[path] = known
        elif isinstance(child, (list, tuple, dict)) or is_module(child):
            if id(child) in above:
                return
            above.add(id(child))
            for key, inner in items_of(child):
                visit(f"{path}.{key}" if path else key, inner)
            above.discard(id(child))

    visit("", module)
    if out:  # else nobody goes by these paths
        deque(unique(module, places), 0)
    return out


class _Kinds(dict[type, str]):
    """What to do with values of a class; looked up, since the walk below meets many."""

    def __missing__(self, cls: type) -> str:
        if issubclass(cls, Tensor):
            kind = "tensor"
        elif issubclass(cls, dict):
            kind = "dict"
        elif issubclass(cls, (list, tuple)):
            kind = "list"
        else:
            kind = "module" if hasattr(cls, "__burn_module__") else ""
        # Classes made while running would pile up.
        if len(self) < 4096:
            self[cls] = kind
        return kind


_KINDS = _Kinds()


def any_autodiff(value: Any, kind: type) -> bool:
    """Return whether a tensor of a class inside a value is of an autodiff context.

    Looks through nested containers and modules; a loop, since it runs at every outermost call.
    """
    kinds = _KINDS
    stack = [value]
    seen: set[int] = set()
    while stack:
        top = stack.pop()
        what = kinds[top.__class__]
        if what == "tensor":
            if top.b.is_autodiff and isinstance(top, kind):
                return True
        elif what == "list":
            if id(top) not in seen:  # it may hold itself
                seen.add(id(top))
                stack.extend(top)
        elif what == "dict":
            if id(top) not in seen:
                seen.add(id(top))
                stack.extend(top.values())
        elif what == "module" and id(top) not in seen:
            seen.add(id(top))
            # The copy's source and its like begin with two underscores and hold no leaves.
            stack.extend(_children(top))
    return False


def rebuilt(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return nested containers with tensors and modules replaced by `leaf`.

    A container that holds neither is returned as it is.
    """
    if isinstance(value, Tensor) or is_module(value):
        return leaf(value)
    if isinstance(value, dict):
        pairs = {k: rebuilt(v, leaf) for k, v in value.items()}
        if all(v is value[k] for k, v in pairs.items()) and not _holds(value):
            return value
        made = copy(value)  # with what a class of its own keeps beside the elements
        made.update(pairs)
        return made
    if isinstance(value, (list, tuple)):
        parts = [rebuilt(v, leaf) for v in value]
        if all(a is b for a, b in zip(parts, value, strict=True)) and not _holds(value):
            return value
        if isinstance(value, list):
            same = copy(value)
            same[:] = parts
            return same
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _holds(value: Any) -> bool:
    """Return whether a container holds a tensor or module anywhere."""
    if isinstance(value, (list, tuple, dict)):
        inner = value.values() if isinstance(value, dict) else value
        return any(_holds(v) for v in inner)
    return isinstance(value, Tensor) or is_module(value)
