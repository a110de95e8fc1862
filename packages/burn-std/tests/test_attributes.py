"""Objects with settings refuse what they lack; classes that are read by their dict refuse slots."""

from __future__ import annotations

import abc
import copy
import inspect
import pickle
import types
from typing import Any, Protocol

import pytest

from burn_std import ArgumentError, Closed, need_dict


class Box(Closed):
    otherwise_set = {"cover": "Set box.lid."}

    def __init__(self, lid: str = "open") -> None:
        self.lid = lid
        self._inside: list[int] = []

    @property
    def size(self) -> int:
        return len(self._inside)


class Chest(Box):
    lock: str | None = None

    def __init__(self) -> None:
        super().__init__("shut")
        self.key = "iron"  # after the base is made

    def open(self) -> None:
        self.lid, self._seen = "open", True


def test_a_setting_that_there_is_not_is_refused() -> None:
    box = Box()
    box.lid = "shut"
    with pytest.raises(AttributeError, match="Did you mean 'lid'"):
        box.led = "shut"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"Set box\.lid"):
        box.cover = "shut"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="property"):
        box.size = 1  # type: ignore[misc]
    assert sorted(n for n in vars(box) if n[0] != "_") == ["lid"]


def test_a_derived_class_adds_its_own() -> None:
    chest = Chest()
    chest.open()
    chest.key, chest.lock = "gold", "new"
    for made in (copy.copy(chest), copy.deepcopy(chest), pickle.loads(pickle.dumps(chest))):
        assert (made.key, made.lock, made.lid) == ("gold", "new", "open")
        with pytest.raises(AttributeError):
            made.kee = "x"


def test_the_constructor_is_shown() -> None:
    assert list(inspect.signature(Box).parameters) == ["lid"]
    assert not inspect.signature(Closed).parameters


def test_slots() -> None:
    class Narrow:
        __slots__ = ("x",)

    class Wide(Narrow):
        pass

    class Empty:
        __slots__ = ("__dict__", "__weakref__")

    need_dict(Empty, "")
    for cls in (Narrow, Wide):
        with pytest.raises(ArgumentError, match="slots"):
            need_dict(cls, "It is read.")


def test_it_mixes_with_abstract_classes() -> None:
    class Abstract(Box, abc.ABC):
        @abc.abstractmethod
        def weigh(self) -> float: ...

    class Heavy(Abstract):
        def weigh(self) -> float:
            return 1.0

    with pytest.raises(TypeError, match="abstract"):
        Abstract()  # type: ignore[abstract]
    with pytest.raises(AttributeError, match="Did you mean 'lid'"):
        Heavy().led = "shut"  # type: ignore[attr-defined]


class Weighed(Protocol):
    mass: float = 1.0

    def weigh(self) -> float: ...


@pytest.mark.parametrize("first", [True, False])
def test_it_mixes_with_protocols(first: bool) -> None:
    bases = (Box, Weighed) if first else (Weighed, Box)
    made: Any = types.new_class("Made", bases, {}, lambda body: body.update(weigh=lambda self: 2.0))
    if first:  # else Python has an __init__ of the protocol's until an object is made
        assert list(inspect.signature(made).parameters) == ["lid"]
    box = made("shut")
    assert (box.lid, box.mass, box.weigh()) == ("shut", 1.0, 2.0)
    assert isinstance(box, Box)
    assert issubclass(made, Box)
    assert not isinstance(Box(), made)
    box.mass = 3.0
    with pytest.raises(AttributeError, match="Did you mean 'lid'"):
        box.led = "shut"


def test_nothing_belongs_to_it_without_deriving() -> None:
    with pytest.raises(ArgumentError, match="deriving"):
        Box.register(int)
