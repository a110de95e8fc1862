"""From the values of a PyTorch pickle to named tensors with dotted names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from burn_std import StoreError
from burn_store.elements import shortened
from burn_store.pickled import Inert, TensorRef

_MAX_DEPTH = 64
_MAX_TENSORS = 100_000
_MAX_VALUES = 10_000
_MAX_TEXT = 1000


def part(root: Any, key: str | None) -> Any:
    """Return what stands under a dotted path of keys or a prefix of them; all of it without one.

    Raises:
        StoreError: there is no such key; the keys there are are listed.
    """
    if key is None:
        return root
    rest, found = key, root
    while rest:
        if not isinstance(found, Mapping):
            raise StoreError(
                "store.open",
                f"there is no {key!r} in the file",
                got=f"a {type(found).__name__} above {rest!r}",
            )
        # Keys may hold dots themselves: the longest that fits is meant.
        fitting = [k for k in found if rest == str(k) or rest.startswith(f"{k}.")]
        if not fitting:
            # `module.` of data-parallel training stands in the names, not above them.
            start = f"{rest}."
            names = [k for k in found if str(k).startswith(start)]
            below = {str(k)[len(start) :]: found[k] for k in names}
            if below:
                return below
            there = ", ".join(str(k)[:60] for k in list(found)[:20])
            raise StoreError(
                "store.open", f"there is no {key!r} in the file", got=f"keys {there or 'none'}"
            )
        best = max(fitting, key=lambda k: len(str(k)))
        found, rest = found[best], rest[len(str(best)) + 1 :]
    return found


class Tree:
    """The tensors and the other values below a value.

    Args:
        root: what the pickle stood for, or a part of it.

    Raises:
        StoreError: a cycle, too deep, too many, or two tensors of one name.

    Attributes:
        tensors: by dotted name.
        values: numbers, texts and None by dotted name.
        skipped: names of objects that were not needed, with their class.
    """

    def __init__(self, root: Any) -> None:
        self.tensors: dict[str, TensorRef] = {}
        self.values: dict[str, Any] = {}
        self.skipped: dict[str, str] = {}
        self._open: set[int] = set()
        # Containers without tensors are entered once, however often they are shared: a list that
        # holds another twice, sixty levels down, would else be entered 2**60 times.
        self._dry: set[int] = set()
        if isinstance(root, TensorRef):
            self.tensors["tensor"] = root
        else:
            self._enter(root, "", 0)

    def _enter(self, value: Any, prefix: str, depth: int) -> bool:
        """Take what is below a container; return whether there was a tensor."""
        if id(value) in self._dry:
            return False
        if id(value) in self._open:
            raise StoreError(
                "store.open", "the values of the file form a cycle", got=shortened(prefix)
            )
        if depth > _MAX_DEPTH:
            raise StoreError(
                "store.open", f"values nest at most {_MAX_DEPTH} deep", got=shortened(prefix)
            )
        self._open.add(id(value))
        wet = False
        for key, child in _children(value):
            name = f"{prefix}.{key}" if prefix and key else prefix or key
            wet |= self._take(child, name, depth)
        self._open.discard(id(value))
        if not wet:
            self._dry.add(id(value))
        return wet

    def _take(self, child: Any, name: str, depth: int) -> bool:
        if isinstance(child, TensorRef):
            if name in self.tensors:
                raise StoreError(
                    "store.open",
                    "two tensors of the file have one name",
                    got=shortened(name),
                    remedy="Pass key= to read one part of it.",
                )
            if len(self.tensors) >= _MAX_TENSORS:
                raise StoreError(
                    "store.open", f"a file has at most {_MAX_TENSORS} tensors", got=shortened(name)
                )
            self.tensors[name] = child
            return True
        if isinstance(child, Inert):
            self.skipped.setdefault(name, child.name.replace(" ", "."))
            return self._enter(child, name, depth + 1)
        if isinstance(child, (dict, list, tuple)):
            return self._enter(child, name, depth + 1)
        plain = isinstance(child, (str, int, float, bool, type(None)))
        if (
            plain
            and len(self.values) < _MAX_VALUES
            and not (isinstance(child, str) and len(child) > _MAX_TEXT)
        ):
            self.values[name] = child
        return False


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield str(key)[:500], child
    elif isinstance(value, (list, tuple)):
        for at, child in enumerate(value):
            # Long lists of numbers (histories, token ids) are no tensors and no settings.
            if isinstance(child, (TensorRef, Inert, dict, list, tuple)) or len(value) <= 16:
                yield str(at), child
    elif isinstance(value, Inert):
        state = value.state[0] if isinstance(value.state, tuple) and value.state else value.state
        if isinstance(state, dict) and "_modules" in state:
            # A whole module: its three dicts hold what its state dict would.
            for group in ("_parameters", "_buffers", "_modules"):
                yield "", state.get(group, {})
        else:
            yield "", state if isinstance(state, (dict, list)) else ()
