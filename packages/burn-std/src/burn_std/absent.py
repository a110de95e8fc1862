"""Names that a class lacks, with what to write instead.

They stand on the class. A `__getattr__` in their place would have Python look up every attribute of
its objects the long way, which costs an operation on a small tensor a quarter of its time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Absent:
    """Stands under a name that objects of a class lack; reading it raises.

    What another base of a derived class has under the name is found all the same.

    Args:
        name: the missing attribute.
        things: what has none, in the plural.
        remedy: what to write instead.
        label: the class in words; the name of the class that is asked if empty.

    Example:
        >>> class Box:
        ...     lid = Absent("lid", "boxes", "Write box.top.")
        >>> Box().lid
        Traceback (most recent call last):
            ...
        AttributeError: Box.lid: boxes have no such attribute. Write box.top.
    """

    __slots__ = ("_label", "_name", "_remedy", "_things")

    def __init__(self, name: str, things: str, remedy: str, label: str = "") -> None:
        self._name = name
        self._things = things
        self._remedy = remedy
        self._label = label

    def __get__(self, x: Any, cls: type) -> Any:
        for base in cls.__mro__:
            found = base.__dict__.get(self._name, self)
            if found.__class__ is not Absent:
                bind = getattr(type(found), "__get__", None)
                return found if bind is None else bind(found, x, cls)
        raise AttributeError(
            f"{self._label or cls.__name__}.{self._name}: {self._things} have no such attribute. "
            f"{self._remedy}"
        )


def present(cls: type, names: Iterable[str]) -> list[str]:
    """Return the names under which a class or its objects have something.

    Args:
        cls: the class.
        names: what `dir` gives.
    """
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found.update(base.__dict__)
    return [n for n in names if found.get(n).__class__ is not Absent]
