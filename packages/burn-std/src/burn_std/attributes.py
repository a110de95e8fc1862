"""What objects take as attributes: no misspelt ones, and no slots where dicts are read."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol

from burn_std.errors import ArgumentError
from burn_std.plugins import nearest

if TYPE_CHECKING:
    import inspect

    _Abstract = ABCMeta
else:
    _Abstract = type(Protocol)  # derived from ABCMeta, and has no public name


class ClosedMeta(_Abstract):
    """Metaclass of objects that have settings, and of modules.

    Their classes mix with each other, with `abc.ABC` and with protocols of `typing`. It notes when
    an object of a `Closed` class is made; a base cannot, since `__init__` of a derived class is
    last.
    """

    # To belong to a class is to derive from it. ABCs ask more, and take ten times as long.
    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__

    def register(cls, subclass: type) -> NoReturn:
        """Refuse virtual subclasses.

        Raises:
            ArgumentError: always.
        """
        raise ArgumentError(
            cls.__name__, "a class belongs to it by deriving from it", got=subclass.__name__,
            remedy="Derive it, or register it with an ABC of your own.",
        )  # fmt: skip

    @property
    def __signature__(cls) -> inspect.Signature:
        """The constructor's signature, which `__call__` below would hide from help()."""
        import inspect  # only who asks needs it

        if cls.__init__ is object.__init__:  # type: ignore[misc]
            return inspect.Signature()
        whole = inspect.signature(cls.__init__)  # type: ignore[misc]
        return whole.replace(
            parameters=list(whole.parameters.values())[1:], return_annotation=whole.empty
        )

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make the object; a closed one takes no other attributes from now on."""
        made = super().__call__(*args, **kwargs)
        if isinstance(made, Closed):
            made.__dict__["_closed"] = True
        return made


class Closed(metaclass=ClosedMeta):
    """Base of objects that have settings: once made they take no attribute that they lack.

    `optimizer.learning_rate = 0.1` would else be kept and change nothing. Names that begin with an
    underscore are the class's own business.

    Example:
        >>> class Box(Closed):
        ...     def __init__(self): self.lid = "open"
        >>> Box().led = "shut"
        Traceback (most recent call last):
            ...
        AttributeError: Box.led: there is no such attribute to set. Did you mean 'lid'?
    """

    # What to write instead, by name; a derived class adds its own.
    otherwise_set: ClassVar[Mapping[str, str]] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        held = self.__dict__
        if name not in held and name[0] != "_" and "_closed" in held:
            cls = type(self)
            if not hasattr(cls, name):
                there = [n for n in (*held, *dir(cls)) if n[0] != "_"]
                remedy = cls.otherwise_set.get(name) or nearest(name, there)
                remedy = remedy or "A class of your own makes its attributes in __init__."
                raise AttributeError(
                    f"{cls.__name__}.{name}: there is no such attribute to set. {remedy}"
                )
        super().__setattr__(name, value)


def need_dict(cls: type, why: str) -> None:
    """Refuse a class that keeps attributes in slots, where those who read a dict would miss them.

    Args:
        cls: the class, with its bases.
        why: who reads the attributes, in words.

    Raises:
        ArgumentError: the class, or a base of it, has slots of its own.

    Example:
        >>> class Narrow:
        ...     __slots__ = ("x",)
        >>> need_dict(Narrow, "A box is copied by them.")
        Traceback (most recent call last):
            ...
        burn_std.errors.ArgumentError: Narrow: attributes do not stand in slots; got __slots__ ...
    """
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        names = [slots] if isinstance(slots, str) else list(slots)
        if set(names) - {"__dict__", "__weakref__"}:
            where = "" if base is cls else f" of {base.__name__}"
            raise ArgumentError(
                cls.__name__, "attributes do not stand in slots",
                got=f"__slots__ = {tuple(names)}{where}",
                remedy=f"{why} Leave out __slots__, and slots=True of a dataclass.",
            )  # fmt: skip
